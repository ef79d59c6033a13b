// Package replay records what goes into a live core and plays it again: the
// same decisions, or what would have been decided under another configuration.
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

// Header is the first line of a recording: with what it was made.
type Header struct {
	Version   int             `json:"berthRecording"`
	Seed      uint64          `json:"seed"`
	Scheduler string          `json:"schedulerConfig,omitempty"` // the text of --config, without secrets
	Autoscale *core.Autoscale `json:"autoscale,omitempty"`
	// ExternalScheduler says that another scheduler placed the pods.
	ExternalScheduler bool `json:"foreign,omitempty"`
}

// Kept is how many earlier recordings stay beside a new one.
const Kept = 5

// Recorder is a drive.Hook that writes a recording. It holds everything from the
// start on, or it could not be replayed: at its size limit it ends, and says so.
type Recorder struct {
	// Ended, when not nil, is called once when recording ends before Close: at its
	// size limit, or when something could not be written.
	Ended func(error)

	file   *os.File
	out    *bufio.Writer
	left   int64
	ledger step.Ledger
	ended  bool
	err    error
}

var _ drive.Hook = (*Recorder)(nil)

// Create begins a recording of at most limit bytes. Earlier recordings of the
// same path are kept as PATH.1, PATH.2, … What is secret of the header's
// configuration isn't written.
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
	r := &Recorder{file: f, out: bufio.NewWriterSize(f, 1<<16), left: limit}
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
	case r.left <= 0:
		r.finish("the recording has reached its size limit")
	}
}

func (r *Recorder) write(v any) {
	raw, err := json.Marshal(v)
	if err == nil {
		raw = append(raw, '\n')
		r.left -= int64(len(raw))
		_, err = r.out.Write(raw)
	}
	if err != nil && r.err == nil {
		r.err = fmt.Errorf("recording: %w", err)
	}
}

// finish ends the recording before its time.
func (r *Recorder) finish(why string) {
	err := r.end(why)
	if err == nil {
		err = fmt.Errorf("recording has ended: %s", why)
	}
	if r.Ended != nil {
		r.Ended(err)
	}
}

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

// Close ends the recording, with the digest of the decisions made.
func (r *Recorder) Close() error {
	if r.ended {
		return nil
	}
	return r.end("Berth stopped")
}

// Digest returns the digest of the decisions recorded so far.
func (r *Recorder) Digest() string { return r.ledger.Digest() }
