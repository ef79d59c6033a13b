package sim

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/berthproject/berth/core/step"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berthproject/berth/core"
	"github.com/berthproject/berth/core/autoscaler/expander"
	"github.com/berthproject/berth/core/autoscaler/planner"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/internal/seeded"
	"github.com/berthproject/berth/sim/scenario"
)

// berth is Berth in this world: the core and the planner of the live program,
// with an edge of its own. A crash takes everything but the ledger.
type berth struct {
	w        *World
	life     int // counts restarts
	up       bool
	core     *core.Core
	planner  *planner.Planner
	inbox    []step.Input
	wake     time.Duration // when to Step without an input, -1 for never
	nextBind time.Duration // when the next bind may be sent
	calls    int
	ledger   *step.Ledger
	leaving  map[string]bool    // nodes whose removal was asked for
	cancels  map[types.UID]bool // binds that are taken back if they weren't sent
	spins    int
}

func newBerth(w *World) (*berth, error) {
	b := &berth{w: w, leaving: map[string]bool{}, cancels: map[types.UID]bool{}, ledger: &step.Ledger{To: w.opt.Decisions}}
	return b, b.start()
}

// start makes a fresh core, as a new process does.
func (b *berth) start() error {
	w := b.w
	schema := cluster.NewSchema()
	how := w.opt.Engine
	how.Seed = w.run.Spec.Seed
	cfg := core.Config{Profiles: w.run.Scheduler.Build(schema), Engine: how, Queue: w.run.Scheduler.Queue}
	if len(w.groups) > 0 {
		a := w.run.Autoscale
		cfg.Autoscale = &a
	}
	c, err := core.New(schema, cfg)
	if err != nil {
		return err
	}
	b.core, b.up, b.inbox, b.wake = c, true, nil, w.now
	b.planner = nil
	if cfg.Autoscale != nil {
		if b.planner, err = planner.New(c.State(), cfg.Profiles, how, expander.LeastWaste); err != nil {
			return err
		}
		period := max(cfg.Autoscale.ScanInterval/2, tick)
		life := b.life
		var look func()
		look = func() {
			if b.life == life {
				w.look()
				w.idly(period, calls, look)
			}
		}
		w.idly(0, calls, look)
	}
	return nil
}

// crash ends the process; calls that were sent are served, their answers and
// everything in memory are lost. It starts again after a while with a list of
// what exists, in no particular order.
func (b *berth) crash(down time.Duration) {
	w := b.w
	if !b.up {
		return
	}
	b.life++
	b.up, b.inbox = false, nil
	b.leaving = map[string]bool{} // the next one can't know, and asks again
	b.cancels = map[types.UID]bool{}
	for _, q := range w.watch {
		q.waiting = nil
	}
	w.touch()
	w.after(down, moves, func() {
		if err := b.start(); err != nil {
			w.violation("Berth does not start again: %v", err)
			return
		}
		b.list()
		w.touch()
	})
}

// list is what informers deliver at first.
func (b *berth) list() {
	w := b.w
	var in []step.Input
	for _, n := range w.sortedNodes() {
		in = append(in, step.NodeSet{Node: n.obj, Group: n.group})
	}
	for _, p := range w.sortedPods() {
		if !p.over {
			in = append(in, step.PodSet{Pod: p.obj})
		}
	}
	in = append(in, w.storedInputs()...)
	for _, obj := range w.run.Objects {
		in = append(in, w.workloadInput(obj, false)...)
	}
	for i := range w.run.Arrivals {
		a := &w.run.Arrivals[i]
		if a.At <= w.now && (a.DeleteAfter == 0 || a.At+a.DeleteAfter > w.now) {
			for _, obj := range a.Objects {
				in = append(in, w.workloadInput(obj, false)...)
			}
		}
	}
	for i := len(in) - 1; i > 0; i-- {
		k := int(seeded.Uint64(w.seed, "list", fmt.Sprint(b.life), fmt.Sprint(i)) % uint64(i+1))
		in[i], in[k] = in[k], in[i]
	}
	b.inbox = append(b.inbox, in...)
}

func (b *berth) receive(in step.Input) {
	if b.up {
		b.inbox = append(b.inbox, in)
	}
}

