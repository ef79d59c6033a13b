package observe

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/berthproject/berth/core"
	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/autoscaler/nodegroup"
	"github.com/berthproject/berth/core/door"
	"github.com/berthproject/berth/core/explain"
	"github.com/berthproject/berth/core/lifecycle/launching"
	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/internal/test/testkit"
)

// scaled is a driven core with two node groups, cpu and gpu, whose plans a test makes by hand.
type scaled struct {
	*live
	groups  []nodegroup.Group
	request *autoscaler.Request // that isn't answered; nil for none
}

// newScaled returns one that the provider has told of its groups: cpu has the nodes n1 to n4, of
// which n4 isn't ready, and gpu none.
func newScaled(t *testing.T, change func(*core.Autoscale)) *scaled {
	cfg, a := core.DefaultConfig(), core.DefaultAutoscale()
	a.ScanInterval, a.UnneededTime, a.DelayAfterAdd = time.Second, 2*time.Second, 0
	if change != nil {
		change(&a)
	}
	cfg.Autoscale = &a
	s := &scaled{live: newLiveOf(t, cfg)}
	s.m.EmitPerNodeGroup()
	template := testkit.Node("t").Label(v1.LabelInstanceTypeStable, "m5.xlarge").Alloc("cpu", "4", "memory", "8Gi", "pods", "10").Obj()
	s.groups = []nodegroup.Group{
		{ID: "cpu", Min: 1, Max: 9, Target: 4, Price: 0.5, Template: template, Instances: []nodegroup.Instance{}},
		{ID: "gpu", Max: 3, Template: testkit.Node("t").Alloc("cpu", "4", "memory", "8Gi", "pods", "10", "nvidia.com/gpu", "1").Obj(), Instances: []nodegroup.Instance{}},
	}
	in := []step.Input{step.GroupsSet{Groups: s.groups}}
	for _, name := range []string{"n1", "n2", "n3", "n4"} {
		n := testkit.Node(name).Alloc("cpu", "4", "memory", "8Gi", "pods", "10").Obj()
		n.Status.Capacity = v1.ResourceList{"cpu": *n.Status.Allocatable.Cpu(), "memory": *n.Status.Allocatable.Memory()}
		n.CreationTimestamp = metav1.NewTime(s.now)
		if name == "n4" {
			n.CreationTimestamp = metav1.NewTime(s.now.Add(-time.Hour))
			n.Status.Conditions = []v1.NodeCondition{{Type: v1.NodeReady, Status: v1.ConditionFalse}}
			n.Spec.Taints = []v1.Taint{{Key: v1.TaintNodeNotReady, Effect: v1.TaintEffectNoSchedule}, {Key: "team", Effect: v1.TaintEffectNoSchedule}}
		}
		in = append(in, step.NodeSet{Node: n, Group: "cpu"})
	}
	s.step(in...)
	return s
}

// step runs a Step, and keeps what plan it asks for.
func (s *scaled) step(in ...step.Input) {
	s.t.Helper()
	if plan := s.live.step(in...).Plan; plan != nil {
		s.request = plan
	}
}

// plan answers the next request with a plan that is made by hand.
func (s *scaled) plan(change func(*autoscaler.Plan)) {
	s.t.Helper()
	for range 100 {
		if request := s.request; request != nil {
			s.request = nil
			p := autoscaler.NewPlan(request, 0)
			change(p)
			s.step(step.PlanMade{Plan: p})
			return
		}
		s.step()
	}
	s.t.Fatal("no plan is asked for")
}

