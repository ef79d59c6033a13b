package engine

// This file has the errors of rules, which end attempts (framework.Error). While a rule has one on some
// node that all rules before it take, no node takes a pod of the class. As local answers errors are kept
// in columns; whether a rule before rejects the node is asked of the nodes that have one, which are few.

import (
	"fmt"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/framework"
)

// Failure returns the error that ends an attempt to place a pod of the class, as kube-scheduler words it:
// of several nodes that of the first by name. It returns "" when there is none. It costs O(nodes) when
// a rule has an error on any node.
func (e *Engine) Failure(c *Class) string {
	e.refresh(c)
	if c.Rejected != nil {
		return ""
	}
	var first *cluster.Node
	e.eachFailing(c, e.syncedColumn(c), func(n *cluster.Node) bool {
		if first == nil || n.Name < first.Name {
			first = n
		}
		return true
	})
	if first == nil {
		return ""
	}
	why, _ := e.newNodeFilter(c).reason(first, 0)
	return fmt.Sprintf("running %q filter plugin: %s", why.Plugin, why.Messages[0])
}

// firstFailing returns a node on which an error ends attempts, nil for none. The column is the class's.
func (e *Engine) firstFailing(c *Class, col *column) (first *cluster.Node) {
	e.eachFailing(c, col, func(n *cluster.Node) bool {
		first = n
		return false
	})
	return first
}

// eachFailing calls f for the nodes on which an error ends attempts, by index, until it returns false.
// The column is the class's, and up to date.
func (e *Engine) eachFailing(c *Class, col *column, f func(*cluster.Node) bool) {
	if col = col.evaluator(); col.failing == 0 {
		return
	}
	filter := e.newNodeFilter(c)
	for i := range col.cells {
		if !col.cells[i].failing {
			continue
		}
		if n := e.state.Node(cluster.NodeIndex(i)); filter.code(n) == framework.Error && !f(n) {
			return
		}
	}
}

// countFailing brings the number of nodes with an error up to date with one node's cell.
func (c *column) countFailing(cl *cell) {
	switch {
	case cl.objectFails && !cl.failing:
		c.failing++
	case cl.failing && !cl.objectFails:
		c.failing--
	}
	cl.failing = cl.objectFails
}

// forgetNode forgets a node that is gone.
func (c *column) forgetNode(i cluster.NodeIndex) {
	c.cells[i].objectFails = false
	c.countFailing(&c.cells[i])
	c.remove(i)
}
