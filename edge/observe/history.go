package observe

import (
	"sync"
	"time"

	"github.com/berthproject/berth/core/step"
)

// History keeps the last decisions, and finds those of one pod. It is a ring: the
// oldest decision makes room for the newest, so its memory is bounded.
type History struct {
	mu   sync.Mutex
	ring []step.Decision
	next int // decisions so far; the next goes to next % len(ring)
	// byPod has the indices in the ring of each pod's decisions, the oldest first.
	byPod map[string][]int
}

const (
	keptDecisions = 1 << 16 // in all
	shownOfAPod   = 20      // by Of
)

// NewHistory returns a history that keeps so many decisions.
func NewHistory(size int) *History {
	return &History{ring: make([]step.Decision, size), byPod: map[string][]int{}}
}

// Step implements drive.Hook: it takes in the decisions of a Step.
func (h *History) Step(_ time.Time, _ time.Duration, _ []step.Input, ready *step.Ready) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := range ready.Decisions {
		h.add(ready.Decisions[i])
	}
}

func (h *History) add(d step.Decision) {
	at := h.next % len(h.ring)
	h.next++
	if old := &h.ring[at]; old.Pod != "" { // the oldest of its pod, too
		if list := h.byPod[old.Pod]; len(list) > 1 {
			h.byPod[old.Pod] = list[1:]
		} else {
			delete(h.byPod, old.Pod)
		}
	}
	h.ring[at] = d
	if d.Pod != "" {
		h.byPod[d.Pod] = append(h.byPod[d.Pod], at)
	}
}

// Of returns the last decisions about a pod, given as namespace/name, the oldest
// first: 20 at most.
func (h *History) Of(pod string) []step.Decision {
	h.mu.Lock()
	defer h.mu.Unlock()
	list := h.byPod[pod]
	out := make([]step.Decision, 0, min(len(list), shownOfAPod))
	for _, at := range list[max(0, len(list)-shownOfAPod):] {
		out = append(out, h.ring[at])
	}
	return out
}
