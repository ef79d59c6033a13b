package cluster

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// This file holds which pods are ready. No placement rule reads it: a pod that becomes ready
// touches no node, wakes nobody and is signed as before. Scale-down reads it, since disruption
// budgets count ready pods only. It is said of a pod apart from where the pod is, and stays
// when the pod moves in a what-if; whoever takes in that a pod is gone says that it isn't ready
// any more.

// Ready reports whether the pod's Ready condition is True.
func (p *Pod) Ready() bool {
	for i := range p.Object.Status.Conditions {
		if c := &p.Object.Status.Conditions[i]; c.Type == v1.PodReady {
			return c.Status == v1.ConditionTrue
		}
	}
	return false
}

// SetReady records whether a pod is ready. Saying what is known leaves no trace.
func (s *State) SetReady(uid types.UID, ready bool) {
	if s.ready[uid] == ready {
		return
	}
	op := PodReadied
	if !ready {
		op = PodUnreadied
	}
	s.record(Change{Op: op, Node: NoNode, name: string(uid)})
}

// Readied returns of which pod a PodReadied or PodUnreadied is, "" for any other change.
func (c *Change) Readied() types.UID {
	if c.Op != PodReadied && c.Op != PodUnreadied {
		return ""
	}
	return types.UID(c.name)
}

// Ready reports whether a pod is ready, as far as it was said.
func (s *State) Ready(uid types.UID) bool { return s.ready[uid] }

func (s *State) setReady(uid types.UID, ready bool) {
	if ready {
		s.ready[uid] = true
	} else {
		delete(s.ready, uid)
	}
}
