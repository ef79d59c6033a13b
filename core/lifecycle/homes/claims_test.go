package homes_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/lifecycle"
	"github.com/berthproject/berth/core/lifecycle/homes"
	"github.com/berthproject/berth/internal/test/lifecycletest"
	"github.com/berthproject/berth/internal/test/testkit"
)

// noOrders is for stand-ins that nobody plans for.
type noOrders struct{ queued *[]*cluster.Pod }

func (o noOrders) Queue(_ *lifecycle.Turn, p *cluster.Pod)      { *o.queued = append(*o.queued, p) }
func (noOrders) Drop(types.UID)                                 {}
func (noOrders) HandOver(*lifecycle.Turn, types.UID, types.UID) {}
func (noOrders) Coming(types.UID) bool                          { return false }
func claim(name string, reserved ...string) *testkit.ResourceClaimBuilder {
	return testkit.ResourceClaim(name, testkit.Request("r", "gpus")).Allocated(testkit.Allocation("r", "gpu.example", "n1", "g0")).OnNode("n1").ReservedFor(reserved...)
}

// withDevices returns a bench with nodes that have two devices each, of the models small and large.
func withDevices(nodes ...string) (*lifecycletest.Bench, *homes.Machine) {
	b := lifecycletest.NewBench()
	b.State.SetObject(testkit.DeviceClass("gpus", ""))
	for _, n := range nodes {
		b.Node(testkit.Node(n).Alloc("cpu", "4", "pods", "9").Obj())
		b.State.SetObject(testkit.NodeSlice("gpu.example", n).Devices(testkit.Device("g0").Attr("model", "large"), testkit.Device("g1").Attr("model", "small")).Obj())
	}
	m := homes.New(homes.Config{Time: 5 * time.Minute}, b.Scheduler)
	m.Connect(noOrders{&[]*cluster.Pod{}})
	return b, m
}

// TestHomesFollowTheirClaims has the claim that a pod names come, be shared, be alone again, and go: its home keeps a
// device like the one that the pod has, where the replacement will get one.
func TestHomesFollowTheirClaims(t *testing.T) {
	b, m := withDevices("n1", "n2")
	pod := b.State.Schema.ParsePod(testkit.Pod("p").Req("cpu", "1").Claims("named").On("n1").Obj())
	b.State.Place(pod, "n1")
	m.Anticipate(b.Turn, "n1", []*cluster.Pod{pod})
	for _, c := range []struct {
		name   string
		do     func()
		node   string
		shares bool
		kept   int // devices on n2
	}{
		{"the claim isn't shown yet", func() {}, "n2", false, 0},
		{"it is the pod's alone", func() { b.State.SetObject(claim("named", "p").Obj()) }, "n2", false, 1},
		{"another pod has it, too", func() { b.State.SetObject(claim("named", "p", "q").Obj()) }, "", true, 0},
		{"the other has ended", func() { b.State.SetObject(claim("named", "p").Obj()) }, "n2", false, 1},
		{"the others are swapped", func() { b.State.SetObject(claim("named", "q").Obj()) }, "", true, 0},
		{"back again", func() { b.State.SetObject(claim("named", "p").Obj()) }, "n2", false, 1},
		{"it is deleted", func() { b.State.RemoveObject(cluster.ResourceClaimKind, "default", "named") }, "n2", false, 1},
	} {
		c.do()
		m.Advance(b.Turn)
		k, ok := m.Kept(pod.UID)
		if !ok || k.Node != c.node || k.Shares != c.shares {
			t.Errorf("%s: the home is on %q and shares devices: %t; want %q and %t", c.name, k.Node, k.Shares, c.node, c.shares)
		}
		if got := 2 - fitting(b, "n2"); got != c.kept {
			t.Errorf("%s: %d devices of n2 are kept, want %d", c.name, got, c.kept)
		}
		for _, broken := range append(m.Invariants(), m.InvariantsIn(b.State)...) {
			t.Errorf("%s: %s", c.name, broken)
		}
	}
}

