package core

import (
	"iter"

	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/lifecycle"
	"github.com/berthproject/berth/core/lifecycle/headroom"
	"github.com/berthproject/berth/core/queue"
	"github.com/berthproject/berth/core/record"
	"github.com/berthproject/berth/core/scheduler"
	"github.com/berthproject/berth/core/step"
)

// This file has stand-ins go through the core as pods do: they have records and items in the
// queue, are decided on and planned for. What becomes of a decision is the machine
// headroom's: nothing of them goes out.

// standIns are the records of the core's stand-ins; it implements headroom.Records.
type standIns struct{ c *Core }

var _ headroom.Records = standIns{}

func (s standIns) part() record.Part[headroom.Pod] {
	return record.PartOf(s.c.pods, func(p *record.Pod) *headroom.Pod { return &p.Headroom })
}

// Get implements headroom.Records.
func (s standIns) Get(uid types.UID) *headroom.Pod { return s.part().Get(uid) }

// All implements headroom.Records.
func (s standIns) All() iter.Seq2[types.UID, *headroom.Pod] { return s.part().All() }

// Queue implements headroom.Records.
func (s standIns) Queue(t *lifecycle.Turn, standIn *cluster.Pod) {
	s.c.pods[standIn.UID] = &record.Pod{Parsed: standIn, Seen: t.Now}
	s.c.queue.Add(t.Now, standIn, s.c.sched.Class(standIn), nil)
}

// Drop implements headroom.Records.
func (s standIns) Drop(uid types.UID) { s.c.podGone(uid) }

// standInDecided carries out a decision for a stand-in.
func (c *Core) standInDecided(item *queue.Item, d *scheduler.Decision) {
	p := c.pods[item.Pod().UID]
	if d.Node == nil {
		c.nomination.Renominate(c.turn, &p.Nomination, item.Pod()) // to its place, if one is kept for it
		c.queue.SetNominated(item, p.Nomination.Reserved())
		if d.Failure != "" {
			c.queue.Fail(c.turn.Now, item)
			c.headroom.StandInRejected(c.turn, item, d.Failure)
			return
		}
		c.queue.Reject(c.turn.Now, item, d.Diagnosis)
		if !item.Nominated() {
			c.wantPlan(p)
		}
		c.headroom.StandInRejected(c.turn, item, d.Message)
		return
	}
	c.queue.Placed(item)
	c.queue.SetNominated(item, false)
	if item.Swept() {
		c.stats.MissedWakeups++
	}
	p.Planned = false
	// It has come, as far as it ever will; only then is it taken off the node again.
	c.reservation.PodBound(c.turn, item.Pod().UID, d.Node.Name)
	c.headroom.StandInPlaced(c.turn, item, d.Node.Name)
}

// objectSet takes in an object that rules or the autoscaler read as it stands. Headroom is
// kept by who makes the nodes: a core that only schedules leaves it to another.
func (c *Core) objectSet(in step.ObjectSet) {
	if b, ok := in.Object.(*policyv1.PodDisruptionBudget); ok {
		in.Object = c.preemption.BudgetShown(b)
	}
	c.binding.ObjectSet(c.turn, in)
	if c.cfg.Autoscale != nil {
		c.headroom.ObjectSet(c.turn, in.Object)
	}
}

func (c *Core) objectGone(in step.ObjectGone) {
	if in.Kind == cluster.BudgetKind {
		c.preemption.BudgetGone(in.Namespace, in.Name)
	}
	c.binding.ObjectGone(c.turn, in)
	if in.Kind == cluster.PodGroupKind {
		c.podGroups.ObjectGone(in.Namespace, in.Name)
	}
	c.headroom.ObjectGone(c.turn, in.Kind, in.Namespace, in.Name)
}
