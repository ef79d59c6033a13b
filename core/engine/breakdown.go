package engine

import "github.com/berthproject/berth/core/cluster"

// How a choice came about, for the ledger and for people. A breakdown costs about as much
// again as the choice, so that who doesn't want one (what-ifs) uses Best and Place.

// Breakdown says how a choice of a node came about.
type Breakdown struct {
	// Scores are what made up the chosen node's score, by plugin; Raw is left out.
	Scores []PluginScore
	// RunnerUp is the best of the other nodes, NoNode when no other would do.
	RunnerUp      cluster.NodeIndex
	RunnerUpScore int64 // total
}

// BestWithBreakdown is Best that says how its choice came about.
func (e *Engine) BestWithBreakdown(c *Class) (Choice, Breakdown, bool) {
	best, ok := e.Best(c)
	if !ok {
		return best, Breakdown{}, false
	}
	return best, e.breakdown(c, best.Node), true
}

// PlaceWithBreakdown is Place that says how its choice came about.
func (e *Engine) PlaceWithBreakdown(c *Class, p *cluster.Pod) (Choice, Breakdown, bool) {
	best, a, ok := e.BestWithBreakdown(c)
	if ok {
		best.Writes = e.PlaceOn(p, best.Node)
	}
	return best, a, ok
}

// breakdown is that of the last Best, which chose the node and whose view is still there:
// nothing may happen between the two.
func (e *Engine) breakdown(c *Class, chosen cluster.NodeIndex) Breakdown {
	v := &e.view
	a := Breakdown{RunnerUp: cluster.NoNode, Scores: make([]PluginScore, 0, len(c.localRules)+len(c.groupRules))}
	for i := range c.localRules {
		if r := &c.localRules[i]; r.weight != 0 {
			_, score := r.EvalNode(e.state.Node(chosen))
			a.Scores = addScore(a.Scores, PluginScore{Plugin: e.profile.Plugins[r.plugin].Name(), Score: score * r.weight})
		}
	}
	for k := range c.groupRules {
		r := &c.groupRules[k]
		if r.weight == 0 {
			continue
		}
		v.part = v.part[:0]
		for range v.nodes {
			v.part = append(v.part, 0)
		}
		r.Score(&v.rules[k], r.weight, v.part)
		a.Scores = addScore(a.Scores, PluginScore{Plugin: e.profile.Plugins[r.plugin].Name(), Score: v.part[v.chosen]})
	}
	if key, n := v.secondBest(chosen); key != 0 {
		a.RunnerUp, a.RunnerUpScore = n, key.score()
	}
	return a
}

// secondBest returns the best node but for the chosen one, and its key with the additive;
// key 0 when there is none.
func (v *view) secondBest(chosen cluster.NodeIndex) (best scoreKey, node cluster.NodeIndex) {
	for i := range v.nodes {
		if v.nodes[i] == 0 {
			continue
		}
		if i != v.chosen {
			if key := v.keyOf(i).plus(v.additive[i]); key > best {
				best, node = key, v.nodeOf(i)
			}
			continue
		}
		if i >= v.groups {
			continue // the entry is the chosen node
		}
		g := v.column.groups[i]
		key, slot := g.tree.bestExcept(func(s int) bool {
			return g.nodes[s] == chosen || len(v.takenOut) > 0 && v.isExceptional.has(g.nodes[s])
		})
		if key != 0 && key.plus(v.additive[i]) > best {
			best, node = key.plus(v.additive[i]), g.nodes[slot]
		}
	}
	return best, node
}
