package cluster

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"
)

// Making changes true, and taking them back. Invariant: undo of a change in the
// state that apply of it left gives the state from before, slot for slot: the
// order of pods on nodes and of orphans included. What only grows
// stays: names that were interned, topologies and terms that were met. Followers
// replay changes by apply, so it must not depend on anything but the change and
// the state.
// Both functions are total: a change that a State has made can't fail.

// apply makes a change true.
func (s *State) apply(c *Change) {
	switch c.Op {
	// A slot that was used before is used again, so that indices stay dense.
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
		s.replaceInfo(c.Node, c.Info)
	case NodeRemoved:
		s.dropNode(c.Node)
		s.free = append(s.free, c.Node)
	// pos is unused here: the pod becomes the last of the node's.
	case PodAdded:
		n := s.nodes[c.Node]
		n.addPod(c.Pod)
		s.podAdded(n, c.Pod)
	case PodRemoved:
		n := s.nodes[c.Node]
		n.removePodAt(int(c.pos))
		s.podRemoved(n, c.Pod)
	// An orphan names a node that the state doesn't have.
	case OrphanAdded:
		s.orphans[c.name] = append(s.orphans[c.name], c.Pod)
		s.pods[c.Pod.UID] = NoNode
		s.countMember(c.Pod, NoNode, 1)
	case OrphanRemoved:
		s.dropOrphan(c.name, int(c.pos))
		delete(s.pods, c.Pod.UID)
		s.countMember(c.Pod, NoNode, -1)
	case GroupSet:
		setOrDelete(s.groups, c.name, c.Group)
	case WorkloadSet, WorkloadRenewed:
		s.work.set(c.Workload, c.OldWorkload)
		s.noteSignatureInput(c)
	case PodReadied, PodUnreadied:
		s.setReady(types.UID(c.name), c.Op == PodReadied)
	case ObjectSet, ObjectRenewed:
		s.objects.set(c.Object.New, c.Object.Old)
		s.countCSINode(c.Object.New, c.Object.Old)
		s.noteSignatureInput(c)
	case NominationAdded:
		s.addNomination(c)
	case NominationRemoved:
		s.dropNomination(c.Pod)
	case HeadroomSet:
		s.headrooms.set(c.Headroom.New, c.Headroom.Old)
	}
}

// undo is the inverse of apply, called in reverse order.
// Cases are in the order of apply's, each reading what its counterpart has recorded in the
// change.
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
		s.replaceInfo(c.Node, c.Old)
	case NodeRemoved:
		s.free = s.free[:len(s.free)-1]
		s.putNode(c.Node, c.Old)
	case PodAdded:
		n := s.nodes[c.Node]
		n.removePodAt(len(n.Pods) - 1)
		s.podRemoved(n, c.Pod)
	case PodRemoved:
		n := s.nodes[c.Node]
		// At its old position, since the order of pods on a node is part of the state.
		n.restorePodAt(c.Pod, int(c.pos))
		s.podAdded(n, c.Pod)
	case OrphanAdded:
		s.dropOrphan(c.name, len(s.orphans[c.name])-1)
		delete(s.pods, c.Pod.UID)
		s.countMember(c.Pod, NoNode, -1)
	case OrphanRemoved:
		s.orphans[c.name] = slices.Insert(s.orphans[c.name], int(c.pos), c.Pod)
		s.pods[c.Pod.UID] = NoNode
		s.countMember(c.Pod, NoNode, 1)
	case GroupSet:
		setOrDelete(s.groups, c.name, c.OldGroup)
	case WorkloadSet, WorkloadRenewed:
		s.work.set(c.OldWorkload, c.Workload)
		s.noteSignatureInput(c)
	case PodReadied, PodUnreadied:
		s.setReady(types.UID(c.name), c.Op == PodUnreadied)
	case ObjectSet, ObjectRenewed:
		s.objects.set(c.Object.Old, c.Object.New)
		s.countCSINode(c.Object.Old, c.Object.New)
		s.noteSignatureInput(c)
	case NominationAdded:
		s.dropNomination(c.Pod)
	case NominationRemoved:
		s.addNomination(c)
	case HeadroomSet:
		s.headrooms.set(c.Headroom.Old, c.Headroom.New)
	}
}

