package scaleup

import (
	"slices"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/autoscaler/mix"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/engine"
	"github.com/berthproject/berth/core/framework"
)

// The cost expander: package mix finds the cheapest nodes for all pods of countable classes
// together, with the pods that each of them is to hold. The rules are asked again here
// before anything is proposed, so that what the mathematics leaves out can cost money but
// break no rule.
//
// Similar groups of one price share what the mix buys of any of them (balance.go).

// mixClass is the pods of one class that are left, in their order.
type mixClass struct {
	class     *engine.Class
	countable bool
	pods      []*cluster.Pod
}

// LowerBound returns what any purchase for the pending pods of a request costs an hour at
// least, from nothing but new nodes, and for how many of them: pods that no group takes, or
// has room for, are left out. The price is 0 when it isn't known, as for too large a problem.
// Of pods that aren't countable it asks only what a node alone can say, so it leaves out what rules say about several pods together: that makes the
// bound lower and never false.
func (p *Packer) LowerBound(req autoscaler.Request) (price float64, pods int) {
	mark := p.State.Mark()
	defer p.State.Rollback(mark)
	b := p.begin(&req, &autoscaler.Plan{})
	var models []*model
	for _, g := range p.State.Groups() {
		if room, _ := b.headroom(g); room > 0 {
			models = append(models, b.models[g.ID])
		}
	}
	classes := b.mixClasses(b.runs(req.Pending))
	if len(classes) == 0 || len(models) == 0 {
		return 0, 0
	}
	problem := b.mixProblem(classes, models)
	solution := mix.Solve(problem.classes, problem.groups)
	for _, n := range solution.Held {
		pods += n
	}
	return solution.LowerBound, pods
}

// buyMix proposes the cheapest mix of groups that have a price, as far as limits allow, and
// returns the pods that are left.
func (b *builder) buyMix(left []*run) []*run {
	classes := slices.DeleteFunc(b.mixClasses(left), func(c *mixClass) bool { return !c.countable })
	var models []*model
	for _, g := range b.State.Groups() {
		if room, _ := b.headroom(g); room > 0 && g.Price > 0 {
			models = append(models, b.models[g.ID])
		}
	}
	if len(classes) == 0 || len(models) == 0 {
		return left
	}
	problem := b.mixProblem(classes, models)
	solution := mix.Solve(problem.classes, problem.groups)
	b.mix = &autoscaler.Mix{Price: solution.Price, LowerBound: solution.LowerBound}
	defer func() { b.mix = nil }()
	bought := packed{joined: models} // none of them is the one that was packed
	held := make([]int, len(classes))
	for i, c := range classes {
		held[i] = len(c.pods)
	}
	for _, batch := range solution.Nodes {
		if x := b.buyBatch(models[batch.Group], batch, classes); x != nil {
			bought.bundles = append(bought.bundles, x)
		}
	}
	if b.balances() {
		bought.bundles = b.balance(bought.bundles)
	}
	for i, c := range classes {
		held[i] -= len(c.pods)
	}
	choice := b.recordMix(models, &bought, problem, held)
	var all []packed
	for _, m := range models {
		if k := bought.only(m); k.nodes > 0 {
			k.choice = choice
			b.add(m, -k.nodes) // propose counts them
			all = append(all, k)
		}
	}
	return b.propose(left, all...)
}

// mixClasses returns the classes of which pods are left, in the order of their first pods. Those that
// claim devices aren't countable here: package mix knows no devices, by which nodes of groups differ.
func (b *builder) mixClasses(left []*run) []*mixClass {
	var out []*mixClass
	at := map[*engine.Class]*mixClass{}
	for _, r := range left {
		c := at[r.class]
		if c == nil {
			c = &mixClass{class: r.class, countable: r.countable && !b.State.ClaimsDevices(r.class.Pod())}
			at[r.class] = c
			out = append(out, c)
		}
		c.pods = append(c.pods, r.pods...)
	}
	return out
}

