package plugins_test

import (
	"testing"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/compat"
	"github.com/berthproject/berth/core/framework"
	"github.com/berthproject/berth/core/plugins"
	"github.com/berthproject/berth/internal/test/testkit"
	rt "github.com/berthproject/berth/internal/test/testkit/ruletest"
)

// TestGatesOfStorage asks both versions, with their default of a feature gate and with the other: the
// claim takes a fifth of the storage that is left on node n, whose driver isn't installed.
func TestGatesOfStorage(t *testing.T) {
	on, off := new(true), new(false)
	pod := testkit.Pod("p").Uses("c")
	objects := rt.Objects{testkit.Class("fast", "csi.example").Obj(), testkit.Claim("c", "fast").Obj(), testkit.Demanded(testkit.CSIDriver("csi.example", true)),
		testkit.Capacity("m", "fast", "5Gi", "disk", "ssd"), testkit.CSINode("n").Obj()}
	nodes := rt.Nodes{testkit.Node("n").Label("disk", "ssd")}
	const lacks = "Reject: csi.example CSI driver is not installed on the node"
	for _, c := range []struct {
		name         string
		version      compat.Version
		o            plugins.Options
		score, needs string
	}{
		{"1.36", compat.V36, plugins.Options{}, "0", rt.OK},
		{"1.37", compat.V37, plugins.Options{}, "80", lacks},
		{"1.36 with the gates on", compat.V36, plugins.Options{StorageCapacityScoring: on, VolumeLimitScaling: on}, "80", lacks},
		{"1.37 with the gates off", compat.V37, plugins.Options{StorageCapacityScoring: off, VolumeLimitScaling: off}, "0", rt.OK},
		{"1.37 with a shape", compat.V37, plugins.Options{VolumeShape: []framework.ShapePoint{{Utilization: 0, Score: 0}, {Utilization: 100, Score: 10}}}, "20", lacks},
	} {
		rule := func(name string) rt.Make {
			return func(*cluster.Schema) framework.Plugin {
				return only(name, c.o)(cluster.SchemaFor(c.version))
			}
		}
		rt.Table{Nodes: nodes, Objects: objects, Scores: true, Cases: []rt.Case{
			{Name: c.name, Plugin: rule("VolumeBinding"), Pod: pod, Want: rt.Want{"n": c.score}},
		}}.Score(t)
		rt.Table{Nodes: nodes, Objects: objects, Cases: []rt.Case{
			{Name: c.name, Plugin: rule("NodeVolumeLimits"), Pod: pod, Want: rt.Want{"n": c.needs}},
		}}.Filter(t)
	}
}

// VolumeBinding scores by what its filter finds: it has no weight without the filter, nor where it
// doesn't score.
func TestWeightOfVolumeBinding(t *testing.T) {
	for _, c := range []struct {
		version compat.Version
		o       plugins.Options
		want    int64
	}{
		{compat.V37, plugins.Options{Rules: []plugins.Rule{{Name: "VolumeBinding", Filters: true, Weight: 4}}}, 4},
		{compat.V37, plugins.Options{Rules: []plugins.Rule{{Name: "VolumeBinding", Weight: 4}}}, 0},
		{compat.V36, plugins.Options{Rules: []plugins.Rule{{Name: "VolumeBinding", Filters: true, Weight: 4}}}, 0},
		{compat.V36, plugins.Options{StorageCapacityScoring: new(true), Rules: []plugins.Rule{{Name: "VolumeBinding", Filters: true, Weight: 4}}}, 4},
	} {
		if got := plugins.Default(cluster.SchemaFor(c.version), c.o).Plugins[0].Weight; got != c.want {
			t.Errorf("%s, %+v: the weight is %d, want %d", c.version, c.o.Rules[0], got, c.want)
		}
	}
}
