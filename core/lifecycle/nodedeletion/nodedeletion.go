package nodedeletion

import (
	"fmt"
	"maps"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/autoscaler/nodegroup"
	"github.com/berthproject/berth/core/autoscaler/scaledown"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/lifecycle"
	"github.com/berthproject/berth/core/step"
)

const (
	// untaintRetry is how long after a failure to take a taint off it is tried again.
	untaintRetry = 5 * time.Second
	// lingerTime is how long after its deletion a node may be shown by the API, and
	// its instance listed by the provider, before it is taken for alive.
	lingerTime = 2 * time.Minute
)

// Config says when nodes are deleted, and how. Names are those of Cluster Autoscaler's
// flags; core.Autoscale has the defaults.
type Config struct {
	UnneededTime          time.Duration // how long a ready node has to be empty
	UnreadyTime           time.Duration // how long an unready node has to be empty
	KeepUnready           bool          // empty nodes that aren't ready stay
	MaxDeletions          int           // deletions at a time, beyond which none begins
	DeleteDelayAfterTaint time.Duration // from the taint to the last look
	EvictDaemonPods       bool          // unless a pod's annotation says otherwise
	MaxPodEvictionTime    time.Duration // how long evictions are waited for
}

// Groups is what node deletions need of the node groups.
type Groups interface {
	// Known tells whether the provider has told of its groups yet.
	Known() bool
	// Retarget adds to the number of nodes that a group is assumed to have.
	Retarget(t *lifecycle.Turn, group string, delta int)
	// ScaleDownDelayed tells whether a group grew, or failed to, too recently for its
	// nodes to be deleted.
	ScaleDownDelayed(now time.Time, group string) bool
	// InstanceDeletion says of which group an instance is, by its provider ID, and how
	// far the deletion is that was asked for because it had not become a node;
	// NotCalled for any other instance.
	InstanceDeletion(providerID string) (group string, state lifecycle.CallState)
}

// Machine follows all nodes on their way out. Only the core's goroutine may call it.
type Machine struct {
	cfg       Config
	groups    Groups
	deletions map[string]*deletion // by node name
	unneeded  unneededNodes
}

var _ lifecycle.Machine = (*Machine)(nil)

// New returns a machine that follows no node yet. Connect must be called before any
// other method.
func New(cfg Config) *Machine {
	return &Machine{cfg: cfg, deletions: map[string]*deletion{}, unneeded: unneededNodes{}}
}

// Connect sets the node groups, which in turn need this machine.
func (m *Machine) Connect(groups Groups) { m.groups = groups }

// CommitPlan takes from a plan which nodes are empty, and begins to delete those that
// have been so for long enough and whose group may shrink.
func (m *Machine) CommitPlan(t *lifecycle.Turn, plan *autoscaler.Plan) {
	m.unneeded.replace(plan.Now, plan.Empty, t.State)
	for _, name := range plan.Empty {
		n := t.State.NodeByName(name)
		if n == nil || m.deletions[name] != nil || len(m.deletions) >= m.cfg.MaxDeletions {
			continue
		}
		why, empty, ok := m.unneeded.due(&m.cfg, t.Now, name)
		if !ok {
			continue
		}
		g := t.State.Group(n.Group)
		if g == nil || !scaledown.Removable(n) || g.Target-m.Planned(g.ID)-1 < g.Min || m.groups.ScaleDownDelayed(t.Now, g.ID) {
			continue
		}
		t.Decide(step.Decision{Kind: step.NodeTainted, Node: name, Group: n.Group, Reason: fmt.Sprintf("%s for %s", why, empty)})
		d := &deletion{group: n.Group, taint: deletionTaint(t.Now), why: why, state: tainting{}}
		m.deletions[name] = d
		t.Ready.Taints = append(t.Ready.Taints, step.Taint{Node: name, Taint: d.taint})
		t.State.SetNode(n.NodeInfo.WithTaint(d.taint))
	}
}

func deletionTaint(now time.Time) v1.Taint {
	return v1.Taint{Key: autoscaler.ToBeDeletedTaint, Value: fmt.Sprint(now.Unix()), Effect: v1.TaintEffectNoSchedule}
}

// NodeSet takes what the API shows of a node and returns how the state is to have it,
// nil for not at all: what was decided about a node holds until the API shows it.
func (m *Machine) NodeSet(t *lifecycle.Turn, info *cluster.NodeInfo) *cluster.NodeInfo {
	d := m.deletions[info.Name]
	if d == nil {
		return m.firstSeen(t, info)
	}
	switch s := d.state.(type) {
	case deleting:
		s.node = info
		d.state = s
		return nil
	case inDoubt:
		s.node = info
		d.state = s
		return nil
	case deleted:
		s.shown = info
		d.state = s
		return nil
	case untainting, untaintFailed:
		return info.WithoutTaint(d.taint.Key)
	}
	return info.WithTaint(d.taint)
}

