package main

// This file has the panels of the dashboard that people look at first.

// kind is how Grafana shows a panel.
type kind string

const (
	graph kind = "timeseries"
	stat  kind = "stat"  // the last value, large
	table kind = "table" // the last values, a column for each series
)

// panel is one picture of the dashboard: series, each with its legend. description says what it shows and what
// to ask next.
type panel struct {
	kind                     kind
	title, description, unit string
	series                   []series
}

// series is one expression of a panel. Metrics are written without the variables of the dashboard, which
// selecting adds.
type series struct{ expr, legend string }

// row is a part of the dashboard with a title.
type row struct {
	title  string
	panels []panel
	// collapsed rows are shown by a click.
	collapsed bool
}

// quantiles returns the p50 and the p99 of a histogram over a time.
func quantiles(metric, window string) []series {
	return []series{
		{`histogram_quantile(0.5, sum by (le) (rate(` + metric + `_bucket[` + window + `])))`, "p50"},
		{`histogram_quantile(0.99, sum by (le) (rate(` + metric + `_bucket[` + window + `])))`, "p99"},
	}
}

// rows are the panels by what they are about. Every metric of the list that is in none of them gets a panel of
// its own in the last row.
var rows = []row{
	{title: "Now", panels: []panel{
		{stat, "Pending pods", "Pods without a node, without those that are gated. kubectl berth status groups them by what they wait for.", "short",
			[]series{{`sum(max by (queue) (scheduler_pending_pods{queue!="gated"}))`, "pods"}}},
		{stat, "Unschedulable pods", "Pending pods that were tried and fit on no node. kubectl berth explain pod NAME says why one of them waits, and what would change that.", "short",
			[]series{{`max(cluster_autoscaler_unschedulable_pods_count{type="unschedulable"})`, "pods"}}},
		{stat, "Longest wait", "How long the pod has waited that has waited longest for a node. kubectl berth status groups pending pods by what they wait for.", "s",
			[]series{{`max(berth_oldest_pending_pod_seconds)`, "seconds"}}},
		{stat, "Ready nodes", "Nodes that are ready. kubectl berth top lists them.", "short",
			[]series{{`max(cluster_autoscaler_nodes_count{state="ready"})`, "nodes"}}},
		{stat, "Nodes launching", "Instances that were ordered and aren't nodes yet. kubectl berth explain group says when they are expected.", "short",
			[]series{{`max(cluster_autoscaler_nodes_count{state="unregistered"})`, "nodes"}}},
		{stat, "Nodes being removed", "Nodes from their taint until the provider has deleted them. kubectl berth explain nodes shows how far they are.", "short",
			[]series{{`max(cluster_autoscaler_pending_node_deletions)`, "nodes"}}},
		{stat, "Cost per hour", "Hourly price of the nodes whose price is known, in the currency of --node-prices or of the provider. kubectl berth status has it by why nodes stay.", "none",
			[]series{{`sum(max by (state, reason) (berth_nodes_price_hourly))`, "per hour"}}},
		{stat, "Leaving per hour", "Hourly price of nodes that are unneeded or being removed: what the cluster is about to save.", "none",
			[]series{{`sum(max by (state, reason) (berth_nodes_price_hourly{state=~"Candidate|Leaving"}))`, "per hour"}}},
		{stat, "Since the last plan", "Time since the autoscaler committed a plan. Above --max-failing-time the kubelet restarts Berth.", "s",
			[]series{{`time() - max(cluster_autoscaler_last_activity{activity="mainSuccessful"})`, "since the last plan"}}},
	}},
	{title: "Tables", panels: []panel{
		{table, "Node groups", "Sizes and states of node groups; needs --emit-per-nodegroup-metrics. kubectl berth explain group NAME shows the last order of one and why it doesn't grow.", "short", []series{
			{`max by (node_group) (cluster_autoscaler_node_group_target_count)`, "target"},
			{`max by (node_group) (cluster_autoscaler_node_group_min_count)`, "min"},
			{`max by (node_group) (cluster_autoscaler_node_group_max_count)`, "max"},
			{`max by (node_group) (berth_node_group_price_hourly)`, "price of a node per hour"},
			{`min by (node_group) (cluster_autoscaler_node_group_healthiness)`, "healthy"},
			{`max by (node_group) (cluster_autoscaler_node_group_backoff_status)`, "in backoff"}}},
		{table, "Nodes by why they stay", "Hourly price of nodes by their state for scale-down and its reason. kubectl berth explain nodes counts them, and kubectl berth explain node NAME names what blocks one.", "none",
			[]series{{`max by (state, reason) (berth_nodes_price_hourly)`, "per hour"}, {`max by (reason) (cluster_autoscaler_unremovable_nodes_count)`, "nodes"}}},
		{table, "Unschedulable pods by plugin", "How many pods each plugin keeps off some node; a pod counts for each such plugin.", "short",
			[]series{{`max by (plugin, profile) (scheduler_unschedulable_pods)`, "pods"}}},
		{table, "Version", "Version and commit of the instances.", "short",
			[]series{{`count by (version, revision) (berth_build_info)`, "instances"}}},
	}},
	{title: "Pods", panels: []panel{
		{graph, "Pending pods by queue", "active: about to be tried; backoff: tried a moment ago; unschedulable: waiting for a change that helps; gated: not to be tried yet.", "short", []series{{`max by (queue) (scheduler_pending_pods)`, "{{queue}}"}}},
		{graph, "Scheduling attempts per second", "Attempts by result. error is an error of the API server or of Berth: the log has it.", "ops", []series{{`sum by (result) (rate(scheduler_schedule_attempts_total[5m]))`, "{{result}}"}}},
		{graph, "Pod scheduling latency", "From when a pod is first queued until it is bound, waiting for new nodes included.", "s", quantiles("scheduler_pod_scheduling_sli_duration_seconds", "5m")},
		{graph, "Latency of one attempt", "The attempt's share of the decisions that were made together, and its bind.", "s", quantiles("scheduler_scheduling_attempt_duration_seconds", "5m")},
	}},
	{title: "Preemption", panels: []panel{
		{graph, "Preemptions per hour", "Preemptions that were carried out, by result.", "short", []series{{`sum by (result) (increase(scheduler_preemption_goroutines_execution_total[1h]))`, "{{result}}"}}},
		{graph, "Share of preemptions that fail", "A victim couldn't be asked to leave. The objective is less than 1 %; the log has the API server's answer.", "percentunit", []series{
			{`sum(rate(scheduler_preemption_goroutines_execution_total{result="error"}[1h])) / sum(rate(scheduler_preemption_goroutines_execution_total[1h]))`, "failed"}}},
		{graph, "Time to ask the victims to leave", "From the first call that asks a victim to leave until the last is answered.", "s", quantiles("scheduler_preemption_goroutines_duration_seconds", "15m")},
		{graph, "Victims of a preemption", "How many pods a preemption removes.", "short", quantiles("scheduler_preemption_victims", "15m")},
	}},
	{title: "Nodes", panels: []panel{
		{graph, "Nodes by state", "unregistered instances were ordered and aren't nodes yet; longUnregistered ones are late.", "short", []series{{`max by (state) (cluster_autoscaler_nodes_count)`, "{{state}}"}, {`max(cluster_autoscaler_max_nodes_count)`, "maximum"}}},
		{graph, "Nodes added and removed per hour", "Scale-ups, and removals by reason.", "short", []series{
			{`sum(increase(cluster_autoscaler_scaled_up_nodes_total[1h]))`, "added"}, {`sum by (reason) (increase(cluster_autoscaler_scaled_down_nodes_total[1h]))`, "removed: {{reason}}"}}},
		{graph, "Unneeded nodes, and nodes being removed", "Unneeded nodes are removed after --scale-down-unneeded-time.", "short", []series{
			{`max(cluster_autoscaler_unneeded_nodes_count)`, "unneeded"}, {`max(cluster_autoscaler_pending_node_deletions)`, "being removed"}}},
		{graph, "Unremovable nodes by reason", "Why nodes stay. kubectl berth explain node NAME names the pod and the rule.", "short", []series{{`max by (reason) (cluster_autoscaler_unremovable_nodes_count)`, "{{reason}}"}}},
		{graph, "Hourly cost of nodes by scale-down state", "In the currency of --node-prices or of the provider.", "none", []series{{`sum by (state) (max by (state, reason) (berth_nodes_price_hourly))`, "{{state}}"}}},
		{graph, "Hourly price of scale-ups, and of their alternatives", "What was ordered within an hour (chosen), and what the cheapest (next) and the dearest alternative for the same pods cost. next minus chosen is what the choices save for each hour that the nodes run.", "none", []series{{`sum by (option) (increase(berth_scale_up_price_hourly_total[1h]))`, "{{option}}"}}},
		{graph, "Node groups without a price", "The expanders cost and price pass them over, and consolidation leaves their nodes alone: give a price with --node-prices.", "short", []series{{`max(berth_node_groups_without_price)`, "node groups"}}},
		{graph, "Failed scale-ups per hour", "By reason. kubectl berth explain group NAME shows the last failure of a node group.", "short", []series{{`sum by (reason) (increase(cluster_autoscaler_failed_scale_ups_total[1h]))`, "{{reason}}"}}},
	}},
	{title: "Launches of nodes", panels: []panel{
		{graph, "Time from the order of a node to each stage, p50", "listed by the provider, registered in the API, ready, and podRunning.", "s", []series{{`histogram_quantile(0.5, sum by (le, stage) (rate(berth_node_launch_seconds_bucket[1h])))`, "{{stage}}"}}},
		{graph, "Time from the order of a node to each stage, p99", "The slowest launches; those that never come aren't counted.", "s", []series{{`histogram_quantile(0.99, sum by (le, stage) (rate(berth_node_launch_seconds_bucket[1h])))`, "{{stage}}"}}},
		{graph, "Nodes launching, and how many may be", "The limits are those of --max-nodes-launching.", "short", []series{
			{`max(cluster_autoscaler_nodes_count{state="unregistered"})`, "unregistered"}, {`max by (stage) (berth_launch_limit_nodes)`, "limit: {{stage}}"}}},
		{graph, "Pods that wait for room to launch nodes", "Pods for which the last plan ordered no nodes because as many are launching as may.", "short", []series{{`max(berth_launch_held_pods)`, "pods"}}},
	}},
	{title: "Berth", panels: []panel{
		{graph, "Autoscaler latency by function, p50", "A plan and its parts.", "s", []series{{`histogram_quantile(0.5, sum by (le, function) (rate(cluster_autoscaler_function_duration_seconds_bucket[15m])))`, "{{function}}"}}},
		{graph, "Autoscaler latency by function, p99", "A plan and its parts.", "s", []series{{`histogram_quantile(0.99, sum by (le, function) (rate(cluster_autoscaler_function_duration_seconds_bucket[15m])))`, "{{function}}"}}},
		{graph, "Core step latency", "Duration of one step of the core, which takes no other input meanwhile.", "s", quantiles("berth_step_duration_seconds", "5m")},
		{graph, "Autoscaler errors per hour", "By type. cloudProviderError: the provider's node groups can't be read; the log says why.", "short", []series{{`sum by (type) (increase(cluster_autoscaler_errors_total[1h]))`, "{{type}}"}}},
	}},
}
