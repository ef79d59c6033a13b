package cluster

// This file holds nominations. A pod is nominated to a name, whether or not there is such
// a node; when a node of that name comes or goes, the nomination is connected to it or cut
// off. It must hold that
//
//   - a pod has one nomination at most, and none while it is on a node;
//   - Node.Nominated has the pods nominated to the node's name, sorted by UID; nodes has the
//     nodes that have such pods, by index, and apart the nominations to names of no node,
//     sorted by name and UID;
//   - standIns has, by the headroom that a nominated pod stands in for ("" for other pods), the
//     nodes that have such pods, by index, and no empty list;
//   - claims and users count the volume claims of all nominated pods, deviceClaims their resource claims, and
//     inline their disks.
//
// There may be as many nominations as pods that wait for nodes, so a change of one takes
// O(log) of them, what is moved in a list of nodes, and a walk over the pods nominated to its node.

import (
	"cmp"
	"slices"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/dynamic-resource-allocation/resourceclaim"
)

// Nomination is a pod that is to come to a node and isn't there yet: the pod's victims
// are terminating, or another component has written status.nominatedNodeName. A nominated
// pod uses nothing of the node; it counts for filters against pods of lower or equal
// priority.
type Nomination struct {
	Pod  *Pod
	Name string    // of the node
	Node NodeIndex // NoNode while there is no such node
	// Place says that a place is kept for the pod there, with devices that it claims (KeepsDevices).
	Place bool
	// Begun numbers nominations in the order in which they began. What pods on one node take of its devices is
	// taken in this order, since devices aren't alike: each pod was found to fit after those before it. A pod that
	// is nominated to its node once more keeps its number.
	Begun uint64
}

// nominations holds all nominations.
type nominations struct {
	byPod map[types.UID]*Nomination
	nodes []NodeIndex
	apart []*Nomination
	// standIns are nodes, by headroom.
	standIns map[HeadroomID][]NodeIndex
	claims   map[ClaimKey]int // how many nominated pods name a claim; ephemeral claims don't count
	users    map[ClaimKey]int // the same, ephemeral claims included
	inline   map[string]int   // how often nominated pods have a disk in their spec, by Disk.Name
	// deviceClaims is how many nominated pods name a resource claim.
	deviceClaims map[ClaimKey]int
	// begun is the highest Nomination.Begun so far. A rollback leaves it: only the order of the numbers matters.
	begun uint64
}

func (b *nominations) init() {
	b.standIns = map[HeadroomID][]NodeIndex{}
	b.byPod, b.claims, b.users, b.inline = map[types.UID]*Nomination{}, map[ClaimKey]int{}, map[ClaimKey]int{}, map[string]int{}
	b.deviceClaims = map[ClaimKey]int{}
}

// claim counts the claims and disks of a nominated pod (sign is 1), or uncounts them (-1).
func (b *nominations) claim(p *Pod, sign int) {
	for i := range p.Disks {
		addTo(b.inline, p.Disks[i].Name, sign)
	}
	for _, c := range p.Claims {
		addTo(b.users, ClaimKey{p.Object.Namespace, c.Name}, sign)
		if !c.Ephemeral {
			addTo(b.claims, ClaimKey{p.Object.Namespace, c.Name}, sign)
		}
	}
	eachDeviceClaim(p, func(c ClaimKey) { addTo(b.deviceClaims, c, sign) })
}

// Nominate nominates a pod to a node, in place of the one that it was nominated to; "" for
// none. Place ends the nomination of the pod that it places.
func (s *State) Nominate(p *Pod, node string) { s.nominate(p, node, false, 0) }

// KeepPlace nominates a pod to a node as Nominate does, for a place that is kept for it: what it claims of the
// node's devices isn't for others, either.
func (s *State) KeepPlace(p *Pod, node string) { s.nominate(p, node, true, 0) }

// NominateInTurn nominates a pod to a node as Nominate does, in place of a nomination that ends: it has the number of
// that if it was to the same node. was may be nil.
func (s *State) NominateInTurn(p *Pod, node string, was *Nomination) {
	begun := uint64(0)
	if was != nil && was.Name == node {
		begun = was.Begun
	}
	s.nominate(p, node, false, begun)
}

// NextTurn returns a number for a nomination that may follow: it comes after those that have begun, and before
// those that will.
func (s *State) NextTurn() uint64 {
	s.nominated.begun++
	return s.nominated.begun
}

// Renominate nominates a pod as it was before, with the number that it had, or with the next when that is 0; nil
// for not at all.
func (s *State) Renominate(p *Pod, was *Nomination) {
	if was == nil {
		s.Nominate(p, "")
		return
	}
	s.nominate(p, was.Name, was.Place, was.Begun)
}