// firstSeen is NodeSet for a node that has no entry. It gets one if its instance is
// being deleted, or was, or if it carries the taint. A node that is in the state already
// has turned out to be alive, whatever was asked of the provider before.
func (m *Machine) firstSeen(t *lifecycle.Turn, info *cluster.NodeInfo) *cluster.NodeInfo {
	if t.State.NodeByName(info.Name) != nil {
		m.Resume(t, info)
		return info
	}
	var s state
	group, call := m.groups.InstanceDeletion(info.Object.Spec.ProviderID)
	switch call {
	case lifecycle.NotCalled:
		m.Resume(t, info)
		return info
	case lifecycle.Called:
		s = deleting{called{node: info}}
	case lifecycle.InDoubt:
		s = inDoubt{called{node: info}}
	case lifecycle.Done:
		s = deleted{since: t.Now, shown: info}
	}
	m.deletions[info.Name] = &deletion{group: group, taint: deletionTaint(t.Now), why: "its machine was removed", state: s}
	return nil
}

// Resume takes over a node that carries the taint although this process has not
// written it: another process began to delete the node, and ended. The node gets its
// last look, and is deleted or untainted.
func (m *Machine) Resume(t *lifecycle.Turn, info *cluster.NodeInfo) {
	for _, taint := range info.Object.Spec.Taints {
		if taint.Key == autoscaler.ToBeDeletedTaint {
			m.deletions[info.Name] = &deletion{group: info.Group, taint: taint, why: "its removal had begun", state: tainted{t.Now}}
		}
	}
}

// NodeGone takes note that the API no longer shows a node.
func (m *Machine) NodeGone(name string) {
	m.unneeded.forget(name)
	d := m.deletions[name]
	if d == nil {
		return
	}
	switch s := d.state.(type) {
	case deleting:
		s.gone = true
		d.state = s
	case inDoubt:
		s.gone = true
		d.state = s
	default:
		delete(m.deletions, name)
	}
}

// TaintDone takes the outcome of putting a taint on, or of taking it off.
func (m *Machine) TaintDone(t *lifecycle.Turn, in step.TaintDone) {
	d := m.deletions[in.Node]
	if d == nil {
		return
	}
	switch d.state.(type) {
	case tainting:
		if in.Err != nil {
			m.keep(t, in.Node, d, fmt.Sprintf("the node could not be tainted: %v", in.Err))
			return
		}
		d.state = tainted{t.Now}
	case untainting, untaintFailed:
		if in.Err != nil {
			d.state = untaintFailed{t.Now}
			return
		}
		delete(m.deletions, in.Node)
	}
}

// Advance takes deletions further whose time has come.
func (m *Machine) Advance(t *lifecycle.Turn) {
	for _, name := range slices.Sorted(maps.Keys(m.deletions)) {
		d := m.deletions[name]
		if at := d.state.due(&m.cfg); at.IsZero() || t.Now.Before(at) {
			continue
		}
		switch s := d.state.(type) {
		case tainted, evicting:
			m.lastLook(t, name, d)
		case deleted:
			m.linger(t, d, s)
		case untaintFailed:
			d.state = untainting{}
			t.Ready.Taints = append(t.Ready.Taints, step.Taint{Node: name, Taint: d.taint, Remove: true})
		}
	}
}

// lastLook asks the provider to delete a tainted node, if it may still go; else the
// node stays. With daemon pods to evict, it asks those first and looks again after.
func (m *Machine) lastLook(t *lifecycle.Turn, name string, d *deletion) {
	n := t.State.NodeByName(name)
	d.group = n.Group // as it now is: the node may have been tainted by another process
	g := t.State.Group(n.Group)
	switch {
	case !m.groups.Known():
		return // without groups there is no telling; looked at again when they are known
	case g == nil:
		m.keep(t, name, d, "the node is in no node group")
		return
	case !scaledown.Removable(n):
		m.keep(t, name, d, "the node is no longer empty")
		return
	case g.Target-m.Planned(g.ID) < g.Min:
		m.keep(t, name, d, "the node group is at its minimum")
		return
	}
	if _, waited := d.state.(tainted); waited {
		if open := m.evictDaemons(t, n); len(open) > 0 {
			d.state = evicting{t.Now, open}
			return
		}
	}
	d.state = deleting{called{node: n.NodeInfo, lowered: true}}
	t.Ready.NodeDeletions = append(t.Ready.NodeDeletions, step.NodeDeletion{Group: g.ID, Node: name, Instance: n.Object.Spec.ProviderID})
	t.Decide(step.Decision{Kind: step.NodeRemoved, Node: name, Group: g.ID, Reason: d.why})
	t.Emit(nodeEvent(n.Object, false, "ScaleDown", "node removed by cluster autoscaler: "+d.why))
	m.groups.Retarget(t, g.ID, -1)
	t.State.RemoveNode(name)
}

