package core

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/lifecycle/comparison"
	"github.com/berthproject/berth/core/record"
	"github.com/berthproject/berth/core/step"
)

// This file takes in pods. A pod of one of our profiles, and a stand-in (headroom.go), has a
// record (core/record) from when it is first seen without a node until the API has it on one, or
// it is gone; it has an item in the queue for the same time.

func (c *Core) podSet(in step.PodSet) {
	obj := in.Pod
	switch {
	case obj.Status.Phase == v1.PodSucceeded || obj.Status.Phase == v1.PodFailed:
		c.podGone(obj.UID)
	case obj.Spec.NodeName != "":
		c.podRuns(obj)
	case obj.DeletionTimestamp != nil:
		c.podGone(obj.UID)
	default:
		c.podPends(obj)
	}
}

// podGone forgets a pod that is gone, over, or on its way out without a node. This is the order in
// which machines hear of it, and why each comes before the next:
//
//  1. Who has to see the pod where it was: preemption, which words the event about a victim;
//     comparison, which keeps a state of its own; nodedeletion, which is told of the node; homes,
//     which looks at the owner as it stands.
//  2. The state and the queue forget it: what is done from here on finds its room free, and
//     nobody tries it again.
//  3. Who has something in its record: headroom keeps again the room that it has consumed,
//     binding lets go of what plugins have reserved and cancels a bind that is under way, and its
//     nomination ends. Of a pod without a record binding may hold claims still.
//  4. preemption: as a victim it is gone now, so that its preemptor may be tried in its room.
//  5. reservation: its place ends, or it stops asking for one. Its item is gone, so that ending
//     its nomination wakes nobody.
//  6. The record goes last: machines reach their parts of it until here.
func (c *Core) podGone(uid types.UID) {
	c.preemption.BeforePodRemoved(c.turn, uid) // 1
	c.comparison.PodRemoved(c.turn, c.compared(uid), uid)
	if c.cfg.Autoscale != nil {
		c.scale.resizes.PodGone(uid)
		if n := c.state.NodeOf(uid); n != nil {
			c.scale.podChanged(c.turn, n.Name)
		}
	}
	c.podTerminating(uid)
	c.state.Remove(uid) // 2
	c.state.SetReady(uid, false)
	c.queue.Remove(uid)
	if p := c.pods[uid]; p != nil { // 3
		c.headroom.PodRemoved(c.turn, p.Parsed)
		c.binding.Release(c.turn, &p.Binding)
		c.state.Nominate(p.Parsed, "")
	}
	c.binding.PodGone(c.turn, uid)
	c.preemption.PodRemoved(c.turn, uid)  // 4
	c.reservation.ReleasePod(c.turn, uid) // 5
	delete(c.pods, uid)                   // 6
	delete(c.others, uid)
	c.reporting.PodGone(uid)
}

// podRuns has a pod on the node that the API shows.
func (c *Core) podRuns(obj *v1.Pod) {
	isNew := c.pods[obj.UID] == nil && c.state.PodOn(obj.UID) == nil
	if p := c.pods[obj.UID]; p != nil && p.Binding.Node() == obj.Spec.NodeName {
		c.binding.PodShown(c.turn, &p.Binding)
	} else if p != nil {
		c.binding.Release(c.turn, &p.Binding)
	}
	pod := c.state.Schema.ParsePod(obj)
	if p := c.pods[obj.UID]; p != nil {
		c.comparison.PodBound(c.turn, &p.Compared, p.Parsed, p.Seen, pod)
	} else {
		c.comparison.PodBound(c.turn, nil, nil, c.turn.Now, pod)
	}
	c.queue.Remove(obj.UID)
	c.reservation.PodBound(c.turn, obj.UID, obj.Spec.NodeName)
	delete(c.pods, obj.UID)
	delete(c.others, obj.UID)
	c.podShownOnNode(pod, isNew)
	if c.cfg.Autoscale != nil {
		if obj.Status.Phase == v1.PodRunning {
			c.scale.launches.PodRuns(c.turn.Now, obj.Spec.NodeName, pod)
		}
		c.scale.podChanged(c.turn, obj.Spec.NodeName)
		c.scale.resizes.PodShown(c.turn, pod)
	}
	c.mode.reportProblems(pod)
	if n := c.state.NodeOf(obj.UID); n == nil || n.Name != obj.Spec.NodeName || !cluster.SamePod(c.state.PodOn(obj.UID), pod) {
		c.state.Place(pod, obj.Spec.NodeName)
	} // otherwise it is there as assumed, and nothing that a rule reads has changed
	if isNew && c.stepped {
		noteConflict(c, pod)
	}
	c.state.SetReady(obj.UID, pod.Ready())
	c.preemption.PodBound(c.turn, pod)
}

