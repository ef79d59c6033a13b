package observe

import (
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	dto "github.com/prometheus/client_model/go"

	"github.com/berthproject/berth/internal/version"
)

// This file makes metrics and registers them, and keeps the list of them from which the
// reference, the dashboard and the alert rules are made.

// Metric describes one metric of the list.
type Metric struct {
	Name    string
	Type    string // counter, gauge, histogram or summary, as in the text format
	Labels  []string
	Help    string
	Buckets []float64 // of a histogram
	// PerNodeGroup says that the metric is there with --emit-per-nodegroup-metrics only.
	PerNodeGroup bool
}

// registry makes metrics of a subsystem, registers them and lists them. The subsystem is set anew by
// whoever makes the next metrics: it is the first part of their names.
type registry struct {
	*prometheus.Registry
	subsystem string
	list      []Metric
	// perNodeGroup are metrics that are registered later, or never.
	perNodeGroup []prometheus.Collector
}

// register registers a metric and returns it. Registering a name twice is a defect of
// the program, and panics at the start.
func register[T prometheus.Collector](r *registry, metric T, of Metric) T {
	of.Name = strings.Join([]string{r.subsystem, of.Name}, "_")
	r.list = append(r.list, of)
	if of.PerNodeGroup {
		r.perNodeGroup = append(r.perNodeGroup, metric)
	} else {
		r.MustRegister(metric)
	}
	return metric
}

func (r *registry) counter(name, help string) prometheus.Counter {
	return register(r, prometheus.NewCounter(prometheus.CounterOpts{Subsystem: r.subsystem, Name: name, Help: help}), Metric{Name: name, Type: "counter", Help: help})
}

func (r *registry) counters(name, help string, labels ...string) *prometheus.CounterVec {
	return register(r, prometheus.NewCounterVec(prometheus.CounterOpts{Subsystem: r.subsystem, Name: name, Help: help}, labels), Metric{Name: name, Type: "counter", Help: help, Labels: labels})
}

func (r *registry) gauge(name, help string) prometheus.Gauge {
	return register(r, prometheus.NewGauge(prometheus.GaugeOpts{Subsystem: r.subsystem, Name: name, Help: help}), Metric{Name: name, Type: "gauge", Help: help})
}

// gauges returns a gauge with labels. Without any it is a gauge that isn't there before it is
// first set.
func (r *registry) gauges(name, help string, labels ...string) *prometheus.GaugeVec {
	return register(r, prometheus.NewGaugeVec(prometheus.GaugeOpts{Subsystem: r.subsystem, Name: name, Help: help}, labels), Metric{Name: name, Type: "gauge", Help: help, Labels: labels})
}

// gaugeFunc returns a gauge whose value is asked for at each scrape.
func (r *registry) gaugeFunc(name, help string, value func() float64) prometheus.GaugeFunc {
	return register(r, prometheus.NewGaugeFunc(prometheus.GaugeOpts{Subsystem: r.subsystem, Name: name, Help: help}, value), Metric{Name: name, Type: "gauge", Help: help})
}

// groupGauges returns a gauge that is registered when metrics of each node group are wanted.
func (r *registry) groupGauges(name, help string, labels ...string) *prometheus.GaugeVec {
	return register(r, prometheus.NewGaugeVec(prometheus.GaugeOpts{Subsystem: r.subsystem, Name: name, Help: help}, labels), Metric{Name: name, Type: "gauge", Help: help, Labels: labels, PerNodeGroup: true})
}

// groupHistograms is groupGauges for histograms.
func (r *registry) groupHistograms(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	return register(r, prometheus.NewHistogramVec(prometheus.HistogramOpts{Subsystem: r.subsystem, Name: name, Help: help, Buckets: buckets}, labels), Metric{Name: name, Type: "histogram", Help: help, Labels: labels, Buckets: buckets, PerNodeGroup: true})
}

func (r *registry) histogram(name, help string, buckets []float64) prometheus.Histogram {
	return register(r, prometheus.NewHistogram(prometheus.HistogramOpts{Subsystem: r.subsystem, Name: name, Help: help, Buckets: buckets}), Metric{Name: name, Type: "histogram", Help: help, Buckets: buckets})
}

func (r *registry) histograms(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	return register(r, prometheus.NewHistogramVec(prometheus.HistogramOpts{Subsystem: r.subsystem, Name: name, Help: help, Buckets: buckets}, labels), Metric{Name: name, Type: "histogram", Help: help, Labels: labels, Buckets: buckets})
}

// summaries returns a summary without quantiles, over the last hour.
func (r *registry) summaries(name, help string, labels ...string) *prometheus.SummaryVec {
	return register(r, prometheus.NewSummaryVec(prometheus.SummaryOpts{Subsystem: r.subsystem, Name: name, Help: help, MaxAge: time.Hour}, labels), Metric{Name: name, Type: "summary", Help: help, Labels: labels})
}