// enableEviction is the annotation by which a daemon pod says whether it is to be
// evicted, whatever the flag says.
const enableEviction = "cluster-autoscaler.kubernetes.io/enable-ds-eviction"

// evictDaemons asks the node's daemon pods to leave, where that is wanted, and returns
// which were asked. As in Cluster Autoscaler it is a courtesy: a pod that can't be
// evicted doesn't keep the node.
func (m *Machine) evictDaemons(t *lifecycle.Turn, n *cluster.Node) map[types.UID]bool {
	asked := map[types.UID]bool{}
	for _, pod := range n.Pods {
		obj := pod.Object
		wish := obj.Annotations[enableEviction]
		if !pod.Daemon() || pod.Mirror() || obj.DeletionTimestamp != nil || wish != "true" && (wish == "false" || !m.cfg.EvictDaemonPods) {
			continue
		}
		asked[pod.UID] = true
		t.Decide(step.Decision{Kind: step.PodEvicted, Pod: obj.Namespace + "/" + obj.Name, Node: n.Name})
		t.Ready.Evictions = append(t.Ready.Evictions, step.Eviction{UID: pod.UID, Namespace: obj.Namespace, Name: obj.Name, Node: n.Name})
	}
	return asked
}

// EvictionDone takes the outcome of an eviction. A pod that could not be evicted is no
// longer waited for.
func (m *Machine) EvictionDone(in step.EvictionDone) {
	if d := m.deletions[in.Node]; d != nil {
		if s, ok := d.state.(evicting); ok {
			delete(s.open, in.UID)
		}
	}
}

// NodeDeletionDone takes the outcome of a NodeDeletion, whoever asked for it.
func (m *Machine) NodeDeletionDone(t *lifecycle.Turn, in step.NodeDeletionDone) {
	name, d := m.deletingNode(in)
	if d == nil {
		return
	}
	s := d.state.(deleting)
	switch {
	case in.Err != nil:
		d.state, d.why = inDoubt(s), fmt.Sprintf("the provider did not remove the node: %v", in.Err)
	case s.gone:
		delete(m.deletions, name)
	default:
		d.state = deleted{since: t.Now}
	}
}

// deletingNode returns the deletion that waits for an outcome, nil if none does. The
// instance tells which node it is about when the name doesn't: the deletion may have
// been asked for before the instance was a node.
func (m *Machine) deletingNode(in step.NodeDeletionDone) (string, *deletion) {
	if d := m.deletions[in.Node]; d != nil {
		if _, ok := d.state.(deleting); ok {
			return in.Node, d
		}
	}
	for name, d := range m.deletions {
		if s, ok := d.state.(deleting); ok && in.Instance != "" && s.node.Object.Spec.ProviderID == in.Instance {
			return name, d
		}
	}
	return "", nil
}

// GroupsSet takes what the provider lists as the outcome of deletions in doubt, and
// remembers which deleted nodes' instances are listed still.
func (m *Machine) GroupsSet(t *lifecycle.Turn, groups []nodegroup.Group) {
	for _, name := range slices.Sorted(maps.Keys(m.deletions)) {
		d := m.deletions[name]
		switch s := d.state.(type) {
		case deleted:
			s.listed = s.shown != nil && listed(groups, d.group, s.shown)
			d.state = s
		case inDoubt:
			switch {
			case s.gone:
				delete(m.deletions, name)
			case listed(groups, d.group, s.node):
				t.State.SetNode(s.node.WithTaint(d.taint))
				m.keep(t, name, d, d.why)
			default:
				d.state = deleted{since: t.Now}
			}
		}
	}
}

// listed tells whether the provider lists a node's instance. A provider that doesn't
// list instances, or not this group, is taken at its word: it failed, so the instance
// exists.
func listed(groups []nodegroup.Group, group string, node *cluster.NodeInfo) bool {
	for i := range groups {
		if g := &groups[i]; g.ID == group {
			return g.Instances == nil || slices.ContainsFunc(g.Instances, func(x nodegroup.Instance) bool {
				return x.Node == node.Name || x.ID != "" && x.ID == node.Object.Spec.ProviderID
			})
		}
	}
	return true
}

// linger looks, lingerTime after a deletion, whether the node is alive: shown by the API
// since, and listed by the provider. Then its deletion begins again.
func (m *Machine) linger(t *lifecycle.Turn, d *deletion, s deleted) {
	if !s.listed {
		s.since = t.Now
		d.state = s
		return
	}
	t.State.SetNode(s.shown.WithTaint(d.taint))
	d.state = tainted{t.Now}
}

