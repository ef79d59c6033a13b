package plan

import (
	"github.com/berthproject/berth/core"
	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/autoscaler/scaleup"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/scheduler"
)

// This file says, with --explain, what each class of pending pods would need of each group.

// Estimate is what the pods of one class would need, as berth plan --explain has it.
type Estimate struct {
	Pod  string `json:"pod"` // the first of them
	Pods int    `json:"pods"`
	// Groups are all node groups, also those that take none of the pods: Why says so.
	Groups []GroupEstimate `json:"groups"`
}

// GroupEstimate is what they would need of one group, if it were the one to be scaled up for them.
type GroupEstimate struct {
	Group string   `json:"group"`
	Nodes int      `json:"nodes"`
	Fits  int      `json:"fits"`           // how many of the pods have a place on these
	With  []string `json:"with,omitempty"` // other groups that some of the nodes are of
	// Waste is by resource the share that the pods leave unused.
	Waste map[string]float64 `json:"waste,omitempty"`
	// Why is why no pod fits, or the group doesn't grow.
	Why []string `json:"why,omitempty"`

	shares []scaleup.Waste // Waste in order
}

// estimates asks a packer about a request, on a copy of the state.
func estimates(state *cluster.State, cfg *core.Config, req autoscaler.Request) ([]Estimate, error) {
	follower := cluster.Follow(state)
	if err := follower.CatchUp(); err != nil {
		return nil, err
	}
	sched, err := scheduler.New(follower.State, cfg.Profiles, cfg.Engine)
	if err != nil {
		return nil, err
	}
	packer := scaleup.Packer{State: follower.State, Engine: sched.Engine}
	var out []Estimate
	for _, e := range packer.Estimate(req) {
		x := Estimate{Pod: e.Pods[0].Name(), Pods: len(e.Pods)}
		for i := range e.Groups {
			x.Groups = append(x.Groups, newGroupEstimate(&e.Groups[i]))
		}
		out = append(out, x)
	}
	return out, nil
}

func newGroupEstimate(g *scaleup.GroupEstimate) GroupEstimate {
	out := GroupEstimate{Group: g.Group, Nodes: g.Nodes, Fits: g.Fits, With: g.With, shares: g.Waste}
	switch {
	case g.Limit != "":
		out.Why = []string{g.Limit}
	case g.Fits == 0 && g.Reason != nil:
		out.Why = g.Reason.Messages
	}
	for _, w := range g.Waste {
		if out.Waste == nil {
			out.Waste = map[string]float64{}
		}
		out.Waste[string(w.Resource)] = w.Share()
	}
	return out
}
