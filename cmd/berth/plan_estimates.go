package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/berthproject/berth/core"
	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/autoscaler/scaleup"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/scheduler"
	"github.com/berthproject/berth/sim/report"
)

// This file says, with --explain, what each class of pending pods would need of each group.

// estimate is what the pods of one class would need.
type estimate struct {
	Pod    string          `json:"pod"` // the first of them
	Pods   int             `json:"pods"`
	Groups []groupEstimate `json:"groups"`
}

// groupEstimate is what they would need of one group.
type groupEstimate struct {
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
func estimates(state *cluster.State, cfg *core.Config, req autoscaler.Request) ([]estimate, error) {
	follower := cluster.Follow(state)
	if err := follower.CatchUp(); err != nil {
		return nil, err
	}
	sched, err := scheduler.New(follower.State, cfg.Profiles, cfg.Engine)
	if err != nil {
		return nil, err
	}
	packer := scaleup.Packer{State: follower.State, Engine: sched.Engine}
	var out []estimate
	for _, e := range packer.Estimate(req) {
		x := estimate{Pod: e.Pods[0].Name(), Pods: len(e.Pods)}
		for i := range e.Groups {
			x.Groups = append(x.Groups, newGroupEstimate(&e.Groups[i]))
		}
		out = append(out, x)
	}
	return out, nil
}

func newGroupEstimate(g *scaleup.GroupEstimate) groupEstimate {
	out := groupEstimate{Group: g.Group, Nodes: g.Nodes, Fits: g.Fits, With: g.With, shares: g.Waste}
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

// printEstimates writes a table for each class.
func printEstimates(out io.Writer, list []estimate) error {
	for _, e := range list {
		fmt.Fprintf(out, "\n%s like %s\n", report.Count(e.Pods, "pod"), e.Pod)
		w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
		fmt.Fprintln(w, "  group\tnodes\tpods that fit\tunused")
		for i := range e.Groups {
			g := &e.Groups[i]
			var notes []string
			for _, x := range g.shares {
				notes = append(notes, fmt.Sprintf("%s %.0f%%", x.Resource, 100*x.Share()))
			}
			if len(g.With) > 0 {
				notes = append(notes, "some of the nodes from "+strings.Join(g.With, " and "))
			}
			fmt.Fprintf(w, "  %s\t%d\t%d\t%s\n", g.Group, g.Nodes, g.Fits, strings.Join(append(notes, g.Why...), ", "))
		}
		if err := w.Flush(); err != nil {
			return err
		}
	}
	return nil
}