// noteConflict enters into the ledger that another scheduler has placed a pod in room that was given away
// already: the kubelet will reject one of the two.
func noteConflict(c *Core, pod *cluster.Pod) {
	n := c.state.NodeOf(pod.UID)
	if n == nil || pod.OfNode || c.cfg.ExternalScheduler || c.cfg.Shadow != nil || c.sched.Responsible(pod) {
		return
	}
	for _, id := range [...]cluster.ResourceID{cluster.CPU, cluster.Memory} {
		over := n.Requested.At(id) - n.Allocatable.At(id)
		if over > 0 && over <= pod.Request.At(id) && n.Allocatable.At(id) > 0 {
			c.turn.Decide(step.Decision{Kind: step.RoomTakenTwice, Pod: pod.Name(), Node: n.Name, Reason: fmt.Sprintf(
				"scheduler %s has placed it there while others were placed; the node's pods request %d %% of its %s, and the kubelet rejects one of them",
				pod.Object.Spec.SchedulerName, 100*n.Requested.At(id)/n.Allocatable.At(id), id.Name())})
			return
		}
	}
}

// podPends queues a pod without a node, or records how it changed.
func (c *Core) podPends(obj *v1.Pod) {
	parsed := c.state.Schema.ParsePod(obj)
	if !c.sched.Responsible(parsed) {
		c.others[obj.UID] = obj
		return
	}
	p := c.pods[obj.UID]
	if p == nil && c.state.PodOn(obj.UID) != nil {
		// It was bound, and isn't any more: the API doesn't let a pod lose its node, but an etcd
		// that was restored does.
		c.podGone(obj.UID)
	}
	if p != nil && p.Node() != "" {
		c.placedChanges(p, parsed)
		return
	}
	c.mode.reportProblems(parsed)
	if p == nil {
		p = &record.Pod{Seen: c.turn.Now}
		c.pods[obj.UID] = p
	}
	c.comparison.PodPends(&p.Compared, parsed)
	gate := c.sched.Gate(parsed)
	changed := p.Parsed != nil && !cluster.SamePod(p.Parsed, parsed)
	p.Parsed = parsed
	if gate != nil || changed {
		endPlans(c, p) // it is another pod now
	}
	if c.state.NominationOf(obj.UID) != nil {
		c.nomination.Renominate(c.turn, &p.Nomination, parsed)
	}
	item := c.queue.Get(obj.UID)
	c.queue.SignedBy(c.state.SignatureInputs())
	if item == nil {
		item = c.queue.Add(c.turn.Now, parsed, c.mode.class(parsed), gate)
	} else {
		c.queue.Update(item, parsed, c.mode.class(parsed), gate)
	}
	if item.Diagnosis() != nil && !item.Nominated() {
		c.wantPlan(p) // another scheduler may have called it unschedulable just now
	}
	if c.nomination.Show(c.turn, &p.Nomination, item, obj.Status.NominatedNodeName) && !p.Preemption.Asking() {
		if p.Nomination.Decided() {
			c.reservation.ReleasePod(c.turn, obj.UID)
		}
		c.queue.Activate(item)
	}
	if gate == nil {
		c.takeHome(p)
	}
	c.mode.reportGate(p)
}

// endPlans ends what was begun for a pod that isn't to be placed as it is.
func endPlans(c *Core, p *record.Pod) {
	c.reservation.ReleasePod(c.turn, p.Parsed.UID)
	p.Weighing = record.Weighing{}
}

// placedChanges records how a pod changed that has a node in the state, and none in the API:
// what comes of that decides.
func (c *Core) placedChanges(p *record.Pod, parsed *cluster.Pod) {
	c.comparison.PodPends(&p.Compared, parsed)
	p.Parsed = parsed
	p.Binding.Update(parsed)
	p.Expected.Update(parsed)
	p.Compared.Update(parsed)
	item, nominated := c.queue.Get(parsed.UID), parsed.Object.Status.NominatedNodeName
	if item == nil {
		return
	}
	// Where the API has it nominated counts again if the bind fails, and at once beside another
	// scheduler, which says with it where the pod will be (KEP-5278).
	if c.nomination.Show(c.turn, &p.Nomination, item, nominated) && p.Expected.Node() != nominated {
		c.expectation.Contradicted(c.turn, &p.Expected)
	}
}

// compared returns the part of a pod's record that a shadow compares by, nil of a pod that has
// none.
func (c *Core) compared(uid types.UID) *comparison.Pod {
	if p := c.pods[uid]; p != nil {
		return &p.Compared
	}
	return nil
}

func (c *Core) bindDone(in step.BindDone) {
	if pod := c.binding.BindDone(c.turn, in); pod != nil {
		c.preemption.PodBound(c.turn, pod)
	}
}
