package scaleup

import (
	"fmt"
	"math"
	"slices"

	v1 "k8s.io/api/core/v1"

	"github.com/berthproject/berth/core/cluster"
)

// This file says how far groups may grow in one plan. The core checks the limits of
// groups and launches again when it commits the plan, for what has changed meanwhile.

// limits is what there is of the cluster, with what is coming, before the plan proposes
// anything.
type limits struct {
	nodes     int // that exist or are coming
	launching int // that are coming, of all groups
	totals    []total
}

// total is one resource of the cluster that is bounded, in the state's units.
type total struct {
	id        cluster.ResourceID
	name      v1.ResourceName
	max, used int64
	each      []int64 // of a new node of each group, by model.number
	devices   bool    // a device class backs it
}

// newLimits is called when those of the coming nodes stand in the state that matter to pods. It
// costs O(nodes).
func (b *builder) newLimits() limits {
	l := limits{nodes: live(b.State, b.req.Conditions), launching: Launching(b.coming)}
	for _, a := range b.arriving {
		l.nodes += a.unregistered
	}
	for _, t := range b.req.Limits.Totals {
		x := total{id: cluster.ResourceOf(t.Resource), name: t.Resource, max: t.Max}
		if t.Resource == v1.ResourceCPU {
			x.max *= 1000
		}
		x.devices = x.id.Scalar() && b.State.DeviceClassOf(x.name) != nil
		x.each = make([]int64, len(b.models))
		for _, m := range b.models {
			x.each[m.number] = b.amountOf(m, x.id)
		}
		l.totals = append(l.totals, x)
	}
	if len(l.totals) == 0 {
		return l
	}
	for id, a := range b.arriving {
		for i := range l.totals {
			l.totals[i].used += timesEach(a.unregistered, l.totals[i].each[b.models[id].number])
		}
	}
	b.State.Nodes(func(n *cluster.Node) { l.use(b.State, n, 1) })
	b.State.Unready(func(n *cluster.Node) {
		if isLost(b.req.Conditions, n) {
			l.use(b.State, n, -1)
		}
	})
	return l
}

// use counts what a node has, or with -1 takes it away.
func (l *limits) use(s *cluster.State, n *cluster.Node, times int64) {
	for i := range l.totals {
		l.totals[i].used += times * s.AmountOf(n, l.totals[i].id)
	}
}

// amountOf returns how much a new node of a group will have of a resource, with the devices of a class that
// backs it.
func (b *builder) amountOf(m *model, id cluster.ResourceID) int64 {
	amount := m.info.Allocatable.At(id)
	if amount > 0 || !id.Scalar() {
		return amount
	}
	if class := b.State.DeviceClassOf(id.Name()); class != nil {
		for _, d := range b.promises.devices[m.group.ID] {
			amount += b.State.Devices().CountOf(d, class)
		}
	}
	return amount
}

// timesEach returns how much so many nodes have, which may be as many as a provider says.
func timesEach(nodes int, each int64) int64 {
	if each > 0 && int64(nodes) > math.MaxInt64/8/each {
		return math.MaxInt64 / 8
	}
	return int64(nodes) * each
}

// addComing counts the nodes of a group that are coming, where they don't stand in the state.
func (l *limits) addComing(b *builder, g *cluster.NodeGroup) {
	coming := b.coming[g.ID]
	l.nodes += coming.Unregistered
	for i := range l.totals {
		t := &l.totals[i]
		each := t.each[b.models[g.ID].number]
		t.used += timesEach(coming.Unregistered, each)
		for _, n := range coming.Starting { // it may not have all resources and devices yet
			has, will := b.State.AmountOf(n, t.id), b.req.Readiness.Started(n.NodeInfo, g.Template).Allocatable.At(t.id)
			if will == 0 && t.devices {
				will = max(has, each)
			}
			t.used += will - has
		}
	}
}

// Limits of which there is more to say: a group backs off, or nobody can say what its new
// nodes look like.
const (
	InBackoff  = "in backoff after failed scale-up"
	NoTemplate = "template error"
)

// otherDomain keeps a group from growing for a gang whose members have to be elsewhere.
const otherDomain = "its new nodes are not in the topology domain of the pod group, or it is not known in which they are"