// TestMetricsOfTheCluster reads the gauges of a cluster with a node that isn't ready, before and
// after its groups are known and a group backs off.
func TestMetricsOfTheCluster(t *testing.T) {
	cfg, a := core.DefaultConfig(), core.DefaultAutoscale()
	cfg.Autoscale = &a
	unknown := newLiveOf(t, cfg)
	unknown.step()
	unknown.wantsNone("cluster_autoscaler_cluster_safe_to_autoscale", "cluster_autoscaler_nodes_count", "cluster_autoscaler_last_activity")

	s := newScaled(t, func(a *core.Autoscale) { a.Limits.MaxNodesTotal, a.Limits.Totals[0].Min = 11, 2 })
	s.step(step.PodSet{Pod: testkit.Pod("big").Req("cpu", "9").Obj()}, step.PodSet{Pod: testkit.Pod("held").Gate("g").Obj()})
	s.wants(`cluster_autoscaler_cluster_safe_to_autoscale 1`,
		`cluster_autoscaler_nodes_count{state="ready"} 3`, `cluster_autoscaler_nodes_count{state="unready"} 1`, `cluster_autoscaler_nodes_count{state="notStarted"} 0`,
		`cluster_autoscaler_nodes_count{state="unregistered"} 0`, `cluster_autoscaler_nodes_count{state="longUnregistered"} 0`, `cluster_autoscaler_nodes_count{state="suspended"} 0`,
		`cluster_autoscaler_node_groups_count{node_group_type="autoscaled"} 2`, `cluster_autoscaler_node_groups_count{node_group_type="autoprovisioned"} 0`,
		`cluster_autoscaler_unschedulable_pods_count{type="unschedulable"} 1`, `cluster_autoscaler_unschedulable_pods_count{type="scheduler_unprocessed"} 0`,
		`cluster_autoscaler_max_nodes_count 11`, `cluster_autoscaler_cluster_cpu_current_cores 16`, `cluster_autoscaler_cluster_memory_current_bytes 3.4359738368e+10`,
		`cluster_autoscaler_cpu_limits_cores{direction="minimum"} 2`, `cluster_autoscaler_cpu_limits_cores{direction="maximum"} 320000`,
		`cluster_autoscaler_memory_limits_bytes{direction="minimum"} 0`, `cluster_autoscaler_memory_limits_bytes{direction="maximum"} 6.8719476736e+15`,
		`cluster_autoscaler_node_taints_count{type="node.kubernetes.io/not-ready"} 1`, `cluster_autoscaler_node_taints_count{type="other"} 1`,
		`cluster_autoscaler_node_group_min_count{node_group="cpu"} 1`, `cluster_autoscaler_node_group_max_count{node_group="cpu"} 9`, `cluster_autoscaler_node_group_target_count{node_group="cpu"} 4`,
		`cluster_autoscaler_node_group_healthiness{node_group="cpu"} 1`, `cluster_autoscaler_node_group_backoff_status{node_group="cpu",reason=""} 0`)
	s.plan(func(p *autoscaler.Plan) { p.ScaleUps = []autoscaler.ScaleUp{{Group: "cpu", Nodes: 2}} })
	s.wants(`cluster_autoscaler_node_group_target_count{node_group="cpu"} 6`, `cluster_autoscaler_nodes_count{state="unregistered"} 2`)
	s.step(step.ScaleUpDone{Group: "cpu", Nodes: 2, Err: errors.New("no quota"), Class: nodegroup.OutOfResources})
	s.wants(`cluster_autoscaler_node_group_backoff_status{node_group="cpu",reason="cloudProviderError"} 1`, `cluster_autoscaler_node_group_target_count{node_group="cpu"} 4`)
	s.now = s.now.Add(6 * time.Minute)
	s.step(step.GroupsSet{Groups: s.groups[:1]})
	s.now = s.now.Add(nodegroup.GoneAfter)
	s.step(step.GroupsSet{Groups: s.groups[:1]})
	s.wants(`cluster_autoscaler_node_group_backoff_status{node_group="cpu",reason="cloudProviderError"} 0`, `cluster_autoscaler_node_groups_count{node_group_type="autoscaled"} 1`)
	s.wantsNone(`cluster_autoscaler_node_group_max_count{node_group="gpu"}`)
}

// TestMetricsOfPrices has a group with a price and one without, and a price file that breaks.
func TestMetricsOfPrices(t *testing.T) {
	s := newScaled(t, nil)
	s.wants(`berth_node_groups_without_price 1`, `berth_node_group_price_hourly{node_group="cpu"} 0.5`)
	s.wantsNone(`berth_node_group_price_hourly{node_group="gpu"}`, `berth_node_prices_last_reload_successful`)
	s.groups[0].Price, s.groups[1].Price = 0, 2
	s.step(step.GroupsSet{Groups: s.groups})
	s.wants(`berth_node_groups_without_price 1`, `berth_node_group_price_hourly{node_group="gpu"} 2`)
	s.wantsNone(`berth_node_group_price_hourly{node_group="cpu"}`)

	server := &Server{Metrics: s.m}
	server.PricesRead("EUR", "")
	s.wants(`berth_node_prices_last_reload_successful 1`)
	server.PricesRead("EUR", "rules is empty")
	s.wants(`berth_node_prices_last_reload_successful 0`)
}

