package engine

import (
	"slices"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/framework"
)

// What the group rules of one class make of a column, for one decision.
//
// A view is a list of entries: first the column's groups, by their number, free ones
// included; after them the exceptional nodes, each as a group of its own. Exceptional
// are, for one class, the nodes where a host key may not be 0 (in a shared column), and
// those with nominated pods that the class has to leave room for. Their group then
// stands for its other nodes. Nodes that a rule rejects for a host key alone
// (framework.Excluder) are taken out of their group, too, and are in no entry unless
// somebody wants to know why nodes are rejected.
//
// gather, filter and score fill a view in this order; best and nodeOf read it. What
// rules see of the groups lies ready in the column and is not copied: the entries of
// exceptional nodes are appended behind it, in the column's own memory, and cut off
// again. So a view is valid until the column's next sync or the next view of it.
//
// It must hold that an entry is in exactly if some node of it passes all rules, and that
// the best node over all entries, local score plus additive, is the best of the class.

// view is what a class sees of its column. An engine has one, which each decision fills
// anew: nothing in it is kept but memory.
type view struct {
	column *column
	groups int // how many of the entries are groups

	exceptional   []cluster.NodeIndex // of the entries from groups on
	excluded      []cluster.NodeIndex // in no entry
	isExceptional *stamps             // both as a set; made only when the class may have some
	nominated     bool                // some of them are in the engine's set nominated

	nodes    []int32 // by entry: how many nodes pass all rules so far; the entry is out when it is 0
	takenOut []int32 // by group: how many of its feasible nodes are exceptional; empty when none is anywhere
	codes    []framework.Code
	additive []int64 // by entry: what the group rules add to the local score
	part     []int64 // scratch: what one of them adds

	rules   []framework.Groups // by group rule: the entries as it sees them
	domains [][]cluster.Domain // by topology of the column and entry
	hosts   [][]int32          // by group rule and entry; in a shared column, where groups have 0

	chosen int // entry of the best node, once Best has found it
}

// gather lists the entries: the groups with feasible nodes, and the exceptional nodes. With all,
// no node is excluded.
func (v *view) gather(e *Engine, c *Class, col *column, all bool) {
	v.column = col
	v.groups = len(col.groups)
	v.nodes = append(v.nodes[:0], col.feasible...)
	v.isExceptional = &e.exceptional
	v.exceptional, v.excluded, v.takenOut, v.nominated = v.exceptional[:0], v.excluded[:0], v.takenOut[:0], false
	if !col.private && len(c.hostFacts) > 0 || e.state.AnyNominated() {
		v.findExceptional(e, c, all)
	}
	for len(v.domains) < len(col.topologies) {
		v.domains = append(v.domains, nil)
	}
	for t := range col.topologies {
		v.domains[t] = col.domains[t]
		for _, n := range v.exceptional {
			v.domains[t] = append(v.domains[t], col.domains[t][col.cells[n].group])
		}
		col.domains[t] = v.domains[t][:v.groups] // with the memory that was grown
	}
	for len(v.rules) < len(c.groupRules) {
		v.rules = append(v.rules, framework.Groups{})
		v.hosts = append(v.hosts, nil)
	}
	for k := range c.groupRules {
		v.fillRule(c, k)
	}
}

// fillRule fills in what the k-th group rule sees of the entries.
func (v *view) fillRule(c *Class, k int) {
	g, col := &v.rules[k], v.column
	g.Nodes = v.nodes
	g.Static = col.static[k]
	if col.private {
		g.Host = col.host[k]
	} else {
		clear(v.hosts[k]) // exceptional nodes of the last decision
		for len(v.hosts[k]) < v.groups {
			v.hosts[k] = append(v.hosts[k], 0)
		}
		g.Host = v.hosts[k][:v.groups]
	}
	for _, n := range v.exceptional {
		g.Static = append(g.Static, col.static[k][col.cells[n].group])
		g.Host = append(g.Host, c.groupRules[k].HostKey(n))
	}
	col.static[k] = g.Static[:v.groups] // with the memory that was grown
	if !col.private {
		v.hosts[k] = g.Host
	}
	g.Domains = g.Domains[:0]
	for _, t := range c.groupRules[k].topologies {
		g.Domains = append(g.Domains, v.domains[t])
	}
}

// findExceptional lists the excluded and the exceptional nodes, and takes both out of their groups.
func (v *view) findExceptional(e *Engine, c *Class, all bool) {
	col := v.column
	e.exceptional.next(e.state.Len())
	switch {
	case col.private:
	case all:
		eachNonzero(c.hostFacts, v.addExceptional)
	default:
		eachNonzero(c.excluding, v.exclude) // first: an excluded node is no exceptional one
		eachNonzero(c.telling, v.addExceptional)
	}
	for _, n := range e.mayAwaitOthers(c) {
		if !col.cells[n].ok || !slices.ContainsFunc(e.state.Node(n).Nominated, c.LeavesRoomFor) {
			continue
		}
		if !v.nominated {
			v.nominated = true
			e.nominated.next(e.state.Len())
		}
		e.nominated.set(n)
		v.addExceptional(n)
	}
	if len(v.exceptional)+len(v.excluded) == 0 {
		return
	}
	for range v.groups {
		v.takenOut = append(v.takenOut, 0)
	}
	for _, list := range [...][]cluster.NodeIndex{v.exceptional, v.excluded} {
		for _, n := range list {
			g := col.cells[n].group
			v.takenOut[g]++
			v.nodes[g]--
		}
	}
	for range v.exceptional {
		v.nodes = append(v.nodes, 1)
	}
}

