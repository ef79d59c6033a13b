package core_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berthproject/berth/core"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/door"
	"github.com/berthproject/berth/core/framework"
	"github.com/berthproject/berth/core/plugins"
	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/internal/test/testkit"
)

// licences is a Reserver that has so many.
type licences struct{ left int }

func (*licences) Name() string { return "licences" }

func (x *licences) Reserve(*cluster.Pod, *cluster.Node) *framework.Reason {
	if x.left == 0 {
		return &framework.Reason{Plugin: x.Name(), Messages: []string{"no licence is left"}}
	}
	x.left--
	return nil
}

func (x *licences) Unreserve(*cluster.Pod, string, framework.WaitingPods) { x.left++ }

// groupWorld is a core with a profile, and nodes in two zones.
type groupWorld struct {
	*core.Core
	t   *testing.T
	now time.Time
}

func newGroupWorld(t *testing.T, change func(*framework.Profile)) *groupWorld {
	w := emptyGroupWorld(t, change)
	for i := range 4 {
		w.step(step.NodeSet{Node: testkit.Node(fmt.Sprint("n", i)).Alloc("cpu", "4", "memory", "8Gi").Zone(fmt.Sprint("z", i/2)).Obj()})
	}
	return w
}

// emptyGroupWorld is a core that has taken no Step.
func emptyGroupWorld(t *testing.T, change func(*framework.Profile)) *groupWorld {
	schema := cluster.NewSchema()
	profile := plugins.Default(schema, plugins.Options{})
	change(profile)
	c, err := core.New(schema, core.DefaultConfig(profile))
	if err != nil {
		t.Fatal(err)
	}
	return &groupWorld{c, t, time.Unix(1000, 0)}
}

// step runs a Step, checks the invariants, and returns the names of the pods to be bound.
func (w *groupWorld) step(in ...step.Input) (binds []string) {
	w.t.Helper()
	r := w.Step(w.now, door.Must(in...)...)
	for _, b := range r.Binds {
		binds = append(binds, b.Name)
	}
	if broken := w.Invariants(); broken != nil {
		w.t.Errorf("broken invariants: %q", broken)
	}
	return binds
}

// members are pods of the group gang.
func members(names ...string) (in []step.Input) {
	for _, name := range names {
		in = append(in, step.PodSet{Pod: testkit.Pod(name).Req("cpu", "1").PodGroup("gang").Obj()})
	}
	return in
}

// placed returns how many members are on nodes in the state.
func (w *groupWorld) placed() int {
	return w.State().PlacedMembers(cluster.PodGroupKey{Namespace: "default", Name: "gang"})
}

// TestAGroupIsTriedAgainOnlyForWhatMayHelp: of a group with one member too many the others are bound, and
// shown running, and the group's condition is written: it isn't tried again for any of that. When one of
// them goes, it is.
func TestAGroupIsTriedAgainOnlyForWhatMayHelp(t *testing.T) {
	w := newGroupWorld(t, func(*framework.Profile) {})
	tried := func(in ...step.Input) (n int) {
		w.now = w.now.Add(20 * time.Second) // no backoff delays it, and no sweep comes
		r := w.Step(w.now, door.Must(in...)...)
		for i := range r.Decisions {
			if r.Decisions[i].PodGroup != "" {
				n++
			}
		}
		return n
	}
	member := func(name string) *testkit.PodBuilder { return testkit.Pod(name).Req("cpu", "3").PodGroup("gang") }
	group := testkit.PodGroup("gang", 0, "")
	in := []step.Input{step.ObjectSet{Object: group}}
	for i := range 5 {
		in = append(in, step.PodSet{Pod: member(fmt.Sprint("p", i)).Obj()})
	}
	if n := tried(in...); n != 1 || w.placed() != 4 {
		t.Fatalf("the group is tried %d times, and %d members have nodes; want 1, and 4", n, w.placed())
	}
	tried()
	for i := range 4 {
		n, _ := w.State().Placed(types.UID(fmt.Sprint("pod-p", i)))
		bound := member(fmt.Sprint("p", i)).On(w.State().Node(n).Name).Obj()
		if n := tried(step.BindDone{UID: bound.UID}, step.PodSet{Pod: bound}); n != 0 {
			t.Errorf("when %s is bound, the group is tried %d times", bound.Name, n)
		}
		runs := bound.DeepCopy()
		runs.Status.Phase, runs.Status.StartTime = v1.PodRunning, &metav1.Time{Time: w.now}
		if n := tried(step.PodSet{Pod: runs}); n != 0 {
			t.Errorf("when %s runs, the group is tried %d times", bound.Name, n)
		}
	}
	scheduled := group.DeepCopy()
	scheduled.Status.Conditions = []metav1.Condition{{Type: schedulingv1beta1.PodGroupInitiallyScheduled, Status: metav1.ConditionTrue, Reason: "Scheduled"}}
	if n := tried(step.ObjectSet{Object: scheduled}); n != 0 {
		t.Errorf("when its condition is written, the group is tried %d times", n)
	}
	if n := tried(step.PodGone{UID: "pod-p0"}); n != 1 || w.placed() != 4 {
		t.Errorf("when a member is gone, the group is tried %d times, and %d members have nodes; want 1, and 4", n, w.placed())
	}
}

