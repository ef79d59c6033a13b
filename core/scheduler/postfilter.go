package scheduler

// This file decides about pods that no node takes now: whether others have to leave
// a node for them (kube-scheduler's PostFilter with DefaultPreemption), and whether
// those who had to are still on their way.

import (
	"slices"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/engine"
	"github.com/berthproject/berth/core/framework"
	"github.com/berthproject/berth/core/weighing"
)

// messageReserved is what is said about preemption of a pod for which a place is kept.
const messageReserved = "not eligible due to a node that is being added for it."

// messageAsks is what is said about preemption of a pod that asks for such a place.
const messageAsks = "not eligible until the autoscaler decides whether to add a node for it."

// messageTerminating is what is said about preemption of a pod that waits for its
// victims to go.
const messageTerminating = "not eligible due to a terminating pod on the nominated node."

// postFilter decides for a pod that no node takes; d says why its class fits on
// none, nil when that isn't known yet. A pod that was nominated to a node stays so
// while pods that had to leave it are still there; otherwise it may have others leave the
// node where the least has to go.
func (a *attempt) postFilter(d *engine.Diagnosis) Decision {
	profile := a.engine.Profile()
	if profile.Preempter == nil || profile.Preempter.Eligible(a.pod) != nil {
		return a.rejected(d, nil)
	}
	if a.Reserved(a.pod.UID) {
		return a.waitsForNode(d, messageReserved)
	}
	if a.Asking(a.pod.UID) {
		return a.waitsForNode(d, messageAsks)
	}
	if a.VictimTerminating(a.pod, a.class, a.nominated) {
		return a.waitsForNode(d, messageTerminating)
	}
	if d != nil && d.Preemption().RuledOut {
		return a.rejected(d, nil)
	}
	if profile.ConsultsVictims(a.pod.Object) {
		if list := a.engine.Candidates(a.class); list != nil {
			best, _ := a.engine.Cheapest(a.class, list)
			if w := a.Weigh(a.pod, &best); w != nil && w.Chosen == weighing.Asks {
				return a.asks(d, w)
			}
			a.state.Renominate(a.pod, a.was)
			return Decision{Class: a.class, Candidates: list}
		}
	} else if best, ok := a.engine.Preempt(a.class); ok {
		w := a.Weigh(a.pod, &best)
		if w != nil && w.Chosen == weighing.Asks {
			return a.asks(d, w)
		}
		out := a.rejected(d, &best)
		out.Weighed = w
		return out
	}
	return a.rejected(d, nil)
}

// waitsForNode is the decision for a pod that stays nominated to its node, if it is
// nominated; message says why it doesn't preempt. That says nothing of its class.
func (a *attempt) waitsForNode(d *engine.Diagnosis, message string) Decision {
	a.state.Renominate(a.pod, a.was)
	if d == nil {
		d = a.engine.Diagnose(a.class)
	}
	return Decision{Class: a.class, Diagnosis: d, Message: d.MessageWith(message)}
}

// asks is the decision for a pod that could preempt and asks for a place first.
func (a *attempt) asks(d *engine.Diagnosis, w *weighing.Result) Decision {
	out := a.waitsForNode(d, messageAsks)
	out.Weighed = w
	return out
}

// rejected is the decision for a pod that no node takes now, and for which victims
// leave one, to which it is nominated. With nil victims preemption was looked into
// in vain, and that holds for the pod's class.
func (a *attempt) rejected(d *engine.Diagnosis, victims *engine.Candidate) Decision {
	if victims != nil {
		a.state.Nominate(a.pod, a.state.Node(victims.Node).Name)
	}
	preempts := a.engine.Profile().Preempter != nil
	switch {
	case d == nil && preempts && victims == nil:
		d = a.engine.DiagnoseInVain(a.class)
	case d == nil:
		d = a.engine.Diagnose(a.class)
	}
	if victims != nil {
		success := a.engine.Profile().Preempter.Success(a.state.Node(victims.Node).Name, len(victims.Pods))
		return Decision{Class: a.class, Diagnosis: d, Message: d.MessageWith(success), Victims: victims}
	}
	if preempts && !d.Preemption().RuledOut {
		d = d.WithPreemption(engine.Preemption{RuledOut: true, Message: a.engine.PreemptionMessage(a.class)})
	}
	return Decision{Class: a.class, Diagnosis: d, Message: d.Message()}
}

