package main

import (
	"regexp"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/berthproject/berth/edge/observe"
)

// alert is a rule for Prometheus, as its rule files have it. Names stay: people route and silence by them.
type alert struct {
	Alert string `json:"alert"`
	// Expr fires for each series that it returns; check refuses metrics of ours that don't exist.
	Expr string `json:"expr"`
	// For is how long it must hold, "" for no time.
	For string `json:"for,omitempty"`
	// Labels have the severity: critical for what stops scheduling or scaling, warning for what people have to
	// look at within hours, info for defects to report.
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
}

// newAlert returns an alert that fires when an expression has held for a time such as 5m, at once for
// "". todo tells whoever is called what to look at, and runbook is the command to begin with.
func newAlert(name, expr, lasts, severity, summary, todo, runbook string) alert {
	return alert{name, apart(expr), lasts, map[string]string{"severity": severity}, map[string]string{"summary": summary, "description": todo, "runbook": runbook}}
}

// aggregation matches an aggregation with what it is by.
var aggregation = regexp.MustCompile(`\b(sum|max|min)(?: by \(([^)]*)\))? ?\(`)

// apart returns an expression whose aggregations keep clusters and installations of Berth apart.
func apart(expr string) string {
	return aggregation.ReplaceAllStringFunc(expr, func(s string) string {
		parts := aggregation.FindStringSubmatch(s)
		by := strings.Join(variables, ", ")
		if parts[2] != "" {
			by += ", " + parts[2]
		}
		return parts[1] + " by (" + by + ") ("
	})
}

// The commands that answer the first questions. devcluster/e2e runs each.
const (
	runStatus   = "kubectl berth status"
	runGroups   = "kubectl berth explain groups"
	runGroup    = "kubectl berth explain group {{ $labels.node_group }}"
	runNodes    = "kubectl berth explain nodes"
	runDecision = "kubectl berth status -o json"
)

