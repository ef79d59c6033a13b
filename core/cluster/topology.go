package cluster

import (
	"maps"
	"slices"
	"strings"
)

// Domain is a group of nodes with the same value of a topology key, as a dense
// index within that key.
type Domain int32

// NoDomain is the domain of nodes without the topology key.
const NoDomain Domain = -1

// PerNode is the pseudo topology key under which each node is its own domain,
// whatever its labels say: Domain and NodeIndex are then the same number.
const PerNode = ""

// OrEmpty returns a pseudo topology key under which nodes without the label are
// in one domain with those whose label is empty.
func OrEmpty(key string) string { return key + orEmpty }

const orEmpty = "\x00" // no label has it

// Topology knows the domain of every node under one key. Invariants:
//
//   - members[d] lists the nodes i with of[i] == d, each once; where it is one, only[d] is that
//     one, and NoNode elsewhere: decisions look through hundreds of hosts, and their lists are
//     all over the memory;
//   - a domain without nodes is in free and has no value in ids: each value that a label has
//     had would stay for ever otherwise, and hostnames are new with every node. Nothing counts
//     in such a domain, and no node is in a group for it;
//   - what is freed last is used first, so undoing changes in reverse order gives each domain
//     that has nodes again its number from before.
type Topology struct {
	Key         string
	perNode     bool              // Key is PerNode: a node's domain is its index, and nothing below is used
	label       string            // of the nodes
	orEmpty     bool              // nodes without the label are with those whose label is empty
	ids         map[string]Domain // by the label's value
	domainOf    []Domain          // by node index
	members     [][]NodeIndex     // by domain
	only        []NodeIndex       // by domain
	free        []Domain          // the last is used next
	users       int               // facts and calls of HoldTopology without their ReleaseTopology
	shared      int               // domains with more than one node
	timesShared uint64            // times that a domain got its second node
}

// Unshared reports whether no domain has more than one node.
func (t *Topology) Unshared() bool { return t.shared == 0 }

// TimesShared returns how many times a domain has got its second node. While that
// stays the same and Unshared holds, a domain and its node are one.
func (t *Topology) TimesShared() uint64 { return t.timesShared }

// Of returns the node's domain.
func (t *Topology) Of(i NodeIndex) Domain {
	if t.perNode {
		return Domain(i)
	}
	return t.domainOf[i]
}

// Named returns the domain of the nodes whose label has a value; NoDomain when there are none.
func (t *Topology) Named(value string) Domain {
	if d, ok := t.ids[value]; ok {
		return d
	}
	return NoDomain
}

// Domains returns the values of the label, sorted, with the nodes that have each. The lists of nodes
// are the topology's own, in no particular order: they are valid until a node changes.
func (t *Topology) Domains() (values []string, nodes [][]NodeIndex) {
	values = slices.Sorted(maps.Keys(t.ids))
	for _, value := range values {
		nodes = append(nodes, t.members[t.ids[value]])
	}
	return values, nodes
}

// SameDomain reports whether two nodes, which may be in no state, are in one domain, or both
// in none.
func (t *Topology) SameDomain(a, b *NodeInfo) bool {
	if t.perNode {
		return a.Name == b.Name
	}
	one, has := a.Object.Labels[t.label]
	other, too := b.Object.Labels[t.label]
	return one == other && (has == too || t.orEmpty)
}

// Members calls f for each node of a domain, in no particular order.
func (t *Topology) Members(d Domain, f func(NodeIndex)) {
	only := NodeIndex(d)
	if !t.perNode {
		only = t.only[d]
	}
	if only != NoNode {
		f(only)
		return
	}
	for _, i := range t.members[d] {
		f(i)
	}
}

func (t *Topology) nodeAdded(n *Node) {
	if t.perNode {
		return
	}
	for len(t.domainOf) <= int(n.Index) {
		t.domainOf = append(t.domainOf, NoDomain)
	}
	value, ok := n.Object.Labels[t.label]
	if !ok && !t.orEmpty {
		t.domainOf[n.Index] = NoDomain
		return
	}
	d, ok := t.ids[value]
	if !ok {
		d = t.newDomain()
		t.ids[value] = d
	}
	t.domainOf[n.Index] = d
	t.members[d] = append(t.members[d], n.Index)
	switch len(t.members[d]) {
	case 1:
		t.only[d] = n.Index
	case 2:
		t.only[d] = NoNode
		t.shared++
		t.timesShared++
	}
}

func (t *Topology) nodeRemoved(n *Node) {
	if t.perNode {
		return
	}
	d := t.domainOf[n.Index]
	t.domainOf[n.Index] = NoDomain
	if d == NoDomain {
		return
	}
	list := t.members[d]
	at := slices.Index(list, n.Index)
	list[at] = list[len(list)-1]
	t.members[d] = list[:len(list)-1]
	switch len(list) {
	case 2:
		t.only[d] = list[0]
		t.shared--
	case 1:
		t.only[d] = NoNode
		delete(t.ids, n.Object.Labels[t.label])
		t.free = append(t.free, d)
	}
}

// newDomain returns a number that no domain has.
func (t *Topology) newDomain() Domain {
	if last := len(t.free) - 1; last >= 0 {
		d := t.free[last]
		t.free = t.free[:last]
		return d
	}
	t.members, t.only = append(t.members, nil), append(t.only, NoNode)
	return Domain(len(t.members) - 1)
}

// topologies holds the topology keys in use, and those that haven't been forgotten yet
// (State.Forget).
type topologies struct {
	byKey map[string]*Topology
	list  []*Topology
}

func (b *topologies) init() { b.byKey = map[string]*Topology{} }

func (b *topologies) nodeAdded(n *Node) {
	for _, t := range b.list {
		t.nodeAdded(n)
	}
}

func (b *topologies) nodeRemoved(n *Node) {
	for _, t := range b.list {
		t.nodeRemoved(n)
	}
}

// forget forgets the topologies that nobody holds.
func (b *topologies) forget() {
	b.list = slices.DeleteFunc(b.list, func(t *Topology) bool {
		if t.users > 0 {
			return false
		}
		delete(b.byKey, t.Key)
		return true
	})
}

// HoldTopology returns the topology of a label key, or of PerNode, which stays until
// ReleaseTopology is called as often.
func (s *State) HoldTopology(key string) *Topology {
	t := s.Topology(key)
	t.users++
	return t
}

// ReleaseTopology gives a topology back that HoldTopology returned.
func (s *State) ReleaseTopology(t *Topology) { t.users-- }

// Topology returns the topology of a label key, or of PerNode. It is current until Forget is
// called; who keeps it for longer calls HoldTopology.
func (s *State) Topology(key string) *Topology {
	if t, ok := s.topo.byKey[key]; ok {
		return t
	}
	t := &Topology{Key: key, perNode: key == PerNode, ids: map[string]Domain{}}
	t.label, t.orEmpty = strings.CutSuffix(key, orEmpty)
	s.topo.byKey[key] = t
	s.topo.list = append(s.topo.list, t)
	s.Nodes(t.nodeAdded)
	return t
}
