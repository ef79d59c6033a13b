package main

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/berthproject/berth/edge/observe"
)

// panel is one picture of the dashboard: series, each with its legend.
type panel struct {
	title, unit string
	series      []series
}

type series struct{ expr, legend string }

// row is a part of the dashboard with a title.
type row struct {
	title  string
	panels []panel
}

// rows are the pictures that people look at first. Every metric of the list that is in none of
// them gets one of its own, at the end.
var rows = []row{
	{"Pods", []panel{
		{"Pending pods", "short", []series{{`max by (queue) (scheduler_pending_pods)`, "{{queue}}"}}},
		{"Scheduling attempts per second", "ops", []series{{`sum by (result) (rate(scheduler_schedule_attempts_total[5m]))`, "{{result}}"}}},
		{"Pod scheduling latency", "s", []series{
			{`histogram_quantile(0.5, sum by (le) (rate(scheduler_pod_scheduling_sli_duration_seconds_bucket[5m])))`, "p50"},
			{`histogram_quantile(0.99, sum by (le) (rate(scheduler_pod_scheduling_sli_duration_seconds_bucket[5m])))`, "p99"}}},
		{"Unschedulable pods by plugin", "short", []series{{`max by (plugin) (scheduler_unschedulable_pods)`, "{{plugin}}"}}},
	}},
	{"Preemption", []panel{
		{"Preemptions per hour", "short", []series{{`sum by (result) (increase(scheduler_preemption_goroutines_execution_total[1h]))`, "{{result}}"}}},
		{"Share of preemptions that fail (objective: less than 1 %)", "percentunit", []series{
			{`sum(rate(scheduler_preemption_goroutines_execution_total{result="error"}[1h])) / sum(rate(scheduler_preemption_goroutines_execution_total[1h]))`, "failed"}}},
		{"Time to ask the victims to leave", "s", []series{
			{`histogram_quantile(0.5, sum by (le) (rate(scheduler_preemption_goroutines_duration_seconds_bucket[15m])))`, "p50"},
			{`histogram_quantile(0.99, sum by (le) (rate(scheduler_preemption_goroutines_duration_seconds_bucket[15m])))`, "p99"}}},
		{"Victims of a preemption", "short", []series{{`histogram_quantile(0.5, sum by (le) (rate(scheduler_preemption_victims_bucket[15m])))`, "p50"}}},
	}},
	{"Nodes", []panel{
		{"Nodes by state", "short", []series{{`max by (state) (cluster_autoscaler_nodes_count)`, "{{state}}"}, {`max(cluster_autoscaler_max_nodes_count)`, "maximum"}}},
		{"Nodes added and removed per hour", "short", []series{
			{`sum(increase(cluster_autoscaler_scaled_up_nodes_total[1h]))`, "added"}, {`sum by (reason) (increase(cluster_autoscaler_scaled_down_nodes_total[1h]))`, "removed: {{reason}}"}}},
		{"Unneeded nodes, and nodes being removed", "short", []series{
			{`max(cluster_autoscaler_unneeded_nodes_count)`, "unneeded"}, {`max(cluster_autoscaler_pending_node_deletions)`, "being removed"}}},
		{"Unremovable nodes by reason", "short", []series{{`max by (reason) (cluster_autoscaler_unremovable_nodes_count)`, "{{reason}}"}}},
		{"Hourly cost of nodes by scale-down state", "currencyUSD", []series{{`sum by (state) (max by (state, reason) (berth_nodes_price_hourly))`, "{{state}}"}}},
		{"Failed scale-ups per hour", "short", []series{{`sum by (reason) (increase(cluster_autoscaler_failed_scale_ups_total[1h]))`, "{{reason}}"}}},
	}},
	{"Launches of nodes", []panel{
		{"Time from the order of a node to each stage, p50", "s", []series{{`histogram_quantile(0.5, sum by (le, stage) (rate(berth_node_launch_seconds_bucket[1h])))`, "{{stage}}"}}},
		{"Nodes launching, and how many may be", "short", []series{
			{`max(cluster_autoscaler_nodes_count{state="unregistered"})`, "unregistered"}, {`max by (stage) (berth_launch_limit_nodes)`, "limit: {{stage}}"}}},
		{"Pods that wait for room to launch nodes", "short", []series{{`max(berth_launch_held_pods)`, "pods"}}},
	}},
	{"Node groups (--emit-per-nodegroup-metrics)", []panel{
		{"Target size", "short", []series{{`max by (node_group) (cluster_autoscaler_node_group_target_count)`, "{{node_group}}"}}},
		{"Node groups in backoff", "short", []series{{`max by (node_group, reason) (cluster_autoscaler_node_group_backoff_status) == 1`, "{{node_group}}: {{reason}}"}}},
	}},
	{"Berth", []panel{
		{"Time since the last plan", "s", []series{{`time() - max(cluster_autoscaler_last_activity{activity="mainSuccessful"})`, "since the last plan"}}},
		{"Autoscaler latency by function, p90", "s", []series{{`histogram_quantile(0.9, sum by (le, function) (rate(cluster_autoscaler_function_duration_seconds_bucket[15m])))`, "{{function}}"}}},
		{"Core step latency", "s", []series{{`histogram_quantile(0.99, sum by (le) (rate(berth_step_duration_seconds_bucket[5m])))`, "p99"}}},
		{"Autoscaler errors per hour", "short", []series{{`sum by (type) (increase(cluster_autoscaler_errors_total[1h]))`, "{{type}}"}}},
	}},
}

