package autoscaler

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/berthproject/berth/core/cluster"
)

// Readiness says from when on a node of a group takes pods, and how long it is waited for
// until then.
type Readiness struct {
	// StartupTime is how long after its creation a node that isn't usable counts as
	// coming (--max-node-startup-time), where its group has no time of its own.
	StartupTime time.Duration
	// StartupTaints are the keys of taints that a node carries until something on it
	// has started, such as the network (--startup-taint, --ignore-taint).
	StartupTaints []string
	// StartupTaintPrefixes are prefixes of such keys (--startup-taint-prefix), in
	// addition to those that Cluster Autoscaler has built in.
	StartupTaintPrefixes []string
	// StatusTaints are the keys of taints that say something of one node's condition:
	// new nodes of its group don't have them (--status-taint).
	StatusTaints []string
	// InterruptionTaints are the keys of taints that say that the cloud is about to take a node: its
	// group's new nodes don't have them. The core sets it.
	InterruptionTaints []string `json:"-"`
	// Parts are those that a profile's plugins need nodes to have (framework.PartsNeeder): new nodes
	// are waited for until they have those that are promised. The core sets it.
	Parts cluster.NodeParts `json:"-"`
}

// The prefixes of taints that Cluster Autoscaler knows without a flag.
const (
	startupTaintPrefix = "startup-taint.cluster-autoscaler.kubernetes.io/"
	ignoreTaintPrefix  = "ignore-taint.cluster-autoscaler.kubernetes.io/"
	statusTaintPrefix  = "status-taint.cluster-autoscaler.kubernetes.io/"
)

// DeletionCandidateTaint marks a node that may be removed soon. Its value is the unix time
// in seconds at which it became a candidate.
const DeletionCandidateTaint = "DeletionCandidateOfClusterAutoscaler"

// conditionTaints are those that the node controller and kubelets put on a node for what
// is true of it at the moment.
var conditionTaints = []string{
	v1.TaintNodeNotReady, v1.TaintNodeUnreachable, v1.TaintNodeUnschedulable, v1.TaintNodeMemoryPressure,
	v1.TaintNodeDiskPressure, v1.TaintNodeNetworkUnavailable, v1.TaintNodePIDPressure, v1.TaintNodeOutOfService,
}

// Usable reports whether a node takes pods as its template says: it is ready, carries none of
// the taints of a node that is starting, and has every extended resource of the template.
// A node that says it is ready before its device plugin has started isn't usable; if it
// counted as there, its pods would still not fit, and nodes would be ordered again.
func (r *Readiness) Usable(n, template *cluster.NodeInfo) bool {
	return n.Ready() && !slices.ContainsFunc(n.Object.Spec.Taints, r.startingTaint) && missing(n, template) == nil
}

// startingTaint reports whether a taint says that its node doesn't take pods yet, though it
// may report that it is ready. The node controller takes its own away a moment later.
func (r *Readiness) startingTaint(t v1.Taint) bool {
	return t.Key == v1.TaintNodeNotReady || t.Key == v1.TaintNodeUnreachable || r.StartupTaint(t)
}

// StartupTaint reports whether a taint is one that nodes carry while they start.
func (r *Readiness) StartupTaint(t v1.Taint) bool {
	return slices.Contains(r.StartupTaints, t.Key) ||
		strings.HasPrefix(t.Key, startupTaintPrefix) || strings.HasPrefix(t.Key, ignoreTaintPrefix) ||
		slices.ContainsFunc(r.StartupTaintPrefixes, func(prefix string) bool { return strings.HasPrefix(t.Key, prefix) })
}

// The types of taints that TaintType doesn't tell by their key.
const (
	StartupTaintType = "startup-taint"
	StatusTaintType  = "status-taint"
	OtherTaintType   = "other"
)

// TaintType returns the type of a taint in Cluster Autoscaler's metrics: the key of a taint
// that Cluster Autoscaler or the node controller sets, otherwise what the taint means for the node.
func (r *Readiness) TaintType(t v1.Taint) string {
	switch {
	case strings.HasPrefix(t.Key, ignoreTaintPrefix):
		return ignoreTaintPrefix
	case t.Key == ToBeDeletedTaint || t.Key == DeletionCandidateTaint || slices.Contains(conditionTaints, t.Key):
		return t.Key
	case r.StartupTaint(t):
		return StartupTaintType
	case slices.Contains(r.StatusTaints, t.Key) || strings.HasPrefix(t.Key, statusTaintPrefix):
		return StatusTaintType
	}
	return OtherTaintType
}

// passing reports whether a taint says something of one node at one moment, so that neither
// a new node of its group nor the node itself, once it is usable, carries it.
func (r *Readiness) passing(t v1.Taint) bool {
	return r.startingTaint(t) || slices.Contains(conditionTaints, t.Key) || slices.Contains(r.StatusTaints, t.Key) ||
		strings.HasPrefix(t.Key, statusTaintPrefix) || t.Key == ToBeDeletedTaint || t.Key == DeletionCandidateTaint ||
		t.Key == InterruptedTaint || slices.Contains(r.InterruptionTaints, t.Key)
}

