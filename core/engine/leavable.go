package engine

import (
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/framework"
)

// Leavable returns what could leave some nodes, given by index, for pods of a priority, in the order of the
// nodes: pods of lower priority, and whole pod groups of such, which may have members elsewhere. It
// takes O(pods of the nodes and of these groups).
func (e *Engine) Leavable(nodes []cluster.NodeIndex, priority int32) []framework.Unit {
	u := units{state: e.state, below: priority}
	for _, i := range nodes {
		if n := e.state.Node(i); n != nil {
			u.addNode(n)
		}
	}
	return u.list
}
