package scaledown

import (
	"fmt"
	"slices"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/cluster"
)

// This file ends a pass: it undoes candidates until all that are left can go together.

// settleRounds is how often homes are looked for anew that the homes of others make
// impossible, before candidates are undone instead.
const settleRounds = 3

// settle confirms the homes of pods that rules may reject for what is elsewhere, such as hard
// spread and anti-affinity: since such a home was found others have been, and pods have left
// their nodes. In the end each pod could go where it is with all others where they are. It
// takes O(pods of such classes that have moved) when anything has changed.
func (p *pass) settle() {
	for round := 0; p.unsettled; round++ {
		p.unsettled = false
		for _, c := range slices.Clone(p.candidates) {
			for k := range c.homes {
				if p.byNode[c.node] != c {
					break // undone on account of the one before
				}
				h := &c.homes[k]
				if p.stillFits(h) {
					continue
				}
				x := lifted{c, k, p.world.Node(h.at).Name}
				p.version++
				c.was.Note(p.takeOff(h.pod, h.at))
				h.at = cluster.NoNode
				if round < settleRounds {
					p.setDown(&x)
				} else {
					p.undo(c)
				}
				if p.byNode[c.node] != c {
					p.keepNoPlace(p.world.Node(c.node), h.pod, c.removal.Utilization)
				}
			}
		}
	}
}

// keepUndone says why the nodes stay whose candidates were undone with another that they are entangled
// with.
func (p *pass) keepUndone() {
	for _, c := range p.retired {
		if n := p.world.Node(c.node); n != nil && p.byNode[c.node] == nil && p.kept[c.node] == nil && len(c.homes) > 0 {
			p.keepNoPlace(n, c.homes[0].pod, c.removal.Utilization)
		}
	}
}

// stillFits reports whether a pod could go to its home now, with all others where they are.
func (s *Simulator) stillFits(h *home) bool {
	if !h.engine.LooksBeyondNode(h.class) {
		return true // what its home's own node allows is confirmed when that changes (Follow)
	}
	mark := s.world.Mark()
	defer s.world.Rollback(mark)
	h.engine.TakeOff(h.pod)
	return h.engine.FitsOn(h.engine.Current(h.class, h.pod), s.world.Node(h.at))
}

// wholeGroups undoes the candidates of groups that go as a whole or not at all, where some
// node of the group stays, and reports whether there were any.
func (p *pass) wholeGroups() (undone bool) {
	for _, g := range p.world.Groups() {
		if g.Options == nil || !g.Options.ZeroOrMax {
			continue
		}
		var of []*candidate
		for _, c := range p.candidates {
			if c.info.Group == g.ID {
				of = append(of, c)
			}
		}
		if nodes := g.Target - p.down.Leaving[g.ID]; len(of) > 0 && len(of) < nodes {
			undone = true
			for _, c := range of {
				p.undo(c)
				p.setKept(p.world.Node(c.node), autoscaler.Kept{Reason: autoscaler.KeptAtomic, Detail: fmt.Sprintf("the nodes of group %s are removed all together or not at all, and %d of %d are removable", g.ID, len(of), nodes)})
			}
		}
	}
	return undone
}
