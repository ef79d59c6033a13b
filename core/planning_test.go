package core_test

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berthproject/berth/core"
	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/autoscaler/nodegroup"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/door"
	"github.com/berthproject/berth/core/framework"
	"github.com/berthproject/berth/core/plugins"
	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/internal/test/testkit"
)

// planned is a core whose plans are looked at and answered with nothing.
type planned struct {
	t   *testing.T
	c   *core.Core
	now time.Time
	// plans are the requests so far, each with the time since the start, how many
	// pods were pending, and how many were on a node when it was made.
	plans []string
}

func newPlanned(t *testing.T, external bool) *planned {
	schema := cluster.NewSchema()
	cfg := autoscaling(func(a *core.Autoscale) { a.ScanInterval = 10 * time.Second })
	cfg.Profiles = []*framework.Profile{plugins.Default(schema, plugins.Options{})}
	cfg.ExternalScheduler = external
	c, err := core.New(schema, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return &planned{t: t, c: c, now: time.Unix(1000, 0)}
}

// advance lets time pass and takes Steps as the driver does: with the inputs, and again
// as long as there is more to do at this time.
func (w *planned) advance(wait time.Duration, in ...step.Input) {
	w.t.Helper()
	w.now = w.now.Add(wait)
	for range 1000 {
		r := w.c.Step(w.now, door.Must(in...)...)
		in = nil
		if r.Plan != nil {
			_, on := w.c.Size()
			w.plans = append(w.plans, fmt.Sprintf("%s: %d pending, %d placed", w.now.Sub(time.Unix(1000, 0)), len(r.Plan.Pending), on))
			in = []step.Input{step.PlanMade{Plan: autoscaler.NewPlan(r.Plan, 0)}}
		}
		if len(in) == 0 && (r.NextWake.IsZero() || r.NextWake.After(w.now)) {
			return
		}
	}
	w.t.Fatal("the core steps again and again without an end")
}

func (w *planned) expect(want ...string) {
	w.t.Helper()
	if fmt.Sprint(w.plans) != fmt.Sprint(want) {
		w.t.Errorf("plans\n%q, want\n%q", w.plans, want)
	}
	w.plans = nil
}

func groups() step.GroupsSet {
	return step.GroupsSet{Groups: []nodegroup.Group{{ID: "g", Max: 10, Template: testkit.Node("t").Alloc("cpu", "4", "memory", "8Gi").Obj()}}}
}

func burst(prefix string, n int) (in []step.Input) {
	for _, name := range testkit.Names(prefix, n) {
		in = append(in, step.PodSet{Pod: testkit.Pod(name).Req("cpu", "1").Obj()})
	}
	return in
}

// TestPlanSeesTheWholeBurst has more pods arrive than one Step decides on.
func TestPlanSeesTheWholeBurst(t *testing.T) {
	w := newPlanned(t, false)
	w.advance(0, append(burst("p", 300), groups())...)
	w.expect("0s: 300 pending, 0 placed")
}

// TestBurstIsPlannedForAtOnce has pods arrive between two scans.
func TestBurstIsPlannedForAtOnce(t *testing.T) {
	w := newPlanned(t, false)
	w.advance(0, groups())
	w.expect("0s: 0 pending, 0 placed")
	w.advance(3*time.Second, burst("p", 100)...)
	w.expect("3s: 100 pending, 0 placed")
	w.advance(time.Second)                   // the same pods don't bring another plan
	w.advance(time.Second, burst("p", 1)...) // nor does an update of one
	w.expect()
	w.advance(8 * time.Second)
	w.expect("13s: 100 pending, 0 placed")
}

// TestPlanCountsExpectedPods has another scheduler place the pods: when a plan is made,
// each of them is expected on a node or pending.
func TestPlanCountsExpectedPods(t *testing.T) {
	w := newPlanned(t, true)
	in := []step.Input{groups(), step.NodeSet{Node: testkit.Node("n").Alloc("cpu", "200", "memory", "800Gi", "pods", "500").Obj()}}
	for _, name := range testkit.Names("p", 300) {
		p := testkit.Pod(name).Req("cpu", "1").Obj()
		p.Status.Conditions = []v1.PodCondition{{Type: v1.PodScheduled, Status: v1.ConditionFalse, Reason: v1.PodReasonUnschedulable}}
		in = append(in, step.PodSet{Pod: p})
	}
	w.advance(0, in...)
	w.expect("0s: 100 pending, 200 placed")
	w.advance(10 * time.Second)
	w.expect("10s: 100 pending, 200 placed")
}

// TestNoHelpIsReportedOfPodsThatStillWait has a plan say of four pods that no node group
// would help. Before it comes, one has got a node and one is gone; of the other two it is
// said in the order in which they were queued.
func TestNoHelpIsReportedOfPodsThatStillWait(t *testing.T) {
	w := newPlanned(t, false)
	in := []step.Input{groups()}
	for _, name := range []string{"placed", "gone", "first", "second"} {
		in = append(in, step.PodSet{Pod: testkit.Pod(name).Req("cpu", "9").Obj()})
	}
	r := w.c.Step(w.now, door.Must(in...)...)
	if r.Plan == nil {
		t.Fatal("no plan was asked for")
	}
	plan := autoscaler.NewPlan(r.Plan, 0)
	uid := func(name string) types.UID { return testkit.Pod(name).UID }
	plan.NoHelp = []autoscaler.NoHelp{{Pods: []types.UID{uid("second"), uid("placed")}, Reasons: []string{"too large"}}, {Pods: []types.UID{uid("gone"), uid("first")}, Reasons: []string{"too large"}}}
	w.now = w.now.Add(time.Minute)
	r = w.c.Step(w.now, door.Must(step.NodeSet{Node: testkit.Node("n").Alloc("cpu", "10").Obj()}, step.PodGone{UID: uid("gone")})...)
	if len(r.Binds) != 1 || r.Binds[0].Name != "placed" {
		t.Fatalf("binds %v, want that of pod placed", r.Binds)
	}
	r = w.c.Step(w.now, door.Must(step.PlanMade{Plan: plan})...)
	var got []string
	for i := range r.Decisions {
		got = append(got, r.Decisions[i].String())
	}
	if want := []string{"NotScaledUp pod default/first: too large", "NotScaledUp pod default/second: too large"}; !slices.Equal(got, want) {
		t.Errorf("decisions %q, want %q", got, want)
	}
}

// TestTheSameNoHelpIsReportedOnce has plans say the same in one list, as those do that are the last
// again. Its pods are looked at until it was reported of all of them: one has a node at first, and its
// bind fails.
func TestTheSameNoHelpIsReportedOnce(t *testing.T) {
	w := newPlanned(t, false)
	in := []step.Input{groups()}
	var list []types.UID
	for _, name := range []string{"placed", "waits"} {
		in = append(in, step.PodSet{Pod: testkit.Pod(name).Req("cpu", "9").Obj()})
		list = append(list, testkit.Pod(name).UID)
	}
	noHelp := []autoscaler.NoHelp{{Pods: list, Reasons: []string{"too large"}}}
	r := w.c.Step(w.now, door.Must(in...)...)
	for _, c := range []struct {
		name   string
		before step.Input // after the plan was asked for
		looked int
		want   []string
	}{
		{"one has a node", step.NodeSet{Node: testkit.Node("n").Alloc("cpu", "10").Obj()}, 2, []string{"NotScaledUp pod default/waits: too large"}},
		{"its bind fails", nil, 2, []string{"NotScaledUp pod default/placed: too large"}},
		{"nothing has changed", nil, 0, nil},
	} {
		for range 100 {
			if r.Plan != nil {
				break
			}
			w.now = w.now.Add(10 * time.Second)
			r = w.c.Step(w.now)
		}
		if r.Plan == nil {
			t.Fatalf("%s: no plan was asked for", c.name)
		}
		plan := autoscaler.NewPlan(r.Plan, 0)
		plan.NoHelp = noHelp
		var binds []step.Bind
		if c.before != nil {
			w.now = w.now.Add(time.Minute)
			r = w.c.Step(w.now, door.Must(c.before)...)
			binds = r.Binds
		}
		before := w.c.LookedForNoHelp()
		r = w.c.Step(w.now, door.Must(step.PlanMade{Plan: plan})...)
		var got []string
		for i := range r.Decisions {
			if r.Decisions[i].Kind == step.NotScaledUp {
				got = append(got, r.Decisions[i].String())
			}
		}
		if looked := w.c.LookedForNoHelp() - before; looked != c.looked || !slices.Equal(got, c.want) {
			t.Errorf("%s: %d pods are looked at and it is told %q, want %d and %q", c.name, looked, got, c.looked, c.want)
		}
		if len(binds) > 0 {
			w.now = w.now.Add(time.Second)
			after := w.c.Step(w.now, door.Must(step.NodeGone{Name: "n"}, step.BindDone{UID: list[0], Err: errors.New("the node is gone")})...)
			if r.Plan == nil {
				r = after
			}
		}
	}
}

// TestPlanIsToldOfPlaces has a plan's nodes be ordered. The next plan is told for which
// pods that was, less those that are gone since.
func TestPlanIsToldOfPlaces(t *testing.T) {
	w := newPlanned(t, false)
	r := w.c.Step(w.now, door.Must(append(burst("p", 2), groups())...)...)
	if r.Plan == nil || len(r.Plan.Places) != 0 {
		t.Fatalf("asked for plan %+v, want one without orders", r.Plan)
	}
	plan := autoscaler.NewPlan(r.Plan, 0)
	plan.ScaleUps = []autoscaler.ScaleUp{{Group: "g", Nodes: 1, Pods: []types.UID{r.Plan.Pending[0].UID, r.Plan.Pending[1].UID}, Bins: [][]types.UID{{r.Plan.Pending[0].UID, r.Plan.Pending[1].UID}}}}
	w.c.Step(w.now, door.Must(step.PlanMade{Plan: plan})...)
	r = w.c.Step(w.now.Add(10*time.Second), door.Must(step.PodGone{UID: plan.ScaleUps[0].Pods[0]})...)
	want := []autoscaler.Place{{Group: "g", Pods: plan.ScaleUps[0].Pods[1:]}}
	if r.Plan == nil || !reflect.DeepEqual(r.Plan.Places, want) {
		t.Errorf("asked for plan %+v, want one with places %v", r.Plan, want)
	}
}
