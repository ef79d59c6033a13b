package engine

import (
	"github.com/berthproject/berth/cluster"
	"github.com/berthproject/berth/framework"
)

// Choice is a node for a pod, with its total score.
type Choice struct {
	Node  cluster.NodeIndex
	Score int64
	// Writes are objects that placing the pod has changed in the state. They
	// have to be written, and take effect, before the pod is bound.
	Writes []cluster.ObjectChange
}

// Best returns the best node for a pod of the class; ok is false when there is
// none. It doesn't change the state.
func (e *Engine) Best(c *Class) (best Choice, ok bool) {
	e.refresh(c)
	if c.Rejected != nil {
		return Choice{Node: cluster.NoNode}, false
	}
	col := e.column(c)
	e.gather(c, col)
	e.filter(c)
	e.score(c)
	var top uint64
	best.Node = cluster.NoNode
	for i := range e.cand.list {
		key, node := e.top(col, &e.cand.list[i])
		if key == 0 {
			continue
		}
		if key += uint64(e.cand.add[i]) << rankBits; key > top {
			top, best.Node = key, node
		}
	}
	best.Score = scoreOf(top)
	return best, best.Node != cluster.NoNode
}

// Place puts the pod on the best node, if there is one.
func (e *Engine) Place(c *Class, p *cluster.Pod) (Choice, bool) {
	best, ok := e.Best(c)
	if ok {
		best.Writes = e.PlaceOn(p, best.Node)
	}
	return best, ok
}

// PlaceOn puts the pod on a node in hand, and has the plugins take what it
// needs there.
func (e *Engine) PlaceOn(p *cluster.Pod, n cluster.NodeIndex) []cluster.ObjectChange {
	e.state.PlaceAt(p, n)
	if len(p.Claims) == 0 {
		return nil
	}
	return e.reserve(p, n)
}

// reserve has the plugins take what the pod needs on its node.
func (e *Engine) reserve(p *cluster.Pod, n cluster.NodeIndex) []cluster.ObjectChange {
	from := e.state.Head()
	for i := range e.profile.Plugins {
		if r, ok := e.profile.Plugins[i].Plugin.(framework.Reserver); ok {
			r.Reserve(p, e.state.Node(n), e.state)
		}
	}
	changes, _ := e.state.Since(from)
	var out []cluster.ObjectChange
	for i := range changes {
		if changes[i].Op == cluster.ObjectSet {
			out = append(out, *changes[i].Object)
		}
	}
	return out
}

// PlaceMany places pods of one class in order until one finds no node, and
// returns how many it placed. Each calls back with its node. A pod with claims
// is signed again when its turn comes: the one before may have taken them.
func (e *Engine) PlaceMany(c *Class, pods []*cluster.Pod, placed func(*cluster.Pod, Choice)) int {
	for i, p := range pods {
		c = e.Current(c, p)
		choice, ok := e.Place(c, p)
		if !ok {
			return i
		}
		placed(p, choice)
	}
	return len(pods)
}

// candidates are groups of nodes and single nodes, with what each group rule
// sees of them in parallel slices.
type candidates struct {
	list  []candidate
	rules []framework.Groups // by the class's group rules
	codes []framework.Code
	add   []int64 // what the group rules add to the local score
	out   []int32 // by group of the column: feasible nodes judged on their own
}

func (c *candidates) outOf(groups int) {
	c.out = c.out[:0]
	for range groups {
		c.out = append(c.out, 0)
	}
}

type candidate struct {
	group int32             // the group, or for a single node its group
	node  cluster.NodeIndex // NoNode for a group
	skips bool              // some nodes of the group are judged on their own
}

func (c *candidates) reset(rules []groupRule) {
	c.list = c.list[:0]
	for len(c.rules) < len(rules) {
		c.rules = append(c.rules, framework.Groups{})
	}
	for k := range rules {
		g := &c.rules[k]
		g.Nodes, g.Static, g.Host = g.Nodes[:0], g.Static[:0], g.Host[:0]
		for len(g.Domains) < len(rules[k].topos) {
			g.Domains = append(g.Domains, nil)
		}
		g.Domains = g.Domains[:len(rules[k].topos)]
		for t := range g.Domains {
			g.Domains[t] = g.Domains[t][:0]
		}
	}
}

// push adds a candidate with its group's structural key.
func (c *candidates) push(cand candidate, nodes int32, key []int32, topos int, rules []groupRule, host func(k int) int32) {
	c.list = append(c.list, cand)
	for k := range rules {
		g := &c.rules[k]
		g.Nodes = append(g.Nodes, nodes)
		g.Static = append(g.Static, key[topos+k])
		g.Host = append(g.Host, host(k))
		for t, at := range rules[k].topos {
			g.Domains[t] = append(g.Domains[t], cluster.Domain(key[at]))
		}
	}
}

// keep moves candidate from to place to.
func (c *candidates) keep(from, to, rules int) {
	c.list[to] = c.list[from]
	for k := range c.rules[:rules] {
		g := &c.rules[k]
		g.Nodes[to], g.Static[to], g.Host[to] = g.Nodes[from], g.Static[from], g.Host[from]
		for t := range g.Domains {
			g.Domains[t][to] = g.Domains[t][from]
		}
	}
}

func (c *candidates) truncate(n, rules int) {
	c.list = c.list[:n]
	for k := range c.rules[:rules] {
		g := &c.rules[k]
		g.Nodes, g.Static, g.Host = g.Nodes[:n], g.Static[:n], g.Host[:n]
		for t := range g.Domains {
			g.Domains[t] = g.Domains[t][:n]
		}
	}
}

