package observe

import (
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berthproject/berth/core"
	"github.com/berthproject/berth/core/engine"
	"github.com/berthproject/berth/core/step"
)

// Metrics counts what happens in the Steps of a core, and shows what the core holds.
// A metric is changed in one of two ways: Step adds what a Step brought, State sets
// gauges and adds what the core has counted itself since it was last read. Names,
// labels and buckets are those of kube-scheduler 1.36 and 1.37 (pkg/scheduler/metrics),
// served side by side whichever version's rules hold, and of Cluster Autoscaler; berth_*
// are our own.
type Metrics struct {
	Registry *prometheus.Registry

	attempts      *prometheus.CounterVec
	duration      *prometheus.HistogramVec
	algorithm     prometheus.Histogram
	groups        groupMetrics
	victims       prometheus.Histogram
	attempted     prometheus.Counter // preemptions
	pending       *prometheus.GaugeVec
	entities      *prometheus.GaugeVec
	incoming      *prometheus.CounterVec
	incomingBy    *prometheus.CounterVec // entity type
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
	beyond        *prometheus.CounterVec
	badObjects    prometheus.Counter
	oldest        prometheus.Gauge
	conflicts     *prometheus.CounterVec
	stalledBinds  prometheus.Counter

	// list is that of all metrics, for the reference; it doesn't change after NewMetrics.
	// Names, help and labels of each.
	list         []Metric
	perNodeGroup []prometheus.Collector // of the list, those that aren't registered
	disabled     []string               // names of metrics that are not served
	// leads reports whether this instance decides, from any goroutine; nil for one that never does. It is set before
	// metrics are served.
	leads func() bool

	mu          sync.Mutex // guards what follows
	preemptions preemptionMetrics
	devices     deviceMetrics
	scaleDown   scaleDownMetrics
	cluster     clusterMetrics
	scaleUp     scaleUpMetrics
	plans       planMetrics
	launches    launchMetrics
	shadow      shadowMetrics
	prices      priceMetrics
	savings     savingMetrics
	// binds are those handed out whose outcome hasn't come back. A pod that goes takes
	// its bind along.
	binds map[types.UID]bind
	// What the core's own counts were when they were last read.
	lastStats       core.Stats
	lastIncoming    map[core.Incoming]int
	lastEvaluations map[evaluation]uint64
}

// What another scheduler may be faster at: values of a label of conflicts.
const (
	conflictPod  = "pod"
	conflictRoom = "room"
)

// bind is a bind without an outcome. Its time counts from when it was handed out, and with it that of
// the decision, as kube-scheduler's attempt has both.
type bind struct {
	step.Bind
	handedOut time.Time
	deciding  time.Duration // the decision's share of its Step
}

// evaluation is what one series of plugin_evaluation_total is about.
type evaluation struct{ plugin, point, profile string }

// emptyMetrics has the maps and nothing registered.
func emptyMetrics(r *prometheus.Registry) *Metrics {
	return &Metrics{Registry: r, binds: map[types.UID]bind{}, lastIncoming: map[core.Incoming]int{}, lastEvaluations: map[evaluation]uint64{}}
}

// Step implements drive.Hook. The time of a Step counts in equal shares for the pods
// that were tried in it.
// It is called by the core's goroutine after each Step; a scrape reads meanwhile.
func (m *Metrics) Step(now time.Time, took time.Duration, inputs []step.Input, ready *step.Ready) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.steps.Observe(took.Seconds())
	m.preemptions.step(now, inputs, ready)
	m.scaleDown.step(inputs, ready)
	m.scaleUp.step(inputs, ready)
	m.savings.step(ready)
	m.launches.step(inputs, ready)
	m.plans.step(now, took, inputs, ready)
	m.shadow.step(ready)
	for _, x := range inputs {
		switch x := x.(type) {
		// Outcomes come before the binds of this Step are noted.
		case step.BindDone:
			m.bindDone(now, x)
		case step.PodGone:
			delete(m.binds, x.UID)
		}
	}
	tried := 0
	for i := range ready.Decisions {
		switch d := &ready.Decisions[i]; d.Kind {
		case step.Placed, step.Waits, step.Failed:
			tried++
		case step.RoomTakenTwice:
			m.conflicts.WithLabelValues(conflictRoom).Inc()
		case step.GroupWaits:
			tried += d.Members
		}
	}
	// An average: the core has no clock by which it could time single decisions.
	share := took / time.Duration(max(tried, 1))
	for i := range ready.Decisions {
		m.decided(&ready.Decisions[i], share)
	}
	m.preemptions.evaluated(ready.Decisions, share)
	m.groups.evaluated(ready.Decisions)
	for _, w := range ready.PermitWaits {
		result := "Unschedulable"
		if w.Allowed {
			result = "Success"
		}
		m.permitWait.WithLabelValues(result).Observe(w.Took.Seconds())
	}
	for _, b := range ready.Binds {
		m.binds[b.UID] = bind{b, now, share}
	}
	m.goroutines.WithLabelValues("binding").Set(float64(len(m.binds)))
	m.goroutines.WithLabelValues(operationPreemption).Set(float64(len(m.preemptions.executing)))
}

