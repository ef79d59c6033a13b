// Package observe shows what a live Berth does: metrics under kube-scheduler's
// names, health, configuration, profiles, and the decisions behind a pod.
package observe

import (
	"strconv"
	"sync"
	"time"

	"github.com/berthproject/berth/core/step"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berthproject/berth/core"
	"github.com/berthproject/berth/core/engine"
)

// Metrics counts what the Steps of a core tell. Names, labels and buckets are
// those of kube-scheduler 1.36 (pkg/scheduler/metrics); berth_* are our own.
type Metrics struct {
	Registry *prometheus.Registry

	attempts      *prometheus.CounterVec
	duration      *prometheus.HistogramVec
	algorithm     prometheus.Histogram
	victims       prometheus.Histogram
	preemptions   prometheus.Counter
	pending       *prometheus.GaugeVec
	incoming      *prometheus.CounterVec
	tries         prometheus.Histogram
	sli           *prometheus.HistogramVec
	extension     *prometheus.HistogramVec
	permitWait    *prometheus.HistogramVec
	evaluations   *prometheus.CounterVec
	unschedulable *prometheus.GaugeVec
	goroutines    *prometheus.GaugeVec
	cache         *prometheus.GaugeVec
	flushed       prometheus.Counter
	steps         prometheus.Histogram
	decisions     *prometheus.CounterVec
	odd           prometheus.Counter

	mu    sync.Mutex
	binds map[types.UID]bind
	last  core.Stats
	came  map[core.Incoming]int
	// evaluated is what the core has told so far.
	evaluated map[evaluation]uint64
}

// bind is one under way.
type bind struct {
	step.Bind
	sent   time.Time
	decide time.Duration // what deciding took
}

// NewMetrics returns metrics in a registry of their own, with those of the
// process and the Go runtime.
func NewMetrics() *Metrics {
	m := &Metrics{Registry: prometheus.NewRegistry(), binds: map[types.UID]bind{}, came: map[core.Incoming]int{}, evaluated: map[evaluation]uint64{}}
	const s = "scheduler"
	exp := prometheus.ExponentialBuckets
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Subsystem: s, Name: name, Help: help})
	}
	counters := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Subsystem: s, Name: name, Help: help}, labels)
	}
	gauges := func(name, help string, labels ...string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Subsystem: s, Name: name, Help: help}, labels)
	}
	histogram := func(name, help string, buckets []float64) prometheus.Histogram {
		return prometheus.NewHistogram(prometheus.HistogramOpts{Subsystem: s, Name: name, Help: help, Buckets: buckets})
	}
	histograms := func(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(prometheus.HistogramOpts{Subsystem: s, Name: name, Help: help, Buckets: buckets}, labels)
	}
	m.attempts = counters("schedule_attempts_total", "Attempts to schedule pods, by result: scheduled, unschedulable, or error, which is a failure of Berth's or the API server's.", "result", "profile")
	m.duration = histograms("scheduling_attempt_duration_seconds", "Time of an attempt: its share of the decisions made at once, and binding.", exp(0.001, 2, 15), "result", "profile")
	m.algorithm = histogram("scheduling_algorithm_duration_seconds", "Time of a decision: its share of those made at once.", exp(0.001, 2, 15))
	m.victims = histogram("preemption_victims", "Victims of a preemption.", exp(1, 2, 7))
	m.preemptions = counter("preemption_attempts_total", "Attempts without a node that looked for victims.")
	m.pending = gauges("pending_pods", "Pods without a node, by queue: active, backoff, unschedulable, or gated, where those are too whose victims are being told to leave.", "queue")
	m.incoming = counters("queue_incoming_pods_total", "Pods that came to a queue, by the reason.", "queue", "event")
	m.tries = histogram("pod_scheduling_attempts", "Attempts until a pod was bound.", exp(1, 2, 5))
	m.sli = histograms("pod_scheduling_sli_duration_seconds", "Time from a pod's first being queued until it was bound, by attempts.", exp(0.01, 2, 20), "attempts")
	m.extension = histograms("framework_extension_point_duration_seconds", "Time of Bind, with what it waits for before. What kube-scheduler runs pod by pod and node by node before that is one evaluation here: see scheduling_algorithm_duration_seconds.", exp(0.0001, 2, 12), "extension_point", "status", "profile")
	m.permitWait = histograms("permit_wait_duration_seconds", "Time that pods with a node have waited for permission to be bound.", exp(0.001, 2, 15), "result")
	m.evaluations = counters("plugin_evaluation_total", "Pods that a plugin was asked about, at Filter and Score. Most of its answers lie ready: it is asked once for pods that no rule tells apart.", "plugin", "extension_point", "profile")
	m.unschedulable = gauges("unschedulable_pods", "Pods that wait, by each plugin that rejects a node for them.", "plugin", "profile")
	m.goroutines = gauges("goroutines", "Calls under way, by what they do.", "operation")
	m.cache = gauges("cache_size", "Nodes, pods on nodes, and of those the ones whose bind is under way.", "type")
	m.flushed = counter("pod_scheduled_after_flush_total", "Pods that only the sweep of those that had waited for five minutes found schedulable: each is a wake-up that was missed.")
	m.steps = prometheus.NewHistogram(prometheus.HistogramOpts{Name: "berth_step_duration_seconds", Help: "Time of a Step of the core, during which nothing else is taken in.", Buckets: exp(0.0001, 2, 16)})
	m.decisions = prometheus.NewCounterVec(prometheus.CounterOpts{Name: "berth_decisions_total", Help: "Decisions in the ledger, by kind."}, []string{"kind"})
	m.odd = prometheus.NewCounter(prometheus.CounterOpts{Name: "berth_bad_objects_total", Help: "Objects with values that could not be taken as they stand."})
	m.Registry.MustRegister(m.attempts, m.duration, m.algorithm, m.victims, m.preemptions, m.pending, m.incoming, m.tries, m.sli, m.extension, m.permitWait, m.evaluations, m.unschedulable,
		m.goroutines, m.cache, m.flushed, m.steps, m.decisions, m.odd, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	for _, q := range []string{"active", "backoff", "unschedulable", "gated"} {
		m.pending.WithLabelValues(q)
	}
	return m
}

