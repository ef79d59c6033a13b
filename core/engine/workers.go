package engine

import (
	"sync"

	"github.com/berthproject/berth/core/cluster"
)

// The only goroutines of the core. They evaluate nodes and are done when the call
// returns; groups and indexes are written by the caller alone, in the order of the nodes,
// so that the column is the same whatever their number.

// evaluateAll evaluates all nodes of a column without cells, with options.Workers
// goroutines.
func (c *column) evaluateAll() {
	n := c.state.Len()
	for range n {
		c.cells = append(c.cells, cell{group: -1})
	}
	answers := make([]podsAnswer, n)
	var wg sync.WaitGroup
	share := (n + c.options.Workers - 1) / c.options.Workers
	for from := 0; from < n; from += share {
		wg.Go(func() {
			for i := from; i < min(from+share, n); i++ {
				if node := c.state.Node(cluster.NodeIndex(i)); node != nil {
					answers[i] = c.ask(node, &c.cells[i], objectChanged)
				}
			}
		})
	}
	wg.Wait()
	for i := range n {
		if node := c.state.Node(cluster.NodeIndex(i)); node != nil {
			c.put(node, answers[i], objectChanged)
		}
	}
}
