package core

import (
	"iter"

	policyv1 "k8s.io/api/policy/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/lifecycle"
	"github.com/berthproject/berth/core/lifecycle/headroom"
	"github.com/berthproject/berth/core/lifecycle/homes"
	"github.com/berthproject/berth/core/queue"
	"github.com/berthproject/berth/core/record"
	"github.com/berthproject/berth/core/scheduler"
	"github.com/berthproject/berth/core/step"
)

// This file has stand-ins go through the core as pods do: they have records and items in the
// queue, are decided on and planned for. What becomes of a decision is for the machine that has
// queued them, headroom or homes: nothing of them goes out.

// standIns are the records of the core's stand-ins; it implements headroom.Records and homes.Orders.
type standIns struct{ c *Core }

var (
	_ headroom.Records = standIns{}
	_ homes.Orders     = standIns{}
)

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

// HandOver implements homes.Orders.
func (s standIns) HandOver(t *lifecycle.Turn, standIn, pod types.UID) {
	s.c.reservation.HandOver(t, standIn, pod)
}

// Coming implements homes.Orders.
func (s standIns) Coming(standIn types.UID) bool { return s.c.reservation.WaitsFor(standIn) }

// placed has whoever has queued a stand-in keep its room.
func (s standIns) placed(item *queue.Item, d *scheduler.Decision) {
	if homes := s.c.scale.homes; homes != nil && homes.Knows(item.Pod()) {
		homes.StandInPlaced(s.c.turn, item.Pod(), d.Node.Name, d.Was)
		return
	}
	s.c.headroom.StandInPlaced(s.c.turn, item, d.Node.Name, d.Was)
}

// rejected tells headroom that no node takes a stand-in. Homes needn't know: they ask until one does.
func (s standIns) rejected(item *queue.Item, message string) {
	if homes := s.c.scale.homes; homes == nil || !homes.Knows(item.Pod()) {
		s.c.headroom.StandInRejected(s.c.turn, item, message)
	}
}

// noHelp tells whoever has queued a stand-in why no node group would help it.
func (s standIns) noHelp(standIn *cluster.Pod, reasons string) {
	if homes := s.c.scale.homes; homes.Knows(standIn) {
		homes.NoHelp(standIn, reasons)
		return
	}
	s.c.headroom.NoHelp(standIn, reasons)
}

// standInDecided carries out a decision for a stand-in.
func (c *Core) standInDecided(item *queue.Item, d *scheduler.Decision) {
	p := c.pods[item.Pod().UID]
	if d.Node == nil {
		c.nomination.Renominate(c.turn, &p.Nomination, item.Pod()) // to its place, if one is kept for it
		c.queue.SetNominated(item, p.Nomination.Reserved())
		if d.Failure != "" {
			c.queue.Fail(c.turn.Now, item)
			standIns{c}.rejected(item, d.Failure)
			return
		}
		c.queue.Reject(c.turn.Now, item, d.Diagnosis)
		if !item.Nominated() {
			c.wantPlan(p)
		}
		standIns{c}.rejected(item, d.Message)
		return
	}
	c.queue.Placed(item)
	c.queue.SetNominated(item, false)
	if item.Swept() {
		c.stats.MissedWakeups++
	}
	p.Planned = false
	// It has come, as far as it ever will; only then is it taken off the node again. Its nomination keeps what it
	// needs: no object goes on saying that it has that.
	c.reservation.PodBound(c.turn, item.Pod().UID, d.Node.Name)
	var former cluster.Former
	former.Note(d.Writes)
	former.Restore(c.state)
	standIns{c}.placed(item, d)
}

// objectSet takes in an object that rules or the autoscaler read as it stands. Headroom is
// kept by who makes the nodes: a core that only schedules leaves it to another.
func (c *Core) objectSet(in step.ObjectSet) {
	if b, ok := in.Object.(*policyv1.PodDisruptionBudget); ok {
		in.Object = c.preemption.BudgetShown(b)
	}
	if claim, ok := in.Object.(*resourcev1.ResourceClaim); ok {
		in.Object = c.deallocation.ClaimShown(c.turn.Now, claim)
	}
	slice, _ := in.Object.(*resourcev1.ResourceSlice)
	var old *resourcev1.ResourceSlice
	if slice != nil {
		old = c.state.ResourceSlice(slice.Name)
	}
	c.binding.ObjectSet(c.turn, in)
	if c.cfg.Autoscale != nil {
		c.headroom.ObjectSet(c.turn, in.Object)
		c.scale.groups.SliceChanged(c.state, slice, old)
	}
}

func (c *Core) objectGone(in step.ObjectGone) {
	if in.Kind == cluster.BudgetKind {
		c.preemption.BudgetGone(in.Namespace, in.Name)
	}
	if in.Kind == cluster.ResourceClaimKind {
		c.deallocation.ClaimGone(in.Namespace, in.Name)
	}
	var slice *resourcev1.ResourceSlice
	if in.Kind == cluster.ResourceSliceKind {
		slice = c.state.ResourceSlice(in.Name)
	}
	c.binding.ObjectGone(c.turn, in)
	if in.Kind == cluster.PodGroupKind {
		c.podGroups.ObjectGone(in.Namespace, in.Name)
	}
	if c.cfg.Autoscale != nil {
		c.scale.groups.SliceChanged(c.state, nil, slice)
	}
	c.headroom.ObjectGone(c.turn, in.Kind, in.Namespace, in.Name)
}
