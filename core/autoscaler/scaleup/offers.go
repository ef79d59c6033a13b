package scaleup

import (
	"slices"

	"github.com/berthproject/berth/core/autoscaler/expander"
	"github.com/berthproject/berth/core/engine"
)

// This file keeps what groups offer from round to round. With a group for each tenant there
// are as many rounds as groups, and in each the other groups offer what they offered before.
//
// An offer is kept only while the runs that are left are all of countable classes: then it
// follows from these runs, from the groups that it may have nodes of, and from how far they
// may grow. Its slow twin is offerAnew, which asks nothing that was kept.

// offer is what growing one group, with those that are similar, would bring.
type offer struct {
	packed packed
	option expander.Option // made of packed; without nodes there is none
	// runs are those left that a node of one of the groups takes. Only they matter.
	runs []*run
	// rooms are how many nodes the groups may have: the group first, then the similar ones.
	rooms []int
	stale bool
}

// offer returns what a group offers for the runs that are left. kept says that it may be
// what the group offered in the round before.
func (b *builder) offer(m *model, left []*run, kept bool) *offer {
	if !kept {
		return b.offerAnew(m, left)
	}
	if b.offers == nil {
		b.offers = make([]*offer, len(b.models))
	}
	x := b.offers[m.number]
	if x == nil || x.stale || !b.hasRoomFor(m, x) {
		rooms := b.roomsOf(m)
		x = b.offerAnew(m, b.takenOf(m, left))
		x.rooms = rooms
		b.offers[m.number] = x
	}
	return x
}

// offerAnew packs a group with runs.
func (b *builder) offerAnew(m *model, runs []*run) *offer {
	x := &offer{packed: packed{model: m}, runs: runs}
	if len(runs) == 0 {
		return x
	}
	x.packed = b.option(m, runs)
	k := &x.packed
	if k.nodes == 0 {
		return x
	}
	x.option = expander.Option{Group: m.group, Nodes: k.nodes, Pods: k.pods, Wasted: wasted(k.bundles), Allocatable: &m.info.Allocatable}
	for _, o := range k.joined {
		x.option.Similar = append(x.option.Similar, expander.Share{Group: o.group, Nodes: k.only(o).nodes})
	}
	return x
}

// takenOf returns the runs of countable classes that a node of a group, or of a similar one,
// takes.
func (b *builder) takenOf(m *model, left []*run) (out []*run) {
	for _, r := range left {
		b.work.Tried++
		if b.takes(m, r.class) {
			out = append(out, r)
		}
	}
	return out
}

// takes reports whether a new node of a group, or of a similar one, takes pods of a countable
// class.
func (b *builder) takes(m *model, c *engine.Class) bool {
	e := b.Engine(c.Pod())
	return b.fits(m, e, c) > 0 || slices.ContainsFunc(b.similar(m), func(o *model) bool { return b.fits(o, e, c) > 0 })
}

// roomsOf returns how many nodes a group and the similar ones may have.
func (b *builder) roomsOf(m *model) []int {
	room, _ := b.headroom(m.group)
	out := []int{room}
	for _, o := range b.similar(m) {
		room, _ := b.headroom(o.group)
		out = append(out, room)
	}
	return out
}

// hasRoomFor reports whether an offer would be the same with the room that there is now. It
// would if the room is the same, and for a group alone also if it has enough, and had.
func (b *builder) hasRoomFor(m *model, x *offer) bool {
	now := b.roomsOf(m)
	return slices.Equal(now, x.rooms) || len(now) == 1 && !x.packed.limited && now[0] >= x.packed.nodes
}

// forgetOffers is called when the runs that are left are others.
func (b *builder) forgetOffers() { b.offers = nil }

// outdate has the groups pack anew that an option concerns which has become part of the plan:
// its own, those similar to these, and those that take pods of the runs that it has changed.
func (b *builder) outdate(chosen packed, before, after []*run) {
	if b.offers == nil {
		return
	}
	grown := append([]*model{chosen.model}, chosen.joined...)
	changed := changedClasses(before, after)
	for _, m := range b.models {
		x := b.offers[m.number]
		if x == nil || x.stale {
			continue
		}
		x.stale = slices.Contains(grown, m) ||
			slices.ContainsFunc(changed, func(c *engine.Class) bool { return b.takes(m, c) }) ||
			slices.ContainsFunc(b.similar(m), func(o *model) bool { return slices.Contains(grown, o) })
	}
}

// changedClasses returns the classes of the runs that only the first list has.
func changedClasses(before, after []*run) (out []*engine.Class) {
	same := map[*run]bool{}
	for _, r := range after {
		same[r] = true
	}
	for _, r := range before {
		if !same[r] {
			out = append(out, r.class)
		}
	}
	return out
}
