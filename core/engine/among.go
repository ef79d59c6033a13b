package engine

import (
	"github.com/berthproject/berth/core/cluster"
)

// Choosing among the nodes that HTTP extenders allow. The extenders are asked about the
// feasible nodes (Feasible); their answer comes back as an input, when the cluster may
// have changed, so that the rules are asked once more (PlaceAmong). Both cost O(nodes), or O(named
// nodes) of a class that is judged by name.

// Feasible returns the names of the nodes that would take the class, by index.
func (e *Engine) Feasible(c *Class) []string {
	var out []string
	e.refresh(c)
	for _, a := range e.AnswersFor(c, e.openTo(c)) {
		if a.OK {
			out = append(out, e.state.Node(a.Node).Name)
		}
	}
	return out
}

// PlaceAmong puts the pod on the best of the nodes that take the class and that allowed
// returns true for. The bonus is added to the node's own score. It comes from outside,
// so one beyond 0 and MaxBonus is no error, but counts as the nearer of the two. Equal
// totals go by rank, as in Best. The breakdown's scores are without bonuses, but for
// RunnerUpScore.
func (e *Engine) PlaceAmong(c *Class, p *cluster.Pod, allowed func(*cluster.Node) (bonus int64, ok bool)) (Choice, Breakdown, bool) {
	best, second := ranked{node: cluster.NoNode}, ranked{node: cluster.NoNode}
	e.refresh(c)
	for _, a := range e.AnswersFor(c, e.openTo(c)) {
		if !a.OK {
			continue
		}
		n := e.state.Node(a.Node)
		bonus, ok := allowed(n)
		if !ok {
			continue
		}
		x := ranked{a.Node, a.Score + max(0, min(MaxBonus, bonus)), c.rank(n)}
		switch {
		case x.beats(best):
			best, second = x, best
		case x.beats(second):
			second = x
		}
	}
	if best.node == cluster.NoNode {
		return Choice{Node: cluster.NoNode}, Breakdown{}, false
	}
	a := Breakdown{Scores: e.Scores(c)[best.node], RunnerUp: second.node, RunnerUpScore: second.score}
	return Choice{Node: best.node, Score: best.score, Writes: e.PlaceOn(p, best.node)}, a, true
}

// ranked is a node with a score that needn't fit into a key.
type ranked struct {
	node  cluster.NodeIndex // NoNode: none, which everything beats
	score int64
	rank  uint64
}

func (x ranked) beats(o ranked) bool {
	return o.node == cluster.NoNode || x.score > o.score || x.score == o.score && x.rank > o.rank
}
