package engine

import (
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/framework"
)

// view is what a class sees of its column for one decision: the column's groups
// of nodes by their number, and after them the single nodes that stand out for
// the class. What a rule reads of the groups lies ready in the column; only the
// single nodes are added, so that many groups cost a pass over dense slices.
type view struct {
	groups int                 // number of groups, free ones included
	alone  []cluster.NodeIndex // the nodes that stand out, after the groups
	nodes  []int32             // candidates by group and single node; 0 is out
	lessen []int32             // by group: feasible nodes that stand out, when some do
	rules  []framework.Groups  // by the class's group rules
	ext    [][]cluster.Domain  // by the column's topologies
	hosts  [][]int32           // by rule, when nodes stand out: 0 for groups
	codes  []framework.Code
	add    []int64 // what the group rules add to the local score
	part   []int64 // what one of them does
	col    *column // that was looked at
	at     int     // the candidate that was chosen
	skip   *stamps // marks the nodes that stand out
	// contested says that other pods are nominated to some of those.
	contested bool
}

// gather lists the candidates: the groups with feasible nodes, and the nodes
// that stand out (in a shared column).
func (v *view) gather(e *Engine, c *Class, col *column) {
	v.skip = &e.skip
	v.groups = len(col.groups)
	v.alone = v.alone[:0]
	v.nodes = append(v.nodes[:0], col.feasible...)
	v.lessen = v.lessen[:0]
	v.contested = false
	if !col.private && len(c.hostFacts) > 0 || len(e.state.Nominations()) > 0 {
		v.standouts(e, c, col)
	}
	for len(v.ext) < len(col.topos) {
		v.ext = append(v.ext, nil)
	}
	for t := range col.topos {
		v.ext[t] = col.domains[t]
		for _, n := range v.alone {
			v.ext[t] = append(v.ext[t], col.domains[t][col.cells[n].group])
		}
		col.domains[t] = v.ext[t][:v.groups]
	}
	for len(v.rules) < len(c.rules) {
		v.rules = append(v.rules, framework.Groups{})
		v.hosts = append(v.hosts, nil)
	}
	for k := range c.rules {
		v.show(c, col, k)
	}
}

// show fills in what the k-th rule sees.
func (v *view) show(c *Class, col *column, k int) {
	g := &v.rules[k]
	g.Nodes = v.nodes
	g.Static = col.static[k]
	if col.private {
		g.Host = col.host[k]
	} else {
		clear(v.hosts[k]) // single nodes of the last decision
		for len(v.hosts[k]) < v.groups {
			v.hosts[k] = append(v.hosts[k], 0)
		}
		g.Host = v.hosts[k][:v.groups]
	}
	for _, n := range v.alone {
		g.Static = append(g.Static, col.static[k][col.cells[n].group])
		g.Host = append(g.Host, c.rules[k].HostKey(n))
	}
	col.static[k] = g.Static[:v.groups]
	if !col.private {
		v.hosts[k] = g.Host
	}
	g.Domains = g.Domains[:0]
	for _, at := range c.rules[k].topos {
		g.Domains = append(g.Domains, v.ext[at])
	}
}

// standouts takes the nodes with a host-level count out of their groups, and
// those that other pods are nominated to.
func (v *view) standouts(e *Engine, c *Class, col *column) {
	e.skip.next(e.state.Len())
	if !col.private {
		for _, f := range c.hostFacts {
			for i := range f.Nonzero() {
				d, _ := f.NonzeroAt(i)
				f.Topology().Members(d, func(n cluster.NodeIndex) { v.single(e, col, n) })
			}
		}
	}
	for _, x := range e.state.Nominations() {
		if x.Node == cluster.NoNode || x.Pod.Priority < c.pod.Priority || !col.cells[x.Node].ok {
			continue
		}
		if !v.contested {
			v.contested = true
			e.contested.next(e.state.Len())
		}
		e.contested.set(x.Node)
		v.single(e, col, x.Node)
	}
	if len(v.alone) == 0 {
		return
	}
	for range v.groups {
		v.lessen = append(v.lessen, 0)
	}
	for _, n := range v.alone {
		g := col.cells[n].group
		v.lessen[g]++
		v.nodes[g]--
	}
	for range v.alone {
		v.nodes = append(v.nodes, 1)
	}
}

// single has a node judged by itself.
func (v *view) single(e *Engine, col *column, n cluster.NodeIndex) {
	if e.skip.set(n) && col.cells[n].ok {
		v.alone = append(v.alone, n)
	}
}

// filter drops the candidates that a group rule rejects, and the nodes that
// don't take the class beside the pods nominated to them; it tells whether any
// are left.
func (v *view) filter(e *Engine, c *Class) bool {
	for len(v.codes) < len(v.nodes) {
		v.codes = append(v.codes, framework.OK)
	}
	codes := v.codes[:len(v.nodes)]
	for k := range c.rules {
		if c.rules[k].lenient {
			continue
		}
		c.rules[k].Filter(&v.rules[k], codes)
		for i, code := range codes {
			if code != framework.OK {
				v.nodes[i] = 0
			}
		}
	}
	if v.contested {
		f := e.newNodeFilter(c)
		for i, n := range v.alone {
			if v.nodes[v.groups+i] != 0 && e.contested.has(n) {
				if f.codeWithNominatedPods(e.state.Node(n)) != framework.OK {
					v.nodes[v.groups+i] = 0
				}
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

// score fills in what the group rules add to each candidate.
func (v *view) score(c *Class) {
	v.add = v.add[:0]
	for range v.nodes {
		v.add = append(v.add, 0)
	}
	for k := range c.rules {
		if w := c.rules[k].weight; w != 0 {
			c.rules[k].Score(&v.rules[k], w, v.add)
		}
	}
}

// key returns the local key of the best node of a candidate.
func (v *view) key(col *column, i int) scoreKey {
	switch {
	case i >= v.groups:
		return col.keyOf(v.alone[i-v.groups])
	case len(v.lessen) == 0 || v.lessen[i] == 0:
		return col.best[i]
	}
	g := col.groups[i]
	key, slot := g.tree.best()
	if key != 0 && v.skip.has(g.nodes[slot]) {
		key, _ = g.tree.bestExcept(func(s int) bool { return v.skip.has(g.nodes[s]) })
	}
	return key
}

// node returns the best node of a candidate.
func (v *view) node(col *column, i int) cluster.NodeIndex {
	if i >= v.groups {
		return v.alone[i-v.groups]
	}
	g := col.groups[i]
	_, slot := g.tree.best()
	if len(v.lessen) > 0 && v.lessen[i] > 0 && v.skip.has(g.nodes[slot]) {
		_, slot = g.tree.bestExcept(func(s int) bool { return v.skip.has(g.nodes[s]) })
	}
	return g.nodes[slot]
}
