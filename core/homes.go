package core

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/record"
)

// This file tells the machine homes what becomes of pods, and gives the replacements of
// evicted pods the room that it has kept.

// takeHome gives a pod without a node, when it is first shown and no gate holds it, the home
// of the evicted pod that it replaces, if there is one: from then on it has a place there like
// a pod whose node is coming, in the turn of the home, and is tried there first.
func (c *Core) takeHome(p *record.Pod) {
	if c.scale.homes == nil || p.Appeared {
		return
	}
	p.Appeared = true
	room := c.scale.homes.PodAppearedPending(c.turn, p.Parsed)
	if room == nil || p.Nomination.Decided() {
		return
	}
	if n := c.state.NodeByName(room.Name); n != nil {
		p.Nomination.TakeTurn(room)
		c.reservation.Join(c.turn, &autoscaler.Join{Group: n.Group, Node: n.Name}, []types.UID{p.Parsed.UID})
	}
}

// podShownOnNode records that the API shows a pod on a node, for the first time if isNew is set.
func (c *Core) podShownOnNode(pod *cluster.Pod, isNew bool) {
	switch {
	case c.scale.homes == nil:
	case pod.Object.DeletionTimestamp != nil:
		c.podTerminating(pod.UID)
	case isNew:
		c.scale.homes.PodAppearedBound(c.turn, pod)
	}
}

// podTerminating records that a pod is terminating or gone.
func (c *Core) podTerminating(uid types.UID) {
	if c.scale.homes != nil {
		c.scale.homes.PodTerminating(c.turn, uid)
	}
}
