package observe

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// This file holds the metrics of dynamic resource allocation. Claims that are created are counted
// under the name of kube-scheduler 1.36 and under the one that 1.37 has in its place.

// deviceMetrics are the metrics of resource claims that are written.
type deviceMetrics struct {
	created *prometheus.CounterVec // by status
	creates *prometheus.CounterVec // of 1.37: and by whether it is for an administrator, and by its owner

	// By profile, driver and status.
	allocations *prometheus.CounterVec
	waited      *prometheus.HistogramVec
}

func newDeviceMetrics(r *registry) (m deviceMetrics) {
	r.subsystem = "scheduler"
	m.created = r.counters("resourceclaim_creates_total", "Number of resource claims that were to be created for extended resources, by status: success or failure. Not in kube-scheduler 1.37: use dynamic_resource_allocation_resourceclaim_creates_total.", "status")
	m.allocations = r.counters("dra_bindingconditions_allocations_total", "Number of devices with binding conditions that a bind waited for, by driver and by how the wait ended: success, failure, timeout or error.", "profile", "driver", "status")
	m.waited = r.histograms("dra_bindingconditions_wait_duration_seconds", "Time that binds waited for the binding conditions of devices, once for each allocated device.", prometheus.ExponentialBuckets(0.1, 2, 14), "profile", "driver", "status")
	r.subsystem = "dynamic_resource_allocation"
	m.creates = r.counters("resourceclaim_creates_total", "The same as scheduler_resourceclaim_creates_total, under its name in kube-scheduler 1.37. The owner is always a pod.", "status", "admin_access", "owner_api_group", "owner_api_kind")
	r.subsystem = "scheduler"
	return m
}

// ClaimCreated implements live.DeviceWatcher.
func (s *Server) ClaimCreated(err error) {
	status := "success"
	if err != nil {
		status = "failure"
	}
	s.Metrics.mu.Lock()
	defer s.Metrics.mu.Unlock()
	s.Metrics.devices.created.WithLabelValues(status).Inc()
	s.Metrics.devices.creates.WithLabelValues(status, "false", "", "Pod").Inc()
}

// DevicesAwaited implements live.DeviceWatcher.
func (s *Server) DevicesAwaited(profile string, drivers, conditional []string, status string, took time.Duration) {
	s.Metrics.mu.Lock()
	defer s.Metrics.mu.Unlock()
	for _, driver := range drivers {
		s.Metrics.devices.waited.WithLabelValues(profile, driver, status).Observe(took.Seconds())
	}
	for _, driver := range conditional {
		s.Metrics.devices.allocations.WithLabelValues(profile, driver, status).Inc()
	}
}
