package drive

import (
	"errors"
	"fmt"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/autoscaler/nodegroup"
	"github.com/berthproject/berth/core/step"
)

// The order in which the work of one Ready is handed out. Within a kind it is the
// order of the Ready. Most kinds concern different objects and could go in any
// order; it is fixed nevertheless, since the simulator draws the latency of a call
// by its number.
//
//	Consults         first: an extender's answer is waited for the longest
//	Binds            before reports: a bind drops what isn't written yet of the
//	                 pod's waiting, and must not drop what this Step reports
//	Cancels          after Binds: a pod that was placed in this Step may be a victim
//	                 of a later decision of the same Step. The reverse, a cancelled
//	                 pod that is placed again, needs the Bind's outcome and a
//	                 backoff in between, hence another Step
//	Deallocations    with the binds: another pod waits for the devices
//	Nominations      before Preemptions: a worker may ask no victim to leave before the
//	                 room is known to be its preemptor's
//	Preemptions      before the reports, for a pod of higher priority waits for them
//	StatusWrites, Conditions, Events
//	                 what people and other programs read of the above
//	Taints, Surges, Evictions
//	                 of nodes that go, in the order in which a node meets them. The
//	                 core waits for the outcome of one before it asks for the next
//	ScaleUps         before deletions: the provider takes one call of a group at a
//	                 time, and pods wait for new nodes, nobody for old ones to go
//	NodeDeletions    all of the Step in one piece of work
//	TargetDecreases  after deletions, which lower the target themselves
//	Plan             last: it takes the longest, and workers may make it inline

// handOut gives each piece of work in a Ready to its worker, in the order above.
func (d *Driver) handOut(r *step.Ready) error {
	d.handOutPods(r)
	d.handOutReports(r)
	d.handOutNodes(r)
	if r.Plan == nil {
		return nil
	}
	return d.plan(*r.Plan)
}

// handOutPods hands out what gets pods onto nodes.
func (d *Driver) handOutPods(r *step.Ready) {
	for _, x := range r.Consults {
		d.workers.Consult(x, func(answer step.Consulted) {
			answer.UID, answer.Number = x.UID, x.Number
			d.inbox(answer)
		})
	}
	for _, x := range r.Binds {
		d.workers.Bind(x, func(err error) { d.inbox(step.BindDone{UID: x.UID, Err: err}) })
	}
	for _, x := range r.Cancels {
		d.workers.Cancel(x)
	}
	for _, x := range r.Deallocations {
		d.workers.Deallocate(x, func(err error) { d.inbox(step.DeallocationDone{UID: x.UID, Err: err}) })
	}
	for _, x := range r.Nominations {
		d.workers.Nominate(x, func(err error) { d.inbox(step.NominationDone{UID: x.UID, Node: x.Node, Err: err}) })
	}
	for _, x := range r.Preemptions {
		d.workers.Preempt(x, func(err error) { d.inbox(step.PreemptionDone{UID: x.UID, By: x.By, Err: err}) })
	}
}

// handOutReports hands out what is written about pods and nodes.
func (d *Driver) handOutReports(r *step.Ready) {
	for _, x := range r.StatusWrites {
		d.workers.WriteStatus(x, func(err error) { d.inbox(step.StatusWritten{UID: x.UID, Err: err}) })
	}
	for _, x := range r.Conditions {
		d.workers.Condition(x)
	}
	for _, x := range r.Events {
		d.workers.Event(x)
	}
}

// handOutNodes hands out what changes how many nodes there are.
func (d *Driver) handOutNodes(r *step.Ready) {
	for _, x := range r.Taints {
		d.workers.Taint(x, func(err error) { d.inbox(step.TaintDone{Node: x.Node, Key: x.Taint.Key, Remove: x.Remove, Err: err}) })
	}
	for _, x := range r.Surges {
		d.workers.Surge(x, func(err error) { d.inbox(step.SurgeDone{UID: x.UID, Node: x.Node, Err: err}) })
	}
	for _, x := range r.Evictions {
		d.workers.Evict(x, func(err error) {
			d.inbox(step.EvictionDone{UID: x.UID, Node: x.Node, Err: err, Refused: errors.Is(err, step.ErrRefused)})
		})
	}
	for _, x := range r.ScaleUps {
		d.workers.ScaleUp(x, func(err error) {
			d.inbox(step.ScaleUpDone{Group: x.Group, Nodes: x.Nodes, Err: err, Class: nodegroup.ClassOf(err), Unknown: nodegroup.OutcomeUnknown(err)})
		})
	}
	if len(r.NodeDeletions) > 0 {
		d.workers.DeleteNodes(r.NodeDeletions, func(x step.NodeDeletion, err error) {
			d.inbox(step.NodeDeletionDone{Node: x.Node, Instance: x.Instance, Err: err, Unknown: nodegroup.OutcomeUnknown(err)})
		})
	}
	for _, x := range r.TargetDecreases {
		d.workers.DecreaseTarget(x)
	}
}

// plan asks for a plan of the cluster as the core knows it now. The planner's copy
// of the state catches up first, while the core stands still between two Steps;
// computing the plan touches the copy only, and the core asks for no second plan
// before it has this one.
func (d *Driver) plan(request autoscaler.Request) error {
	done := func(p *autoscaler.Plan) { d.inbox(step.PlanMade{Plan: p}) }
	if err := d.planner.CatchUp(); err != nil {
		// The core keeps its journal for the planner, so this is a defect. An empty
		// plan changes nothing and lets the core ask again.
		done(autoscaler.NewPlan(&request, d.planner.Position()))
		return fmt.Errorf("the planner can't follow: %w", err)
	}
	compute := func() *autoscaler.Plan { return d.planner.Plan(request) }
	if d.replan != nil {
		compute = func() *autoscaler.Plan { return d.replan(request, d.planner.Plan) }
	}
	d.workers.Plan(compute, done)
	return nil
}
