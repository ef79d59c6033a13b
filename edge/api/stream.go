package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/berthproject/berth/core/step"
	v1alpha1 "github.com/berthproject/berth/edge/api/v1alpha1"
)

// This file serves the stream, one goroutine for each viewer.
//
// What must hold: a viewer who is slow, or gone without a word, costs the others nothing. There is no queue of
// events for anybody: a tick writes what is new since the viewer's last, and a write has a deadline.

const (
	// maxStreams is how many streams there are at most, and maxStreamsOfUser how many one user has.
	maxStreams, maxStreamsOfUser = 64, 8
	// maxStreamed is how many decisions an event has at most; the older ones are dropped.
	maxStreamed = 200
	// writeWithin is how long a viewer may take to read what there is. One that takes longer is cut off.
	writeWithin = 10 * time.Second
	// quietFor is after how long without an event a comment is sent, so that proxies keep the stream.
	quietFor = 15 * time.Second
)

// errTooMany says that no stream more is served.
var errTooMany = errors.New("too many streams are open; close one, or query overview and decisions instead")

// streams counts the open streams.
type streams struct {
	mu   sync.Mutex
	of   map[string]int // by user
	open int
}

func newStreams() *streams { return &streams{of: map[string]int{}} }

// begin counts one more stream of a user, and reports whether it may be served. end is to be called once it
// is over.
func (s *streams) begin(user string) (end func(), ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	// A user who opens many tabs exhausts their own limit before the shared one.
	if s.open >= maxStreams || s.of[user] >= maxStreamsOfUser {
		return nil, false
	}
	s.open++
	s.of[user]++
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.open--
		if s.of[user]--; s.of[user] == 0 {
			delete(s.of, user)
		}
	}, true
}

// stream serves stream: it goes on until the viewer leaves or reads too slowly, or this instance doesn't
// lead any more. Nothing is buffered for a viewer: each tick it is written what is new since the last.
func (a *API) stream(w http.ResponseWriter, r *http.Request) {
	// Refused rather than ignored, as on every path.
	if len(r.URL.RawQuery) > 0 {
		fail(w, http.StatusBadRequest, errors.New("the stream has no parameters"))
		return
	}
	// The epoch is that of now: if this instance loses the lead and gains it again, it is another start of it, and the stream
	// has ended meanwhile.
	meta := a.opt.Meta()
	if !meta.Leading {
		fail(w, http.StatusServiceUnavailable, standby(meta.Leader))
		return
	}
	if meta.Capabilities.Replay {
		fail(w, http.StatusNotFound, errors.New("there is no stream: the time of this cluster is over"))
		return
	}
	end, ok := a.streams.begin(a.rights.viewer(r).name())
	if !ok {
		fail(w, http.StatusTooManyRequests, errTooMany)
		return
	}
	defer end()
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	// nginx would gather events until its buffer is full.
	w.Header().Set("X-Accel-Buffering", "no")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	s := &stream{api: a, w: w, to: http.NewResponseController(w), r: r, epoch: meta.Epoch}
	s.resume(r.Header.Get("Last-Event-ID"))
	s.run()
}

// stream is one stream of one viewer.
type stream struct {
	api   *API
	w     http.ResponseWriter
	to    *http.ResponseController
	r     *http.Request
	epoch string
	seen  uint64 // number of the last decision that was sent
	reset bool   // the viewer has seen another ledger
	last  []byte // the last overview, without its time
	wrote time.Time
}

// resume goes on after an event that the viewer has had. A viewer who has had none begins with the next decision.
func (s *stream) resume(id string) {
	epoch, number, ok := strings.Cut(id, ".")
	// An ID of another epoch, or one ahead of the ledger, is of a ledger that is gone: its reader is told to forget what it
	// has (reset).
	_, s.seen = s.api.opt.Ledger.Range()
	seq, err := strconv.ParseUint(number, 10, 64)
	switch {
	case id == "":
	case ok && err == nil && epoch == s.epoch && seq <= s.seen:
		s.seen = seq
	default:
		s.reset = true
	}
}

