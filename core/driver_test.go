package core_test

import (
	"time"

	"pgregory.net/rapid"

	"github.com/berthproject/berth/core"
	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/framework"
	"github.com/berthproject/berth/core/plugins"
	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/drive"
)

// driven is a driver whose outcomes wait in a list until a test takes them.
type driven struct {
	*drive.Driver
	t     rapid.TB
	inbox []step.Input
}

// autoscaling returns the configuration of a core that scales, too.
func autoscaling(change func(*core.Autoscale)) core.Config {
	cfg, a := core.DefaultConfig(), core.DefaultAutoscale()
	change(&a)
	cfg.Autoscale = &a
	return cfg
}

// newDriven returns a driver of a core with the default profile, or with those
// that profiles makes.
func newDriven(t rapid.TB, cfg core.Config, workers drive.Workers, profile func(*cluster.Schema) *framework.Profile, hooks ...drive.Hook) *driven {
	t.Helper()
	schema := cluster.NewSchema()
	cfg.Profiles = []*framework.Profile{profile(schema)}
	d := &driven{t: t}
	var err error
	d.Driver, err = drive.New(drive.Config{Schema: schema, Core: cfg, Workers: workers, Inbox: d.put, Hooks: hooks})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// defaults is the default profile.
func defaults(schema *cluster.Schema) *framework.Profile {
	return plugins.Default(schema, plugins.Options{})
}

func (d *driven) put(in step.Input) { d.inbox = append(d.inbox, in) }

// take returns the outcomes that have come, and forgets them.
func (d *driven) take() []step.Input {
	in := d.inbox
	d.inbox = nil
	return in
}

// step runs a Step, checks the core's invariants, and returns when the core wants
// the next.
func (d *driven) step(now time.Time, in ...step.Input) time.Time {
	d.t.Helper()
	wake, err := d.Step(now, in...)
	if err != nil {
		d.t.Fatal(err)
	}
	for _, broken := range d.Core().Invariants() {
		d.t.Errorf("broken invariant: %s", broken)
	}
	return wake
}

// maxStepsAtOnce is how many Steps may want another one at once, with nothing that comes in.
const maxStepsAtOnce = 100

// stepOut runs a Step and further ones at the same time, until no outcome of the last is left and the core
// wants no other at once.
func (d *driven) stepOut(now time.Time, in ...step.Input) {
	d.t.Helper()
	wake := d.step(now, in...)
	for idle := 0; len(d.inbox) > 0 || !wake.IsZero() && !wake.After(now); {
		if idle++; len(d.inbox) > 0 {
			idle = 0
		}
		if idle > maxStepsAtOnce {
			d.t.Fatalf("at %s the core still wants a Step at once, at %s, after %d without inputs", now, wake, maxStepsAtOnce)
		}
		wake = d.step(now, d.take()...)
	}
}

// inlinePlans makes plans at once and answers nothing else.
type inlinePlans struct{ drive.Unanswered }

func (inlinePlans) Plan(compute func() *autoscaler.Plan, done func(*autoscaler.Plan)) {
	done(compute())
}

// prompt answers everything at once: all succeeds, though nothing comes of it.
type prompt struct{ inlinePlans }

func (prompt) Bind(_ step.Bind, done func(error))           { done(nil) }
func (prompt) Preempt(_ step.Preemption, done func(error))  { done(nil) }
func (prompt) Nominate(_ step.Nomination, done func(error)) { done(nil) }
func (prompt) Taint(_ step.Taint, done func(error))         { done(nil) }
func (prompt) Evict(_ step.Eviction, done func(error))      { done(nil) }
func (prompt) ScaleUp(_ step.ScaleUp, done func(error))     { done(nil) }
func (prompt) DeleteNodes(list []step.NodeDeletion, done func(step.NodeDeletion, error)) {
	for _, d := range list {
		done(d, nil)
	}
}
