package observe

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/berthproject/berth/core/autoscaler"
)

// upstream is a metric of a program that Berth stands in for. One with a reason isn't served.
type upstream struct {
	name, kind, labels string // the name without the prefix of the list
	buckets            []float64
	finer              []float64 // buckets that Berth has below theirs: what is faster by Berth could not be told apart
	why                string
}

// ofClusterAutoscaler are the metrics of Cluster Autoscaler of August 2026 (pkg/metrics), as
// users' dashboards and alerts have them.
var ofClusterAutoscaler = []upstream{
	{name: "cluster_safe_to_autoscale", kind: "gauge"},
	{name: "nodes_count", kind: "gauge", labels: "state"},
	{name: "node_groups_count", kind: "gauge", labels: "node_group_type"},
	{name: "unschedulable_pods_count", kind: "gauge", labels: "type"},
	{name: "max_nodes_count", kind: "gauge"},
	{name: "cluster_cpu_current_cores", kind: "gauge"},
	{name: "cpu_limits_cores", kind: "gauge", labels: "direction"},
	{name: "cluster_memory_current_bytes", kind: "gauge"},
	{name: "memory_limits_bytes", kind: "gauge", labels: "direction"},
	{name: "last_activity", kind: "gauge", labels: "activity"},
	{name: "function_duration_seconds", kind: "histogram", labels: "function", buckets: prometheus.ExponentialBucketsRange(0.1, 1800, 150), finer: []float64{0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05}},
	{name: "function_duration_quantile_seconds", kind: "summary", labels: "function"},
	{name: "errors_total", kind: "counter", labels: "type"},
	{name: "scaled_up_nodes_total", kind: "counter", labels: "gpu_resource_name gpu_name dra_drivers"},
	{name: "scaled_up_gpu_nodes_total", kind: "counter", labels: "gpu_resource_name gpu_name"},
	{name: "failed_scale_ups_total", kind: "counter", labels: "reason gpu_resource_name gpu_name dra_drivers"},
	{name: "failed_gpu_scale_ups_total", kind: "counter", labels: "reason gpu_resource_name gpu_name"},
	{name: "failed_node_creations_total", kind: "counter", labels: "reason"},
	{name: "scaled_down_nodes_total", kind: "counter", labels: "reason gpu_resource_name gpu_name dra_drivers"},
	{name: "scaled_down_gpu_nodes_total", kind: "counter", labels: "reason gpu_resource_name gpu_name"},
	{name: "evicted_pods_total", kind: "counter", labels: "eviction_result"},
	{name: "unneeded_nodes_count", kind: "gauge"},
	{name: "unremovable_nodes_count", kind: "gauge", labels: "reason"},
	{name: "scale_down_in_cooldown", kind: "gauge"},
	{name: "old_unregistered_nodes_removed_count", kind: "counter"},
	{name: "overflowing_controllers_count", kind: "gauge"},
	{name: "skipped_scale_events_count", kind: "counter", labels: "direction reason"},
	{name: "created_node_groups_total", kind: "counter", labels: "group_type"},
	{name: "deleted_node_groups_total", kind: "counter", labels: "group_type"},
	{name: "pending_node_deletions", kind: "gauge"},
	{name: "node_taints_count", kind: "gauge", labels: "type"},
	{name: "node_group_min_count", kind: "gauge", labels: "node_group"},
	{name: "node_group_max_count", kind: "gauge", labels: "node_group"},
	{name: "node_group_target_count", kind: "gauge", labels: "node_group"},
	{name: "node_group_healthiness", kind: "gauge", labels: "node_group"},
	{name: "node_group_backoff_status", kind: "gauge", labels: "node_group reason"},
	{name: "binpacking_heterogeneity", kind: "histogram", labels: "instance_type cpu_count namespace_count", buckets: []float64{1, 2, 4, 8, 16, 32}},
	{name: "max_node_skip_eval_duration_seconds", kind: "gauge"},
	{name: "node_removal_latency_seconds", kind: "histogram", labels: "deleted delay_reason", buckets: prometheus.ExponentialBuckets(1, 1.5, 19)},
	{name: "inconsistent_instances_migs_count", kind: "gauge", why: "it compares two lists of Google's API; a provider tells Berth one"},
	{name: "dra_node_template_resources_mismatch", kind: "gauge", labels: "driver mismatch_type", why: "the devices of nodes are not compared with those of their templates"},
	{name: "skipped_pods_count", kind: "gauge", labels: "requestor", why: "no simulation skips pods"},
}

// upstreamFunction is a value of the label "function" of function_duration_seconds. One with a reason
// isn't served.
type upstreamFunction struct{ name, why string }

