package scaleup_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/autoscaler/scaleup"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/internal/test/testkit"
)

// TestPropertyPlansAreTheSameWithAMemoryAndWithout makes plans while the cluster, the pods and the
// time change, with a packer that remembers and with one that doesn't, with a stopwatch that
// cuts some of them short. They ask the same questions and answer the same.
func TestPropertyPlansAreTheSameWithAMemoryAndWithout(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := newFixture(t)
		f.random(t)
		memory := &scaleup.Memory{}
		for i := range 6 {
			if i > 0 {
				f.change(t, i)
			}
			cuts := func() autoscaler.Stopwatch { return &autoscaler.Cuts{} }
			if n := testkit.Uniform(t, 4, "cut short"); n == 0 {
				at := 1 + testkit.Uniform(t, 12, "cut")
				cuts = func() autoscaler.Stopwatch { return &autoscaler.Cuts{At: []int{at}} }
			}
			plan := func(m *scaleup.Memory) string {
				f.packer.Memory, f.watch = m, cuts()
				return f.mustPlan(t)
			}
			// The last plan that the memory has is of the state before the change, then of this one.
			got, again, want := plan(memory), plan(memory), plan(nil)
			if got != want || again != want {
				t.Fatalf("planned with a memory\n%s\nagain\n%s\nwithout\n%s", got, again, want)
			}
		}
	})
}

// TestPropertyPlansAreThoseOfTheSlowTwin compares random plans with those that keep nothing from
// round to round and explain with a node in the state for each class and group.
func TestPropertyPlansAreThoseOfTheSlowTwin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := newFixture(t)
		f.random(t)
		got := f.mustPlan(t)
		f.packer.Anew()
		if want := f.mustPlan(t); got != want {
			t.Fatalf("planned\n%s\nwant\n%s", got, want)
		}
	})
}

// mustPlan returns a plan as text, without what is for metrics.
func (f *fixture) mustPlan(t *rapid.T) string {
	plan, err := f.plan()
	if err != nil {
		t.Fatal(err)
	}
	plan.At, plan.Packed = 0, nil
	plan.Fitting = slices.Clone(plan.Fitting)
	for i := range plan.Fitting {
		plan.Fitting[i].Pod = nil // it is known by its place in the list
	}
	out, err := json.Marshal(plan)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint(string(out), " asked ", f.packer.Questions.Asked())
}

// change changes something of the cluster or the request, or nothing but the time.
func (f *fixture) change(t *rapid.T, i int) {
	pick := func(of ...string) string { return of[testkit.Uniform(t, len(of), "pick")] }
	group := func() *cluster.NodeGroup {
		all := f.state.Groups()
		g := *all[testkit.Uniform(t, len(all), "group")]
		return &g
	}
	f.req.Now, f.req.ServerNow = f.req.Now.Add(time.Minute), f.req.ServerNow.Add(time.Minute)
	switch testkit.Uniform(t, 12, "change") {
	case 0:
		b := testkit.Pod(fmt.Sprint("new", i)).Req("cpu", pick("1", "10"), "memory", pick("1Gi", "3Gi")).Label("app", pick("x", "y"))
		if testkit.Uniform(t, 2, "apart") == 0 {
			b.Apart(pick("kubernetes.io/hostname", "topology.kubernetes.io/zone"), "app", pick("x", "y"))
		}
		f.req.Pending = append(f.req.Pending, f.state.Schema.ParsePod(b.Obj()))
	case 1:
		if n := len(f.req.Pending); n > 0 {
			f.req.Pending = slices.Delete(slices.Clone(f.req.Pending), n-1, n)
		}
	case 2:
		g := group()
		b := testkit.Node(g.ID).Alloc("cpu", pick("2", "16"), "memory", pick("4Gi", "32Gi")).Zone(pick("a", "b"))
		g.Template = f.state.Schema.ParseNode(b.Obj(), g.ID)
		f.state.SetGroup(g.ID, g)
	case 3:
		g := group()
		g.Max = testkit.Uniform(t, 9, "max")
		g.Target = min(g.Target, g.Max)
		f.state.SetGroup(g.ID, g)
	case 4:
		b := testkit.Pod("agent").Req("cpu", pick("500m", "3")).Owner("apps/v1", "DaemonSet", "agent")
		if testkit.Uniform(t, 3, "together") == 0 {
			b.Label("app", "x").Apart("topology.kubernetes.io/zone", "app", "y")
		}
		f.state.SetWorkload(&cluster.Workload{Kind: cluster.DaemonSet, Namespace: "default", Name: "agent", Template: f.state.Schema.ParsePod(b.Obj())})
	case 5:
		g := group()
		c := f.req.Conditions[g.ID]
		c.BackingOff = !c.BackingOff
		f.req.Conditions[g.ID] = c
	case 6:
		f.req.Limits.MaxNodesTotal = testkit.Uniform(t, 12, "total")
	case 7:
		f.req.Limits.Totals = []autoscaler.Total{{Resource: "cpu", Max: int64(testkit.Uniform(t, 64, "cores"))}}
	case 8:
		g := group()
		b := testkit.Node(fmt.Sprint("made", i)).Alloc("cpu", pick("2", "16"), "memory", pick("4Gi", "32Gi")).Zone(pick("a", "b"))
		b.CreationTimestamp.Time = f.req.ServerNow
		f.state.SetNode(f.state.Schema.ParseNode(b.Obj(), g.ID))
	case 9:
		f.req.Now, f.req.ServerNow = f.req.Now.Add(time.Hour), f.req.ServerNow.Add(time.Hour)
	case 10:
		if n := len(f.req.Pending); n > 0 {
			f.state.SetNode(f.state.Schema.ParseNode(testkit.Node("base").Alloc("cpu", "64", "memory", "64Gi").Zone("a").Obj(), ""))
			f.state.Place(f.req.Pending[0], "base")
			f.req.Pending = slices.Clone(f.req.Pending[1:])
		}
	}
}

