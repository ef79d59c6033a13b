package observe

import (
	"github.com/prometheus/client_golang/prometheus"
	v1 "k8s.io/api/core/v1"

	"github.com/berthproject/berth/core/autoscaler/nodegroup"
	"github.com/berthproject/berth/core/step"
)

// This file holds the metrics of orders of nodes, with the names and labels of Cluster Autoscaler
// (pkg/metrics).

// scaleUpMetrics count nodes that were ordered and those that weren't made. An order counts when the
// provider has taken it, which may be known only later (SettledScaleUps).
type scaleUpMetrics struct {
	nodes, nodesGPU   *prometheus.CounterVec // by what the nodes have
	failed, failedGPU *prometheus.CounterVec // by reason, and what the nodes have
	failedNodes       *prometheus.CounterVec // by reason
	created, deleted  *prometheus.CounterVec // by group_type

	gpus map[string]v1.ResourceName // of groups that were asked for nodes
}

func newScaleUpMetrics(r *registry) scaleUpMetrics {
	r.subsystem = "cluster_autoscaler"
	m := scaleUpMetrics{
		nodes:       r.counters("scaled_up_nodes_total", "Number of nodes added. The GPU model and DRA drivers are not known.", "gpu_resource_name", "gpu_name", "dra_drivers"),
		nodesGPU:    r.counters("scaled_up_gpu_nodes_total", "Number of GPU nodes added.", "gpu_resource_name", "gpu_name"),
		failed:      r.counters("failed_scale_ups_total", "Number of failed scale-ups by reason: cloudProviderError if the provider refused it, timeout if nodes did not register or become usable in time, otherwise the provider's error code of failed instances, or OutOfResources or Other.", "reason", "gpu_resource_name", "gpu_name", "dra_drivers"),
		failedGPU:   r.counters("failed_gpu_scale_ups_total", "Number of failed scale-ups of GPU nodes by reason.", "reason", "gpu_resource_name", "gpu_name"),
		failedNodes: r.counters("failed_node_creations_total", "Number of nodes that failed to be created, by reason as in failed_scale_ups_total.", "reason"),
		created:     r.counters("created_node_groups_total", "Always 0: Berth does not create node groups.", "group_type"),
		deleted:     r.counters("deleted_node_groups_total", "Always 0: Berth does not delete node groups.", "group_type"),
		gpus:        map[string]v1.ResourceName{},
	}
	m.nodes.WithLabelValues("", "", "")
	for _, reason := range []string{nodegroup.CodeRefused, "apiCallError", nodegroup.CodeTimeout} {
		m.failed.WithLabelValues(reason, "", "", "")
		m.failedNodes.WithLabelValues(reason)
	}
	m.created.WithLabelValues("")
	m.deleted.WithLabelValues("")
	return m
}

// taken counts an order that the provider took.
func (m *scaleUpMetrics) taken(done step.ScaleUpDone) {
	gpu := m.gpus[done.Group]
	m.nodes.WithLabelValues(string(gpu), gpuName(gpu), "").Add(float64(done.Nodes))
	if gpu != "" {
		m.nodesGPU.WithLabelValues(string(gpu), gpuName(gpu)).Add(float64(done.Nodes))
	}
}

// step counts what the outcomes of a Step say.
func (m *scaleUpMetrics) step(inputs []step.Input, ready *step.Ready) {
	for _, in := range inputs {
		if done, ok := in.(step.ScaleUpDone); ok && done.Err == nil {
			m.taken(done)
		}
	}
	for _, done := range ready.SettledScaleUps {
		m.taken(done)
	}
	for _, order := range ready.ScaleUps {
		m.gpus[order.Group] = order.GPU
	}
	for _, f := range ready.ScaleUpFailures {
		m.failed.WithLabelValues(f.Code, string(f.GPU), gpuName(f.GPU), "").Inc()
		if f.GPU != "" {
			m.failedGPU.WithLabelValues(f.Code, string(f.GPU), gpuName(f.GPU)).Inc()
		}
		m.failedNodes.WithLabelValues(f.Code).Add(float64(f.Nodes))
	}
}
