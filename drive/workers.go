package drive

import (
	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/step"
)

// Workers do the work of a Ready, one method for each kind. A method is called by
// the driver, during a Step: it does the work at once, or leaves it to somebody and
// returns. Work on one object keeps the order in which it was handed out.
//
// The outcome of a piece of work goes to its callback, which builds the input for
// the core and puts it into the driver's inbox. Each callback is owed exactly one
// call, now or later, by any goroutine that the inbox allows; only a process that
// dies owes nothing. A callback that is never called leaves the core waiting: the
// pod assumed, the node tainted.
type Workers interface {
	// Consult asks the extenders. The answer needn't say which pod it is about.
	Consult(question step.Consult, answer func(step.Consulted))
	// Bind posts a binding, after what has to be written before it.
	Bind(bind step.Bind, done func(error))
	// Cancel takes a Bind back if it isn't posted yet; the Bind's outcome tells. A
	// bind that isn't known has its outcome already.
	Cancel(cancel step.Cancel)
	// Deallocate takes the devices away from a claim, or deletes it.
	Deallocate(deallocation step.Deallocation, done func(error))
	// Preempt asks a victim to leave. That it is gone already is no failure.
	Preempt(victim step.Preemption, done func(error))
	// Nominate writes status.nominatedNodeName. A nomination that a later one of
	// the same pod replaces before it is written owes no outcome.
	Nominate(nomination step.Nomination, done func(error))
	// WriteStatus writes the status of an object that asks for headroom. A write that a
	// later one of the same object replaces before it is done owes no outcome.
	WriteStatus(write step.StatusWrite, done func(error))
	// Condition writes a pod's PodScheduled condition. Nothing is owed, and a later
	// condition of the same pod replaces one that isn't written yet.
	Condition(condition step.Condition)
	// Event emits an event. Nothing is owed.
	Event(event step.Event)
	// Taint puts a taint on a node or takes it off, with what goes with it, in one write.
	Taint(taint step.Taint, done func(error))
	// Evict asks a pod to leave a node that goes, within disruption budgets. The error of an
	// eviction that these don't allow wraps step.ErrRefused; it isn't tried again here.
	Evict(eviction step.Eviction, done func(error))
	// Surge asks a Deployment to make its pod's successor first. The error says why it
	// doesn't.
	Surge(surge step.Surge, done func(error))
	// ScaleUp asks the provider for nodes. What was read of the group before it mustn't
	// reach the core after its outcome (step.GroupsSet).
	ScaleUp(order step.ScaleUp, done func(error))
	// DeleteNodes asks the provider to remove nodes: all that one Step gives up, so
	// that they can go in one call. Each is owed an outcome of its own.
	DeleteNodes(deletions []step.NodeDeletion, done func(deletion step.NodeDeletion, err error))
	// DecreaseTarget lowers a group's target. Nothing is owed; the next GroupsSet
	// tells how it went.
	DecreaseTarget(decrease step.TargetDecrease)
	// Plan makes a plan, by calling compute once: inline or in another
	// goroutine, since compute reads only the planner's copy of the state, which
	// stands still until done is called. It takes up to seconds.
	Plan(compute func() *autoscaler.Plan, done func(*autoscaler.Plan))
}

// Unanswered are workers that do nothing and report no outcome: for owners whose
// outcomes come from elsewhere, such as a recording or a script, and to embed
// where a test is about one kind of work.
type Unanswered struct{}

var _ Workers = Unanswered{}

// Consult implements Workers.
func (Unanswered) Consult(step.Consult, func(step.Consulted)) {}

// Bind implements Workers.
func (Unanswered) Bind(step.Bind, func(error)) {}

// Cancel implements Workers.
func (Unanswered) Cancel(step.Cancel) {}

// Deallocate implements Workers.
func (Unanswered) Deallocate(step.Deallocation, func(error)) {}

// Preempt implements Workers.
func (Unanswered) Preempt(step.Preemption, func(error)) {}

// Nominate implements Workers.
func (Unanswered) Nominate(step.Nomination, func(error)) {}

// WriteStatus implements Workers.
func (Unanswered) WriteStatus(step.StatusWrite, func(error)) {}

// Condition implements Workers.
func (Unanswered) Condition(step.Condition) {}

// Event implements Workers.
func (Unanswered) Event(step.Event) {}

// Taint implements Workers.
func (Unanswered) Taint(step.Taint, func(error)) {}

// Evict implements Workers.
func (Unanswered) Evict(step.Eviction, func(error)) {}

// Surge implements Workers.
func (Unanswered) Surge(step.Surge, func(error)) {}

// ScaleUp implements Workers.
func (Unanswered) ScaleUp(step.ScaleUp, func(error)) {}

// DeleteNodes implements Workers.
func (Unanswered) DeleteNodes([]step.NodeDeletion, func(step.NodeDeletion, error)) {}

// DecreaseTarget implements Workers.
func (Unanswered) DecreaseTarget(step.TargetDecrease) {}

// Plan implements Workers.
func (Unanswered) Plan(func() *autoscaler.Plan, func(*autoscaler.Plan)) {}
