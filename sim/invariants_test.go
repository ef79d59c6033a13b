package sim

import (
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/door"
	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/internal/test/testkit"
)

// This file plants in small worlds what must not be in the end, or after a Step, and has
// the checks look. Berth itself takes no Step but those that a case gives its core.

// oneGroup is a spec with a group that has a node of 4 CPUs and may have one more.
const oneGroup = `  nodeGroups: [{name: g, initial: 1, max: 2, template: {allocatable: {cpu: "4", memory: 8Gi, pods: "10"}}}]
`

// noGroups is a spec without node groups, and so without autoscaling.
const noGroups = "  end: {at: 100h}\n"

// wantViolations compares what the checks found with what they should find: the
// violations, without their times, in any order, each beginning as wanted.
func (w *World) wantViolations(t *testing.T, want ...string) {
	t.Helper()
	var got []string
	for _, v := range w.stats.Violations {
		_, what, _ := strings.Cut(v, ": ")
		got = append(got, what)
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.EqualFunc(got, want, strings.HasPrefix) {
		t.Errorf("got violations %q, want %q", got, want)
	}
}

// know feeds inputs to Berth's core, and has nothing come of what it decides.
func (w *World) know(in ...step.Input) { w.berth.core().Step(w.time(), door.Must(in...)...) }

// TestQuietWorldsAreChecked plants one thing that must not be left over, or done, when
// nothing has happened for long.
func TestQuietWorldsAreChecked(t *testing.T) {
	rested := func(w *World) { w.stats.lastChangeSeen = w.lastChange }
	for _, c := range []struct {
		name  string
		spec  string
		plant func(w *World)
		want  []string
	}{
		{"all is well", oneGroup, func(*World) {}, nil},
		{"something is still to happen", noGroups, func(w *World) { w.after(time.Hour, phaseWorld, func() {}) },
			[]string{"the world has not come to rest: 1 things are still to happen"}},
		{"Berth is down", noGroups, func(w *World) { w.berth.up = false }, []string{"Berth is down in the end"}},
		{"a node was to be removed", noGroups, func(w *World) {
			w.addNodes("n")
			_ = w.taint(step.Taint{Node: "n", Taint: v1.Taint{Key: autoscaler.ToBeDeletedTaint}})
		}, []string{"node n has kept the taint of a removal"}},
		{"an order was forgotten", oneGroup, func(w *World) { w.groups[0].target++ },
			[]string{"group g is asked for 2 instances and has 1"}},
		{"an instance never became a node", oneGroup, func(w *World) {
			w.groups[0].target++
			w.newInstance(w.groups[0], "lost")
		}, []string{"1 instances of group g never became nodes"}},
		{"a bind has no outcome", noGroups, func(w *World) {
			w.know(step.NodeSet{Node: testkit.Node("n").Obj()}, step.PodSet{Pod: testkit.Pod("p").Obj()})
		}, []string{"pod pod-p "}},
		{"a plan answered no request", oneGroup, func(w *World) { w.know(step.PlanMade{Plan: &autoscaler.Plan{Request: 99}}) }, []string{"1 plans were refused"}},
		{"Berth went on deciding", noGroups, func(w *World) { rested(w); w.stats.restDecisions = 2 },
			[]string{"2 decisions were made though nothing had happened for 10m0s"}},
		{"Berth said again and again why a node stays", oneGroup, func(w *World) { rested(w); w.stats.restStays = 3 },
			[]string{"3 times it was said of 1 nodes why they stay, though nothing had happened for 10m0s"}},
		{"Berth said why a node stays, and then another reason", oneGroup, func(w *World) { rested(w); w.stats.restStays = 2 }, nil},
		{"decisions before the last change are no harm", noGroups, func(w *World) { w.stats.restDecisions = 2; w.noteChange() }, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newTestWorld(t, c.spec)
			w.pass(time.Minute)
			c.plant(w)
			w.pass(time.Minute)
			w.checkQuiet()
			w.wantViolations(t, c.want...)
		})
	}
}

// TestPodsAreTriedEveryFiveMinutesAtMost: in the half hour since the last change the
// leftover sweep may have tried each of two pods seven times.
func TestPodsAreTriedEveryFiveMinutesAtMost(t *testing.T) {
	for attempts, want := range map[int][]string{
		14: nil,
		15: {"2 pods were tried 15 times in 30m0s in which nothing happened"},
	} {
		w := newTestWorld(t, noGroups)
		w.pass(50 * time.Hour)
		for _, name := range []string{"p", "q"} {
			w.addPod(testkit.Pod(name).Req("cpu", "5").Obj(), nil)
		}
		w.pass(30 * time.Minute)
		w.stats.lastChangeSeen, w.stats.restAttempts = w.lastChange, attempts
		w.checkQuiet()
		w.wantViolations(t, want...)
	}
}

