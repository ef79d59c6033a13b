package engine

import (
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/framework"
)

// PluginScore is what one plugin gives a node.
type PluginScore struct {
	Plugin string `json:"plugin"`
	Raw    int64  `json:"raw,omitempty"` // before normalising
	Score  int64  `json:"score"`         // normalised and weighted
}

// Scores returns what makes up the score of each feasible node, in O(nodes ×
// rules): for people, and to compare with other schedulers. Plugins that don't
// score the class are left out. The scores of a node add up to its total.
func (e *Engine) Scores(c *Class) map[cluster.NodeIndex][]PluginScore {
	var nodes []cluster.NodeIndex
	out := map[cluster.NodeIndex][]PluginScore{}
	e.refresh(c)
	for _, a := range e.AnswersFor(c, e.openTo(c)) {
		if a.OK {
			nodes = append(nodes, a.Node)
		}
	}
	if len(nodes) == 0 { // group rules score feasible nodes only
		return out
	}
	// The score of a local rule is final: it has nothing to normalise.
	for i := range c.localRules {
		r := &c.localRules[i]
		if r.weight == 0 {
			continue
		}
		for _, n := range nodes {
			_, score := r.EvalNode(e.state.Node(n))
			out[n] = addScore(out[n], PluginScore{e.profile.Plugins[r.plugin].Name(), score, score * r.weight})
		}
	}
	for k := range c.groupRules {
		r := &c.groupRules[k]
		if r.weight == 0 {
			continue
		}
		// Each node is a group of its own here: the slow way, which needs no column.
		g := e.nodesAsGroups(c, r, nodes)
		scores, raws := make([]int64, len(nodes)), make([]int64, len(nodes))
		r.Score(g, r.weight, scores)
		if s, ok := r.GroupRule.(framework.RawScorer); ok {
			s.Raw(g, raws)
		}
		for i, n := range nodes {
			out[n] = addScore(out[n], PluginScore{e.profile.Plugins[r.plugin].Name(), raws[i], scores[i]})
		}
	}
	return out
}

// addScore appends a score, or adds it to what the plugin's other rule gives.
func addScore(list []PluginScore, s PluginScore) []PluginScore {
	for i := range list {
		if list[i].Plugin == s.Plugin {
			list[i].Raw += s.Raw
			list[i].Score += s.Score
			return list
		}
	}
	return append(list, s)
}

// nodesAsGroups makes each of the nodes a group of its own, for one group rule.
func (e *Engine) nodesAsGroups(c *Class, r *groupRule, nodes []cluster.NodeIndex) *framework.Groups {
	g := &framework.Groups{}
	for _, n := range nodes {
		g.Nodes = append(g.Nodes, 1)
		g.Static = append(g.Static, r.StaticKey(&e.state.Node(n).NodeBasics))
		g.Host = append(g.Host, r.HostKey(n))
	}
	for _, at := range r.topologies {
		var domains []cluster.Domain
		for _, n := range nodes {
			domains = append(domains, c.topologies[at].Of(n))
		}
		g.Domains = append(g.Domains, domains)
	}
	return g
}
