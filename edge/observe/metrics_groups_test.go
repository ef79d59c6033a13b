package observe

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	v1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"

	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/internal/test/testkit"
)

// TestPodGroupsAreCounted: the time of a Step is divided by pods, and a group's is that of its members.
func TestPodGroupsAreCounted(t *testing.T) {
	m := NewMetrics()
	m.Step(time.Unix(1000, 0), 80*time.Millisecond, nil, &step.Ready{Decisions: []step.Decision{
		{Kind: step.GroupPlaced, Profile: "p", Members: 2}, {Kind: step.Placed, Profile: "p"}, {Kind: step.Placed, Profile: "p"},
		{Kind: step.GroupWaits, Profile: "p", Members: 5}, {Kind: step.Waits, Profile: "p"},
	}})
	want := `
		# HELP scheduler_podgroup_schedule_attempts_total Number of attempts to schedule pod groups, by result: scheduled when enough members got nodes, or unschedulable.
		# TYPE scheduler_podgroup_schedule_attempts_total counter
		scheduler_podgroup_schedule_attempts_total{profile="p",result="scheduled"} 1
		scheduler_podgroup_schedule_attempts_total{profile="p",result="unschedulable"} 1
	`
	if err := testutil.GatherAndCompare(m.Registry, strings.NewReader(want), "scheduler_podgroup_schedule_attempts_total"); err != nil {
		t.Error(err)
	}
	families, err := m.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == "scheduler_podgroup_scheduling_algorithm_duration_seconds" {
			if got := f.Metric[0].Histogram.GetSampleSum(); got < 0.0699 || got > 0.0701 {
				t.Errorf("the groups took %f s, want 70 ms: 7 of 8 pods' shares", got)
			}
			return
		}
	}
	t.Error("the time that groups took isn't served")
}

// TestDisruptionsOfPodGroupsAreCounted has a gang preempt all that is on two nodes: a group that goes
// whole, one of whose members each goes by itself, and a pod. Those are three units. A pod that
// preempts is not observed, as in kube-scheduler, and neither is a gang whose victim has no group.
func TestDisruptionsOfPodGroupsAreCounted(t *testing.T) {
	l := newLive(t)
	whole := testkit.PodGroup("whole", 2, "")
	whole.Spec.DisruptionMode = &schedulingv1beta1.DisruptionMode{All: &schedulingv1beta1.AllDisruptionMode{}}
	in := []step.Input{step.ObjectSet{Object: whole}, step.ObjectSet{Object: testkit.PodGroup("single", 2, "")}}
	for _, n := range []string{"n1", "n2", "n3", "n4"} {
		in = append(in, step.NodeSet{Node: testkit.Node(n).Alloc("cpu", "4", "memory", "8Gi").Label("node", n).Obj()})
	}
	on := func(name, node, cpu, group string) {
		pod := testkit.Pod(name).Req("cpu", cpu).On(node)
		if group != "" {
			pod.PodGroup(group)
		}
		in = append(in, step.PodSet{Pod: pod.Obj()})
	}
	on("w1", "n1", "1", "whole")
	on("w2", "n2", "2", "whole")
	on("s1", "n1", "2", "single")
	on("s2", "n2", "2", "single")
	on("alone", "n1", "1", "")
	on("x", "n3", "4", "")
	on("y", "n4", "4", "single")
	l.step(in...)
	gang := func(name string, nodes ...string) (in []step.Input) {
		group := testkit.PodGroup(name, len(nodes), "")
		group.Spec.Priority = new(int32(10))
		in = append(in, step.ObjectSet{Object: group})
		for i, n := range nodes {
			in = append(in, step.PodSet{Pod: testkit.Pod(fmt.Sprint(name, i)).PodGroup(name).Req("cpu", "4").Priority(10).With(func(p *v1.Pod) { p.Spec.NodeSelector = map[string]string{"node": n} }).Obj()})
		}
		return in
	}
	const count, sum = `scheduler_preemption_workload_disruptions_count{preemptor="podgroup"} `, `scheduler_preemption_workload_disruptions_sum{preemptor="podgroup"} `
	l.step(gang("high", "n1", "n2")...)
	l.wants(`scheduler_workload_preemption_victims_sum 5`, count+"1", sum+"3")
	l.step(gang("other", "n3")...)
	l.wants(`scheduler_workload_preemption_victims_sum 6`, count+"1", sum+"3")
	l.step(step.PodSet{Pod: testkit.Pod("pod").Req("cpu", "4").Priority(10).With(func(p *v1.Pod) { p.Spec.NodeSelector = map[string]string{"node": "n4"} }).Obj()})
	l.wants(`scheduler_preemption_victims_sum 1`, count+"1", sum+"3")
}
