package engine

import (
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/framework"
)

// PluginScore is what one plugin thinks of a node.
type PluginScore struct {
	Plugin string `json:"plugin"`
	Raw    int64  `json:"raw,omitempty"` // before normalising
	Score  int64  `json:"score"`         // normalised and weighted
}

// Scores returns what makes up the score of each feasible node, in O(nodes ×
// rules): for people, and to compare with other schedulers. Plugins that don't
// score the class are left out.
func (e *Engine) Scores(c *Class) map[cluster.NodeIndex][]PluginScore {
	var nodes []cluster.NodeIndex
	out := map[cluster.NodeIndex][]PluginScore{}
	for _, v := range e.Verdicts(c) {
		if v.OK {
			nodes = append(nodes, v.Node)
		}
	}
	if len(nodes) == 0 {
		return out
	}
	for i := range c.locals {
		l := &c.locals[i]
		if l.weight == 0 {
			continue
		}
		for _, n := range nodes {
			_, score := l.EvalNode(e.state.Node(n))
			out[n] = add(out[n], PluginScore{e.profile.Plugins[l.plugin].Name(), score, score * l.weight})
		}
	}
	for k := range c.rules {
		r := &c.rules[k]
		if r.weight == 0 {
			continue
		}
		g := e.groupsOf(c, r, nodes)
		scores, raws := make([]int64, len(nodes)), make([]int64, len(nodes))
		r.Score(g, r.weight, scores)
		if s, ok := r.GroupRule.(framework.RawScorer); ok {
			s.Raw(g, raws)
		}
		for i, n := range nodes {
			out[n] = add(out[n], PluginScore{e.profile.Plugins[r.plugin].Name(), raws[i], scores[i]})
		}
	}
	return out
}

// add appends a score, or adds it to what another part of the plugin gives.
func add(list []PluginScore, s PluginScore) []PluginScore {
	for i := range list {
		if list[i].Plugin == s.Plugin {
			list[i].Raw += s.Raw
			list[i].Score += s.Score
			return list
		}
	}
	return append(list, s)
}

// groupsOf makes each of the nodes a group of its own.
func (e *Engine) groupsOf(c *Class, r *groupRule, nodes []cluster.NodeIndex) *framework.Groups {
	g := &framework.Groups{}
	for _, n := range nodes {
		g.Nodes = append(g.Nodes, 1)
		g.Static = append(g.Static, r.StaticKey(e.state.Node(n).NodeInfo))
		g.Host = append(g.Host, r.HostKey(n))
	}
	for _, at := range r.topos {
		var domains []cluster.Domain
		for _, n := range nodes {
			domains = append(domains, c.shared.topos[at].Of(n))
		}
		g.Domains = append(g.Domains, domains)
	}
	return g
}
