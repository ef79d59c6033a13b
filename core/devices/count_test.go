package devices_test

import (
	"testing"

	resourcev1 "k8s.io/api/resource/v1"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/devices"
	"github.com/berthproject/berth/internal/test/testkit"
)

// TestDevicesAreCounted counts the devices of classes that are published for a node, and that a driver would
// publish on one: each by itself, and of those that consume counters each set once.
func TestDevicesAreCounted(t *testing.T) {
	s := cluster.New(cluster.NewSchema())
	n := s.Node(s.SetNode(s.Schema.ParseNode(testkit.Node("n").Obj(), "")))
	slices := []*resourcev1.ResourceSlice{
		testkit.ResourceSlice("s0", "gpu.example", "n").OnNode("n").Of(2).Counters("one", "memory", "80Gi").Counters("two", "memory", "80Gi").Obj(),
		testkit.ResourceSlice("s1", "gpu.example", "n").OnNode("n").Of(2).Devices(
			testkit.Device("whole-0").Attr("kind", "whole").Consumes("one", "memory", "80Gi"),
			testkit.Device("half-0").Attr("kind", "half").Consumes("one", "memory", "40Gi"),
			testkit.Device("half-1").Attr("kind", "half").Consumes("one", "memory", "40Gi"),
			testkit.Device("whole-1").Attr("kind", "whole").Consumes("two", "memory", "80Gi"),
			testkit.Device("nic").Attr("kind", "nic")).Obj(),
	}
	for _, x := range slices {
		s.SetObject(x)
	}
	s.SetObject(testkit.ResourceSlice("old", "gpu.example", "n").OnNode("n").Generation(0).Devices(testkit.Device("gone").Attr("kind", "nic")).Obj())
	s.SetObject(testkit.ResourceSlice("fabric", "gpu.example", "fabric").Everywhere().Devices(testkit.Device("link").Attr("kind", "nic")).Obj())
	published := devices.NewPublished("gpu.example", slices)
	for kind, want := range map[string]int64{"whole": 2, "half": 1, "nic": 1, "none": 0} {
		class := testkit.DeviceClass(kind, "", `device.attributes["gpu.example"].kind == "`+kind+`"`)
		for range 2 { // the second time it is remembered
			if got := s.Devices().CountOn(int32(n.Index), n.Object, class); got != want {
				t.Errorf("%d devices of kind %s on the node, want %d", got, kind, want)
			}
			if got := s.Devices().CountOf(published, class); got != want {
				t.Errorf("%d devices of kind %s to be published, want %d", got, kind, want)
			}
		}
	}
	any := testkit.DeviceClass("any", "", `device.driver == "gpu.example"`)
	if got := s.Devices().CountOn(int32(n.Index), n.Object, any); got != 3 {
		t.Errorf("%d devices on the node, want 3: two sets of counters, and one that consumes none", got)
	}
}
