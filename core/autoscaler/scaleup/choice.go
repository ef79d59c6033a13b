package scaleup

import (
	"slices"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/autoscaler/expander"
)

// This file writes down what a plan has chosen from. It costs O(options) for each choice.

// recordChoice returns what an expander has chosen from.
func (b *builder) recordChoice(by string, options []expander.Option) *autoscaler.Choice {
	choice := &autoscaler.Choice{Plan: b.req.Number, By: by, Options: make([]autoscaler.Option, 0, len(options))}
	for i := range options {
		o := &options[i]
		option := autoscaler.Option{Group: o.Group.ID, Nodes: o.Nodes, Pods: o.Pods.Len(), Wasted: o.Wasted, Price: o.Price()}
		for _, s := range o.Similar {
			option.With = append(option.With, s.Group.ID)
		}
		choice.Options = append(choice.Options, option)
	}
	choice.Unpriced = b.Expander.ReadsPrices() && !slices.ContainsFunc(choice.Options, func(o autoscaler.Option) bool { return o.Price > 0 })
	return choice
}

// recordMix returns what the cheapest mix has of the groups that it could buy of.
func (b *builder) recordMix(models []*model, bought *packed) *autoscaler.Choice {
	choice := &autoscaler.Choice{Plan: b.req.Number, By: expander.CostName, Options: make([]autoscaler.Option, 0, len(models))}
	for _, m := range models {
		option := autoscaler.Option{Group: m.group.ID}
		if k := bought.only(m); k.nodes > 0 {
			option.Nodes, option.Pods, option.Wasted = k.nodes, k.pods.Len(), wasted(k.bundles)
			option.Price = float64(k.nodes) * m.group.Price
		}
		choice.Options = append(choice.Options, option)
	}
	return choice
}
