// Package plan computes what each expander would buy for all pods of a scenario at once, without
// playing the scenario. inputs.go makes inputs of it, purchase.go asks a core for one plan and for what
// any purchase costs at least, estimates.go says what each class of pods would need, print.go writes
// all that for people.
//
// What must hold: every expander gets the same inputs and a core of its own, so that purchases can be
// compared.
package plan

import (
	"errors"
	"time"

	"github.com/berthproject/berth/core"
	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/autoscaler/expander"
	"github.com/berthproject/berth/core/autoscaler/scaleup"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/scheduler"
	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/drive"
	"github.com/berthproject/berth/sim/scenario"
)

var errNothingPending = errors.New("no pod is pending: the files have none, or all fit on existing nodes (--empty ignores these)")

// Purchase is what a plan buys, as berth plan -o json has it. Prices are the provider's, an hour; they are
// 0 where it has none.
type Purchase struct {
	Expander string `json:"expander"`
	Pending  int    `json:"pending"` // pods that find no node among those that exist
	// Nodes are all that the plan orders, ByGroup by the group that they are ordered of.
	Nodes        int            `json:"nodes"`
	ByGroup      map[string]int `json:"byGroup"`
	PricePerHour float64        `json:"pricePerHour"`
	LowerBound   float64        `json:"lowerBound"` // per hour, of any purchase for Possible pods
	Possible     int            `json:"possible"`   // pods that groups take and have room for
	Placed       int            `json:"placed"`     // pods that the nodes are for
	NoHelp       int            `json:"noHelp"`     // pods that the plan buys no node for
	Seconds      float64        `json:"seconds"`    // that the plan took

	// Estimates are made with Options.Explain; they are the same with every expander.
	Estimates []Estimate `json:"-"`
}

// planTaker is the workers of a core that is asked for one plan: of all work only the plan
// is done, so the core knows of no outcome.
type planTaker struct {
	drive.Unanswered
	now  func() time.Time
	plan *autoscaler.Plan
	took time.Duration
}

// Plan implements drive.Workers.
func (t *planTaker) Plan(compute func() *autoscaler.Plan, _ func(*autoscaler.Plan)) {
	start := t.now()
	t.plan = compute()
	t.took = t.now().Sub(start)
}

// Options say what to plan for.
type Options struct {
	Empty   bool // nothing that exists counts
	Explain bool // estimates are wanted, too
	// Now is the clock by which Purchase.Seconds is measured.
	Now func() time.Time
}

// For lets a fresh core place what it can of a scenario, and returns what the expander of a name buys
// for the rest. Virtual time passes until the core asks for a plan; when it doesn't within an hour,
// nothing is pending, which is an error.
func For(r *scenario.Run, name string, o Options) (*Purchase, error) {
	chain, err := chainOf(r, name)
	if err != nil {
		return nil, err
	}
	schema, profiles := r.Scheduler.Build()
	cfg := core.DefaultConfig(profiles...)
	cfg.Engine.Seed, cfg.Queue = r.Spec.Seed, r.Scheduler.Queue
	a := r.Autoscale
	a.Expander = name
	cfg.Autoscale = &a
	taker := &planTaker{now: o.Now}
	requests := &pendingSeen{}
	d, err := drive.New(drive.Config{Schema: schema, Core: cfg, Expander: chain, Workers: taker, Inbox: func(step.Input) {}, Hooks: []drive.Hook{requests}})
	if err != nil {
		return nil, err
	}
	inputs := pendingAtOnce(r, o.Empty)
	now := time.Unix(0, 0)
	for taker.plan == nil {
		wake, err := d.Step(now, inputs...)
		if err != nil {
			return nil, err
		}
		if inputs = nil; taker.plan == nil && (wake.IsZero() || wake.Sub(now) > time.Hour) {
			return nil, errNothingPending
		}
		if wake.After(now) {
			now = wake
		}
	}
	if len(requests.pending) == 0 {
		return nil, errNothingPending
	}
	p := &Purchase{Expander: name, Pending: len(requests.pending), ByGroup: map[string]int{}, Seconds: taker.took.Seconds()}
	state := d.Core().State()
	for _, up := range taker.plan.ScaleUps {
		p.Nodes += up.Nodes
		p.ByGroup[up.Group] += up.Nodes
		p.PricePerHour += float64(up.Nodes) * state.Group(up.Group).Price
		p.Placed += len(up.Pods)
	}
	for _, n := range taker.plan.NoHelp {
		p.NoHelp += len(n.Pods)
	}
	if p.LowerBound, p.Possible, err = lowerBound(state, &cfg, requests.pending); err != nil || !o.Explain {
		return p, err
	}
	p.Estimates, err = estimates(state, &cfg, requests.request)
	return p, err
}

// lowerBound returns what any purchase for pending pods costs at least, and for how many of
// them. It asks a copy of the state, to which the core's purchase wasn't added.
func lowerBound(state *cluster.State, cfg *core.Config, pending []*cluster.Pod) (bound float64, pods int, err error) {
	follower := cluster.Follow(state)
	if err := follower.CatchUp(); err != nil {
		return 0, 0, err
	}
	sched, err := scheduler.New(follower.State, cfg.Profiles, cfg.Engine)
	if err != nil {
		return 0, 0, err
	}
	packer := scaleup.Packer{State: follower.State, Engine: sched.Engine}
	bound, pods = packer.LowerBound(autoscaler.Request{Pending: pending})
	return bound, pods, nil
}

// chainOf returns the chain of one expander, with the scenario's priorities.
func chainOf(r *scenario.Run, name string) (expander.Chain, error) {
	var priorities *expander.Priorities
	if text := r.Spec.Policy.ExpanderPriorities; text != "" {
		var err error
		if priorities, err = expander.ParsePriorities(text); err != nil {
			return nil, err
		}
	}
	if priorities == nil && name == expander.PriorityName {
		return nil, errors.New("it needs spec.policy.expanderPriorities, which the scenario does not have")
	}
	priority := &expander.Priority{Current: func() *expander.Priorities { return priorities }}
	return expander.NewChain(name, map[string]expander.Strategy{expander.PriorityName: priority})
}

// pendingSeen is a hook that remembers what plan was asked for, and for which pods.
type pendingSeen struct {
	pending []*cluster.Pod
	request autoscaler.Request
}

// Step implements drive.Hook.
func (p *pendingSeen) Step(_ time.Time, _ time.Duration, _ []step.Input, r *step.Ready) {
	if r.Plan != nil {
		p.pending, p.request = r.Plan.Pending, *r.Plan
	}
}
