package observe

import (
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	v1 "k8s.io/api/core/v1"

	"github.com/berthproject/berth/core"
	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/autoscaler/scaleup"
	"github.com/berthproject/berth/core/door"
	"github.com/berthproject/berth/core/step"
)

// This file holds the metrics of plans, with the names, labels and buckets of Cluster Autoscaler
// (pkg/metrics). What one loop is there is a plan here: from when the core asks for it until it
// has taken it in.

// Functions are the parts of planning whose time is measured, and activities those of which the
// last time is kept, in Cluster Autoscaler's words.
const (
	functionMain    = "main"                 // a plan, with the time until it was taken in
	functionRefresh = "cloudProviderRefresh" // reading the provider's groups
	functionScaleUp = "scaleUp"              // looking for groups to grow
	functionFind    = "findUnneeded"         // looking for nodes that could be removed
	functionRemove  = "scaleDown"            // taking the plan in, beginning removals included

	activitySucceeded = "mainSuccessful" // a plan was taken in
	activityScales    = "autoscaling"    // a plan for a cluster that may be resized
)

// The types of errors: Cluster Autoscaler's.
const (
	errorProvider = "cloudProviderError"
	errorInternal = "internalError"
)

// planMetrics are the metrics of plans.
type planMetrics struct {
	last       *prometheus.GaugeVec     // by activity
	took       *prometheus.HistogramVec // by function
	sums       *prometheus.SummaryVec   // by function
	errors     *prometheus.CounterVec   // by type
	skipped    *prometheus.CounterVec   // by direction and reason
	packings   *prometheus.HistogramVec // by what the nodes are, and namespaces of the pods
	overflowed prometheus.Gauge

	asked time.Time // when the plan was asked for that is being made; zero for none
	// packed are packings whose groups haven't been looked up.
	packed []autoscaler.Packing
}

func newPlanMetrics(r *registry) planMetrics {
	r.subsystem = "cluster_autoscaler"
	m := planMetrics{
		last: r.gauges("last_activity", "Unix time of the last activity: main, a plan was requested; mainSuccessful, a plan was committed; autoscaling, a plan for a cluster that is healthy enough to be resized; scaleUp, a plan with unschedulable pods; scaleDown, a plan that looked for nodes to remove.", "activity"),
		took: r.histograms("function_duration_seconds", "Duration by function: main, a plan from its request until its commit; its parts scaleUp (choosing node groups), findUnneeded (finding removable nodes) and scaleDown (the commit); and cloudProviderRefresh, reading the provider's node groups.",
			functionBuckets(), "function"),
		sums:       r.summaries("function_duration_quantile_seconds", "The same as count and sum. As in Cluster Autoscaler it has no quantiles.", "function"),
		errors:     r.counters("errors_total", "Number of failed autoscaler loops by type: cloudProviderError, the provider's node groups could not be read; internalError, a plan could not be made or committed. Other failures are counted in failed_scale_ups_total and evicted_pods_total.", "type"),
		skipped:    r.counters("skipped_scale_events_count", "Number of times that a plan skipped a scale-up (up) or a scale-down (down) because a limit of --cores-total or --memory-total was reached.", "direction", "reason"),
		packings:   r.histograms("binpacking_heterogeneity", "Number of classes of pods that a plan packed together on nodes of a node group.", prometheus.ExponentialBuckets(1, 2, 6), "instance_type", "cpu_count", "namespace_count"),
		overflowed: r.gauge("overflowing_controllers_count", "Always 0: pods that no rule distinguishes are planned as one class, however many kinds of pods a controller has."),
	}
	for _, kind := range []string{errorProvider, "apiCallError", errorInternal, "transientError", "configurationError", "nodeGroupDoesNotExistError", "unexpectedScaleDownStateError"} {
		m.errors.WithLabelValues(kind)
	}
	for _, direction := range []string{"up", "down"} {
		for _, reason := range skippedReasons {
			m.skipped.WithLabelValues(direction, reason)
		}
	}
	return m
}

// functionBuckets are Cluster Autoscaler's, from 0.1 s to half an hour, behind some from 0.5 ms on:
// most plans take between 1 and 100 ms.
func functionBuckets() []float64 {
	return append([]float64{0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05}, prometheus.ExponentialBucketsRange(0.1, 1800, 150)...)
}

// skippedReasons are the limits by which scaling is skipped, by resource.
var skippedReasons = map[v1.ResourceName]string{v1.ResourceCPU: "CpuResourceLimit", v1.ResourceMemory: "MemoryResourceLimit"}

