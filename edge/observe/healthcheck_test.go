package observe

import (
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/step"
)

// TestHealthCheck asks for it as time passes and plans come, or don't.
func TestHealthCheck(t *testing.T) {
	asked := step.Ready{Plan: &autoscaler.Request{}}
	made := []step.Input{step.PlanMade{Plan: &autoscaler.Plan{}}}
	groups := []step.Input{step.GroupsSet{}}
	refused := step.Ready{Decisions: []step.Decision{{Kind: step.PlanRefused}}}
	type event struct {
		after  time.Duration // since the one before
		inputs []step.Input
		ready  step.Ready
		lead   string // "begin", "end", or "" for a Step
		well   bool   // afterwards
	}
	begin := event{lead: "begin", well: true}
	round := func(after time.Duration) []event { // a plan that succeeds
		return []event{{after: after, inputs: groups, ready: asked, well: true}, {inputs: made, well: true}}
	}
	for _, x := range []struct {
		name   string
		events []event
	}{
		{"standing by", []event{{after: 24 * time.Hour, well: true}}},
		{"a leader that never plans has the time of a start-up", []event{begin, {after: 20 * time.Minute, well: true}, {after: time.Second}}},
		{"one that stands by again is well", []event{begin, {after: time.Hour}, {lead: "end", well: true}, {after: time.Hour, well: true}}},
		{"no plan after the first", append(append([]event{begin}, round(0)...), event{after: 10 * time.Minute, well: true}, event{after: time.Second})},
		{"plans go on", append(append(append([]event{begin}, round(0)...), round(9*time.Minute)...), round(9*time.Minute)...)},
		{"a plan that is never answered", append(append([]event{begin}, round(0)...), event{after: 9 * time.Minute, ready: asked, well: true}, event{after: 6 * time.Minute, well: true}, event{after: time.Second})},
		{"groups that can't be read any more", append(append([]event{begin}, round(0)...),
			event{after: 8 * time.Minute, inputs: made, ready: asked, well: true}, event{after: 7 * time.Minute, inputs: made, ready: asked, well: true}, event{after: time.Second, inputs: made, ready: asked},
			event{inputs: groups}, event{inputs: made, well: true})},
		{"plans that are refused", append(append([]event{begin}, round(0)...),
			event{after: 8 * time.Minute, inputs: append(groups, made...), ready: refused, well: true}, event{after: 8 * time.Minute, inputs: append(groups, made...), ready: refused})},
		{"groups that could never be read", []event{begin, {after: 19 * time.Minute, inputs: made, ready: asked, well: true}, {after: 2 * time.Minute, inputs: made, ready: asked}}},
	} {
		now := time.Unix(1000, 0)
		s := NewServer(slog.New(slog.DiscardHandler))
		s.health.now = func() time.Time { return now }
		s.CheckPlans(DefaultHealthTimes())
		for i, e := range x.events {
			now = now.Add(e.after)
			switch e.lead {
			case "begin":
				s.BecomeLeader()
			case "end":
				s.StopLeading()
			default:
				s.Step(now, 0, e.inputs, &e.ready)
			}
			w := httptest.NewRecorder()
			s.handler(false).ServeHTTP(w, httptest.NewRequest("GET", "/health-check", nil))
			if e.well && (w.Code != 200 || w.Body.String() != "OK") || !e.well && (w.Code != 500 || !strings.HasPrefix(w.Body.String(), "Error: last activity ")) {
				t.Errorf("%s, event %d: %d %s, want it well: %t", x.name, i+1, w.Code, w.Body, e.well)
			}
		}
	}
	// Where nothing is planned there is nothing to check; a start-up has no less time than what follows.
	now := time.Unix(1000, 0)
	s := NewServer(slog.New(slog.DiscardHandler))
	s.health.now = func() time.Time { return now }
	s.BecomeLeader()
	now = now.Add(time.Hour)
	if err := s.health.check(); err != nil {
		t.Errorf("a Berth that only schedules: %v", err)
	}
	s.CheckPlans(HealthTimes{MaxInactivity: time.Hour, MaxFailing: time.Minute, MaxStartup: time.Second})
	s.BecomeLeader()
	now = now.Add(time.Hour)
	if err := s.health.check(); err != nil {
		t.Errorf("--max-startup-time is below --max-inactivity: %v", err)
	}
}
