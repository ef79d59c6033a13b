package engine_test

import (
	"fmt"
	"testing"

	resourcev1 "k8s.io/api/resource/v1"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/engine"
	"github.com/berthproject/berth/core/plugins"
	"github.com/berthproject/berth/internal/test/testkit"
)

// deviceNodes is how many nodes the benchmarks have, of 8 devices each.
const deviceNodes = 5000

// deviceCluster returns nodes with devices. Of node i so many are taken as taken says.
func deviceCluster(taken func(i int) int) *cluster.State {
	schema := cluster.NewSchema()
	s := cluster.New(schema)
	s.SetObject(testkit.DeviceClass("gpus", "", `device.driver == "gpu.example"`))
	for i := range deviceNodes {
		node := fmt.Sprint("n", i)
		s.SetNode(schema.ParseNode(testkit.Node(node).Alloc("cpu", "64", "memory", "256Gi", "pods", "110").Obj(), ""))
		slice := testkit.NodeSlice("gpu.example", node)
		for k := range 8 {
			slice.Devices(testkit.Device(fmt.Sprint("g", k)).Attr("model", "a").Capacity("memory", "80Gi"))
		}
		s.SetObject(slice.Obj())
		if n := taken(i); n > 0 {
			s.SetObject(takenClaim(node, n))
		}
	}
	return s
}

// takenClaim returns a claim that has the first devices of a node.
func takenClaim(node string, devices int) *resourcev1.ResourceClaim {
	var results []resourcev1.DeviceRequestAllocationResult
	for k := range devices {
		results = append(results, testkit.Allocation("gpu", "gpu.example", node, fmt.Sprint("g", k)))
	}
	return testkit.ResourceClaim("of-"+node, testkit.Request("gpu", "gpus").Count(int64(devices))).Allocated(results...).OnNode(node).Obj()
}

// claimingPod returns a pod with a claim for some devices that is new to the state.
func claimingPod(s *cluster.State, name string, devices int64) *cluster.Pod {
	s.SetObject(testkit.ResourceClaim(name, testkit.Request("gpu", "gpus").Count(devices).Where(`device.capacity["gpu.example"].memory.isGreaterThan(quantity("40Gi"))`)).Obj())
	return s.Schema.ParsePod(testkit.Pod(name).Req("cpu", "1").Claims(name).Obj())
}

func deviceEngine(s *cluster.State) *engine.Engine {
	return testkit.Must(engine.New(s, plugins.Default(s.Schema, plugins.Options{}), engine.Options{Seed: 1}))
}

// BenchmarkDevicesFirst answers for the first pod of a class on nodes in 40 states: 8 devices, of which
// none to 7 are taken, of five kinds of nodes.
func BenchmarkDevicesFirst(b *testing.B) {
	s := deviceCluster(func(i int) int { return i % 8 })
	for i := range deviceNodes { // five kinds: another device is gone
		name := fmt.Sprint("n", i)
		slice := testkit.NodeSlice("gpu.example", name)
		for k := range 8 {
			slice.Devices(testkit.Device(fmt.Sprint("g", k)).Attr("model", fmt.Sprint(i/8%5)).Capacity("memory", "80Gi"))
		}
		s.SetObject(slice.Obj())
	}
	states := map[any]bool{}
	s.Nodes(func(n *cluster.Node) { states[s.Devices().Content(int32(n.Index))] = true })
	e, n := deviceEngine(s), 0
	for b.Loop() {
		b.StopTimer()
		n++
		pod := claimingPod(s, fmt.Sprint("p", n), 1)
		s.SetObject(testkit.ResourceClaim(pod.Object.Name, testkit.Request("gpu", "gpus").Where(fmt.Sprintf("device.attributes[%q].model != \"%d\"", "gpu.example", n+9))).Obj())
		asks := s.Devices().Asks()
		b.StartTimer()
		if _, ok := e.Best(e.Class(pod)); !ok {
			b.Fatal("no node has a device")
		}
		b.StopTimer()
		if got := s.Devices().Asks() - asks; got != len(states) {
			b.Fatalf("the allocator was asked %d times about %d states", got, len(states))
		}
		b.StartTimer()
	}
	b.ReportMetric(float64(len(states)), "states")
}

// BenchmarkDevicesPlace places pods with a claim for one device each, the pods and claims being there.
func BenchmarkDevicesPlace(b *testing.B) {
	placeClaiming(b, deviceCluster(func(int) int { return 0 }))
}

// BenchmarkDevicesBesidePlaces is BenchmarkDevicesPlace where a hundred nodes keep a device for a pod each.
func BenchmarkDevicesBesidePlaces(b *testing.B) {
	s := deviceCluster(func(int) int { return 0 })
	for i := range 100 {
		name := fmt.Sprint("kept", i)
		s.SetObject(testkit.ResourceClaim(name, testkit.Request("gpu", "gpus")).MadeFor(name).Obj())
		s.KeepPlace(s.Schema.ParsePod(testkit.Pod(name).Req("cpu", "1").TemplateClaim("own", name).Obj()), fmt.Sprint("n", 50*i))
	}
	placeClaiming(b, s)
}

// placeClaiming measures placements of pods that claim a device each. Half of the devices are taken at most: then pods
// leave in the order in which they came.
func placeClaiming(b *testing.B, s *cluster.State) {
	e, n, placed := deviceEngine(s), 0, []*cluster.Pod(nil)
	e.Best(e.Class(claimingPod(s, "first", 1)))
	for b.Loop() {
		b.StopTimer()
		n++
		pod := claimingPod(s, fmt.Sprint("p", n), 1)
		if placed = append(placed, pod); len(placed) > deviceNodes*8/2 {
			e.TakeOff(placed[0])
			s.RemoveObject(cluster.ResourceClaimKind, "default", placed[0].Object.Name)
			placed = placed[1:]
		}
		b.StartTimer()
		if _, ok := e.Place(e.Class(pod), pod); !ok {
			b.Fatalf("pod %d found no node", n)
		}
	}
}

// BenchmarkDevicesRefusal has a device of one node become free, or taken again, while a pod wants two:
// the node's content is known after the first two times, or it is new each time, for the slice says
// something else. What is measured begins with the change of the state.
func BenchmarkDevicesRefusal(b *testing.B) {
	b.Run("known=true", func(b *testing.B) {
		s, refuse := refusingCluster(b)
		changes := []cluster.Object{takenClaim("n7", 8), takenClaim("n7", 7)}
		for n := 0; b.Loop(); n++ {
			s.SetObject(changes[n%2])
			refuse()
		}
	})
	b.Run("known=false", func(b *testing.B) {
		s, refuse := refusingCluster(b)
		for n := 0; b.Loop(); n++ {
			b.StopTimer()
			slice := testkit.NodeSlice("gpu.example", "n7")
			for k := range 8 {
				slice.Devices(testkit.Device(fmt.Sprint("g", k)).Attr("model", "a").Attr("round", n).Capacity("memory", "80Gi"))
			}
			b.StartTimer()
			s.SetObject(slice.Obj())
			refuse()
		}
	})
}

// refusingCluster returns a cluster whose devices are all taken, and a function that fails unless a pod that
// wants two is refused by every node.
func refusingCluster(b *testing.B) (*cluster.State, func()) {
	s := deviceCluster(func(int) int { return 8 })
	e := deviceEngine(s)
	class := e.Class(claimingPod(s, "wants", 2))
	refuse := func() {
		if _, ok := e.Best(class); ok {
			b.Fatal("a node has two devices")
		}
	}
	refuse()
	return s, refuse
}
