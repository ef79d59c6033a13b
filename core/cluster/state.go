package cluster

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"
)

// State is a model of the cluster. The zero value is not usable; see New.
// It has one writer and no lock.
type State struct {
	Schema  *Schema
	nodes   []*Node // by index; nil where free
	free    []NodeIndex
	byName  map[string]NodeIndex
	live    int
	pods    map[types.UID]NodeIndex // NoNode for orphans
	orphans map[string][]*Pod       // by node name
	// priorities counts the pods on nodes by their priority.
	priorities map[int32]int
	groups     map[string]*NodeGroup
	facts      factBook
	topo       topologies
	work       workloads
	terms      termBook
	objects    objects
	nominated  nominations
	images     images
	rows       rows
	journal    journal
	caches     []Cache
}

// New returns an empty state that parses with schema.
func New(schema *Schema) *State {
	s := &State{
		Schema:     schema,
		byName:     map[string]NodeIndex{},
		pods:       map[types.UID]NodeIndex{},
		orphans:    map[string][]*Pod{},
		priorities: map[int32]int{},
		groups:     map[string]*NodeGroup{},
	}
	s.facts.init()
	s.topo.init()
	s.work.init()
	s.terms.init()
	s.objects.init()
	s.nominated.init()
	return s
}

// Len returns one more than the largest node index ever used; slots may be free.
func (s *State) Len() int { return len(s.nodes) }

// Live returns the number of nodes.
func (s *State) Live() int { return s.live }

// Node returns the node at an index, or nil where there is none.
func (s *State) Node(i NodeIndex) *Node {
	if i < 0 || int(i) >= len(s.nodes) {
		return nil
	}
	return s.nodes[i]
}

// NodeByName returns a node, or nil.
func (s *State) NodeByName(name string) *Node {
	if i, ok := s.byName[name]; ok {
		return s.nodes[i]
	}
	return nil
}

// Nodes calls f for every node, by index.
func (s *State) Nodes(f func(*Node)) {
	for _, n := range s.nodes {
		if n != nil {
			f(n)
		}
	}
}

// Pods calls f for every pod that has a node, those of nodes that aren't known last
// and in no particular order.
func (s *State) Pods(f func(*Pod)) {
	s.Nodes(func(n *Node) {
		for _, p := range n.Pods {
			f(p)
		}
	})
	for _, list := range s.orphans {
		for _, p := range list {
			f(p)
		}
	}
}

// Placed returns where a pod is: ok is false when the state doesn't hold it,
// and the index is NoNode when its node isn't known.
func (s *State) Placed(uid types.UID) (i NodeIndex, ok bool) {
	i, ok = s.pods[uid]
	return i, ok
}

// NodeOf returns the node that a pod is on, nil when it is on none that is known.
func (s *State) NodeOf(uid types.UID) *Node {
	if i, ok := s.pods[uid]; ok {
		return s.Node(i)
	}
	return nil
}

// PodOn returns the parsed pod that the state holds under this UID, or nil.
func (s *State) PodOn(uid types.UID) *Pod {
	i, ok := s.pods[uid]
	if !ok {
		return nil
	}
	if i != NoNode {
		return s.nodes[i].Pods[s.position(i, uid)]
	}
	for _, list := range s.orphans {
		for _, p := range list {
			if p.UID == uid {
				return p
			}
		}
	}
	return nil
}

// SetNode adds a node or replaces what is known of it. Pods that were bound to
// its name before it was known come to it. An update that says nothing a rule
// could read, as a heartbeat does, leaves no trace.
func (s *State) SetNode(info *NodeInfo) NodeIndex {
	if i, ok := s.byName[info.Name]; ok {
		if sameNode(s.nodes[i].NodeInfo, info) {
			return i
		}
		s.record(Change{Op: NodeUpdated, Node: i, Info: info, Old: s.nodes[i].NodeInfo})
		return i
	}
	i := NodeIndex(len(s.nodes))
	if n := len(s.free); n > 0 {
		i = s.free[n-1]
	}
	s.record(Change{Op: NodeAdded, Node: i, Info: info})
	for len(s.orphans[info.Name]) > 0 {
		p := s.orphans[info.Name][0]
		s.record(Change{Op: OrphanRemoved, Node: NoNode, Pod: p, name: info.Name})
		s.record(Change{Op: PodAdded, Node: i, Pod: p})
	}
	return i
}