// alerts are for what somebody has to look at. Metrics of the cluster's state have no value on an
// instance that stands by.
var alerts = []alert{
	// An installation whose instances are all gone has no series of its own: the second part remembers it for an hour, the
	// third is for a Prometheus that has none at all.
	newAlert("BerthNoLeader", `max(berth_leading) == 0 or max(max_over_time(berth_leading[1h])) unless max(berth_leading) or absent(berth_leading)`, "5m", "critical",
		"No Berth decides: no pod is placed, and no node is added or removed.", "No instance is scraped, or none holds the Lease and can renew it. The command names the holder of the Lease; the pods' logs say what they wait for.", runStatus),
	newAlert("BerthNoRecentPlan", `time() - max(cluster_autoscaler_last_activity{activity="mainSuccessful"}) > 300`, "5m", "critical",
		"The autoscaler has not completed a plan for five minutes.", "Check the log of the leader and cluster_autoscaler_errors_total; /health-check fails after --max-failing-time, so that the kubelet restarts it.", runStatus),
	newAlert("BerthClusterUnhealthy", `max(cluster_autoscaler_cluster_safe_to_autoscale) == 0`, "10m", "critical",
		"Too many nodes are unready: the autoscaler has stopped resizing the cluster.", "Check which nodes are unready; --max-total-unready-percentage and --ok-total-unready-count set how many may be.", runStatus),
	newAlert("BerthProviderErrors", `sum by (type) (increase(cluster_autoscaler_errors_total[15m])) > 5`, "5m", "warning",
		"Autoscaler loops are failing: {{ $labels.type }}.", "cloudProviderError: the provider's node groups can't be read; the log says why.", runGroups),
	newAlert("BerthScaleUpFailing", `sum by (reason) (increase(cluster_autoscaler_failed_scale_ups_total[30m])) > 3`, "5m", "warning",
		"Scale-up failing: {{ $labels.reason }}.", "The list has the groups in backoff; kubectl berth explain group NAME shows the last failure of one. The status ConfigMap has events.", runGroups),
	newAlert("BerthNodeGroupInBackoff", `max by (node_group, reason) (cluster_autoscaler_node_group_backoff_status) == 1`, "30m", "warning",
		"Node group {{ $labels.node_group }} is in backoff after a failed scale-up: {{ $labels.reason }}.", "The answer says why, and until when. Needs --emit-per-nodegroup-metrics.", runGroup),
	newAlert("BerthNodeGroupUnhealthy", `min by (node_group) (cluster_autoscaler_node_group_healthiness) == 0`, "15m", "warning",
		"Node group {{ $labels.node_group }} has missing or unready nodes past their provisioning timeout.", "Check its instances at the provider. Needs --emit-per-nodegroup-metrics.", runGroup),
	newAlert("BerthNodesNotRegistering", `max(cluster_autoscaler_nodes_count{state="longUnregistered"}) > 0`, "15m", "warning",
		"{{ $value }} instances have not registered as nodes in time.", "kubectl berth explain group NAME lists those of a group; check their boot at the provider.", runGroups),
	newAlert("BerthPodsPending", `max(berth_oldest_pending_pod_seconds) > 1800`, "", "warning",
		"A pod has waited for a node for {{ $value | humanizeDuration }}.", "The status groups them by what they wait for; kubectl berth explain pod NAMESPACE/NAME says why one waits.", runStatus),
	newAlert("BerthMaxNodesReached", `max(cluster_autoscaler_nodes_count{state="ready"}) >= max(cluster_autoscaler_max_nodes_count)`, "15m", "warning",
		"The cluster has reached its maximum number of nodes.", "Raise the maximum size of node groups or --max-nodes-total.", runGroups),
	newAlert("BerthEvictionsFailing", `sum(increase(cluster_autoscaler_evicted_pods_total{eviction_result="failed"}[30m])) > 10`, "15m", "warning",
		"Evictions of pods from nodes being removed are failing.", "kubectl berth explain node NAME shows the progress of a removal.", runNodes),
	newAlert("BerthBindingErrors", `sum by (profile) (increase(scheduler_schedule_attempts_total{result="error"}[10m])) > 10`, "10m", "critical",
		"Scheduling attempts of profile {{ $labels.profile }} end in errors.", "The last decisions and the log have the error that the API server returned.", runStatus),
	newAlert("BerthPreemptionsFailing", `sum(rate(scheduler_preemption_goroutines_execution_total{result="error"}[1h])) / sum(rate(scheduler_preemption_goroutines_execution_total[1h])) >= 0.01`, "15m", "warning",
		"{{ $value | humanizePercentage }} of preemptions fail; the objective is less than 1 %.", "A victim could not be asked to leave: the log and the decisions PreemptionFailed have the API server's answer, e.g. of an admission webhook or a missing right.", runStatus),
	newAlert("BerthMissedWakeUp", `increase(scheduler_pod_scheduled_after_flush_total[1h]) > 0`, "", "info",
		"A pod was found schedulable only by the periodic flush: a bug in Berth.", "Please report it with this output, and with a recording if you have one (--record).", runDecision),
	newAlert("BerthInvalidObjects", `increase(berth_bad_objects_total[1h]) > 0`, "", "info",
		"An object has invalid values.", "An event on the object names them, and so does the log.", runStatus),
}

// rulesOf returns the alerts as Prometheus reads them.
func rulesOf(list []observe.Metric) ([]byte, error) {
	for i := range alerts {
		if err := check(list, alerts[i].Expr, map[string]bool{}); err != nil {
			return nil, err
		}
	}
	text, err := yaml.Marshal(map[string]any{"groups": []any{map[string]any{"name": "berth", "rules": alerts}}})
	return append([]byte("# Generated by go run ./hack/watch: Berth's alerts, for Prometheus' rule_files. Those about\n# single node groups need --emit-per-nodegroup-metrics.\n"), text...), err
}
