package observe

import (
	"github.com/prometheus/client_golang/prometheus"
	v1 "k8s.io/api/core/v1"

	"github.com/berthproject/berth/core/explain"
)

// This file holds the metrics of the cluster and its node groups as they stand, with the names,
// labels and meaning of Cluster Autoscaler (pkg/metrics). None of them has a value before this
// Berth leads and the provider has told of its groups: one that stands by knows nothing wrong.

// clusterMetrics are gauges that are set from explain.ScalingStatus.
type clusterMetrics struct {
	safe          *prometheus.GaugeVec
	nodes         *prometheus.GaugeVec // by state
	groups        *prometheus.GaugeVec // by type
	unschedulable *prometheus.GaugeVec // by type
	maxNodes      *prometheus.GaugeVec
	cores, memory *prometheus.GaugeVec
	coreLimits    *prometheus.GaugeVec // by direction
	memoryLimits  *prometheus.GaugeVec // by direction
	taints        *prometheus.GaugeVec // by type

	groupMin, groupMax, groupTarget, groupHealthy *prometheus.GaugeVec // by node group
	groupBackoff                                  *prometheus.GaugeVec // by node group and reason
	// backedOff are the codes for which each group has ever backed off.
	backedOff map[string]map[string]bool
}

func newClusterMetrics(r *registry) clusterMetrics {
	r.subsystem = "cluster_autoscaler"
	return clusterMetrics{
		safe:          r.gauges("cluster_safe_to_autoscale", "1 if the cluster is healthy enough to be resized, 0 if too many nodes are unready."),
		nodes:         r.gauges("nodes_count", "Number of nodes in the cluster by state: ready, unready, notStarted (too young to count as unready), suspended, unregistered (requested, not registered yet) and longUnregistered (not registered in time).", "state"),
		groups:        r.gauges("node_groups_count", "Number of node groups that the provider lists. Berth creates none, so none is autoprovisioned.", "node_group_type"),
		unschedulable: r.gauges("unschedulable_pods_count", "Number of pending pods by type: unschedulable, and scheduler_unprocessed for those that have not been tried yet. Gated pods are not counted.", "type"),
		maxNodes:      r.gauges("max_nodes_count", "Maximum number of nodes in all node groups, at most --max-nodes-total."),
		cores:         r.gauges("cluster_cpu_current_cores", "Number of cores in the cluster, minus nodes being removed."),
		memory:        r.gauges("cluster_memory_current_bytes", "Bytes of memory in the cluster, minus nodes being removed."),
		coreLimits:    r.gauges("cpu_limits_cores", "--cores-total.", "direction"),
		memoryLimits:  r.gauges("memory_limits_bytes", "--memory-total.", "direction"),
		taints:        r.gauges("node_taints_count", "Number of taints on nodes by type: the key of taints that Cluster Autoscaler and the node controller set, otherwise startup-taint, status-taint or other.", "type"),
		groupMin:      r.groupGauges("node_group_min_count", "Minimum number of nodes in the node group.", "node_group"),
		groupMax:      r.groupGauges("node_group_max_count", "Maximum number of nodes in the node group.", "node_group"),
		groupTarget:   r.groupGauges("node_group_target_count", "Target number of nodes in the node group, including scale-ups and deletions that the provider has not answered yet.", "node_group"),
		groupHealthy:  r.groupGauges("node_group_healthiness", "1 if the node group is healthy: few enough of its nodes are missing or unready; otherwise 0.", "node_group"),
		groupBackoff:  r.groupGauges("node_group_backoff_status", "1 while the node group is in backoff after a failed scale-up, by the error code of the failure; 0 for past error codes.", "node_group", "reason"),
		backedOff:     map[string]map[string]bool{},
	}
}

// state sets where the cluster stands. It is a copy of the status, so that one reading of the core
// serves all of these gauges.
func (m *clusterMetrics) state(s *explain.ScalingStatus) {
	if !s.Known {
		return
	}
	set := func(of *prometheus.GaugeVec, value float64, labels ...string) {
		of.WithLabelValues(labels...).Set(value)
	}
	set(m.safe, oneIf(s.Sick == ""))
	for state, n := range map[string]int{"ready": s.Nodes.Ready, "unready": s.Nodes.Unready, "notStarted": s.Nodes.NotStarted, "suspended": s.Nodes.Suspended,
		"unregistered": s.Nodes.Unregistered, "longUnregistered": s.Nodes.LongUnregistered} {
		set(m.nodes, float64(n), state)
	}
	set(m.groups, float64(len(s.Groups)), "autoscaled")
	set(m.groups, 0, "autoprovisioned")
	set(m.unschedulable, float64(s.Unschedulable), "unschedulable")
	set(m.unschedulable, float64(s.Untried), "scheduler_unprocessed")
	set(m.cores, float64(s.Cores))
	set(m.memory, float64(s.Memory))
	m.taints.Reset()
	for kind, n := range s.Taints {
		set(m.taints, float64(n), kind)
	}
	m.limits(s)
	m.nodeGroups(s.Groups)
}

// limits sets how large the cluster may be: the sum of the groups' maximums unless --max-nodes-total
// is lower, and --cores-total and --memory-total.
func (m *clusterMetrics) limits(s *explain.ScalingStatus) {
	all := 0
	for i := range s.Groups {
		all += s.Groups[i].Max
	}
	if most := s.Limits.MaxNodesTotal; most > 0 {
		all = min(all, most)
	}
	m.maxNodes.WithLabelValues().Set(float64(all))
	for _, t := range s.Limits.Totals {
		of := m.coreLimits
		switch t.Resource {
		case v1.ResourceCPU:
		case v1.ResourceMemory:
			of = m.memoryLimits
		default:
			continue
		}
		of.WithLabelValues("minimum").Set(float64(t.Min))
		of.WithLabelValues("maximum").Set(float64(t.Max))
	}
}

// nodeGroups sets what --emit-per-nodegroup-metrics asks for. A group that the provider lists no more
// loses its series; a code for which a group has backed off keeps one, with 0 when that is over.
func (m *clusterMetrics) nodeGroups(groups []explain.GroupStatus) {
	for _, of := range []*prometheus.GaugeVec{m.groupMin, m.groupMax, m.groupTarget, m.groupHealthy, m.groupBackoff} {
		of.Reset()
	}
	listed := map[string]bool{}
	for i := range groups {
		g := &groups[i]
		listed[g.ID] = true
		m.groupMin.WithLabelValues(g.ID).Set(float64(g.Min))
		m.groupMax.WithLabelValues(g.ID).Set(float64(g.Max))
		m.groupTarget.WithLabelValues(g.ID).Set(float64(g.Target))
		m.groupHealthy.WithLabelValues(g.ID).Set(oneIf(g.Healthy))
		codes := m.backedOff[g.ID]
		if codes == nil {
			codes = map[string]bool{}
			m.backedOff[g.ID] = codes
		}
		if g.Backoff != nil {
			codes[g.Backoff.Code] = true
		}
		for code := range codes {
			m.groupBackoff.WithLabelValues(g.ID, code).Set(oneIf(g.Backoff != nil && g.Backoff.Code == code))
		}
		if len(codes) == 0 {
			m.groupBackoff.WithLabelValues(g.ID, "").Set(0)
		}
	}
	for id := range m.backedOff {
		if !listed[id] {
			delete(m.backedOff, id)
		}
	}
}
