package sim

import (
	"errors"
	"fmt"
	"time"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/drive"
	"github.com/berthproject/berth/internal/simulatedgroup"
	"github.com/berthproject/berth/sim/scenario"
)

// workers do Berth's work in virtual time: calls to the API server and the cloud
// that take a while, may be hit by a fault, and are served by the world. Here, and
// not in the driver, is everything that makes a call slow or fail.
//
// Each call to the API server has a number, in the order in which the driver hands
// work out; its latency and its faults are drawn by that number. Whatever changes
// the order of calls changes the outcome of every seeded run.
type workers struct{ *berth }

var _ drive.Workers = workers{}

// call sends a call to the API server: it is served after half its latency, and
// answered after the whole. What a process sent before it crashed is served, and
// the answer is lost with the process.
func (b *berth) call(serve func() error, answer func(error)) {
	w := b.w
	b.calls++
	name := fmt.Sprint(b.life, "/", b.calls)
	latency := w.between(w.run.Spec.API.CallLatency, 20, 60, "call", name)
	reply := func(after time.Duration, err error) {
		w.after(after, phaseCalls, func() { answer(err) })
	}
	w.after(latency/2, phaseCalls, func() {
		f := &w.faults
		switch {
		case f.hits(w, scenario.APIError, "", name):
			reply(latency/2, errors.New("the server refused the call"))
		case f.hits(w, scenario.APIConflict, "", name):
			reply(latency/2, errors.New("the object has been modified"))
		case f.hits(w, scenario.APITimeout, "", name):
			reply(30*time.Second, errors.New("the server did not answer in time"))
		case f.hits(w, scenario.AnswerLost, "", name):
			_ = serve()
			reply(time.Second, errors.New("the answer was lost"))
		default:
			reply(latency/2, serve())
		}
	})
}

// Consult isn't called: scenarios have no extenders.
func (b workers) Consult(step.Consult, func(step.Consulted)) {}

// Bind sends the binding when the rate of binds allows it, and its claims have been
// provisioned; until then it can be taken back.
func (b workers) Bind(x step.Bind, done func(error)) {
	w := b.w
	delete(b.cancels, x.UID)
	rate := w.run.Spec.API.BindsPerSecond
	if rate == 0 {
		rate = 1000
	}
	b.nextBind = max(b.nextBind+simulatedgroup.Interval(rate), w.now)
	life := b.life
	first, wait := func() error { return nil }, time.Duration(0)
	if len(x.Writes)+len(x.Claims) > 0 {
		first, wait = func() error { return w.bindClaims(&x) }, provisioning
	}
	w.after(b.nextBind-w.now+wait, phaseCalls, func() {
		switch {
		case life != b.life: // it crashed before it sent the call
		case b.cancels[x.UID]:
			delete(b.cancels, x.UID)
			done(errors.New("taken back for another pod"))
		default:
			if b.seenGone[x.UID] {
				w.violation("pod %s/%s is bound, of which Berth knows that it is gone", x.Namespace, x.Name)
			}
			bind := func() error {
				if err := first(); err != nil {
					return err
				}
				return w.bind(x.UID, x.Node)
			}
			if len(x.DeviceClaims) > 0 {
				(&deviceBind{b, &x, life, bind, done}).start()
				return
			}
			b.call(bind, done)
		}
	})
}

// Cancel marks a bind that isn't to be sent any more.
func (b workers) Cancel(x step.Cancel) { b.cancels[x.UID] = true }

// Deallocate takes devices away from a claim, or deletes it. Berth has seen what became of the claim when it learns how
// that ended.
func (b workers) Deallocate(x step.Deallocation, done func(error)) {
	b.call(func() error { return b.w.deallocateFor(&x) }, func(err error) {
		b.w.after(max(b.w.caughtUp(claimWatch)-b.w.now, 0), phaseWatch, func() { done(err) })
	})
}

// Preempt asks a victim to leave.
func (b workers) Preempt(x step.Preemption, done func(error)) {
	b.call(func() error { return b.w.preempt(x) }, done)
}

// Nominate writes a pod's nomination. Of two of one pod the later stays, as the live edge
// writes them in order: one that is served after a later one changes nothing.
func (b workers) Nominate(x step.Nomination, done func(error)) {
	serial := b.calls + 1 // of this call
	b.call(func() error { return b.w.nominate(x, serial) }, done)
}

// WriteStatus writes the status of an object that asks for headroom.
func (b workers) WriteStatus(x step.StatusWrite, done func(error)) {
	b.call(func() error { return b.w.writeStatus(x) }, done)
}

// Condition writes a pod's condition.
func (b workers) Condition(x step.Condition) {
	b.call(func() error { return b.w.condition(x) }, func(error) {})
}

// Event emits nothing: nobody reads events here.
func (b workers) Event(step.Event) {}

// Taint writes or removes a taint.
func (b workers) Taint(x step.Taint, done func(error)) {
	b.call(func() error { return b.w.taint(x) }, done)
}

// Evict asks a pod to leave, which its budgets may forbid.
func (b workers) Evict(x step.Eviction, done func(error)) {
	b.call(func() error { return b.w.evictForBerth(x) }, done)
}

// Surge fails: a world has ReplicaSets, and no Deployments that roll.
func (b workers) Surge(_ step.Surge, done func(error)) {
	b.call(func() error { return errors.New("there are no Deployments in a simulated world") }, done)
}

// ScaleUp orders instances.
func (b workers) ScaleUp(x step.ScaleUp, done func(error)) { b.w.callScaleUp(x, done) }

// DeleteNodes deletes instances, with one call for each.
func (b workers) DeleteNodes(list []step.NodeDeletion, done func(step.NodeDeletion, error)) {
	for _, x := range list {
		b.leaving[x.Node] = true
		if m := b.w.instance(x.Instance); m != nil {
			m.asked = true
		}
		b.w.callDeleteInstance(x, func(err error) { done(x, err) })
	}
}

// DecreaseTarget gives up ordered instances that never came.
func (b workers) DecreaseTarget(x step.TargetDecrease) { b.w.callDecreaseTarget(x) }

// Plan makes the plan at once and delivers it later, when it would be ready.
func (b workers) Plan(compute func() *autoscaler.Plan, done func(*autoscaler.Plan)) {
	plan := compute()
	took := b.w.run.Spec.API.PlanLatency.Duration
	if took == 0 {
		took = 100 * time.Millisecond
	}
	b.w.afterInBackground(took, phaseWatch, func() { done(plan) })
}