// TestNoPodWaitsThatCouldRun has one pod wait, in worlds where it could run somewhere and
// where it could not.
func TestNoPodWaitsThatCouldRun(t *testing.T) {
	const (
		fits     = "pod default/p waits, though it would fit on node n"
		preempts = "pod default/p waits, though it could take the place of others on node n"
		grows    = "pod default/p waits, though a node more of group g would take it"
	)
	const daemon = "  workload: [{name: d, kind: DaemonSet, template: {spec: {containers: [{name: c, resources: {requests: {cpu: 1m}}}]}}}]\n"
	bound := func(cpu string, priority int32) *v1.Pod {
		return testkit.Pod("bound").Req("cpu", cpu).Priority(priority).On("n").Obj()
	}
	four := testkit.Pod("p").Req("cpu", "4").Priority(5).Obj()
	never := testkit.Pod("p").Req("cpu", "4").Priority(5).With(func(p *v1.Pod) { p.Spec.PreemptionPolicy = new(v1.PreemptNever) }).Obj()
	group := strings.Replace(oneGroup, "initial: 1, ", "", 1)
	for _, c := range []struct {
		name string
		spec string
		pod  *v1.Pod
		on   *v1.Pod // what the node n, of 4 CPUs, has already
		want []string
	}{
		{"a node has room", noGroups, four, nil, []string{fits}},
		{"no node has", noGroups, four, bound("1", 5), nil},
		{"a node has less than it requests", noGroups, testkit.Pod("p").Req("cpu", "5").Obj(), nil, nil},
		{"a node has room, and a gate holds the pod", noGroups, testkit.Pod("p").Gate("g").Obj(), nil, nil},
		{"a pod of lower priority has the room", noGroups, four, bound("1", 4), []string{preempts}},
		{"and the pod preempts none", noGroups, never, bound("1", 4), nil},
		{"even without the others there is no room", noGroups, testkit.Pod("p").Req("cpu", "5").Priority(5).Obj(), bound("1", 4), nil},
		{"a group may grow", group, four, bound("4", 5), []string{grows}},
		{"a group is at its max", strings.Replace(group, "max: 2", "max: 0", 1), four, bound("4", 5), nil},
		{"a group is out of stock", strings.Replace(group, "max: 2", "max: 2, stock: 0", 1), four, bound("4", 5), nil},
		{"a group's nodes are too small", strings.Replace(group, `"4"`, `"1"`, 1), four, bound("4", 5), nil},
		{"a DaemonSet needs the room on a new node", group + daemon,
			four, bound("4", 5), nil},
		{"it says of itself that it is nominated", noGroups, testkit.Pod("p").Req("cpu", "5").NominatedTo("n").Obj(), nil,
			[]string{`pod default/p says that it is nominated to "n", and Berth to ""`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newTestWorld(t, c.spec)
			w.addNodes("n")
			w.pass(time.Minute)
			if c.on != nil {
				w.addPod(c.on, nil)
			}
			w.addPod(c.pod, nil)
			w.pass(time.Minute)
			w.checkQuiet()
			w.wantViolations(t, c.want...)
		})
	}
}

// TestBrokenInvariantsOfTheCoreAreViolations takes a pod whose bind is under way off its node
// behind the core's back.
func TestBrokenInvariantsOfTheCoreAreViolations(t *testing.T) {
	w := newTestWorld(t, noGroups)
	w.know(step.NodeSet{Node: testkit.Node("n").Obj()}, step.PodSet{Pod: testkit.Pod("p").Obj()})
	w.checkStep(&step.Ready{})
	w.wantViolations(t)
	w.berth.core().State().Remove("pod-p")
	w.checkStep(&step.Ready{})
	w.wantViolations(t, "broken invariant: pod pod-p was given node n, and isn't there in the state")
}

// TestPlacementsOfAStepAreChecked has a Step bind a pod to a node, which Berth knows with 4
// CPUs, or doesn't know.
func TestPlacementsOfAStepAreChecked(t *testing.T) {
	for _, c := range []struct {
		name, cpu, node string
		leaving         bool
		want            []string
	}{
		{"it fits", "4", "n", false, nil},
		{"the node is too small", "5", "n", false, []string{"pod default/p on node n"}},
		{"the node is being removed", "4", "n", true, []string{"pod default/p was placed on node n, which is gone or being removed"}},
		{"the node is gone", "4", "other", false, []string{"pod default/p was placed on node other, which is gone or being removed"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newTestWorld(t, noGroups)
			w.know(step.NodeSet{Node: testkit.Node("n").Alloc("cpu", "4").Obj()}, step.PodSet{Pod: testkit.Pod("p").Req("cpu", c.cpu).On(c.node).Obj()})
			w.berth.leaving[c.node] = c.leaving
			w.checkStep(&step.Ready{Binds: []step.Bind{{Namespace: "default", Name: "p", Node: c.node}}})
			w.wantViolations(t, c.want...)
		})
	}
}