// RemoveNode removes a node; pods still bound to it wait as orphans for the
// node to come back or for their own deletion.
func (s *State) RemoveNode(name string) bool {
	i, ok := s.byName[name]
	if !ok {
		return false
	}
	n := s.nodes[i]
	for len(n.Pods) > 0 {
		last := len(n.Pods) - 1
		p := n.Pods[last]
		s.record(Change{Op: PodRemoved, Node: i, Pod: p, pos: int32(last)})
		s.record(Change{Op: OrphanAdded, Node: NoNode, Pod: p, name: name})
	}
	s.record(Change{Op: NodeRemoved, Node: i, Old: n.NodeInfo})
	return true
}

// Place puts a pod on a node, in every respect as if it ran there. A pod that
// the state holds already moves.
func (s *State) Place(p *Pod, node string) {
	s.Remove(p.UID)
	s.Nominate(p, "")
	if i, ok := s.byName[node]; ok {
		s.record(Change{Op: PodAdded, Node: i, Pod: p})
		return
	}
	s.record(Change{Op: OrphanAdded, Node: NoNode, Pod: p, name: node})
}

// PlaceAt is Place for a node index in hand.
func (s *State) PlaceAt(p *Pod, i NodeIndex) {
	s.Remove(p.UID)
	s.Nominate(p, "")
	s.record(Change{Op: PodAdded, Node: i, Pod: p})
}

// Remove takes a pod off its node, and tells whether the state held it.
func (s *State) Remove(uid types.UID) bool {
	i, ok := s.pods[uid]
	if !ok {
		return false
	}
	if i != NoNode {
		pos := s.position(i, uid)
		s.record(Change{Op: PodRemoved, Node: i, Pod: s.nodes[i].Pods[pos], pos: int32(pos)})
		return true
	}
	for name, list := range s.orphans { // at most one list holds it
		if pos := slices.IndexFunc(list, func(p *Pod) bool { return p.UID == uid }); pos >= 0 {
			s.record(Change{Op: OrphanRemoved, Node: NoNode, Pod: list[pos], name: name, pos: int32(pos)})
			return true
		}
	}
	return false
}

func (s *State) position(i NodeIndex, uid types.UID) int {
	return slices.IndexFunc(s.nodes[i].Pods, func(p *Pod) bool { return p.UID == uid })
}

// apply is the one place where a change becomes true.
func (s *State) apply(c *Change) {
	switch c.Op {
	case NodeAdded:
		c.pos = 0
		if n := len(s.free); n > 0 {
			s.free = s.free[:n-1]
			c.pos = fromFree
		} else {
			s.nodes = append(s.nodes, nil)
		}
		s.putNode(c.Node, c.Info)
	case NodeUpdated:
		s.swapInfo(c.Node, c.Info)
	case NodeRemoved:
		s.dropNode(c.Node)
		s.free = append(s.free, c.Node)
	case PodAdded:
		n := s.nodes[c.Node]
		n.addPod(c.Pod)
		s.podCame(n, c.Pod)
	case PodRemoved:
		n := s.nodes[c.Node]
		n.removePodAt(int(c.pos))
		s.podWent(n, c.Pod)
	case OrphanAdded:
		s.orphans[c.name] = append(s.orphans[c.name], c.Pod)
		s.pods[c.Pod.UID] = NoNode
	case OrphanRemoved:
		s.dropOrphan(c.name, int(c.pos))
		delete(s.pods, c.Pod.UID)
	case GroupSet:
		setOrDelete(s.groups, c.name, c.Group)
	case WorkloadSet:
		s.work.set(c.Workload, c.OldWorkload)
	case ObjectSet, ObjectRenewed:
		s.objects.set(c.Object.New, c.Object.Old, c.Op)
	case NominationAdded:
		s.addNomination(c.Pod, c.name, int(c.pos))
	case NominationRemoved:
		s.dropNomination(int(c.pos))
	}
}

