package cluster

// This file holds nominations. A pod is nominated to a name, whether or not there is such
// a node; when a node of that name comes or goes, the nomination is connected to it or cut
// off. It must hold that
//
//   - a pod has one nomination at most, and none while it is on a node;
//   - Node.Nominated has the pods nominated to the node's name, sorted by UID;
//   - claims and users count the claims of all nominated pods.

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

// Nomination is a pod that is to come to a node and isn't there yet: the pod's victims
// are terminating, or another component has written status.nominatedNodeName. A nominated
// pod uses nothing of the node; it counts for filters against pods of lower or equal
// priority.
type Nomination struct {
	Pod  *Pod
	Name string    // of the node
	Node NodeIndex // NoNode while there is no such node
}

// nominations holds all nominations, in the order in which they were made.
type nominations struct {
	list   []*Nomination
	byPod  map[types.UID]*Nomination
	claims map[ClaimKey]int // how many nominated pods name a claim; ephemeral claims don't count
	users  map[ClaimKey]int // the same, ephemeral claims included
}

func (b *nominations) init() {
	b.byPod, b.claims, b.users = map[types.UID]*Nomination{}, map[ClaimKey]int{}, map[ClaimKey]int{}
}

// claim counts the claims of a nominated pod (sign is 1), or uncounts them (-1).
func (b *nominations) claim(p *Pod, sign int) {
	for _, c := range p.Claims {
		addTo(b.users, ClaimKey{p.Object.Namespace, c.Name}, sign)
		if !c.Ephemeral {
			addTo(b.claims, ClaimKey{p.Object.Namespace, c.Name}, sign)
		}
	}
}

// Nominate nominates a pod to a node, in place of the one that it was nominated to; "" for
// none. Place ends the nomination of the pod that it places.
func (s *State) Nominate(p *Pod, node string) {
	old := s.nominated.byPod[p.UID]
	if old == nil && node == "" || old != nil && old.Name == node && old.Pod == p {
		return
	}
	if old != nil {
		s.unnominate(old)
	}
	if node == "" {
		return
	}
	s.record(Change{Op: NominationAdded, Node: s.indexOf(node), Pod: p, name: node, pos: int32(len(s.nominated.list))})
}

func (s *State) unnominate(n *Nomination) {
	s.record(Change{Op: NominationRemoved, Node: n.Node, Pod: n.Pod, name: n.Name, pos: int32(slices.Index(s.nominated.list, n))})
}

// NominatedTo returns the name of the node that a pod is to come to, "" for none.
func (s *State) NominatedTo(uid types.UID) string {
	if n := s.nominated.byPod[uid]; n != nil {
		return n.Name
	}
	return ""
}

// Nominations returns all nominations, the oldest first. The list is the state's own and
// valid until the next change.
func (s *State) Nominations() []*Nomination { return s.nominated.list }

// indexOf returns the index of a node, NoNode when there is none of that name.
func (s *State) indexOf(node string) NodeIndex {
	if i, ok := s.byName[node]; ok {
		return i
	}
	return NoNode
}

func (s *State) addNomination(p *Pod, node string, pos int) {
	n := &Nomination{Pod: p, Name: node, Node: s.indexOf(node)}
	s.nominated.list = slices.Insert(s.nominated.list, pos, n)
	s.nominated.byPod[p.UID] = n
	s.nominated.claim(p, 1)
	s.terms.podAdded(p) // rules read the pod's terms when a node is filtered with its nominated pods
	if n.Node != NoNode {
		s.nodes[n.Node].nominate(p)
	}
}

func (s *State) dropNomination(pos int) {
	n := s.nominated.list[pos]
	s.nominated.list = slices.Delete(s.nominated.list, pos, pos+1)
	delete(s.nominated.byPod, n.Pod.UID)
	s.nominated.claim(n.Pod, -1)
	if n.Node != NoNode {
		s.nodes[n.Node].unnominate(n.Pod)
	}
}

// nodeAdded connects the nominations to the node's name with the new node.
func (b *nominations) nodeAdded(node *Node) {
	for _, n := range b.list {
		if n.Name == node.Name {
			n.Node = node.Index
			node.nominate(n.Pod)
		}
	}
}

// nodeRemoved cuts the nominations to the node off from it; they stay nominations to its
// name.
func (b *nominations) nodeRemoved(node *Node) {
	for _, n := range b.list {
		if n.Node == node.Index {
			n.Node = NoNode
		}
	}
}

func byUID(p *Pod, uid types.UID) int { return strings.Compare(string(p.UID), string(uid)) }

func (n *Node) nominate(p *Pod) {
	at, _ := slices.BinarySearchFunc(n.Nominated, p.UID, byUID)
	n.Nominated = slices.Insert(n.Nominated, at, p)
}

func (n *Node) unnominate(p *Pod) {
	if at, ok := slices.BinarySearchFunc(n.Nominated, p.UID, byUID); ok {
		n.Nominated = slices.Delete(n.Nominated, at, at+1)
	}
}
