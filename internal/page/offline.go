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
	"time"

	"github.com/berthproject/berth/core"
	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/drive"
	"github.com/berthproject/berth/edge/api"
	v1alpha1 "github.com/berthproject/berth/edge/api/v1alpha1"
	"github.com/berthproject/berth/edge/observe"
	"github.com/berthproject/berth/internal/term"
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

// Offline returns an API that answers from a file, at any time of its run. What a scenario or a dump comes to is
// simulated first, and a recording is played; log is told how far that is. What the runs of the files beside it
// come to is compared with it.
// It returns when all is played, which may take as long as a simulation does.
func Offline(ctx context.Context, path string, beside []string, log io.Writer) (http.Handler, error) {
	kind, err := kindOf("--file", path)
	if err != nil {
		return nil, err
	}
	meta := offlineMeta(filepath.Base(path), kind)
	if kind == kindReport {
		if len(beside) > 0 {
			return nil, fmt.Errorf("--compare: %s is a shadow report, which compares already; omit --compare", path)
		}
		return shadowFile(path, meta)
	}
	film := &film{turn: make(chan struct{}, 1), outcomes: &v1alpha1.OutcomeList{}}
	shown, err := playFile(ctx, kind, path, log)
	if err != nil {
		return nil, err
	}
	film.outcomes.Items = append(film.outcomes.Items, shown.outcome)
	for _, other := range beside {
		kind, err := kindOf("--compare", other)
		if err != nil {
			return nil, err
		}
		if kind == kindReport {
			return nil, fmt.Errorf("--compare: %s is a shadow report; it must be a scenario, a dump or a recording", other)
		}
		p, err := playFile(ctx, kind, other, log)
		if err != nil {
			return nil, err
		}
		film.outcomes.Items = append(film.outcomes.Items, p.outcome)
	}
	meta.From, meta.Now, meta.Capabilities = shown.from.UTC(), shown.now.UTC(), v1alpha1.Capabilities{Replay: true, Seek: true, Outcomes: true}
	film.meta, film.series = meta, shown.series
	// To go back in time a run is played again from its beginning.
	film.begin = func() (*reel, error) { return newReel(kind, path) }
	film.reels = []*reel{{at: meta.Now, history: shown.history, core: func() *core.Core { return shown.core }}}
	return film, nil
}

// offlineMeta returns who answers for a file.
func offlineMeta(file, kind string) v1alpha1.Meta {
	v := version.Get()
	return v1alpha1.Meta{
		Version: v.Version, Revision: v.Revision, Go: v.Go, Mode: v1alpha1.ModeOffline, File: file, FileKind: kind,
		Leading: true, Epoch: "file", Since: time.Now().UTC(), Profiles: []string{},
	}
}

// recordingHead is how a recording begins.
const recordingHead = `{"berthRecording"`

// headOf returns the beginning of a file, which a flag has given; all of a pipe, which can be read only once.
func headOf(flag, path string) ([]byte, error) {
	if scenario.IsPipe(path) {
		raw, err := scenario.ReadFile(path)
		if err == nil && bytes.HasPrefix(raw, []byte(recordingHead)) {
			err = fmt.Errorf("%s: a recording can't be read from standard input or a pipe; give the path of its file", flag)
		}
		return raw, err
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", flag, err)
	}
	defer func() { _ = f.Close() }()
	head := make([]byte, 1<<16)
	n, err := io.ReadFull(f, head)
	if n == 0 {
		return nil, fmt.Errorf("%s: %s is empty", flag, path)
	}
	// The file is shorter than the buffer.
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, fmt.Errorf("%s: reading %s: %w", flag, path, err)
	}
	return head[:n], nil
}

// kindOf returns what kind of file a path names, which a flag has given.
// What isn't anything else is taken for a dump; whether it can be read shows later.
func kindOf(flag, path string) (string, error) {
	head, err := headOf(flag, path)
	if err != nil {
		return "", err
	}
	switch {
	case bytes.HasPrefix(head, []byte(recordingHead)):
		return kindRecording, nil
	case bytes.HasPrefix(bytes.TrimSpace(head), []byte("{")) && bytes.Contains(head, []byte(`"verdicts"`)):
		return kindReport, nil
	case bytes.Contains(head, []byte("kind: Scenario")):
		return kindScenario, nil
	}
	return kindDump, nil
}

// shadowFile returns an API of a shadow report alone.
// A report has no run, so there is nothing to seek in.
func shadowFile(path string, meta v1alpha1.Meta) (http.Handler, error) {
	raw, err := scenario.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("--file: %w", err)
	}
	shadow, err := term.ReadShadow(raw, path)
	if err != nil {
		return nil, err
	}
	return ofShadow(shadow, meta), nil
}

// ofShadow returns an API of a shadow report alone.
func ofShadow(shadow *v1alpha1.Shadow, meta v1alpha1.Meta) http.Handler {
	meta.From, meta.Now, meta.Capabilities = shadow.Since, shadow.At, v1alpha1.Capabilities{Shadow: true, Replay: true}
	meta.Viewer.AllNamespaces = true // what is in a file isn't hidden from who has the file
	return api.OfReport(meta, shadow)
}

// playFile plays what a file has to its end.
func playFile(ctx context.Context, kind, path string, log io.Writer) (*Played, error) {
	p := NewPlayed()
	if kind == kindRecording {
		result, err := replay.Play(ctx, path, replay.Policy{}, p.watch)
		if err != nil {
			return nil, err
		}
		p.core = result.Core
		p.replayed(filepath.Base(path), result.Digest)
		return p, nil
	}
	run, err := firstRun(path, log)
	if err != nil {
		return nil, err
	}
	w, err := sim.New(run, sim.Options{Hooks: []drive.Hook{p}, Progress: term.Progress(log, run.Name, time.Now())})
	if err != nil {
		return nil, err
	}
	p.In(w)
	s, err := w.Run(ctx)
	if err != nil {
		return nil, err
	}
	p.Simulated(run, s)
	return p, nil
}

// firstRun loads the runs of a file, and returns the first. log may be nil.
// Several runs would need a choice that the page doesn't have.
func firstRun(path string, log io.Writer) (*scenario.Run, error) {
	runs, err := scenario.Load([]string{path})
	if err != nil {
		return nil, err
	}
	if len(runs) > 1 && log != nil {
		fmt.Fprintf(log, "%s has %d runs; the page shows the first\n", path, len(runs))
	}
	return runs[0], nil
}

// newReel returns a reel at the beginning of what a file has.
// It plays on when a later time is asked for; close is nil where nothing is open.
func newReel(kind, path string) (*reel, error) {
	history := observe.NewHistory(keptDecisions)
	if kind == kindRecording {
		recording, err := replay.Open(path, replay.Policy{}, func(_ *core.Core, now time.Time, ready *step.Ready) { history.Step(now, 0, nil, ready) })
		if err != nil {
			return nil, err
		}
		return &reel{history: history, core: recording.Core, close: recording.Close, play: func(ctx context.Context, until time.Time) error {
			_, err := recording.Play(ctx, until)
			return err
		}}, nil
	}
	run, err := firstRun(path, nil)
	if err != nil {
		return nil, err
	}
	w, err := sim.New(run, sim.Options{Hooks: []drive.Hook{history}})
	if err != nil {
		return nil, err
	}
	return &reel{history: history, core: w.Core, play: func(ctx context.Context, until time.Time) error {
		_, err := w.Play(ctx, until.Sub(sim.Epoch))
		return err
	}}, nil
}
