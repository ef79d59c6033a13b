package reservation

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/lifecycle"
	"github.com/berthproject/berth/core/step"
)

// Nominations is what reservations need of the nominations of pods.
type Nominations interface {
	// Reserve says that a place is kept for a pod: on a node, or on one that isn't
	// registered yet, for which node is "".
	Reserve(t *lifecycle.Turn, uid types.UID, node string)
	// Release records that no place is kept for a pod any more, and retries the pod if it waits.
	Release(t *lifecycle.Turn, uid types.UID)
	// HandOver releases a pod and reserves its place for another, in the turn of the first. node is that of the
	// place, as Reserve has it.
	HandOver(t *lifecycle.Turn, from, to types.UID, node string)
}

// Place is the room of an ordered node for the pods that it was ordered for.
type Place struct {
	Group string
	Node  string // "" while the node isn't registered
	Since time.Time
	Pods  []types.UID // that need it still
	used  bool        // the API has shown one of them on the node
}

// Machine keeps all places. Only the core's goroutine may call it.
type Machine struct {
	nominations Nominations
	places      []*Place // oldest first; each has a pod
	placeByPod  map[types.UID]*Place
	placeByNode map[string]*Place
	asks        map[types.UID]time.Time // pods that ask for a place, and until when they do
	limits      map[types.UID]time.Time // until when pods wait for their place, of those that could preempt
	timedOut    []types.UID             // by the last Advance
	spare       map[string]int          // by group: ordered nodes whose pods all need them no more
}

var _ lifecycle.Machine = (*Machine)(nil)

// New returns a machine that keeps no place.
func New(n Nominations) *Machine {
	return &Machine{nominations: n, placeByPod: map[types.UID]*Place{}, asks: map[types.UID]time.Time{}, limits: map[types.UID]time.Time{}, placeByNode: map[string]*Place{}, spare: map[string]int{}}
}

// NodesOrdered takes the nodes of an order, each by the pods that it is for, and how many are for no
// pod. Places that the pods had before are for others now.
func (m *Machine) NodesOrdered(t *lifecycle.Turn, group string, bins [][]types.UID, spare int) {
	if spare > 0 {
		m.spare[group] += spare
	}
	for _, bin := range bins {
		p := &Place{Group: group, Since: t.Now, Pods: slices.Clone(bin)}
		for _, uid := range p.Pods {
			m.move(t, uid, p)
		}
		m.places = append(m.places, p)
	}
}

// move has a pod whose place, or whose asking for one, ends have another.
func (m *Machine) move(t *lifecycle.Turn, uid types.UID, to *Place) {
	delete(m.asks, uid)
	m.leave(t, uid)
	m.placeByPod[uid] = to
	m.nominations.Reserve(t, uid, to.Node)
}

// HandOver gives the place of a pod, if it has one, to another that has none, and asks for
// none any more.
func (m *Machine) HandOver(t *lifecycle.Turn, from, to types.UID) {
	p := m.placeByPod[from]
	if p == nil || m.placeByPod[to] != nil {
		return
	}
	p.Pods[slices.Index(p.Pods, from)] = to
	delete(m.placeByPod, from)
	delete(m.limits, from)
	delete(m.asks, to)
	m.placeByPod[to] = p
	m.nominations.HandOver(t, from, to, p.Node)
}

// OrderRefused records that the provider has refused the latest order of so many nodes.
func (m *Machine) OrderRefused(t *lifecycle.Turn, group string, nodes int) {
	m.releaseBeyond(t, group, max(len(m.ordered(group))-nodes, 0))
}

// NodeSet takes a node that the state hasn't had, or has had without its group: the oldest
// place of its group that has none is on it.
func (m *Machine) NodeSet(t *lifecycle.Turn, n *cluster.NodeInfo) {
	if n.Group == "" || m.placeByNode[n.Name] != nil {
		return
	}
	i := slices.IndexFunc(m.places, func(p *Place) bool { return p.Group == n.Group && p.Node == "" })
	if i < 0 {
		m.useSpare(n.Group)
		return
	}
	p := m.places[i]
	p.Node = n.Name
	m.placeByNode[n.Name] = p
	for _, uid := range p.Pods {
		m.nominations.Reserve(t, uid, n.Name)
	}
	t.Decide(step.Decision{Kind: step.Reserved, Node: n.Name, Group: n.Group, Reason: fmt.Sprintf("for the %d pod(s) that it was ordered for", len(p.Pods))})
}