// decided counts a decision that took some time. An attempt that found a node ends
// with the outcome of the bind, and is counted then.
func (m *Metrics) decided(d *step.Decision, took time.Duration) {
	m.decisions.WithLabelValues(string(d.Kind)).Inc()
	switch d.Kind {
	case step.Placed:
		m.algorithm.Observe(took.Seconds())
	case step.Failed:
		m.attempts.WithLabelValues("error", d.Profile).Inc()
		m.duration.WithLabelValues("error", d.Profile).Observe(took.Seconds())
	case step.Waits:
		m.algorithm.Observe(took.Seconds())
		m.attempts.WithLabelValues("unschedulable", d.Profile).Inc()
		m.duration.WithLabelValues("unschedulable", d.Profile).Observe(took.Seconds())
		m.attempted.Inc()
	case step.Refused:
		m.attempts.WithLabelValues("unschedulable", d.Profile).Inc()
		m.duration.WithLabelValues("unschedulable", d.Profile).Observe(took.Seconds())
	case step.GroupPlaced, step.GroupWaits:
		m.groups.decided(d, took*time.Duration(d.Members))
	case step.Preempts:
		if d.PodGroup == "" {
			m.victims.Observe(float64(len(d.Victims)))
		}
	}
}

// bindDone counts an attempt that found a node, by how its bind went.
// A bind that isn't known belongs to a pod that is gone, or to a process before this one.
func (m *Metrics) bindDone(now time.Time, done step.BindDone) {
	b, ok := m.binds[done.UID]
	if !ok {
		return
	}
	delete(m.binds, done.UID)
	result, status := "scheduled", "Success"
	if done.Err != nil {
		result, status = "error", "Error"
		// Another scheduler has placed the pod first.
		if apierrors.IsConflict(done.Err) {
			m.conflicts.WithLabelValues(conflictPod).Inc()
		}
	}
	took := now.Sub(b.handedOut)
	m.attempts.WithLabelValues(result, b.Profile).Inc()
	m.duration.WithLabelValues(result, b.Profile).Observe((took + b.deciding).Seconds())
	m.extension.WithLabelValues("Bind", status, b.Profile).Observe(took.Seconds())
	if done.Err != nil {
		return
	}
	m.tries.Observe(float64(b.Attempts))
	m.sli.WithLabelValues(attemptsLabel(b.Attempts)).Observe(now.Sub(b.Queued).Seconds())
}

// attemptsLabel returns kube-scheduler's label for a number of attempts.
// The label is bounded, as each value is a series.
func attemptsLabel(n int) string {
	if n < 15 {
		return strconv.Itoa(n)
	}
	return "15+"
}

// State reads what the core holds and has counted. It is for the goroutine that owns
// the core.
func (m *Metrics) State(c *core.Core) {
	m.mu.Lock()
	defer m.mu.Unlock()
	q := c.Queue()
	for i, n := range []int{q.Active, q.Backoff, q.Unschedulable, q.Gated} {
		m.pending.WithLabelValues(queues[i]).Set(float64(n))
		m.entities.WithLabelValues(queues[i], entityPod).Set(float64(n - q.Members[i]))
		m.entities.WithLabelValues(queues[i], entityPodGroup).Set(float64(q.Groups[i]))
	}
	waits := 0.0
	if since := c.View().Pods.WaitsSince(); !since.IsZero() {
		waits = max(c.View().Now().Sub(since), 0).Seconds()
	}
	m.oldest.Set(waits)
	m.unschedulable.Reset()
	for by, n := range c.Rejecters() {
		m.unschedulable.WithLabelValues(by.Plugin, by.Profile).Set(float64(n))
	}
	nodes, pods := c.Size()
	m.cache.WithLabelValues("nodes").Set(float64(nodes))
	m.cache.WithLabelValues("pods").Set(float64(pods))
	m.cache.WithLabelValues("assumed_pods").Set(float64(len(m.binds)))
	stats := c.Stats()
	m.flushed.Add(float64(stats.MissedWakeups - m.lastStats.MissedWakeups))
	m.badObjects.Add(float64(stats.BadObjects - m.lastStats.BadObjects))
	violations, ofGroups := stats.Violations-m.lastStats.Violations, stats.GroupViolations-m.lastStats.GroupViolations
	m.preemptions.violations.WithLabelValues(entityPod).Add(float64(violations - ofGroups))
	m.preemptions.violations.WithLabelValues(entityPodGroup).Add(float64(ofGroups))
	m.lastStats = stats
	// The core counts up; metrics add what is new since the last look.
	c.Evaluations(func(profile string, x engine.Evaluations) {
		k := evaluation{x.Plugin, x.Point, profile}
		m.evaluations.WithLabelValues(k.plugin, k.point, k.profile).Add(float64(x.Pods - m.lastEvaluations[k]))
		m.lastEvaluations[k] = x.Pods
	})
	m.scaleDown.state(c)
	status := c.View().ScalingStatus()
	m.cluster.state(&status)
	m.launches.windows(status.Launches)
	m.plans.state(c)
	m.shadow.state(c)
	m.prices.state(c)
	for k, n := range c.Incoming() {
		m.incoming.WithLabelValues(k.Queue, k.Event).Add(float64(n - m.lastIncoming[k]))
		m.incomingBy.WithLabelValues(k.Queue, k.Event, entityPod).Add(float64(n - m.lastIncoming[k]))
		m.lastIncoming[k] = n
	}
}

// BindStalled counts a bind that has had no outcome for a minute.
func (s *Server) BindStalled() { s.Metrics.stalledBinds.Inc() }