// missing returns the extended resources that a template has and a node hasn't.
func missing(n, template *cluster.NodeInfo) []cluster.ResourceID {
	var out []cluster.ResourceID
	if template == nil {
		return nil
	}
	for id, want := range template.Allocatable.All() {
		if id.Scalar() && want > 0 && n.Allocatable.At(id) == 0 {
			out = append(out, id)
		}
	}
	return out
}

// Lack returns what a node lacks of what it is promised, once it is ready, for people: a startup taint
// stays, or an extended resource of the template is missing. It is "" when nothing is lacking.
func (r *Readiness) Lack(n, template *cluster.NodeInfo) string {
	if i := slices.IndexFunc(n.Object.Spec.Taints, r.StartupTaint); i >= 0 {
		return "startup taint " + n.Object.Spec.Taints[i].Key + " is not removed"
	}
	if ids := missing(n, template); ids != nil {
		return "extended resource " + string(ids[0].Name()) + " is not available"
	}
	return ""
}

// StartupOf returns how long after its creation a node of a group that isn't usable counts as
// coming, and what says so, for a person. g may be nil.
func (r *Readiness) StartupOf(g *cluster.NodeGroup) (length time.Duration, by string) {
	if g != nil && g.Options != nil && g.Options.StartupTime != nil {
		return g.Options.StartupTime.Duration, "an option of its node group"
	}
	return r.StartupTime, "--max-node-startup-time"
}

// Late reports whether a node of a group was created so long ago that nobody waits for it any
// more. g may be nil. serverNow is the API server's time, by which nodes are created.
func (r *Readiness) Late(n *cluster.NodeInfo, g *cluster.NodeGroup, serverNow time.Time) bool {
	length, _ := r.StartupOf(g)
	return serverNow.Sub(n.Object.CreationTimestamp.Time) > length
}

// Starting reports whether a node of a group is registered and waited for: it isn't usable yet, it
// isn't late, and nobody is removing it. g may be nil.
func (r *Readiness) Starting(n *cluster.NodeInfo, g *cluster.NodeGroup, serverNow time.Time) bool {
	var template *cluster.NodeInfo
	if g != nil {
		template = g.Template
	}
	return !r.Late(n, g, serverNow) && !n.HasTaint(ToBeDeletedTaint) && !n.HasTaint(InterruptedTaint) && !r.Usable(n, template)
}

// Started returns what a node that is starting will be once it is usable: ready, without
// the taints that will go, and with the template's extended resources.
func (r *Readiness) Started(n, template *cluster.NodeInfo) *cluster.NodeInfo {
	object := *n.Object
	object.Spec.Taints = slices.DeleteFunc(slices.Clone(object.Spec.Taints), r.passing)
	object.Status.Conditions = []v1.NodeCondition{{Type: v1.NodeReady, Status: v1.ConditionTrue}}
	out := n.With(&object)
	if ids := missing(n, template); ids != nil {
		out.Allocatable = n.Allocatable.Clone()
		for _, id := range ids {
			out.Allocatable.Set(id, template.Allocatable.At(id))
		}
	}
	return out
}

// Newer returns which of two nodes of a group says more of what new nodes look like: the
// one created later, of two of one second the first by name, and of one node what is known
// now. Either may be nil.
func Newer(old, now *cluster.NodeInfo) *cluster.NodeInfo {
	switch {
	case old == nil:
		return now
	case now == nil || old.Name != now.Name && cmp.Or(
		old.Object.CreationTimestamp.Compare(now.Object.CreationTimestamp.Time), strings.Compare(now.Name, old.Name)) > 0:
		return old
	}
	return now
}

// TemplateFrom returns what a new node of the group of a usable node looks like: the node
// without what is true of it alone. A label that the provider's template has counts as the
// template has it: somebody may have relabelled this one node.
func (r *Readiness) TemplateFrom(n, template *cluster.NodeInfo) *cluster.NodeInfo {
	out := r.Started(n, nil)
	out.Object.Spec.Unschedulable = false
	out.Object.Labels = map[string]string{}
	maps.Copy(out.Object.Labels, n.Object.Labels)
	maps.Copy(out.Object.Labels, template.Object.Labels)
	return out
}

// Lowered returns a template with no more of a resource than a node that was made after it
// shows. What the node shows none of says nothing: extended resources are published late.
func Lowered(template, n *cluster.NodeInfo) *cluster.NodeInfo {
	out := template
	lower := func() *cluster.NodeInfo {
		if out == template {
			own := *template
			own.Allocatable = template.Allocatable.Clone()
			out = &own
		}
		return out
	}
	for id, promised := range template.Allocatable.All() {
		if has := n.Allocatable.At(id); has > 0 && has < promised {
			lower().Allocatable.Set(id, has)
		}
	}
	if n.AllowedPods > 0 && n.AllowedPods < template.AllowedPods {
		lower().AllowedPods = n.AllowedPods
	}
	return out
}
