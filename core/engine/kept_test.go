package engine_test

import (
	"fmt"
	"testing"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/engine"
	"github.com/berthproject/berth/core/plugins"
	"github.com/berthproject/berth/internal/test/testkit"
)

// TestClassesAreAskedForTheirOtherPods asks about a class of which the pod that was signed last is nominated to the
// node and keeps a device there: the question is about the others of the class, which have no device by that. So one
// that waits is woken only if there is a device for it, too.
func TestClassesAreAskedForTheirOtherPods(t *testing.T) {
	for devices := 1; devices <= 2; devices++ {
		for _, extended := range []bool{false, true} {
			for _, yields := range []bool{false, true} {
				s := cluster.New(cluster.NewSchema())
				s.SetObject(testkit.DeviceClass("gpus", "example.com/gpu"))
				s.SetNode(s.Schema.ParseNode(testkit.Node("n").Alloc("cpu", "9", "pods", "9").Obj(), ""))
				s.SetObject(testkit.NodeSlice("gpu.example", "n").Devices(testkit.NamedDevices("g0", "g1")[:devices]...).Obj())
				pod := func(name string) *cluster.Pod {
					if extended {
						return s.Schema.ParsePod(testkit.Pod(name).Req("example.com/gpu", "1").Obj())
					}
					s.SetObject(testkit.ResourceClaim(name, testkit.Request("r", "gpus")).MadeFor(name).Obj())
					return s.Schema.ParsePod(testkit.Pod(name).TemplateClaim("own", name).Obj())
				}
				e := testkit.Must(engine.New(s, plugins.Default(s.Schema, plugins.Options{DevicePreemption: yields}), engine.Options{}))
				waits, kept := pod("waits"), pod("kept")
				class := e.Class(waits)
				d := e.Diagnose(class)
				s.KeepPlace(kept, "n")
				from := s.Head()
				s.SetNode(s.Schema.ParseNode(testkit.Node("n").Label("touched", "").Alloc("cpu", "9", "pods", "9").Obj(), ""))
				if e.Class(kept) != class {
					t.Fatal("the pods are of two classes")
				}
				changes, _ := s.Since(from)
				help, _ := e.MayHelp(class, d, changes)
				if got, want := help == engine.Fits, devices == 2; got != want || e.FitsOn(class, s.NodeByName("n")) != want {
					t.Errorf("%s: the change helps: %t, and the node takes another pod: %t; want %t", fmt.Sprintf("%d devices, extended %t, yields %t", devices, extended, yields), got, e.FitsOn(class, s.NodeByName("n")), want)
				}
			}
		}
	}
}
