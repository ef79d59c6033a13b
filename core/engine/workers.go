package engine

import "sync"

// The only goroutines of the core. They evaluate nodes and are done when the call
// returns; groups and indexes are written by the caller alone, in the order of the nodes,
// so that the column is the same whatever their number.

// askAll asks about all nodes of a column whose cells are empty, with options.Workers
// goroutines, and writes their keys into a list by node.
func (c *column) askAll(keys []scoreKey) {
	var wg sync.WaitGroup
	n := len(c.cells)
	share := (n + c.options.Workers - 1) / c.options.Workers
	for first := 0; first < n; first += share {
		wg.Go(func() {
			b, end := &block{}, min(first+share, n)
			for from := first; from < end; from += blockSize {
				c.fill(b, from, min(from+blockSize, end))
				c.ask(b)
				b.copyTo(keys)
			}
		})
	}
	wg.Wait()
}
