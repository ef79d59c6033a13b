package soak

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/berthproject/berth/internal/simulateddevices"
	"github.com/berthproject/berth/sim/scenario"
)

// This file makes a scenario that fails smaller, so that a person can see why it does.

// Shrink makes a failing scenario smaller as long as it fails, trying at most
// tries worlds.
//
// It is greedy: the first smaller scenario that still fails becomes the next one to make smaller. So
// fails must hold of s, and what is returned needn't fail by the same invariant as s did: a smaller
// world with any failure is what a person wants first. The result is s itself when nothing can be
// taken away, when the tries are used up, or when ctx is done.
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

// clone returns a deep copy, by way of the format that scenarios are written in. Scenarios that were
// drawn are plain data, so that this can't fail.
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

// smaller returns scenarios with something taken away: what takes away most first. What is left is
// still valid: a scenario keeps a workload and a node group, and loses the faults of a group with it.
func smaller(s *scenario.Scenario) []*scenario.Scenario {
	c := &cuts{from: s}
	sp := &s.Spec
	for i := range sp.Workload {
		if len(sp.Workload) > 1 {
			c.try(func(sp *scenario.Spec) { sp.Workload = slices.Delete(sp.Workload, i, i+1) })
		}
	}
	for i := range sp.Faults {
		c.try(func(sp *scenario.Spec) { sp.Faults = slices.Delete(sp.Faults, i, i+1) })
	}
	for i := range sp.NodeGroups {
		if len(sp.NodeGroups) > 1 {
			name := sp.NodeGroups[i].Name
			c.try(func(sp *scenario.Spec) {
				sp.NodeGroups = slices.Delete(sp.NodeGroups, i, i+1)
				sp.Faults = slices.DeleteFunc(sp.Faults, func(f scenario.Fault) bool { return f.Group == name })
			})
		}
	}
	for i := range sp.Nodes {
		c.try(func(sp *scenario.Spec) { sp.Nodes = slices.Delete(sp.Nodes, i, i+1) })
	}
	if sp.Storage.SharedRate != nil {
		c.try(func(sp *scenario.Spec) { sp.Storage, sp.Images = scenario.Storage{}, nil })
	}
	for i := range sp.Workload {
		c.workload(i)
	}
	for i := range sp.NodeGroups {
		c.group(i)
		c.devices(func(sp *scenario.Spec) *[]simulateddevices.Devices { return &sp.NodeGroups[i].Devices })
	}
	for i := range sp.Nodes {
		c.devices(func(sp *scenario.Spec) *[]simulateddevices.Devices { return &sp.Nodes[i].Devices })
	}
	for i := range sp.Policy.Flags {
		c.try(func(sp *scenario.Spec) { sp.Policy.Flags = slices.Delete(sp.Policy.Flags, i, i+1) })
	}
	return c.made
}

// cuts collects copies of a scenario with something taken away.
type cuts struct {
	from *scenario.Scenario
	made []*scenario.Scenario
}

// try adds a copy from which something is taken away.
func (c *cuts) try(cut func(sp *scenario.Spec)) {
	s := clone(c.from)
	cut(&s.Spec)
	c.made = append(c.made, s)
}

// workload makes one workload smaller and simpler. Counts are halved before one is taken off, so that
// few tries are needed while they are large.
func (c *cuts) workload(i int) {
	try := func(applies bool, cut func(w *scenario.Workload)) {
		if applies {
			c.try(func(sp *scenario.Spec) { cut(&sp.Workload[i]) })
		}
	}
	w := &c.from.Spec.Workload[i]
	for k := range w.Claims {
		try(true, func(w *scenario.Workload) { w.Claims = slices.Delete(w.Claims, k, k+1) })
		x := &w.Claims[k]
		try(x.Selectors != nil || x.Capacity != nil || x.SameAttribute != "", func(w *scenario.Workload) {
			x := &w.Claims[k]
			x.Selectors, x.Capacity, x.SameAttribute = nil, nil, ""
		})
		try(x.Shared, func(w *scenario.Workload) { w.Claims[k].Shared = false })
		try(x.Count > 1, func(w *scenario.Workload) { w.Claims[k].Count-- })
	}
	try(w.Copies > 0, func(w *scenario.Workload) { w.Copies = 0 })
	try(w.Count > 1, func(w *scenario.Workload) { w.Count /= 2 })
	try(w.Count > 1, func(w *scenario.Workload) { w.Count-- })
	try(w.Arrive.Over.Duration > 0, func(w *scenario.Workload) { w.Arrive = scenario.Arrive{After: w.Arrive.After} })
	try(w.Service || w.MaxUnavailable != nil, func(w *scenario.Workload) { w.Service, w.MaxUnavailable = false, nil })
	p := &w.Template.Spec
	try(p.Affinity != nil, func(w *scenario.Workload) { w.Template.Spec.Affinity = nil })
	try(p.TopologySpreadConstraints != nil, func(w *scenario.Workload) { w.Template.Spec.TopologySpreadConstraints = nil })
	try(p.NodeSelector != nil, func(w *scenario.Workload) { w.Template.Spec.NodeSelector = nil })
	try(p.Tolerations != nil, func(w *scenario.Workload) { w.Template.Spec.Tolerations = nil })
	try(w.DeleteAfter.Duration > 0, func(w *scenario.Workload) { w.DeleteAfter.Duration = 0 })
	try(w.Template.Annotations != nil, func(w *scenario.Workload) { w.Template.Annotations = nil })
	try(p.Volumes != nil, func(w *scenario.Workload) { w.Template.Spec.Volumes = nil })
	try(p.TerminationGracePeriodSeconds != nil, func(w *scenario.Workload) { w.Template.Spec.TerminationGracePeriodSeconds = nil })
	try(p.Priority != nil, func(w *scenario.Workload) { w.Template.Spec.Priority = nil })
}

// devices takes devices from the nodes of a group, or from equal nodes.
func (c *cuts) devices(of func(sp *scenario.Spec) *[]simulateddevices.Devices) {
	for k, x := range *of(&c.from.Spec) {
		if len(*of(&c.from.Spec)) > 1 {
			c.try(func(sp *scenario.Spec) { list := of(sp); *list = slices.Delete(*list, k, k+1) })
		}
		if x.Count > 1 {
			c.try(func(sp *scenario.Spec) { (*of(sp))[k].Count-- })
		}
		if x.Taints != nil || x.BindingConditions != nil {
			c.try(func(sp *scenario.Spec) { x := &(*of(sp))[k]; x.Taints, x.BindingConditions = nil, nil })
		}
	}
}

// group makes one node group smaller and simpler, within what a scenario may have: min ≤ initial ≤
// max, and a group that can have a node.
func (c *cuts) group(i int) {
	g := &c.from.Spec.NodeGroups[i]
	if g.Max > 1 && g.Max > g.Initial && g.Max > g.Min {
		c.try(func(sp *scenario.Spec) { sp.NodeGroups[i].Max-- })
	}
	if g.Initial > 1 && g.Initial > g.Min {
		c.try(func(sp *scenario.Spec) { sp.NodeGroups[i].Initial-- })
	}
	if g.Min > 0 {
		c.try(func(sp *scenario.Spec) { sp.NodeGroups[i].Min = 0 })
	}
	if g.Boot.Bytes != nil || g.Stock != nil || g.FailureRate > 0 || g.LaunchesPerSecond > 0 {
		c.try(func(sp *scenario.Spec) {
			g := &sp.NodeGroups[i]
			g.Boot, g.Stock, g.FailureRate, g.LaunchesPerSecond = scenario.Boot{}, nil, 0, 0
		})
	}
}