// queues are kube-scheduler's names of where pods wait; each has a gauge from the
// start on.
var queues = []string{"active", "backoff", "unschedulable", "gated"}

// groupQueues are further ones of kube-scheduler 1.37, for pods that wait for their pod group. No pod
// of Berth's is there: those whose group can't be tried are gated.
var groupQueues = []string{"incomplete", "pending"}

// The values of the labels type and preemptor: what is scheduled as one.
const (
	entityPod      = "pod"
	entityPodGroup = "podgroup"
)

// NewMetrics returns metrics in a registry of their own, with those of the process
// and the Go runtime. The names, labels and buckets of scheduler_* are
// kube-scheduler's, those of cluster_autoscaler_* Cluster Autoscaler's, and stay.
func NewMetrics() *Metrics {
	r := &registry{Registry: prometheus.NewRegistry(), subsystem: "scheduler"}
	m := newMetrics(r)
	r.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	for _, q := range queues {
		m.pending.WithLabelValues(q)
		m.entities.WithLabelValues(q, entityPod)
		m.entities.WithLabelValues(q, entityPodGroup)
	}
	for _, q := range groupQueues {
		m.pending.WithLabelValues(q)
	}
	m.list, m.perNodeGroup = r.list, r.perNodeGroup
	return m
}

// List returns all metrics but those of the process and the Go runtime, in the order in which
// they are made.
func (m *Metrics) List() []Metric { return m.list }

// EmitPerNodeGroup registers the metrics of each node group, too. It is to be called once, if
// at all, before the metrics are served.
func (m *Metrics) EmitPerNodeGroup() { m.Registry.MustRegister(m.perNodeGroup...) }

// Disable leaves metrics out of what is served, by their names. It is to be called before they are
// served. They are still counted; a name that no metric has is ignored.
func (m *Metrics) Disable(names ...string) { m.disabled = append(m.disabled, names...) }

// enabled returns the metrics that are served.
func (m *Metrics) enabled() prometheus.Gatherer {
	if len(m.disabled) == 0 {
		return m.Registry
	}
	return prometheus.GathererFunc(func() ([]*dto.MetricFamily, error) {
		families, err := m.Registry.Gather()
		return slices.DeleteFunc(families, func(f *dto.MetricFamily) bool { return slices.Contains(m.disabled, f.GetName()) }), err
	})
}

