package checker

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Names that Cluster Autoscaler, and whoever does its work, gives to things.
const toBeDeleted = "ToBeDeletedByClusterAutoscaler"

// Config says what is known of the cluster's load and groups beforehand.
type Config struct {
	// GroupLabel is the label of a node that names its node group. Nodes without it are
	// nobody's to delete.
	GroupLabel string
	// WholeNode reports whether each pod of a group takes a node of its own and nothing but
	// these pods may be there: its pods select the group by GroupLabel.
	WholeNode func(group string) bool
	// Gang returns the gang that a pod is a member of, the zero Gang for none. A nil Gang means that there
	// are no gangs.
	Gang func(*v1.Pod) Gang
	// Patience is how long something that must not stay may stay in calm times.
	Patience time.Duration
	// Serves reports whether a device is one of a device class, and Extended is the class that backs
	// each extended resource. Both may be nil where pods claim no devices.
	Serves   func(class string, d *resourcev1.Device) bool
	Extended map[v1.ResourceName]string
}

// Gang is what must hold for a gang, as its members say.
type Gang struct {
	Name string // "" for no gang
	// MinCount is how many members must be placed for any to be of use.
	MinCount int
	// Topology is the label that the nodes of all members must have with one value; "" when none is required.
	Topology string
}

// Violation is an invariant that broke. Detail names the objects, and revisions where these prove it.
type Violation struct {
	Kind   Kind
	Detail string
	At     time.Time
}

func (v Violation) String() string { return fmt.Sprintf("%s: %s", v.Kind, v.Detail) }

// Kind is what an invariant protects from.
type Kind string

// The kinds of violations: things done twice (Kind.Twice), or lost.
const (
	BoundTwice     Kind = "a pod bound twice"
	BoughtTwice    Kind = "a node bought twice"
	Misplaced      Kind = "a pod where it may not be"
	Unscheduled    Kind = "a pod unscheduled though it fits"
	TaintedForEver Kind = "a node tainted for ever"
	NotEvicted     Kind = "a node deleted with pods that weren't evicted"
	NodeLeft       Kind = "a node left that nobody needs"
	GivenTwice     Kind = "a device allocated twice"
	WithoutDevices Kind = "a pod bound without its devices"
	DevicesKept    Kind = "devices kept for nobody"
	GangInPart     Kind = "a gang that stays placed in part"
	GangApart      Kind = "a gang in more than one domain"
)

// Twice reports whether a violation is of something done twice; otherwise something was lost.
func (k Kind) Twice() bool {
	return slices.Contains([]Kind{BoundTwice, BoughtTwice, Misplaced, GangApart, GivenTwice, WithoutDevices}, k)
}

// History is what the API has shown so far. Its methods are for one goroutine at a time.
type History struct {
	config    Config
	pods      map[types.UID]*podLife
	nodes     map[types.UID]*nodeLife
	purchases map[string]*purchases // by group
	gangs     map[string]*gang      // by name
	forgiven  map[types.UID]bool    // nodes that somebody deletes on purpose
	// Every change of a pod, and of a node, up to these revisions has been observed.
	podsSeen, nodesSeen int64
	devices             devices
	calmSince           time.Time // zero while a misfortune is on
	binds               int
	recent              []time.Time // of the last binds, in order
	found               []Violation
	known               map[string]bool // violations that are found already, by kind and object
}

// New returns an empty history.
func New(c Config) *History {
	return &History{
		config: c, pods: map[types.UID]*podLife{}, nodes: map[types.UID]*nodeLife{}, purchases: map[string]*purchases{}, gangs: map[string]*gang{},
		forgiven: map[types.UID]bool{}, known: map[string]bool{}, devices: newDevices(),
	}
}

// podLife is one pod. Revisions are resource versions; 0 means not yet.
type podLife struct {
	pod       *v1.Pod // as last seen
	gone      bool
	goneBy    int64           // the revision by which it was gone
	scheduled map[string]bool // nodes that events "Scheduled" have named
	boundBy   int64           // the revision by which it was bound
	ended     bool            // terminating, finished or gone
	ranUntil  int64           // a revision until which it had certainly not ended; of those that have
	fitsSince time.Time       // since when a free node fits it, zero when none does
}

// nodeLife is one node.
type nodeLife struct {
	node     *v1.Node // as last seen
	gone     bool
	goneBy   int64 // the revision by which it was gone
	goneAt   time.Time
	judged   bool      // its deletion was
	tainted  time.Time // since when it has the taint of deletion, zero without
	cordoned time.Time
}