func noHost(int) int32 { return 0 }

// gather lists the candidates of a class: the groups with feasible nodes, and
// the nodes that stand out for this class (in a shared column).
func (e *Engine) gather(c *Class, col *column) {
	e.cand.reset(c.rules)
	topos := len(col.topos)
	e.hosts = e.hosts[:0]
	if !col.private && len(c.hostFacts) > 0 {
		e.standouts(c)
	}
	e.cand.outOf(len(col.groups))
	for _, i := range e.hosts {
		cl := &col.cells[i]
		if !cl.ok {
			continue
		}
		e.cand.out[cl.group]++
		e.cand.push(candidate{cl.group, i, false}, 1, col.groups[cl.group].key, topos, c.rules,
			func(k int) int32 { return c.rules[k].HostKey(i) })
	}
	for id, g := range col.groups {
		if g == nil {
			continue
		}
		out := e.cand.out[id]
		if g.feasible-out == 0 {
			continue
		}
		host := noHost
		if col.private {
			host = func(k int) int32 { return g.key[topos+len(c.rules)+k] }
		}
		e.cand.push(candidate{int32(id), cluster.NoNode, out > 0}, g.feasible-out, g.key, topos, c.rules, host)
	}
}

// standouts lists the nodes with a host-level count for this class.
func (e *Engine) standouts(c *Class) {
	e.skip.next(e.state.Len())
	for _, f := range c.hostFacts {
		for i := range f.Nonzero() {
			d, _ := f.NonzeroAt(i)
			f.Topology().Members(d, func(n cluster.NodeIndex) {
				if e.skip.set(n) {
					e.hosts = append(e.hosts, n)
				}
			})
		}
	}
}

// filter drops the candidates that a group rule rejects.
func (e *Engine) filter(c *Class) {
	cand := &e.cand
	n := len(cand.list)
	for k := range c.rules {
		cand.codes = cand.codes[:0]
		for range n {
			cand.codes = append(cand.codes, framework.OK)
		}
		c.rules[k].Filter(&cand.rules[k], cand.codes)
		kept := 0
		for i := range n {
			if cand.codes[i] != framework.OK {
				continue
			}
			if kept != i {
				cand.keep(i, kept, len(c.rules))
			}
			kept++
		}
		if kept < n {
			cand.truncate(kept, len(c.rules))
			n = kept
		}
	}
}

// score fills in what the group rules add to each candidate.
func (e *Engine) score(c *Class) {
	cand := &e.cand
	cand.add = cand.add[:0]
	for range cand.list {
		cand.add = append(cand.add, 0)
	}
	if len(cand.list) == 0 {
		return
	}
	for k := range c.rules {
		c.rules[k].Score(&cand.rules[k], c.rules[k].weight, cand.add)
	}
}

// top returns the best node of a candidate and its local key.
func (e *Engine) top(col *column, cand *candidate) (uint64, cluster.NodeIndex) {
	if cand.node != cluster.NoNode {
		return col.keyOf(cand.node), cand.node
	}
	g := col.groups[cand.group]
	key, slot := g.tree.best()
	if cand.skips && key != 0 && e.skip.has(g.nodes[slot]) {
		key, slot = g.tree.bestExcept(func(s int) bool { return e.skip.has(g.nodes[s]) })
	}
	if key == 0 {
		return 0, cluster.NoNode
	}
	return key, g.nodes[slot]
}

// Nodes that stand out are judged one by one at each placement; in a column of
// the class's own there are none, but that column has to follow every change.
// Both give the same answer. The class moves to its own column once judging
// standouts has cost as much more than following as building the column will
// cost, and back when it is the other way round: never more than about twice
// the best choice in hindsight.
const (
	standoutCost = 1 // relative cost of judging one node that stands out
	followCost   = 6 // relative cost of evaluating one touched node
	buildCost    = 3 // relative cost of evaluating one node of many in a row
)

func (e *Engine) column(c *Class) *column {
	if len(c.hostFacts) > 0 {
		head := e.state.Head()
		touched := int(head - min(c.lastSync, head))
		c.lastSync = head
		standing := 0
		for _, f := range c.hostFacts {
			standing += f.Nonzero()
		}
		patience := buildCost * (e.state.Len() + 64)
		c.pressure += standing*standoutCost - touched*followCost
		c.pressure = max(-patience, min(patience, c.pressure))
		switch {
		case c.private == nil && c.pressure == patience && e.alone(c):
			c.private = e.newColumn(c, nil)
			c.private.topos = c.shared.topos
			c.private.private = true
			c.private.met = e.meetings(c)
			c.pressure = 0
		case c.private != nil && (c.pressure == -patience || !e.alone(c) || c.private.met != e.meetings(c)):
			c.private = nil
			c.pressure = 0
		}
	}
	col := c.shared
	if c.private != nil {
		col = c.private
	}
	col.sync()
	return col
}

// alone tells whether each host-level domain is one node, so that touching the
// node is the only way to change its host key.
func (e *Engine) alone(c *Class) bool {
	for _, f := range c.hostFacts {
		if !f.Topology().Unshared() {
			return false
		}
	}
	return true
}

func (e *Engine) meetings(c *Class) (n uint64) {
	for _, f := range c.hostFacts {
		n += f.Topology().Meetings()
	}
	return n
}
