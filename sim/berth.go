package sim

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/berthproject/berth/core"
	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/drive"
)

// This file is Berth as a process in the virtual world: it starts, takes Steps, crashes
// and starts again. What must hold: an outcome, a change or a wake-up that was on its way
// when the process crashed doesn't reach the next one. Hence each remembers the life that
// it is for.

// berth is Berth in this world: the driver, core and planner of the live program,
// with workers that take virtual time.
type berth struct {
	w      *World
	ledger *step.Ledger // outlives crashes
	life   int          // how many crashes there were before this process
	up     bool         // false from a crash to the next start
	steps  int          // of all processes
	calls  int          // to the API server, of all processes; names their latency and faults
	// nextBind is when the rate of binds allows the next one: the rate is the API
	// server's, so it outlives crashes.
	nextBind time.Duration

	// Of this process; a crash takes it.
	driver  *drive.Driver
	inbox   []step.Input
	wake    time.Duration      // when to Step without an input, -1 for never
	leaving map[string]bool    // nodes whose deletion was asked for
	cancels map[types.UID]bool // pods whose bind isn't to be sent any more
	idle    int                // how many Steps in a row had no input
	// seenGone are the pods of which a Step has shown the process that they are gone.
	seenGone map[types.UID]bool
}

// maxIdle is how many Steps without an input the core may want at once. More are a defect:
// it wants to go on for ever.
const maxIdle = 100_000

// crashTime is how long Berth is down after a crash, unless the fault says otherwise.
const crashTime = 5 * time.Second

// newBerth returns a Berth whose first process has started.
func newBerth(w *World) (*berth, error) {
	b := &berth{w: w, leaving: map[string]bool{}, cancels: map[types.UID]bool{}, ledger: &step.Ledger{To: w.opt.Decisions}}
	return b, b.start()
}

// core returns the core of the process that runs, or ran last.
func (b *berth) core() *core.Core { return b.driver.Core() }

// start makes a driver with a fresh core, as a new process does.
func (b *berth) start() error {
	w, life := b.w, b.life
	schema, profiles := w.run.Scheduler.Build()
	engine := w.opt.Engine
	engine.Seed = w.run.Spec.Seed
	cfg := core.DefaultConfig(profiles...)
	cfg.Engine, cfg.Queue = engine, w.run.Scheduler.Queue
	if len(w.groups) > 0 {
		a := w.run.Autoscale
		cfg.Autoscale = &a
	}
	inbox := func(in step.Input) {
		if b.life == life {
			b.receive(in)
		}
	}
	hooks := append(w.opt.Hooks[:len(w.opt.Hooks):len(w.opt.Hooks)], b.ledger, drive.HookFunc(w.watchStep))
	d, err := drive.New(drive.Config{Schema: schema, Core: cfg, Expander: w.run.Expander, Stopwatch: w.opt.Stopwatch, Workers: workers{b}, Inbox: inbox, Hooks: hooks, Replan: w.replan(schema)})
	if err != nil {
		return err
	}
	b.driver, b.up, b.inbox, b.wake, b.seenGone = d, true, nil, w.now, map[types.UID]bool{}
	if cfg.Autoscale != nil {
		w.afterInBackground(0, phaseCalls, func() { b.pollGroups(life, max(cfg.Autoscale.ScanInterval/2, tick)) })
	}
	return nil
}

// pollGroups lists the node groups, and again after each period, as long as the process
// lives.
func (b *berth) pollGroups(life int, period time.Duration) {
	if b.life == life {
		if b.w.clockAhead() > 0 {
			b.receive(step.ServerTime{At: b.w.serverTime()})
		}
		b.w.callListGroups()
		b.w.afterInBackground(period, phaseCalls, func() { b.pollGroups(life, period) })
	}
}

// watchStep is the world's own hook: it counts decisions, and checks invariants.
func (w *World) watchStep(_ time.Time, _ time.Duration, in []step.Input, r *step.Ready) {
	w.stats.decided(r.Decisions)
	if w.opt.Check {
		w.checkStep(r)
		w.checkGangOrders(in, r)
	}
}

// crash ends the process: calls that were sent are served, their answers and everything
// in memory are lost. The next process starts after a while, with a list of what exists.
// Berth that is down can't crash.
func (b *berth) crash(down time.Duration) {
	w := b.w
	if !b.up {
		return
	}
	b.life++
	b.up, b.inbox = false, nil
	b.leaving = map[string]bool{} // the next process doesn't know of them, and asks again
	b.cancels = map[types.UID]bool{}
	for _, g := range w.groups {
		g.toldAt = -1
	}
	for i := range w.formerly {
		w.formerly[i].missed, w.formerly[i].gone = -1, false
	}
	for _, q := range w.watch {
		q.waiting = nil
	}
	w.noteChange()
	w.gangsWait(down)
	w.room = nil
	clear(w.turns)
	w.after(down, phaseWorld, func() {
		if err := b.start(); err != nil {
			w.violation("Berth does not restart: %v", err)
			return
		}
		b.list()
		w.noteUnknown()
		w.noteChange()
	})
}

// receive puts an input into the inbox, unless Berth is down.
func (b *berth) receive(in step.Input) {
	if b.up {
		b.inbox = append(b.inbox, in)
	}
}

// noteGone notes the pods that a Step is told are gone.
func (b *berth) noteGone(in []step.Input) {
	for i := range in {
		if x, ok := in[i].(step.PodGone); ok && b.w.opt.Check {
			b.seenGone[x.UID] = true
		}
	}
}

// step takes Steps until the inbox is empty and the core wants none before a later time.
// It is called at the end of each tick that had events. An error says that the planner
// can't follow the core, or that the core wants Steps without end.
func (b *berth) step() error {
	w := b.w
	for b.up && (len(b.inbox) > 0 || b.wake >= 0 && b.wake <= w.now) {
		if len(b.inbox) > 0 {
			b.idle = 0
		}
		if b.idle++; b.idle > maxIdle {
			return fmt.Errorf("at virtual time %s Berth steps in an endless loop", w.now)
		}
		in := b.inbox
		b.noteGone(in)
		b.inbox = nil
		wake, err := b.driver.Step(w.time(), in...)
		if err != nil {
			return err
		}
		if b.steps++; b.steps == w.opt.CrashAfter {
			b.crash(crashTime)
			return nil
		}
		b.wake = -1
		if !wake.IsZero() {
			b.wake = max(wake.Sub(Epoch), w.now)
			if b.wake > w.now {
				life := b.life
				w.afterInBackground(b.wake-w.now, phaseWatch, func() {
					if life == b.life && b.up && b.wake <= w.now {
						b.wake = w.now
					}
				})
			}
		}
	}
	return nil
}
