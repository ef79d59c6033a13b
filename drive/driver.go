package drive

import (
	"fmt"
	"time"

	"github.com/berthproject/berth/core"
	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/autoscaler/expander"
	"github.com/berthproject/berth/core/autoscaler/planner"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/door"
	"github.com/berthproject/berth/core/step"
)

// This file is the driver: it takes Steps, shows them to hooks, and has the planner follow
// the core. What is handed out in which order is in handout.go.

// Config is what a Driver is made from.
type Config struct {
	// Schema is what the profiles of Core were made with.
	Schema *cluster.Schema
	// Core is the core's configuration. Autoscale in it decides whether there is a planner.
	Core core.Config
	// Expander chooses among the node groups that a plan could grow. Its strategies are
	// called where plans are made.
	Expander expander.Chain
	// Stopwatch bounds how long plans take; nil for no bound. It is asked where plans are
	// made.
	Stopwatch autoscaler.Stopwatch
	// Yield, when not nil, is called every few microseconds where plans are made, so that it can
	// let others use the processor.
	Yield func()
	// Replan, when not nil, makes the plans, with what the planner has for a request as it is or changed: a
	// simulation compares other rules by it.
	Replan func(request autoscaler.Request, plan func(autoscaler.Request) *autoscaler.Plan) *autoscaler.Plan
	// Workers do what the core asks for.
	Workers Workers
	// Inbox takes the outcomes of the workers, which belong among the inputs of a
	// later Step. It is called by whoever reports an outcome: where workers run in
	// goroutines of their own, it must allow that.
	Inbox func(step.Input)
	// Beyond, when not nil, is told of what is beyond the bounds in an input (door.Admit).
	Beyond func(door.Problem)
	// Hooks see every Step, in this order.
	Hooks []Hook
	// Clock, when not nil, is read once after each Step of the core, so that hooks
	// learn how long it took. It must be the clock that the times of Step are from.
	Clock func() time.Time
}

// Driver owns a core and, when the core autoscales, its planner. Its methods are
// for one goroutine at a time; nobody else may change the core. The fields don't change after New.
type Driver struct {
	core    *core.Core
	planner *planner.Planner // nil unless the core autoscales
	workers Workers
	inbox   func(step.Input)
	hooks   []Hook
	clock   func() time.Time
	beyond  func(door.Problem)
	replan  func(autoscaler.Request, func(autoscaler.Request) *autoscaler.Plan) *autoscaler.Plan
}

// New returns a driver with a fresh core. An error says what of the core's
// configuration can't be used.
func New(cfg Config) (*Driver, error) {
	c, err := core.New(cfg.Schema, cfg.Core)
	if err != nil {
		return nil, err
	}
	d := &Driver{core: c, workers: cfg.Workers, inbox: cfg.Inbox, hooks: cfg.Hooks, clock: cfg.Clock, beyond: cfg.Beyond, replan: cfg.Replan}
	if d.beyond == nil {
		d.beyond = func(door.Problem) {}
	}
	if cfg.Core.Autoscale != nil {
		d.planner, err = planner.New(c.State(), cfg.Core.Profiles, cfg.Core.Engine, cfg.Expander)
		if err != nil {
			return nil, err
		}
		d.planner.Stopwatch, d.planner.Yield = cfg.Stopwatch, cfg.Yield
	}
	return d, nil
}

// Core returns the core, to be read between two calls of the driver.
func (d *Driver) Core() *core.Core { return d.core }

// Step admits what happened (door.Admit), has the core take it in and decide, shows the Step to the
// hooks and hands the work out. It returns when to Step again though nothing happens:
// now when there is more to do, zero when only an input can help. Times must not
// go back.
//
// An error is a defect in how the planner follows the core: there is no plan then,
// which the core is told, and everything else has been handed out.
func (d *Driver) Step(now time.Time, inputs ...step.Input) (wake time.Time, err error) {
	admitted := d.admit(inputs)
	r := d.core.Step(now, admitted...)
	var took time.Duration
	if d.clock != nil {
		took = d.clock().Sub(now)
	}
	if len(d.hooks) > 0 {
		taken := make([]step.Input, len(admitted))
		for i, in := range admitted {
			taken[i] = in.Unwrap()
		}
		for _, h := range d.hooks {
			h.Step(now, took, taken, &r)
		}
	}
	return r.NextWake, d.handOut(&r)
}

// admit returns the inputs that the core takes, within the bounds.
func (d *Driver) admit(inputs []step.Input) []door.Input {
	out := make([]door.Input, 0, len(inputs))
	for _, in := range inputs {
		if admitted, ok := door.Admit(in, d.beyond); ok {
			out = append(out, admitted)
		}
	}
	return out
}

// StandBy takes in what happened while another instance decides. Nothing is
// decided, handed out or shown to hooks. The planner's copy of the state follows,
// so that a plan can be made as soon as this instance becomes the leader.
//
// An error is a defect, as with Step; the core has taken the inputs in.
func (d *Driver) StandBy(now time.Time, inputs ...step.Input) error {
	if d.planner == nil {
		d.core.StandBy(now, 0, d.admit(inputs)...)
		return nil
	}
	err := d.planner.Follow(now)
	d.core.StandBy(now, d.planner.Position(), d.admit(inputs)...)
	if err != nil {
		return fmt.Errorf("the planner can't follow: %w", err)
	}
	return nil
}

// BecomeLeader ends the time of StandBy: from the next Step on the core decides,
// and takes over what another instance had begun. For an instance that has never
// stood by it changes nothing.
func (d *Driver) BecomeLeader(now time.Time) { d.core.BecomeLeader(now) }
