package live

import (
	"context"
	"log/slog"
	"sync"
	"time"

	corelisters "k8s.io/client-go/listers/core/v1"

	"github.com/berthproject/berth/core"
	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/drive"
	"github.com/berthproject/berth/internal/background"
)

// How many calls of a kind are under way at a time.
const (
	bindWorkers    = 32 // bindings
	preemptWorkers = 16 // victims
	evictWorkers   = 20 // evictions
	surgeWorkers   = 4  // Deployments that make a successor
	taintWorkers   = 16 // nodes whose taints are written
	consultWorkers = 16 // pods that the same extenders are asked about

	deallocateWorkers = 4 // claims that are deallocated

	nominateWorkers  = 16 // pods whose nominations are written
	conditionWorkers = 4  // pods whose conditions are written
	eventWorkers     = 4  // events
	eventHelpers     = 20 // further events, while nothing of higher priority is queued
)

// workers give the work of each Step to those who do it, as drive.Workers. Its
// methods are called by the loop, and return as soon as the work has a place in a
// backlog. All work of one kind for one object is done in order: nominations and
// conditions since the reporter keeps the latest and writes one at a time of a pod, taints by
// the node's own worker, calls of a node group and those that ask one pod to leave by one lane;
// of binds the core has one at a time for a pod.
type workers struct {
	ctx        context.Context // of the calls; ends when Berth stops
	binder     *binder
	consultant *consultant // nil without extenders
	// deallocations are done by the binder's deviceBinder.
	deallocations chan *job[step.Deallocation]
	reporter      *reporter
	leavers       *leavers
	tainter       *tainter
	surger        *surger
	cloud         *cloud             // nil without a provider
	headroom      *headroomReporter  // writes what the core says with a provider only
	planner       *background.Worker // makes the plans
	health        *Health            // told of plans that are made
	planBound     time.Duration      // how long a plan may take
	status        *statusWriter      // nil when none is to be written
	planTimed     func()             // called when a plan was made; may be nil
	// deviceWatcher is told of resource claims that are written; may be nil.
	deviceWatcher DeviceWatcher
	log           *slog.Logger
}

var _ drive.Workers = (*workers)(nil)

// newWorkers returns the workers of a core. Nothing runs before run, but the planner's goroutine.
func newWorkers(ctx context.Context, o Options, clients *clients, load *load) *workers {
	w := &workers{
		ctx: ctx, log: o.Log,
		binder:        newBinder(clients.bind, o.Extenders, &load.binds),
		reporter:      newReporter(clients.report, clients.nominate, o.Host, o.Log, load),
		deallocations: make(chan *job[step.Deallocation], 1<<12),
		leavers:       newLeavers(clients.evict, clients.preempt, &load.preemptions),
		tainter:       newTainter(clients.node),
		surger:        newSurger(clients.surge),
		headroom:      newHeadroomReporter(clients.reportAny),
	}
	w.binder.stalled = func(bind step.Bind, err error) {
		o.Log.Warn("a bind has had no outcome for a minute", "pod", bind.Namespace+"/"+bind.Name, "node", bind.Node, "lastError", err)
		if o.BindStalled != nil {
			o.BindStalled()
		}
	}
	if o.Extenders != nil {
		w.consultant = newConsultant(o.Extenders)
	}
	if o.Core.Autoscale != nil {
		w.planner = background.Start(ctx)
	}
	w.health, w.planBound, w.deviceWatcher = o.Health, planBound(o.Core.Autoscale), o.Watcher
	return w
}

// yield returns what lets others use the processor while plans are made; nil for a core that only
// schedules.
func (w *workers) yield() func() {
	if w.planner == nil {
		return nil
	}
	return w.planner.Yield
}

// readFrom gives workers what they read of caches. It comes before run.
func (w *workers) readFrom(c *caches, clients *clients) {
	w.binder.volumes = newVolumeBinder(clients.bind, c)
	w.binder.devices = newDeviceBinder(clients.bind, resourceClaimCache{c.resourceClaims.Cache}, w.reporter.event, w.deviceWatcher)
	if w.consultant != nil {
		w.consultant.nodes, w.consultant.pods = corelisters.NewNodeLister(c.nodes.Objects()), corelisters.NewPodLister(c.pods.Objects())
	}
}

// run starts the goroutines that do the work.
func (w *workers) run(wg *sync.WaitGroup) {
	w.binder.run(w.ctx, wg)
	serveJobs(w.ctx, wg, deallocateWorkers, w.deallocations, func(ctx context.Context, x step.Deallocation) error { return w.binder.devices.deallocate(ctx, x) })
	w.reporter.run(w.ctx, wg)
	w.leavers.run(w.ctx, wg)
	w.tainter.run(w.ctx, wg)
	w.surger.run(w.ctx, wg)
	w.headroom.run(w.ctx, wg)
	if w.consultant != nil {
		w.consultant.run(w.ctx, wg)
	}
	if w.cloud != nil {
		w.cloud.run(w.ctx, wg)
	}
}

// runShadow starts the goroutines that only read.
func (w *workers) runShadow(wg *sync.WaitGroup) {
	if w.cloud != nil {
		w.cloud.run(w.ctx, wg)
	}
}

// Consult implements drive.Workers.
func (w *workers) Consult(question step.Consult, answer func(step.Consulted)) {
	w.consultant.ask(consultJob{question, answer})
}

// Bind implements drive.Workers. What isn't written yet of the pod's waiting would
// come after its binding, and is dropped; what is being written ends first.
func (w *workers) Bind(bind step.Bind, done func(error)) {
	report := w.reporter.drop(bind.UID)
	j := w.binder.add(bind, func(err error) {
		w.reporter.bindEnded(bind.UID, err)
		done(err)
	})
	j.report = report
	send(w.ctx, w.binder.backlog, j)
}

