package engine

import (
	"slices"

	"github.com/berthproject/berth/core/cluster"
)

// NodeAnswer is the engine's answer for one node.
type NodeAnswer struct {
	Node  cluster.NodeIndex
	OK    bool  // the node takes the class
	Score int64 // total, when OK
}

// Answers returns the cached answer for every node, by index: what Best chooses from.
// It is for people, for tests that compare, and for extenders; O(nodes).
func (e *Engine) Answers(c *Class) []NodeAnswer {
	var nodes []cluster.NodeIndex
	e.state.Nodes(func(n *cluster.Node) { nodes = append(nodes, n.Index) })
	return e.AnswersFor(c, nodes)
}

// AnswersFor returns the answers for some nodes of the state, in their order. All nodes count
// where scores are normalised, as for a choice. It costs as much as a choice, and O(nodes
// asked about).
func (e *Engine) AnswersFor(c *Class, nodes []cluster.NodeIndex) []NodeAnswer {
	out := make([]NodeAnswer, len(nodes))
	for i, n := range nodes {
		out[i].Node = n
	}
	if !e.fillView(c) {
		return out
	}
	v := &e.view
	own := map[cluster.NodeIndex]int{} // entries of exceptional nodes
	for i, n := range v.exceptional {
		own[n] = v.groups + i
	}
	for i := range out {
		n := out[i].Node
		cl := &v.column.cells[n]
		if !cl.ok {
			continue
		}
		entry, exceptional := own[n]
		if !exceptional {
			if len(v.takenOut) > 0 && v.isExceptional.has(n) {
				continue // it is excluded
			}
			entry = int(cl.group)
		}
		if v.nodes[entry] != 0 {
			out[i].OK = true
			out[i].Score = v.column.keyOf(n).score() + v.additive[entry]
		}
	}
	return out
}

// Reacts reports whether where pods are placed may change how good nodes are for the class, one
// compared with another: some rule that scores reads what is elsewhere.
func (e *Engine) Reacts(c *Class) bool {
	e.refresh(c)
	return slices.ContainsFunc(c.groupRules, func(r groupRule) bool {
		return r.weight != 0 && (len(r.TopologyKeys()) > 0 || len(r.HostFacts()) > 0)
	})
}
