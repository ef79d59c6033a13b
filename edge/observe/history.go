package observe

import (
	"sync"
	"time"

	"github.com/berthproject/berth/core/step"
)

// History keeps the last decisions, and finds those of one pod, pod group, node group or node. It is a ring:
// the oldest decisions make room for the newest, so its memory is bounded: by their number, and by
// their bytes, since one that was rejected for many reasons may have a thousand times as many as
// another. The fields are guarded by mu.
type History struct {
	mu    sync.Mutex
	ring  []step.Decision
	first int // number of the oldest that is kept
	next  int // decisions so far; decision i is at i % len(ring) while first <= i < next
	bytes int // of those that are kept
	limit int // of bytes; the newest decision is kept whatever it has
	// indices has the indices in the ring of the decisions about each subject, the oldest first.
	indices map[subject][]int
}

// subject is a pod or a pod group, given as namespace/name, a node group or a node.
type subject struct{ pod, podGroup, group, node string }

const (
	keptDecisions  = 1 << 16 // in all
	keptBytes      = 64 << 20
	shownDecisions = 20 // by Of, OfPodGroup, OfGroup and OfNode
)

// NewHistory returns a history that keeps so many decisions, and 64 MiB of them at most. The room for
// the decisions themselves is taken at once.
func NewHistory(size int) *History {
	return &History{ring: make([]step.Decision, size), limit: keptBytes, indices: map[subject][]int{}}
}

// Step implements drive.Hook: it keeps the decisions of a Step.
func (h *History) Step(_ time.Time, _ time.Duration, _ []step.Input, ready *step.Ready) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := range ready.Decisions {
		h.add(ready.Decisions[i])
	}
}

// add keeps a decision, and forgets as many of the oldest as it takes to have room for it.
func (h *History) add(d step.Decision) {
	h.bytes += bytesOf(&d)
	for h.first < h.next && (h.next-h.first == len(h.ring) || h.bytes > h.limit) {
		h.forgetOldest()
	}
	at := h.next % len(h.ring)
	h.next++
	h.ring[at] = d
	for _, now := range about(&d) {
		if now != (subject{}) {
			h.indices[now] = append(h.indices[now], at)
		}
	}
}

// forgetOldest makes room where the oldest decision was.
func (h *History) forgetOldest() {
	oldest := &h.ring[h.first%len(h.ring)]
	h.first++
	h.bytes -= bytesOf(oldest)
	for _, about := range about(oldest) { // the oldest about each, too
		if list := h.indices[about]; len(list) > 1 {
			h.indices[about] = list[1:]
		} else {
			delete(h.indices, about)
		}
	}
	*oldest = step.Decision{}
}

// about returns what a decision is about: its pod, or its pod group or node group if it has none; and the
// node, of a decision about a node's removal or about room on it that was given away twice. The zero value is none of them.
func about(d *step.Decision) [2]subject {
	first := subject{pod: d.Pod}
	switch {
	case d.Pod != "":
	case d.PodGroup != "":
		first = subject{podGroup: d.PodGroup}
	default:
		first = subject{group: d.Group}
	}
	switch d.Kind {
	case step.NodeTainted, step.NodeUnneeded, step.NodeNeeded, step.NodeStays, step.NodeKept, step.NodeRecalled, step.NodeRemoved, step.RemovalRepeated, step.PodEvicted, step.PodSurged, step.RoomTakenTwice:
		return [2]subject{first, {node: d.Node}}
	}
	return [2]subject{first}
}

// Of returns the last decisions about a pod, given as namespace/name, the oldest
// first: 20 at most.
func (h *History) Of(pod string) []step.Decision { return h.last(subject{pod: pod}) }

// OfPodGroup returns the last decisions about a pod group as a whole, given as namespace/name, the oldest
// first: 20 at most. Those about its members are the pods'.
func (h *History) OfPodGroup(group string) []step.Decision { return h.last(subject{podGroup: group}) }

// OfGroup returns the last decisions about a node group and no single pod, the oldest first:
// 20 at most.
func (h *History) OfGroup(group string) []step.Decision { return h.last(subject{group: group}) }

// OfNode returns the last decisions about the removal of a node, and about room on it that was given away twice, the
// oldest first: 20 at most.
func (h *History) OfNode(node string) []step.Decision { return h.last(subject{node: node}) }

// last returns copies, so that what is written to the ring meanwhile doesn't show in an answer.
func (h *History) last(s subject) []step.Decision {
	h.mu.Lock()
	defer h.mu.Unlock()
	list := h.indices[s]
	out := make([]step.Decision, 0, min(len(list), shownDecisions))
	for _, at := range list[max(0, len(list)-shownDecisions):] {
		out = append(out, h.ring[at])
	}
	return out
}

// Range returns the numbers of the oldest and the newest decision that are kept, 0 and 0 for none.
func (h *History) Range() (first, last uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.first == h.next {
		return 0, 0
	}
	return h.ring[h.first%len(h.ring)].Seq, h.ring[(h.next-1)%len(h.ring)].Seq
}

// Chunk returns copies of the decisions from a number on, the oldest first: so many at most. Those that
// aren't kept any more are left out.
func (h *History) Chunk(from uint64, most int) []step.Decision {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.first == h.next {
		return nil
	}
	begin := h.first // numbers have no gaps
	if oldest := h.ring[h.first%len(h.ring)].Seq; from > oldest {
		if from-oldest >= uint64(h.next-h.first) {
			return nil
		}
		begin += int(from - oldest)
	}
	end := min(h.next, begin+max(most, 0))
	out := make([]step.Decision, 0, end-begin)
	for i := begin; i < end; i++ {
		out = append(out, h.ring[i%len(h.ring)])
	}
	return out
}
