package scaleup

import (
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/cluster"
)

// This file says what nodes each class of pending pods would need of each group, for people
// who ask. No plan pays for it: a plan packs what is left together, an estimate each class
// alone.

// Estimate describes what the pods of one class need of each group. Only pods that fit on no
// existing or coming node are counted.
type Estimate struct {
	Pods   []*cluster.Pod // at least one, in order
	Groups []GroupEstimate
}

// GroupEstimate is what the pods of a class would need of one group if there were no others.
type GroupEstimate struct {
	GroupAnswer // of the first of the pods
	// Nodes is how many new nodes the pods need, as far as limits allow, and Fits how many of
	// the pods have a place on them.
	Nodes, Fits int
	// With are the other groups that some of the nodes are of, without which the pods would
	// have no place, such as those of other zones.
	With []string
	// Waste is what the pods leave unused of the new nodes, for each resource that these have,
	// by name.
	Waste []Waste
}

// Waste is what is unused of one resource.
type Waste struct {
	Resource v1.ResourceName
	// Unused is of what the nodes can allocate, which is more than 0, in the base unit
	// (milli-CPU, bytes, counts). What daemon and static pods take counts as unused, as in
	// ScaleUp.Wasted.
	Unused, Allocatable int64
}

// Share returns the share of the resource that is unused: 0 to 1.
func (w Waste) Share() float64 { return float64(w.Unused) / float64(w.Allocatable) }

// Estimate answers for all classes, in the order of their first pods, and for all groups. The
// request is one for a plan. It costs a packing for each class and group, and leaves the state
// as it found it.
func (p *Packer) Estimate(req autoscaler.Request) []Estimate {
	mark := p.State.Mark()
	defer p.State.Rollback(mark)
	req.Balancing.Mode = autoscaler.BalanceNever
	b := p.begin(&req, autoscaler.NewPlan(&req, 0))
	b.plan.Sick = Sick(p.State, &req)
	left := b.recall(b.cover(b.runs(req.Pending)))
	b.limits = b.newLimits()
	var out []Estimate
	for _, r := range byClass(left) {
		e := Estimate{Pods: r.pods}
		for _, g := range p.State.Groups() {
			e.Groups = append(e.Groups, b.estimate(g, r))
		}
		out = append(out, e)
	}
	return out
}

// estimate packs one group with the pods of one class.
func (b *builder) estimate(g *cluster.NodeGroup, r *run) GroupEstimate {
	room, limit := b.headroom(g)
	out := GroupEstimate{GroupAnswer: GroupAnswer{Group: g.ID, Room: max(room, 0), Limit: limit}}
	out.Reason, out.Detail = b.rejectsFor(g, r.class, r.pods[0])
	if room <= 0 {
		return out
	}
	mark := b.State.Mark()
	defer b.State.Rollback(mark)
	if !r.countable {
		b.addDomains()
	}
	k := b.pack(b.models[g.ID], nil, []*run{r})
	out.Nodes, out.Fits = k.nodes, k.pods.Len()
	for _, m := range k.joined {
		out.With = append(out.With, m.group.ID)
	}
	out.Waste = b.waste(k.bundles)
	return out
}

// waste returns what pods leave unused of new nodes.
func (b *builder) waste(bundles []*bundle) []Waste {
	var used, all cluster.Resources
	pods := Waste{Resource: v1.ResourcePods}
	for _, x := range bundles {
		if x.model == nil {
			continue
		}
		nodes := int64(x.nodes)
		all.Add(&x.node.Allocatable, nodes)
		pods.Allocatable += nodes * x.node.AllowedPods
		pods.Unused += nodes * x.node.AllowedPods
		for _, f := range x.fills {
			for _, pod := range f.pods[:f.each] {
				used.Add(&pod.Request, nodes)
				pods.Unused -= nodes
			}
		}
	}
	var out []Waste
	for id, v := range all.All() {
		if v > 0 {
			out = append(out, Waste{id.Name(), v - used.At(id), v})
		}
	}
	if pods.Allocatable > 0 {
		out = append(out, pods)
	}
	slices.SortFunc(out, func(x, y Waste) int { return strings.Compare(string(x.Resource), string(y.Resource)) })
	return out
}
