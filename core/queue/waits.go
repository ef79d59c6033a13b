package queue

import "container/heap"

// This file knows which class has waited longest, in O(log waits) for each that comes to wait.
// Invariant: each class that waits has its wait in Queue.waits; others there are over, and are
// dropped when they come up, or when they are more than half.

// wait is that a class has waited since a time, unless it is over.
type wait struct {
	since int64 // in nanoseconds
	class *WaitingClass
}

// over reports whether the class doesn't wait any more, or waits anew.
func (x wait) over(q *Queue) bool {
	return x.class.state != waiting || x.class.since != x.since || q.waiting[x.class.class] != x.class
}

// noteWait notes that a class has come to wait.
func (q *Queue) noteWait(w *WaitingClass) {
	if len(q.waits) > 2*len(q.waiting)+16 {
		kept := q.waits[:0]
		for _, x := range q.waits {
			if !x.over(q) {
				kept = append(kept, x)
			}
		}
		clear(q.waits[len(kept):])
		q.waits = kept
		heap.Init(&q.waits)
	}
	heap.Push(&q.waits, wait{w.since, w})
}

// longestWait returns since when the class has waited that has waited longest.
func (q *Queue) longestWait() (since int64, any bool) {
	for len(q.waits) > 0 {
		if x := q.waits[0]; !x.over(q) {
			return x.since, true
		}
		heap.Pop(&q.waits)
	}
	return 0, false
}

// waitHeap is a heap (container/heap) of waits, the longest first.
type waitHeap []wait

func (h waitHeap) Len() int           { return len(h) }
func (h waitHeap) Less(i, j int) bool { return h[i].since < h[j].since }
func (h waitHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }

// Push implements heap.Interface.
func (h *waitHeap) Push(x any) { *h = append(*h, x.(wait)) }

// Pop implements heap.Interface.
func (h *waitHeap) Pop() any {
	last := len(*h) - 1
	x := (*h)[last]
	(*h)[last] = wait{}
	*h = (*h)[:last]
	return x
}