// undo is the inverse of apply, called in reverse order.
func (s *State) undo(c *Change) {
	switch c.Op {
	case NodeAdded:
		s.dropNode(c.Node)
		if c.pos == fromFree {
			s.free = append(s.free, c.Node)
		} else {
			s.nodes = s.nodes[:c.Node]
		}
	case NodeUpdated:
		s.swapInfo(c.Node, c.Old)
	case NodeRemoved:
		s.free = s.free[:len(s.free)-1]
		s.putNode(c.Node, c.Old)
	case PodAdded:
		n := s.nodes[c.Node]
		n.removePodAt(len(n.Pods) - 1)
		s.podWent(n, c.Pod)
	case PodRemoved:
		n := s.nodes[c.Node]
		n.restorePodAt(c.Pod, int(c.pos))
		s.podCame(n, c.Pod)
	case OrphanAdded:
		s.dropOrphan(c.name, len(s.orphans[c.name])-1)
		delete(s.pods, c.Pod.UID)
	case OrphanRemoved:
		s.orphans[c.name] = slices.Insert(s.orphans[c.name], int(c.pos), c.Pod)
		s.pods[c.Pod.UID] = NoNode
	case GroupSet:
		setOrDelete(s.groups, c.name, c.OldGroup)
	case WorkloadSet:
		s.work.set(c.OldWorkload, c.Workload)
	case ObjectSet, ObjectRenewed:
		s.objects.set(c.Object.Old, c.Object.New, c.Op)
	case NominationAdded:
		s.dropNomination(int(c.pos))
	case NominationRemoved:
		s.addNomination(c.Pod, c.name, int(c.pos))
	}
}

// fromFree in a NodeAdded's pos says that the slot had been used before.
const fromFree = 1

func (s *State) putNode(i NodeIndex, info *NodeInfo) {
	n := &Node{NodeInfo: info, Index: i, Requested: make(Resources, len(info.Allocatable))}
	s.nodes[i] = n
	s.byName[info.Name] = i
	s.live++
	s.topo.nodeCame(n)
	s.facts.node(n, 1)
	s.images.nodeCame(info)
	s.nominated.nodeCame(n)
}

func (s *State) dropNode(i NodeIndex) {
	n := s.nodes[i]
	s.facts.node(n, -1)
	s.topo.nodeWent(n)
	s.images.nodeWent(n.NodeInfo)
	s.nominated.nodeWent(n)
	s.nodes[i] = nil
	delete(s.byName, n.Name)
	s.live--
}

// swapInfo replaces what a node's object says, moving what its pods count for
// in facts to where it now belongs.
func (s *State) swapInfo(i NodeIndex, info *NodeInfo) {
	n := s.nodes[i]
	relabelled := placesDiffer(n.NodeInfo, info)
	if relabelled {
		for _, p := range n.Pods {
			s.facts.count(s, n, p, -1)
		}
		s.facts.node(n, -1)
		s.topo.nodeWent(n)
	}
	s.images.nodeWent(n.NodeInfo)
	s.images.nodeCame(info)
	n.NodeInfo = info
	if relabelled {
		s.topo.nodeCame(n)
		s.facts.node(n, 1)
		for _, p := range n.Pods {
			s.facts.count(s, n, p, 1)
		}
	}
}

func (s *State) podCame(n *Node, p *Pod) {
	s.pods[p.UID] = n.Index
	count(s.priorities, p.Priority, 1)
	s.terms.podCame(p)
	s.facts.count(s, n, p, 1)
	s.objects.podCame(n.Index, p)
}

func (s *State) podWent(n *Node, p *Pod) {
	delete(s.pods, p.UID)
	count(s.priorities, p.Priority, -1)
	s.facts.count(s, n, p, -1)
	s.objects.podWent(n.Index, p)
}

// HasBelow tells whether a pod of lower priority is on any node, in O(priorities).
func (s *State) HasBelow(priority int32) bool {
	for p := range s.priorities { // in any order
		if p < priority {
			return true
		}
	}
	return false
}

func (s *State) dropOrphan(name string, pos int) {
	list := slices.Delete(s.orphans[name], pos, pos+1)
	if len(list) == 0 {
		delete(s.orphans, name)
		return
	}
	s.orphans[name] = list
}

func setOrDelete[K comparable, V any](m map[K]*V, k K, v *V) {
	if v == nil {
		delete(m, k)
		return
	}
	m[k] = v
}
