package page

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/berthproject/berth/core"
	"github.com/berthproject/berth/edge/api"
	v1alpha1 "github.com/berthproject/berth/edge/api/v1alpha1"
	"github.com/berthproject/berth/edge/observe"
)

// film is a run that can be shown at any of its times. A core can't be taken back in time: a reel plays forward
// only, and what is before all reels is played from the beginning.
//
// What must hold: a reel is read only up to when it was played, and by the request that has the turn.
type film struct {
	meta     v1alpha1.Meta
	series   *api.Series
	outcomes *v1alpha1.OutcomeList
	// begin returns a reel of which nothing was played.
	begin func() (*reel, error)
	turn  chan struct{} // has a token while a request is answered
	reels []*reel       // the last one used first: maxReels at most
}

// maxReels is how many reels are kept: the end of the run, a time that is looked at, and one to go back to.
const maxReels = 3

// reel is a playing of a run, up to a time.
type reel struct {
	at      time.Time
	history *observe.History
	core    func() *core.Core
	// play goes on up to a time, and no further.
	play func(ctx context.Context, until time.Time) error
	// close gives back what the reel holds; nil for nothing.
	close   func() error
	answers http.Handler // of this time; nil when it isn't made yet
}

// ServeHTTP implements http.Handler: the API, where each path has the parameter at.
func (f *film) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	at, rest, err := f.moment(r.URL.RawQuery)
	if err != nil {
		api.Refuse(w, err)
		return
	}
	if name := strings.TrimPrefix(r.URL.Path, api.Prefix); name == "series" || name == "outcomes" || name == "meta" {
		at = f.meta.Now // they are of the run as a whole
	}
	select {
	case f.turn <- struct{}{}:
	case <-r.Context().Done():
		return
	}
	defer func() { <-f.turn }()
	to, err := f.seek(r.Context(), at)
	if err != nil {
		if r.Context().Err() == nil {
			api.Refuse(w, fmt.Errorf("playing up to %s: %w", at.Format(time.RFC3339), err))
		}
		return
	}
	r = r.Clone(r.Context())
	r.URL.RawQuery = rest
	to.answers.ServeHTTP(w, r)
}

// moment returns the time that a query asks for, the end without one, and the rest of the query.
func (f *film) moment(raw string) (at time.Time, rest string, err error) {
	if !strings.Contains(raw, "at=") {
		return f.meta.Now, raw, nil
	}
	query, err := url.ParseQuery(raw)
	if err != nil || !query.Has("at") {
		return f.meta.Now, raw, nil // the API says what is wrong with it
	}
	text := query.Get("at")
	if at, err = time.Parse(time.RFC3339Nano, text); err != nil || len(query["at"]) > 1 {
		return at, "", fmt.Errorf("at is %.40q; it must be one time such as 2026-01-31T12:00:00Z", text)
	}
	if at.Before(f.meta.From) || at.After(f.meta.Now) {
		return at, "", fmt.Errorf("at is %s; it must be a time of the run, which is from %s to %s", text, f.meta.From.Format(time.RFC3339Nano), f.meta.Now.Format(time.RFC3339Nano))
	}
	query.Del("at")
	return at, query.Encode(), nil
}

// seek returns a reel that was played up to a time. When ctx ends, it stops where it is. The caller has the turn.
func (f *film) seek(ctx context.Context, at time.Time) (*reel, error) {
	best := -1
	for i, r := range f.reels {
		if !r.at.After(at) && (best < 0 || r.at.After(f.reels[best].at)) {
			best = i
		}
	}
	if best < 0 {
		r, err := f.begin()
		if err != nil {
			return nil, err
		}
		r.at = f.meta.From.Add(-1) // what happens at the beginning is to be played
		f.drop()
		f.reels = append(f.reels, r)
		best = len(f.reels) - 1
	}
	r := f.reels[best]
	f.reels = slices.Insert(slices.Delete(f.reels, best, best+1), 0, r)
	if err := r.playUpTo(ctx, at); err != nil {
		return nil, err
	}
	if r.answers == nil {
		r.answers = f.answersOf(r)
	}
	return r, nil
}

// parts is in how many parts a time is played: whoever looks on is waited for no longer than for one of them.
const parts = 50

// playUpTo plays up to a time, and stops before when ctx ends.
func (r *reel) playUpTo(ctx context.Context, at time.Time) error {
	for left := parts; r.at.Before(at); left-- {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		next := at
		if left > 1 {
			next = r.at.Add(at.Sub(r.at)/time.Duration(left) + 1)
		}
		r.answers = nil
		if err := r.play(context.WithoutCancel(ctx), next); err != nil {
			return err
		}
		r.at = next
	}
	return nil
}

// drop makes room for one more reel: the one goes that wasn't used for longest, but not the end.
func (f *film) drop() {
	for i := len(f.reels) - 1; i >= 0 && len(f.reels) >= maxReels; i-- {
		r := f.reels[i]
		if r.at.Equal(f.meta.Now) {
			continue
		}
		if r.close != nil {
			_ = r.close() // it was read only
		}
		f.reels = slices.Delete(f.reels, i, i+1)
	}
}

// answersOf returns the API of a reel as far as it was played.
func (f *film) answersOf(r *reel) http.Handler {
	meta := f.meta
	meta.Now = r.at
	return api.New(api.Options{
		Ask:    func(_ context.Context, question func(*core.Core)) bool { question(r.core()); return true },
		Ledger: r.history, Series: f.series, WhatIf: true, Idle: true, Outcomes: f.outcomes,
		Meta: func() v1alpha1.Meta { return meta },
	})
}
