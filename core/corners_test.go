package core_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berthproject/berth/core"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/door"
	"github.com/berthproject/berth/core/plugins"
	"github.com/berthproject/berth/core/plugins/podtopologyspread"
	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/drive"
	"github.com/berthproject/berth/internal/test/testkit"
)

// This file has what changes under running pods and under a preemption.

// followed is a core of which a test keeps track.
type followed struct {
	t      *testing.T
	c      *core.Core
	now    time.Time
	pods   map[types.UID]*v1.Pod // as the API has them
	at     map[types.UID]string  // where pods are bound to
	asked  []string              // victims that were asked to leave
	reason map[types.UID]string  // of the last condition
}

func follow(t *testing.T, o plugins.Options) *followed {
	schema := cluster.NewSchema()
	return &followed{t: t, c: testkit.Must(core.New(schema, core.DefaultConfig(plugins.Default(schema, o)))), now: time.Unix(1000, 0),
		pods: map[types.UID]*v1.Pod{}, at: map[types.UID]string{}, reason: map[types.UID]string{}}
}

// step takes Steps until nothing is left to do at this time.
func (f *followed) step(in ...step.Input) {
	f.t.Helper()
	for {
		for _, x := range in {
			switch x := x.(type) {
			case step.PodSet:
				f.pods[x.Pod.UID] = x.Pod
			case step.PodGone:
				delete(f.pods, x.UID)
			}
		}
		r := f.c.Step(f.now, door.Must(in...)...)
		in = nil
		for _, broken := range f.c.Invariants() {
			f.t.Errorf("broken invariant: %s", broken)
		}
		for _, b := range r.Binds {
			f.at[b.UID] = b.Node
			shown := f.pods[b.UID].DeepCopy()
			shown.Spec.NodeName = b.Node
			in = append(in, step.BindDone{UID: b.UID}, step.PodSet{Pod: shown})
		}
		for _, p := range r.Preemptions {
			f.asked = append(f.asked, p.Name)
		}
		for _, n := range r.Nominations {
			shown := f.pods[n.UID].DeepCopy()
			shown.Status.NominatedNodeName = n.Node
			in = append(in, step.NominationDone{UID: n.UID, Node: n.Node}, step.PodSet{Pod: shown})
		}
		for _, c := range r.Conditions {
			f.reason[c.UID] = c.Message
		}
		if in == nil && (r.NextWake.IsZero() || r.NextWake.After(f.now)) {
			return
		}
	}
}

// pass has time pass, short of the leftover sweep.
func (f *followed) pass(d time.Duration) {
	f.t.Helper()
	for end := f.now.Add(d); f.now.Before(end); {
		f.now = f.now.Add(time.Second)
		f.step()
	}
	if n := f.c.Stats().MissedWakeups; n != 0 {
		f.t.Errorf("%d pods were found schedulable by the leftover sweep", n)
	}
}

func (f *followed) want(want map[types.UID]string) {
	f.t.Helper()
	if !maps.Equal(f.at, want) {
		f.t.Errorf("pods are bound to %v, want %v; they say %v", f.at, want, f.reason)
	}
}

func nodeIn(name, zone, cpu string) step.Input {
	return step.NodeSet{Node: testkit.Node(name).Zone(zone).Alloc("cpu", cpu, "memory", "8Gi").Obj()}
}

// TestLabelsOfARunningPodCount relabels a pod that runs: those that may not be beside it are
// let in or kept out.
func TestLabelsOfARunningPodCount(t *testing.T) {
	running := func(app string) step.Input {
		return step.PodSet{Pod: testkit.Pod("running").Req("cpu", "1").Label("app", app).On("n").Obj()}
	}
	for _, c := range []struct {
		name string
		rule func(*testkit.PodBuilder) *testkit.PodBuilder // of a pod that can't be where app=web is
	}{
		{"anti-affinity", func(p *testkit.PodBuilder) *testkit.PodBuilder { return p.Apart(v1.LabelHostname, "app", "web") }},
		{"hard spread", func(p *testkit.PodBuilder) *testkit.PodBuilder {
			return p.Label("app", "web").SpreadHard(v1.LabelTopologyZone, 1, "app", "web")
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := follow(t, plugins.Options{})
			// A full node in another zone, where none of app=web is.
			f.step(nodeIn("n", "a", "4"), nodeIn("full", "b", "0"), running("web"))
			f.step(step.PodSet{Pod: c.rule(testkit.Pod("waits").Req("cpu", "1")).Obj()})
			f.want(map[types.UID]string{})
			f.pass(30 * time.Second)
			f.step(running("db"))
			f.pass(30 * time.Second)
			f.want(map[types.UID]string{"pod-waits": "n"})
			f.step(step.PodGone{UID: "pod-waits"}, running("web"))
			f.step(step.PodSet{Pod: c.rule(testkit.Pod("late").Req("cpu", "1")).Obj()})
			f.pass(30 * time.Second)
			f.want(map[types.UID]string{"pod-waits": "n"}) // and not late
		})
	}
}

