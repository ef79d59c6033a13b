package main

import (
	"sigs.k8s.io/yaml"

	"github.com/berthproject/berth/edge/observe"
)

// alert is a rule for Prometheus.
type alert struct {
	Alert       string            `json:"alert"`
	Expr        string            `json:"expr"`
	For         string            `json:"for,omitempty"`
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
}

func newAlert(name, expr, lasts, severity, summary, todo string) alert {
	return alert{name, expr, lasts, map[string]string{"severity": severity}, map[string]string{"summary": summary, "description": todo}}
}

// alerts are for what somebody has to look at. Metrics of the cluster's state have no value on an
// instance that stands by.
var alerts = []alert{
	newAlert("BerthPlansStandStill", `time() - max(cluster_autoscaler_last_activity{activity="mainSuccessful"}) > 300`, "5m", "critical",
		"No plan of the cluster's size has been made for five minutes.", "See the log of the leader, and cluster_autoscaler_errors_total; /health-check has it restarted after --max-failing-time."),
	newAlert("BerthClusterUnhealthy", `max(cluster_autoscaler_cluster_safe_to_autoscale) == 0`, "10m", "critical",
		"Too many nodes aren't ready: the size of the cluster isn't changed.", "See which nodes aren't ready; --max-total-unready-percentage and --ok-total-unready-count say how many may be."),
	newAlert("BerthProviderErrors", `sum by (type) (increase(cluster_autoscaler_errors_total[15m])) > 5`, "5m", "warning",
		"Loops fail: {{ $labels.type }}.", "cloudProviderError: the provider's node groups can't be read; the log says why."),
	newAlert("BerthScaleUpFails", `sum by (reason) (increase(cluster_autoscaler_failed_scale_ups_total[30m])) > 3`, "5m", "warning",
		"Nodes can't be had: {{ $labels.reason }}.", "berth explain group NAME says what failed last; the status ConfigMap has events."),
	newAlert("BerthNodeGroupBacksOff", `max by (node_group, reason) (cluster_autoscaler_node_group_backoff_status) == 1`, "30m", "warning",
		"Node group {{ $labels.node_group }} isn't asked for nodes: {{ $labels.reason }}.", "berth explain group {{ $labels.node_group }} says why, and until when. Needs --emit-per-nodegroup-metrics."),
	newAlert("BerthNodeGroupUnhealthy", `min by (node_group) (cluster_autoscaler_node_group_healthiness) == 0`, "15m", "warning",
		"Node group {{ $labels.node_group }} lacks nodes that nobody waits for any more.", "See its instances at the provider. Needs --emit-per-nodegroup-metrics."),
	newAlert("BerthNodesDontRegister", `max(cluster_autoscaler_nodes_count{state="longUnregistered"}) > 0`, "15m", "warning",
		"{{ $value }} instances have not become nodes in time.", "See their start at the provider; berth explain groups lists them."),
	newAlert("BerthPodsStayPending", `max(cluster_autoscaler_unschedulable_pods_count{type="unschedulable"}) > 0`, "30m", "warning",
		"{{ $value }} pods have no node for half an hour.", "berth explain pod NAMESPACE/NAME says why."),
	newAlert("BerthClusterFull", `max(cluster_autoscaler_nodes_count{state="ready"}) >= max(cluster_autoscaler_max_nodes_count)`, "15m", "warning",
		"The cluster has as many nodes as it may.", "Raise the maximum of node groups or --max-nodes-total."),
	newAlert("BerthEvictionsFail", `sum(increase(cluster_autoscaler_evicted_pods_total{eviction_result="failed"}[30m])) > 10`, "15m", "warning",
		"Pods can't be evicted from nodes on their way out.", "berth explain node NAME says how far it is."),
	newAlert("BerthPodsAreRefused", `sum by (profile) (increase(scheduler_schedule_attempts_total{result="error"}[10m])) > 10`, "10m", "critical",
		"Binding pods of the profile {{ $labels.profile }} fails.", "The log says what the API server answers."),
	newAlert("BerthMissedWakeUp", `increase(scheduler_pod_scheduled_after_flush_total[1h]) > 0`, "", "info",
		"A pod was found schedulable by the sweep only: a defect of Berth's.", "Please report it, with a recording if there is one (--record)."),
	newAlert("BerthBadObjects", `increase(berth_bad_objects_total[1h]) > 0`, "", "info",
		"An object has values that could not be taken as they stand.", "It has an event that says which."),
}

// rulesOf returns the alerts as Prometheus reads them.
func rulesOf(list []observe.Metric) ([]byte, error) {
	for i := range alerts {
		if err := check(list, alerts[i].Expr, map[string]bool{}); err != nil {
			return nil, err
		}
	}
	text, err := yaml.Marshal(map[string]any{"groups": []any{map[string]any{"name": "berth", "rules": alerts}}})
	return append([]byte("# Made by go run ./hack/watch. Alerts of Berth, for Prometheus' rule_files; those about single\n# node groups need --emit-per-nodegroup-metrics.\n"), text...), err
}
