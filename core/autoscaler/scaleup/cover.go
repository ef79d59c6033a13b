package scaleup

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/engine"
)

// cover places pods on nodes that exist and on nodes that are coming, and returns those
// left over: nodes are proposed for these only, so that nothing is ordered twice.
//
// The nodes of an order are filled first, each with the pods that it was ordered for; in
// other places the pods might not fit again, and nodes would be ordered for the rest. What
// room is left on them then is anybody's. Nodes that are coming without an order that is
// known, such as those of a process before this one, are anybody's from the beginning.
//
// A node that is registered and starting stands for itself, as it will be once it is
// usable. Since the oldest order is the first to have its nodes, these come first.
func (b *builder) cover(pending []*run) []*run {
	left := b.place(pending)
	arrivals := map[string]*arrivals{}
	for _, g := range b.State.Groups() {
		arrivals[g.ID] = b.arrivals(g)
	}
	waiting := index(left)
	for _, order := range b.req.Orders {
		// Some of the order's nodes may be usable by now, or were given up.
		if a := arrivals[order.Group]; a != nil {
			b.fillOrder(a, &order, waiting)
		}
	}
	left = filtered(left, func(pod *cluster.Pod) bool { return waiting[pod.UID] != nil })
	for _, g := range b.State.Groups() {
		for a := arrivals[g.ID]; a.unregistered > 0; {
			b.next(a)
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

// next takes the next of the coming nodes, of which there must be one, and has it stand in
// the state.
func (b *builder) next(a *arrivals) cluster.NodeIndex {
	if len(a.starting) > 0 {
		i := a.starting[0]
		a.starting = a.starting[1:]
		return i
	}
	a.unregistered--
	a.named++
	return b.addNode(b.models[a.group.ID], comingNode(a.group, a.named-1))
}

// fillOrder gives each pod of an order that waits the node that it was ordered for, as long
// as nodes are coming, and takes it out of those that wait. A pod that the node doesn't take
// any more, since the rules or the node are other than they were, waits on.
func (b *builder) fillOrder(a *arrivals, order *autoscaler.Order, waiting map[types.UID]*pending) {
	for _, bin := range order.Bins {
		if len(a.starting)+a.unregistered == 0 {
			return
		}
		if !slices.ContainsFunc(bin, func(uid types.UID) bool { return waiting[uid] != nil }) {
			continue
		}
		node := b.next(a)
		for _, uid := range bin {
			p := waiting[uid]
			if p == nil {
				continue
			}
			e := b.Engine(p.pod)
			if e.Explain(e.Current(p.class, p.pod), node) == nil {
				e.PlaceOn(p.pod, node)
				delete(waiting, uid)
			}
		}
	}
}

// pending is a pod that waits, with its class.
type pending struct {
	pod   *cluster.Pod
	class *engine.Class
}

func index(runs []*run) map[types.UID]*pending {
	out := map[types.UID]*pending{}
	for _, r := range runs {
		for _, pod := range r.pods {
			out[pod.UID] = &pending{pod, r.class}
		}
	}
	return out
}

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
