package observe

import (
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/berthproject/berth/core/step"
)

// This file is /health-check, as Cluster Autoscaler has it: it fails when plans aren't made any
// more, or have failed for long, so that a liveness probe restarts the process. What is a loop in
// Cluster Autoscaler is a plan here.
//
//	activity   a plan is asked for or taken in
//	success    a plan is taken in, and the provider's groups have been read since the last
//	           success: a loop that can't read them fails
//
// An instance that stands by, or that only schedules, is always well.

// HealthTimes say when the health check fails. Each is compared with >: a time of exactly the limit is
// well.
type HealthTimes struct {
	MaxInactivity time.Duration // --max-inactivity: since the last activity
	MaxFailing    time.Duration // --max-failing-time: since the last success
	MaxStartup    time.Duration // --max-startup-time: both, before the first success
}

// DefaultHealthTimes returns Cluster Autoscaler's defaults.
func DefaultHealthTimes() HealthTimes {
	return HealthTimes{MaxInactivity: 10 * time.Minute, MaxFailing: 15 * time.Minute, MaxStartup: 20 * time.Minute}
}

// health is what the health check knows.
type health struct {
	now func() time.Time // the clock

	mu                sync.Mutex // guards what follows
	times             HealthTimes
	plans             bool // plans are to be made when this instance leads
	watched           bool // it leads, and they are
	activity, success time.Time
	succeeded         bool // once, since this instance leads
	groupsRead        bool // since the last success
}

func newHealth(now func() time.Time) *health { return &health{now: now, times: DefaultHealthTimes()} }

// CheckPlans makes the health check watch plans once this instance leads. As in Cluster Autoscaler
// a start-up is given no less time than what comes after. It is called before BecomeLeader.
func (s *Server) CheckPlans(times HealthTimes) {
	times.MaxStartup = max(times.MaxStartup, times.MaxInactivity, times.MaxFailing)
	s.health.mu.Lock()
	defer s.health.mu.Unlock()
	s.health.times, s.health.plans = times, true
}

// HealthCheck returns what answers /health-check.
func (s *Server) HealthCheck() http.Handler { return s.health }

// lead records whether this instance leads. The times begin anew with each: a new leader has the time
// of a start-up.
func (h *health) lead(leads bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.watched, h.activity, h.success = leads && h.plans, h.now(), h.now()
	h.succeeded, h.groupsRead = false, false
}

// step records what a Step says about plans and groups.
func (h *health) step(inputs []step.Input, ready *step.Ready) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if ready.Plan != nil {
		h.activity = h.now()
	}
	for _, in := range inputs {
		switch in.(type) {
		case step.GroupsSet:
			h.groupsRead = true
		case step.PlanMade:
			h.activity = h.now()
			if h.groupsRead && !refusedIn(ready) {
				h.success, h.succeeded, h.groupsRead = h.now(), true, false
			}
		}
	}
}

// check returns what is wrong, nil for nothing.
func (h *health) check() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.watched {
		return nil
	}
	inactivity, failing := h.times.MaxInactivity, h.times.MaxFailing
	if !h.succeeded {
		inactivity, failing = h.times.MaxStartup, h.times.MaxStartup
	}
	idle, failed := h.now().Sub(h.activity), h.now().Sub(h.success)
	if idle > inactivity || failed > failing {
		return fmt.Errorf("last activity %s ago, of at most %s; last success %s ago, of at most %s (--max-inactivity and --max-failing-time; before the first success --max-startup-time)",
			idle.Round(time.Second), inactivity, failed.Round(time.Second), failing)
	}
	return nil
}

// ServeHTTP answers /health-check.
func (h *health) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	if err := h.check(); err != nil {
		w.WriteHeader(http.StatusInternalServerError)
		fmt.Fprintf(w, "Error: %v", err)
		return
	}
	fmt.Fprint(w, "OK")
}