// Cancel implements drive.Workers.
func (w *workers) Cancel(cancel step.Cancel) { w.binder.cancel(cancel.UID) }

// Deallocate implements drive.Workers.
func (w *workers) Deallocate(deallocation step.Deallocation, done func(error)) {
	send(w.ctx, w.deallocations, &job[step.Deallocation]{deallocation, done})
}

// Preempt implements drive.Workers. The preemptor's nomination was handed out before.
func (w *workers) Preempt(victim step.Preemption, done func(error)) {
	w.leavers.preempt(w.ctx, victim, w.reporter.outcomeOf(victim.By), done)
}

// Nominate implements drive.Workers.
func (w *workers) Nominate(nomination step.Nomination, done func(error)) {
	w.reporter.nominate(job[step.Nomination]{nomination, done})
}

// WriteStatus implements drive.Workers.
func (w *workers) WriteStatus(write step.StatusWrite, done func(error)) {
	send(w.ctx, w.headroom.backlog, &job[step.StatusWrite]{write, done})
}

// Condition implements drive.Workers.
func (w *workers) Condition(condition step.Condition) { w.reporter.condition(condition) }

// Event implements drive.Workers.
func (w *workers) Event(event step.Event) {
	if event.AboutStatus() && !w.status.locate(&event) {
		return
	}
	w.reporter.event(event)
}

// Taint implements drive.Workers.
func (w *workers) Taint(taint step.Taint, done func(error)) {
	send(w.ctx, w.tainter.backlogOf(taint.Node), &job[step.Taint]{taint, done})
}

// Evict implements drive.Workers.
func (w *workers) Evict(eviction step.Eviction, done func(error)) {
	w.leavers.evict(w.ctx, eviction, done)
}

// Surge implements drive.Workers.
func (w *workers) Surge(surge step.Surge, done func(error)) {
	send(w.ctx, w.surger.backlog, &job[step.Surge]{surge, done})
}

// ScaleUp implements drive.Workers. After an order that failed the groups are read: whether
// nodes come all the same isn't known.
func (w *workers) ScaleUp(order step.ScaleUp, done func(error)) {
	var err error
	w.call(cloudCall{group: order.Group, do: func(ctx context.Context, _ []deletion) {
		err = w.cloud.scaleUp(ctx, order)
		done(err)
	}, after: func() {
		if err != nil {
			w.cloud.readAgain()
		}
	}})
}

// DeleteNodes implements drive.Workers: the nodes of one group go in one call, with those that
// wait already. Instances that never became nodes have a call each, so that one that can't be
// deleted keeps no other.
func (w *workers) DeleteNodes(deletions []step.NodeDeletion, done func(step.NodeDeletion, error)) {
	nodes := map[string][]deletion{} // by group
	var groups []string
	var instances []deletion
	for _, x := range deletions {
		d := deletion{x, done}
		switch {
		case d.Node == "":
			instances = append(instances, d)
			continue
		case nodes[d.Group] == nil:
			groups = append(groups, d.Group)
		}
		nodes[d.Group] = append(nodes[d.Group], d)
	}
	for _, group := range groups {
		w.call(cloudCall{group: group, deletions: nodes[group], do: func(ctx context.Context, list []deletion) { w.cloud.deleteNodes(ctx, group, list) }})
	}
	for _, d := range instances {
		w.call(cloudCall{group: d.Group, do: func(ctx context.Context, _ []deletion) { w.cloud.deleteNodes(ctx, d.Group, []deletion{d}) }})
	}
}

// DecreaseTarget implements drive.Workers.
func (w *workers) DecreaseTarget(decrease step.TargetDecrease) {
	w.call(cloudCall{group: decrease.Group, do: func(ctx context.Context, _ []deletion) { w.cloud.decreaseTarget(ctx, decrease) }, after: w.cloud.readAgain})
}

// call adds a call of a node group to its lane.
func (w *workers) call(call cloudCall) { send(w.ctx, w.cloud.calls, call) }

// Plan implements drive.Workers: plans are made beside the loop, and nobody waits
// for one when Berth stops. The driver asks for a plan when it has the one before.
func (w *workers) Plan(compute func() *autoscaler.Plan, done func(*autoscaler.Plan)) {
	w.planner.Do(w.ctx, func() { labelled(w.ctx, plannerGoroutine, func() { w.plan(compute, done) }) })
}

// plan makes a plan and hands it over.
func (w *workers) plan(compute func() *autoscaler.Plan, done func(*autoscaler.Plan)) {
	end := w.health.begin(plannerGoroutine, "a plan", w.planBound)
	plan := compute()
	end()
	if w.planTimed != nil {
		w.planTimed()
	}
	if plan.Unplanned > 0 {
		w.log.Warn("a plan ran out of time; nodes decided on by then are added, and the next plan continues", "scaleUps", len(plan.ScaleUps), "podsLeft", plan.Unplanned)
	}
	done(plan)
}

// planBound returns how long a plan may take before the planner counts as stuck: beyond the
// times after which the stopwatch cuts it short.
func planBound(a *core.Autoscale) time.Duration {
	if a == nil {
		return stuckAfter
	}
	return stuckAfter + a.MaxBinpackingTime + a.SimulationTimeout
}

// timePlans tells a watcher, nil for none, how long each plan takes by a stopwatch.
func (w *workers) timePlans(s *stopwatch, watcher Watcher) {
	if s != nil && watcher != nil {
		w.planTimed = func() { watcher.PlanComputed(s.took()) }
	}
}