func service(app string) step.Input {
	return step.WorkloadSet{Workload: cluster.WorkloadOf(testkit.Service("s", "app", app))}
}

// TestASelectorOfAServiceChanges: pods that a default constraint concerns are those that a
// Service selects now. What a core decides then is what one decides that knew no other selector.
func TestASelectorOfAServiceChanges(t *testing.T) {
	world := []step.Input{nodeIn("a1", "a", "9"), nodeIn("a2", "a", "9"), nodeIn("b1", "b", "9")}
	for i := range 6 { // b has least room, and no pod of app=web
		world = append(world, step.PodSet{Pod: testkit.Pod(fmt.Sprint("web", i)).Req("cpu", "100m").Label("app", "web").On(fmt.Sprint("a", 1+i%2)).Obj()})
	}
	world = append(world, step.PodSet{Pod: testkit.Pod("other").Req("cpu", "8").On("b1").Obj()})
	place := func(f *followed, name string) string {
		f.step(step.PodSet{Pod: testkit.Pod(name).Req("cpu", "100m").Label("app", "web").Obj()})
		at := f.at[types.UID("pod-"+name)]
		f.step(step.PodGone{UID: types.UID("pod-" + name)})
		return at[:1]
	}
	for _, o := range []struct {
		name   string
		spread podtopologyspread.Args
	}{
		{"the system's defaults", podtopologyspread.Args{}},
		{"a soft list", podtopologyspread.Args{List: true, Constraints: []v1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: v1.LabelTopologyZone, WhenUnsatisfiable: v1.ScheduleAnyway}}}},
	} {
		t.Run(o.name, func(t *testing.T) {
			f := follow(t, plugins.Options{Spread: o.spread})
			f.step(world...)
			var got, want []string
			for i, app := range []string{"web", "db", "web", "none"} {
				fresh := follow(t, plugins.Options{Spread: o.spread})
				fresh.step(append(slices.Clone(world), service(app))...)
				want = append(want, place(fresh, "p"))
				f.step(service(app))
				got = append(got, place(f, fmt.Sprint("p", i)))
			}
			if !slices.Equal(got, want) {
				t.Errorf("placed in zones %v, by cores that knew one selector %v", got, want)
			}
			if want[0] == want[1] {
				t.Errorf("the selector decides nothing here: %v", want)
			}
		})
	}
}

// TestHardDefaultConstraintsFollowServices has a pod wait for a default constraint that rejects
// nodes, while a Service comes, changes its selector and goes.
func TestHardDefaultConstraintsFollowServices(t *testing.T) {
	f := follow(t, plugins.Options{Spread: podtopologyspread.Args{List: true, Constraints: []v1.TopologySpreadConstraint{
		{MaxSkew: 1, TopologyKey: v1.LabelTopologyZone, WhenUnsatisfiable: v1.DoNotSchedule}}}})
	web := func(name string) step.Input {
		return step.PodSet{Pod: testkit.Pod(name).Req("cpu", "1").Label("app", "web").Obj()}
	}
	f.step(nodeIn("a", "a", "9"), nodeIn("full", "b", "0"), service("web"))
	f.step(web("first"), web("second"))
	f.pass(30 * time.Second)
	if len(f.at) != 1 {
		t.Fatalf("bound are %v, want one: a second would be one too many in zone a", f.at)
	}
	f.step(service("db")) // selects neither any more
	f.pass(30 * time.Second)
	f.want(map[types.UID]string{"pod-first": "a", "pod-second": "a"})

	f.step(service("web"))
	f.step(web("third"))
	f.pass(30 * time.Second)
	f.want(map[types.UID]string{"pod-first": "a", "pod-second": "a"})
	if !strings.Contains(f.reason["pod-third"], "topology spread constraints") {
		t.Errorf("the third says %q, want the constraint", f.reason["pod-third"])
	}
	f.step(step.WorkloadGone{Kind: cluster.Service, Namespace: "default", Name: "s"})
	f.pass(30 * time.Second)
	f.want(map[types.UID]string{"pod-first": "a", "pod-second": "a", "pod-third": "a"})
}

