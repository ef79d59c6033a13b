package engine

import (
	"hash/fnv"
	"slices"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/framework"
)

// The rules that plugins made for a class.
//
// A plugin makes its rules once for a class. They hold no counts, so they serve in
// every state, but for one thing: which terms of placed pods they read was settled when
// they were made. Every question about a class begins with refresh, which has plugins
// make their rules again when a term that they read has come since, or may have been
// forgotten; with other rules the class has another column and forgets what it kept.

// prepared is what a plugin answered when it was asked for a class's rules.
type prepared struct {
	framework.Rules
	reason *framework.Reason // rejects the class everywhere
}

// localRule is a local rule with what the engine knows of it.
type localRule struct {
	framework.LocalRule
	weight int64
	reads  framework.Aspects
	plugin int // position in the profile
}

// groupRule is a group rule with what the engine knows of it.
type groupRule struct {
	framework.GroupRule
	weight       int64
	plugin       int   // position in the profile
	topologies   []int // its topology keys, as positions in its column's topologies
	neverFilters bool  // for the class; then it is only asked for scores
}

// prepare asks every plugin for its rules for a new class.
func (e *Engine) prepare(c *Class) {
	c.termsMet, c.termsForgotten = e.state.TermsMet(), e.state.TermsForgotten()
	c.prepared = make([]prepared, len(e.profile.Plugins))
	for i := range e.profile.Plugins {
		c.prepared[i].Rules, c.prepared[i].reason = e.profile.Plugins[i].For(c.pod, e.state)
	}
	e.assemble(c)
}

// refresh makes rules anew that read a term of placed pods which has come since they
// were made. When terms were forgotten it makes all rules anew that read terms: these may
// hold facts about owners that there can't be any more.
func (e *Engine) refresh(c *Class) {
	met, forgotten := e.state.TermsMet(), e.state.TermsForgotten()
	if c.termsMet == met && c.termsForgotten == forgotten {
		return
	}
	var stale []int
	for i := range e.profile.Plugins {
		reader, ok := e.profile.Plugins[i].Plugin.(framework.TermReader)
		if ok && (c.termsForgotten != forgotten ||
			slices.ContainsFunc(e.state.TermsSince(c.termsMet), func(t *cluster.Term) bool { return reader.ReadsTerm(c.pod, e.state, t) })) {
			stale = append(stale, i)
		}
	}
	c.termsMet, c.termsForgotten = met, forgotten
	if stale == nil {
		return
	}
	for _, i := range stale {
		old := c.prepared[i]
		c.prepared[i].Rules, c.prepared[i].reason = e.profile.Plugins[i].For(c.pod, e.state)
		e.release(&old) // last: facts that both hold needn't be counted again
	}
	e.assemble(c)
}

// release gives back the facts that the rules hold.
func (e *Engine) release(p *prepared) {
	if r, ok := p.Group.(framework.Releaser); ok {
		r.Release(e.state)
	}
}

// assemble lists the rules that the plugins have prepared, and gives the class the
// column that goes with them.
func (e *Engine) assemble(c *Class) {
	c.Rejected, c.localRules, c.groupRules, c.hostFacts = nil, nil, nil, nil
	e.dropCaches(c)
	for i := range c.prepared {
		p, weight := &c.prepared[i], e.profile.Plugins[i].Weight
		if p.reason != nil && c.Rejected == nil {
			c.Rejected = p.reason
		}
		if p.Local != nil {
			c.localRules = append(c.localRules, localRule{p.Local, weight, p.Local.Reads(), i})
		}
		if p.Group != nil {
			c.groupRules = append(c.groupRules, groupRule{GroupRule: p.Group, weight: weight, plugin: i, neverFilters: neverFilters(p.Group)})
			c.hostFacts = append(c.hostFacts, p.Group.HostFacts()...)
		}
	}
	c.shared = e.sharedColumn(c)
}

func neverFilters(r framework.GroupRule) bool {
	x, ok := r.(framework.NeverFilters)
	return ok && x.NeverFilters()
}

// sharedColumn returns the column for classes with the same local rules and the same
// kinds of structure: which plugins group nodes, and by which topology keys. It sets
// the topologies of the class's group rules.
func (e *Engine) sharedColumn(c *Class) *column {
	var keys []string
	at := map[string]int{}
	var id framework.Signature
	id.Str(c.local)
	id.Str(c.localEnds)
	for k := range c.groupRules {
		r := &c.groupRules[k]
		own := r.TopologyKeys()
		id.Int(int64(r.plugin))
		id.Int(int64(len(own)))
		for _, key := range own {
			if _, ok := at[key]; !ok {
				at[key] = len(keys)
				keys = append(keys, key)
			}
			r.topologies = append(r.topologies, at[key])
			id.Str(key)
		}
	}
	col, ok := e.columns[string(id.Bytes())]
	if !ok {
		col = e.newColumn(c)
		for _, key := range keys {
			col.topologies = append(col.topologies, e.state.HoldTopology(key))
		}
		e.columns[string(id.Bytes())] = col
		e.keyBytes += len(id.Bytes())
	}
	return col
}

// newColumn returns a column with the class's rules and no nodes. What of the rules
// counts is the same for all classes that will share it.
func (e *Engine) newColumn(c *Class) *column {
	h := fnv.New64a()
	h.Write([]byte(c.local))
	return &column{state: e.state, localRules: c.localRules, groupRules: c.groupRules, seed: h.Sum64() ^ e.options.Seed, options: e.options}
}
