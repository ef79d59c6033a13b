package sim

import (
	"slices"
	"time"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/internal/simulatedresizes"
	"github.com/berthproject/berth/sim/scenario"
)

// This file follows what draining nodes costs the pods on them: each pod that Berth evicts
// so that its node can go, until its replacement runs, and the nodes that were deleted and
// bought back. The replacement is the next pod that the same controller makes; pods of
// DaemonSets and pods without a controller have none.
//
//	podEvicted ──▶ replaced ──▶ replacementBound ──▶ replacementRuns: the gap is known
//	                  ▲   the replacement goes before it runs │
//	                  └────────── replacementGone ────────────┘

// homeTime is how long a replacement may wait for its node without counting as homeless.
const homeTime = 30 * time.Second

// buyBackTime is how soon after a node was removed the order of another of its group counts
// as buying it back.
const buyBackTime = 30 * time.Minute

// displaced is a pod that Berth evicted from a node that was to go.
type displaced struct {
	name     string // of the evicted pod
	at       time.Duration
	homeless bool // it has been counted as such
}

// evictForBerth evicts a pod as Berth asks, and notes what becomes of it. The error is
// step.ErrRefused if a budget forbids the eviction.
func (w *World) evictForBerth(x step.Eviction) error {
	p := w.pods[x.UID]
	if p == nil || p.terminating() {
		return nil
	}
	n := p.node
	if !w.evict(p, x.Grace) {
		return step.ErrRefused
	}
	moves := n != nil && p.movesFrom(n)
	w.checkEviction(p, x.Grace, moves)
	if n == nil || p.ended || p.daemon() {
		return nil
	}
	w.stats.podEvicted(p, n, moves)
	return nil
}

// movesFrom reports whether a pod that is evicted from a node moves for its resize: the node stays.
func (p *pod) movesFrom(n *node) bool {
	return simulatedresizes.Pending(p.obj) != "" && !n.hasTaint(autoscaler.ToBeDeletedTaint)
}

// podEvicted counts an eviction from a node that is to go, or of a pod that moves since its node can't resize it. The
// pod's controller owes a replacement.
func (s *Stats) podEvicted(p *pod, n *node, moves bool) {
	if moves {
		s.Resizes.Moved++
		if c := p.controller; c != nil && c.moved == 0 {
			c.moved = s.w.now
		}
	} else {
		if s.Drain.Pods == 0 {
			s.firstEviction = s.w.now
		}
		s.Drain.Pods++
		n.evicted++
	}
	if c := p.controller; c != nil && !c.removed {
		c.owed = append(c.owed, &displaced{name: p.name, at: s.w.now})
	}
}

// replaced counts a new pod as the replacement of the one that was evicted first.
func (s *Stats) replaced(p *pod) {
	if c := p.controller; c != nil && len(c.owed) > 0 {
		p.replaces, c.owed = c.owed[0], c.owed[1:]
	}
}

// replacementBound counts a replacement that had to wait for its node.
func (s *Stats) replacementBound(p *pod) {
	if s.homeless(p) {
		p.replaces.homeless = true
		s.Drain.Homeless++
	}
}

// homeless reports whether a pod is a replacement that has waited too long for its node until
// now, and wasn't counted yet.
func (s *Stats) homeless(p *pod) bool {
	return p.replaces != nil && !p.replaces.homeless && s.w.now-p.arrived > homeTime
}

// replacementRuns adds the time in which nobody ran in the evicted pod's place.
func (s *Stats) replacementRuns(p *pod) {
	if p.replaces != nil {
		s.gap += s.w.now - p.replaces.at
		p.replaces = nil
	}
}

// replacementGone has the controller owe another replacement.
func (s *Stats) replacementGone(p *pod) {
	if p.replaces != nil && !p.controller.removed {
		p.controller.owed = append(p.controller.owed, p.replaces)
	}
	p.replaces = nil
}

// nodeRemoved counts a node that Berth has removed.
func (s *Stats) nodeRemoved(m *instance) {
	m.group.removals = append(m.group.removals, s.w.now)
	if m.node.evicted > 0 {
		s.Drain.Nodes++
		s.Drain.Duration = (s.w.now - s.firstEviction).Seconds()
	}
}

// nodeOrdered counts the order of a node in a group that another was removed from lately.
// Each removal counts once.
func (s *Stats) nodeOrdered(g *group) {
	g.removals = slices.DeleteFunc(g.removals, func(at time.Duration) bool { return s.w.now-at > buyBackTime })
	if len(g.removals) > 0 {
		g.removals = g.removals[1:]
		s.BoughtBack++
	}
}

// unfinished adds, in the end, what evicted pods without a running replacement have lost
// until the last change, and those that still wait for their node.
func (s *Stats) unfinished(out *scenario.Drain) {
	gap := s.gap
	lost := func(d *displaced) { gap += max(s.w.lastChange-d.at, 0) }
	for _, c := range s.w.controllers {
		for _, d := range c.owed {
			lost(d)
		}
	}
	for _, p := range s.w.sortedPods() {
		if p.replaces != nil {
			lost(p.replaces)
			if p.obj.Spec.NodeName == "" && s.homeless(p) {
				out.Homeless++
			}
		}
	}
	out.GapSeconds = round(gap.Seconds())
}
