package observe

import (
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/autoscaler/scaleup"
	"github.com/berthproject/berth/core/explain"
	"github.com/berthproject/berth/core/step"
)

// This file holds the metrics of launches: how long nodes take from their order to each stage, how
// many may be launching at a time, and how many pods wait for that (docs/launch-control.md).

// launchMetrics are the metrics of launches.
type launchMetrics struct {
	took, groupTook   *prometheus.HistogramVec // by stage; by node group and stage
	limit, groupLimit *prometheus.GaugeVec     // the same
	held              prometheus.Gauge
}

// The stages that launch control limits.
const (
	stageLaunching = "launching"
	stagePulling   = "pulling"
)

func newLaunchMetrics(r *registry) launchMetrics {
	r.subsystem = "berth"
	seconds := prometheus.ExponentialBuckets(1, 1.5, 20) // to 37 minutes
	m := launchMetrics{
		took:       r.histograms("node_launch_seconds", "Time from the order of a node until its launch reached a stage: listed by the provider, registered in the API, ready, and podRunning, when the first pod runs that is no DaemonSet's.", seconds, "stage"),
		groupTook:  r.groupHistograms("node_group_launch_seconds", "The same as node_launch_seconds, by node group.", seconds, "node_group", "stage"),
		limit:      r.gauges("launch_limit_nodes", "Number of nodes of the cluster that may be launching, and with an adaptive limit pulling the images of their first pods, at a time (--max-nodes-launching). Absent without a limit.", "stage"),
		groupLimit: r.groupGauges("node_group_launch_limit_nodes", "The same as launch_limit_nodes for each node group (--max-nodes-launching-per-group).", "node_group", "stage"),
		held:       r.gauge("launch_held_pods", "Number of pods for which the last plan ordered no nodes because as many are launching as may."),
	}
	for _, stage := range step.LaunchStages {
		m.took.WithLabelValues(string(stage))
	}
	return m
}

// step counts the stages that launches have reached, and what plans held back.
func (m *launchMetrics) step(inputs []step.Input, ready *step.Ready) {
	for _, x := range ready.LaunchStages {
		m.took.WithLabelValues(string(x.Stage)).Observe(x.Took.Seconds())
		m.groupTook.WithLabelValues(x.Group, string(x.Stage)).Observe(x.Took.Seconds())
	}
	for _, in := range inputs {
		if made, ok := in.(step.PlanMade); ok && !refusedIn(ready) {
			m.held.Set(float64(heldBack(made.Plan)))
		}
	}
}

// heldBack returns for how many pods a plan would have ordered nodes but for launch control.
func heldBack(plan *autoscaler.Plan) (pods int) {
	for i := range plan.NoHelp {
		for _, why := range plan.NoHelp[i].Reasons {
			if _, reason, _ := strings.Cut(why, " "); scaleup.LimitsLaunches(reason) {
				pods += len(plan.NoHelp[i].Pods)
				break
			}
		}
	}
	return pods
}

// windows sets the limits as they are. A group that the provider lists no more loses its series.
func (m *launchMetrics) windows(list []explain.LaunchWindows) {
	m.limit.Reset()
	m.groupLimit.Reset()
	for _, w := range list {
		of := func(stage string) prometheus.Gauge { return m.groupLimit.WithLabelValues(w.Group, stage) }
		if w.Group == "" {
			of = func(stage string) prometheus.Gauge { return m.limit.WithLabelValues(stage) }
		}
		of(stageLaunching).Set(w.Launching)
		if w.Pulling > 0 {
			of(stagePulling).Set(w.Pulling)
		}
	}
}