// Change is how the API has shown an object: a *v1.Pod, *v1.Node, *eventsv1.Event, *resourcev1.ResourceClaim or
// *resourcev1.ResourceSlice. It became
// so after the revision After and by the revision By; a watch without gaps has By = After + 1.
type Change struct {
	Object    metav1.Object
	Deleted   bool
	After, By int64
}

// Observe records a change, at the time when it was received.
func (h *History) Observe(now time.Time, c Change) {
	switch o := c.Object.(type) {
	case *v1.Pod:
		h.observePod(now, o, c)
		h.PodsSeen(c.After)
	case *v1.Node:
		h.observeNode(now, o, c)
		h.NodesSeen(c.After)
	case *eventsv1.Event:
		h.observeEvent(now, o)
	case *resourcev1.ResourceClaim:
		h.devices.observeClaim(o, c)
	case *resourcev1.ResourceSlice:
		h.devices.observeSlice(o, c.Deleted)
	}
}

// observePod records a pod. That it is bound to another node than before is a violation at once: the API
// never lets nodeName change, so the pod was bound by two.
func (h *History) observePod(now time.Time, p *v1.Pod, c Change) {
	l := h.pods[p.UID]
	if l == nil {
		l = &podLife{pod: p, scheduled: map[string]bool{}}
		h.pods[p.UID] = l
		h.podCreated(p)
	}
	if before := l.pod.Spec.NodeName; before != "" && p.Spec.NodeName != before {
		h.add(now, BoundTwice, string(p.UID), "pod %s was on node %s and is on %q", name(p), before, p.Spec.NodeName)
	}
	if p.Spec.NodeName != "" && l.boundBy == 0 {
		l.boundBy = c.By
		h.bound(now)
	}
	l.pod = p
	if c.Deleted && !l.gone {
		l.gone, l.goneBy = true, c.By
	}
	if !l.ended && (c.Deleted || p.DeletionTimestamp != nil || finished(p)) {
		l.ended, l.ranUntil = true, c.After
	}
}

// PodsSeen records that every change of a pod up to a revision has been observed.
func (h *History) PodsSeen(revision int64) { h.podsSeen = max(h.podsSeen, revision) }

// NodesSeen records that every change of a node up to a revision has been observed.
func (h *History) NodesSeen(revision int64) { h.nodesSeen = max(h.nodesSeen, revision) }

// observeNode records a node, with since when it has been tainted or cordoned.
func (h *History) observeNode(now time.Time, n *v1.Node, c Change) {
	l := h.nodes[n.UID]
	if l == nil {
		l = &nodeLife{}
		h.nodes[n.UID] = l
		h.nodeCreated(n, c.By)
	}
	l.node = n
	l.tainted = since(now, l.tainted, slices.ContainsFunc(n.Spec.Taints, func(t v1.Taint) bool { return t.Key == toBeDeleted }))
	l.cordoned = since(now, l.cordoned, n.Spec.Unschedulable)
	if c.Deleted && !l.gone {
		l.gone, l.goneBy, l.goneAt = true, c.By, now
	}
}

// observeEvent records to which node a scheduler reports to have bound a pod. Two events that name
// different nodes are two binds, even if only one of them was carried out.
func (h *History) observeEvent(now time.Time, e *eventsv1.Event) {
	if e.Reason != "Scheduled" || h.pods[e.Regarding.UID] == nil {
		return
	}
	_, node, ok := strings.Cut(e.Note, " to ")
	if !ok {
		return
	}
	l := h.pods[e.Regarding.UID]
	l.scheduled[node] = true
	if on := l.pod.Spec.NodeName; len(l.scheduled) > 1 || on != "" && on != node {
		h.add(now, BoundTwice, string(l.pod.UID), "pod %s is on node %q, and an event says that it was bound to %s", name(l.pod), on, node)
	}
}

// since returns since when something holds: before, or from now on, or zero when it doesn't.
func since(now, before time.Time, holds bool) time.Time {
	switch {
	case !holds:
		return time.Time{}
	case before.IsZero():
		return now
	}
	return before
}

// Forgive records that somebody other than Berth deletes a node: pods on it aren't evicted, and
// Berth may bind to it until it knows.
func (h *History) Forgive(node types.UID) { h.forgiven[node] = true }

// Calm records that no misfortune is on from now on.
func (h *History) Calm(now time.Time) { h.calmSince = now }