// useSpare records that a node came for which no place is kept, or that one comes no more.
func (m *Machine) useSpare(group string) {
	if m.spare[group]--; m.spare[group] <= 0 {
		delete(m.spare, group)
	}
}

// NodeGone records that a node is gone.
func (m *Machine) NodeGone(t *lifecycle.Turn, name string) {
	if p := m.placeByNode[name]; p != nil {
		m.release(t, p)
	}
}

// ReleasePod takes a pod out of its place, if it has one, and ends its asking for one.
func (m *Machine) ReleasePod(t *lifecycle.Turn, uid types.UID) {
	if m.WaitsFor(uid) {
		delete(m.asks, uid)
		delete(m.limits, uid)
		m.leave(t, uid)
		m.nominations.Release(t, uid)
	}
}

// leave takes a pod out of its place, if it has one. When it was the last, and none of them
// has come to the node, the ledger says so: the node was bought for nothing, as it turned
// out, though others may use it.
func (m *Machine) leave(t *lifecycle.Turn, uid types.UID) {
	p := m.placeByPod[uid]
	if p == nil {
		return
	}
	delete(m.placeByPod, uid)
	p.Pods = slices.DeleteFunc(p.Pods, func(x types.UID) bool { return x == uid })
	if len(p.Pods) > 0 {
		return
	}
	if p.Node == "" {
		m.spare[p.Group]++
	}
	if !p.used {
		t.Decide(step.Decision{Kind: step.PlaceFreed, Node: p.Node, Group: p.Group, Nodes: 1, Reason: "none of the pods that it was ordered for needs it any longer"})
	}
	m.drop(p)
}

// PodBound records that the API shows a pod on a node: it needs no place any more, and asks for
// none.
func (m *Machine) PodBound(t *lifecycle.Turn, uid types.UID, node string) {
	if p := m.placeByPod[uid]; p != nil {
		p.used = p.used || p.Node == node
	}
	m.ReleasePod(t, uid)
}

// ReleasePodElsewhere is ReleasePod of a pod that was placed on a node, unless its place is there:
// that is kept until the API shows the pod there, since the bind may fail.
func (m *Machine) ReleasePodElsewhere(t *lifecycle.Turn, uid types.UID, node string) {
	if p := m.placeByPod[uid]; p == nil || p.Node != node {
		m.ReleasePod(t, uid)
	}
}

// release ends a place whose node doesn't come.
func (m *Machine) release(t *lifecycle.Turn, p *Place) {
	for _, uid := range p.Pods {
		delete(m.placeByPod, uid)
		delete(m.limits, uid)
		m.nominations.Release(t, uid)
	}
	p.Pods = nil
	m.drop(p)
}

// drop forgets a place.
func (m *Machine) drop(p *Place) {
	delete(m.placeByNode, p.Node)
	m.places = slices.DeleteFunc(m.places, func(x *Place) bool { return x == p })
}

// ordered returns the places of a group that are on no node yet, oldest first.
func (m *Machine) ordered(group string) (out []*Place) {
	for _, p := range m.places {
		if p.Group == group && p.Node == "" {
			out = append(out, p)
		}
	}
	return out
}

// releaseBeyond releases the newest places of a group that are on no node yet, but for n.
func (m *Machine) releaseBeyond(t *lifecycle.Turn, group string, n int) {
	list := m.ordered(group)
	for _, p := range list[min(n, len(list)):] {
		m.release(t, p)
	}
}

// ReleaseLost releases places whose node can't come any more. It is given, by group, how many
// nodes are coming that aren't registered; of a registered node mayCome reports whether it is
// usable or may yet become so.
func (m *Machine) ReleaseLost(t *lifecycle.Turn, unregistered func(group string) int, mayCome func(node string) bool) {
	for _, p := range slices.Clone(m.places) {
		if p.Node != "" && !mayCome(p.Node) {
			m.release(t, p)
		}
	}
	for _, group := range m.groups() {
		n := unregistered(group)
		m.releaseBeyond(t, group, n)
		for m.spare[group] > n-len(m.ordered(group)) {
			m.useSpare(group)
		}
	}
}