// TestAMoreImportantPodTakesTheRoomOfVictims has a pod of higher priority come at each stage of
// another's preemption. It is placed where the other's victim was; the other finds a node when
// there is one, and nothing is held on to.
func TestAMoreImportantPodTakesTheRoomOfVictims(t *testing.T) {
	high := step.PodSet{Pod: testkit.Pod("high").Req("cpu", "4").Priority(100).Obj()}
	asked := step.PreemptionDone{UID: "pod-victim", By: "pod-mid"}
	gone := step.PodGone{UID: "pod-victim"}
	for _, c := range []struct {
		name string
		in   [][]step.Input // what happens after the victim was asked to leave, Step by Step
	}{
		{"before the victim is told", [][]step.Input{{high}, {asked}, {gone}}},
		{"before the victim is told, of which the answer comes last", [][]step.Input{{high}, {gone}, {asked}}},
		{"with the answer", [][]step.Input{{asked, high}, {gone}}},
		{"while the victim terminates", [][]step.Input{{asked}, {high}, {gone}}},
		{"with the news that the victim is gone", [][]step.Input{{asked}, {high, gone}}},
		{"the other way round", [][]step.Input{{asked}, {gone, high}}},
		{"and the answer comes with both", [][]step.Input{{gone, high, asked}}},
		{"and the victim is gone before the answer", [][]step.Input{{gone, high}, {asked}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := follow(t, plugins.Options{})
			f.step(step.NodeSet{Node: testkit.Node("n").Alloc("cpu", "4", "memory", "8Gi").Obj()},
				step.PodSet{Pod: testkit.Pod("victim").Req("cpu", "4").On("n").Obj()},
				step.PodSet{Pod: testkit.Pod("mid").Req("cpu", "4").Priority(10).Obj()})
			if !slices.Equal(f.asked, []string{"victim"}) {
				t.Fatalf("asked to leave: %v", f.asked)
			}
			for _, in := range c.in {
				f.step(in...)
			}
			f.pass(time.Minute)
			f.want(map[types.UID]string{"pod-high": "n"})
			if at := f.c.State().NominatedTo("pod-mid"); at != "" {
				t.Errorf("mid is nominated to %s, which it can't get", at)
			}
			if left := f.c.Unsettled(); len(left) > 0 {
				t.Errorf("left behind: %q", left)
			}
			if len(f.asked) != 1 {
				t.Errorf("asked to leave: %v, want the victim once", f.asked)
			}
			f.step(step.NodeSet{Node: testkit.Node("m").Alloc("cpu", "4", "memory", "8Gi").Obj()})
			f.pass(time.Minute)
			f.want(map[types.UID]string{"pod-high": "n", "pod-mid": "m"})
		})
	}
}

// TestRoomTakenTwice has another scheduler place a pod where Berth has just placed one: the ledger says so
// once, and not for a pod that has room.
func TestRoomTakenTwice(t *testing.T) {
	var said []string
	d := newDriven(t, core.DefaultConfig(), drive.Unanswered{}, defaults, drive.HookFunc(func(_ time.Time, _ time.Duration, _ []step.Input, r *step.Ready) {
		for _, x := range r.Decisions {
			if x.Kind == step.RoomTakenTwice {
				said = append(said, x.Pod+" on "+x.Node+": "+x.Reason)
			}
		}
	}))
	now := time.Unix(1000, 0)
	others := func(name, cpu string) step.Input {
		p := testkit.Pod(name).Req("cpu", cpu).On("n").Obj()
		p.Spec.SchedulerName = "other"
		return step.PodSet{Pod: p}
	}
	d.stepOut(now, step.NodeSet{Node: testkit.Node("n").Alloc("cpu", "4", "memory", "8Gi").Obj()}, step.PodSet{Pod: testkit.Pod("ours").Req("cpu", "2").Obj()})
	d.stepOut(now.Add(time.Second), others("small", "1"))
	d.stepOut(now.Add(2*time.Second), others("second", "2"))
	d.stepOut(now.Add(3*time.Second), others("second", "2"))
	want := "default/second on n: scheduler other has placed it there while others were placed; the node's pods request 125 % of its cpu, and the kubelet rejects one of them"
	if len(said) != 1 || said[0] != want {
		t.Errorf("the ledger says\n%q\nwant\n%q", said, want)
	}
}
