package scaleup

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/engine"
)

// cover places pods on nodes that exist and on nodes that are coming, and returns those
// left over: nodes are proposed for these only, so that nothing is ordered twice.
//
// Places are filled before others take the room of their nodes, each with the pods that it is
// kept for; elsewhere the pods might not fit again, and nodes would be ordered for the rest.
// What room is left on their nodes then is anybody's. Nodes that are coming without a place,
// such as those of a process before this one, are anybody's from the beginning.
//
// A node that is registered and starting stands for itself, as it will be once it is
// usable. Of those that aren't registered no more of a group stand in the state, beside those of
// places, than there are pods to be placed: a target may be any number that a provider says.
func (b *builder) cover(pending []*run) []*run {
	left := b.fillPlaces(pending, b.usablePlace, b.fitsNow)
	left = b.placeAnd(left, func(pod *cluster.Pod, c engine.Choice) { b.fitsNow(pod, c.Node) })
	b.joins = map[cluster.NodeIndex]*autoscaler.Join{}
	for _, g := range b.State.Groups() {
		b.arriving[g.ID] = b.arrivals(g)
	}
	left = b.fillPlaces(left, b.comingPlace, func(*cluster.Pod, cluster.NodeIndex) {})
	for _, g := range b.State.Groups() {
		a := b.arriving[g.ID]
		for free := count(left); a.unregistered > 0 && free > 0; free-- {
			b.next(a)
		}
	}
	return b.placeOnComing(left)
}

// placeOnComing is place, and records in Plan.Joins which pods are on which coming node. The joins
// are in the order of groups, and within one in that of arrivals.nodes, as Plan.Joins promises.
func (b *builder) placeOnComing(runs []*run) []*run {
	left := b.placeAnd(runs, func(pod *cluster.Pod, c engine.Choice) {
		if join := b.joins[c.Node]; join != nil {
			join.Pods = append(join.Pods, pod.UID)
		}
	})
	for _, g := range b.State.Groups() {
		for _, n := range b.arriving[g.ID].nodes {
			if join := b.joins[n]; len(join.Pods) > 0 {
				b.plan.Joins = append(b.plan.Joins, *join)
			}
		}
	}
	return left
}

// arrivals are the coming nodes of one group.
type arrivals struct {
	// Invariant: nodes[:starting] are registered and starting; nodes[starting:] were added by next,
	// and unregistered is how many next may still add.
	group        *cluster.NodeGroup
	unregistered int                 // how many that aren't registered don't stand in the state yet
	nodes        []cluster.NodeIndex // those that do, the starting ones first
	starting     int                 // how many of them are starting
}

// arrivals replaces the starting nodes of a group in the state by what they will be once they are
// usable, with their daemon pods, CSI drivers and devices.
func (b *builder) arrivals(g *cluster.NodeGroup) *arrivals {
	coming := b.coming[g.ID]
	a := &arrivals{group: g, unregistered: coming.Unregistered, starting: len(coming.Starting)}
	for _, starting := range coming.Starting {
		n := b.State.SetNode(asTemplate(b.req.Readiness.Started(starting.NodeInfo, g.Template)))
		b.addDrivers(b.models[g.ID], starting.Name)
		b.addDevices(b.models[g.ID], starting.Name)
		b.addDaemons(n)
		a.nodes = append(a.nodes, n)
		b.joins[n] = &autoscaler.Join{Group: g.ID, Node: starting.Name}
	}
	return a
}

// next adds one more of the unregistered coming nodes to the state. The caller checks that
// a.unregistered is positive.
func (b *builder) next(a *arrivals) cluster.NodeIndex {
	a.unregistered--
	n := b.addNode(b.models[a.group.ID], comingNode(a.group, len(a.nodes)-a.starting))
	a.nodes = append(a.nodes, n)
	b.joins[n] = &autoscaler.Join{Group: a.group.ID}
	return n
}

// fitsNow records in the plan that a pod fits on a node as it is.
func (b *builder) fitsNow(pod *cluster.Pod, node cluster.NodeIndex) {
	b.plan.Fitting = append(b.plan.Fitting, autoscaler.Fitting{Pod: pod, Node: b.State.Node(node).Name})
}

