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
