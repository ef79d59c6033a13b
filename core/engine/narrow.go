package engine

// Classes that rules narrow to a few nodes, which they name (framework.Narrower): pods of a
// DaemonSet, each with its node's name in its affinity.
//
// Such a class has no column of all nodes, no tally and keeps no dry runs. Each question asks the
// rules about the named nodes alone, from nothing, and counts the other nodes as left out: it costs
// O(named nodes × rules), however many nodes there are and whatever has changed. What group rules
// make of the nodes is asked of a column that holds only these (Engine.named), so that everything
// behind a column is the same for all classes.
//
// A class with more names than maxNamed is treated as any other: following the changes in a column
// costs less than asking about all of them each time. Both give the same answers.

import (
	"slices"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/framework"
)

// maxNamed is how many names a class may be narrowed to that has no column.
const maxNamed = 16

// narrowing is what rules leave of the nodes for a class, before any rule is asked about one. A nil
// narrowing leaves all.
type narrowing struct {
	names   []string // of the nodes that are left, sorted; there may be no such nodes
	plugins []string // whose rules name them, in the order of the profile
	last    int      // the plugin that was the last to name some, as an index in the profile
}

// narrowingOf returns what the local rules that are Narrowers leave together: the nodes that each of
// them names. With no node left it asks no further, as kube-scheduler runs no other PreFilter plugin.
func (e *Engine) narrowingOf(rules []localRule) *narrowing {
	var out *narrowing
	for k := range rules {
		x, ok := rules[k].LocalRule.(framework.Narrower)
		if !ok {
			continue
		}
		names := x.NarrowsTo()
		if names == nil {
			continue
		}
		if out == nil {
			out = &narrowing{names: names}
		} else {
			out.names = slices.DeleteFunc(slices.Clone(out.names), func(name string) bool {
				_, ok := slices.BinarySearch(names, name)
				return !ok
			})
		}
		out.last = rules[k].plugin
		out.plugins = append(out.plugins, e.profile.Plugins[out.last].Name())
		if len(out.names) == 0 {
			break
		}
	}
	return out
}

// rejectedEverywhere returns why the class is rejected before any node is looked at, nil when it
// isn't: by the first plugin that says so, or since those up to it leave no name.
func (c *Class) rejectedEverywhere() *framework.Reason {
	at := slices.IndexFunc(c.prepared, func(p prepared) bool { return p.reason != nil })
	switch x := c.narrowed; {
	case x != nil && len(x.names) == 0 && (at < 0 || x.last < at):
		return framework.NoneLeft(x.sortedPlugins()...)
	case at >= 0:
		return c.prepared[at].reason
	}
	return nil
}

// sortedPlugins returns the plugins that narrow.
func (x *narrowing) sortedPlugins() []string { return slices.Sorted(slices.Values(x.plugins)) }

// reason returns why all other nodes are left out.
func (x *narrowing) reason() *framework.Reason {
	return framework.LeftOut(x.sortedPlugins()...)
}

// leavesOut reports whether a node isn't among those that are left.
func (x *narrowing) leavesOut(n *cluster.NodeInfo) bool {
	if x == nil {
		return false
	}
	_, ok := slices.BinarySearch(x.names, n.Name)
	return !ok
}

// few reports whether there are so few names that asking about each node costs the least.
func (x *narrowing) few() bool { return x != nil && len(x.names) <= maxNamed }

// ByName reports whether the class is judged on nodes that it names, without a column. Its pods
// seldom have another to come that is of the class.
func (c *Class) ByName() bool { return c.byName }

// nodesOf returns those of the nodes that are there on which a class that is judged by name may
// be, by index. The list is valid until the next call.
func (e *Engine) nodesOf(c *Class) []*cluster.Node {
	e.namedNodes = e.namedNodes[:0]
	for _, name := range c.narrowed.names {
		if n := e.state.NodeByName(name); n != nil {
			e.namedNodes = append(e.namedNodes, n)
		}
	}
	if len(e.namedNodes) > 1 {
		slices.SortFunc(e.namedNodes, func(a, b *cluster.Node) int { return int(a.Index) - int(b.Index) })
	}
	return e.namedNodes
}

// openTo returns the nodes that the class isn't kept from by name, by index.
func (e *Engine) openTo(c *Class) (out []cluster.NodeIndex) {
	if c.Rejected == nil && c.ByName() {
		for _, n := range e.nodesOf(c) {
			out = append(out, n.Index)
		}
		return out
	}
	e.state.Nodes(func(n *cluster.Node) { out = append(out, n.Index) })
	return out
}

// namedColumn returns a column with the named nodes of a class that is judged by name, and no
// others. It is valid until the next call.
func (e *Engine) namedColumn(c *Class) *column {
	col := &e.named
	for k := range col.groups {
		for _, i := range col.groups[k].nodes {
			col.cells[i] = cell{group: -1}
		}
	}
	col.failing = 0
	for len(col.cells) < e.state.Len() {
		col.cells = append(col.cells, cell{group: -1})
	}
	col.localRules, col.groupRules, col.topologies, col.seed = c.localRules, c.groupRules, c.topologies, c.seed
	col.reset(len(c.topologies), len(c.groupRules))
	e.scratch.object.next(e.state.Len())
	touched := e.scratch.touched[:0]
	for _, n := range e.nodesOf(c) {
		e.scratch.object.set(n.Index)
		touched = append(touched, n.Index)
	}
	col.evaluate(touched)
	e.scratch.touched = touched
	return col
}

// sinceTouched returns the changes from the first one on that touched a named node of a class that
// is judged by name; none when none did.
func (e *Engine) sinceTouched(c *Class, changes []cluster.Change) []cluster.Change {
	nodes := e.nodesOf(c)
	for i := range changes {
		for _, n := range nodes {
			if changes[i].Node == n.Index {
				return changes[i:]
			}
		}
	}
	return nil
}

// whyNoVictimsByName returns why preemption doesn't help a class that is judged by name.
func (e *Engine) whyNoVictimsByName(c *Class) []rejected {
	nodes := e.nodesOf(c)
	out := []rejected{{why: notHelpful, nodes: e.state.Live() - len(nodes)}}
	f := e.newNodeFilter(c)
	for _, n := range nodes {
		why := notHelpful // where it does, as of nodes that need none
		if e.dryRun(f, n) == nil {
			why = e.whyNoVictims(f, n)
		}
		out = append(out, rejected{why: why, nodes: 1})
	}
	return out
}
