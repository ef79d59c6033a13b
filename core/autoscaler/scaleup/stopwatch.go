package scaleup

import "github.com/berthproject/berth/core/autoscaler"

// This file bounds how long a plan takes. What must hold: the stopwatch is asked at places
// that depend on the request alone; a plan that pods are pending for and a group would help
// proposes some nodes, however soon it is cut short, so that the plans after it come to an
// end; and the pods of proposed nodes are on them.

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
// a new node. It is asked before a node is added, so that each has pods.
func (p *packing) over() bool {
	p.ended = p.ended || p.nodes > 0 && p.builder.over(autoscaler.OneGroup)
	return p.ended
}

func (b *builder) over(s autoscaler.Span) bool { return b.Questions != nil && b.Questions.Over(s) }