// nominate nominates a pod with a number; 0 for the one that it has on the node, or the next.
func (s *State) nominate(p *Pod, node string, place bool, begun uint64) {
	old := s.nominated.byPod[p.UID]
	if old == nil && node == "" || old != nil && old.Name == node && old.Pod == p && old.Place == place {
		return
	}
	if old != nil {
		s.unnominate(old)
	}
	switch {
	case node == "":
		return
	case begun != 0:
	case old != nil && old.Name == node:
		begun = old.Begun
	default:
		begun = s.nominated.begun + 1
	}
	s.record(Change{Op: NominationAdded, Node: s.indexOf(node), Pod: p, name: node, place: place, begun: begun})
}

func (s *State) unnominate(n *Nomination) {
	s.record(Change{Op: NominationRemoved, Node: n.Node, Pod: n.Pod, name: n.Name, place: n.Place, begun: n.Begun})
}

// NominationOf returns how a pod is nominated, nil when it isn't. It stays as it is when the pod is nominated
// otherwise.
func (s *State) NominationOf(uid types.UID) *Nomination { return s.nominated.byPod[uid] }

// KeepsDevices reports whether a nominated pod is to have the devices that it claims: it keeps room itself, or a
// place is kept for it, and each claim of it that has no devices yet is its own. One that others may name gets its
// devices with the first of them, wherever that is placed.
func (s *State) KeepsDevices(p *Pod) bool {
	if !s.ClaimsDevices(p) {
		return false
	}
	if n := s.nominated.byPod[p.UID]; !p.StandsIn() && (n == nil || !n.Place) {
		return false
	}
	for i := range p.Object.Spec.ResourceClaims {
		name, _, err := resourceclaim.Name(p.Object, &p.Object.Spec.ResourceClaims[i])
		if err != nil {
			return false
		}
		if name == nil {
			continue // it turned out to need none
		}
		if c := s.ClaimNamedBy(p, *name); c == nil || OthersMayUse(c, p) {
			return false
		}
	}
	return true
}

// OthersMayUse reports whether another pod may determine which devices a claim of p gets: the claim has none yet, and p
// doesn't control it, as it would if the claim was made from a template.
func OthersMayUse(c *resourcev1.ResourceClaim, p *Pod) bool {
	return c.Status.Allocation == nil && !metav1.IsControlledBy(c, p.Object)
}

// SortNominated sorts nominated pods by when their nominations began.
func (s *State) SortNominated(pods []*Pod) {
	slices.SortStableFunc(pods, func(a, b *Pod) int {
		return cmp.Compare(s.nominated.byPod[a.UID].Begun, s.nominated.byPod[b.UID].Begun)
	})
}

// NominatedTo returns the name of the node that a pod is to come to, "" for none.
func (s *State) NominatedTo(uid types.UID) string {
	if n := s.nominated.byPod[uid]; n != nil {
		return n.Name
	}
	return ""
}

// AnyNominated reports whether there is a nomination.
func (s *State) AnyNominated() bool { return len(s.nominated.byPod) > 0 }

// NominatedNodes returns the nodes that pods are nominated to, by index. The list is the
// state's own and valid until the next change.
func (s *State) NominatedNodes() []NodeIndex { return s.nominated.nodes }

// NominatedNodesBut returns the nodes that pods are nominated to which stand in for none of some
// headrooms, by index, and other nodes that pods are nominated to only where most are such. It costs
// O(headrooms) and what it returns: that may be in the memory of buf or the state's own, and is valid
// until the next call or change.
func (s *State) NominatedNodesBut(ids []HeadroomID, buf *[]NodeIndex) []NodeIndex {
	b := &s.nominated
	if !slices.ContainsFunc(ids, func(id HeadroomID) bool { return len(b.standIns[id]) > 0 }) {
		return b.nodes
	}
	n, last := 0, []NodeIndex(nil)
	for id, list := range b.standIns { // in any order: they are sorted
		if !slices.Contains(ids, id) {
			n, last = n+len(list), list
		}
	}
	switch {
	case n == len(last):
		return last // of one headroom, or of none
	case 4*n > len(b.nodes):
		return b.nodes // sorting takes longer than passing over some
	}
	out := (*buf)[:0]
	for id, list := range b.standIns {
		if !slices.Contains(ids, id) {
			out = append(out, list...)
		}
	}
	slices.Sort(out)
	*buf = slices.Compact(out)
	return *buf
}

// NominatedApart returns the nominations to names of no node, by name and UID. The list is
// the state's own and valid until the next change.
func (s *State) NominatedApart() []*Nomination { return s.nominated.apart }

// Nominations returns all nominations: those to nodes, by index and UID, and those apart. It
// costs O(nominations).
func (s *State) Nominations() []*Nomination {
	out := make([]*Nomination, 0, len(s.nominated.byPod))
	for _, i := range s.nominated.nodes {
		for _, p := range s.nodes[i].Nominated {
			out = append(out, s.nominated.byPod[p.UID])
		}
	}
	return append(out, s.nominated.apart...)
}

