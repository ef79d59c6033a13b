package cluster

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

// Nomination is a pod that is to come to a node and isn't there yet: its victims
// are on their way out, or somebody else has said so. It takes nothing, but
// pods of lower or equal priority have to leave it its place.
type Nomination struct {
	Pod  *Pod
	Name string    // of the node
	Node NodeIndex // NoNode while there is no such node
}

// nominations are kept in the order in which they were made.
type nominations struct {
	list   []*Nomination
	byPod  map[types.UID]*Nomination
	claims map[ClaimKey]int // that these pods name
	users  map[ClaimKey]int // the same, with those that were made for them
}

func (b *nominations) init() {
	b.byPod, b.claims, b.users = map[types.UID]*Nomination{}, map[ClaimKey]int{}, map[ClaimKey]int{}
}

func (b *nominations) claim(p *Pod, sign int) {
	for _, c := range p.Claims {
		addTo(b.users, ClaimKey{p.Object.Namespace, c.Name}, sign)
		if !c.Ephemeral {
			addTo(b.claims, ClaimKey{p.Object.Namespace, c.Name}, sign)
		}
	}
}

// Nominate says to which node a pod is to come, "" for none. A pod that is
// placed is nominated no more.
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

// Nominations returns all of them, the oldest first. The list is valid until the
// next change.
func (s *State) Nominations() []*Nomination { return s.nominated.list }

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
	s.terms.podAdded(p) // rules have to know them when it is tried out
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

// nodeAdded gives a node the pods that are nominated to its name.
func (b *nominations) nodeAdded(node *Node) {
	for _, n := range b.list {
		if n.Name == node.Name {
			n.Node = node.Index
			node.nominate(n.Pod)
		}
	}
}

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