// step lets the core decide on what has come, as long as it has more to do.
func (b *berth) step() error {
	w := b.w
	for b.up && (len(b.inbox) > 0 || b.wake >= 0 && b.wake <= w.now) {
		if len(b.inbox) > 0 {
			b.spins = 0
		}
		if b.spins++; b.spins > 100_000 {
			return fmt.Errorf("at virtual time %s Berth steps again and again without an end", w.now)
		}
		in := b.inbox
		b.inbox = nil
		now := w.time()
		r := b.take(now, in)
		if w.opt.Step != nil {
			w.opt.Step(now, in, &r)
		}
		b.ledger.Add(r.Decisions)
		if w.opt.Explain != "" && slices.ContainsFunc(r.Decisions, func(d step.Decision) bool { return d.Pod == w.opt.Explain }) {
			w.explain()
		}
		w.stats.decided(r.Decisions)
		if w.opt.Check {
			w.checkStep(&r)
		}
		if err := b.dispatch(&r); err != nil {
			return err
		}
		b.wake = -1
		if !r.NextWake.IsZero() {
			b.wake = max(r.NextWake.Sub(Epoch), w.now)
			if b.wake > w.now {
				life := b.life
				w.idly(b.wake-w.now, sees, func() {
					if life == b.life && b.up && b.wake <= w.now {
						b.wake = w.now
					}
				})
			}
		}
	}
	return nil
}

// take hands the inputs to the core, all at once or one by one.
func (b *berth) take(now time.Time, in []step.Input) step.Ready {
	if !b.w.opt.OneByOne {
		return b.core.Step(now, in...)
	}
	for _, x := range in {
		b.core.Take(now, x)
	}
	return b.core.Step(now)
}

