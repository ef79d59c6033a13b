package ui_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/berthproject/berth/core"
	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/drive"
	"github.com/berthproject/berth/edge/api"
	v1alpha1 "github.com/berthproject/berth/edge/api/v1alpha1"
	"github.com/berthproject/berth/edge/observe"
	"github.com/berthproject/berth/sim"
	"github.com/berthproject/berth/sim/scenario"
	"github.com/berthproject/berth/ui"
)

// site is the page in front of a cluster.
type site struct {
	*httptest.Server
	mu      sync.Mutex // held while core works
	core    *core.Core
	history *observe.History
	leading atomic.Bool
	epoch   string
	// began is since when the clock of the cluster goes on; nil while it stands still, and answers never grow old.
	began atomic.Pointer[time.Time]
	// failing is what every request gets instead of an answer; nil for nothing.
	failing atomic.Pointer[failure]
	// meet is called with each request before it is answered, and returns what it gets instead, nil for its answer; nil for
	// nothing.
	meet atomic.Pointer[func(r *http.Request) *failure]
}

// failure is an answer of the API, or of what is between it and the page.
type failure struct {
	code       int
	kind, body string
}

// newSite plays a scenario, and serves what comes of it.
func newSite(t *testing.T, path string) *site {
	t.Helper()
	runs, err := scenario.Load([]string{path})
	if err != nil {
		t.Fatal(err)
	}
	s := &site{history: observe.NewHistory(1 << 12)}
	series := api.NewSeries()
	var world *sim.World
	sampling := drive.HookFunc(func(now time.Time, _ time.Duration, _ []step.Input, _ *step.Ready) {
		if world != nil {
			series.Add(now, world.Core())
		}
	})
	if world, err = sim.New(runs[0], sim.Options{Hooks: []drive.Hook{s.history, sampling}}); err != nil {
		t.Fatal(err)
	}
	if _, err := world.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.core = world.Core()
	end := sim.Epoch.Add(runs[0].Spec.End.Latest())
	s.serve(t, series, func() time.Time {
		if b := s.began.Load(); b != nil {
			return end.Add(time.Since(*b))
		}
		return end
	})
	return s
}

// serve serves the page and the API. now is the time of the cluster.
func (s *site) serve(t *testing.T, series *api.Series, now func() time.Time) {
	s.leading.Store(true)
	s.epoch = "1"
	answers := api.New(api.Options{
		Ask: func(_ context.Context, question func(*core.Core)) bool {
			s.mu.Lock()
			defer s.mu.Unlock()
			question(s.core)
			return true
		},
		Ledger: s.history, Series: series, WhatIf: true, Now: now,
		Meta: func() v1alpha1.Meta {
			return v1alpha1.Meta{Version: "0.2.0", Mode: v1alpha1.ModeLive, Leading: s.leading.Load(), Identity: "berth-" + s.epoch, Leader: "berth-" + s.epoch, Epoch: s.epoch, Since: sim.Epoch, Now: now()}
		},
	})
	mux := http.NewServeMux()
	mux.HandleFunc(api.Prefix, func(w http.ResponseWriter, r *http.Request) {
		f := s.failing.Load()
		if meet := s.meet.Load(); meet != nil && f == nil {
			f = (*meet)(r)
		}
		if f != nil {
			if f.code == http.StatusOK && strings.HasSuffix(r.URL.Path, "/stream") { // which a browser complains of
				w.WriteHeader(http.StatusBadGateway)
				return
			}
			w.Header().Set("Content-Type", f.kind)
			w.WriteHeader(f.code)
			_, _ = io.WriteString(w, f.body)
			return
		}
		answers.ServeHTTP(w, r)
	})
	mux.Handle("/ui/", http.StripPrefix("/ui", ui.Handler()))
	s.Server = httptest.NewServer(mux)
	t.Cleanup(s.CloseClientConnections)
	t.Cleanup(s.Close)
}

// decide adds decisions to those that there are, with the numbers that are next.
func (s *site) decide(list ...step.Decision) {
	_, last := s.history.Range()
	for i := range list {
		last++
		list[i].Seq, list[i].Time = last, sim.Epoch
	}
	s.history.Step(time.Time{}, 0, nil, &step.Ready{Decisions: list})
}
