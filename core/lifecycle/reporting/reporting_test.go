package reporting_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/framework"
	"github.com/berthproject/berth/core/lifecycle/reporting"
	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/internal/test/lifecycletest"
	"github.com/berthproject/berth/internal/test/testkit"
	"github.com/berthproject/berth/internal/test/testkit/script"
)

// world is a machine with some pods and nodes.
type world struct {
	*lifecycletest.Bench
	m    *reporting.Machine
	pods lifecycletest.Pods[reporting.Pod]
	seen cluster.Seq // of the state's changes, by the machine
}

func newWorld(podsPerClass int) *world {
	w := &world{Bench: lifecycletest.NewBench(), pods: lifecycletest.Pods[reporting.Pod]{}}
	w.m = reporting.New(w.Scheduler, w.pods, podsPerClass)
	return w
}

func (w *world) node(name, cpu string) {
	w.Node(testkit.Node(name).Alloc("cpu", cpu, "memory", "8Gi").Obj())
}

// add queues a pod.
func (w *world) add(obj *v1.Pod) *reporting.Pod {
	w.Queued(obj)
	w.pods[obj.UID] = &reporting.Pod{}
	return w.pods[obj.UID]
}

// try tries the pods of the queue, which must not fit, and reports that of each.
func (w *world) try(t interface{ Fatalf(string, ...any) }) {
	for item := w.Queue.Pop(w.Now); item != nil; item = w.Queue.Pop(w.Now) {
		d := w.Scheduler.Decide(item.Pod(), item.Class(), w.Queue)
		if d.Node != nil {
			t.Fatalf("%s fits on %s", item.Pod().Name(), d.Node.Name)
		}
		w.Queue.SetClass(item, d.Class)
		w.Queue.Reject(w.Now, item, d.Diagnosis)
		w.m.PodUnschedulable(w.Turn, w.pods[item.Pod().UID], item.Pod().Object, v1.PodReasonUnschedulable, d.Message)
	}
}

// advance is a Step of the core as far as it concerns the machine.
func (w *world) advance() {
	changes, known := w.State.Since(w.seen)
	if w.seen = w.State.Head(); !known {
		w.m.AnythingChanged()
	}
	w.m.NodesChanged(changes)
	w.m.Advance(w.Turn)
}

// rest has Steps follow each other until the machine doesn't want to be woken any more.
func (w *world) rest() {
	w.advance()
	for at := w.m.NextWake(); !at.IsZero(); at = w.m.NextWake() {
		if at.After(w.Now) {
			w.Now = at
		}
		w.advance()
	}
}

// TestScripts runs testdata/scripts/*.txt. After each command it prints what is said, and
// when the machine wants to be woken. The commands:
//
//	node NAME cpu=4 [tainted] | node-gone NAME
//	pod NAME cpu=4                    a pod comes, and finds no node
//	runs POD node=n1 cpu=1            a pod is on a node
//	error POD                         an error, the input, keeps the pod from its node
//	gated POD [said]                  a gate holds the pod, which the API server has said or not
//	scale-up POD | no-scale-up POD    a plan helps the pod, or doesn't; the input is how, or why
//	odd-pod POD | odd-node NODE       a value, the input, can't be taken as it stands
//	pod-gone POD
//	tick DURATION [unknown]           time passes, and of changes isn't known which there were; Advance
func TestScripts(t *testing.T) {
	datadriven.Walk(t, "testdata/scripts", func(t *testing.T, path string) {
		w := newWorld(reporting.RefreshedPods)
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string { return w.run(t, d) })
	})
}