// TestAGangThatHasBegunGoesFirst: after a crash in which one of three members was bound, the others get
// nodes before pods that have waited for longer.
func TestAGangThatHasBegunGoesFirst(t *testing.T) {
	w := newGroupWorld(t, func(*framework.Profile) {})
	member := func(name string) *testkit.PodBuilder { return testkit.Pod(name).Req("cpu", "4").PodGroup("gang") }
	binds := w.step(
		step.PodSet{Pod: testkit.Pod("x").Req("cpu", "4").Obj()}, step.PodSet{Pod: testkit.Pod("y").Req("cpu", "4").Obj()},
		step.PodSet{Pod: member("a").On("n0").Obj()}, step.PodSet{Pod: member("b").Obj()}, step.PodSet{Pod: member("c").Obj()},
		step.ObjectSet{Object: testkit.PodGroup("gang", 3, "")})
	if !slices.Equal(binds, []string{"b", "c", "x"}) {
		t.Errorf("%q are bound, want b and c, and then x", binds)
	}
	// Once it is whole, those that come to it wait for their turn.
	w.step(step.NodeSet{Node: testkit.Node("n4").Alloc("cpu", "4", "memory", "8Gi").Obj()})
	binds = w.step(step.PodSet{Pod: member("d").Obj()}, step.NodeSet{Node: testkit.Node("n5").Alloc("cpu", "4", "memory", "8Gi").Obj()})
	if !slices.Equal(binds, []string{"d"}) || w.placed() != 4 {
		t.Errorf("%q are bound, and %d members have nodes; want d, and 4", binds, w.placed())
	}
}

// TestThePlaceOfAMemberWhoseBindFailsIsKept: while it backs off nobody of its priority gets the place;
// it is bound there, or, when it isn't within the time for which members wait, others get the place.
func TestThePlaceOfAMemberWhoseBindFailsIsKept(t *testing.T) {
	for _, inTime := range []bool{true, false} {
		w := newGroupWorld(t, func(*framework.Profile) {})
		member := func(name string) *testkit.PodBuilder { return testkit.Pod(name).Req("cpu", "4").PodGroup("gang") }
		in := []step.Input{step.ObjectSet{Object: testkit.PodGroup("gang", 4, "")}}
		for _, name := range []string{"a", "b", "c", "d"} {
			in = append(in, step.PodSet{Pod: member(name).Obj()})
		}
		if binds := w.step(in...); len(binds) != 4 {
			t.Fatalf("%q are bound, want all four", binds)
		}
		n, _ := w.State().Placed("pod-a")
		node := w.State().Node(n).Name
		other := step.PodSet{Pod: testkit.Pod("other").Req("cpu", "4").Obj()}
		if binds := w.step(step.BindDone{UID: "pod-a", Err: errors.New("refused")}, other); len(binds) > 0 || w.State().NominatedTo("pod-a") != node {
			t.Fatalf("after the failure %q are bound, and a is nominated to %q; want none, and %s", binds, w.State().NominatedTo("pod-a"), node)
		}
		if !inTime { // it can't be tried
			w.step(step.ObjectGone{Kind: cluster.PodGroupKind, Namespace: "default", Name: "gang"})
			w.now = w.now.Add(4 * time.Minute)
			if binds := w.step(); len(binds) > 0 {
				t.Errorf("after 4 minutes %q are bound, want none", binds)
			}
		}
		w.now = w.now.Add(2 * time.Minute)
		want := map[bool]string{true: "a", false: "other"}[inTime]
		if binds := w.step(); !slices.Equal(binds, []string{want}) {
			t.Errorf("in time %t: %q are bound, want %s", inTime, binds, want)
		}
	}
}

// TestMembersWaitForOneThatIsRefused: while a plugin refuses one member, no member is bound, and the
// others keep their nodes; if the one gets a node in time all are bound, and otherwise none keeps its own.
func TestMembersWaitForOneThatIsRefused(t *testing.T) {
	for _, inTime := range []bool{true, false} {
		x := &licences{left: 2}
		w := newGroupWorld(t, func(p *framework.Profile) { p.Reservers = append(p.Reservers, x) })
		w.step(step.ObjectSet{Object: testkit.PodGroup("gang", 3, "")})
		if binds := w.step(members("a", "b", "c")...); binds != nil || w.placed() != 2 {
			t.Fatalf("%q are bound, and %d have nodes; want none, and 2", binds, w.placed())
		}
		if inTime {
			x.left++
			w.now = w.now.Add(time.Minute)
			binds := w.step()
			if slices.Sort(binds); !slices.Equal(binds, []string{"a", "b", "c"}) || w.placed() != 3 {
				t.Errorf("with a licence more %q are bound, want all", binds)
			}
			continue
		}
		w.now = w.now.Add(4 * time.Minute)
		if binds := w.step(); binds != nil || w.placed() != 2 {
			t.Errorf("after 4 minutes %q are bound, and %d have nodes; want none, and 2", binds, w.placed())
		}
		w.now = w.now.Add(2 * time.Minute)
		if binds := w.step(); binds != nil {
			t.Errorf("after 6 minutes %q are bound, want none", binds)
		}
		if w.placed() > 0 {
			w.now = w.now.Add(10 * time.Minute)
			w.step()
		}
		if x.left+w.placed() != 2 {
			t.Errorf("%d members have nodes, and %d licences are left", w.placed(), x.left)
		}
	}
}