// TestMetricsOfSickClustersAndGroups has nodes fail until neither the group nor the cluster may be
// changed.
func TestMetricsOfSickClustersAndGroups(t *testing.T) {
	s := newScaled(t, func(a *core.Autoscale) { a.Limits.OKTotalUnready, a.Limits.MaxTotalUnready = 0, 30 })
	s.wants(`cluster_autoscaler_cluster_safe_to_autoscale 1`, `cluster_autoscaler_node_group_healthiness{node_group="cpu"} 1`, `cluster_autoscaler_node_group_healthiness{node_group="gpu"} 1`)
	n := testkit.Node("n3").Alloc("cpu", "4", "memory", "8Gi", "pods", "10").Obj()
	n.CreationTimestamp = metav1.NewTime(s.now.Add(-time.Hour))
	n.Status.Conditions = []v1.NodeCondition{{Type: v1.NodeReady, Status: v1.ConditionUnknown}}
	s.step(step.NodeSet{Node: n, Group: "cpu"})
	s.wants(`cluster_autoscaler_cluster_safe_to_autoscale 0`, `cluster_autoscaler_node_group_healthiness{node_group="cpu"} 0`, `cluster_autoscaler_node_group_healthiness{node_group="gpu"} 1`)
}

// TestMetricsOfScaleUp orders nodes that come, are refused, fail and are late.
func TestMetricsOfScaleUp(t *testing.T) {
	s := newScaled(t, nil)
	s.wants(`cluster_autoscaler_scaled_up_nodes_total{dra_drivers="",gpu_name="",gpu_resource_name=""} 0`, `cluster_autoscaler_failed_scale_ups_total{dra_drivers="",gpu_name="",gpu_resource_name="",reason="timeout"} 0`)
	s.plan(func(p *autoscaler.Plan) {
		p.ScaleUps = []autoscaler.ScaleUp{{Group: "cpu", Nodes: 3}, {Group: "gpu", Nodes: 2}}
		p.Packed = []autoscaler.Packing{{Group: "cpu", Classes: 5, Namespaces: 2}, {Group: "gpu", Classes: 1, Namespaces: 7}, {Group: "gone", Classes: 1}}
	})
	s.wants(`cluster_autoscaler_binpacking_heterogeneity_bucket{cpu_count="4",instance_type="m5.xlarge",namespace_count="2",le="4"} 0`, `cluster_autoscaler_binpacking_heterogeneity_bucket{cpu_count="4",instance_type="m5.xlarge",namespace_count="2",le="8"} 1`,
		`cluster_autoscaler_binpacking_heterogeneity_count{cpu_count="4",instance_type="",namespace_count="6-10"} 1`)
	s.step(step.ScaleUpDone{Group: "cpu", Nodes: 3}, step.ScaleUpDone{Group: "gpu", Nodes: 2, Err: errors.New("refused")})
	s.wants(`cluster_autoscaler_scaled_up_nodes_total{dra_drivers="",gpu_name="",gpu_resource_name=""} 3`,
		`cluster_autoscaler_failed_scale_ups_total{dra_drivers="",gpu_name="generic",gpu_resource_name="nvidia.com/gpu",reason="cloudProviderError"} 1`,
		`cluster_autoscaler_failed_gpu_scale_ups_total{gpu_name="generic",gpu_resource_name="nvidia.com/gpu",reason="cloudProviderError"} 1`, `cluster_autoscaler_failed_node_creations_total{reason="cloudProviderError"} 2`)
	s.groups[0].Target, s.groups[0].Instances = 7, []nodegroup.Instance{{ID: "i1", Failed: "no CPUs", Code: "QUOTA_EXCEEDED"}, {ID: "i2", Failed: "no CPUs", Code: "QUOTA_EXCEEDED"}, {ID: "i3"}, {ID: "i4", Node: "n1"}, {ID: "i5", Node: "n2"}, {ID: "i6", Node: "n3"}, {ID: "i7", Node: "n4"}}
	s.step(step.GroupsSet{Groups: s.groups})
	s.wants(`cluster_autoscaler_failed_scale_ups_total{dra_drivers="",gpu_name="",gpu_resource_name="",reason="QUOTA_EXCEEDED"} 1`, `cluster_autoscaler_failed_node_creations_total{reason="QUOTA_EXCEEDED"} 2`,
		`cluster_autoscaler_node_group_backoff_status{node_group="cpu",reason="QUOTA_EXCEEDED"} 1`)
	s.step(step.NodeDeletionDone{Instance: "i1"}, step.NodeDeletionDone{Instance: "i2"})
	s.now = s.now.Add(16 * time.Minute)
	s.groups[0].Target, s.groups[0].Instances = 5, s.groups[0].Instances[2:]
	s.step(step.GroupsSet{Groups: s.groups})
	s.wants(`cluster_autoscaler_failed_scale_ups_total{dra_drivers="",gpu_name="",gpu_resource_name="",reason="timeout"} 1`, `cluster_autoscaler_failed_node_creations_total{reason="timeout"} 1`,
		`cluster_autoscaler_old_unregistered_nodes_removed_count 0`, `cluster_autoscaler_nodes_count{state="longUnregistered"} 1`)
	s.step(step.NodeDeletionDone{Instance: "i3"})
	s.wants(`cluster_autoscaler_old_unregistered_nodes_removed_count 1`)
	s.m.scaleUp.step(nil, &step.Ready{ScaleUps: []step.ScaleUp{{Group: "gpu", Nodes: 1, GPU: "nvidia.com/gpu"}}})
	s.m.scaleUp.step([]step.Input{step.ScaleUpDone{Group: "gpu", Nodes: 1}}, &step.Ready{})
	s.wants(`cluster_autoscaler_scaled_up_gpu_nodes_total{gpu_name="generic",gpu_resource_name="nvidia.com/gpu"} 1`)
}

