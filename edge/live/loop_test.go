package live

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
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

// TestEventsDoNotHoldUpPods has 10,000 changes of nodes come from ten goroutines while a Step computes, and
// a pod behind them. None of the goroutines waits for the Step; the next one takes all of it in, and
// binds the pod.
func TestEventsDoNotHoldUpPods(t *testing.T) {
	const writers, each = 10, 1000
	synctest.Test(t, func(t *testing.T) {
		schema := cluster.NewSchema()
		in, clock := newInbox(), newClock()
		computes, goOn := make(chan bool, 1), make(chan bool)
		var taken []int // inputs, by Step
		var bound []int // Steps that bind a pod
		driver, err := drive.New(drive.Config{Schema: schema, Core: core.DefaultConfig(plugins.Default(schema, plugins.Options{})), Workers: drive.Unanswered{}, Inbox: in.put,
			Hooks: []drive.Hook{drive.HookFunc(func(_ time.Time, _ time.Duration, inputs []step.Input, r *step.Ready) {
				if len(inputs) == 0 {
					return
				}
				if taken = append(taken, len(inputs)); len(r.Binds) > 0 {
					bound = append(bound, len(taken))
				}
				if len(taken) == 1 {
					computes <- true
					<-goOn
				}
			})}})
		if err != nil {
			t.Fatal(err)
		}
		node := func(i int) step.Input {
			return step.NodeSet{Node: testkit.Node("n").Alloc("cpu", "4", "pods", "10").Label("more", fmt.Sprint(i)).Obj()}
		}
		ctx, stop := context.WithCancel(t.Context())
		l := &loop{driver: driver, inbox: in, now: clock.now, health: NewHealth(true), log: slog.New(slog.DiscardHandler)}
		var loops, writing sync.WaitGroup
		in.put(node(0))
		loops.Go(func() { l.run(ctx) })
		<-computes
		for w := range writers {
			writing.Go(func() {
				for i := range each {
					in.put(node(w*each + i))
				}
			})
		}
		writing.Wait()
		in.put(step.PodSet{Pod: testkit.Pod("p").Req("cpu", "1").Obj()})
		close(goOn)
		synctest.Wait()
		stop()
		loops.Wait()
		if want := []int{1, writers*each + 1}; !slices.Equal(taken, want) || !slices.Equal(bound, []int{2}) {
			t.Errorf("Steps took %d inputs and the Steps %d bound a pod, want %d and the second", taken, bound, want)
		}
	})
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