// eachNonzero calls f for the nodes of the domains where one of the facts isn't zero, for some of
// them more than once.
func eachNonzero(facts []*cluster.Fact, f func(cluster.NodeIndex)) {
	for _, x := range facts {
		for i := range x.Nonzero() {
			d, _ := x.NonzeroAt(i)
			x.Topology().Members(d, f)
		}
	}
}

// exclude leaves a node out that no local rule rejects.
func (v *view) exclude(n cluster.NodeIndex) {
	if v.isExceptional.set(n) && v.column.cells[n].ok {
		v.excluded = append(v.excluded, n)
	}
}

// addExceptional makes a node an entry of its own, if the local rules allow it and it
// isn't one already.
func (v *view) addExceptional(n cluster.NodeIndex) {
	if v.isExceptional.set(n) && v.column.cells[n].ok {
		v.exceptional = append(v.exceptional, n)
	}
}

// filter drops the entries that a group rule rejects, and the exceptional nodes that
// don't take the class together with the pods nominated to them. It reports whether any
// entry is left.
func (v *view) filter(e *Engine, c *Class) bool {
	for len(v.codes) < len(v.nodes) {
		v.codes = append(v.codes, framework.OK)
	}
	codes := v.codes[:len(v.nodes)]
	for k := range c.groupRules {
		if c.groupRules[k].neverFilters {
			continue
		}
		c.groupRules[k].Filter(&v.rules[k], codes)
		for i, code := range codes {
			if code != framework.OK {
				v.nodes[i] = 0
			}
		}
	}
	if v.nominated {
		f := e.newNodeFilter(c)
		ask := f.codeWithNominatedPods
		if e.remembersBeside(f) {
			ask = f.rememberedBeside
		}
		for i, n := range v.exceptional {
			if v.nodes[v.groups+i] != 0 && e.nominated.has(n) && ask(e.state.Node(n)) != framework.OK {
				v.nodes[v.groups+i] = 0
			}
		}
	}
	for _, n := range v.nodes {
		if n != 0 {
			return true
		}
	}
	return false
}

// score fills in what the group rules add to each entry.
func (v *view) score(c *Class) {
	v.additive = v.additive[:0]
	for range v.nodes {
		v.additive = append(v.additive, 0)
	}
	for k := range c.groupRules {
		if w := c.groupRules[k].weight; w != 0 {
			c.groupRules[k].Score(&v.rules[k], w, v.additive)
		}
	}
}

// best returns the entry with the best node, and that node's key with the additive.
// There must be an entry that is in.
func (v *view) best() (top scoreKey, entry int) {
	from := 0
	if len(v.takenOut) == 0 { // no group lacks a node: their best keys lie side by side
		from = v.groups
		for i, key := range v.column.best {
			if key = key.plus(v.additive[i]); key > top && v.nodes[i] != 0 {
				top, entry = key, i
			}
		}
	}
	for i := from; i < len(v.nodes); i++ {
		if v.nodes[i] == 0 {
			continue
		}
		if key := v.keyOf(i).plus(v.additive[i]); key > top {
			top, entry = key, i
		}
	}
	return top, entry
}

// keyOf returns the key of the best node of an entry, without the additive.
func (v *view) keyOf(entry int) scoreKey {
	switch {
	case entry >= v.groups:
		return v.column.keyOf(v.exceptional[entry-v.groups])
	case len(v.takenOut) == 0 || v.takenOut[entry] == 0:
		return v.column.best[entry]
	}
	key, _ := v.bestOfGroup(entry)
	return key
}

// nodeOf returns the best node of an entry that is in.
func (v *view) nodeOf(entry int) cluster.NodeIndex {
	if entry >= v.groups {
		return v.exceptional[entry-v.groups]
	}
	_, n := v.bestOfGroup(entry)
	return n
}

// bestOfGroup returns the best of a group's nodes that aren't exceptional, and its key;
// key 0 when there is none.
func (v *view) bestOfGroup(entry int) (scoreKey, cluster.NodeIndex) {
	g := v.column.groups[entry]
	key, slot := g.tree.best()
	if len(v.takenOut) > 0 && v.isExceptional.has(g.nodes[slot]) {
		key, slot = g.tree.bestExcept(func(s int) bool { return v.isExceptional.has(g.nodes[s]) })
	}
	return key, g.nodes[slot]
}