// TestMetricsOfCallsWithoutAnAnswer counts an order and a removal when the provider's list has shown
// that they were carried out, and not before.
func TestMetricsOfCallsWithoutAnAnswer(t *testing.T) {
	s := newScaled(t, nil)
	nodes, removed := `cluster_autoscaler_scaled_up_nodes_total{dra_drivers="",gpu_name="",gpu_resource_name=""} `, `cluster_autoscaler_scaled_down_nodes_total{dra_drivers="",gpu_name="",gpu_resource_name="",reason="empty"} `
	s.m.Step(s.now, time.Millisecond, nil, &step.Ready{NodeDeletions: []step.NodeDeletion{{Node: "a", Reason: step.RemovedEmpty}}})
	s.m.Step(s.now, time.Millisecond, []step.Input{
		step.ScaleUpDone{Group: "cpu", Nodes: 3, Err: errors.New("late"), Unknown: true}, step.NodeDeletionDone{Node: "a", Err: errors.New("late"), Unknown: true}}, &step.Ready{})
	s.wants(nodes+"0", removed+"0")
	s.m.Step(s.now, time.Millisecond, nil, &step.Ready{SettledScaleUps: []step.ScaleUpDone{{Group: "cpu", Nodes: 3}}, SettledDeletions: []step.NodeDeletionDone{{Node: "a"}}})
	s.wants(nodes+"3", removed+"1")
}