// VictimTerminating reports whether a pod of lower priority is on its way out of a
// node, so that a pod of the class that is nominated there has to wait and must not
// preempt again (DefaultPreemption's PodEligibleToPreemptOthers). A node that doesn't
// take the pod whoever leaves it isn't worth waiting for.
func (s *Scheduler) VictimTerminating(pod *cluster.Pod, c *engine.Class, node string) bool {
	n := s.state.NodeByName(node)
	return n != nil && s.Engine(pod).CodeOn(c, n) != framework.Final &&
		(slices.ContainsFunc(n.Pods, func(p *cluster.Pod) bool {
			return p.Priority < pod.Priority && (terminatingByPreemption(p) || s.Leaving(p.UID))
		}) || s.Engine(pod).Yields() && s.devicesAreFreed(n))
}

// devicesAreFreed reports whether a claim with devices of a node is reserved for pods only that are gone:
// the resourceclaim controller is about to free it.
func (s *Scheduler) devicesAreFreed(n *cluster.Node) bool {
	return slices.ContainsFunc(s.state.Devices().Claims(int32(n.Index)), func(c *resourcev1.ResourceClaim) bool {
		return len(c.Status.ReservedFor) > 0 && !slices.ContainsFunc(c.Status.ReservedFor, func(r resourcev1.ResourceClaimConsumerReference) bool {
			return r.Resource != "pods" || !s.Gone(r.UID)
		})
	})
}

// terminatingByPreemption reports whether a pod is being deleted because a scheduler
// wanted so.
func terminatingByPreemption(p *cluster.Pod) bool {
	if p.Object.DeletionTimestamp == nil {
		return false
	}
	for _, c := range p.Object.Status.Conditions {
		if c.Type == v1.DisruptionTarget {
			return c.Status == v1.ConditionTrue && c.Reason == v1.PodReasonPreemptionByScheduler
		}
	}
	return false
}

// FitsNominated reports whether the node that a waiting pod is nominated to takes it
// now. It leaves the state as it is.
func (s *Scheduler) FitsNominated(pod *cluster.Pod, c *engine.Class) bool {
	n := s.state.NodeByName(s.state.NominatedTo(pod.UID))
	if n == nil {
		return false
	}
	mark, began := s.state.Mark(), s.devicesKeptSince(pod)
	defer s.state.Rollback(mark)
	s.state.Nominate(pod, "")
	return s.takesNominated(pod, c, n, began)
}

// devicesKeptSince returns the number of the nomination with which devices are kept for a pod, 0 when none are.
func (s *Scheduler) devicesKeptSince(pod *cluster.Pod) uint64 {
	was := s.state.NominationOf(pod.UID)
	if was == nil || !s.state.KeepsDevices(pod) {
		return 0
	}
	return was.Begun
}

// keptLater reports whether a nominated pod keeps devices, and was nominated after another.
func (s *Scheduler) keptLater(p *cluster.Pod, began uint64) bool {
	n := s.state.NominationOf(p.UID)
	return n != nil && n.Begun > began && s.state.KeepsDevices(p)
}

// takesNominated reports whether the node that a pod was nominated to takes it; the pod's own
// nomination has been taken back. A pod that has a place on the node leaves no room for the
// others of that place, unless their priority is higher: the plan has found that the node takes
// them all, in some order. Where a hard spread allows one at a time, each would otherwise wait
// for the other for ever.
//
// began is what devicesKeptSince returned, while the pod was nominated. Devices aren't alike: a pod that has some
// kept leaves none to those that had theirs kept later, of what it leaves.
func (s *Scheduler) takesNominated(pod *cluster.Pod, c *engine.Class, n *cluster.Node, began uint64) bool {
	reserved := s.Reserved(pod.UID)
	if !reserved && began == 0 {
		return s.Engine(pod).FitsOn(c, n)
	}
	return s.Engine(pod).FitsBeside(c, n, func(p *cluster.Pod) bool {
		return p.Priority > pod.Priority || !(reserved && s.Reserved(p.UID)) && !(began != 0 && s.keptLater(p, began))
	})
}

// MayFit is false if a pod that waits for its place on a node can't be there whatever
// happens elsewhere.
func (s *Scheduler) MayFit(pod *cluster.Pod, c *engine.Class, n cluster.NodeIndex) bool {
	return !s.Reserved(pod.UID) || s.Engine(pod).LocallyFits(c, n)
}

// Fits reports whether the node that a waiting pod is nominated to, or another, takes
// it now.
func (s *Scheduler) Fits(pod *cluster.Pod, c *engine.Class) bool {
	if s.FitsNominated(pod, c) {
		return true
	}
	_, ok := s.Engine(pod).Best(c)
	return ok
}

// WaitsInVain reports whether a pod waits for a node for nothing: no place is kept for it, it
// asks for none, and no victim is on its way out of the node that it is nominated to.
func (s *Scheduler) WaitsInVain(pod *cluster.Pod, c *engine.Class) bool {
	return !s.Reserved(pod.UID) && !s.Asking(pod.UID) && !s.VictimTerminating(pod, c, s.state.NominatedTo(pod.UID))
}
