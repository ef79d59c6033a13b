package queue

// itemHeap is a heap (container/heap) whose items know where in it they are, so
// that removing one costs O(log items).
type itemHeap struct {
	items []*Item
	less  func(a, b *Item) bool
	index func(*Item) *int // where an item keeps its index
}

// An item is in one heap in the order of trying at most, and in the one of backoffs
// besides.
func tryIndex(i *Item) *int    { return &i.at }
func expiryIndex(i *Item) *int { return &i.expires }

// Len implements heap.Interface.
func (h *itemHeap) Len() int { return len(h.items) }

// Less implements heap.Interface.
func (h *itemHeap) Less(i, j int) bool { return h.less(h.items[i], h.items[j]) }

// Swap implements heap.Interface.
func (h *itemHeap) Swap(i, j int) {
	h.items[i], h.items[j] = h.items[j], h.items[i]
	*h.index(h.items[i]), *h.index(h.items[j]) = i, j
}

// Push implements heap.Interface.
func (h *itemHeap) Push(x any) {
	item := x.(*Item)
	*h.index(item) = len(h.items)
	h.items = append(h.items, item)
}

// Pop implements heap.Interface.
func (h *itemHeap) Pop() any {
	last := len(h.items) - 1
	item := h.items[last]
	h.items[last] = nil
	h.items = h.items[:last]
	return item
}