func (w *world) run(t *testing.T, d *datadriven.TestData) string {
	args := script.NewArgs(t, d)
	name := args.Name()
	obj := testkit.Pod(name)
	problems := []cluster.Problem{{Field: "spec.field", Value: d.Input, Taken: "0"}}
	switch d.Cmd {
	case "node":
		n := testkit.Node(name).Alloc("cpu", args.String("cpu", "4"), "memory", "8Gi")
		if args.Flag("tainted") {
			n.Taint("reserved", "", v1.TaintEffectNoSchedule)
		}
		w.Node(n.Obj())
	case "node-gone":
		w.State.RemoveNode(name)
		w.m.NodeGone(name)
	case "pod":
		w.add(obj.Req("cpu", args.String("cpu", "4")).Obj())
		w.try(t)
	case "runs":
		w.State.Place(w.State.Schema.ParsePod(obj.Req("cpu", args.String("cpu", "1")).Obj()), args.String("node", "n1"))
	case "error":
		w.m.PodUnschedulable(w.Turn, w.pods[obj.UID], obj.Obj(), "SchedulerError", d.Input)
	case "gated":
		if args.Flag("said") {
			obj.Status.Conditions = []v1.PodCondition{{Type: v1.PodScheduled, Status: v1.ConditionFalse, Reason: v1.PodReasonSchedulingGated}}
		}
		if w.pods[obj.UID] == nil {
			w.add(obj.Gate(d.Input).Obj())
		}
		w.m.PodGated(w.Turn, w.pods[obj.UID], obj.Obj(), &framework.Reason{Plugin: args.String("by", "SchedulingGates"), Messages: []string{d.Input}})
	case "scale-up":
		w.m.TriggeredScaleUp(w.Turn, w.pods[obj.UID], obj.Obj(), d.Input)
	case "no-scale-up":
		w.m.NotTriggeredScaleUp(w.Turn, w.pods[obj.UID], obj.Obj(), d.Input)
	case "odd-pod":
		w.pods[obj.UID] = &reporting.Pod{}
		w.m.PodProblems(w.Turn, obj.Obj(), problems)
	case "odd-node":
		w.m.NodeProblems(w.Turn, testkit.Node(name).Obj(), problems)
	case "pod-gone":
		w.Queue.Remove(obj.UID)
		delete(w.pods, obj.UID)
		w.m.PodGone(obj.UID)
	case "tick":
		if err := w.Pass(name); err != nil {
			d.Fatalf(t, "%v", err)
		}
		if args.Flag("unknown") {
			w.seen = w.State.Head()
			w.m.AnythingChanged()
		}
		w.advance()
	default:
		d.Fatalf(t, "unknown command %q", d.Cmd)
	}
	args.Done()
	r := w.Flush()
	out := lifecycletest.Text(&r)
	if at := w.m.NextWake(); !at.IsZero() {
		out += fmt.Sprintf("next wake in %s\n", at.Sub(w.Now))
	}
	for _, s := range append(append(w.m.Unsettled(), w.m.Invariants()...), w.m.InvariantsIn(w.State)...) {
		out += s + "\n"
	}
	if out == "" {
		return "nothing is said\n"
	}
	return out
}

// TestRefreshIsLimited has more classes and pods wait than a Step may refresh.
func TestRefreshIsLimited(t *testing.T) {
	for _, c := range []struct {
		name          string
		podsPerClass  int
		classes, each int
		want          []int // conditions that each Step writes
	}{
		{"four classes in a Step", 100, 6, 3, []int{12, 6, 0}},
		{"so many pods of each", 100, 1, 120, []int{100, 0}},
		{"none beside another scheduler", 0, 6, 3, []int{0, 0, 0}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(c.podsPerClass)
			w.node("n", "1")
			for class := range c.classes {
				for k := range c.each {
					w.add(testkit.Pod(fmt.Sprint("p", class, "-", k)).Req("cpu", fmt.Sprint(10+class)).Obj())
				}
			}
			w.try(t)
			w.rest()
			w.Flush()
			w.Node(testkit.Node("another").Alloc("cpu", "1").Taint("reserved", "", v1.TaintEffectNoSchedule).Obj())
			w.Now = w.Now.Add(time.Minute)
			for i, want := range c.want {
				w.advance()
				r := w.Flush()
				if got := len(r.Conditions); got != want {
					t.Errorf("Step %d wrote %d conditions, want %d", i, got, want)
				}
				for _, x := range r.Conditions {
					if !strings.HasPrefix(x.Message, "0/2 nodes") {
						t.Errorf("a refreshed message says %q, of a cluster with 2 nodes", x.Message)
					}
				}
				if more := i+1 < len(c.want)-1; more != w.m.NextWake().Equal(w.Now) {
					t.Errorf("after Step %d the next wake is %s, now is %s; classes are left: %t", i, w.m.NextWake(), w.Now, more)
				}
			}
		})
	}
}

// TestPropertyMessagesEndCurrent lets nodes come, change and go while pods of several
// classes come to wait. Some time after the last change every pod says what is true of the
// cluster then, and nothing is left to be said.
func TestPropertyMessagesEndCurrent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(reporting.RefreshedPods)
		for k := range rapid.IntRange(1, 30).Draw(t, "events") {
			node := fmt.Sprint("n", rapid.IntRange(0, 3).Draw(t, "node"))
			switch rapid.IntRange(0, 3).Draw(t, "event") {
			case 0:
				w.State.RemoveNode(node)
			case 1:
				w.node(node, fmt.Sprint(rapid.IntRange(1, 4).Draw(t, "cpu")))
			case 2:
				w.Node(testkit.Node(node).Alloc("cpu", "40", "memory", "8Gi").Cordon().Obj())
			case 3:
				w.add(testkit.Pod(fmt.Sprint("p", k)).Req("cpu", fmt.Sprint(rapid.IntRange(5, 15).Draw(t, "request"))).Obj())
				w.try(t)
			}
			w.Now = w.Now.Add(time.Duration(rapid.IntRange(0, 12).Draw(t, "seconds")) * time.Second)
			w.advance()
		}
		w.rest()
		for _, class := range w.Queue.Waiting() {
			want := w.Scheduler.Refreshed(class.Class(), class.Diagnosis()).Message()
			for _, item := range w.Queue.Unnominated(class.Class()) {
				if got := w.pods[item.Pod().UID].Condition(); got != want {
					t.Errorf("%s says\n%s, and what is true is\n%s", item.Pod().Name(), got, want)
				}
			}
		}
		if left := append(w.m.Unsettled(), w.m.Invariants()...); left != nil {
			t.Errorf("left behind: %q", left)
		}
	})
}

