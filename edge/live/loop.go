package live

import (
	"context"
	"log/slog"
	"time"

	"github.com/berthproject/berth/core"
	"github.com/berthproject/berth/core/door"
	"github.com/berthproject/berth/drive"
)

// loop is the goroutine that owns the driver. It takes a Step when the inbox has
// something, or when the core wants one; between two Steps it answers questions and
// shows the core. What must hold: after a question, a Step takes the inputs that wait before another
// question is answered. So whoever asks all the time doesn't keep the cluster waiting.
type loop struct {
	driver    *drive.Driver
	inbox     *inbox
	now       func() time.Time // the core's time
	questions <-chan func(*core.Core)
	state     func(*core.Core) // may be nil
	status    *statusWriter    // nil when none is to be written
	watcher   Watcher          // may be nil
	health    *Health          // told what the loop does
	log       *slog.Logger
}

// stateEvery is how often the core is shown to Options.State.
const stateEvery = time.Second

// standBy follows the cluster until this instance becomes the leader; false says
// that the context ended first. A nil channel doesn't wait.
func (l *loop) standBy(ctx context.Context, becomeLeader <-chan struct{}) (leads bool) {
	if becomeLeader == nil {
		return true
	}
	labelled(ctx, loopGoroutine, func() { leads = l.untilLeader(ctx, becomeLeader) })
	return leads
}

// untilLeader is standBy without its label.
func (l *loop) untilLeader(ctx context.Context, becomeLeader <-chan struct{}) bool {
	for {
		select {
		case <-ctx.Done():
			return false
		case <-becomeLeader:
			return true
		case ask := <-l.questions:
			l.show("a query", ask)
			if !l.inbox.waits() {
				continue
			}
		case <-l.inbox.signal:
		}
		end := l.begin("a standby step")
		if err := l.driver.StandBy(l.now(), l.inbox.take()...); err != nil {
			l.log.Error("step of the standby failed", "err", err)
		}
		end()
	}
}

// maxSaid is of how many objects it is remembered that they were logged: a provider may invent names.
const maxSaid = 1000

// beyondBounds returns what logs and counts what is beyond the bounds in an input. It is called by
// the loop's goroutine, for a provider's list each time it is read: what is said again isn't logged.
func beyondBounds(o *Options) func(door.Problem) {
	said := door.Complaints{}
	return func(p door.Problem) {
		if o.Watcher != nil {
			o.Watcher.BeyondBounds(p)
		}
		if len(said) > maxSaid {
			clear(said)
		}
		if said.IsNews(p.Object, p.What) {
			o.Log.Warn("an input is beyond the bounds", "object", p.Object, "problem", p.What)
		}
	}
}

// begin notes what the loop does until end is called.
func (l *loop) begin(what string) (end func()) {
	return l.health.begin(loopGoroutine, what, stuckAfter)
}

// show lets somebody look at the core.
func (l *loop) show(what string, look func(*core.Core)) {
	defer l.begin(what)()
	look(l.driver.Core())
}

// run takes Steps until the context ends.
func (l *loop) run(ctx context.Context) {
	labelled(ctx, loopGoroutine, func() { l.steps(ctx) })
}

// steps is run without its label.
func (l *loop) steps(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	var show <-chan time.Time
	if l.state != nil {
		ticker := time.NewTicker(stateEvery)
		defer ticker.Stop()
		show = ticker.C
		l.show("a read of its state", l.state)
	}
	var wake time.Time // when the core wants a Step without inputs; zero for not at all
	for {
		select {
		case <-ctx.Done():
			return
		case ask := <-l.questions:
			l.show("a query", ask)
			if due := !wake.IsZero() && !l.now().Before(wake); !due && !l.inbox.waits() {
				continue
			}
		case <-show:
			l.show("a read of its state", l.state)
			continue
		case <-l.inbox.signal:
		case <-timer.C:
		}
		now := l.now()
		end := l.begin("a step or the handout of its results")
		var err error
		wake, err = l.driver.Step(now, l.inbox.take()...)
		if err != nil {
			l.log.Error("planning failed; it will be retried", "err", err)
			if l.watcher != nil {
				l.watcher.PlanFailed()
			}
		}
		l.status.update(now, l.driver.Core().View().ScalingStatus)
		end()
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
