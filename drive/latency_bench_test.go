package drive_test

// This file measures how long pods wait for their node while plans are made beside the core.
// It runs in real time, on two processors, as the live edge does: a loop takes Steps with what
// has arrived, and each plan is computed in a goroutine of its own.

import (
	"fmt"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berthproject/berth/core"
	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/autoscaler/nodegroup"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/drive"
	"github.com/berthproject/berth/internal/testkit"
)

const (
	podsPerSecond = 100             // that come, and as many go
	phaseTime     = 8 * time.Second // of each phase
	podsPerNode   = 30
	owners        = 200
)

// BenchmarkPlacementWhilePlanning has pods come and go in a cluster whose nodes are 40 % full:
//
//	idle      nobody plans
//	beside    nobody plans, but another goroutine computes: what the machine itself adds
//	planning  plans are made one after the other. A disruption budget of all pods allows no
//	          disruption in every other plan: so each plan is a full pass, after which all
//	          candidates are new, or all are none
//
// It reports, of each, how long pods waited for their Bind to be handed out and how long Steps
// took, and by how much the 99th percentile of the former is above idle, and above beside.
func BenchmarkPlacementWhilePlanning(b *testing.B) {
	for _, nodes := range []int{1000, 5000} {
		b.Run(fmt.Sprint(nodes, "nodes"), func(b *testing.B) {
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2))
			for b.Loop() {
				w := newBusy(b, nodes)
				w.play(phaseTime / 4) // columns are made, and memory grows
				idle := w.play(phaseTime)
				stop := compute()
				beside := w.play(phaseTime)
				stop()
				w.startPlanning()
				planning := w.play(phaseTime)
				w.stopPlanning()
				if w.removals == 0 {
					b.Fatal("no plan had a removal: the benchmark shows nothing")
				}
				idle.report(b, "idle")
				beside.report(b, "beside")
				planning.report(b, "planning")
				b.ReportMetric(ms(percentile(planning.waits, 99)-percentile(idle.waits, 99)), "p99-ms-above-idle")
				b.ReportMetric(ms(percentile(planning.waits, 99)-percentile(beside.waits, 99)), "p99-ms-above-beside")
				b.ReportMetric(float64(w.plans), "plans")
			}
		})
	}
}

// compute keeps a processor busy until it is stopped.
func compute() (stop func()) {
	var over atomic.Bool
	done := make(chan struct{})
	go func() {
		defer close(done)
		for !over.Load() {
		}
	}()
	return func() {
		over.Store(true)
		<-done
	}
}

// phase is what was measured in one phase.
type phase struct {
	waits []time.Duration // from when a pod was due to come to its Bind
	steps []time.Duration // with the planner's catching up
}

func (p *phase) report(b *testing.B, name string) {
	b.ReportMetric(ms(percentile(p.waits, 50)), "p50-ms-bind-"+name)
	b.ReportMetric(ms(percentile(p.waits, 99)), "p99-ms-bind-"+name)
	b.ReportMetric(ms(percentile(p.waits, 100)), "max-ms-bind-"+name)
	b.ReportMetric(ms(percentile(p.steps, 99)), "p99-ms-step-"+name)
	b.ReportMetric(ms(percentile(p.steps, 100)), "max-ms-step-"+name)
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// percentile returns the smallest of the times that so many percent don't exceed.
func percentile(times []time.Duration, percent int) time.Duration {
	slices.Sort(times)
	return times[max(0, (len(times)*percent+99)/100-1)]
}

// busy is the loop around a driver, and the driver's workers.
type busy struct {
	drive.Unanswered
	b     *testing.B
	d     *drive.Driver
	nodes int
	inbox chan step.Input
	wake  time.Time // of the driver
	phase *phase

	serial int                // of the next pod
	gone   int                // pods of a lower serial have left
	came   map[string]arrived // pods that have no node yet, by name

	// planning says that a plan that is asked for is made at once; else it waits in asked.
	planning bool
	asked    func()
	plans    int
	removals int // of all plans
}

type arrived struct {
	pod *v1.Pod
	at  time.Time
}

// newBusy returns a loop whose core knows the cluster, and has placed a pod of each owner: the
// first is what counting the owner's pods takes.
func newBusy(b *testing.B, nodes int) *busy {
	w := &busy{b: b, nodes: nodes, inbox: make(chan step.Input, 1<<16), came: map[string]arrived{}, phase: &phase{}}
	w.d = newDriver(b, drive.Config{Workers: w, Inbox: func(in step.Input) { w.inbox <- in },
		Core: autoscaling(func(a *core.Autoscale) { a.ScanInterval, a.Limits.Totals = time.Millisecond, nil })})
	names := testkit.Names("n", nodes)
	var in []step.Input
	for i, name := range names {
		in = append(in, step.NodeSet{Node: emptyNode(name).Zone(string(rune('a' + i%3))).Obj(), Group: "g"})
	}
	for i := range owners {
		rs := testkit.ReplicaSet(fmt.Sprint("app", i), "app", fmt.Sprint("app", i))
		replicas := int32(podsPerNode * nodes / owners)
		rs.Spec.Replicas, rs.Status.Replicas = &replicas, replicas
		in = append(in, step.WorkloadSet{Workload: cluster.WorkloadOf(rs)})
	}
	for i := range podsPerNode * nodes {
		p := w.newPod()
		p.Spec.NodeName = names[i%nodes]
		in = append(in, step.PodSet{Pod: p})
	}
	in = append(in, w.budget(), step.GroupsSet{Groups: []nodegroup.Group{{ID: "g", Max: nodes, Target: nodes, Template: emptyNode("t").Obj()}}})
	for range owners {
		in = append(in, w.arrive(time.Now()))
	}
	for w.step(in); len(w.came) > 0; {
		w.take(nil, time.Now())
	}
	runtime.GC()
	return w
}

func emptyNode(name string) *testkit.NodeBuilder {
	return testkit.Node(name).Alloc("cpu", "16", "memory", "64Gi", "pods", "110")
}

// newPod returns the next pod. There are 107 shapes, of 213 milli-CPU on average.
func (w *busy) newPod() *v1.Pod {
	owner := w.serial * 7919 % owners
	p := testkit.Pod(podName(w.serial)).Owner("apps/v1", "ReplicaSet", fmt.Sprint("app", owner)).Label("app", fmt.Sprint("app", owner)).
		Req("cpu", fmt.Sprint(160+owner%107, "m"), "memory", fmt.Sprint(640+4*(owner%107), "Mi")).Priority(int32(owner)).Obj()
	w.serial++
	return p
}

func podName(serial int) string { return fmt.Sprint("p", serial) }

// arrive has the next pod come, which was due at a time.
func (w *busy) arrive(at time.Time) step.Input {
	p := w.newPod()
	w.came[p.Name] = arrived{p, at}
	return step.PodSet{Pod: p}
}

// leave has the oldest pod go.
func (w *busy) leave() step.Input {
	uid := testkit.Pod(podName(w.gone)).Obj().UID
	w.gone++
	return step.PodGone{UID: uid}
}

// budget returns a disruption budget of all pods, which allows none to go after every other
// plan.
func (w *busy) budget() step.Input {
	b := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "all"}, Spec: policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{}}}
	if w.plans%2 == 0 {
		b.Status.DisruptionsAllowed = int32(2 * podsPerNode * w.nodes)
	}
	return step.ObjectSet{Object: b}
}