// mixProblem is what package mix is asked.
type mixProblem struct {
	classes []mix.Class
	groups  []mix.Group
}

// mixProblem asks the rules about each class and an empty node of each group.
func (b *builder) mixProblem(classes []*mixClass, models []*model) *mixProblem {
	resources := mixResources(classes, models)
	p := &mixProblem{}
	for _, m := range models {
		room, _ := b.headroom(m.group)
		blank := b.blank(m)
		g := mix.Group{Price: m.group.Price, Room: room}
		for _, id := range resources {
			g.Allocatable = append(g.Allocatable, max(blank.Allocatable.At(id)-blank.Requested.At(id), 0))
		}
		g.Allocatable = append(g.Allocatable, max(blank.AllowedPods-int64(len(blank.Pods)), 0))
		p.groups = append(p.groups, g)
	}
	for _, c := range classes {
		p.classes = append(p.classes, b.mixClass(c, models, p.groups, resources))
	}
	return p
}

// mixResources returns the resources that decide how many pods a node takes: those that every
// node has, and the scalar ones that some class requests and some group has. A class that
// requests another is taken by no group.
func mixResources(classes []*mixClass, models []*model) []cluster.ResourceID {
	out := []cluster.ResourceID{cluster.CPU, cluster.Memory, cluster.EphemeralStorage}
	var offered cluster.Resources
	for _, m := range models {
		offered.Add(&m.info.Allocatable, 1)
	}
	for id := range offered.All() {
		if id.Scalar() && slices.ContainsFunc(classes, func(c *mixClass) bool { return c.class.Pod().Request.At(id) > 0 }) {
			out = append(out, id)
		}
	}
	return out
}

// mixClass returns which groups take a class, and how many of its pods a node takes where
// that is fewer than its resources would.
func (b *builder) mixClass(c *mixClass, models []*model, groups []mix.Group, resources []cluster.ResourceID) mix.Class {
	pod := c.class.Pod()
	out := mix.Class{Pods: len(c.pods)}
	for _, id := range resources {
		out.Request = append(out.Request, pod.Request.At(id))
	}
	out.Request = append(out.Request, 1)
	e := b.Engine(pod)
	for j, m := range models {
		each := int64(framework.Unlimited)
		if c.countable {
			each = int64(b.fits(m, e, c.class))
		} else if !e.TakesAlone(c.class, b.blank(m)) {
			each = 0
		}
		if each == 0 {
			continue
		}
		out.Takes = append(out.Takes, j)
		fits := int64(len(c.pods))
		for d, request := range out.Request {
			if request > 0 {
				fits = min(fits, groups[j].Allocatable[d]/request)
			}
		}
		if each < fits && (out.PerNode == 0 || int(each) < out.PerNode) {
			out.PerNode = int(each)
		}
	}
	return out
}

// buyBatch returns the nodes of a batch, with the batch's pods on them. A group has no more
// than its headroom; pods for which there is none are left.
func (b *builder) buyBatch(m *model, batch mix.Batch, classes []*mixClass) *bundle {
	room, _ := b.headroom(m.group)
	nodes := min(batch.Nodes, room)
	if nodes <= 0 {
		return nil
	}
	x := newBundle(m, b.blank(m), nodes)
	for _, count := range batch.Pods {
		c := classes[count.Class]
		each := min(count.Pods, b.Engine(c.class.Pod()).Count(c.class, x.node), len(c.pods)/nodes)
		if each == 0 {
			continue
		}
		x.put(c.class, c.pods[:nodes*each], each, nil)
		c.pods = c.pods[nodes*each:]
	}
	if len(x.fills) == 0 {
		return nil
	}
	b.add(m, nodes)
	return x
}

// size returns how many nodes a group would have with what is proposed.
func (b *builder) size(m *model) int { return m.group.Target + b.proposed.of(m) }