// usablePlace returns the node of a place as it is, nil when it isn't registered. cover asks
// before it has starting nodes stand in the state as they will be; as they are, their taints
// keep pods away.
func (b *builder) usablePlace(p *autoscaler.Place) *cluster.Node { return b.State.NodeByName(p.Node) }

// comingPlace returns the node of a place as it stands in the state, with those that are coming;
// nil when it isn't coming any more. A node that isn't registered is the next of its group. Pods
// for which there is room beside those of the place join them.
func (b *builder) comingPlace(p *autoscaler.Place) *cluster.Node {
	n := b.State.NodeByName(p.Node)
	if a := b.arriving[p.Group]; p.Node == "" && a != nil && a.unregistered > 0 {
		n = b.State.Node(b.next(a))
	}
	if n != nil && b.joins[n.Index] != nil {
		b.joins[n.Index].With = p.Pods[0]
	}
	return n
}

// fillPlaces gives the pods of places that wait their nodes, and returns the others. A pod that
// its node doesn't take, since the rules or the node are other than they were, is one of those.
func (b *builder) fillPlaces(runs []*run, nodeOf func(*autoscaler.Place) *cluster.Node, placed func(*cluster.Pod, cluster.NodeIndex)) []*run {
	var waiting map[types.UID]*pending // made when there is a place to fill
	for i := range b.req.Places {
		place := &b.req.Places[i]
		n := nodeOf(place)
		if n == nil {
			continue
		}
		if waiting == nil {
			waiting = index(runs)
		}
		node := n.Index // placing a pod may replace what n points to
		for _, uid := range place.Pods {
			p := waiting[uid]
			if p == nil {
				continue
			}
			if e := b.Engine(p.pod); e.Explain(e.Current(p.class, p.pod), node) == nil {
				e.PlaceOn(p.pod, node)
				placed(p.pod, node)
				delete(waiting, uid)
			}
		}
	}
	if waiting == nil {
		return runs
	}
	return filtered(runs, func(pod *cluster.Pod) bool { return waiting[pod.UID] != nil })
}

// unneeded returns how many of the coming nodes that aren't registered take no pending pod,
// by group, where nodes have become spare.
func (b *builder) unneeded() (out []autoscaler.GroupNodes) {
	for _, g := range b.State.Groups() {
		spare := b.req.Spare[g.ID]
		if spare == 0 {
			continue
		}
		a := b.arriving[g.ID]
		empty := a.unregistered // those that don't stand in the state
		for _, i := range a.nodes[a.starting:] {
			if b.State.Node(i).Workload == 0 {
				empty++
			}
		}
		if n := min(empty, spare); n > 0 {
			out = append(out, autoscaler.GroupNodes{Group: g.ID, Nodes: n})
		}
	}
	return out
}

// pending is a pod that waits, with its class.
type pending struct {
	pod   *cluster.Pod
	class *engine.Class
}

// index returns the pods of all runs by UID, with their classes.
func index(runs []*run) map[types.UID]*pending {
	out := map[types.UID]*pending{}
	for _, r := range runs {
		for _, pod := range r.pods {
			out[pod.UID] = &pending{pod, r.class}
		}
	}
	return out
}

// place places pods on the nodes of the state, in order, and returns those left over. A
// countable class for which no node was found isn't tried again: pods placed later only reduce the
// room on nodes, unless one is placed on another node than the one it is nominated to.
func (b *builder) place(runs []*run) []*run {
	return b.placeAnd(runs, func(*cluster.Pod, engine.Choice) {})
}

// placeAnd is place, and calls placed for each pod that has a node.
func (b *builder) placeAnd(runs []*run, placed func(*cluster.Pod, engine.Choice)) []*run {
	var out []*run
	full := map[*engine.Class]bool{}
	for _, r := range runs {
		if full[r.class] {
			out = append(out, r)
			continue
		}
		n := b.Engine(r.pods[0]).PlaceMany(r.class, r.pods, placed)
		if n == len(r.pods) {
			continue
		}
		out = append(out, &run{r.class, r.countable, r.pods[n:], r.prefers})
		full[r.class] = r.countable && !b.State.AnyNominated()
	}
	return out
}
