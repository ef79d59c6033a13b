package observe

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/berthproject/berth/core"
	"github.com/berthproject/berth/core/step"
)

// This file shows what a shadow has compared: at /debug/shadow, and as metrics.

// ShadowPath is where a shadow has its report.
const ShadowPath = "/debug/shadow"

// ShadowReport is what /debug/shadow answers.
type ShadowReport struct {
	At time.Time `json:"at"`
	core.ShadowReport
}

// ReadShadowReport reads the report of a shadow; from says where it was found. JSON of anything else is
// refused: it would be read as a report in which nothing was compared.
func ReadShadowReport(raw []byte, from string) (*ShadowReport, error) {
	r := &ShadowReport{}
	if err := json.Unmarshal(raw, r); err != nil {
		return nil, fmt.Errorf("reading the report of %s: %w; it must be one saved with berth shadow report -o json", from, err)
	}
	if r.At.IsZero() || r.Verdicts == nil {
		return nil, fmt.Errorf("reading the report of %s: it has no time or no verdicts; it must be one saved with berth shadow report -o json", from)
	}
	return r, nil
}

// noShadow is why there is no report.
const noShadow = "this instance is not a shadow: it makes decisions and compares nothing; start a shadow with berth run --shadow"

// shadow serves /debug/shadow.
func (s *Server) shadow(w http.ResponseWriter, r *http.Request) {
	if !s.ready.Load() {
		fail(w, http.StatusServiceUnavailable, "this instance has not synced its caches yet, or is standing by; try again")
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), questionTimeout)
	defer cancel()
	got := make(chan *core.ShadowReport, 1)
	if !s.ask(ctx, func(c *core.Core) { got <- c.ShadowReport() }) {
		fail(w, http.StatusServiceUnavailable, "the core is busy; try again")
		return
	}
	report := <-got
	if report == nil {
		fail(w, http.StatusNotFound, noShadow)
		return
	}
	answer(w, http.StatusOK, ShadowReport{At: time.Now(), ShadowReport: *report})
}

// shadowMetrics count what a shadow compares.
type shadowMetrics struct {
	verdicts *prometheus.CounterVec
	took     *prometheus.HistogramVec
	short    prometheus.Counter
	waiting  prometheus.Gauge
	nodes    *prometheus.CounterVec
	hours    *prometheus.GaugeVec
	cost     *prometheus.GaugeVec
}

func newShadowMetrics(r *registry) shadowMetrics {
	r.subsystem = "berth_shadow"
	m := shadowMetrics{
		verdicts: r.counters("pods_total", "Number of pods compared by a shadow, by Berth's verdict on the other scheduler's node: same, equal, better, worse, notAllowed, or onlyBerth for a pod that the other scheduler has not placed. Always 0 without --shadow.", "verdict"),
		took:     r.histograms("time_to_place_seconds", "Time from when a shadow first saw a pod until it saw the other scheduler's binding (by=other), or until Berth's decision, which is not bound (by=berth).", prometheus.ExponentialBuckets(0.0001, 2, 22), "by"),
		short:    r.counter("score_points_short_total", "Sum of the score points by which the other scheduler's nodes fall short of Berth's choices in the same state of the cluster."),
		waiting:  r.gauge("waiting_pods", "Number of pods for which Berth has a node and which the other scheduler has not placed yet."),
		nodes:    r.counters("nodes_total", "Number of nodes compared by a shadow, by which autoscaler added or removed them, or would have: boughtByBoth, boughtOnlyByBerth, boughtOnlyByOther, removedByBoth, removedOnlyByBerth, removedOnlyByOther. Verdicts that are revoked later stay counted. Always 0 without --shadow and --cloud-provider.", "verdict"),
		hours:    r.gauges("node_hours", "Node hours of the node groups since the shadow started: of the actual cluster (of=cluster), and estimated for Berth (of=berth).", "of"),
		cost:     r.gauges("node_cost", "Cost of these node hours at the provider's prices.", "of"),
	}
	for _, v := range step.NodeVerdicts {
		m.nodes.WithLabelValues(string(v))
	}
	for _, v := range step.Verdicts {
		m.verdicts.WithLabelValues(string(v))
	}
	return m
}

// step counts what a Step has compared. Times count of pods that both have placed.
func (m *shadowMetrics) step(ready *step.Ready) {
	for i := range ready.NodeComparisons {
		c := &ready.NodeComparisons[i]
		m.nodes.WithLabelValues(string(c.Verdict)).Add(float64(c.Nodes))
	}
	for i := range ready.Comparisons {
		c := &ready.Comparisons[i]
		m.verdicts.WithLabelValues(string(c.Verdict)).Inc()
		m.short.Add(float64(c.Points()))
		if e := c.Earlier; c.Verdict.Compared() && e != nil && e.Node != "" {
			m.took.WithLabelValues("other").Observe(c.Took.Seconds())
			m.took.WithLabelValues("berth").Observe(e.Took.Seconds())
		}
	}
}

// state reads what the core holds.
func (m *shadowMetrics) state(c *core.Core) {
	r := c.ShadowReport()
	if r == nil {
		return
	}
	m.waiting.Set(float64(r.Waiting))
	if r.Nodes != nil {
		m.nodesAre(r.Nodes)
	}
}

// nodesAre sets what the core says about nodes.
func (m *shadowMetrics) nodesAre(r *core.ShadowNodes) {
	for of, h := range map[string]core.ShadowHours{"cluster": r.Cluster, "berth": r.Berth} {
		m.hours.WithLabelValues(of).Set(h.Hours)
		m.cost.WithLabelValues(of).Set(h.Cost)
	}
}
