package engine

// Which nodes reject a class, counted by reason. Each node counts for the first rule that
// rejects it, in the profile's order. What the local rules reject is in the column's tally,
// what group rules reject is asked of groups, as for a decision: so it costs O(touched nodes +
// groups + exceptional nodes + nodes with nominated pods × rules), not O(nodes).

import (
	"slices"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/framework"
)

// rejected counts the nodes that are rejected for one reason.
type rejected struct {
	why   *framework.Reason // its deficits are those of one of the nodes
	nodes int
}

// rejections returns the reasons for which nodes reject a class, a reason more than once if
// need be, and the plugins whose group rules are among those that reject. The list is valid until
// the next call. The class must not be rejected everywhere.
func (e *Engine) rejections(c *Class) (list []rejected, hinting pluginSet) {
	list = e.rejectedBuf[:0]
	defer func() { e.rejectedBuf = list[:0] }()
	var f *nodeFilter
	one := func(n *cluster.Node) {
		if f == nil {
			f = e.newNodeFilter(c)
		}
		if why, by := f.reason(n); why != nil {
			list = append(list, rejected{why, 1})
			if by != noPlugin {
				hinting = hinting.with(by)
			}
		}
	}
	col := e.syncedColumn(c)
	t := col.counted()
	if e.options.Rebuilt || !t.precedes(c) {
		e.state.Nodes(one)
		return list, hinting
	}
	v := &e.view
	v.gather(e, c, col)
	list = t.appendTo(list)
	// Nominated pods may have another rule reject their node, or one reject it at all.
	for k, i := range v.exceptional {
		if v.nominated && e.nominated.has(i) {
			v.nodes[v.groups+k] = 0
		}
	}
	for _, i := range e.state.NominatedNodes() {
		n := e.state.Node(i)
		if !slices.ContainsFunc(n.Nominated, c.LeavesRoomFor) {
			continue
		}
		if at := t.number(i); at != 0 {
			list[at].nodes--
		}
		one(n)
	}
	for k := range c.groupRules {
		hinting = v.rejectionsOf(&c.groupRules[k], k, &list, hinting)
	}
	return slices.DeleteFunc(list, func(r rejected) bool { return r.nodes == 0 }), hinting
}

// rejectionsOf adds the entries that the k-th group rule rejects, and drops them.
func (v *view) rejectionsOf(r *groupRule, k int, list *[]rejected, hinting pluginSet) pluginSet {
	if r.neverFilters {
		return hinting
	}
	for len(v.codes) < len(v.nodes) {
		v.codes = append(v.codes, framework.OK)
	}
	codes := v.codes[:len(v.nodes)]
	r.Filter(&v.rules[k], codes)
	for i, code := range codes {
		if code == framework.OK || v.nodes[i] == 0 {
			continue
		}
		*list = append(*list, rejected{r.Explain(&v.rules[k], i), int(v.nodes[i])})
		hinting = hinting.with(r.plugin)
		v.nodes[i] = 0
	}
	return hinting
}