// step follows the plan that is being made. took is how long the Step took.
func (m *planMetrics) step(now time.Time, took time.Duration, inputs []step.Input, ready *step.Ready) {
	for _, in := range inputs {
		if made, ok := in.(step.PlanMade); ok {
			m.made(now, took, made.Plan, refusedIn(ready))
		}
	}
	if ready.Plan == nil {
		return
	}
	m.asked = now
	m.does(now, functionMain)
	if len(ready.Plan.Pending) > 0 {
		m.does(now, functionScaleUp)
	}
	if ready.Plan.ScaleDown != nil {
		m.does(now, functionRemove)
	}
}

// refusedIn reports whether a Step has refused a plan: then it has taken none in.
func refusedIn(ready *step.Ready) bool {
	for i := range ready.Decisions {
		if ready.Decisions[i].Kind == step.PlanRefused {
			return true
		}
	}
	return false
}

// made counts a plan that has come back. One that was refused counts as an error, and its parts as
// nothing: none of it was taken in. What limits have skipped is read off the plan's own reasons.
func (m *planMetrics) made(now time.Time, took time.Duration, plan *autoscaler.Plan, refused bool) {
	if !m.asked.IsZero() {
		m.observe(functionMain, now.Add(took).Sub(m.asked))
		m.asked = time.Time{}
	}
	if refused {
		m.errors.WithLabelValues(errorInternal).Inc()
		return
	}
	m.does(now, activitySucceeded)
	m.observe(functionRemove, took)
	if plan.Sick == "" {
		m.does(now, activityScales)
	}
	m.packed = append(m.packed, plan.Packed...)
	for i := range plan.NoHelp {
		for name, reason := range skippedReasons {
			for _, why := range plan.NoHelp[i].Reasons {
				if strings.HasSuffix(why, " "+scaleup.TotalReached(name)) {
					m.skipped.WithLabelValues("up", reason).Inc()
				}
			}
		}
	}
	for i := range plan.Kept {
		if k := &plan.Kept[i]; k.Reason == autoscaler.KeptMinTotal {
			for name, reason := range skippedReasons {
				if k.Resource == name {
					m.skipped.WithLabelValues("down", reason).Inc()
				}
			}
		}
	}
}

// does records that an activity took place.
func (m *planMetrics) does(now time.Time, activity string) {
	m.last.WithLabelValues(activity).Set(float64(now.Unix()))
}

func (m *planMetrics) observe(function string, took time.Duration) {
	m.took.WithLabelValues(function).Observe(took.Seconds())
	m.sums.WithLabelValues(function).Observe(took.Seconds())
}

// state counts the packings that were made since it was last called: only the core knows what
// the nodes of a group are like.
func (m *planMetrics) state(c *core.Core) {
	for _, p := range m.packed {
		g := c.State().Group(p.Group)
		if g == nil || g.Template == nil {
			continue
		}
		n := g.Template.Object
		has := capacity(n)
		m.packings.WithLabelValues(n.Labels[v1.LabelInstanceTypeStable], has.Cpu().String(), namespaces(p.Namespaces)).Observe(float64(p.Classes))
	}
	m.packed = nil
}

// capacity returns what a template says that a node has; many say only what can be allocated.
func capacity(n *v1.Node) v1.ResourceList {
	if _, ok := n.Status.Capacity[v1.ResourceCPU]; ok {
		return n.Status.Capacity
	}
	return n.Status.Allocatable
}

// namespaces returns Cluster Autoscaler's label for a number of namespaces.
func namespaces(n int) string {
	switch {
	case n <= 5:
		return strconv.Itoa(n)
	case n <= 10:
		return "6-10"
	}
	return "11+"
}

// GroupsRead implements live.Watcher.
func (s *Server) GroupsRead(took time.Duration, err error) {
	s.Metrics.mu.Lock()
	defer s.Metrics.mu.Unlock()
	s.Metrics.plans.observe(functionRefresh, took)
	if err != nil {
		s.Metrics.plans.errors.WithLabelValues(errorProvider).Inc()
	}
}

// PlanComputed implements live.Watcher.
func (s *Server) PlanComputed(scaleUp, findUnneeded time.Duration) {
	s.Metrics.mu.Lock()
	defer s.Metrics.mu.Unlock()
	s.Metrics.plans.observe(functionScaleUp, scaleUp)
	s.Metrics.plans.observe(functionFind, findUnneeded)
}

// BeyondBounds implements live.Watcher.
func (s *Server) BeyondBounds(p door.Problem) {
	s.Metrics.mu.Lock()
	defer s.Metrics.mu.Unlock()
	s.Metrics.beyond.WithLabelValues(strconv.FormatBool(p.Refused)).Inc()
}

// PlanFailed implements live.Watcher.
func (s *Server) PlanFailed() {
	s.Metrics.mu.Lock()
	defer s.Metrics.mu.Unlock()
	s.Metrics.plans.errors.WithLabelValues(errorInternal).Inc()
}
