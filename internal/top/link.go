package top

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"

	v1alpha1 "github.com/berthproject/berth/edge/api/v1alpha1"
	"github.com/berthproject/berth/edge/reach"
	"github.com/berthproject/berth/internal/term"
)

// This file is the way to the leader, which may change. Questions and the stream share one connection: when either
// finds that it is lost, the next of them opens another.

// link is that way. It is a term.Source.
type link struct {
	open func(ctx context.Context) (term.Source, func(), error)

	asking sync.Mutex // held while it asks: one question at a time
	mu     sync.Mutex // guards the fields below, and is held while a connection is opened
	from   term.Source
	end    func()
}

// connection returns the connection, a new one when there is none, and whether it has been there before.
func (l *link) connection(ctx context.Context) (from term.Source, worked bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.from != nil {
		return l.from, true, nil
	}
	if l.from, l.end, err = l.open(ctx); err != nil {
		l.from = nil
	}
	return l.from, false, err
}

// drop ends a connection, unless it is another one's by now.
func (l *link) drop(from term.Source) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.from == from && from != nil {
		l.end()
		l.from = nil
	}
}

func (l *link) close() {
	l.mu.Lock()
	from := l.from
	l.mu.Unlock()
	l.drop(from)
}

// Get implements term.Source. When a connection that has worked doesn't any more, or leads to an instance that stands
// by, it asks once more over a new one.
func (l *link) Get(ctx context.Context, path string) ([]byte, error) {
	l.asking.Lock()
	defer l.asking.Unlock()
	for {
		from, worked, err := l.connection(ctx)
		if err != nil {
			return nil, err
		}
		raw, err := from.Get(ctx, path)
		if err == nil || reach.Answered(err) {
			return raw, err
		}
		l.drop(from)
		if !worked || ctx.Err() != nil {
			return nil, err
		}
	}
}

// The messages about the stream.
type (
	// changed brings the overview, because something in it has changed.
	changed struct{ overview *v1alpha1.Overview }
	// lost says that nothing comes by itself at the moment.
	lost struct{}
)

// How long to wait after a stream was lost: the first time, and at most. The screen asks meanwhile.
const firstWait, lastWait = time.Second, 15 * time.Second

// errEnded says that the instance has ended the stream: it stops, or another one leads.
var errEnded = errors.New("the instance has ended the stream")

// follow tells of changes until ctx ends. It goes on after an outage, a restart or another leader.
func (l *link) follow(ctx context.Context, tell func(tea.Msg)) {
	for wait := firstWait; ; wait = min(2*wait, lastWait) {
		err := l.stream(ctx, func(o *v1alpha1.Overview) {
			wait = firstWait
			tell(changed{o})
		})
		if ctx.Err() != nil || errors.Is(err, errNoStream) {
			return
		}
		tell(lost{})
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
	}
}

// errNoStream says that what answers has no stream, and never will.
var errNoStream = errors.New("there is no stream")

// stream calls tell with each overview of one stream, until that ends. Its error is never nil.
func (l *link) stream(ctx context.Context, tell func(*v1alpha1.Overview)) error {
	from, _, err := l.connection(ctx)
	if err != nil {
		return err
	}
	s, ok := from.(term.Streamer)
	if !ok {
		return errNoStream
	}
	err = s.Stream(ctx, term.StreamPath, "", func(e reach.Event) error {
		switch e.Name {
		case v1alpha1.EventOverview:
			o := &v1alpha1.Overview{}
			if err := term.Decode(e.Data, o); err != nil {
				return fmt.Errorf("reading the stream of Berth: %w", err)
			}
			tell(o)
		case v1alpha1.EventEnd:
			return errEnded
		}
		return nil
	})
	if !reach.Answered(err) {
		l.drop(from)
	}
	return err
}