// run writes events until the stream ends: at once, and then once a tick. The ticker drops what a slow write has missed,
// so that a viewer who falls behind is sent fewer events and not a burst of them.
func (s *stream) run() {
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	for {
		if err := s.tick(); err != nil {
			return
		}
		select {
		case <-ticker.C:
		case <-s.r.Context().Done():
			return
		case <-s.api.opt.Ended:
			_ = s.event(v1alpha1.EventEnd, v1alpha1.Error{Error: "this instance ends"})
			return
		}
	}
}

// tick writes what is new: decisions first, so that whoever reads an overview has had the decisions that it counts. An error
// says that the stream is over.
func (s *stream) tick() error {
	if m := s.api.opt.Meta(); !m.Leading {
		_ = s.event(v1alpha1.EventEnd, v1alpha1.Error{Error: standby(m.Leader).Error()})
		return errStandby
	}
	ctx, cancel := context.WithTimeout(s.r.Context(), questionTimeout)
	defer cancel()
	// Rights are asked for anew each tick, since a stream may outlive them by hours.
	v := s.api.rights.viewer(s.r.WithContext(ctx))
	if err := s.decisions(v); err != nil {
		return err
	}
	g, at, err := s.api.glance(&request{Request: s.r.WithContext(ctx), viewer: v})
	if err == nil {
		err = s.overview(s.api.overviewOf(v, g, at))
	} else if s.r.Context().Err() == nil {
		err = nil // the core is busy: the next tick may bring it
	}
	// By the clock of this machine, not by the cluster's: proxies have no other.
	if err == nil && time.Since(s.wrote) >= quietFor {
		err = s.write([]byte(": nothing new\n\n"))
	}
	return err
}

// overview writes an overview that says something new. Bytes are compared rather than fields: the encoding of a value is
// always the same, and no field can be forgotten.
func (s *stream) overview(o *v1alpha1.Overview) error {
	at := o.At
	// Without its time an overview of a quiet cluster is the same each tick, and isn't sent.
	o.At = time.Time{}
	now, err := json.Marshal(o)
	if err != nil || bytes.Equal(now, s.last) {
		return err
	}
	s.last, o.At = now, at
	return s.event(v1alpha1.EventOverview, o)
}

// decisions writes the decisions since the last, the newest of them at most.
func (s *stream) decisions(v *viewer) error {
	first, last := s.api.opt.Ledger.Range()
	if last <= s.seen && !s.reset {
		return nil
	}
	out := v1alpha1.StreamedDecisions{Items: []v1alpha1.Decision{}, Reset: s.reset}
	// What the ledger has dropped meanwhile is gone for everybody, and counts as dropped here.
	from := max(s.seen+1, first)
	// A reader who was away for an hour gets the newest, and the number of those that he has missed; decisions?since= has
	// them.
	if last-from >= maxStreamed && last >= from {
		from = last - maxStreamed + 1
	}
	// Numbers have no gaps, so this counts decisions of hidden namespaces, too.
	out.Dropped = from - s.seen - 1
	var list []step.Decision
	if last >= from {
		list = s.api.opt.Ledger.Chunk(from, int(last-from)+1)
	}
	for i := range list {
		out.Items = append(out.Items, decision(v, &list[i], brief))
	}
	s.seen, s.reset = max(last, s.seen), false
	return s.event(v1alpha1.EventDecisions, out)
}

// event writes one event.
func (s *stream) event(name string, data any) error {
	body, err := json.Marshal(data)
	if err != nil {
		return err
	}
	return s.write(fmt.Appendf(nil, "id: %s.%d\nevent: %s\ndata: %s\n\n", s.epoch, s.seen, name, body))
}

// write writes to the viewer, who has writeWithin to take it.
func (s *stream) write(text []byte) error {
	s.wrote = time.Now()
	if err := s.to.SetWriteDeadline(s.wrote.Add(writeWithin)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	if _, err := s.w.Write(text); err != nil {
		return err
	}
	return s.to.Flush()
}