// fromFree in a NodeAdded's pos says that the slot had been used before.
const fromFree = 1

// putNode puts a node without pods at an index that no node has, and counts it wherever nodes are
// counted. Pods that name it and came before are orphans still: PodAdded moves each here.
func (s *State) putNode(i NodeIndex, info *NodeInfo) {
	n := newNode(info, i)
	s.nodes[i] = n
	s.byName[info.Name] = i
	s.live++
	s.topo.nodeAdded(n)
	s.facts.addNode(n, 1)
	s.images.count(info.Images, 1)
	s.index.count(i, info, 1)
	s.drivers.count(info.Group, s.CSINode(info.Name), 1)
	s.nominated.nodeAdded(n)
	s.objects.devices.SetNode(int32(i), info.Object)
}

// dropNode is the inverse of putNode: the node has no pods any more. Whose index becomes free is the
// caller's to say, since undo has to restore the order of the free ones.
func (s *State) dropNode(i NodeIndex) {
	n := s.nodes[i]
	s.facts.addNode(n, -1)
	s.topo.nodeRemoved(n)
	s.images.count(n.Images, -1)
	s.index.count(i, n.NodeInfo, -1)
	s.drivers.count(n.Group, s.CSINode(n.Name), -1)
	s.nominated.nodeRemoved(n)
	s.nodes[i] = nil
	delete(s.byName, n.Name)
	s.live--
	s.objects.devices.NodeGone(int32(i))
}

// replaceInfo replaces what a node's object says, moving what its pods count for
// in facts to where it now belongs.
// Facts are moved only where domains differ, since that costs a walk over the pods.
func (s *State) replaceInfo(i NodeIndex, info *NodeInfo) {
	n := s.nodes[i]
	moved := domainsDiffer(n.NodeInfo, info)
	if moved {
		for _, p := range n.Pods {
			s.facts.addPod(n, p, -1)
		}
		s.facts.addNode(n, -1)
		s.topo.nodeRemoved(n)
	}
	s.images.replace(n.Images, info.Images)
	s.index.count(i, n.NodeInfo, -1)
	s.index.count(i, info, 1)
	if n.Group != info.Group {
		csi := s.CSINode(n.Name)
		s.drivers.count(n.Group, csi, -1)
		s.drivers.count(info.Group, csi, 1)
	}
	n.setInfo(info)
	s.objects.devices.SetNode(int32(i), info.Object)
	if moved {
		s.topo.nodeAdded(n)
		s.facts.addNode(n, 1)
		for _, p := range n.Pods {
			s.facts.addPod(n, p, 1)
		}
	}
}

// podAdded counts a pod that is on the node now wherever pods on nodes are counted.
// Each counter here has its counterpart in podRemoved.
func (s *State) podAdded(n *Node, p *Pod) {
	s.pods[p.UID] = n.Index
	addTo(s.priorities, p.Priority, 1)
	s.terms.podAdded(p)
	s.facts.addPod(n, p, 1)
	s.objects.podAdded(n.Index, p)
	s.countMember(p, n.Index, 1)
}

// podRemoved is the inverse of podAdded, but for terms: those that were met stay.
func (s *State) podRemoved(n *Node, p *Pod) {
	delete(s.pods, p.UID)
	addTo(s.priorities, p.Priority, -1)
	s.facts.addPod(n, p, -1)
	s.objects.podRemoved(n.Index, p)
	s.countMember(p, n.Index, -1)
}

// dropOrphan drops an orphan of a node's name; a name without orphans isn't kept.
func (s *State) dropOrphan(name string, pos int) {
	list := slices.Delete(s.orphans[name], pos, pos+1)
	if len(list) == 0 {
		delete(s.orphans, name)
		return
	}
	s.orphans[name] = list
}

// setOrDelete sets the value of a key, or deletes the key for nil.
func setOrDelete[K comparable, V any](m map[K]*V, k K, v *V) {
	if v == nil {
		delete(m, k)
		return
	}
	m[k] = v
}
