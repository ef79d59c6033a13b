package scaleup

import "github.com/berthproject/berth/core/autoscaler"

// This file bounds how long a plan takes. What must hold: the stopwatch is asked at places
// that depend on the request alone; the pods of proposed nodes are on them; and plans that are
// cut short come to an end together. So a plan that pods are pending for and a group would help
// proposes some nodes, however soon it is cut short, but for one thing: where groups are tried
// in vain for long, each plan that is cut short tries one more, and each another.

// patience is how a plan stands with the stopwatch.
type patience struct {
	ended bool // the plan has taken long enough
}

// planOver asks whether the plan has taken long enough, in which case it is to end.
func (b *builder) planOver() bool {
	b.patience.ended = b.patience.ended || b.over(autoscaler.WholePlan)
	return b.patience.ended
}

// over asks whether the packing of a group has taken long enough. It hasn't before there is
// a new node, unless nothing was found for long. It is asked before a node is added, so that
// each has pods.
func (p *packing) over() bool {
	p.ended = p.ended || (p.nodes > 0 || p.inVain()) && p.builder.over(autoscaler.OneGroup)
	return p.ended
}

// maxVain is how much of a round may be in vain before the stopwatch is asked (Work.Tried). What
// is remembered of other plans changes nothing of it.
const maxVain = 1 << 16

// inVain reports whether as much was tried in this round as may be in vain.
func (b *builder) inVain() bool { return b.work.Tried-b.triedBefore > maxVain }

// It isn't asked while a gang is packed, which is of use only as a whole.
func (b *builder) over(s autoscaler.Span) bool {
	return !b.gangs.standing && b.Questions != nil && b.Questions.Over(s)
}