// functionsOfClusterAutoscaler are the parts of a loop whose time Cluster Autoscaler measures (FunctionLabel in
// its package metrics).
var functionsOfClusterAutoscaler = []upstreamFunction{
	{name: "main"},
	{name: "cloudProviderRefresh"},
	{name: "scaleUp"},
	{name: "findUnneeded"},
	{name: "scaleDown"},
	{name: "updateClusterState", why: "no loop reads the cluster anew: changes are applied as they arrive, in the time of `berth_step_duration_seconds`"},
	{name: "filterOutSchedulable", why: "a pod that fits on a node is bound before a plan is requested; pods for nodes that are coming are a part of `scaleUp`"},
	{name: "scaleUp:buildPodEquivalenceGroups", why: "the classes of pods are kept from plan to plan"},
	{name: "scaleUp:estimate", why: "all node groups are packed together, in the time of `scaleUp`"},
	{name: "scaleDown:nodeDeletion", why: "taints, evictions and deletions are requested side by side and awaited by no loop, for empty nodes as for nodes to drain: `cluster_autoscaler_pending_node_deletions` has their number, and the decisions `NodeTainted` and `NodeRemoved` in the ledger have the times of a node"},
	{name: "scaleDown:softTaintUnneeded", why: "soft taints are written beside plans"},
	{name: "loopWait", why: "plans are made on demand, not in a loop"},
	{name: "bulkListInstances:listAllInstances", why: "it is Google's API; reading a provider's node groups is `cloudProviderRefresh`"},
	{name: "bulkListInstances:listMigInstances", why: "it is Google's API; reading a provider's node groups is `cloudProviderRefresh`"},
	{name: "poll", why: "Cluster Autoscaler doesn't set it any more"},
	{name: "reconfigure", why: "Cluster Autoscaler doesn't set it any more"},
}

// ofTheKEP are metrics under scheduler_ that KEP-4832 asks for and kube-scheduler has under other
// names.
var ofTheKEP = []upstream{
	{name: "goroutines_duration_seconds", kind: "histogram", labels: "operation", buckets: prometheus.ExponentialBuckets(0.01, 2, 20)},
	{name: "goroutines_execution_total", kind: "counter", labels: "operation result"},
}

// TestEveryMetricUpstreamIsServedOrLeftOutForAReason compares names, types, labels and buckets;
// and Berth serves no metric under a prefix of theirs that they haven't.
func TestEveryMetricUpstreamIsServedOrLeftOutForAReason(t *testing.T) {
	for prefix, theirs := range map[string][]upstream{
		"cluster_autoscaler_": ofClusterAutoscaler,
		"scheduler_":          append(ofKubeScheduler(t), ofTheKEP...),
	} {
		left := map[string]Metric{}
		for _, m := range NewMetrics().List() {
			if name, is := strings.CutPrefix(m.Name, prefix); is {
				left[name] = m
			}
		}
		for i := range theirs {
			want := &theirs[i]
			got, served := left[want.name]
			delete(left, want.name)
			if err := want.differs(&got, served); err != nil {
				t.Errorf("%s%v", prefix, err)
			}
		}
		for name := range left {
			t.Errorf("%s%s isn't theirs; name it berth_", prefix, name)
		}
	}
}

// TestEveryFunctionUpstreamIsTimedOrLeftOutForAReason makes a plan and reads groups: the times that are
// served then are those of all functions that have no reason to be left out, in both metrics.
func TestEveryFunctionUpstreamIsTimedOrLeftOutForAReason(t *testing.T) {
	var want []string
	for _, f := range functionsOfClusterAutoscaler {
		if f.why == "" {
			want = append(want, f.name)
		}
	}
	slices.Sort(want)
	s := newScaled(t, nil)
	server := NewServer(slog.New(slog.DiscardHandler))
	server.Metrics = s.m
	s.plan(func(*autoscaler.Plan) {})
	server.GroupsRead(time.Second, nil)
	server.PlanComputed(time.Second, time.Second)
	for _, metric := range []string{"duration_seconds", "duration_quantile_seconds"} {
		var got []string
		for _, line := range s.scrape() {
			if rest, ok := strings.CutPrefix(line, "cluster_autoscaler_function_"+metric+`_count{function="`); ok {
				name, _, _ := strings.Cut(rest, `"`)
				got = append(got, name)
			}
		}
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("function_%s has times of %v, want %v", metric, got, want)
		}
	}
}

// differs says how a metric that is served, or isn't, differs from theirs.
func (want *upstream) differs(got *Metric, served bool) error {
	if served != (want.why == "") {
		return fmt.Errorf("%s is served: %t, and the reason why not is %q", want.name, served, want.why)
	}
	if !served {
		return nil
	}
	labels := strings.Fields(want.labels)
	slices.Sort(labels)
	have := slices.Sorted(slices.Values(got.Labels))
	if got.Type != want.kind || !slices.Equal(have, labels) || !slices.Equal(got.Buckets, append(slices.Clone(want.finer), want.buckets...)) {
		return fmt.Errorf("%s: got a %s of %v with buckets %v, want a %s of %v with %v", want.name, got.Type, have, got.Buckets, want.kind, labels, want.buckets)
	}
	return nil
}

// leftOut lists for the reference the metrics that aren't served.
func leftOut(prefix string, theirs []upstream) string {
	var b strings.Builder
	for _, x := range theirs {
		if x.why != "" {
			fmt.Fprintf(&b, "| `%s%s` | %s |\n", prefix, x.name, x.why)
		}
	}
	return b.String()
}

// functionsLeftOut lists for the reference the functions that aren't timed.
func functionsLeftOut() string {
	var b strings.Builder
	for _, f := range functionsOfClusterAutoscaler {
		if f.why != "" {
			fmt.Fprintf(&b, "| `%s` | %s |\n", f.name, f.why)
		}
	}
	return b.String()
}
