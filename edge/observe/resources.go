package observe

import (
	"context"
	"net/http"
	"strconv"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	v1 "k8s.io/api/core/v1"
	resourcehelper "k8s.io/component-helpers/resource"

	"github.com/berthproject/berth/core"
)

// podResources are the metrics of /metrics/resources, under kube-scheduler's names
// and labels. They are made anew for each request and kept nowhere: there is a series
// for each resource of each pod.
type podResources struct {
	ctx   context.Context
	ask   func(context.Context, func(*core.Core)) bool
	descs [2]*prometheus.Desc // requests and limits
}

// newPodResources returns the metrics for one request, which ends with ctx. ask puts a question to the
// core.
func newPodResources(ctx context.Context, ask func(context.Context, func(*core.Core)) bool) *podResources {
	labels := []string{"namespace", "pod", "node", "scheduler", "priority", "resource", "unit"}
	return &podResources{ctx, ask, [2]*prometheus.Desc{
		prometheus.NewDesc("kube_pod_resource_request", "Resources requested by pods, with the unit of the resource if any.", labels, nil),
		prometheus.NewDesc("kube_pod_resource_limit", "Resource limits of pods, with the unit of the resource if any.", labels, nil),
	}}
}

// Describe implements prometheus.Collector.
func (c *podResources) Describe(to chan<- *prometheus.Desc) {
	for _, d := range c.descs {
		to <- d
	}
}

// Collect implements prometheus.Collector. The core only lists its pods; what they
// ask for is summed up here.
func (c *podResources) Collect(to chan<- prometheus.Metric) {
	type located struct {
		*v1.Pod
		node string
	}
	got := make(chan []located, 1)
	if !c.ask(c.ctx, func(k *core.Core) {
		var pods []located
		k.Pods(func(obj *v1.Pod, node string) { pods = append(pods, located{obj, node}) })
		got <- pods
	}) {
		to <- prometheus.NewInvalidMetric(c.descs[0], context.DeadlineExceeded)
		return
	}
	for _, p := range <-got {
		priority := ""
		if p.Spec.Priority != nil {
			priority = strconv.Itoa(int(*p.Spec.Priority))
		}
		for i, list := range []v1.ResourceList{
			resourcehelper.PodRequests(p.Pod, resourcehelper.PodResourcesOptions{}), resourcehelper.PodLimits(p.Pod, resourcehelper.PodResourcesOptions{}),
		} {
			for name, q := range list {
				if !q.IsZero() {
					to <- prometheus.MustNewConstMetric(c.descs[i], prometheus.GaugeValue, q.AsApproximateFloat64(),
						p.Namespace, p.Name, p.node, p.Spec.SchedulerName, priority, string(name), unit(name))
				}
			}
		}
	}
}

// unit returns kube-scheduler's name for the unit of a resource, "" for one without.
func unit(name v1.ResourceName) string {
	switch {
	case name == v1.ResourceCPU:
		return "cores"
	case name == v1.ResourceMemory, name == v1.ResourceStorage, name == v1.ResourceEphemeralStorage, strings.HasPrefix(string(name), v1.ResourceHugePagesPrefix):
		return "bytes"
	case strings.HasPrefix(string(name), v1.ResourceAttachableVolumesPrefix):
		return "integer"
	}
	return ""
}

// resources serves /metrics/resources.
func (s *Server) resources(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), questionTimeout)
	defer cancel()
	registry := prometheus.NewRegistry()
	registry.MustRegister(newPodResources(ctx, s.ask))
	promhttp.HandlerFor(registry, promhttp.HandlerOpts{}).ServeHTTP(w, r)
}
