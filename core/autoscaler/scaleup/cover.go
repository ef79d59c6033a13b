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
func (b *builder) cover(pending []*run) []*run {
	left := b.place(pending)
	coming := Coming(b.State, b.req.Conditions, b.req.Now, b.req.Limits.StartupTime)
	added := map[string]int{}
	for _, order := range b.req.Orders {
		g := b.State.Group(order.Group)
		if g == nil {
			continue
		}
		// Some of the order's nodes may be ready by now, or were given up.
		room := min(order.Nodes, coming[g.ID]-added[g.ID])
		k := b.pack(g, comingNode, added[g.ID], room, only(left, order.Pods))
		added[g.ID] += k.nodes
		left = without(left, k.pods)
	}
	for _, g := range b.State.Groups() {
		for ; added[g.ID] < coming[g.ID]; added[g.ID]++ {
			b.addNode(g, comingNode(added[g.ID]))
		}
	}
	return b.place(left)
}

// place places pods on the nodes of the state, in order, and returns those left over.
func (b *builder) place(runs []*run) []*run {
	var out []*run
	for _, r := range runs {
		n := b.Engine(r.pods[0]).PlaceMany(r.class, r.pods, func(*cluster.Pod, engine.Choice) {})
		if n < len(r.pods) {
			out = append(out, &run{r.class, r.pods[n:]})
		}
	}
	return out
}