// TestReasonsFollowObjects: what rules say of a class and a group is another when an object that they
// read for any node is, though neither the pods nor the group are.
func TestReasonsFollowObjects(t *testing.T) {
	f := newFixture(t)
	f.packer.Memory = &scaleup.Memory{}
	f.state.SetGroup("g", &cluster.NodeGroup{ID: "g", Max: 10, Template: f.state.Schema.ParseNode(testkit.Node("g").Alloc("cpu", "4", "memory", "8Gi").Obj(), "g")})
	f.req.Pending = []*cluster.Pod{f.state.Schema.ParsePod(testkit.Pod("p").Req("cpu", "1", "example.com/gpu", "1").Obj())}
	const short, devices = "1 Insufficient example.com/gpu", "1 cannot allocate all claims"
	for i, want := range []string{short, devices, short} {
		switch i {
		case 1:
			f.state.SetObject(testkit.DeviceClass("gpus", "example.com/gpu"))
		case 2:
			f.state.RemoveObject(cluster.DeviceClassKind, "", "gpus")
		}
		plan, err := f.plan()
		if err != nil {
			t.Fatal(err)
		}
		if len(plan.NoHelp) != 1 || !slices.Equal(plan.NoHelp[0].Reasons, []string{want}) {
			t.Errorf("plan %d: no group helps for %+v, want %s", i, plan.NoHelp, want)
		}
	}
}

// TestAnswersFollowDrivers: the CSIDriver of a disk in a pod comes to demand that nodes have it. The group's
// nodes don't, and the pod's class and the group are what they were.
func TestAnswersFollowDrivers(t *testing.T) {
	const driver = "ebs.csi.aws.com"
	f := newFixture(t)
	f.packer.Memory = &scaleup.Memory{}
	template := testkit.Node("g").Alloc("cpu", "4", "memory", "8Gi")
	f.state.SetGroup("g", &cluster.NodeGroup{ID: "g", Max: 10, Target: 1, Template: f.state.Schema.ParseNode(template.Obj(), "g")})
	live := testkit.Node("live").Alloc("cpu", "4", "memory", "8Gi")
	live.CreationTimestamp.Time = f.req.ServerNow.Add(-time.Hour)
	f.state.SetNode(f.state.Schema.ParseNode(live.Obj(), "g"))
	f.state.SetObject(testkit.CSINode("live").Obj())
	f.state.Place(f.state.Schema.ParsePod(testkit.Pod("there").Req("cpu", "4").Obj()), "live")
	disk := v1.VolumeSource{AWSElasticBlockStore: &v1.AWSElasticBlockStoreVolumeSource{VolumeID: "vol-1"}}
	for i := range 9 {
		f.req.Pending = append(f.req.Pending, f.state.Schema.ParsePod(testkit.Pod(fmt.Sprint("p", i)).Req("cpu", "1").Volume("v", disk).Obj()))
	}
	for i, want := range []int{0, 1, 0} {
		switch i {
		case 1:
			f.state.SetObject(testkit.Demanded(testkit.CSIDriver(driver, false)))
		case 2:
			f.state.RemoveObject(cluster.CSIDriverKind, "", driver)
		}
		plan, err := f.plan()
		if err != nil {
			t.Fatal(err)
		}
		if len(plan.NoHelp) != want {
			t.Errorf("plan %d: no group helps for %+v, want %d", i, plan.NoHelp, want)
		}
	}
}