func newMetrics(r *registry) *Metrics {
	m := emptyMetrics(r.Registry)
	exp := prometheus.ExponentialBuckets
	m.attempts = r.counters("schedule_attempts_total", "Number of attempts to schedule pods, by result: scheduled, unschedulable, or error for an internal error of Berth or the API server.", "result", "profile")
	m.duration = r.histograms("scheduling_attempt_duration_seconds", "Scheduling attempt latency: the attempt's share of the decisions made together, plus binding.", exp(0.001, 2, 15), "result", "profile")
	m.algorithm = r.histogram("scheduling_algorithm_duration_seconds", "Scheduling algorithm latency: the decision's share of those made together.", exp(0.001, 2, 15))
	m.groups = groupMetrics{
		attempts:    r.counters("podgroup_schedule_attempts_total", "Number of attempts to schedule pod groups, by result: scheduled when enough members got nodes, or unschedulable.", "result", "profile"),
		duration:    r.histograms("podgroup_scheduling_attempt_duration_seconds", "Pod group scheduling attempt latency: the attempt's share of the decisions made together.", exp(0.001, 2, 15), "result", "profile"),
		algorithm:   r.histogram("podgroup_scheduling_algorithm_duration_seconds", "Pod group scheduling algorithm latency: the attempt's share of the decisions made together.", exp(0.001, 2, 15)),
		preempted:   r.counters("workload_preemption_attempts_total", "Number of attempts to schedule pod groups that found too few nodes, by whether victims were found (Success or Unschedulable). Each counts as a preemption attempt, as in kube-scheduler.", "result"),
		victims:     r.histogram("workload_preemption_victims", "Number of selected preemption victims of pod groups.", exp(1, 2, 11)),
		disruptions: r.histograms("preemption_workload_disruptions", "Number of units of pod groups among the preemption victims of a pod group, if there are any: all members of a group whose disruptionMode is all are one unit, each member of another group is one. As in kube-scheduler 1.37, preemptor is always podgroup: preemptions by single pods are not observed.", exp(1, 2, 11), "preemptor"),
	}
	m.victims = r.histogram("preemption_victims", "Number of selected preemption victims of single pods.", exp(1, 2, 7))
	m.attempted = r.counter("preemption_attempts_total", "Number of scheduling attempts that found no node. Each counts as a preemption attempt, as in kube-scheduler, also if the pod may not preempt.")
	m.pending = r.gauges("pending_pods", "Number of pending pods by queue: active, backoff, unschedulable, or gated, which includes pods whose preemption victims are being deleted. incomplete and pending are always 0: pods whose pod group can't be tried count as gated.", "queue")
	m.entities = r.gauges("queued_entities", "Number of entities that are scheduled as one, by queue as in pending_pods and by type: a pod group with its pending members, or a pod without one.", "queue", "type")
	m.incoming = r.counters("queue_incoming_pods_total", "Number of pods added to scheduling queues, by event and queue.", "queue", "event")
	m.incomingBy = r.counters("queue_incoming_entities_total", "Number of entities added to scheduling queues, by event, queue and type. Each pod is one.", "queue", "event", "type")
	m.tries = r.histogram("pod_scheduling_attempts", "Number of attempts to successfully schedule a pod.", exp(1, 2, 5))
	m.sli = r.histograms("pod_scheduling_sli_duration_seconds", "Latency from when a pod is first queued until it is bound, by attempts.", exp(0.01, 2, 20), "attempts")
	m.extension = r.histograms("framework_extension_point_duration_seconds", "Latency of Bind, including what it waits for. The extension points that kube-scheduler runs before it pod by pod and node by node are one evaluation here: see scheduling_algorithm_duration_seconds.", exp(0.0001, 2, 12), "extension_point", "status", "profile")
	m.permitWait = r.histograms("permit_wait_duration_seconds", "Duration of waiting on permit.", exp(0.001, 2, 15), "result")
	m.evaluations = r.counters("plugin_evaluation_total", "Number of pods that a plugin was evaluated for, at Filter and Score. Most results are cached: pods that no rule distinguishes are evaluated once.", "plugin", "extension_point", "profile")
	m.unschedulable = r.gauges("unschedulable_pods", "Number of unschedulable pods by plugin that rejects a node for them; a pod is counted for each such plugin.", "plugin", "profile")
	m.goroutines = r.gauges("goroutines", "Number of binds (operation=binding) and of preemptions (operation=preemption) whose calls are in flight.", "operation")
	m.cache = r.gauges("cache_size", "Number of nodes, pods on nodes, and assumed (being bound) pods.", "type")
	m.flushed = r.counter("pod_scheduled_after_flush_total", "Number of pods that only the periodic flush of pods unschedulable for five minutes found schedulable: each is a missed wake-up.")
	m.preemptions = newPreemptionMetrics(r)
	m.devices = newDeviceMetrics(r)
	r.subsystem = "berth"
	m.steps = r.histogram("step_duration_seconds", "Duration of a step of the core, which takes no other input meanwhile.", exp(0.0001, 2, 16))
	m.beyond = r.counters("inputs_beyond_bounds_total", "Number of inputs from the API server, the provider or an extender with a name, list or text beyond the bounds, by whether the object is ignored (refused=true) or only what is beyond the bounds.", "refused")
	m.decisions = r.counters("decisions_total", "Number of decisions in the ledger, by kind.", "kind")
	v := version.Get()
	r.gauges("build_info", "Always 1, with the version of Berth, the commit that it was built from, and the version of Go as labels.", "version", "revision", "goversion").
		WithLabelValues(v.Version, v.Revision, v.Go).Set(1)
	m.registerLeading(r)
	m.badObjects = r.counter("bad_objects_total", "Number of objects with invalid values.")
	m.oldest = r.gauge("oldest_pending_pod_seconds", "How long the pod has waited that has waited longest for a node, since this instance first saw it. Gated pods are not counted.")
	m.conflicts = r.counters("scheduler_conflicts_total", "Number of times another scheduler was faster, by what: pod if it had bound the pod already, room if its pod and Berth's together request more than their node has, so that the kubelet rejects one.", "about")
	for _, about := range []string{conflictPod, conflictRoom} {
		m.conflicts.WithLabelValues(about)
	}
	m.stalledBinds = r.counter("stalled_binds_total", "Number of binds that had no outcome for a minute: the API server or a webhook says that it can't serve them now, or where their pods are can't be read.")
	m.scaleDown = newScaleDownMetrics(r)
	m.cluster = newClusterMetrics(r)
	m.scaleUp = newScaleUpMetrics(r)
	m.plans = newPlanMetrics(r)
	m.launches = newLaunchMetrics(r)
	m.shadow = newShadowMetrics(r)
	m.prices = newPriceMetrics(r)
	m.savings = newSavingMetrics(r)
	return m
}

// registerLeading makes the gauge of who leads, which asks at each scrape.
func (m *Metrics) registerLeading(r *registry) {
	r.gaugeFunc("leading", "1 for an instance that decides: it holds the Lease and has renewed it in time, or runs without leader election. 0 for one that stands by, or that can't renew its Lease.", func() float64 {
		if m.leads != nil && m.leads() {
			return 1
		}
		return 0
	})
}
