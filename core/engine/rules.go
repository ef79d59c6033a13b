package engine

import (
	"encoding/binary"
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
// The interfaces that a rule may implement besides are looked up once, not for each node.
type localRule struct {
	framework.LocalRule
	many   framework.ManyNodesRule // the same one, nil when it is none
	weight int64
	reads  framework.Aspects
	plugin int // position in the profile
}

// groupRule is a group rule with what the engine knows of it.
type groupRule struct {
	framework.GroupRule
	many         framework.ManyStaticKeys // the same one, nil when it is none
	weight       int64
	plugin       int                 // position in the profile
	topologies   []int               // its topology keys, as positions in its column's topologies
	neverFilters bool                // for the class; then it is only asked for scores
	pods         framework.PodReader // the same rule, nil when it is none
}

// prepare asks every plugin for its rules for a new class.
// It is the only place where all plugins are asked; refresh asks some.
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
// In most calls nothing has changed, and two comparisons are all.
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
// Rules without facts have nothing to give back.
func (e *Engine) release(p *prepared) {
	if r, ok := p.Group.(framework.Releaser); ok {
		r.Release(e.state)
	}
}

// assemble lists the rules that the plugins have prepared, and gives the class the
// column that goes with them.
// It is called whenever a class's rules are new; what was kept for the old ones is dropped.
func (e *Engine) assemble(c *Class) {
	e.dropCaches(c)
	// Counted first, so that each list is allocated once.
	locals, groups := 0, 0
	for i := range c.prepared {
		if c.prepared[i].Local != nil {
			locals++
		}
		if c.prepared[i].Group != nil {
			groups++
		}
	}
	c.hostFacts, c.excluding, c.telling = nil, nil, nil
	c.localRules, c.groupRules = make([]localRule, 0, locals), make([]groupRule, 0, groups)
	c.inOrder = make([]pluginRules, 0, max(locals, groups))
	for i := range c.prepared {
		p, weight := &c.prepared[i], e.profile.Plugins[i].Weight
		if p.Local != nil {
			many, _ := p.Local.(framework.ManyNodesRule)
			c.localRules = append(c.localRules, localRule{p.Local, many, weight, p.Local.Reads(), i})
		}
		if p.Group != nil {
			many, _ := p.Group.(framework.ManyStaticKeys)
			pods, _ := p.Group.(framework.PodReader)
			c.groupRules = append(c.groupRules, groupRule{GroupRule: p.Group, many: many, weight: weight, plugin: i, neverFilters: neverFilters(p.Group), pods: pods})
			c.hostFacts = append(c.hostFacts, p.Group.HostFacts()...)
			if x, ok := p.Group.(framework.Excluder); ok {
				c.excluding = append(c.excluding, x.Excluding()...)
			}
		}
		if p.Local != nil || p.Group != nil {
			x := pluginRules{plugin: i, local: p.Local, localKind: kindOf(p.Local)}
			if p.Group != nil {
				x.group = &c.groupRules[len(c.groupRules)-1] // it has room for all, and doesn't move
			}
			c.inOrder = append(c.inOrder, x)
		}
	}
	for _, f := range c.hostFacts {
		if !slices.Contains(c.excluding, f) {
			c.telling = append(c.telling, f)
		}
	}
	c.firstReader = c.findFirstReader()
	c.narrowed = e.narrowingOf(c.localRules)
	c.Rejected = c.rejectedEverywhere()
	old := c.topologies
	c.topologies = e.holdTopologies(c.useTopologies())
	e.releaseTopologies(old) // last: what both hold needn't be made again
	if c.byName {
		e.byName--
	}
	c.shared, c.byName = nil, c.narrowed.few() && !e.options.Rebuilt
	// Classes that name their nodes have no column: their answers cost less than to keep
	// one.
	if c.byName {
		e.byName++
		c.seed = e.rankSeed(c)
	} else {
		c.shared = e.sharedColumn(c)
		c.seed = c.shared.seed
	}
}

// kindOf returns the kind of a local rule, which may be nil.
// Rules about the object alone change less often than those about pods.
func kindOf(r framework.LocalRule) kinds {
	if r != nil && r.Reads()&framework.ReadsPods != 0 {
		return podRules
	}
	return objectRules
}

// findFirstReader returns what Class.firstReader is.
// From that plugin on, answers depend on pods.
func (c *Class) findFirstReader() int {
	for i := range c.inOrder {
		if x := &c.inOrder[i]; x.local != nil && x.localKind == podRules || x.group != nil && !x.group.neverFilters {
			return x.plugin
		}
	}
	return len(c.prepared)
}

// neverFilters reports whether a rule says that it only scores.
func neverFilters(r framework.GroupRule) bool {
	x, ok := r.(framework.NeverFilters)
	return ok && x.NeverFilters()
}

// useTopologies returns the topology keys of the class's group rules, each once, and has each
// rule know where its own are among them.
// Rules of several plugins often use the same keys.
func (c *Class) useTopologies() (keys []string) {
	for k := range c.groupRules {
		r := &c.groupRules[k]
		r.topologies = nil
		for _, key := range r.TopologyKeys() {
			at := slices.Index(keys, key)
			if at < 0 {
				at = len(keys)
				keys = append(keys, key)
			}
			r.topologies = append(r.topologies, at)
		}
	}
	return keys
}

// holdTopologies makes the state keep the domains of these keys up to date.
func (e *Engine) holdTopologies(keys []string) (out []*cluster.Topology) {
	for _, key := range keys {
		out = append(out, e.state.HoldTopology(key))
	}
	return out
}

// sharedColumn returns the column for classes with the same local signature and the same
// kinds of structure: which plugins group nodes, and by which topology keys.
func (e *Engine) sharedColumn(c *Class) *column {
	// The buffer is used again, so that a class that finds its column allocates nothing.
	id := &e.columnKey
	id.Reset()
	id.Str(c.local)
	id.Str(c.localEnds)
	for k := range c.groupRules {
		r := &c.groupRules[k]
		id.Int(int64(r.plugin))
		id.Int(int64(len(r.topologies)))
		for _, at := range r.topologies {
			id.Str(c.topologies[at].Key)
		}
	}
	col, ok := e.columns[string(id.Bytes())]
	if !ok {
		col = e.newColumn(c)
		for _, t := range col.topologies {
			e.state.HoldTopology(t.Key)
		}
		key := e.signRules(c)
		// Of columns with the same local rules the first evaluates them for all.
		if col.source, ok = e.sources[key]; !ok {
			e.sources[key] = col
			e.keyBytes += len(key)
		}
		e.columns[string(id.Bytes())] = col
		e.keyBytes += len(id.Bytes())
	}
	return col
}

// signRules returns what the plugins with local rules have signed of the class for those, each
// behind its number.
// Two classes with the same text have the same local rules, whatever group rules they have.
func (e *Engine) signRules(c *Class) string {
	var id framework.Signature
	ends, from, k := []byte(c.localEnds), 0, 0
	for plugin := range e.profile.Plugins {
		end, n := binary.Varint(ends) // as Engine.Class wrote it
		ends = ends[n:]
		if k < len(c.localRules) && c.localRules[k].plugin == plugin {
			id.Int(int64(plugin))
			id.Str(c.local[from:end])
			k++
		}
		from = int(end)
	}
	return string(id.Bytes())
}

// newColumn returns a column with the class's rules and no nodes. What of the rules
// counts is the same for all classes that will share it.
func (e *Engine) newColumn(c *Class) *column {
	return &column{state: e.state, localRules: c.localRules, groupRules: c.groupRules, topologies: c.topologies, narrowed: c.narrowed, firstReader: c.firstReader, seed: e.rankSeed(c), options: e.options, scratch: &e.scratch}
}

// rankSeed returns the seed of ranks, which is the same for all classes of the same local signature.
func (e *Engine) rankSeed(c *Class) uint64 {
	h := fnv.New64a()
	h.Write([]byte(c.local))
	return h.Sum64() ^ e.options.Seed
}
