// Package planner makes plans on a follower of the cluster's state.
package planner

import (
	"time"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/autoscaler/expander"
	"github.com/berthproject/berth/core/autoscaler/scaledown"
	"github.com/berthproject/berth/core/autoscaler/scaleup"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/engine"
	"github.com/berthproject/berth/core/framework"
	"github.com/berthproject/berth/core/scheduler"
)

// Planner makes plans on a follower of the state. One goroutine at a time may call it.
// CatchUp, Follow and Position read the primary and must not run while it changes; Plan
// may.
type Planner struct {
	follower *cluster.Follower
	sched    *scheduler.Scheduler
	drains   *scaledown.Simulator // follows the follower
	expander expander.Chain
	seed     uint64 // of the expander
	memory   scaleup.Memory

	// Stopwatch bounds how long plans take; nil, the default, for no bound. It is to be set
	// before the first plan.
	Stopwatch autoscaler.Stopwatch
	// Yield, when not nil, is called every few microseconds while a plan is made, so that it can
	// let others use the processor. It is to be set before the first plan.
	Yield func()
}

// New returns a planner that follows a state, which must not have been trimmed, and
// whose scale-ups a chain of expanders chooses; or an error that names the profile for
// which there can be no engine.
func New(primary *cluster.State, profiles []*framework.Profile, how engine.Options, chain expander.Chain) (*Planner, error) {
	f := cluster.Follow(primary)
	sched, err := scheduler.New(f.State, profiles, how)
	if err != nil {
		return nil, err
	}
	drains, err := scaledown.New(f.State, profiles, how)
	if err != nil {
		return nil, err
	}
	return &Planner{follower: f, sched: sched, drains: drains, expander: chain, seed: how.Seed}, nil
}

// CatchUp brings the follower up to date. It fails with cluster.ErrBehind when the primary
// has trimmed its journal past the follower's position, and with cluster.ErrMarkOpen in
// a what-if of the primary's.
func (p *Planner) CatchUp() error { return p.follower.CatchUp() }

// Follow is CatchUp for a planner that isn't asked for plans for the time being: nobody
// needs the follower's own journal, which is forgotten.
func (p *Planner) Follow(now time.Time) error {
	if err := p.follower.CatchUp(); err != nil {
		return err
	}
	p.drains.Follow()
	p.forget(now)
	p.drains.ForgetAll(now)
	return nil
}

// Position returns the primary's journal position that the follower has reached: the
// primary has to keep its journal from there on.
func (p *Planner) Position() cluster.Seq {
	_, at := p.follower.Position()
	return at
}

// Plan answers a request from the follower's state as it is. It changes nothing but what
// the engines remember.
func (p *Planner) Plan(req autoscaler.Request) *autoscaler.Plan {
	p.follower.Between(p.Yield)
	p.drains.Between(p.Yield)
	defer p.follower.Between(nil) // others have it catch up, on their own time
	defer p.drains.Between(nil)
	plan := autoscaler.NewPlan(&req, p.Position())
	questions := &autoscaler.Questions{Watch: p.Stopwatch}
	questions.Start(autoscaler.WholePlan)
	packer := scaleup.Packer{State: p.follower.State, Engine: p.sched.Engine, Expander: p.expander, Seed: p.seed, Questions: questions, Memory: &p.memory}
	packer.Plan(req, plan)
	if plan.Sick == "" && req.ScaleDown != nil {
		p.drains.Plan(&req, questions, plan)
		if req.ScaleDown.Consolidate != nil && len(plan.ScaleUps) == 0 && plan.Covered == 0 && plan.Unplanned == 0 {
			p.drains.Consolidate(&req, p.seed, questions, plan)
		}
	} else {
		p.drains.Follow()
	}
	plan.Cuts = questions.Cuts
	p.forget(req.Now)
	p.drains.Forget(req.Now)
	return plan
}

// forget forgets the journal of the follower, which its own follower has caught up with, and
// the classes that nobody needs.
func (p *Planner) forget(now time.Time) {
	p.follower.Trim(p.follower.Head())
	p.sched.ForgetClasses(now, func() map[*engine.Class]bool {
		p.memory.Reset() // it has classes
		return nil
	})
}
