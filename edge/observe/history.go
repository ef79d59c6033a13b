package observe

import (
	"sync"
	"time"

	"github.com/berthproject/berth/core/step"

	"github.com/berthproject/berth/core"
)

// History keeps the last decisions, and finds those of one pod. Its memory is
// bounded: the oldest go.
type History struct {
	mu    sync.Mutex
	ring  []step.Decision
	next  int
	byPod map[string][]int // places in the ring, the oldest first
}

// Decisions kept at most, and those that are told of one pod.
const (
	keptDecisions = 1 << 16
	toldDecisions = 20
)

// NewHistory returns one that keeps so many decisions.
func NewHistory(size int) *History {
	return &History{ring: make([]step.Decision, size), byPod: map[string][]int{}}
}

// Step takes in the decisions of a Step.
func (h *History) Step(_ time.Time, _ time.Duration, _ []step.Input, r *step.Ready) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := range r.Decisions {
		h.add(r.Decisions[i])
	}
}

// State implements live.Observer.
func (h *History) State(*core.Core) {}

func (h *History) add(d step.Decision) {
	at := h.next % len(h.ring)
	h.next++
	if old := &h.ring[at]; old.Pod != "" {
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

// Of returns the last decisions of a pod, the oldest first.
func (h *History) Of(pod string) []step.Decision {
	h.mu.Lock()
	defer h.mu.Unlock()
	list := h.byPod[pod]
	out := make([]step.Decision, 0, min(len(list), toldDecisions))
	for _, at := range list[max(0, len(list)-toldDecisions):] {
		out = append(out, h.ring[at])
	}
	return out
}