// fitting returns how many pods that claim a device each a node takes, one after the other.
func fitting(b *lifecycletest.Bench, node string) (n int) {
	mark := b.State.Mark()
	defer b.State.Rollback(mark)
	for ; ; n++ {
		name := fmt.Sprint("other", n)
		b.State.SetObject(testkit.ResourceClaim(name, testkit.Request("r", "gpus")).MadeFor(name).Obj())
		p := b.State.Schema.ParsePod(testkit.Pod(name).TemplateClaim("own", name).Obj())
		e := b.Scheduler.Engine(p)
		if !e.FitsOn(e.Class(p), b.State.NodeByName(node)) {
			return n
		}
		e.PlaceOn(p, b.State.NodeByName(node).Index)
	}
}

// TestHomesTakeDevicesInTurn reserves a home for a pod that needs the large device of a node and then one for a pod
// that any device will do for, which the allocator would give the large one: both keep their rooms when the node is
// looked at again, and nobody else gets a device there.
func TestHomesTakeDevicesInTurn(t *testing.T) {
	b, m := withDevices("n1", "n2")
	r := &autoscaler.Removal{Node: "n1"}
	for _, x := range []struct{ name, model string }{{"z", "large"}, {"a", ""}} { // by UID the second comes first
		request := testkit.Request("r", "gpus")
		if x.model != "" {
			request.Where(fmt.Sprintf("device.attributes[%q].model == %q", "gpu.example", x.model))
		}
		b.State.SetObject(testkit.ResourceClaim(x.name, request).MadeFor(x.name).Obj())
		p := b.State.Schema.ParsePod(testkit.Pod(x.name).Req("cpu", "1").TemplateClaim("own", x.name).On("n1").Obj())
		b.Scheduler.Engine(p).PlaceOn(p, b.State.NodeByName("n1").Index)
		r.Homes = append(r.Homes, autoscaler.Home{Pod: p.UID, Node: "n2"})
	}
	if why := m.Reserve(b.Turn, r); why != "" {
		t.Fatal(why)
	}
	b.State.Place(b.State.Schema.ParsePod(testkit.Pod("small").Req("cpu", "1").Obj()), "n2") // touches the node
	m.Advance(b.Turn)
	for _, x := range r.Homes {
		if k, _ := m.Kept(x.Pod); k.Node != "n2" {
			t.Errorf("the home of %s is on %q, want n2", x.Pod, k.Node)
		}
	}
	if n := fitting(b, "n2"); n != 0 {
		t.Errorf("the node takes %d pods that claim devices, and both are kept", n)
	}
}

// TestAHomeKeepsTheTurnOfItsPlace has a stand-in placed on the node on which a place was kept for it while that was
// coming, after another pod was nominated there: it keeps its turn. On another node it has the last.
func TestAHomeKeepsTheTurnOfItsPlace(t *testing.T) {
	for node, want := range map[string]string{"n2": "home-of-p other", "n3": "other home-of-p"} {
		b, m := withDevices("n1")
		var queued []*cluster.Pod
		m.Connect(noOrders{&queued})
		pod := b.State.Schema.ParsePod(testkit.Pod("p").Req("cpu", "1").On("n1").Obj())
		b.State.Place(pod, "n1")
		m.Anticipate(b.Turn, "n1", []*cluster.Pod{pod})
		m.Advance(b.Turn)
		if len(queued) != 1 {
			t.Fatalf("%d stand-ins are queued, want one", len(queued))
		}
		standIn := queued[0]
		b.State.KeepPlace(standIn, "n2")
		was, other := b.State.NominationOf(standIn.UID), b.State.Schema.ParsePod(testkit.Pod("other").Obj())
		b.State.Nominate(other, node)
		b.Node(testkit.Node(node).Alloc("cpu", "4", "pods", "9").Obj())
		b.State.Place(standIn, node)
		m.StandInPlaced(b.Turn, standIn, node, was)
		pods := slices.Clone(b.State.NodeByName(node).Nominated)
		b.State.SortNominated(pods)
		if len(pods) != 2 || pods[0].Object.Name+" "+pods[1].Object.Name != want {
			t.Errorf("on %s %v are nominated in turn, want %s", node, pods, want)
		}
	}
}
