package engine

import (
	"sync"

	"github.com/berthproject/berth/core/cluster"
)

// The only goroutines of the core. They evaluate nodes and are done when the call
// returns; groups and indexes are written by the caller alone, in the order of the nodes,
// so that the column is the same whatever their number.

// askAll asks about all nodes of a column whose cells are empty, with options.Workers
// goroutines. It returns what the rules that read pods say, by node index.
func (c *column) askAll() []podsAnswer {
	n := c.state.Len()
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
	return answers
}

// enterAll enters all nodes with these answers.
func (c *column) enterAll(answers []podsAnswer) {
	for i := range answers {
		if node := c.state.Node(cluster.NodeIndex(i)); node != nil {
			c.enter(node, answers[i])
		}
	}
}
