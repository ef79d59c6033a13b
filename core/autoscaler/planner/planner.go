// Package planner makes plans on a follower of the cluster's state.
package planner

import (
	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/autoscaler/expander"
	"github.com/berthproject/berth/core/autoscaler/scaledown"
	"github.com/berthproject/berth/core/autoscaler/scaleup"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/engine"
	"github.com/berthproject/berth/core/framework"
	"github.com/berthproject/berth/core/scheduler"
)

// classesKept is how many classes a planner's engines may hold between plans.
const classesKept = 4096

// Planner plans on its own copy of the state. CatchUp must not run while the
// leader changes; Plan may.
type Planner struct {
	follower *cluster.Follower
	sched    *scheduler.Scheduler
	strategy expander.Strategy
}

// New returns a planner that follows a state, which must not have been trimmed,
// or an error that names the profile for which there can be no engine.
func New(leader *cluster.State, profiles []*framework.Profile, how engine.Options, strategy expander.Strategy) (*Planner, error) {
	f := cluster.Follow(leader)
	sched, err := scheduler.New(f.State, profiles, how)
	if err != nil {
		return nil, err
	}
	return &Planner{follower: f, sched: sched, strategy: strategy}, nil
}

// CatchUp brings the copy up to date and forgets what the copy's journal no
// longer serves.
func (p *Planner) CatchUp() error { return p.follower.CatchUp() }

// Follow catches up while no plans are made, and keeps no journal.
func (p *Planner) Follow() error {
	if err := p.follower.CatchUp(); err != nil {
		return err
	}
	p.follower.Trim(p.follower.Head())
	return nil
}

// Position returns the journal position of the leader that the copy stands at.
func (p *Planner) Position() cluster.Seq {
	_, at := p.follower.Position()
	return at
}

// Plan answers a request from the copy as it stands.
func (p *Planner) Plan(req autoscaler.Request) *autoscaler.Plan {
	plan := autoscaler.NewPlan(&req, p.Position())
	packer := scaleup.Packer{State: p.follower.State, Engine: p.sched.Engine, Strategy: p.strategy}
	packer.Plan(req, plan)
	plan.Empty = scaledown.Candidates(p.follower.State, req.Now, req.Limits.StartupTime)
	p.follower.Trim(p.follower.Head())
	p.sched.ForgetClasses(classesKept, func() map[*engine.Class]bool { return nil })
	return plan
}