// TestWhatIsSaidEndsWithItsObject checks that nothing is remembered of objects that are
// gone, so that another of the same name is reported.
func TestWhatIsSaidEndsWithItsObject(t *testing.T) {
	w := newWorld(0)
	odd := []cluster.Problem{{Field: "f", Value: "1e99", Taken: "0"}}
	say := func() int {
		w.m.NodeProblems(w.Turn, testkit.Node("n").Obj(), odd)
		w.pods["pod-p"] = &reporting.Pod{}
		w.m.PodProblems(w.Turn, testkit.Pod("p").Obj(), odd)
		r := w.Flush()
		return len(r.Events)
	}
	if got := say(); got != 2 {
		t.Errorf("%d events, want one for the node and one for the pod", got)
	}
	if got := say(); got != 0 {
		t.Errorf("the same was said again: %d events", got)
	}
	w.m.NodeGone("n")
	delete(w.pods, "pod-p")
	if got := w.m.InvariantsIn(w.State); len(got) != 1 {
		t.Errorf("what is remembered of a pod that is gone isn't found: %q", got)
	}
	w.m.PodGone(types.UID("pod-p"))
	if got := w.m.InvariantsIn(w.State); got != nil {
		t.Errorf("broken invariants: %q", got)
	}
	if got := say(); got != 2 {
		t.Errorf("%d events about new objects, want 2", got)
	}
	if got := w.m.BadObjects(); got != 4 {
		t.Errorf("%d objects are counted, want 4", got)
	}
}

// TestEventsAreFromWhoSpeaks: a pod's scheduler says that it found no node, the autoscaler whether a
// node group would help, and Berth that it can't read a value.
func TestEventsAreFromWhoSpeaks(t *testing.T) {
	w := newWorld(0)
	p, obj := &reporting.Pod{}, testkit.Pod("p").With(func(p *v1.Pod) { p.Spec.SchedulerName = "packing" }).Obj()
	w.m.PodUnschedulable(w.Turn, p, obj, v1.PodReasonUnschedulable, "0/1 nodes are available")
	w.m.NotTriggeredScaleUp(w.Turn, p, obj, "no node group")
	w.m.TriggeredScaleUp(w.Turn, p, obj, "g 1->2")
	w.m.PodProblems(w.Turn, obj, []cluster.Problem{{Field: "f", Value: "1e99", Taken: "0"}})
	w.m.NodeProblems(w.Turn, testkit.Node("n").Obj(), []cluster.Problem{{Field: "f", Value: "1e99", Taken: "0"}})
	r := w.Flush()
	got := []string{r.Conditions[0].Event.Reporter}
	for i := range r.Events {
		got = append(got, r.Events[i].Reporter)
	}
	if want := []string{"packing", step.Autoscaler, step.Autoscaler, step.Berth, step.Berth}; !slices.Equal(got, want) {
		t.Errorf("events are from %q, want %q", got, want)
	}
}

// TestAConditionIsOfTheGenerationThatWasTried and not of the one before.
func TestAConditionIsOfTheGenerationThatWasTried(t *testing.T) {
	w := newWorld(0)
	p, obj := &reporting.Pod{}, testkit.Pod("p").Obj()
	for obj.Generation = 1; obj.Generation < 3; obj.Generation++ {
		w.m.PodUnschedulable(w.Turn, p, cluster.Trim(obj), v1.PodReasonUnschedulable, fmt.Sprint("try ", obj.Generation))
		if r := w.Flush(); len(r.Conditions) != 1 || r.Conditions[0].Generation != obj.Generation {
			t.Errorf("of generation %d the conditions are %+v", obj.Generation, r.Conditions)
		}
	}
}

// TestTransitionTimeMovesOnlyWithTheStatus has a pod's condition rewritten: it says since when
// the API shows the pod as not scheduled, or since when it was first said.
func TestTransitionTimeMovesOnlyWithTheStatus(t *testing.T) {
	w := newWorld(0)
	p, obj := &reporting.Pod{}, testkit.Pod("p").Obj()
	since := func(message string) time.Time {
		w.Now = w.Now.Add(time.Minute)
		w.m.PodUnschedulable(w.Turn, p, cluster.Trim(obj), v1.PodReasonUnschedulable, message)
		r := w.Flush()
		return r.Conditions[0].Since
	}
	first := since("one")
	if first != w.Now {
		t.Errorf("the first condition is since %s, now is %s", first, w.Now)
	}
	if got := since("two"); got != first {
		t.Errorf("the second condition is since %s, the first since %s", got, first)
	}
	shown := metav1.NewTime(time.Unix(500, 0)) // another process has said it before
	obj.Status.Conditions = []v1.PodCondition{{Type: v1.PodScheduled, Status: v1.ConditionFalse, LastTransitionTime: shown}}
	if got := since("three"); !got.Equal(shown.Time) {
		t.Errorf("the third condition is since %s, the API shows it since %s", got, shown)
	}
}