// Step takes note of a Step that took some time.
func (m *Metrics) Step(now time.Time, took time.Duration, in []step.Input, r *step.Ready) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.steps.Observe(took.Seconds())
	for _, x := range in {
		switch x := x.(type) {
		case step.BindDone:
			m.bound(now, x)
		case step.PodGone:
			delete(m.binds, x.UID)
		}
	}
	tried := 0
	for i := range r.Decisions {
		if k := r.Decisions[i].Kind; k == step.Placed || k == step.Waits {
			tried++
		}
	}
	share := took / time.Duration(max(tried, 1))
	for i := range r.Decisions {
		d := &r.Decisions[i]
		m.decisions.WithLabelValues(string(d.Kind)).Inc()
		switch d.Kind {
		case step.Placed:
			m.algorithm.Observe(share.Seconds())
		case step.Waits:
			m.algorithm.Observe(share.Seconds())
			m.attempts.WithLabelValues("unschedulable", d.Profile).Inc()
			m.duration.WithLabelValues("unschedulable", d.Profile).Observe(share.Seconds())
			m.preemptions.Inc()
		case step.Refused:
			m.attempts.WithLabelValues("unschedulable", d.Profile).Inc()
			m.duration.WithLabelValues("unschedulable", d.Profile).Observe(share.Seconds())
		case step.Preempts:
			m.victims.Observe(float64(len(d.Victims)))
		}
	}
	for _, w := range r.PermitWaits {
		result := "Unschedulable"
		if w.Allowed {
			result = "Success"
		}
		m.permitWait.WithLabelValues(result).Observe(w.Took.Seconds())
	}
	for _, b := range r.Binds {
		m.binds[b.UID] = bind{b, now, share}
	}
	m.goroutines.WithLabelValues("binding").Set(float64(len(m.binds)))
}

// evaluation is what a plugin_evaluation_total is about.
type evaluation struct{ plugin, point, profile string }

// bound takes note of how a bind went.
func (m *Metrics) bound(now time.Time, x step.BindDone) {
	b, ok := m.binds[x.UID]
	if !ok {
		return
	}
	delete(m.binds, x.UID)
	result, status := "scheduled", "Success"
	if x.Err != nil {
		result, status = "error", "Error"
	}
	took := now.Sub(b.sent)
	m.attempts.WithLabelValues(result, b.Profile).Inc()
	m.duration.WithLabelValues(result, b.Profile).Observe((took + b.decide).Seconds())
	m.extension.WithLabelValues("Bind", status, b.Profile).Observe(took.Seconds())
	if x.Err != nil {
		return
	}
	m.tries.Observe(float64(b.Attempts))
	tries := "15+" // kube-scheduler's label for many
	if b.Attempts < 15 {
		tries = strconv.Itoa(b.Attempts)
	}
	m.sli.WithLabelValues(tries).Observe(now.Sub(b.Queued).Seconds())
}

// State reads what the core holds. It is called by the goroutine that owns it.
func (m *Metrics) State(c *core.Core) {
	m.mu.Lock()
	defer m.mu.Unlock()
	q := c.Queue()
	for name, n := range map[string]int{"active": q.Active, "backoff": q.Backoff, "unschedulable": q.Unschedulable, "gated": q.Gated} {
		m.pending.WithLabelValues(name).Set(float64(n))
	}
	m.unschedulable.Reset()
	for by, n := range c.Rejecters() {
		m.unschedulable.WithLabelValues(by.Plugin, by.Profile).Set(float64(n))
	}
	nodes, pods := c.Size()
	for name, n := range map[string]int{"nodes": nodes, "pods": pods, "assumed_pods": len(m.binds)} {
		m.cache.WithLabelValues(name).Set(float64(n))
	}
	s := c.Stats()
	m.flushed.Add(float64(s.MissedWakeups - m.last.MissedWakeups))
	m.odd.Add(float64(s.BadObjects - m.last.BadObjects))
	m.last = s
	c.Evaluations(func(profile string, x engine.Evaluations) {
		k := evaluation{x.Plugin, x.Point, profile}
		m.evaluations.WithLabelValues(k.plugin, k.point, k.profile).Add(float64(x.Pods - m.evaluated[k]))
		m.evaluated[k] = x.Pods
	})
	for k, n := range c.Incoming() {
		m.incoming.WithLabelValues(k.Queue, k.Event).Add(float64(n - m.came[k]))
		m.came[k] = n
	}
}
