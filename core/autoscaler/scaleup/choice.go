package scaleup

import (
	"math"
	"slices"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/autoscaler/expander"
	"github.com/berthproject/berth/core/engine"
)

// This file writes down what a plan has chosen from, and what else would have held the same pods: as many of each
// class, which no rule tells apart. It costs O(options) for each choice, and with prices O(bundles).

// recordChoice returns how an expander has chosen an option of a round.
func (b *builder) recordChoice(by string, r *round, chosen int) *autoscaler.Choice {
	options := r.options
	choice := &autoscaler.Choice{Plan: b.req.Number, By: by, Options: make([]autoscaler.Option, 0, len(options))}
	for i := range options {
		choice.Options = append(choice.Options, optionFor(&options[i]))
	}
	choice.Unpriced = b.Expander.ReadsPrices() && !slices.ContainsFunc(choice.Options, func(o autoscaler.Option) bool { return o.Price > 0 })
	if !(choice.Options[chosen].Price > 0) {
		return choice
	}
	choice.Nodes, choice.Price = choice.Options[chosen].Nodes, choice.Options[chosen].Price
	held := r.choices[chosen].held()
	for i, o := range choice.Options {
		if i != chosen && o.Price > 0 && o.Pods >= choice.Options[chosen].Pods && r.choices[i].holds(held) {
			choice.Compare(autoscaler.Alternative{Group: o.Group, Nodes: o.Nodes, Price: o.Price})
		}
	}
	return choice
}

// optionFor describes an option of an expander's round.
func optionFor(o *expander.Option) autoscaler.Option {
	out := autoscaler.Option{Group: o.Group.ID, Nodes: o.Nodes, Pods: o.Pods.Len(), Wasted: o.Wasted, Price: o.Price()}
	for _, s := range o.Similar {
		out.With = append(out.With, s.Group.ID)
	}
	return out
}

// held returns how many pods of each class were packed.
func (k *packed) held() map[*engine.Class]int {
	out := map[*engine.Class]int{}
	for _, x := range k.bundles {
		for i := range x.fills {
			out[x.fills[i].class] += len(x.fills[i].pods)
		}
	}
	return out
}

// holds reports whether as many pods of each class were packed.
func (k *packed) holds(want map[*engine.Class]int) bool {
	held := k.held()
	for class, pods := range want {
		if held[class] < pods {
			return false
		}
	}
	return true
}

// recordMix returns what the cheapest mix has of the groups that it could buy of. held is how many pods of each
// class of the problem it holds.
func (b *builder) recordMix(models []*model, bought *packed, problem *mixProblem, held []int) *autoscaler.Choice {
	choice := &autoscaler.Choice{Plan: b.req.Number, By: expander.CostName, Options: make([]autoscaler.Option, 0, len(models))}
	groups := 0
	for _, m := range models {
		option := autoscaler.Option{Group: m.group.ID}
		if k := bought.only(m); k.nodes > 0 {
			option.Nodes, option.Pods, option.Wasted = k.nodes, k.pods.Len(), wasted(k.bundles)
			option.Price = float64(k.nodes) * m.group.Price
			choice.Nodes, choice.Price = choice.Nodes+option.Nodes, choice.Price+option.Price
			groups++
		}
		choice.Options = append(choice.Options, option)
	}
	// The bound is of all pods of the problem. When some of what was solved couldn't be bought it is of too many.
	if solved := b.mix.Price; math.Abs(choice.Price-solved) <= solved*1e-9 {
		choice.LowerBound = b.mix.LowerBound
	}
	for i, o := range choice.Options {
		if groups == 1 && o.Nodes > 0 {
			continue // the group alone is what was chosen
		}
		if nodes := problem.alone(i, held); nodes > 0 {
			choice.Compare(autoscaler.Alternative{Group: o.Group, Nodes: nodes, Price: float64(nodes) * models[i].group.Price})
		}
	}
	return choice
}

// alone returns how many nodes of a group it takes at least for the pods that are held; 0 when the group doesn't take
// them, or may not have as many.
func (p *mixProblem) alone(group int, held []int) int {
	g := &p.groups[group]
	nodes := 0
	requested := make([]int64, len(g.Allocatable))
	for i := range p.classes {
		c := &p.classes[i]
		if held[i] == 0 {
			continue
		}
		if !slices.Contains(c.Takes, group) {
			return 0
		}
		if c.PerNode > 0 {
			nodes = max(nodes, (held[i]+c.PerNode-1)/c.PerNode)
		}
		for d, request := range c.Request {
			requested[d] += request * int64(held[i])
		}
	}
	for d, sum := range requested {
		if sum > 0 { // and the group has some of it, since it takes a pod that asks for it
			nodes = max(nodes, int((sum+g.Allocatable[d]-1)/g.Allocatable[d]))
		}
	}
	if nodes > g.Room {
		return 0
	}
	return nodes
}
