package live

import (
	"context"
	"log/slog"
	"time"

	"github.com/berthproject/berth/core"
	"github.com/berthproject/berth/drive"
)

// loop is the goroutine that owns the driver. It takes a Step when the inbox has
// something, or when the core wants one; between two Steps it answers questions and
// shows the core.
type loop struct {
	driver    *drive.Driver
	inbox     *inbox
	now       func() time.Time // the core's time
	questions <-chan func(*core.Core)
	state     func(*core.Core) // may be nil
	status    *statusWriter    // nil without a provider
	log       *slog.Logger
}

// stateEvery is how often the core is shown to Options.State.
const stateEvery = time.Second

// standBy follows the cluster until this instance becomes the leader; false says
// that the context ended first. A nil channel doesn't wait.
func (l *loop) standBy(ctx context.Context, becomeLeader <-chan struct{}) bool {
	if becomeLeader == nil {
		return true
	}
	for {
		select {
		case <-ctx.Done():
			return false
		case <-becomeLeader:
			return true
		case ask := <-l.questions:
			ask(l.driver.Core())
		case <-l.inbox.signal:
			if err := l.driver.StandBy(l.now(), l.inbox.take()...); err != nil {
				l.log.Error("standing by", "err", err)
			}
		}
	}
}

// run takes Steps until the context ends.
func (l *loop) run(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	var show <-chan time.Time
	if l.state != nil {
		ticker := time.NewTicker(stateEvery)
		defer ticker.Stop()
		show = ticker.C
		l.state(l.driver.Core())
	}
	for {
		select {
		case <-ctx.Done():
			return
		case ask := <-l.questions:
			ask(l.driver.Core())
			continue
		case <-show:
			l.state(l.driver.Core())
			continue
		case <-l.inbox.signal:
		case <-timer.C:
		}
		now := l.now()
		wake, err := l.driver.Step(now, l.inbox.take()...)
		if err != nil {
			l.log.Error("no plan could be made; the core asks again", "err", err)
		}
		l.status.update(now, l.driver.Core().Groups)
		if wake.IsZero() {
			timer.Stop()
		} else {
			timer.Reset(max(wake.Sub(now), 0))
		}
	}
}

// clock is the core's time: the wall clock at its start, and from then on what has
// passed by the monotonic clock. So times never go back when the wall clock is set,
// and carry no monotonic reading, which a recording could not hold.
type clock struct{ start time.Time }

func newClock() clock { return clock{time.Now()} }

func (c clock) now() time.Time { return c.start.Round(0).Add(time.Since(c.start)) }
