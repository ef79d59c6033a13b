package engine

import "github.com/berthproject/berth/core/cluster"

// Account says how a choice of a node came about.
type Account struct {
	// Scores are what made up the chosen node's score, by plugin; Raw is left out.
	Scores []PluginScore
	// RunnerUp is the best of the other nodes, NoNode when no other would do.
	RunnerUp      cluster.NodeIndex
	RunnerUpScore int64
}

// BestWithAccount is Best that gives an account of its choice.
func (e *Engine) BestWithAccount(c *Class) (Choice, Account, bool) {
	best, ok := e.Best(c)
	if !ok {
		return best, Account{}, false
	}
	return best, e.account(c, best.Node), true
}

// PlaceWithAccount is Place that gives an account of its choice.
func (e *Engine) PlaceWithAccount(c *Class, p *cluster.Pod) (Choice, Account, bool) {
	best, a, ok := e.BestWithAccount(c)
	if ok {
		best.Writes = e.PlaceOn(p, best.Node)
	}
	return best, a, ok
}

// account is that of the last Best, which chose the node: its view is still there.
// It costs about as much again as the choice.
func (e *Engine) account(c *Class, chosen cluster.NodeIndex) Account {
	v := &e.view
	a := Account{RunnerUp: cluster.NoNode, Scores: make([]PluginScore, 0, len(c.locals)+len(c.rules))}
	for i := range c.locals {
		if l := &c.locals[i]; l.weight != 0 {
			_, score := l.EvalNode(e.state.Node(chosen))
			a.Scores = add(a.Scores, PluginScore{Plugin: e.profile.Plugins[l.plugin].Name(), Score: score * l.weight})
		}
	}
	for k := range c.rules {
		r := &c.rules[k]
		if r.weight == 0 {
			continue
		}
		v.part = v.part[:0]
		for range v.nodes {
			v.part = append(v.part, 0)
		}
		r.Score(&v.rules[k], r.weight, v.part)
		a.Scores = add(a.Scores, PluginScore{Plugin: e.profile.Plugins[r.plugin].Name(), Score: v.part[v.at]})
	}
	second := scoreKey(0)
	consider := func(key scoreKey, i int, n cluster.NodeIndex) {
		if key == 0 {
			return
		}
		if key = key.plus(v.add[i]); key > second {
			second, a.RunnerUp, a.RunnerUpScore = key, n, key.score()
		}
	}
	for i := range v.nodes {
		switch {
		case v.nodes[i] == 0:
		case i != v.at:
			if key := v.key(v.col, i); key != 0 && key.plus(v.add[i]) > second {
				consider(key, i, v.node(v.col, i))
			}
		case i < v.groups:
			g := v.col.groups[i]
			key, slot := g.tree.bestExcept(func(s int) bool {
				return g.nodes[s] == chosen || len(v.lessen) > 0 && v.skip.has(g.nodes[s])
			})
			if key != 0 {
				consider(key, i, g.nodes[slot])
			}
		}
	}
	return a
}
