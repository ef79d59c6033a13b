package core_test

import (
	"maps"
	"testing"
	"time"

	"github.com/berthproject/berth/core"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/door"
	"github.com/berthproject/berth/core/plugins"
	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/internal/test/testkit"
)

// TestRejectersCountEachClassOnce: of each plugin that rejects a node, how many pods wait for
// it; once, for however many reasons and nodes it rejects them.
func TestRejectersCountEachClassOnce(t *testing.T) {
	schema := cluster.NewSchema()
	c, err := core.New(schema, core.DefaultConfig(plugins.Default(schema, plugins.Options{})))
	if err != nil {
		t.Fatal(err)
	}
	waits := func(name string) *testkit.PodBuilder { return testkit.Pod(name).Req("cpu", "4", "memory", "4Gi") }
	c.Step(time.Unix(1, 0), door.Must(
		step.NodeSet{Node: testkit.Node("little-cpu").Alloc("cpu", "2", "memory", "8Gi").Obj()},
		step.NodeSet{Node: testkit.Node("little-memory").Alloc("cpu", "8", "memory", "2Gi").Obj()},
		step.NodeSet{Node: testkit.Node("closed").Alloc("cpu", "8", "memory", "8Gi").Taint("only", "gpus", "NoSchedule").Obj()},
		// Three classes: one of two pods, which each node rejects for a reason of its own; one
		// whose claim doesn't exist, for which no node is looked at; one that tolerates the taint.
		step.PodSet{Pod: waits("a").Obj()}, step.PodSet{Pod: waits("b").Obj()},
		step.PodSet{Pod: waits("claims").Uses("none").Obj()},
		step.PodSet{Pod: waits("tolerates").Req("cpu", "9").Tolerate("only").Obj()})...)
	of := func(plugin string) core.Rejecter { return core.Rejecter{Plugin: plugin, Profile: "default-scheduler"} }
	want := map[core.Rejecter]int{of("NodeResourcesFit"): 2 + 1, of("TaintToleration"): 2, of("VolumeRestrictions"): 1}
	if got := c.Rejecters(); !maps.Equal(got, want) {
		t.Errorf("pods wait for %v, want %v", got, want)
	}
}
