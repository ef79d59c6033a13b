// Package replay records the inputs of a live core and plays them again: with the same
// decisions, or with those of another configuration.
//
//	recorder.go  the hook that writes a recording
//	replay.go    plays one
//	report.go, diff.go
//	             what a replay has shown, and what another policy decides otherwise
//	codec.go     inputs as lines and back
//	objects.go, outcome.go, answers.go
//	             what JSON can't read back by itself: objects, errors, plans
//
// A recording is lines of JSON: a Header, a line for each Step, and an end with the digest
// of the decisions. It is complete from the first input on, or it could not be replayed,
// and holds nothing that Berth doesn't read.
//
// A core is a function of its configuration and its inputs, so the same digest is expected of a replay
// by the same version of Berth. Another version may decide otherwise and read the recording nevertheless;
// a change of the format that it couldn't read takes another Version.
package replay

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"time"

	"github.com/berthproject/berth/config"
	"github.com/berthproject/berth/core"
	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/drive"
)

// Version of the format.
const Version = 1

// Header is the first line of a recording: the configuration of its core.
// Names of its keys stay, since recordings outlive versions.
type Header struct {
	Version int `json:"berthRecording"`
	// Seed is --seed: which of equally good nodes wins.
	Seed uint64 `json:"seed"`
	// Kubernetes is the version whose rules were followed, as compat.Version writes it. Recordings of
	// before there were two have none; they followed 1.36.
	Kubernetes string `json:"kubernetes,omitempty"`
	// Gates are the feature gates that were given and that Berth honoured, nil for none.
	Gates     map[string]bool `json:"featureGates,omitempty"`
	Scheduler string          `json:"schedulerConfig,omitempty"` // the text of --config, without secrets
	// Autoscale is nil for a core that only schedules.
	Autoscale *core.Autoscale `json:"autoscale,omitempty"`
	// ExternalScheduler says that another scheduler placed the pods.
	ExternalScheduler bool `json:"foreign,omitempty"`
	// Shadow is that of a core that only compared.
	Shadow *core.Shadow `json:"shadow,omitempty"`
}

// Kept is how many earlier recordings of a path are kept beside a new one.
const Kept = 5

// Recorder is a drive.Hook that writes a recording. At its size limit the recording ends,
// which never stops the core. Its methods are for one goroutine at a time.
type Recorder struct {
	// Ended, when not nil, is called once when recording ends before Close: at its
	// size limit, or when something could not be written.
	Ended func(error)

	file      *os.File
	out       *bufio.Writer
	remaining int64 // bytes until the limit
	ledger    step.Ledger
	ended     bool
	err       error // of the first write that failed
}

var _ drive.Hook = (*Recorder)(nil)

// Create begins a recording of at most limit bytes. Earlier recordings of the
// same path are kept as PATH.1, PATH.2, … The header's configuration is written without
// its secrets. The file is readable by its owner only: names and labels of a cluster are in it.
func Create(path string, limit int64, h Header) (*Recorder, error) {
	if h.Scheduler != "" {
		text, err := config.Redact(h.Scheduler)
		if err != nil {
			return nil, fmt.Errorf("recording the scheduler configuration: %w", err)
		}
		h.Scheduler = text
	}
	for i := Kept; i > 0; i-- {
		from := path
		if i > 1 {
			from = fmt.Sprintf("%s.%d", path, i-1)
		}
		if err := os.Rename(from, fmt.Sprintf("%s.%d", path, i)); err != nil && !os.IsNotExist(err) {
			return nil, fmt.Errorf("keeping an earlier recording: %w", err)
		}
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("recording: %w", err)
	}
	h.Version = Version
	r := &Recorder{file: f, out: bufio.NewWriterSize(f, 1<<16), remaining: limit}
	r.write(h)
	return r, r.err
}

// Step implements drive.Hook: it records the inputs of a Step, and counts its
// decisions into the digest.
func (r *Recorder) Step(now time.Time, _ time.Duration, in []step.Input, ready *step.Ready) {
	if r.ended {
		return
	}
	l := line{Time: now.UnixNano(), In: make([]input, 0, len(in))}
	for _, i := range in {
		x, err := encode(i)
		if err != nil {
			r.finish(fmt.Sprintf("an input could not be written: %v", err))
			return
		}
		l.In = append(l.In, x)
	}
	r.ledger.Add(ready.Decisions)
	r.write(l)
	switch {
	case r.err != nil:
		r.finish(r.err.Error())
	case r.remaining <= 0:
		r.finish("the recording has reached its size limit")
	}
}

// write appends a line. An error is kept for Step or end to report.
func (r *Recorder) write(v any) {
	raw, err := json.Marshal(v)
	if err == nil {
		raw = append(raw, '\n')
		r.remaining -= int64(len(raw))
		_, err = r.out.Write(raw)
	}
	if err != nil && r.err == nil {
		r.err = fmt.Errorf("recording: %w", err)
	}
}

// finish ends the recording before Close, and tells Ended.
func (r *Recorder) finish(why string) {
	err := r.end(why)
	if err == nil {
		err = fmt.Errorf("recording stopped: %s", why)
	}
	if r.Ended != nil {
		r.Ended(err)
	}
}

// end writes the last line and closes the file. It is to be called once.
func (r *Recorder) end(why string) error {
	r.ended = true
	r.write(line{End: &end{why, r.ledger.Count(), r.ledger.Digest()}})
	if err := r.out.Flush(); err != nil && r.err == nil {
		r.err = fmt.Errorf("recording: %w", err)
	}
	if err := r.file.Close(); err != nil && r.err == nil {
		r.err = fmt.Errorf("recording: %w", err)
	}
	return r.err
}

// Close ends the recording with the digest of its decisions, if it hasn't ended before.
func (r *Recorder) Close() error {
	if r.ended {
		return nil
	}
	return r.end("Berth stopped")
}

// Digest returns the digest of the decisions of the recorded Steps.
func (r *Recorder) Digest() string { return r.ledger.Digest() }
