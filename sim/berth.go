package sim

import (
	"fmt"
	"slices"
	"time"

	"github.com/berthproject/berth/core/step"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berthproject/berth/core"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/drive"
	"github.com/berthproject/berth/internal/seeded"
)

// berth is Berth in this world: the driver, core and planner of the live program,
// with workers that take virtual time. A crash takes everything but the ledger.
type berth struct {
	w        *World
	life     int // counts restarts
	up       bool
	driver   *drive.Driver
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

// core returns the core of the process that runs.
func (b *berth) core() *core.Core { return b.driver.Core() }

// start makes a fresh driver, as a new process does. Outcomes of work that an
// earlier process handed out don't reach it.
func (b *berth) start() error {
	w, life := b.w, b.life
	schema := cluster.NewSchema()
	how := w.opt.Engine
	how.Seed = w.run.Spec.Seed
	cfg := core.DefaultConfig(w.run.Scheduler.Build(schema)...)
	cfg.Engine, cfg.Queue = how, w.run.Scheduler.Queue
	if len(w.groups) > 0 {
		a := w.run.Autoscale
		cfg.Autoscale = &a
	}
	inbox := func(in step.Input) {
		if b.life == life {
			b.receive(in)
		}
	}
	hooks := append(w.opt.Hooks[:len(w.opt.Hooks):len(w.opt.Hooks)], b.ledger, drive.HookFunc(w.watchStep))
	d, err := drive.New(drive.Config{Schema: schema, Core: cfg, Expander: w.run.Expander, Workers: workers{b}, Inbox: inbox, Hooks: hooks})
	if err != nil {
		return err
	}
	b.driver, b.up, b.inbox, b.wake = d, true, nil, w.now
	if cfg.Autoscale != nil {
		period := max(cfg.Autoscale.ScanInterval/2, tick)
		var look func()
		look = func() {
			if b.life == life {
				w.callListGroups()
				w.afterInBackground(period, phaseCalls, look)
			}
		}
		w.afterInBackground(0, phaseCalls, look)
	}
	return nil
}

// watchStep keeps the world's own books of a Step.
func (w *World) watchStep(_ time.Time, _ time.Duration, _ []step.Input, r *step.Ready) {
	if w.opt.Explain != "" && slices.ContainsFunc(r.Decisions, func(d step.Decision) bool { return d.Pod == w.opt.Explain }) {
		w.explain()
	}
	w.stats.decided(r.Decisions)
	if w.opt.Check {
		w.checkStep(r)
	}
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
	w.noteChange()
	w.after(down, phaseWorld, func() {
		if err := b.start(); err != nil {
			w.violation("Berth does not start again: %v", err)
			return
		}
		b.list()
		w.noteChange()
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
		if !p.ended {
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
		wake, err := b.driver.Step(w.time(), in...)
		if err != nil {
			return err
		}
		b.wake = -1
		if !wake.IsZero() {
			b.wake = max(wake.Sub(Epoch), w.now)
			if b.wake > w.now {
				life := b.life
				w.afterInBackground(b.wake-w.now, phaseWatch, func() {
					if life == b.life && b.up && b.wake <= w.now {
						b.wake = w.now
					}
				})
			}
		}
	}
	return nil
}

// condition writes a pod's PodScheduled condition.
func (w *World) condition(x step.Condition) error {
	p := w.pods[x.UID]
	if p == nil || p.ended {
		return fmt.Errorf("pods %q not found", x.Name)
	}
	if p.obj.Spec.NodeName == "" {
		w.changePod(p, func(o *v1.Pod) {
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
	w.changePod(p, func(o *v1.Pod) {
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
	if p == nil || p.ended {
		return fmt.Errorf("pods %q not found", x.Name)
	}
	w.changePod(p, func(o *v1.Pod) { o.Status.NominatedNodeName = x.Node })
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
		o.Spec.Taints = withoutTaint(o.Spec.Taints, x.Taint.Key)
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
	w.after(q.last-w.now, phaseWatch, func() {
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
