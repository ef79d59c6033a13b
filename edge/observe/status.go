package observe

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/berthproject/berth/core"
	"github.com/berthproject/berth/core/explain"
	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/internal/version"
)

// This file serves /debug/status: where the whole cluster stands, at a glance.

// Status is what /debug/status answers. Only NodeLines grow with what the request asks for.
type Status struct {
	At      time.Time `json:"at"`
	Version string    `json:"version"`
	explain.Overview
	// NodePrices is what became of the price file; nil without --node-prices.
	NodePrices *NodePrices `json:"nodePrices,omitempty"`
	// NodeLines are the nodes one by one, as many as were asked for, the first in the order of
	// core.NodeLines.
	NodeLines []explain.NodeLine `json:"nodeLines,omitempty"`
	// Decisions are the last runs of decisions, the oldest first.
	Decisions []Run `json:"decisions"`
}

// What an answer has at most.
const (
	shownRuns    = 12
	maxNodeLines = 5000
)

// status serves /debug/status, and /debug/status?nodes=NUMBER with so many nodes one by one.
func (s *Server) status(w http.ResponseWriter, r *http.Request) {
	nodes, err := nodesWanted(r.URL.Query())
	if err != nil {
		fail(w, http.StatusBadRequest, err.Error())
		return
	}
	s.answerTo(w, r, func(c *core.Core) reply {
		out := Status{At: time.Now(), Version: version.Get().Version, Overview: c.View().Overview(), NodePrices: s.prices.Load(), Decisions: s.History.Runs(shownRuns)}
		if nodes > 0 {
			out.NodeLines, _ = c.View().NodeLines(nodes)
		}
		return reply{value: out}
	})
}

// nodesWanted returns how many nodes a request asks for.
func nodesWanted(query url.Values) (int, error) {
	if !query.Has("nodes") {
		return 0, nil
	}
	n, err := strconv.Atoi(query.Get("nodes"))
	if err != nil || n < 0 || n > maxNodeLines {
		return 0, fmt.Errorf("nodes is %q; it must be a number from 0 to %d", query.Get("nodes"), maxNodeLines)
	}
	return n, nil
}

// Run is a number of decisions of one kind that were made one after the other.
type Run struct {
	step.Decision     // the last of them, without scores, rejections and options
	More          int `json:"more,omitempty"` // how many came before it
}

// Runs returns the last runs of decisions, the oldest first: limit at most. Decisions of one kind
// that follow each other are one run, so that a burst of pods doesn't hide all else.
func (h *History) Runs(limit int) []Run {
	h.mu.Lock()
	defer h.mu.Unlock()
	out := make([]Run, 0, limit)
	for i := h.next - 1; i >= h.first; i-- {
		d := &h.ring[i%len(h.ring)]
		if n := len(out); n > 0 && out[n-1].Kind == d.Kind && out[n-1].Group == d.Group {
			out[n-1].More++
			continue
		}
		if len(out) == limit {
			break
		}
		run := Run{Decision: *d}
		run.Scores, run.RunnerUp, run.Rejected, run.Choice, run.Weighed = nil, nil, nil, nil, nil // explain has them
		out = append(out, run)
	}
	slices.Reverse(out)
	return out
}
