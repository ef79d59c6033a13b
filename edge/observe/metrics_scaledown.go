package observe

import (
	"cmp"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	v1 "k8s.io/api/core/v1"

	"github.com/berthproject/berth/core"
	"github.com/berthproject/berth/core/explain"
	"github.com/berthproject/berth/core/step"
)

// This file holds the metrics of scale-down, with the names, labels and buckets of Cluster
// Autoscaler (pkg/metrics) where it has them. Gauges of nodes say what the last plan has said,
// and change with the next: to sum up all nodes each second would cost the core more than
// the plan does.

// scaleDownMetrics are the metrics of nodes that stay, could go, and go.
type scaleDownMetrics struct {
	unneeded    prometheus.Gauge
	unremovable *prometheus.GaugeVec // by reason
	cooldown    prometheus.Gauge
	pending     prometheus.Gauge
	skipped     prometheus.Gauge
	evicted     *prometheus.CounterVec // by result
	status      *prometheus.GaugeVec   // by status
	interrupted prometheus.Gauge
	price       *prometheus.GaugeVec // by state and reason

	removed    *prometheus.CounterVec // by reason, and what the node has
	removedGPU *prometheus.CounterVec
	late       prometheus.Counter
	latency    *prometheus.HistogramVec // by whether the node went, and what had kept it

	// removals are the nodes whose deletion the provider was asked for and hasn't answered, by
	// name; lateRemovals the instances that were late, by ID.
	removals     map[string]step.NodeDeletion
	lateRemovals map[string]bool
	plan         time.Time // the plan that the gauges are of; zero before the first
}

func newScaleDownMetrics(r *registry) scaleDownMetrics {
	r.subsystem = "cluster_autoscaler"
	m := scaleDownMetrics{
		removals: map[string]step.NodeDeletion{}, lateRemovals: map[string]bool{},
		removed:     r.counters("scaled_down_nodes_total", "Number of nodes removed, by reason: empty, underutilized or unready. The GPU model and DRA drivers are not known.", "reason", "gpu_resource_name", "gpu_name", "dra_drivers"),
		removedGPU:  r.counters("scaled_down_gpu_nodes_total", "Number of GPU nodes removed, by reason.", "reason", "gpu_resource_name", "gpu_name"),
		unneeded:    r.gauge("unneeded_nodes_count", "Number of unneeded nodes as of the last plan, not counting those being removed."),
		unremovable: r.gauges("unremovable_nodes_count", "Number of unremovable nodes, and of unneeded nodes that are not removed yet, by reason, as of the last plan.", "reason"),
		cooldown:    r.gauge("scale_down_in_cooldown", "1 if scale-down is in cooldown: nodes have been unneeded for long enough, but their node groups were scaled up or down, or failed to be, too recently; as of the last plan."),
		pending:     r.gauge("pending_node_deletions", "Number of nodes being removed: from the taint until the provider has deleted them, or their removal is cancelled or fails."),
		skipped:     r.gauge("max_node_skip_eval_duration_seconds", "Longest time for which plans have not evaluated a node."),
		evicted:     r.counters("evicted_pods_total", "Number of evictions of pods from nodes being removed, by result: succeeded or failed. An eviction that a disruption budget refuses is retried and not counted.", "eviction_result"),
	}
	m.late = r.counter("old_unregistered_nodes_removed_count", "Number of unregistered instances removed because they did not register as nodes in time.")
	m.latency = r.histograms("node_removal_latency_seconds", "Time from when a node was unneeded for long enough until its removal began (deleted=true) or it was needed again (deleted=false), by the last reason for which it was kept, none if there was no reason.",
		prometheus.ExponentialBuckets(1, 1.5, 19), "deleted", "delay_reason")
	r.subsystem = "berth"
	m.status = r.gauges("scale_down_status", "1 for the current status of scale-down (docs/why-a-node-stays.md), 0 for the others; as of the last plan.", "status")
	m.price = r.gauges("nodes_price_hourly", "Hourly price of nodes, where the provider knows it, by their state for scale-down, with the reason for nodes that stay and removable nodes that wait; as of the last plan.", "state", "reason")
	m.interrupted = r.gauge("interrupted_nodes", "Number of nodes that the cloud is about to take (--node-interruption-marks); as of the last plan.")
	for _, reason := range []step.RemovalReason{step.RemovedEmpty, step.RemovedUnderutilized, step.RemovedUnready} {
		m.removed.WithLabelValues(string(reason), "", "", "")
	}
	for _, result := range []string{"succeeded", "failed"} {
		m.evicted.WithLabelValues(result)
	}
	return m
}

