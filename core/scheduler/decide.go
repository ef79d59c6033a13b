package scheduler

// This file makes decisions. An attempt takes back the pod's nomination; then, in this order:
//
//  1. the node that the pod was nominated to takes it: placed there
//  2. its class waits, and no change since helps: rejected for the same reason
//  3. extenders have a say: nothing is decided before they are asked (DecideAmong)
//  4. a rule ends the attempt with an error, whatever nodes say
//  5. a node takes it: placed on the best
//  6. it waits for its victims, or others are to leave a node for it
//     (postfilter.go): rejected, and nominated
//  7. rejected
//
// Of a pod that is placed the state says so when the decision is returned; of one
// that isn't, the state has the nomination that it leaves with.

import (
	"slices"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/engine"
	"github.com/berthproject/berth/core/framework"
	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/core/weighing"
)

// Decision is the outcome of an attempt: one of Node, Failure, Diagnosis, Consult and
// Candidates is set. With the last two nothing is decided yet.
type Decision struct {
	Class *engine.Class // of the pod, as it was signed for the attempt

	Node      *cluster.Node          // where the pod is now assumed to be
	Score     int64                  // of that node, 0 when the pod was nominated there
	Breakdown engine.Breakdown       // how that node was chosen
	Writes    []cluster.ObjectChange // that have to be written before the pod is bound
	Was       *cluster.Nomination    // how the pod was nominated before, nil for not at all

	Failure string // the error of a rule that ended the attempt

	Diagnosis *engine.Diagnosis // why the class fits on no node
	Message   string            // the same of the pod, as the condition has it
	Victims   *engine.Candidate // what has to leave the node that the pod is now nominated to, nil when nothing has
	Weighed   *weighing.Result  // of a pod that could preempt: what else there was

	Consult    []string           // nodes that extenders have to be asked about
	Candidates []engine.Candidate // nodes that others could leave, about which extenders have to be asked
}

// Asks reports whether others could leave a node and the pod asks for a place first.
func (d *Decision) Asks() bool { return d.Weighed != nil && d.Weighed.Chosen == weighing.Asks }

// Rejections knows which classes wait: the queue does.
type Rejections interface {
	// StillRejected returns why a class fits on no node if that is known, and no
	// change since has helped; nil otherwise.
	StillRejected(*engine.Class) *engine.Diagnosis
}

// attempt is one run of the decision for a pod.
type attempt struct {
	*Scheduler
	engine *engine.Engine
	pod    *cluster.Pod
	class  *engine.Class
	// nominated is the node that the pod was nominated to before, "" for none; was says how, nil for not at all,
	// and began is what devicesKeptSince returned.
	nominated string
	was       *cluster.Nomination
	began     uint64
}

// begin takes back the pod's nomination, since what is kept for a pod is no obstacle
// to it. The class is the pod's, as it would be signed then; nil when it is to be signed anew.
func (s *Scheduler) begin(pod *cluster.Pod, class *engine.Class) attempt {
	a := attempt{Scheduler: s, engine: s.Engine(pod), pod: pod, class: class}
	if a.was = s.state.NominationOf(pod.UID); a.was != nil {
		a.nominated, a.began = a.was.Name, s.devicesKeptSince(pod)
		s.state.Nominate(pod, "")
	}
	if class == nil {
		a.class = s.Class(pod)
	}
	return a
}

// Decide finds a node for a pod and puts it there, or finds out who has to leave
// one for it. The class is the pod's, as it would be signed now without its nomination; nil when
// that isn't known. A class that waits isn't evaluated again.
func (s *Scheduler) Decide(pod *cluster.Pod, class *engine.Class, known Rejections) Decision {
	a := s.begin(pod, class)
	d := a.decide(known)
	a.engine.CountFiltered(a.class)
	if d.Node != nil {
		a.engine.CountScored(a.class)
	}
	return d
}