// Disturb records that a misfortune is on until Calm is called.
func (h *History) Disturb() { h.calmSince = time.Time{} }

// remembered is how many binds a History knows the times of.
const remembered = 10_000

// bound records that a pod was bound.
func (h *History) bound(now time.Time) {
	h.binds++
	if h.recent = append(h.recent, now); len(h.recent) > 2*remembered {
		h.recent = slices.Clone(h.recent[remembered:])
	}
}

// Silence returns the longest time without a bind since a time until now, and when the last
// bind was.
func (h *History) Silence(from, now time.Time) (longest time.Duration, last time.Time) {
	before := from
	for _, t := range h.recent {
		if t.After(from) {
			longest, before = max(longest, t.Sub(before)), t
		}
	}
	if len(h.recent) > 0 {
		last = h.recent[len(h.recent)-1]
	}
	return max(longest, now.Sub(before)), last
}

// Binds returns how many pods were seen bound.
func (h *History) Binds() int { return h.binds }

// Counts returns how many pods and nodes exist, and how many pods wait for a node.
func (h *History) Counts() (pods, waiting, nodes int) {
	for _, l := range h.pods {
		if !l.gone && !finished(l.pod) {
			pods++
			if l.pod.Spec.NodeName == "" {
				waiting++
			}
		}
	}
	for _, l := range h.nodes {
		if !l.gone {
			nodes++
		}
	}
	return pods, waiting, nodes
}

// Fitting returns how many pods wait that have fitted on some node for longer than a time.
func (h *History) Fitting(now time.Time, longer time.Duration) (n int) {
	for _, l := range h.pods {
		if !l.fitsSince.IsZero() && now.Sub(l.fitsSince) > longer {
			n++
		}
	}
	return n
}

// Violations returns what has been found, in the order of finding.
func (h *History) Violations() []Violation { return slices.Clone(h.found) }

// add records a violation, once for each kind and object.
func (h *History) add(now time.Time, kind Kind, object, format string, args ...any) {
	key := string(kind) + " " + object
	if h.known[key] {
		return
	}
	h.known[key] = true
	h.found = append(h.found, Violation{kind, fmt.Sprintf(format, args...), now})
}

// live returns the nodes and the unfinished pods that exist, by name.
func (h *History) live() (nodes []*v1.Node, pods []*v1.Pod) {
	for _, l := range h.nodes {
		if !l.gone {
			nodes = append(nodes, l.node)
		}
	}
	for _, l := range h.pods {
		if !l.gone && !finished(l.pod) {
			pods = append(pods, l.pod)
		}
	}
	slices.SortFunc(nodes, func(a, b *v1.Node) int { return cmp.Compare(a.Name, b.Name) })
	slices.SortFunc(pods, func(a, b *v1.Pod) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name), cmp.Compare(a.UID, b.UID))
	})
	return nodes, pods
}

// forget drops what is over and judged, so that a long storm costs no more than a short one.
func (h *History) forget(now time.Time) {
	for uid, l := range h.nodes {
		if l.gone && l.judged && now.Sub(l.goneAt) > time.Minute {
			delete(h.nodes, uid)
			delete(h.forgiven, uid)
		}
	}
	for uid, l := range h.pods {
		// A node that went before the pod may not have been seen to go, or not be judged.
		if l.gone && h.nodesSeen >= l.goneBy && !h.unjudged(l.pod.Spec.NodeName) {
			delete(h.pods, uid)
		}
	}
	h.devices.forget(h)
}

// unjudged reports whether a node of the name was deleted and isn't judged yet.
func (h *History) unjudged(name string) bool {
	for _, l := range h.nodes {
		if l.gone && !l.judged && l.node.Name == name {
			return true
		}
	}
	return false
}

func name(o metav1.Object) string {
	if o.GetNamespace() == "" {
		return o.GetName()
	}
	return o.GetNamespace() + "/" + o.GetName()
}

// finished reports whether a pod has ended by itself: it takes no room any more.
func finished(p *v1.Pod) bool {
	return p.Status.Phase == v1.PodSucceeded || p.Status.Phase == v1.PodFailed
}

// revision returns a resource version as a number: etcd's revision, which all kinds of
// objects share (KEP-5504 makes them comparable).
func revision(o interface{ GetResourceVersion() string }) int64 {
	n, err := strconv.ParseInt(o.GetResourceVersion(), 10, 64)
	if err != nil {
		return 0
	}
	return n
}