// MaxNodesTotal is the limit of the whole cluster's nodes.
const MaxNodesTotal = "max total nodes in cluster reached"

// TotalReached is the limit of all nodes together of a resource.
func TotalReached(name v1.ResourceName) string {
	return fmt.Sprintf("max cluster %s limit reached", name)
}

// Limits that a group meets for the moment.
const (
	launching        = "max number of nodes launching reached"
	launchingInGroup = "max number of nodes launching in the group reached"
	perScaleUp       = "max number of nodes per scale-up reached"
)

// LimitsLaunches reports whether a limit is launch control's.
func LimitsLaunches(limit string) bool { return limit == launching || limit == launchingInGroup }

// passes reports whether a limit is one that a group meets for the moment.
func passes(limit string) bool {
	return LimitsLaunches(limit) || limit == perScaleUp
}

// unknown reports whether nobody can say what a new node of a group looks like: not the
// provider, and no node that there has been.
func (b *builder) unknown(g *cluster.NodeGroup) bool {
	return g.TemplateError != "" && b.req.Conditions[g.ID].Newest == nil
}

// headroom returns how many more nodes the plan may propose of a group, and, when that
// is none, why, in Cluster Autoscaler's words. An atomic group may have all of its nodes, or none.
func (b *builder) headroom(g *cluster.NodeGroup) (int, string) {
	if b.plan.Sick != "" {
		return 0, b.plan.Sick
	}
	if b.gangs.only != nil && !b.gangs.only[g.ID] {
		return 0, otherDomain
	}
	if b.req.Conditions[g.ID].BackingOff {
		return 0, InBackoff
	}
	if b.unknown(g) {
		return 0, NoTemplate
	}
	m := b.models[g.ID]
	own := b.proposed.of(m)
	room := g.Max - g.Target - own
	if room <= 0 {
		return 0, "max node group size reached"
	}
	all, whole, why := b.proposed.all, room, ""
	limits := &b.req.Limits
	for _, limit := range []struct {
		max, used int
		why       string
	}{
		{limits.MaxNodesPerScaleUp, own, perScaleUp},
		{limits.MaxNodesTotal, b.limits.nodes + all, MaxNodesTotal},
		{limits.MaxNodesLaunching, b.limits.launching + all, launching},
		{b.req.Conditions[g.ID].MaxLaunching, b.coming[g.ID].Nodes() + own, launchingInGroup},
	} {
		if limit.max <= 0 {
			continue
		}
		if left := limit.max - limit.used; left < room {
			room, why = left, limit.why
		}
		if room <= 0 {
			return 0, why
		}
	}
	for i, t := range b.limits.totals {
		each := t.each[m.number]
		if each == 0 {
			continue
		}
		if left := int(max(t.max-t.used-b.proposed.sum(i), 0) / each); left < room {
			room, why = left, TotalReached(t.name)
		}
		if room <= 0 {
			return 0, why
		}
	}
	if room < whole && atomicGroup(g) {
		return 0, why
	}
	return room, ""
}

// proposals are the nodes that the plan proposes so far, with their sums: headroom is asked
// once and more for each group and round.
type proposals struct {
	nodes []int   // by model.number
	all   int     // the sum of nodes
	sums  []int64 // by limits.totals: how much the nodes have; nil while there are none
}

// of returns how many nodes are proposed of one group.
func (p *proposals) of(m *model) int { return p.nodes[m.number] }

// sum returns how much the nodes have of what limits.totals[i] bounds.
func (p *proposals) sum(i int) int64 {
	if p.sums == nil {
		return 0
	}
	return p.sums[i]
}

func (p *proposals) clone() proposals {
	return proposals{slices.Clone(p.nodes), p.all, slices.Clone(p.sums)}
}

// add has the plan propose more nodes of a group; fewer, if nodes is below 0.
func (b *builder) add(m *model, nodes int) {
	p := &b.proposed
	p.nodes[m.number] += nodes
	p.all += nodes
	if p.sums == nil {
		p.sums = make([]int64, len(b.limits.totals))
	}
	for i := range b.limits.totals {
		p.sums[i] += int64(nodes) * b.limits.totals[i].each[m.number]
	}
}