// play has pods come and go for a time.
func (w *busy) play(length time.Duration) *phase {
	w.phase = &phase{}
	start := time.Now()
	next := start
	for now := start; now.Sub(start) < length; now = time.Now() {
		var in []step.Input
		for ; !next.After(now); next = next.Add(time.Second / podsPerSecond) {
			in = append(in, w.arrive(next), w.leave())
		}
		until := next
		if !w.wake.IsZero() && w.wake.Before(until) {
			until = w.wake
		}
		w.take(in, until)
	}
	return w.phase
}

// startPlanning has plans made from now on, first the one that was asked for.
func (w *busy) startPlanning() {
	w.planning = true
	w.asked()
	w.asked = nil
}

// stopPlanning waits for the plan that is being made, and has no other made.
func (w *busy) stopPlanning() {
	for w.planning = false; w.asked == nil; {
		w.take(nil, time.Now().Add(time.Second))
	}
}

// take takes a Step with these inputs and what else has arrived. If there is none, it waits for
// one, but not beyond a time.
func (w *busy) take(in []step.Input, until time.Time) {
	if len(in) == 0 {
		timer := time.NewTimer(time.Until(until))
		select {
		case x := <-w.inbox:
			in = append(in, x)
		case <-timer.C:
		}
		timer.Stop()
	}
	for {
		select {
		case x := <-w.inbox:
			in = append(in, x)
			continue
		default:
		}
		break
	}
	w.step(in)
}

func (w *busy) step(in []step.Input) {
	for _, x := range in {
		if made, ok := x.(step.PlanMade); ok {
			w.plans++
			w.removals += len(made.Plan.Removals)
			in = append(in, w.budget())
		}
	}
	start := time.Now()
	wake, err := w.d.Step(start, in...)
	if err != nil {
		w.b.Fatal(err)
	}
	w.wake = wake
	w.phase.steps = append(w.phase.steps, time.Since(start))
}

// Bind implements drive.Workers: it is answered at once, and the API shows the pod.
func (w *busy) Bind(x step.Bind, done func(error)) {
	a := w.came[x.Name]
	w.phase.waits = append(w.phase.waits, time.Since(a.at))
	delete(w.came, x.Name)
	bound := a.pod.DeepCopy()
	bound.Spec.NodeName = x.Node
	done(nil)
	w.inbox <- step.PodSet{Pod: bound}
}

// Taint implements drive.Workers.
func (w *busy) Taint(_ step.Taint, done func(error)) { done(nil) }

// Plan implements drive.Workers as the live edge does.
func (w *busy) Plan(compute func() *autoscaler.Plan, done func(*autoscaler.Plan)) {
	begin := func() { go func() { done(compute()) }() }
	if !w.planning {
		w.asked = begin
		return
	}
	begin()
}
