package framework

import "github.com/berthproject/berth/core/cluster"

// This file makes the profile by which pods of nodes that could be removed are packed onto
// the others: every rule filters as it does when the pods' replacements are placed, and the
// fullest node is the best. By the scores of the profile itself the pods would be spread
// over all nodes, and few of these could be given up.

// Packer is implemented by plugins that are others when pods are packed.
type Packer interface {
	// Packing returns the plugin that takes this one's place, nil for none, with the weight
	// of its score. Of plugins that aren't Packers only the filters count.
	Packing() Weighted
}

// Packing returns the profile for packing pods that a profile places, with further plugins
// of which the filters count. It has nothing but plugins that filter or pack.
func Packing(p *Profile, further ...Plugin) *Profile {
	out := &Profile{SchedulerName: p.SchedulerName, Less: p.Less}
	for i := range p.Plugins {
		plugin := p.Plugins[i].Plugin
		if packer, ok := plugin.(Packer); ok {
			if packing := packer.Packing(); packing.Plugin != nil {
				out.Plugins = append(out.Plugins, packing)
			}
		} else if _, filters := plugin.(Waker); filters {
			out.Plugins = append(out.Plugins, Weighted{OnlyFilters(plugin), 0})
		}
	}
	for _, plugin := range further {
		out.Plugins = append(out.Plugins, Weighted{plugin, 0})
	}
	return out
}

// OnlyFilters returns a plugin without the group rules that can reject nothing. Of the
// optional interfaces those are passed on that say when rules are made anew (TermReader,
// Reclassifier), and what pods take (Assumer). The other rules are the plugin's own.
func OnlyFilters(p Plugin) Plugin {
	out := onlyFilters{p}
	terms, readsTerms := p.(TermReader)
	changes, reclassifies := p.(Reclassifier)
	switch {
	case readsTerms && reclassifies:
		return struct {
			onlyFilters
			TermReader
			Reclassifier
		}{out, terms, changes}
	case readsTerms:
		return struct {
			onlyFilters
			TermReader
		}{out, terms}
	case reclassifies:
		return struct {
			onlyFilters
			Reclassifier
		}{out, changes}
	}
	return out
}

type onlyFilters struct{ Plugin }

// Assume implements Assumer.
func (o onlyFilters) Assume(pod *cluster.Pod, n *cluster.Node, state *cluster.State) {
	if a, ok := o.Plugin.(Assumer); ok {
		a.Assume(pod, n, state)
	}
}

// Release implements Assumer.
func (o onlyFilters) Release(pod *cluster.Pod, state *cluster.State) {
	if a, ok := o.Plugin.(Assumer); ok {
		a.Release(pod, state)
	}
}

// For implements Plugin. A group rule that is left out gives back its facts.
func (o onlyFilters) For(pod *cluster.Pod, state *cluster.State) (Rules, *Reason) {
	rules, why := o.Plugin.For(pod, state)
	if x, ok := rules.Group.(NeverFilters); ok && x.NeverFilters() {
		if r, ok := rules.Group.(Releaser); ok {
			r.Release(state)
		}
		rules.Group = nil
	}
	return rules, why
}
