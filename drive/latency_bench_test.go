package drive_test

// This file measures how long pods wait for their node while plans are made beside the core.
// It runs in real time, on two processors, as the live edge does: a loop takes Steps with what
// has arrived, and each plan is computed in a goroutine of its own. Pods come through a pipe from
// another process, as they come from the API: a timer of this process would fire up to 10 ms
// late during garbage collection, which looks for what arrived on connections but for no timer.

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berthproject/berth/core"
	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/autoscaler/nodegroup"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/drive"
	"github.com/berthproject/berth/internal/background"
	"github.com/berthproject/berth/internal/test/testkit"
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
//	planning  plans are made one after the other. A disruption budget of all pods allows no
//	          disruption in every other plan: so each plan is a full pass, after which all
//	          candidates are new, or all are none
//	beside    nobody plans, but goroutines compute as long as plans took and allocate what they
//	          allocated: what two processors and the garbage collector add to any such program
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
				w.startPlanning()
				planning := w.play(phaseTime)
				w.stopPlanning()
				if w.removals == 0 {
					b.Fatal("no plan had a removal: the benchmark shows nothing")
				}
				stop := compute(phaseTime/time.Duration(w.plans), (planning.allocated-idle.allocated)/uint64(w.plans))
				beside := w.play(phaseTime)
				stop()
				idle.report(b, "idle")
				planning.report(b, "planning")
				beside.report(b, "beside")
				b.ReportMetric(ms(percentile(planning.waits, 99)-percentile(idle.waits, 99)), "p99-ms-above-idle")
				b.ReportMetric(ms(percentile(planning.waits, 99)-percentile(beside.waits, 99)), "p99-ms-above-beside")
				b.ReportMetric(float64(w.plans), "plans")
			}
		})
	}
}

// piece is what compute allocates: some pointers, as most of what a plan allocates has.
type piece [16]*int

