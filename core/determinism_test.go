package core_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/berthproject/berth/core/step"

	resourcehelper "k8s.io/component-helpers/resource"
	"pgregory.net/rapid"

	"github.com/berthproject/berth/core"
	"github.com/berthproject/berth/core/autoscaler/nodegroup"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/door"
	"github.com/berthproject/berth/core/plugins"
	"github.com/berthproject/berth/drive"
	"github.com/berthproject/berth/internal/test/testkit"
)

// play steps a core through a history and returns all its Readies as text.
// Everything succeeds at once; plans are made at once.
func play(t *rapid.T, history [][]step.Input, seed uint64) string {
	out := ""
	write := func(_ time.Time, _ time.Duration, _ []step.Input, r *step.Ready) {
		ready := *r
		ready.Plan = nil // has pointers in it; the plan that it leads to shows
		out += text(&ready)
	}
	cfg := autoscaling(func(a *core.Autoscale) { a.ScanInterval = 2 * time.Second })
	cfg.Engine.Seed = seed
	d := newDriven(t, cfg, prompt{}, defaults, drive.HookFunc(write))
	now := time.Unix(1000, 0)
	for _, in := range history {
		now = now.Add(time.Second)
		d.stepOut(now, in...)
	}
	return out
}

// text writes a Ready out, following the pointers in it.
func text(r *step.Ready) string {
	raw, err := json.Marshal(r)
	if err != nil {
		panic(err)
	}
	return string(raw) + "\n"
}

// tell writes inputs out for a person.
func tell(in []step.Input) string {
	out := ""
	for _, i := range in {
		switch x := i.(type) {
		case step.PodSet:
			out += fmt.Sprintf("pod %s/%s on %q labels %v requests %v affinity %v spread %v tolerations %v\n", x.Pod.Namespace, x.Pod.Name, x.Pod.Spec.NodeName, x.Pod.Labels,
				resourcehelper.PodRequests(x.Pod, resourcehelper.PodResourcesOptions{}), x.Pod.Spec.Affinity, x.Pod.Spec.TopologySpreadConstraints, x.Pod.Spec.Tolerations)
		case step.NodeSet:
			out += fmt.Sprintf("node %s labels %v taints %v allocatable %v cordoned %v\n", x.Node.Name, x.Node.Labels, x.Node.Spec.Taints, x.Node.Status.Allocatable, x.Node.Spec.Unschedulable)
		default:
			out += fmt.Sprintf("%T %+v\n", i, i)
		}
	}
	return out
}

func randomHistory(t *rapid.T) [][]step.Input {
	template := testkit.Node("t").Alloc("cpu", "8", "memory", "16Gi").Obj()
	history := [][]step.Input{{step.GroupsSet{Groups: []nodegroup.Group{{ID: "g", Max: 5, Template: template}}}}}
	storage := rapid.Bool().Draw(t, "storage")
	if storage {
		for _, o := range testkit.RandomStorage(t) {
			history[0] = append(history[0], step.ObjectSet{Object: o})
		}
	}
	pods := 0
	for range rapid.IntRange(1, 30).Draw(t, "steps") {
		var in []step.Input
		for range rapid.IntRange(0, 4).Draw(t, "inputs") {
			switch testkit.Uniform(t, 9, "what") {
			case 0:
				in = append(in, step.NodeSet{Node: testkit.RandomNode(t, fmt.Sprint("n", rapid.IntRange(0, 5).Draw(t, "node")))})
			case 1:
				in = append(in, step.NodeGone{Name: fmt.Sprint("n", rapid.IntRange(0, 5).Draw(t, "node"))})
			case 2:
				in = append(in, step.PodGone{UID: testkit.Pod(fmt.Sprint("p", rapid.IntRange(0, pods).Draw(t, "pod"))).UID})
			case 3:
				in = append(in, step.WorkloadSet{Workload: testkit.RandomWorkload(t)})
			case 4:
				o, gone := testkit.RandomStored(t)
				if gone {
					in = append(in, step.ObjectGone{Kind: cluster.KindOf(o), Namespace: o.GetNamespace(), Name: o.GetName()})
				} else {
					in = append(in, step.ObjectSet{Object: o})
				}
			case 5:
				in = append(in, step.ObjectSet{Object: testkit.RandomNamespace(t)})
			case 6:
				if c, gone := testkit.RandomDeviceClass(t); gone {
					in = append(in, step.ObjectGone{Kind: cluster.DeviceClassKind, Name: c.Name})
				} else {
					in = append(in, step.ObjectSet{Object: c})
				}
			default:
				pods++
				p := testkit.RandomPod(t, fmt.Sprint("p", pods))
				if storage {
					testkit.AddVolumes(t, p)
				}
				in = append(in, step.PodSet{Pod: p})
			}
		}
		history = append(history, in)
	}
	return history
}

// TestPropertySameInputsSameReady replays one history in fresh cores.
func TestPropertySameInputsSameReady(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		history := randomHistory(t)
		first := play(t, history, 1)
		for range 2 {
			if again := play(t, history, 1); again != first {
				t.Fatalf("the same history gave\n%s\nand\n%s", first, again)
			}
		}
	})
}

// TestPropertyNoSchedulablePodIsForgotten checks that once nothing happens any
// more, every pod that fits somewhere has been placed, without the leftover
// sweep having found one.
func TestPropertyNoSchedulablePodIsForgotten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		schema := cluster.NewSchema()
		profile := plugins.Default(schema, plugins.Options{})
		c, err := core.New(schema, core.DefaultConfig(profile))
		if err != nil {
			t.Fatal(err)
		}
		now := time.Unix(1000, 0)
		told := ""
		for _, in := range randomHistory(t) {
			now = now.Add(500 * time.Millisecond)
			r := c.Step(now, door.Must(in...)...)
			told += tell(in) + "→ " + text(&r)
		}
		for range 12 { // past every backoff, short of the sweep
			now = now.Add(11 * time.Second)
			c.Step(now)
		}
		for range 3 {
			now = now.Add(6 * time.Minute)
			c.Step(now)
		}
		if n := c.Stats().MissedWakeups; n > 0 {
			t.Fatalf("%d pods were found schedulable by the leftover sweep; history:\n%s", n, told)
		}
	})
}

// TestSeedMovesTies shows that another seed chooses differently among equals.
func TestSeedMovesTies(t *testing.T) {
	choose := func(seed uint64) string {
		schema := cluster.NewSchema()
		cfg := core.DefaultConfig(plugins.Default(schema, plugins.Options{}))
		cfg.Engine.Seed = seed
		c, err := core.New(schema, cfg)
		if err != nil {
			t.Fatal(err)
		}
		var in []step.Input
		for _, name := range testkit.Names("n", 50) {
			in = append(in, step.NodeSet{Node: testkit.Node(name).Alloc("cpu", "4", "memory", "8Gi").Obj()})
		}
		r := c.Step(time.Unix(1, 0), door.Must(append(in, step.PodSet{Pod: testkit.Pod("p").Req("cpu", "1").Obj()})...)...)
		return r.Binds[0].Node
	}
	seen := map[string]bool{}
	for seed := range uint64(8) {
		seen[choose(seed)] = true
	}
	if len(seen) < 4 {
		t.Errorf("8 seeds chose only %d of 50 equal nodes", len(seen))
	}
}
