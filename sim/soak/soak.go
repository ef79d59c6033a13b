package soak

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"sigs.k8s.io/yaml"

	"github.com/berthproject/berth/sim"
	"github.com/berthproject/berth/sim/scenario"
)

// Outcome is how a world ended.
type Outcome struct {
	Digest   string
	Problems []string // broken invariants; none is what is hoped for
	Summary  *scenario.Summary
}

// Text writes a scenario as a file.
func Text(s *scenario.Scenario) []byte {
	raw, err := yaml.Marshal(s)
	if err != nil {
		panic(err) // plain data
	}
	return raw
}

// Play runs a world with every check on. A scenario that can't be read is an
// error, a world that breaks an invariant an Outcome.
func Play(ctx context.Context, s *scenario.Scenario, o sim.Options) (out Outcome, err error) {
	run, err := scenario.Parse(s.Metadata.Name+".yaml", Text(s))
	if err != nil {
		return out, err
	}
	defer func() {
		if p := recover(); p != nil {
			out.Problems = append(out.Problems, fmt.Sprintf("panic: %v", p))
		}
	}()
	o.Check = true
	w, err := sim.New(run, o)
	if err != nil {
		return out, err
	}
	sum, err := w.Run(ctx)
	if ctx.Err() != nil {
		return out, err
	}
	if err != nil {
		out.Problems = append(out.Problems, err.Error())
		return out, nil
	}
	out.Digest, out.Summary = sum.Digest, sum
	out.Problems = append(out.Problems, w.Stats().Violations...)
	if sum.PDBViolations > 0 {
		out.Problems = append(out.Problems, fmt.Sprintf("%d violations of disruption budgets", sum.PDBViolations))
	}
	return out, nil
}

// Shrink makes a failing scenario smaller as long as it fails, trying at most
// tries worlds.
func Shrink(ctx context.Context, s *scenario.Scenario, fails func(*scenario.Scenario) bool, tries int) *scenario.Scenario {
	for changed := true; changed; {
		changed = false
		for _, smaller := range smaller(s) {
			if tries--; tries < 0 || ctx.Err() != nil {
				return s
			}
			if fails(smaller) {
				s, changed = smaller, true
				break
			}
		}
	}
	return s
}

func clone(s *scenario.Scenario) *scenario.Scenario {
	raw, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	out := &scenario.Scenario{}
	if err := json.Unmarshal(raw, out); err != nil {
		panic(err)
	}
	return out
}

// smaller returns scenarios with something taken away, the most first.
func smaller(s *scenario.Scenario) []*scenario.Scenario {
	var out []*scenario.Scenario
	try := func(f func(sp *scenario.Spec)) {
		c := clone(s)
		f(&c.Spec)
		out = append(out, c)
	}
	sp := &s.Spec
	for i := range sp.Workload {
		if len(sp.Workload) > 1 {
			try(func(c *scenario.Spec) { c.Workload = slices.Delete(c.Workload, i, i+1) })
		}
	}
	for i := range sp.Faults {
		try(func(c *scenario.Spec) { c.Faults = slices.Delete(c.Faults, i, i+1) })
	}
	for i := range sp.NodeGroups {
		if len(sp.NodeGroups) > 1 {
			name := sp.NodeGroups[i].Name
			try(func(c *scenario.Spec) {
				c.NodeGroups = slices.Delete(c.NodeGroups, i, i+1)
				c.Faults = slices.DeleteFunc(c.Faults, func(f scenario.Fault) bool { return f.Group == name })
			})
		}
	}
	for i := range sp.Nodes {
		try(func(c *scenario.Spec) { c.Nodes = slices.Delete(c.Nodes, i, i+1) })
	}
	if sp.Storage.SharedRate != nil {
		try(func(c *scenario.Spec) { c.Storage, c.Images = scenario.Storage{}, nil })
	}
	for i := range sp.Workload {
		w := &sp.Workload[i]
		if w.Copies > 0 {
			try(func(c *scenario.Spec) { c.Workload[i].Copies = 0 })
		}
		if w.Count > 1 {
			try(func(c *scenario.Spec) { c.Workload[i].Count = c.Workload[i].Count / 2 })
			try(func(c *scenario.Spec) { c.Workload[i].Count-- })
		}
		if w.Arrive.Over.Duration > 0 {
			try(func(c *scenario.Spec) { c.Workload[i].Arrive = scenario.Arrive{After: c.Workload[i].Arrive.After} })
		}
		if w.Service || w.MaxUnavailable != nil {
			try(func(c *scenario.Spec) { c.Workload[i].Service, c.Workload[i].MaxUnavailable = false, nil })
		}
		p := &w.Template.Spec
		if p.Affinity != nil {
			try(func(c *scenario.Spec) { c.Workload[i].Template.Spec.Affinity = nil })
		}
		if p.TopologySpreadConstraints != nil {
			try(func(c *scenario.Spec) { c.Workload[i].Template.Spec.TopologySpreadConstraints = nil })
		}
		if p.NodeSelector != nil {
			try(func(c *scenario.Spec) { c.Workload[i].Template.Spec.NodeSelector = nil })
		}
		if p.Tolerations != nil {
			try(func(c *scenario.Spec) { c.Workload[i].Template.Spec.Tolerations = nil })
		}
		if p.Priority != nil {
			try(func(c *scenario.Spec) { c.Workload[i].Template.Spec.Priority = nil })
		}
	}
	for i := range sp.NodeGroups {
		g := &sp.NodeGroups[i]
		if g.Max > 1 && g.Max > g.Initial && g.Max > g.Min {
			try(func(c *scenario.Spec) { c.NodeGroups[i].Max-- })
		}
		if g.Boot.Bytes != nil || g.Stock != nil || g.FailureRate > 0 || g.LaunchesPerSecond > 0 {
			try(func(c *scenario.Spec) {
				x := &c.NodeGroups[i]
				x.Boot, x.Stock, x.FailureRate, x.LaunchesPerSecond = scenario.Boot{}, nil, 0, 0
			})
		}
	}
	for i := range sp.Policy.Flags {
		try(func(c *scenario.Spec) { c.Policy.Flags = slices.Delete(c.Policy.Flags, i, i+1) })
	}
	return out
}