// compute keeps a processor busy until it is stopped, by one goroutine after the other. Each
// takes so long, and allocates so many bytes on the way.
func compute(length time.Duration, bytes uint64) (stop func()) {
	const rest = 100 * time.Microsecond // between two pieces, at least
	pieces := int(bytes / uint64(unsafe.Sizeof(piece{})))
	perRest := pieces/int(length/rest) + 1
	var over atomic.Bool
	done := make(chan struct{})
	go func() {
		defer close(done)
		for !over.Load() {
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				var last *piece
				left := pieces
				for start := time.Now(); time.Since(start) < length; {
					for range min(left, perRest) {
						last = new(piece)
						left--
					}
					for again := time.Now(); time.Since(again) < rest; {
					}
				}
				runtime.KeepAlive(last)
			}()
			<-ended
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

	allocated uint64 // bytes
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

	templates [owners]*v1.Pod
	serial    int                // of the next pod
	gone      int                // pods of a lower serial have left
	came      map[string]arrived // pods that have no node yet, by name

	// planning says that a plan that is asked for is made at once; otherwise it waits in asked.
	planning bool
	asked    func()
	planner  *background.Worker
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
	w := &busy{b: b, nodes: nodes, inbox: make(chan step.Input, 1<<16), came: map[string]arrived{}, phase: &phase{}, planner: background.Start(b.Context())}
	w.d = newDriver(b, drive.Config{Workers: w, Yield: w.planner.Yield, Inbox: func(in step.Input) { w.inbox <- in },
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
		w.wait()
	}
	runtime.GC()
	return w
}

func emptyNode(name string) *testkit.NodeBuilder {
	return testkit.Node(name).Alloc("cpu", "16", "memory", "64Gi", "pods", "110")
}

// newPod returns the next pod, which shares with the others of its owner what the caches of the live
// edge have such pods share. There are 107 shapes, of 213 milli-CPU on average.
func (w *busy) newPod() *v1.Pod {
	owner := w.serial * 7919 % owners
	if w.templates[owner] == nil {
		w.templates[owner] = testkit.Pod("").Owner("apps/v1", "ReplicaSet", fmt.Sprint("app", owner)).Label("app", fmt.Sprint("app", owner)).
			Req("cpu", fmt.Sprint(160+owner%107, "m"), "memory", fmt.Sprint(640+4*(owner%107), "Mi")).Priority(int32(owner)).Obj()
	}
	p := *w.templates[owner]
	p.Name, p.UID = podName(w.serial), podUID(w.serial)
	w.serial++
	return &p
}

func podName(serial int) string { return fmt.Sprint("p", serial) }

func podUID(serial int) types.UID { return types.UID("pod-" + podName(serial)) }

// arrive has the next pod come, which was due at a time.
func (w *busy) arrive(at time.Time) step.Input {
	p := w.newPod()
	w.came[p.Name] = arrived{p, at}
	return step.PodSet{Pod: p}
}

// leave has the oldest pod go.
func (w *busy) leave() step.Input {
	uid := podUID(w.gone)
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
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	ticks, stop := ticker(w.b)
	defer stop()
	over := time.After(length)
	for {
		var in []step.Input
		timer := time.NewTimer(w.untilWake())
		select {
		case <-over:
			runtime.ReadMemStats(&after)
			w.phase.allocated = after.TotalAlloc - before.TotalAlloc
			return w.phase
		case due := <-ticks:
			in = append(in, w.arrive(due), w.leave())
		case x := <-w.inbox:
			in = append(in, x)
		case <-timer.C:
		}
		timer.Stop()
		w.take(in)
	}
}

// untilWake returns how long the driver can be left alone when nothing arrives.
func (w *busy) untilWake() time.Duration {
	if w.wake.IsZero() {
		return time.Hour
	}
	return time.Until(w.wake)
}

// tickerEnv says that this process is the one that ticker starts.
const tickerEnv = "BERTH_TEST_TICKER"

func init() {
	if os.Getenv(tickerEnv) == "" {
		return
	}
	for next := time.Now(); ; next = next.Add(time.Second / podsPerSecond) {
		time.Sleep(time.Until(next))
		if _, err := fmt.Println(time.Now().UnixNano()); err != nil {
			os.Exit(0)
		}
	}
}

// ticker starts a process that says when a pod is due, and returns these times until it is
// stopped.
func ticker(b *testing.B) (ticks <-chan time.Time, stop func()) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), tickerEnv+"=1")
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	times := make(chan time.Time, 1<<10)
	read := make(chan struct{})
	go func() {
		defer close(read)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			at, err := strconv.ParseInt(lines.Text(), 10, 64)
			if err != nil {
				panic(fmt.Sprintf("the ticker says %q", lines.Text()))
			}
			times <- time.Unix(0, at)
		}
	}()
	return times, func() {
		_ = cmd.Process.Kill()
		<-read
		_ = cmd.Wait()
	}
}

// startPlanning makes plans from now on, first the one that was asked for.
func (w *busy) startPlanning() {
	w.planning = true
	w.asked()
	w.asked = nil
}

// stopPlanning waits for the plan that is being made, and has no other made.
func (w *busy) stopPlanning() {
	for w.planning = false; w.asked == nil; {
		w.wait()
	}
}

// wait takes a Step when something has arrived, or the driver wants it.
func (w *busy) wait() {
	timer := time.NewTimer(w.untilWake())
	defer timer.Stop()
	select {
	case x := <-w.inbox:
		w.take([]step.Input{x})
	case <-timer.C:
		w.take(nil)
	}
}

// take takes a Step with these inputs and what else has arrived.
func (w *busy) take(in []step.Input) {
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
	bound := *a.pod
	bound.Spec.NodeName = x.Node
	done(nil)
	w.inbox <- step.PodSet{Pod: &bound}
}

// Taint implements drive.Workers.
func (w *busy) Taint(_ step.Taint, done func(error)) { done(nil) }

// Plan implements drive.Workers as the live edge does.
func (w *busy) Plan(compute func() *autoscaler.Plan, done func(*autoscaler.Plan)) {
	begin := func() { w.planner.Do(w.b.Context(), func() { done(compute()) }) }
	if !w.planning {
		w.asked = begin
		return
	}
	begin()
}
