package planner_test

import (
	"fmt"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/autoscaler/planner"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/devices"
	"github.com/berthproject/berth/internal/test/testkit"
)

// The pods and groups of BenchmarkPlanDevices. Each group's nodes have eight devices of a model.
const (
	devicePods   = 8000
	deviceShapes = 40
	deviceGroups = 5
)

// BenchmarkPlanDevices makes one plan for 8,000 pods of 40 shapes that want one to eight devices each, and
// five groups without nodes. The devices are claimed, or requested as an extended resource that a device
// class backs. The stages are those of a purchase: the planner has made the plans of the stages before.
//
//	from zero     no node is there, nor ordered
//	ordered       the nodes are ordered, and none is registered
//	registered    half of them are ready, and have devices published; the pods haven't a node yet
func BenchmarkPlanDevices(b *testing.B) {
	for _, extended := range []bool{false, true} {
		for stage, name := range []string{"from zero", "ordered", "registered"} {
			b.Run(fmt.Sprintf("%s/extended=%t", name, extended), func(b *testing.B) {
				for b.Loop() {
					b.StopTimer()
					x := newDevicePurchase(b, extended)
					for range stage {
						x.goOn(x.plan())
					}
					b.StartTimer()
					plan := x.plan()
					b.StopTimer()
					x.check(plan)
					b.StartTimer()
				}
			})
		}
	}
}

// devicePurchase is a cluster that buys nodes for pods that want devices.
type devicePurchase struct {
	testing.TB
	primary *cluster.State
	planner *planner.Planner
	req     autoscaler.Request
}

func newDevicePurchase(tb testing.TB, extended bool) *devicePurchase {
	schema := cluster.NewSchema()
	s := cluster.New(schema)
	s.SetObject(testkit.DeviceClass("gpus", "example.com/gpu", `device.driver == "gpu.example"`))
	for g := range deviceGroups {
		id := fmt.Sprint("group", g)
		s.SetGroup(id, &cluster.NodeGroup{ID: id, Max: devicePods, Template: schema.ParseNode(deviceNode(id).Obj(), id),
			Devices: devices.NewTemplate([]resourcev1.ResourceSlice{*modelSlice("template", g)})})
	}
	x := &devicePurchase{TB: tb, primary: s, planner: follow(tb, s)}
	x.req = autoscaler.Request{Number: 1, Now: time.Unix(1000, 0), ServerNow: time.Unix(1000, 0),
		Readiness: autoscaler.Readiness{StartupTime: 15 * time.Minute, Parts: cluster.Devices}}
	for i := range devicePods {
		x.req.Pending = append(x.req.Pending, schema.ParsePod(devicePod(s, i, extended)))
	}
	return x
}

func deviceNode(name string) *testkit.NodeBuilder {
	return testkit.Node(name).Alloc("cpu", "96", "memory", "768Gi", "pods", "110")
}

// modelSlice returns the devices of a node of a group.
func modelSlice(node string, group int) *resourcev1.ResourceSlice {
	slice := testkit.NodeSlice("gpu.example", node)
	for k := range 8 {
		slice.Devices(testkit.Device(fmt.Sprint("g", k)).Attr("model", fmt.Sprint("m", group)).Capacity("memory", "80Gi"))
	}
	return slice.Obj()
}

// devicePod returns a pod of one of the shapes: those of the same claim for different CPU and memory. Those
// that claim devices want them to be of a group's model, as three of four do, or any. Claims are put into
// the state.
func devicePod(s *cluster.State, i int, extended bool) *v1.Pod {
	shape := i % deviceShapes
	count, name := int64(1)<<(shape%4), fmt.Sprint("p", i)
	pod := testkit.Pod(name).Owner("apps/v1", "ReplicaSet", fmt.Sprint("app", shape)).Req("cpu", fmt.Sprint(count*int64(1+shape%10)), "memory", fmt.Sprint(count*8, "Gi"))
	if extended {
		return pod.Req("example.com/gpu", fmt.Sprint(count)).Obj()
	}
	request := testkit.Request("gpu", "gpus").Count(count)
	if shape%5 > 0 {
		request.Where(fmt.Sprintf("device.attributes[%q].model == \"m%d\"", "gpu.example", shape%deviceGroups))
	}
	s.SetObject(testkit.ResourceClaim(name+"-gpu", request).MadeFor(name).Obj())
	return pod.TemplateClaim("gpu", name+"-gpu").Obj()
}

func (x *devicePurchase) plan() *autoscaler.Plan {
	if err := x.planner.CatchUp(); err != nil {
		x.Fatal(err)
	}
	return x.planner.Plan(x.req)
}

// goOn has the cluster order what a plan buys. Of nodes that were ordered before every second becomes ready.
func (x *devicePurchase) goOn(plan *autoscaler.Plan) {
	for i := range x.req.Places {
		place := &x.req.Places[i]
		if i%2 == 0 {
			continue
		}
		group := 0
		if _, err := fmt.Sscanf(place.Group, "group%d", &group); err != nil {
			panic(err) // the case has named it
		}
		place.Node = fmt.Sprint("n", i)
		x.primary.SetNode(x.primary.Schema.ParseNode(readySince(deviceNode(place.Node), 990), place.Group))
		x.primary.SetObject(modelSlice(place.Node, group))
	}
	for _, up := range plan.ScaleUps {
		g := *x.primary.Group(up.Group)
		g.Target += up.Nodes
		x.primary.SetGroup(g.ID, &g)
		for _, bin := range up.Bins {
			x.req.Places = append(x.req.Places, autoscaler.Place{Group: up.Group, Pods: bin})
		}
	}
}

// check fails unless every pod has a node.
func (x *devicePurchase) check(plan *autoscaler.Plan) {
	pods := plan.Covered
	for _, up := range plan.ScaleUps {
		pods += len(up.Pods)
	}
	if pods != devicePods || len(x.req.Places) > 0 && len(plan.ScaleUps) > 0 {
		x.Fatalf("%d of %d pods have a node, and nodes of %d groups are bought", pods, devicePods, len(plan.ScaleUps))
	}
}

// readySince returns a node that was created at a second since 1970.
func readySince(n *testkit.NodeBuilder, at int64) *v1.Node {
	n.CreationTimestamp = metav1.Unix(at, 0)
	return n.Obj()
}
