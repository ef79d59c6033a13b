package preemption_test

import (
	"fmt"
	"testing"

	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"pgregory.net/rapid"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/engine"
	"github.com/berthproject/berth/core/framework"
	"github.com/berthproject/berth/core/lifecycle/preemption"
	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/internal/test/testkit"
)

// TestPropertyDisruptionsAreUnits has a group preempt random pods: of groups that go whole, of groups
// whose members go singly, of groups without a PodGroup, and without a group. The decision must count
// what kube-scheduler counts: distinct whole groups, and each other member by itself.
func TestPropertyDisruptionsAreUnits(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := newWorld()
		modes := map[string]string{"": "no group"}
		for i := range rapid.IntRange(0, 4).Draw(rt, "groups") {
			g := testkit.PodGroup(fmt.Sprint("g", i), 2, "")
			switch mode := rapid.SampledFrom([]string{"whole", "single", "default", "missing"}).Draw(rt, "mode"); mode {
			case "whole":
				g.Spec.DisruptionMode = &schedulingv1beta1.DisruptionMode{All: &schedulingv1beta1.AllDisruptionMode{}}
			case "single":
				g.Spec.DisruptionMode = &schedulingv1beta1.DisruptionMode{Single: &schedulingv1beta1.SingleDisruptionMode{}}
			case "missing":
				modes[g.Name] = mode
				continue
			}
			modes[g.Name] = "singly"
			if g.Spec.DisruptionMode != nil && g.Spec.DisruptionMode.All != nil {
				modes[g.Name] = "whole"
			}
			w.State.SetObject(g)
		}
		want, units := map[string]bool{}, framework.Victims{}
		for i := range rapid.IntRange(1, 12).Draw(rt, "victims") {
			name := fmt.Sprint("v", i)
			pod := testkit.Pod(name).Req("cpu", "1m")
			group := rapid.SampledFrom([]string{"", "g0", "g1", "g2", "g3"}).Draw(rt, "group")
			if modes[group] == "" {
				group = ""
			}
			if group != "" {
				pod.PodGroup(group)
				unit := "pod " + name
				if modes[group] == "whole" {
					unit = "group " + group
				}
				want[unit] = true
			}
			parsed := w.State.Schema.ParsePod(pod.Obj())
			w.State.Place(parsed, "n")
			units.Pods = append(units.Pods, parsed)
		}
		member := w.State.Schema.ParsePod(testkit.Pod("m").PodGroup("high").Priority(10).Obj())
		w.m.PreemptForGroup(w.Turn, testkit.PodGroup("high", 1, ""), []*cluster.Pod{member}, &units, nil)
		preemption.Note(w.Turn, member, &engine.Candidate{Node: w.State.NodeByName("n").Index, Victims: units}, nil)
		var seen int
		for _, d := range w.Flush().Decisions {
			if d.Kind != step.Preempts {
				continue
			}
			if seen++; d.Disruptions != len(want) {
				rt.Fatalf("%s: %d units of pod groups leave, want %d: %v", d.String(), d.Disruptions, len(want), want)
			}
		}
		if seen != 2 {
			rt.Fatalf("%d decisions to preempt, want that of the group and that of the pod", seen)
		}
	})
}
