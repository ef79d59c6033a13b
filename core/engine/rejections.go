package engine

// Which nodes reject a class, counted by reason. Each node counts for the first rule that
// rejects it, in the profile's order. What the local rules reject is in the column's tally,
// what group rules reject is asked of groups, as for a decision: so it costs O(touched nodes +
// groups + exceptional nodes + nodes with nominated pods × rules), not O(nodes). Where a group
// rule comes before a local rule that rejects nodes, each node is asked by itself (precedes). Of a
// class that is judged by name the named nodes are.

import (
	"slices"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/framework"
)

// rejected counts the nodes that are rejected for one reason.
type rejected struct {
	why   *framework.Reason
	nodes int
	// node is the first of them when why has deficits, which then are the same on all of them;
	// NoNode when only the tally knows the deficits.
	node cluster.NodeIndex
}

// rejections are the nodes that reject a class.
type rejections struct {
	list    []rejected // a reason may be in it more than once, or with no nodes
	hinting pluginSet  // the plugins whose group rules are among those that reject
	// column is whose tally list was begun with, nil for none; apart are the nodes that count
	// otherwise than it has them.
	column *column
	apart  []cluster.NodeIndex
}

// rejections returns the nodes that reject a class. It is valid until the next call. The class
// must not be rejected everywhere.
func (e *Engine) rejections(c *Class) *rejections {
	r := &e.rejected
	r.list, r.hinting, r.column, r.apart = r.list[:0], pluginSet{}, nil, r.apart[:0]
	var f *nodeFilter
	remembers := false
	one := func(n *cluster.Node, settled kinds) {
		if f == nil {
			f = e.newNodeFilter(c)
			remembers = !c.ByName() && !c.LooksBeyondNode() && e.remembersBeside(f)
		}
		if why, by := f.reasonBeside(n, settled, remembers); why != nil {
			r.add(rejected{why, 1, n.Index}, by)
		}
	}
	if c.ByName() {
		nodes := e.nodesOf(c)
		for _, n := range nodes {
			one(n, 0)
		}
		r.add(rejected{c.narrowed.reason(), e.state.Live() - len(nodes), cluster.NoNode}, noPlugin)
		return r
	}
	col := e.syncedColumn(c)
	t := col.counted()
	if e.options.Rebuilt || !t.precedes(c) {
		e.state.Nodes(func(n *cluster.Node) { one(n, 0) })
		return r
	}
	v := &e.view
	v.gather(e, c, col, true)
	r.column, r.list = col, t.appendTo(r.list)
	// Nominated pods may have another rule reject their node, or one reject it at all.
	for k, i := range v.exceptional {
		if v.nominated && e.nominated.has(i) {
			v.nodes[v.groups+k] = 0
		}
	}
	for _, i := range e.mayAwaitOthers(c) {
		n := e.state.Node(i)
		if !slices.ContainsFunc(n.Nominated, c.LeavesRoomFor) {
			continue
		}
		settled := objectRules | podRules
		if t.rejectedBefore(i, c.firstReader) {
			continue // whatever pods are there
		}
		if number := t.number(i); number != 0 {
			r.list[number].nodes--
			r.apart = append(r.apart, i)
			settled = 0
		}
		one(n, settled)
	}
	for k := range c.groupRules {
		v.rejectBy(&c.groupRules[k], k, r)
	}
	return r
}

// add adds nodes that are rejected by a plugin's group rule, or by a local rule (noPlugin).
func (r *rejections) add(x rejected, by int) {
	r.list = append(r.list, x)
	if by != noPlugin {
		r.hinting = r.hinting.with(by)
	}
}

// rejectBy adds the entries that the k-th group rule rejects, and drops them.
func (v *view) rejectBy(rule *groupRule, k int, r *rejections) {
	if rule.neverFilters {
		return
	}
	for len(v.codes) < len(v.nodes) {
		v.codes = append(v.codes, framework.OK)
	}
	codes := v.codes[:len(v.nodes)]
	rule.Filter(&v.rules[k], codes)
	for i, code := range codes {
		if code == framework.OK || v.nodes[i] == 0 {
			continue
		}
		x := rejected{rule.Explain(&v.rules[k], i), int(v.nodes[i]), cluster.NoNode}
		if hasDeficits(x.why) {
			x.node = v.firstOf(i)
		}
		r.add(x, rule.plugin)
		v.nodes[i] = 0
	}
}

// firstOf returns the node of the lowest index of an entry that is in.
func (v *view) firstOf(entry int) cluster.NodeIndex {
	if entry >= v.groups {
		return v.exceptional[entry-v.groups]
	}
	first := cluster.NoNode
	for _, i := range v.column.groups[entry].nodes {
		if v.column.cells[i].ok && (len(v.takenOut) == 0 || !v.isExceptional.has(i)) && (first == cluster.NoNode || i < first) {
			first = i
		}
	}
	return first
}

// counts returns the counts with what comes nearest: the smallest deficit on any node, the first
// of equal ones. They are in the memory of out.
func (r *rejections) counts(out []Count, s *cluster.State) []Count {
	out = countsOf(out, r.list)
	for k := range out {
		x := &out[k]
		at := cluster.NoNode
		nearer := func(i cluster.NodeIndex, d framework.Deficit) {
			if i == cluster.NoNode {
				return
			}
			if at == cluster.NoNode || shortfall(d) < shortfall(x.Nearest.Deficit) || shortfall(d) == shortfall(x.Nearest.Deficit) && i < at {
				at, x.Nearest = i, &NearestShortfall{d, s.Node(i).Name}
			}
		}
		if r.column != nil {
			nearer(r.column.tally.nearest(r.column, x.Message, r.apart))
		}
		for i := range r.list {
			y := &r.list[i]
			if y.nodes == 0 || y.node == cluster.NoNode || !hasDeficits(y.why) {
				continue
			}
			if m := slices.Index(y.why.Messages, x.Message); m >= 0 {
				nearer(y.node, y.why.Deficits[m])
			}
		}
	}
	return out
}
