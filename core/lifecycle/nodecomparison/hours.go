package nodecomparison

import "time"

// This file sums up node hours and what they cost.

// Hours are node hours, and what they cost by the provider's prices.
type Hours struct {
	Hours float64 `json:"hours"`
	Cost  float64 `json:"cost"`
}

func (h *Hours) add(nodes int, price float64, lasted time.Duration) {
	hours := float64(nodes) * lasted.Hours()
	h.Hours += hours
	h.Cost += hours * price
}

// sum adds other hours.
func (h *Hours) sum(other Hours) {
	h.Hours += other.Hours
	h.Cost += other.Cost
}

// hours are those of a group's nodes up to a time, and how many nodes they are summed up of from
// then on.
type hours struct {
	nodes        int // that there are
	extra, saved int // that Berth's version has more, and less
	price        float64
	last         time.Time
	// cluster is of the nodes that there were, berth of Berth's version.
	cluster, berth Hours
}

// accrue sums up until now. Nothing is summed up before began, which may be zero.
func (h *hours) accrue(began, now time.Time) {
	if began.IsZero() {
		return
	}
	if !h.last.IsZero() {
		lasted := now.Sub(h.last)
		h.cluster.add(h.nodes, h.price, lasted)
		h.berth.add(h.nodes+h.extra-h.saved, h.price, lasted)
	}
	h.last = now
}

// isUnpriced reports whether there are hours whose price isn't known.
func (h *hours) isUnpriced() bool { return h.price == 0 && h.cluster.Hours+h.berth.Hours > 0 }