func (a *attempt) decide(known Rejections) Decision {
	// Extenders are asked about pods that exist.
	consults := a.engine.Profile().Consults(a.pod.Object) && !a.pod.StandsIn()
	if n := a.state.NodeByName(a.nominated); n != nil && !consults && a.takesNominated(a.pod, a.class, n, a.began) {
		return a.placed(engine.Choice{Node: n.Index, Writes: a.engine.PlaceOn(a.pod, n.Index)}, engine.Breakdown{RunnerUp: cluster.NoNode})
	}
	if why := known.StillRejected(a.class); why != nil {
		if why.Nodes() != a.state.Live() {
			why = a.engine.Refreshed(a.class, why) // the message names how many there are
		}
		return a.postFilter(why)
	}
	if consults {
		if nodes := a.engine.Feasible(a.class); len(nodes) > 0 {
			a.state.Renominate(a.pod, a.was)
			return Decision{Class: a.class, Consult: nodes}
		}
		return a.unplaced()
	}
	choice, breakdown, ok := a.engine.PlaceWithBreakdown(a.class, a.pod)
	if !ok {
		return a.unplaced()
	}
	return a.placed(choice, breakdown)
}

// unplaced is the decision for a pod that no node takes now.
func (a *attempt) unplaced() Decision {
	if why := a.engine.Failure(a.class); why != "" {
		return Decision{Class: a.class, Failure: why}
	}
	return a.postFilter(nil)
}

// DecideAmong places a pod on the best of the nodes that extenders allow, whose
// bonus is added to the node's own score. failed are their reasons against others.
func (s *Scheduler) DecideAmong(pod *cluster.Pod, allowed map[string]int64, failed []string) Decision {
	a := s.begin(pod, nil) // much may have changed since extenders were asked
	if why := a.engine.Failure(a.class); why != "" {
		return Decision{Class: a.class, Failure: why}
	}
	choice, breakdown, ok := a.engine.PlaceAmong(a.class, pod, func(n *cluster.Node) (int64, bool) {
		bonus, ok := allowed[n.Name]
		return bonus, ok
	})
	if !ok {
		return a.postFilter(a.engine.Diagnose(a.class).WithOutside(extender, failed))
	}
	return a.placed(choice, breakdown)
}

// DecideVictims preempts the victims that extenders agreed to, on the node where the
// least has to go. Of these victims only those count that are still on the node and
// of lower priority than the pod.
func (s *Scheduler) DecideVictims(pod *cluster.Pod, agreed []step.Agreed) Decision {
	a := s.begin(pod, nil)
	if best, ok := a.engine.Cheapest(a.class, a.stillAgreed(agreed)); ok {
		return a.rejected(nil, &best)
	}
	d := a.engine.Diagnose(a.class).WithOutside(extender, nil) // any change may have the extenders think again
	return a.rejected(d.WithPreemption(engine.Preemption{RuledOut: true, Message: "no candidate node for preemption"}), nil)
}

// extender stands for a plugin in the reasons that extenders give.
const extender = "Extender"

// stillAgreed returns the nodes that others may leave for the pod as the extenders
// have agreed, with the victims that are still there.
func (a *attempt) stillAgreed(agreed []step.Agreed) (list []engine.Candidate) {
	for _, x := range agreed {
		n := a.state.NodeByName(x.Node)
		if n == nil {
			continue
		}
		c := engine.Candidate{Node: n.Index, Victims: framework.Victims{Violations: x.Violations}}
		for _, p := range n.Pods {
			if p.Priority < a.pod.Priority && slices.Contains(x.Pods, p.UID) {
				c.Pods = append(c.Pods, p)
			}
		}
		if c.Pods != nil {
			list = append(list, c)
		}
	}
	return list
}

// placed is the decision for a pod that was put on a node.
func (a *attempt) placed(c engine.Choice, breakdown engine.Breakdown) Decision {
	return Decision{Class: a.class, Node: a.state.Node(c.Node), Score: c.Score, Writes: c.Writes, Was: a.was, Breakdown: breakdown}
}