// keep ends a deletion with the node staying: the taint is taken off, and the entry
// remains until that has worked. The node's time of being unneeded starts anew.
func (m *Machine) keep(t *lifecycle.Turn, name string, d *deletion, why string) {
	d.state = untainting{}
	m.unneeded.forget(name)
	t.Decide(step.Decision{Kind: step.NodeKept, Node: name, Reason: why})
	t.Ready.Taints = append(t.Ready.Taints, step.Taint{Node: name, Taint: d.taint, Remove: true})
	n := t.State.NodeByName(name)
	t.Emit(nodeEvent(n.Object, true, "ScaleDownFailed", why))
	t.State.SetNode(n.NodeInfo.WithoutTaint(d.taint.Key))
}

func nodeEvent(node *v1.Node, warning bool, reason, message string) step.Event {
	return step.Event{Kind: "Node", UID: node.UID, Name: node.Name, Warning: warning, Reason: reason, Action: "ScalingDown", Message: message}
}

// Planned returns how many nodes of a group are on their way out that its assumed target
// still includes.
func (m *Machine) Planned(group string) (n int) {
	for _, d := range m.deletions {
		switch d.state.(type) {
		case tainting, tainted, evicting:
			if d.group == group {
				n++
			}
		}
	}
	return n
}

// Unanswered returns how many nodes of a group its assumed target no longer includes
// though the outcome of their deletion is open or in doubt.
func (m *Machine) Unanswered(group string) (n int) {
	for _, d := range m.deletions {
		if s, ok := d.asked(); ok && s.lowered && d.group == group {
			n++
		}
	}
	return n
}

// Asked calls f with the group of each node that the provider was asked to delete,
// with the outcome open or in doubt.
func (m *Machine) Asked(f func(group string)) {
	for _, d := range m.deletions {
		if _, ok := d.asked(); ok {
			f(d.group)
		}
	}
}

// OutOfState calls f with each node that the API has shown and that is kept out of the
// state, in no particular order.
func (m *Machine) OutOfState(f func(*cluster.NodeInfo)) {
	for _, d := range m.deletions {
		if last, ok := d.outOfState(); ok && last != nil {
			f(last)
		}
	}
}

// NextWake returns when a deletion goes on by itself.
func (m *Machine) NextWake() time.Time {
	var next time.Time
	if !m.groups.Known() {
		return next // no deletion goes on before the provider has told of its groups
	}
	for _, d := range m.deletions {
		next = lifecycle.Earliest(next, d.state.due(&m.cfg))
	}
	return next
}

// Unsettled names the nodes on their way out.
func (m *Machine) Unsettled() []string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(m.deletions)) {
		out = append(out, fmt.Sprintf("the deletion of node %s is under way: %s", name, m.deletions[name].state))
	}
	return out
}

// Invariants checks what the types of the states leave open.
func (m *Machine) Invariants() []string {
	var out []string
	wrong := func(name string, d *deletion, format string, args ...any) {
		out = append(out, fmt.Sprintf("deletion of node %s (%s): %s", name, d.state, fmt.Sprintf(format, args...)))
	}
	for _, name := range slices.Sorted(maps.Keys(m.deletions)) {
		d := m.deletions[name]
		if d.taint.Key != autoscaler.ToBeDeletedTaint {
			wrong(name, d, "its taint is %q", d.taint.Key)
		}
		if s, ok := d.asked(); ok && s.node == nil {
			wrong(name, d, "what the node looked like is not known")
		}
		if last, _ := d.outOfState(); last != nil && last.Name != name {
			wrong(name, d, "it remembers node %s", last.Name)
		}
		if s, ok := d.state.(deleted); ok && s.listed && s.shown == nil {
			wrong(name, d, "its instance was looked for though the node isn't shown")
		}
	}
	return out
}

// InvariantsIn checks that each node on its way out is in the cluster state as the table
// in doc.go says.
func (m *Machine) InvariantsIn(state *cluster.State) []string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(m.deletions)) {
		d, n := m.deletions[name], state.NodeByName(name)
		has := "is in the state, tainted"
		switch {
		case n == nil:
			has = "is out of the state"
		case !n.HasTaint(autoscaler.ToBeDeletedTaint):
			has = "is in the state, clean"
		}
		want := "is in the state, tainted"
		switch d.state.(type) {
		case deleting, inDoubt, deleted:
			want = "is out of the state"
		case untainting, untaintFailed:
			want = "is in the state, clean"
		}
		if has != want {
			out = append(out, fmt.Sprintf("deletion of node %s (%s): the node %s; it should be so that it %s", name, d.state, has, want))
		}
	}
	return out
}
