package main

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/edge/observe"
)

// TestHealthFlags: each of the three flags is the time after which /health-check fails for what it
// is about: a leader that never had a plan taken in, one that asks for plans no more, and one whose
// plans aren't taken in any more.
func TestHealthFlags(t *testing.T) {
	const scales = "--cloud-provider=clusterapi"
	taken := []step.Input{step.GroupsSet{}, step.PlanMade{Plan: &autoscaler.Plan{}}}
	for _, c := range []struct {
		name    string
		flags   []string
		planned bool          // a plan was taken in
		asks    time.Duration // how often plans are asked for afterwards, 0 for never
		fails   time.Duration // after which time, 0 for never
	}{
		{"a start-up", []string{scales, "--max-inactivity=5m", "--max-failing-time=10m", "--max-startup-time=30m"}, false, 0, 30 * time.Minute},
		{"no activity", []string{scales, "--max-inactivity=5m", "--max-failing-time=10m", "--max-startup-time=30m"}, true, 0, 5 * time.Minute},
		{"no success", []string{scales, "--max-inactivity=5m", "--max-failing-time=10m", "--max-startup-time=30m"}, true, time.Minute, 10 * time.Minute},
		{"no success, which has less time than activity", []string{scales, "--max-inactivity=20m", "--max-failing-time=10m", "--max-startup-time=30m"}, true, 0, 10 * time.Minute},
		{"the defaults of a start-up", []string{scales}, false, 0, 20 * time.Minute},
		{"a Berth that plans nothing", []string{"--max-inactivity=5m", "--max-failing-time=10m", "--max-startup-time=30m"}, false, 0, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f, _ := parsed(t, c.flags...)
				server := observe.NewServer(slog.New(slog.DiscardHandler))
				f.watch(server)
				server.BecomeLeader()
				if c.planned {
					server.Step(time.Now(), 0, taken, &step.Ready{})
				}
				well := func() bool {
					w := httptest.NewRecorder()
					server.HealthCheck().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/health-check", nil))
					return w.Code == http.StatusOK
				}
				const tick = 30 * time.Second
				var failed time.Duration
				for began := time.Now(); failed == 0 && time.Since(began) < time.Hour; {
					time.Sleep(tick)
					if !well() {
						failed = time.Since(began) - tick // at which it was well still
					}
					if c.asks > 0 && time.Since(began)%c.asks == 0 {
						server.Step(time.Now(), 0, nil, &step.Ready{Plan: &autoscaler.Request{}})
					}
				}
				if failed != c.fails {
					t.Errorf("/health-check fails after %s, want %s", failed, c.fails)
				}
			})
		})
	}
}
