package live

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/berthproject/berth/core"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/plugins"
	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/drive"
	"github.com/berthproject/berth/internal/test/testkit"
)

// TestInputsComeBeforeTheNextQuestion has a hundred questions wait, each of which finds the inputs
// that came with the one before it taken, by a leader and by a standby.
func TestInputsComeBeforeTheNextQuestion(t *testing.T) {
	const asked = 100
	for _, leads := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			schema := cluster.NewSchema()
			in, clock, questions := newInbox(), newClock(), make(chan func(*core.Core), asked)
			driver, err := drive.New(drive.Config{Schema: schema, Core: core.DefaultConfig(plugins.Default(schema, plugins.Options{})), Workers: drive.Unanswered{}, Inbox: in.put})
			if err != nil {
				t.Fatal(err)
			}
			l := &loop{driver: driver, inbox: in, now: clock.now, questions: questions, health: NewHealth(true), log: slog.New(slog.DiscardHandler)}
			answered, late := 0, 0
			for range asked {
				questions <- func(*core.Core) {
					if answered++; in.waits() {
						late++
					}
					in.put(step.NodeSet{Node: testkit.Node("n").Alloc("cpu", "4", "pods", "10").Obj()})
				}
			}
			ctx, stop := context.WithCancel(t.Context())
			var wg sync.WaitGroup
			wg.Go(func() {
				if leads {
					l.run(ctx)
				} else {
					l.standBy(ctx, make(chan struct{}))
				}
			})
			synctest.Wait()
			stop()
			wg.Wait()
			if answered != asked || late != 0 {
				t.Errorf("leader %v: %d of %d questions were answered, %d of them before inputs that had come earlier; want none", leads, answered, asked, late)
			}
		})
	}
}

// TestTheCoresTimeCanBeRecorded writes a time out and reads it again: what the core
// saw is what a recording holds. Nor does it go back.
func TestTheCoresTimeCanBeRecorded(t *testing.T) {
	c := newClock()
	last := c.now()
	for range 1000 {
		now := c.now()
		if read := time.Unix(0, now.UnixNano()); read != now {
			t.Fatalf("the core saw %#v, a recording has %#v", now, read)
		}
		if now.Before(last) {
			t.Fatalf("%s comes after %s", now, last)
		}
		last = now
	}
}