// TestMetricsOfPlans makes plans that take time, are refused, and meet limits.
func TestMetricsOfPlans(t *testing.T) {
	s := newScaled(t, nil)
	server := NewServer(slog.New(slog.DiscardHandler))
	server.Metrics = s.m
	s.wants(`cluster_autoscaler_last_activity{activity="main"} 1000`, `cluster_autoscaler_last_activity{activity="scaleDown"} 1000`)
	s.wantsNone(`cluster_autoscaler_last_activity{activity="mainSuccessful"}`, `cluster_autoscaler_last_activity{activity="scaleUp"}`)
	s.step(step.PodSet{Pod: testkit.Pod("big").Req("cpu", "9").Obj()}) // one second
	s.plan(func(p *autoscaler.Plan) {
		p.NoHelp = []autoscaler.NoHelp{{Reasons: []string{"1 Insufficient cpu", "2 max cluster cpu limit reached"}}, {Reasons: []string{"2 max cluster memory limit reached"}}}
		p.Kept = []autoscaler.Kept{{Node: "n1", Reason: autoscaler.KeptMinTotal, Resource: "cpu"}, {Node: "n2", Reason: autoscaler.KeptMinTotal, Resource: "cpu"}, {Node: "n3", Reason: autoscaler.KeptUtilized}}
	})
	s.wants(`cluster_autoscaler_last_activity{activity="mainSuccessful"} 1002`, `cluster_autoscaler_last_activity{activity="autoscaling"} 1002`, `cluster_autoscaler_last_activity{activity="scaleUp"} 1002`,
		// Asked for at 1000, taken in by the Step of 1002, which takes 10 ms.
		`cluster_autoscaler_function_duration_seconds_sum{function="main"} 2.01`, `cluster_autoscaler_function_duration_seconds_sum{function="scaleDown"} 0.01`, `cluster_autoscaler_function_duration_quantile_seconds_count{function="main"} 1`,
		`cluster_autoscaler_skipped_scale_events_count{direction="up",reason="CpuResourceLimit"} 1`, `cluster_autoscaler_skipped_scale_events_count{direction="up",reason="MemoryResourceLimit"} 1`,
		`cluster_autoscaler_skipped_scale_events_count{direction="down",reason="CpuResourceLimit"} 2`, `cluster_autoscaler_skipped_scale_events_count{direction="down",reason="MemoryResourceLimit"} 0`,
		`cluster_autoscaler_errors_total{type="internalError"} 0`)
	s.step(step.PlanMade{Plan: &autoscaler.Plan{Request: 77}}) // nobody asked for it
	s.wants(`cluster_autoscaler_errors_total{type="internalError"} 1`)
	s.plan(func(p *autoscaler.Plan) { p.Sick = "half of it is gone" })
	s.wants(`cluster_autoscaler_last_activity{activity="autoscaling"} 1002`)
	server.GroupsRead(2*time.Second, nil)
	server.GroupsRead(3*time.Second, errors.New("no answer"))
	server.PlanComputed(4*time.Second, 5*time.Second)
	server.PlanFailed()
	s.wants(`cluster_autoscaler_errors_total{type="cloudProviderError"} 1`, `cluster_autoscaler_errors_total{type="internalError"} 2`, `cluster_autoscaler_function_duration_seconds_sum{function="cloudProviderRefresh"} 5`,
		`cluster_autoscaler_function_duration_seconds_sum{function="scaleUp"} 4`, `cluster_autoscaler_function_duration_seconds_sum{function="findUnneeded"} 5`)
}