// step counts what the outcomes of a Step say, and remembers what it asks for.
// Outcomes are read before requests: a name may occur in both.
func (m *scaleDownMetrics) step(inputs []step.Input, ready *step.Ready) {
	for _, in := range inputs {
		switch done := in.(type) {
		case step.EvictionDone:
			m.evictionDone(done)
		case step.NodeDeletionDone:
			m.deletionDone(done)
		}
	}
	for _, done := range ready.SettledDeletions {
		m.deletionDone(done)
	}
	for _, d := range ready.NodeDeletions {
		switch {
		// Deletions for other reasons are of instances, which have metrics of their own.
		case d.Reason.OfNode():
			m.removals[d.Node] = d
		case d.Reason == step.InstanceLate:
			m.lateRemovals[d.Instance] = true
		}
	}
	for _, w := range ready.RemovalWaits {
		m.latency.WithLabelValues(strconv.FormatBool(w.Removed), cmp.Or(string(w.Reason), "none")).Observe(w.Took.Seconds())
	}
}

// evictionDone counts an eviction by its outcome. One that a budget refused for now is repeated, and
// isn't counted until it has succeeded or failed.
func (m *scaleDownMetrics) evictionDone(done step.EvictionDone) {
	switch {
	case done.Refused:
	case done.Err != nil:
		m.evicted.WithLabelValues("failed").Inc()
	default:
		m.evicted.WithLabelValues("succeeded").Inc()
	}
}

// deletionDone counts a deletion when it is known to have succeeded. One that fails is asked for again,
// or its node stays: neither is a node removed.
func (m *scaleDownMetrics) deletionDone(done step.NodeDeletionDone) {
	// Counted once: when it is known.
	if done.Unknown {
		return // settled later, by SettledDeletions or another call
	}
	if m.lateRemovals[done.Instance] {
		delete(m.lateRemovals, done.Instance)
		if done.Err == nil {
			m.late.Inc()
		}
		return
	}
	d, ok := m.removals[done.Node]
	if !ok {
		return
	}
	delete(m.removals, done.Node)
	if done.Err != nil {
		return
	}
	m.removed.WithLabelValues(string(d.Reason), string(d.GPU), gpuName(d.GPU), "").Inc()
	if d.GPU != "" {
		m.removedGPU.WithLabelValues(string(d.Reason), string(d.GPU), gpuName(d.GPU)).Inc()
	}
}

// gpuName returns the label of GPUs of whose model nothing is known, as Cluster Autoscaler has it;
// "" where there are none.
// Dashboards of Cluster Autoscaler expect the label.
func gpuName(resource v1.ResourceName) string {
	if resource == "" {
		return ""
	}
	return "generic"
}

// state reads where the nodes stand, if a plan has been made since.
// It runs in the core's goroutine, so it must be cheap between two plans.
func (m *scaleDownMetrics) state(c *core.Core) {
	planned, ok := c.View().NodesPlanned()
	if !ok {
		return
	}
	m.pending.Set(float64(c.View().NodesLeaving()))
	m.interrupted.Set(float64(c.View().NodesInterrupted()))
	// The sums are of the last plan, so they change with plans only.
	if planned.Equal(m.plan) && !planned.IsZero() {
		return
	}
	m.plan = planned
	x, _ := c.View().ExplainNodes()
	unneeded := 0
	// Reasons that no node has any more must not stay.
	m.unremovable.Reset()
	m.price.Reset()
	for _, r := range x.Reasons {
		m.price.WithLabelValues(r.State, string(r.Reason)).Set(r.Price)
		if r.State == explain.NodeCandidate {
			unneeded += r.Nodes
		}
		if r.Reason != "" {
			m.unremovable.WithLabelValues(string(r.Reason)).Add(float64(r.Nodes))
		}
	}
	m.unneeded.Set(float64(unneeded))
	for _, s := range explain.ScaleDownStatuses {
		m.status.WithLabelValues(string(s)).Set(oneIf(s == x.Status))
	}
	m.cooldown.Set(oneIf(x.Status == explain.ScaleDownInCooldown))
	m.skipped.Set(x.SkippedSeconds)
}

// oneIf is a gauge's value of a condition.
func oneIf(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