// dashboardOf returns the dashboard as Grafana imports it.
func dashboardOf(list []observe.Metric) ([]byte, error) {
	used := map[string]bool{}
	for _, r := range rows {
		for _, p := range r.panels {
			for _, s := range p.series {
				if err := check(list, s.expr, used); err != nil {
					return nil, err
				}
			}
		}
	}
	var others []panel
	for i := range list {
		if !used[list[i].Name] {
			others = append(others, panelOf(&list[i]))
		}
	}
	var panels []any
	y := 0
	for _, r := range append(rows, row{"All other metrics", others}) {
		panels = append(panels, map[string]any{"type": "row", "title": r.title, "id": len(panels) + 1, "gridPos": map[string]int{"x": 0, "y": y, "w": 24, "h": 1}})
		y++
		for i, p := range r.panels {
			panels = append(panels, p.json(len(panels)+1, i%2*12, y+i/2*8))
		}
		y += (len(r.panels) + 1) / 2 * 8
	}
	text, err := json.MarshalIndent(map[string]any{
		"title": "Berth", "uid": "berth", "tags": []string{"kubernetes", "berth"}, "schemaVersion": 39, "editable": true, "refresh": "30s",
		"time":       map[string]string{"from": "now-6h", "to": "now"},
		"templating": map[string]any{"list": []any{map[string]any{"name": "datasource", "type": "datasource", "query": "prometheus"}}},
		"panels":     panels,
	}, "", " ")
	return append(text, '\n'), err
}

// panelOf returns a picture of one metric by its labels: a counter's increase in an hour, the
// median of a histogram, the mean of a summary.
func panelOf(m *observe.Metric) panel {
	by, legend := "", m.Name
	if len(m.Labels) > 0 {
		by = " by (" + strings.Join(m.Labels, ", ") + ")"
		legend = "{{" + strings.Join(m.Labels, "}} {{") + "}}"
	}
	p := panel{title: m.Name, unit: "short"}
	var expr string
	switch m.Type {
	case "counter":
		expr = fmt.Sprintf("sum%s (increase(%s[1h]))", by, m.Name)
	case "histogram":
		expr = fmt.Sprintf("histogram_quantile(0.5, sum by (%s) (rate(%s_bucket[15m])))", strings.Join(append([]string{"le"}, m.Labels...), ", "), m.Name)
	case "summary":
		expr = fmt.Sprintf("sum%s (rate(%s_sum[15m])) / sum%s (rate(%s_count[15m]))", by, m.Name, by, m.Name)
	default:
		expr = fmt.Sprintf("max%s (%s)", by, m.Name)
	}
	if strings.HasSuffix(m.Name, "_seconds") {
		p.unit = "s"
	}
	p.series = []series{{expr, legend}}
	return p
}

func (p *panel) json(id, x, y int) map[string]any {
	source := map[string]string{"type": "prometheus", "uid": "${datasource}"}
	var targets []any
	for i, s := range p.series {
		targets = append(targets, map[string]any{"refId": string(rune('A' + i)), "datasource": source, "expr": s.expr, "legendFormat": s.legend})
	}
	return map[string]any{
		"id": id, "type": "timeseries", "title": p.title, "datasource": source, "targets": targets,
		"gridPos": map[string]int{"x": x, "y": y, "w": 12, "h": 8}, "fieldConfig": map[string]any{"defaults": map[string]string{"unit": p.unit}, "overrides": []any{}},
	}
}