// TestMetricsOfLaunches orders a node by an adaptive limit of the cluster and a fixed one of each group,
// and follows it until its first pod runs.
func TestMetricsOfLaunches(t *testing.T) {
	s := newScaled(t, func(a *core.Autoscale) { a.MaxNodesLaunching, a.MaxNodesLaunchingPerGroup = launching.Adaptive, 7 })
	s.wants(`berth_launch_limit_nodes{stage="launching"} 100`, `berth_launch_limit_nodes{stage="pulling"} 50`, `berth_node_group_launch_limit_nodes{node_group="gpu",stage="launching"} 7`, `berth_launch_held_pods 0`)
	s.wantsNone(`berth_node_group_launch_limit_nodes{node_group="gpu",stage="pulling"}`)
	s.step(step.PodSet{Pod: testkit.Pod("p").Req("cpu", "3").Obj()})
	ordered := s.now
	s.plan(func(p *autoscaler.Plan) {
		ordered = s.now
		p.ScaleUps = []autoscaler.ScaleUp{{Group: "gpu", Nodes: 1}}
		p.NoHelp = []autoscaler.NoHelp{
			{Pods: []types.UID{"a", "b"}, Reasons: []string{"1 Insufficient cpu", "1 max number of nodes launching reached"}},
			{Pods: []types.UID{"c"}, Reasons: []string{"1 max number of nodes launching in the group reached", "1 max number of nodes launching reached"}},
			{Pods: []types.UID{"d"}, Reasons: []string{"2 Insufficient cpu"}},
		}
	})
	s.wants(`berth_launch_held_pods 3`)
	s.step(step.ScaleUpDone{Group: "gpu", Nodes: 1})
	at := func(seconds int, in step.Input) {
		s.now = ordered.Add(time.Duration(seconds) * time.Second)
		s.step(in)
		s.step() // what is reached in a Step may be told in the next
	}
	s.groups[1].Target, s.groups[1].Instances = 1, []nodegroup.Instance{{ID: "i", Node: "new"}}
	at(5, step.GroupsSet{Groups: s.groups})
	node := testkit.Node("new").Alloc("cpu", "4", "memory", "8Gi", "pods", "10", "nvidia.com/gpu", "1").Taint(v1.TaintNodeNotReady, "", v1.TaintEffectNoSchedule).Obj()
	at(30, step.NodeSet{Node: node, Group: "gpu"})
	at(40, step.NodeSet{Node: testkit.Node("new").Alloc("cpu", "4", "memory", "8Gi", "pods", "10", "nvidia.com/gpu", "1").Obj(), Group: "gpu"})
	running := testkit.Pod("q").On("new").Obj()
	running.Status.Phase = v1.PodRunning
	at(60, step.PodSet{Pod: running})
	for stage, seconds := range map[string]int{"listed": 5, "registered": 30, "ready": 40, "podRunning": 60} {
		s.wants(fmt.Sprintf(`berth_node_launch_seconds_sum{stage=%q} %d`, stage, seconds), fmt.Sprintf(`berth_node_launch_seconds_count{stage=%q} 1`, stage),
			fmt.Sprintf(`berth_node_group_launch_seconds_sum{node_group="gpu",stage=%q} %d`, stage, seconds))
	}
	s.plan(func(*autoscaler.Plan) {})
	s.wants(`berth_launch_held_pods 0`)
	s.step(step.GroupsSet{Groups: s.groups[:1]})
	s.now = s.now.Add(nodegroup.GoneAfter)
	s.step(step.GroupsSet{Groups: s.groups[:1]})
	s.wantsNone(`berth_node_group_launch_limit_nodes{node_group="gpu"`)
}

// TestPlansOfMillisecondsAreToldApart has plans take a few milliseconds each: no two of them are in
// one bucket, and each of Cluster Autoscaler's buckets is there still.
func TestPlansOfMillisecondsAreToldApart(t *testing.T) {
	s := newScaled(t, nil)
	server := NewServer(slog.New(slog.DiscardHandler))
	server.Metrics = s.m
	for _, ms := range []float64{0.7, 1.5, 4, 8, 15, 40, 90} {
		server.PlanComputed(time.Duration(ms*float64(time.Millisecond)), time.Minute)
	}
	for i, le := range []string{"0.0005", "0.001", "0.002", "0.005", "0.01", "0.02", "0.05", "0.1"} {
		s.wants(fmt.Sprintf(`cluster_autoscaler_function_duration_seconds_bucket{function="scaleUp",le=%q} %d`, le, i))
	}
}

