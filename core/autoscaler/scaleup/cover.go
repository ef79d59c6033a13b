package scaleup

import (
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/engine"
)

// cover places pods on nodes that exist and on nodes that are coming, and returns those
// left over: nodes are proposed for these only, so that nothing is ordered twice.
//
// The nodes of an order are packed first with the pods that the order was made for, as
// they were when it was made; in another order the pods might not fit again, and nodes
// would be ordered for the rest. What room is left on them then is anybody's. Nodes
// that are coming without an order that is known, such as those of a process before
// this one, are anybody's from the beginning.
//
// A node that is registered and starting stands for itself, as it will be once it is
// usable. Since the oldest order is the first to have its nodes, these come first.
func (b *builder) cover(pending []*run) []*run {
	left := b.place(pending)
	arrivals := map[string]*arrivals{}
	for _, g := range b.State.Groups() {
		arrivals[g.ID] = b.arrivals(g)
	}
	for _, order := range b.req.Orders {
		a := arrivals[order.Group]
		if a == nil {
			continue
		}
		// Some of the order's nodes may be usable by now, or were given up.
		given, room := a.take(order.Nodes)
		mark := b.State.Mark()
		k := b.pack(b.models[order.Group], given, a.name, room, only(left, order.Pods))
		b.State.Rollback(mark)
		b.apply(k, a.name)
		a.unregistered -= k.nodes
		a.named += k.nodes
		left = without(left, k.pods)
	}
	for _, g := range b.State.Groups() {
		for a := arrivals[g.ID]; a.unregistered > 0; a.unregistered-- {
			b.addNode(b.models[g.ID], a.name(0))
			a.named++
		}
	}
	return b.place(left)
}

// arrivals are the coming nodes of one group that cover hasn't dealt with yet.
type arrivals struct {
	group        *cluster.NodeGroup
	starting     []cluster.NodeIndex
	unregistered int
	named        int // how many that aren't registered stand in the state
}

// arrivals has the nodes of a group that are starting stand in the state as they will be
// once they are usable, with their daemon pods.
func (b *builder) arrivals(g *cluster.NodeGroup) *arrivals {
	coming := b.coming[g.ID]
	a := &arrivals{group: g, unregistered: coming.Unregistered}
	for _, n := range coming.Starting {
		i := b.State.SetNode(b.req.Readiness.Started(n.NodeInfo, g.Template))
		b.addDaemons(i)
		a.starting = append(a.starting, i)
	}
	return a
}

// take returns the nodes for an order: those that are registered, and how many others.
func (a *arrivals) take(nodes int) (given []cluster.NodeIndex, room int) {
	k := min(nodes, len(a.starting))
	given, a.starting = a.starting[:k], a.starting[k:]
	return given, min(nodes-k, a.unregistered)
}

// name names the i-th coming node that isn't registered, beyond those that stand in the
// state.
func (a *arrivals) name(i int) string { return comingNode(a.group, a.named+i) }

// place places pods on the nodes of the state, in order, and returns those left over.
func (b *builder) place(runs []*run) []*run {
	var out []*run
	for _, r := range runs {
		n := b.Engine(r.pods[0]).PlaceMany(r.class, r.pods, func(*cluster.Pod, engine.Choice) {})
		if n < len(r.pods) {
			out = append(out, &run{r.class, r.countable, r.pods[n:]})
		}
	}
	return out
}
