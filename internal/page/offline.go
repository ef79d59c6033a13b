package page

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/berthproject/berth/core"
	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/drive"
	"github.com/berthproject/berth/edge/api"
	v1alpha1 "github.com/berthproject/berth/edge/api/v1alpha1"
	"github.com/berthproject/berth/edge/observe"
	"github.com/berthproject/berth/internal/version"
	"github.com/berthproject/berth/sim"
	"github.com/berthproject/berth/sim/replay"
	"github.com/berthproject/berth/sim/scenario"
)

// The kinds of files.
const (
	kindScenario  = "scenario"
	kindDump      = "dump"
	kindRecording = "recording"
	kindReport    = "report"
)

// keptDecisions is how many decisions of a run are kept.
const keptDecisions = 1 << 16

// recorded is the core of a run that is over, with what was seen of the run.
type recorded struct {
	mu      sync.Mutex // the core is asked by one request at a time
	core    *core.Core
	history *observe.History
	series  *api.Series
	// from and now are the times of the first Step and the last.
	from, now time.Time
}

// Offline returns an API that answers from a file. What a scenario or a dump comes to is simulated first, and a
// recording is played; log is told how far that is.
func Offline(ctx context.Context, path string, log io.Writer) (http.Handler, error) {
	kind, err := kindOf(path)
	if err != nil {
		return nil, err
	}
	meta := v1alpha1.Meta{
		Version: version.Get().Version, Revision: version.Get().Revision, Go: version.Get().Go, Mode: v1alpha1.ModeOffline, File: filepath.Base(path), FileKind: kind,
		Leading: true, Epoch: "file", Since: time.Now().UTC(), Profiles: []string{},
	}
	if kind == kindReport {
		return report(path, meta)
	}
	r := &recorded{history: observe.NewHistory(keptDecisions), series: api.NewSeries()}
	play := r.simulate
	if kind == kindRecording {
		play = r.replay
	}
	if err := play(ctx, path, log); err != nil {
		return nil, err
	}
	meta.From, meta.Now, meta.Capabilities.Replay = r.from.UTC(), r.now.UTC(), true
	return api.New(api.Options{
		Ask: r.ask, Ledger: r.history, Series: r.series, WhatIf: true, Meta: func() v1alpha1.Meta { return meta },
	}), nil
}

// kindOf returns what kind of file a path names.
func kindOf(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("--file: %w", err)
	}
	defer func() { _ = f.Close() }()
	head := make([]byte, 1<<16)
	n, err := io.ReadFull(f, head)
	if n == 0 {
		return "", fmt.Errorf("--file: %s is empty", path)
	}
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		return "", fmt.Errorf("--file: reading %s: %w", path, err)
	}
	head = head[:n]
	switch {
	case bytes.HasPrefix(head, []byte(`{"berthRecording"`)):
		return kindRecording, nil
	case bytes.HasPrefix(bytes.TrimSpace(head), []byte("{")) && bytes.Contains(head, []byte(`"verdicts"`)):
		return kindReport, nil
	case bytes.Contains(head, []byte("kind: Scenario")):
		return kindScenario, nil
	}
	return kindDump, nil
}

// report returns an API of a shadow report alone.
func report(path string, meta v1alpha1.Meta) (http.Handler, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("--file: %w", err)
	}
	x, err := observe.ReadShadowReport(raw, path)
	if err != nil {
		return nil, err
	}
	shadow := api.ShadowOf(&x.ShadowReport, func(pod string) string { return pod })
	shadow.At = x.At.UTC()
	meta.From, meta.Now, meta.Capabilities.Shadow, meta.Capabilities.Replay = shadow.Since, shadow.At, true, true
	return api.OfReport(meta, shadow), nil
}

// ask puts a question to the core.
func (r *recorded) ask(_ context.Context, question func(*core.Core)) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	question(r.core)
	return true
}

// watch keeps decisions and gauges. The core is nil when it isn't known yet.
func (r *recorded) watch(c *core.Core, now time.Time, ready *step.Ready) {
	r.history.Step(now, 0, nil, ready)
	if r.now = now; r.from.IsZero() {
		r.from = now
	}
	if c != nil {
		r.series.Add(now, c)
	}
}

// simulate plays what a scenario says, or what comes of the objects of a dump.
func (r *recorded) simulate(ctx context.Context, path string, log io.Writer) error {
	runs, err := scenario.Load([]string{path})
	if err != nil {
		return err
	}
	if len(runs) > 1 {
		fmt.Fprintf(log, "%s has %d runs; the page shows the first\n", path, len(runs))
	}
	told := time.Now()
	progress := func(at time.Duration, _ *sim.Stats) {
		if time.Since(told) > 5*time.Second {
			told = time.Now()
			fmt.Fprintf(log, "simulating: %s of virtual time\n", at.Round(time.Second))
		}
	}
	var w *sim.World
	hook := drive.HookFunc(func(now time.Time, _ time.Duration, _ []step.Input, ready *step.Ready) {
		if w == nil { // the first Steps may come before New returns
			r.watch(nil, now, ready)
			return
		}
		r.watch(w.Core(), now, ready)
	})
	if w, err = sim.New(runs[0], sim.Options{Hooks: []drive.Hook{hook}, Progress: progress}); err != nil {
		return err
	}
	if _, err := w.Run(ctx); err != nil {
		return err
	}
	r.core = w.Core()
	return nil
}

// replay plays a recording.
func (r *recorded) replay(ctx context.Context, path string, _ io.Writer) error {
	result, err := replay.Play(ctx, path, replay.Policy{}, r.watch)
	if err != nil {
		return err
	}
	r.core = result.Core
	return nil
}
