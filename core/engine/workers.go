package engine

import (
	"sync"

	"github.com/berthproject/berth/core/cluster"
)

// judgeAll evaluates all nodes with several goroutines, which are done when it
// returns, and then puts each in its place, in order.
func (c *column) judgeAll() {
	n := c.state.Len()
	for range n {
		c.cells = append(c.cells, cell{group: -1})
	}
	verdicts := make([]verdict, n)
	var wg sync.WaitGroup
	share := (n + c.how.Workers - 1) / c.how.Workers
	for from := 0; from < n; from += share {
		wg.Go(func() {
			for i := from; i < min(from+share, n); i++ {
				if node := c.state.Node(cluster.NodeIndex(i)); node != nil {
					verdicts[i] = c.judge(node, &c.cells[i], true)
				}
			}
		})
	}
	wg.Wait()
	for i := range n {
		if node := c.state.Node(cluster.NodeIndex(i)); node != nil {
			c.place(node, verdicts[i], true)
		}
	}
}