// call sends a call to the API server: it is served after half its latency,
// and answered after the whole. A fault may hit it.
func (b *berth) call(serve func() error, answer func(error)) {
	w := b.w
	b.calls++
	name := fmt.Sprint(b.life, "/", b.calls)
	latency := w.between(w.run.Spec.API.CallLatency, 20, 60, "call", name)
	life := b.life
	reply := func(after time.Duration, err error) {
		w.after(after, calls, func() {
			if life == b.life {
				answer(err)
			}
		})
	}
	w.after(latency/2, calls, func() {
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

// dispatch does the work that a Step asked for.
func (b *berth) dispatch(r *step.Ready) error {
	w := b.w
	rate := w.run.Spec.API.BindsPerSecond
	if rate == 0 {
		rate = 1000
	}
	for _, x := range r.Binds {
		delete(b.cancels, x.UID)
		b.nextBind = max(b.nextBind+time.Duration(float64(time.Second)/rate), w.now)
		life := b.life
		first, wait := func() error { return nil }, time.Duration(0)
		if len(x.Writes)+len(x.Claims) > 0 {
			first, wait = func() error { return w.bindClaims(&x) }, provisioning
		}
		w.after(b.nextBind-w.now+wait, calls, func() {
			if life == b.life {
				if b.cancels[x.UID] {
					delete(b.cancels, x.UID)
					b.receive(step.BindDone{UID: x.UID, Err: errors.New("taken back for another pod")})
					return
				}
				b.call(func() error {
					if err := first(); err != nil {
						return err
					}
					return w.bind(x.UID, x.Node)
				}, func(err error) { b.receive(step.BindDone{UID: x.UID, Err: err}) })
			}
		})
	}
	for _, x := range r.Cancels {
		b.cancels[x.UID] = true
	}
	for _, x := range r.Preemptions {
		b.call(func() error { return w.preempt(x) }, func(err error) { b.receive(step.PreemptionDone{UID: x.UID, By: x.By, Err: err}) })
	}
	for _, x := range r.Nominations {
		b.call(func() error { return w.nominate(x) }, func(err error) { b.receive(step.NominationDone{UID: x.UID, Node: x.Node, Err: err}) })
	}
	for _, x := range r.Conditions {
		b.call(func() error { return w.condition(x) }, func(error) {})
	}
	for _, x := range r.Taints {
		b.call(func() error { return w.taint(x) }, func(err error) { b.receive(step.TaintDone{Node: x.Node, Err: err}) })
	}
	for _, x := range r.Evictions {
		b.call(func() error {
			if p := w.pods[x.UID]; p != nil && !w.evict(p) {
				return errors.New("a disruption budget forbids it")
			}
			return nil
		}, func(err error) { b.receive(step.EvictionDone{UID: x.UID, Node: x.Node, Err: err}) })
	}
	for _, x := range r.ScaleUps {
		w.scaleUp(x)
	}
	for _, x := range r.NodeDeletions {
		b.leaving[x.Node] = true
		w.removal(x)
	}
	for _, x := range r.TargetDecreases {
		w.giveUp(x)
	}
	if r.Plan != nil {
		if err := b.planner.CatchUp(); err != nil {
			return fmt.Errorf("the planner can't follow: %w", err)
		}
		plan := b.planner.Plan(*r.Plan)
		took := w.run.Spec.API.PlanLatency.Duration
		if took == 0 {
			took = 100 * time.Millisecond
		}
		life := b.life
		w.idly(took, sees, func() {
			if life == b.life {
				b.receive(step.PlanMade{Plan: plan})
			}
		})
	}
	return nil
}

// condition writes a pod's PodScheduled condition.
func (w *World) condition(x step.Condition) error {
	p := w.pods[x.UID]
	if p == nil || p.over {
		return fmt.Errorf("pods %q not found", x.Name)
	}
	if p.obj.Spec.NodeName == "" {
		w.change(p, func(o *v1.Pod) {
			o.Status.Conditions = []v1.PodCondition{{Type: v1.PodScheduled, Status: v1.ConditionFalse, Reason: x.Reason, Message: x.Message}}
		})
	}
	return nil
}

// preempt tells a victim to go. Only what is less important may.
func (w *World) preempt(x step.Preemption) error {
	p, by := w.pods[x.UID], w.pods[x.By]
	if p == nil || p.terminating() {
		return nil
	}
	if by != nil && priority(by) <= priority(p) {
		w.violation("pod %s of priority %d was told to go for pod %s of priority %d", p.name, priority(p), by.name, priority(by))
	}
	w.change(p, func(o *v1.Pod) {
		o.Status.Conditions = append(o.Status.Conditions[:len(o.Status.Conditions):len(o.Status.Conditions)],
			v1.PodCondition{Type: v1.DisruptionTarget, Status: v1.ConditionTrue, Reason: v1.PodReasonPreemptionByScheduler, Message: x.Message})
	})
	w.stats.Pods.Preempted++
	w.deletePod(p)
	return nil
}

func priority(p *pod) int32 {
	if p.obj.Spec.Priority == nil {
		return 0
	}
	return *p.obj.Spec.Priority
}

// nominate writes a pod's status.nominatedNodeName.
func (w *World) nominate(x step.Nomination) error {
	p := w.pods[x.UID]
	if p == nil || p.over {
		return fmt.Errorf("pods %q not found", x.Name)
	}
	w.change(p, func(o *v1.Pod) { o.Status.NominatedNodeName = x.Node })
	return nil
}

// taint writes or removes a taint.
func (w *World) taint(x step.Taint) error {
	n := w.nodes[x.Node]
	if n == nil {
		if x.Remove {
			return nil
		}
		return fmt.Errorf("nodes %q not found", x.Node)
	}
	w.changeNode(n, func(o *v1.Node) {
		o.Spec.Taints = without(o.Spec.Taints, x.Taint.Key)
		if !x.Remove {
			o.Spec.Taints = append(o.Spec.Taints, x.Taint)
		}
	})
	return nil
}

// watch is the informer of a kind: changes arrive in order, some time later.
type watch struct {
	waiting []step.Input
	last    time.Duration // when the last one arrives
	serial  int
}

func (w *World) publish(kind string, in step.Input) {
	q := w.watch[kind]
	if q == nil {
		q = &watch{}
		w.watch[kind] = q
	}
	if !w.berth.running() {
		return // it will list
	}
	q.serial++
	at := w.now + w.between(w.run.Spec.API.WatchLatency, 10, 100, "watch", kind, fmt.Sprint(q.serial))
	q.last = max(q.last, at, w.faults.stalled)
	q.waiting = append(q.waiting, in)
	life := w.berth.life
	w.after(q.last-w.now, sees, func() {
		if life == w.berth.life && len(q.waiting) > 0 {
			w.berth.receive(q.waiting[0])
			q.waiting = q.waiting[1:]
		}
	})
}

func (b *berth) running() bool { return b == nil || b.up }

func (w *World) publishPod(p *pod) { w.publish("pods", step.PodSet{Pod: p.obj}) }

func (w *World) publishNode(n *node) { w.publish("nodes", step.NodeSet{Node: n.obj, Group: n.group}) }

func (w *World) publishWorkload(obj runtime.Object, gone bool) {
	for _, in := range w.workloadInput(obj, gone) {
		w.publish("workloads", in)
	}
}

// workloadInput returns what Berth's informers say of an object.
func (w *World) workloadInput(obj runtime.Object, gone bool) []step.Input {
	if d, ok := obj.(*appsv1.DaemonSet); ok && !gone {
		return []step.Input{step.DaemonSetSet{DaemonSet: d}}
	}
	x := cluster.WorkloadOf(obj)
	switch {
	case x == nil:
		return nil
	case gone:
		return []step.Input{step.WorkloadGone{Kind: x.Kind, Namespace: x.Namespace, Name: x.Name}}
	default:
		return []step.Input{step.WorkloadSet{Workload: x}}
	}
}