// groups returns the groups of which nodes are awaited, sorted.
func (m *Machine) groups() []string {
	set := map[string]bool{}
	for _, p := range m.places {
		if p.Node == "" {
			set[p.Group] = true
		}
	}
	for g := range m.spare {
		set[g] = true
	}
	return slices.Sorted(maps.Keys(set))
}

// Waits reports whether a place is kept, or a node is spare.
func (m *Machine) Waits() bool { return len(m.places) > 0 || len(m.spare) > 0 }

// Places returns the places for a plan, oldest first.
func (m *Machine) Places() []autoscaler.Place {
	var out []autoscaler.Place
	for _, p := range m.places {
		out = append(out, autoscaler.Place{Group: p.Group, Node: p.Node, Pods: slices.Clone(p.Pods)})
	}
	return out
}

// Of returns the place that is kept for a pod; ok is false when none is.
func (m *Machine) Of(uid types.UID) (place Place, ok bool) {
	if p := m.placeByPod[uid]; p != nil {
		return *p, true
	}
	return Place{}, false
}

// Spare returns how many nodes of a group were ordered for pods that need them no more,
// and aren't registered.
func (m *Machine) Spare(group string) int { return m.spare[group] }

// AnySpare reports whether there are such nodes of any group.
func (m *Machine) AnySpare() bool { return len(m.spare) > 0 }

// OrderCancelled records that spare nodes of a group come no more.
func (m *Machine) OrderCancelled(group string, nodes int) {
	for range nodes {
		m.useSpare(group)
	}
}

// NextWake returns when a pod has asked or waited for long enough; zero for never.
func (m *Machine) NextWake() (next time.Time) {
	for _, of := range []map[types.UID]time.Time{m.asks, m.limits} {
		for _, until := range of {
			next = lifecycle.Earliest(next, until)
		}
	}
	return next
}

// Unsettled names the places that are kept, the pods that ask for one, and the nodes that
// nobody needs.
func (m *Machine) Unsettled() (out []string) {
	for _, uid := range m.Asking() {
		out = append(out, fmt.Sprintf("pod %s asks for a place until %s", uid, m.asks[uid].UTC().Format(time.TimeOnly)))
	}
	for _, p := range m.places {
		out = append(out, fmt.Sprintf("a place of group %s, node %q, is kept for pods %v", p.Group, p.Node, p.Pods))
	}
	for _, g := range slices.Sorted(maps.Keys(m.spare)) {
		out = append(out, fmt.Sprintf("%d nodes of group %s were ordered for pods that need them no more", m.spare[g], g))
	}
	return out
}

// Invariants checks that places, pods and nodes refer to each other.
func (m *Machine) Invariants() (out []string) {
	pods, nodes := 0, 0
	for _, p := range m.places {
		if len(p.Pods) == 0 {
			out = append(out, fmt.Sprintf("a place of group %s is kept for no pod", p.Group))
		}
		for _, uid := range p.Pods {
			if pods++; m.placeByPod[uid] != p {
				out = append(out, fmt.Sprintf("pod %s has a place of group %s and is said to have another", uid, p.Group))
			}
			if _, asks := m.asks[uid]; asks {
				out = append(out, fmt.Sprintf("pod %s has a place of group %s and asks for one", uid, p.Group))
			}
		}
		if p.Node == "" {
			continue
		}
		if nodes++; m.placeByNode[p.Node] != p {
			out = append(out, fmt.Sprintf("a place is on node %s and the node is said to have another", p.Node))
		}
	}
	for _, uid := range slices.Sorted(maps.Keys(m.limits)) {
		if m.placeByPod[uid] == nil {
			out = append(out, fmt.Sprintf("pod %s waits for a limited time, and has no place", uid))
		}
	}
	if pods != len(m.placeByPod) || nodes != len(m.placeByNode) {
		out = append(out, fmt.Sprintf("places are kept for %d pods and on %d nodes; known are %d and %d", pods, nodes, len(m.placeByPod), len(m.placeByNode)))
	}
	for _, g := range slices.Sorted(maps.Keys(m.spare)) {
		if m.spare[g] <= 0 {
			out = append(out, fmt.Sprintf("%d nodes of group %s are said to be spare", m.spare[g], g))
		}
	}
	return out
}