// TestMetricsOfScaleDownStatuses has nodes wait for the delay of their group, for a limit and for
// displaced pods: each time one status has the value 1.
func TestMetricsOfScaleDownStatuses(t *testing.T) {
	s := newScaled(t, func(a *core.Autoscale) { a.MaxScaleDown, a.DelayAfterAdd = 1, time.Minute })
	is := func(status explain.ScaleDownStatus, reason string) {
		t.Helper()
		for _, x := range explain.ScaleDownStatuses {
			s.wants(fmt.Sprintf(`berth_scale_down_status{status=%q} %v`, x, oneIf(x == status)))
		}
		s.wants(fmt.Sprintf(`cluster_autoscaler_scale_down_in_cooldown %v`, oneIf(status == explain.ScaleDownInCooldown)))
		if reason != "" {
			s.wants(reason)
		}
	}
	could := func(p *autoscaler.Plan) { p.Removals = []*autoscaler.Removal{{Node: "n1"}, {Node: "n2"}} }
	is(explain.ScaleDownUnknown, "")
	s.plan(func(p *autoscaler.Plan) { could(p); p.ScaleUps = []autoscaler.ScaleUp{{Group: "cpu", Nodes: 1}} })
	s.step(step.ScaleUpDone{Group: "cpu", Nodes: 1})
	is(explain.ScaleDownCandidates, `cluster_autoscaler_unremovable_nodes_count{reason="NotUnneededLongEnough"} 2`)
	s.now = s.now.Add(30 * time.Second)
	s.plan(could)
	s.plan(could)
	is(explain.ScaleDownInCooldown, `cluster_autoscaler_unremovable_nodes_count{reason="InCooldown"} 2`)
	s.now = s.now.Add(time.Minute)
	s.plan(could)
	s.plan(could)
	is(explain.ScaleDownThrottled, `cluster_autoscaler_unremovable_nodes_count{reason="Throttled"} 1`)
	s.plan(func(p *autoscaler.Plan) {
		p.Kept = []autoscaler.Kept{{Node: "n2", Reason: autoscaler.KeptDisplaced, Pod: "default/p"}, {Node: "n3", Reason: autoscaler.KeptDisplaced, Pod: "default/p"}}
	})
	is(explain.ScaleDownHeld, `cluster_autoscaler_unremovable_nodes_count{reason="DisplacedPods"} 2`)
	s.plan(func(p *autoscaler.Plan) { p.Kept = []autoscaler.Kept{{Node: "n2", Reason: autoscaler.KeptUtilized}} })
	is(explain.ScaleDownNoCandidates, "")
}

// TestRemovalLatency has a node wait after its time has come, go, and another be needed again.
func TestRemovalLatency(t *testing.T) {
	s := newScaled(t, func(a *core.Autoscale) { a.MaxScaleDown = 1 })
	could := func(p *autoscaler.Plan) { p.Removals = []*autoscaler.Removal{{Node: "n1"}, {Node: "n2"}} }
	s.plan(could) // both could go, and are due two seconds later
	s.step()
	s.now = s.now.Add(time.Minute)
	s.plan(could) // one goes
	s.plan(could)
	s.wants(`cluster_autoscaler_node_removal_latency_seconds_count{delay_reason="none",deleted="true"} 1`)
	s.wantsNone(`cluster_autoscaler_node_removal_latency_seconds_count{delay_reason="Throttled"`)
	s.plan(func(p *autoscaler.Plan) { p.Kept = []autoscaler.Kept{{Node: "n2", Reason: autoscaler.KeptUtilized}} })
	s.wants(`cluster_autoscaler_node_removal_latency_seconds_count{delay_reason="Throttled",deleted="false"} 1`)
}

