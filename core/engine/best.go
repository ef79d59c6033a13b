package engine

import (
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/framework"
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
	v := &e.view
	v.gather(e, c, col)
	if !v.filter(e, c) {
		return Choice{Node: cluster.NoNode}, false
	}
	v.score(c)
	top, at := scoreKey(0), -1
	from := 0
	if len(v.lessen) == 0 { // no group lacks a node: their bests lie side by side
		from = v.groups
		for i, key := range col.best {
			if key = key.plus(v.add[i]); key > top && v.nodes[i] != 0 {
				top, at = key, i
			}
		}
	}
	for i := from; i < len(v.nodes); i++ {
		if v.nodes[i] == 0 {
			continue
		}
		if key := v.key(col, i).plus(v.add[i]); key > top {
			top, at = key, i
		}
	}
	v.col, v.at = col, at
	return Choice{Node: v.node(col, at), Score: top.score()}, true
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
	return e.assume(p, n)
}

// assume has the plugins take what the pod needs on its node.
func (e *Engine) assume(p *cluster.Pod, n cluster.NodeIndex) []cluster.ObjectChange {
	from := e.state.Head()
	for i := range e.profile.Plugins {
		if r, ok := e.profile.Plugins[i].Plugin.(framework.Assumer); ok {
			r.Assume(p, e.state.Node(n), e.state)
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

// Feasible returns the names of the nodes that would take the class, by index.
func (e *Engine) Feasible(c *Class) []string {
	var out []string
	for _, v := range e.Verdicts(c) {
		if v.OK {
			out = append(out, e.state.Node(v.Node).Name)
		}
	}
	return out
}

// PlaceAmong puts the pod on the best of the nodes that allowed allows, with
// what it adds to a node's score, in O(nodes). The account's scores are without
// that. A bonus comes from outside, so one beyond 0 and MaxBonus is no error, but
// counts as the nearer of the two.
func (e *Engine) PlaceAmong(c *Class, p *cluster.Pod, allowed func(*cluster.Node) (bonus int64, ok bool)) (Choice, Account, bool) {
	best, rank := Choice{Node: cluster.NoNode}, uint64(0)
	second, secondRank := best, rank
	before := func(s int64, r uint64, than Choice, rank uint64) bool {
		return than.Node == cluster.NoNode || s > than.Score || s == than.Score && r > rank
	}
	for _, v := range e.Verdicts(c) {
		if !v.OK {
			continue
		}
		n := e.state.Node(v.Node)
		bonus, ok := allowed(n)
		if !ok {
			continue
		}
		score, r := v.Score+max(0, min(MaxBonus, bonus)), c.shared.rank(n)
		switch {
		case before(score, r, best, rank):
			second, secondRank = best, rank
			best, rank = Choice{Node: v.Node, Score: score}, r
		case before(score, r, second, secondRank):
			second, secondRank = Choice{Node: v.Node, Score: score}, r
		}
	}
	if best.Node == cluster.NoNode {
		return best, Account{}, false
	}
	a := Account{Scores: e.Scores(c)[best.Node], RunnerUp: second.Node, RunnerUpScore: second.Score}
	best.Writes = e.PlaceOn(p, best.Node)
	return best, a, true
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
			e.privates[c.private] = true
			c.pressure = 0
		case c.private != nil && (c.pressure == -patience || !e.alone(c) || c.private.met != e.meetings(c)):
			delete(e.privates, c.private)
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

// Verdict is the engine's answer for one node.
type Verdict struct {
	Node  cluster.NodeIndex
	OK    bool
	Score int64 // total, when OK
}

// Verdicts returns the cached answers for every node: what Best chooses from.
func (e *Engine) Verdicts(c *Class) []Verdict {
	e.refresh(c)
	var out []Verdict
	e.state.Nodes(func(n *cluster.Node) { out = append(out, Verdict{Node: n.Index}) })
	if c.Rejected != nil {
		return out
	}
	col := e.column(c)
	v := &e.view
	v.gather(e, c, col)
	if !v.filter(e, c) {
		return out
	}
	v.score(c)
	alone := map[cluster.NodeIndex]int{}
	for i, n := range v.alone {
		alone[n] = v.groups + i
	}
	for i := range out {
		n := out[i].Node
		if !col.cells[n].ok {
			continue
		}
		at, single := alone[n]
		if !single {
			at = int(col.cells[n].group)
		}
		if v.nodes[at] != 0 {
			out[i].OK = true
			out[i].Score = col.keyOf(n).score() + v.add[at]
		}
	}
	return out
}