// indexOf returns the index of a node, NoNode when there is none of that name.
func (s *State) indexOf(node string) NodeIndex {
	if i, ok := s.byName[node]; ok {
		return i
	}
	return NoNode
}

// addNomination has the pod of a change nominated as the change says.
func (s *State) addNomination(c *Change) {
	p := c.Pod
	n := &Nomination{Pod: p, Name: c.name, Node: s.indexOf(c.name), Place: c.place, Begun: c.begun}
	s.nominated.byPod[p.UID] = n
	s.nominated.begun = max(s.nominated.begun, n.Begun)
	s.nominated.claim(p, 1)
	s.terms.podAdded(p) // rules read the pod's terms when a node is filtered with its nominated pods
	if n.Node == NoNode {
		s.nominated.setApart(n)
		return
	}
	s.nominated.connect(s.nodes[n.Node], p)
}

func (s *State) dropNomination(p *Pod) {
	n := s.nominated.byPod[p.UID]
	delete(s.nominated.byPod, p.UID)
	s.nominated.claim(p, -1)
	if n.Node == NoNode {
		at, _ := slices.BinarySearchFunc(s.nominated.apart, n, byNameAndUID)
		s.nominated.apart = slices.Delete(s.nominated.apart, at, at+1)
		return
	}
	node := s.nodes[n.Node]
	node.unnominate(p)
	if !node.awaits(p.StandIn) {
		s.nominated.forgetStandIn(p.StandIn, node.Index)
	}
	if len(node.Nominated) == 0 {
		s.nominated.forgetNode(node.Index)
	}
}

// connect has a node await a pod.
func (b *nominations) connect(node *Node, p *Pod) {
	if !node.awaits(p.StandIn) {
		list := b.standIns[p.StandIn]
		at, _ := slices.BinarySearch(list, node.Index)
		b.standIns[p.StandIn] = slices.Insert(list, at, node.Index)
	}
	if node.nominate(p); len(node.Nominated) == 1 {
		at, _ := slices.BinarySearch(b.nodes, node.Index)
		b.nodes = slices.Insert(b.nodes, at, node.Index)
	}
}

func (b *nominations) forgetNode(i NodeIndex) {
	at, _ := slices.BinarySearch(b.nodes, i)
	b.nodes = slices.Delete(b.nodes, at, at+1)
}

// forgetStandIn records that a node has no pod any more that stands in for a headroom.
func (b *nominations) forgetStandIn(id HeadroomID, i NodeIndex) {
	at, ok := slices.BinarySearch(b.standIns[id], i)
	if !ok {
		return // another of its pods has been cut off
	}
	if b.standIns[id] = slices.Delete(b.standIns[id], at, at+1); len(b.standIns[id]) == 0 {
		delete(b.standIns, id)
	}
}

func (b *nominations) setApart(n *Nomination) {
	at, _ := slices.BinarySearchFunc(b.apart, n, byNameAndUID)
	b.apart = slices.Insert(b.apart, at, n)
}

// nodeAdded connects the nominations to the node's name with the new node.
func (b *nominations) nodeAdded(node *Node) {
	b.apart = slices.DeleteFunc(b.apart, func(n *Nomination) bool {
		if n.Name != node.Name {
			return false
		}
		n.Node = node.Index
		b.connect(node, n.Pod)
		return true
	})
}

// nodeRemoved cuts the nominations to the node off from it; they stay nominations to its
// name.
func (b *nominations) nodeRemoved(node *Node) {
	for _, p := range node.Nominated {
		n := b.byPod[p.UID]
		n.Node = NoNode
		b.setApart(n)
		b.forgetStandIn(p.StandIn, node.Index)
	}
	if len(node.Nominated) > 0 {
		b.forgetNode(node.Index)
	}
}

func byNameAndUID(a, b *Nomination) int {
	return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(string(a.Pod.UID), string(b.Pod.UID)))
}

func byUID(p *Pod, uid types.UID) int { return strings.Compare(string(p.UID), string(uid)) }

// awaits reports whether a pod is nominated to the node that stands in for a headroom; for "",
// whether one is that stands in for none.
func (n *Node) awaits(id HeadroomID) bool {
	return slices.ContainsFunc(n.Nominated, func(p *Pod) bool { return p.StandIn == id })
}

func (n *Node) nominate(p *Pod) {
	at, _ := slices.BinarySearchFunc(n.Nominated, p.UID, byUID)
	n.Nominated = slices.Insert(n.Nominated, at, p)
}

func (n *Node) unnominate(p *Pod) {
	if at, ok := slices.BinarySearchFunc(n.Nominated, p.UID, byUID); ok {
		n.Nominated = slices.Delete(n.Nominated, at, at+1)
	}
}
