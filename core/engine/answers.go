package engine

import "github.com/berthproject/berth/core/cluster"

// NodeAnswer is the engine's answer for one node.
type NodeAnswer struct {
	Node  cluster.NodeIndex
	OK    bool  // the node takes the class
	Score int64 // total, when OK
}

// Answers returns the cached answer for every node, by index: what Best chooses from.
// It is for people, for tests that compare, and for extenders; O(nodes).
func (e *Engine) Answers(c *Class) []NodeAnswer {
	var out []NodeAnswer
	e.state.Nodes(func(n *cluster.Node) { out = append(out, NodeAnswer{Node: n.Index}) })
	if !e.look(c) {
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
			entry = int(cl.group)
		}
		if v.nodes[entry] != 0 {
			out[i].OK = true
			out[i].Score = v.column.keyOf(n).score() + v.additive[entry]
		}
	}
	return out
}
