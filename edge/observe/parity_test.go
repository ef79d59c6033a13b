package observe

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

// theirs are the metrics of Cluster Autoscaler of August 2026 (pkg/metrics), as users' dashboards
// and alerts have them. A metric with a reason isn't served.
var theirs = []struct {
	name, kind, labels string
	buckets            []float64
	why                string
}{
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
	{name: "function_duration_seconds", kind: "histogram", labels: "function", buckets: prometheus.ExponentialBucketsRange(0.1, 1800, 150)},
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
	{name: "dra_node_template_resources_mismatch", kind: "gauge", labels: "driver mismatch_type", why: "pods with resource claims aren't placed yet"},
	{name: "skipped_pods_count", kind: "gauge", labels: "requestor", why: "no simulation skips pods"},
}

// TestEveryMetricOfClusterAutoscalerIsServedOrLeftOutForAReason compares names, types, labels and
// buckets; and Berth serves no metric under cluster_autoscaler_ that Cluster Autoscaler hasn't.
func TestEveryMetricOfClusterAutoscalerIsServedOrLeftOutForAReason(t *testing.T) {
	const prefix = "cluster_autoscaler_"
	left := map[string]Metric{}
	for _, m := range NewMetrics().List() {
		if name, is := strings.CutPrefix(m.Name, prefix); is {
			left[name] = m
		}
	}
	for _, want := range theirs {
		got, served := left[want.name]
		delete(left, want.name)
		switch {
		case served != (want.why == ""):
			t.Errorf("%s is served: %t, and the reason why not is %q", want.name, served, want.why)
		case served:
			labels := strings.Fields(want.labels)
			slices.Sort(labels)
			have := slices.Sorted(slices.Values(got.Labels))
			if got.Type != want.kind || !slices.Equal(have, labels) || !slices.Equal(got.Buckets, want.buckets) {
				t.Errorf("%s: got a %s of %v with buckets %v, want a %s of %v with %v", want.name, got.Type, have, got.Buckets, want.kind, labels, want.buckets)
			}
		}
	}
	for name := range left {
		t.Errorf("%s%s isn't one of Cluster Autoscaler's; name it berth_", prefix, name)
	}
}

// leftOut lists for the reference the metrics that aren't served.
func leftOut() string {
	var b strings.Builder
	for _, x := range theirs {
		if x.why != "" {
			fmt.Fprintf(&b, "| `cluster_autoscaler_%s` | %s |\n", x.name, x.why)
		}
	}
	return b.String()
}
