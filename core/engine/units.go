package engine

import (
	"slices"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/framework"
)

// This file says what leaves together: a pod alone, or all placed members of a pod group whose
// disruptionMode is all (KEP-4671), wherever they are.

// units collects what could leave for a pod of a priority. It may be used again.
type units struct {
	state *cluster.State
	below int32
	list  []framework.Unit
	// pods and nodes are the memory of units of one pod.
	pods  []*cluster.Pod
	nodes []cluster.NodeIndex
	seen  []cluster.PodGroupKey
}

// begin starts a collection for a pod of a priority.
func (u *units) begin(s *cluster.State, priority int32) {
	clear(u.list)
	clear(u.pods)
	*u = units{state: s, below: priority, list: u.list[:0], pods: u.pods[:0], nodes: u.nodes[:0], seen: u.seen[:0]}
}

// addNode adds what could leave of the pods of a node.
func (u *units) addNode(n *cluster.Node) {
	for _, p := range n.Pods {
		key, whole := u.state.GoesWhole(p)
		switch {
		case whole:
			u.addGroup(key)
		case u.mayLeave(p):
			u.pods, u.nodes = append(u.pods, p), append(u.nodes, n.Index)
			at := len(u.pods) - 1
			u.list = append(u.list, framework.Unit{Pods: u.pods[at : at+1 : at+1], Nodes: u.nodes[at : at+1 : at+1]})
		}
	}
}

// addGroup adds a group whose members go together, once, if all of them may leave.
func (u *units) addGroup(key cluster.PodGroupKey) {
	if slices.Contains(u.seen, key) {
		return
	}
	u.seen = append(u.seen, key)
	unit := framework.Unit{Group: true}
	for _, i := range u.state.MemberNodes(key) {
		for _, p := range u.state.Node(i).Pods {
			if p.Group == nil || *p.Group != key {
				continue
			}
			if !u.mayLeave(p) {
				return
			}
			unit.Pods, unit.Nodes = append(unit.Pods, p), append(unit.Nodes, i)
		}
	}
	u.list = append(u.list, unit)
}

// mayLeave reports whether a pod, and the group that it is a member of, have a lower priority.
func (u *units) mayLeave(p *cluster.Pod) bool {
	if p.Priority >= u.below || p.Group == nil {
		return p.Priority < u.below
	}
	g := u.state.PodGroup(*p.Group)
	return g == nil || cluster.GroupPriority(g) < u.below
}

// remove takes the pods of a unit off their nodes, or those on one node; NoNode means all.
func (u *units) remove(x *framework.Unit, on cluster.NodeIndex) {
	for i, p := range x.Pods {
		if on == cluster.NoNode || x.Nodes[i] == on {
			u.state.Remove(p.UID)
		}
	}
}

// putBack undoes remove.
func (u *units) putBack(x *framework.Unit, on cluster.NodeIndex) {
	for i, p := range x.Pods {
		if on == cluster.NoNode || x.Nodes[i] == on {
			u.state.PlaceAt(p, x.Nodes[i])
		}
	}
}

// AppendUnit appends the pods that leave with a pod: itself, or all placed members of its group.
func AppendUnit(out []*cluster.Pod, s *cluster.State, p *cluster.Pod) []*cluster.Pod {
	key, whole := s.GoesWhole(p)
	if !whole {
		return append(out, p)
	}
	s.EachPlacedMember(key, func(m *cluster.Pod) { out = append(out, m) })
	return out
}