// TestAMemberWhoseBindFailsComesBack to the domain of the others, though another has more room.
func TestAMemberWhoseBindFailsComesBack(t *testing.T) {
	w := newGroupWorld(t, func(*framework.Profile) {})
	w.step(step.ObjectSet{Object: testkit.PodGroup("gang", 3, v1.LabelTopologyZone)})
	if binds := w.step(members("a", "b", "c")...); len(binds) != 3 {
		t.Fatalf("%q are bound, want all", binds)
	}
	zone := w.State().NodeOf("pod-a").Object.Labels[v1.LabelTopologyZone]
	for _, uid := range []types.UID{"pod-a", "pod-b"} {
		w.step(step.BindDone{UID: uid})
	}
	if binds := w.step(step.BindDone{UID: "pod-c", Err: errRefused}); binds != nil || w.placed() != 2 {
		t.Errorf("%q are bound at once, and %d have nodes; want none, and 2", binds, w.placed())
	}
	w.now = w.now.Add(time.Minute)
	if binds := w.step(); !slices.Equal(binds, []string{"c"}) {
		t.Fatalf("%q are bound after the backoff, want c", binds)
	}
	if got := w.State().NodeOf("pod-c").Object.Labels[v1.LabelTopologyZone]; got != zone {
		t.Errorf("c is in %s, and the others in %s", got, zone)
	}
}

// TestGroupsOfManyAreBounded has 10,000 groups that no node takes, each of two members that differ, wait
// while things change that don't help them: no group is tried again.
func TestGroupsOfManyAreBounded(t *testing.T) {
	w := newGroupWorld(t, func(*framework.Profile) {})
	var in []step.Input
	const groups = 10_000
	for i := range groups {
		name := fmt.Sprint("g", i)
		in = append(in, step.ObjectSet{Object: testkit.PodGroup(name, 2, "")})
		for k, cpu := range []string{"3", "5"} {
			in = append(in, step.PodSet{Pod: testkit.Pod(fmt.Sprint(name, "-", k)).Req("cpu", cpu).PodGroup(name).Obj()})
		}
	}
	w.step(in...)
	for range 3 * groups * 2 / 64 {
		w.step()
	}
	tried := w.Stats().Unschedulable
	if tried != 2*groups {
		t.Fatalf("%d members were found unschedulable, want each once", tried)
	}
	for i := range 20 {
		w.now = w.now.Add(time.Second)
		w.step(step.PodSet{Pod: testkit.Pod(fmt.Sprint("other", i)).Req("cpu", "100m").Obj()})
	}
	if got := w.Stats().Unschedulable; got != tried {
		t.Errorf("%d more members were tried after changes that don't help", got-tried)
	}
}

// TestAGangOf100000IsOnePlaceShort: none of its members is bound, and all room is free for a pod by itself in the next
// Step.
func TestAGangOf100000IsOnePlaceShort(t *testing.T) {
	const size, nodes = 100_000, 100
	w := emptyGroupWorld(t, func(*framework.Profile) {})
	var in []step.Input
	for i := range nodes {
		cpu := size / nodes
		if i == 0 {
			cpu--
		}
		in = append(in, step.NodeSet{Node: testkit.Node(fmt.Sprint("n", i)).Alloc("cpu", fmt.Sprint(cpu), "memory", "8Ti", "pods", "2000").Obj()})
	}
	in = append(in, step.ObjectSet{Object: testkit.PodGroup("gang", size, "")})
	for i := range size {
		in = append(in, step.PodSet{Pod: testkit.Pod(fmt.Sprint("m", i)).Req("cpu", "1").PodGroup("gang").Obj()})
	}
	if binds := w.step(in...); len(binds) > 0 || w.placed() > 0 {
		t.Fatalf("%d members are bound, and %d have nodes", len(binds), w.placed())
	}
	if got := w.Stats().Unschedulable; got != size {
		t.Errorf("%d members were found unschedulable, want all", got)
	}
	if binds := w.step(step.PodSet{Pod: testkit.Pod("alone").Req("cpu", "1").Obj()}); !slices.Equal(binds, []string{"alone"}) {
		t.Errorf("%d pods are bound after it, want the one that needs no other", len(binds))
	}
}
