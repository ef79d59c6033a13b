package observe

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/berthproject/berth/core/step"
)

// groupMetrics are kube-scheduler's metrics of pod groups.
type groupMetrics struct {
	attempts  *prometheus.CounterVec
	duration  *prometheus.HistogramVec
	algorithm prometheus.Histogram
	preempted *prometheus.CounterVec // attempts to preempt
	victims   prometheus.Histogram
	// disruptions are units of pod groups among the victims, by preemptor.
	disruptions *prometheus.HistogramVec
}

// decided counts a decision about a pod group that took some time.
func (m *groupMetrics) decided(d *step.Decision, took time.Duration) {
	result := "scheduled"
	if d.Kind == step.GroupWaits {
		result = "unschedulable"
	}
	m.attempts.WithLabelValues(result, d.Profile).Inc()
	m.duration.WithLabelValues(result, d.Profile).Observe(took.Seconds())
	m.algorithm.Observe(took.Seconds())
}

// evaluated counts the attempts to preempt: one for each decision about a group that found too few nodes. The ledger
// names the victims directly after the group, if there are some.
func (m *groupMetrics) evaluated(decisions []step.Decision) {
	for i := range decisions {
		d := &decisions[i]
		if d.Kind != step.GroupWaits {
			continue
		}
		result := "Unschedulable"
		if i+1 < len(decisions) && decisions[i+1].Kind == step.Preempts && decisions[i+1].PodGroup == d.PodGroup {
			result = "Success"
			m.victims.Observe(float64(len(decisions[i+1].Victims)))
			if n := decisions[i+1].Disruptions; n > 0 { // kube-scheduler observes no zero
				m.disruptions.WithLabelValues(entityPodGroup).Observe(float64(n))
			}
		}
		m.preempted.WithLabelValues(result).Inc()
	}
}