// TestRecordedScrape keeps the scrape in which the dashboard's and the alerts' expressions are
// evaluated (hack/promcheck). It has every metric of the list, each with all its labels.
func TestRecordedScrape(t *testing.T) {
	s := newScaled(t, func(a *core.Autoscale) { a.MaxNodesLaunching, a.MaxNodesLaunchingPerGroup = launching.Adaptive, 7 })
	server := NewServer(slog.New(slog.DiscardHandler))
	server.Metrics = s.m
	s.step(step.PodSet{Pod: testkit.Pod("low").Req("cpu", "3").Obj()})
	s.step(step.BindDone{UID: "pod-low"})
	s.step(step.PodSet{Pod: testkit.Pod("big").Req("cpu", "9").Obj()}, step.PodSet{Pod: testkit.Pod("second").Req("cpu", "3").Obj()})
	s.step(step.BindDone{UID: "pod-second", Err: errors.New("refused")})
	server.ClaimCreated(nil)
	server.DevicesAwaited("default-scheduler", []string{"gpu.example"}, []string{"gpu.example"}, "success", time.Second)
	s.plan(func(p *autoscaler.Plan) {
		p.ScaleUps = []autoscaler.ScaleUp{{Group: "cpu", Nodes: 1}, {Group: "gpu", Nodes: 1}}
		p.Packed = []autoscaler.Packing{{Group: "cpu", Classes: 2, Namespaces: 1}}
		p.Removals = []*autoscaler.Removal{{Node: "n3"}}
		p.Kept = []autoscaler.Kept{{Node: "n1", Reason: autoscaler.KeptUtilized}}
	})
	s.step(step.ScaleUpDone{Group: "cpu", Nodes: 1}, step.ScaleUpDone{Group: "gpu", Nodes: 1})
	s.plan(func(p *autoscaler.Plan) {
		p.ScaleUps = []autoscaler.ScaleUp{{Group: "gpu", Nodes: 1}}
		p.Kept = []autoscaler.Kept{{Node: "n1", Reason: autoscaler.KeptUtilized}, {Node: "n2", Reason: autoscaler.KeptNotSimulated}}
	})
	s.step(step.ScaleUpDone{Group: "gpu", Nodes: 1, Err: errors.New("refused")})
	server.GroupsRead(20*time.Millisecond, nil)
	server.PlanComputed(30*time.Millisecond, 40*time.Millisecond)
	server.BeyondBounds(door.Problem{Refused: true})
	server.PricesRead("USD", "")
	s.m.Step(s.now, time.Millisecond, []step.Input{step.NodeDeletionDone{Node: "a"}, step.EvictionDone{}}, &step.Ready{NodeDeletions: []step.NodeDeletion{{Node: "b", Reason: step.RemovedUnready, GPU: "nvidia.com/gpu"}},
		RemovalWaits: []step.RemovalWait{{Removed: true, Took: time.Minute}}, PermitWaits: []step.PermitWait{{Allowed: true}},
		Comparisons: []step.Comparison{{Verdict: step.Worse, Score: 90, BerthScore: 100, Took: 30 * time.Millisecond, Earlier: &step.Earlier{Node: "b", Took: time.Millisecond}}},
		Decisions: []step.Decision{{Kind: step.Preempts, Victims: []string{"a"}}, {Kind: step.GroupPlaced, Profile: "default-scheduler", Members: 2},
			{Kind: step.GroupWaits, Profile: "default-scheduler", PodGroup: "default/gang"}, {Kind: step.Preempts, PodGroup: "default/gang", Victims: []string{"a", "b"}, Disruptions: 1}}, Preemptions: []step.Preemption{{UID: "a", By: "p"}, {UID: "b", By: "q"}},
		LaunchStages: []step.LaunchStage{{Group: "cpu", Stage: step.LaunchReady, Took: 40 * time.Second}}})
	s.m.shadow.nodesAre(&core.ShadowNodes{Cluster: core.ShadowHours{Hours: 12, Cost: 6}, Berth: core.ShadowHours{Hours: 11, Cost: 5.5}})
	s.m.Step(s.now.Add(time.Second), time.Millisecond, []step.Input{step.NodeDeletionDone{Node: "b"}, step.PreemptionDone{UID: "a", By: "p"}, step.PreemptionDone{UID: "b", By: "q", Err: errors.New("refused")}}, &step.Ready{})
	families, err := s.m.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	recorded := map[string]*dto.MetricFamily{}
	for _, f := range families {
		if strings.HasPrefix(f.GetName(), "go_") || strings.HasPrefix(f.GetName(), "process_") {
			continue
		}
		recorded[f.GetName()] = f
		if f.GetName() == "berth_build_info" { // which differs from one build to the next
			for _, l := range f.GetMetric()[0].GetLabel() {
				l.Value = ptr.To("of-this-build")
			}
		}
		if _, err := expfmt.MetricFamilyToText(&b, f); err != nil {
			t.Fatal(err)
		}
	}
	for _, m := range s.m.List() {
		f := recorded[m.Name]
		if f == nil {
			t.Errorf("%s isn't in the scrape; have something happen that it counts", m.Name)
			continue
		}
		for _, label := range m.Labels {
			if !slices.ContainsFunc(f.Metric[0].Label, func(l *dto.LabelPair) bool { return l.GetName() == label }) {
				t.Errorf("%s has no label %s", m.Name, label)
			}
		}
	}
	path := filepath.Join("..", "..", "hack", "promcheck", "testdata", "scrape.txt")
	testkit.Generated(t, path, b.String(), "go test ./edge/observe -rewrite", *rewrite)
}

// wantsNone checks that no series begins with a text.
func (l *live) wantsNone(prefixes ...string) {
	l.t.Helper()
	for _, line := range l.scrape() {
		for _, p := range prefixes {
			if strings.HasPrefix(line, p) {
				l.t.Errorf("there is %s", line)
			}
		}
	}
}
