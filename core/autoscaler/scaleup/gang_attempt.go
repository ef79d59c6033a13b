package scaleup

import (
	"cmp"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/autoscaler/expander"
	"github.com/berthproject/berth/core/cluster"
)

// attempt is what packing a gang in one domain has come to, for as many members as need it.
type attempt struct {
	domain *gangDomain
	places []memberPlace
	nodes  []newNodeOf // that are to be bought, by group and number
	price  float64     // of the nodes, an hour; 0 when it isn't known
	anew   bool        // members that had places have others: all are planned anew
	choice map[string]*autoscaler.Choice
}

// memberPlace is a member with the name of its node.
type memberPlace struct {
	pod  *cluster.Pod
	node string
}

// newNodeOf is a node that is to be bought.
type newNodeOf struct {
	model *model
	name  string
}

// binOf says which bin of which scale-up of the plan the pods of a new node are in.
type binOf struct{ up, bin int }

// bestAttempt packs members of a gang in the domains in which they may be, and returns the attempt to
// be carried out; nil when none places enough. What buys nothing goes before what does. The state is
// as it was.
func (b *builder) bestAttempt(g *gang, pods []*cluster.Pod, need int) *attempt {
	key := b.shape(g, pods, need)
	g.shape = key
	if f, known := b.gangs.failed[key]; known && f.kept == b.gangs.kept {
		g.out.Tried = f.tried
		return nil
	}
	g.out.Tried, g.cut = nil, false
	domains := domainsInTurn(b.gangDomains(g, pods, need), tryGangWork+len(pods)+len(b.models), b.req.Number)
	// The first pass buys nothing: existing room beats any purchase.
	if a := b.bestStanding(g, pods, need, domains); a != nil {
		return a
	}
	// The second pass may buy. Each domain gives at most one attempt; the expander compares
	// them below.
	var all []*attempt
	growing := b.growing(g)
	for _, d := range domains {
		if len(all) == maxAttempts {
			break
		}
		// A domain that isn't looked at must not count as one that has no room: by cut the
		// answer says that a later plan may help.
		if b.gangsOver() {
			g.cut = true
			g.tried(d.value, 0, notLookedAt)
			continue
		}
		groups := growing[d.value]
		if d.inVain && len(groups) == 0 { // it would fare as it did
			g.tried(d.value, d.fits, "")
			continue
		}
		a, fits := b.try(g, pods, need, d, groups)
		switch {
		case a == nil:
			g.tried(d.value, fits, "")
		case len(a.nodes) == 0:
			return a
		default:
			all = append(all, a)
		}
	}
	if a := b.chooseAttempt(all); a != nil {
		return a
	}
	b.gangs.failed[key] = &failedGang{kept: b.gangs.kept, tried: g.out.Tried}
	return nil
}

// maxAttempts is how many attempts that buy nodes the expander is given to choose from for a gang. Domains in which
// the gang doesn't fit don't count: what it costs to find that out is bounded by maxWorkOfGang.
const maxAttempts = 64

// notLookedAt is why nothing is known of a domain.
const notLookedAt = "not looked at: a plan tries so many topology domains for one pod group, and the next one begins with others"

// domainsInTurn returns domains so that each plan begins with others, if they are more than may be tried twice
// for one gang at a cost each.
func domainsInTurn(domains []*gangDomain, cost int, plan uint64) []*gangDomain {
	together := max(maxWorkOfGang/(2*cost), 1)
	parts := (len(domains) + together - 1) / together
	if parts < 2 {
		return domains
	}
	// The plan's number decides where to begin, so that a replay tries the same domains and
	// no domain is left out for ever.
	first := int(plan%uint64(parts)) * together
	return slices.Concat(domains[first:], domains[:first])
}

// failedGang is a gang that found no places, when so many others had found theirs.
type failedGang struct {
	kept  int
	tried []autoscaler.GangOption
	// help is the answer for such a gang with inPlace members in place; nil before there was one.
	help    *autoscaler.NoHelp
	inPlace int
}

// shape returns what a plan reads of members: two gangs of one shape fare alike, as long as no other
// is placed. Members about which objects of theirs have a say have a shape of their own.
func (b *builder) shape(g *gang, pods []*cluster.Pod, need int) string {
	b.gangs.work += len(pods)
	key := fmt.Sprint(g.Topologies, g.In, need, b.mayBuyFor(g))
	// Members that have nodes tie the others to these nodes' domain.
	if b.State.PlacedMembers(g.Key) > 0 {
		key += g.Key.String()
	}
	for _, r := range byClass(b.memberRuns(pods)) {
		if key += fmt.Sprint(" ", r.class.ID, "x", len(r.pods)); b.State.TakesObjects(r.pods[0]) {
			key += g.Key.String()
		}
	}
	return key
}

// mayBuyFor reports whether nodes may be bought for a gang: one that would rather preempt has room on coming ones only.
func (b *builder) mayBuyFor(g *gang) bool { return !b.req.NotFor[g.Members[0].UID] }

// try packs members in a domain, with nodes of some groups, and returns the attempt, or how many have
// places if these are too few. The state and the plan are as they were.
func (b *builder) try(g *gang, pods []*cluster.Pod, need int, d *gangDomain, groups map[string]bool) (a *attempt, fits int) {
	b.gangs.work += tryGangWork + len(pods) + len(b.models)
	defer b.countAnswers()()
	// Without the clip an append of the attempt could write into the array that the plan
	// keeps.
	b.plan.ScaleUps = slices.Clip(b.plan.ScaleUps) // the attempt goes on from these
	before, proposed := *b.plan, b.proposed.clone()
	// From here to Rollback the state is a what-if. Nothing in between may return early.
	mark := b.State.Mark()
	b.gangs.standing, b.gangs.only = true, groups
	b.anchor(g, d)
	left := b.place(b.memberRuns(pods))
	if len(left) > 0 && len(groups) > 0 {
		left = b.purchase(merged(left))
	}
	if fits = len(pods) - count(left); fits >= need {
		nodes, moved := b.dropNeedless(g, b.newNodes(&proposed))
		if moved {
			pods = g.Members
		}
		if a = b.record(pods, d, &before, nodes); a != nil {
			a.anew = moved
		}
	}
	// The expander's answers stay: a replay asks for them in this order, whatever comes of the attempt.
	answers := b.plan.Answers
	b.State.Rollback(mark)
	*b.plan, b.proposed = before, proposed
	b.plan.Answers = answers
	b.gangs.standing, b.gangs.only = false, nil
	b.forgetOffers()
	return a, fits
}

// countAnswers returns what adds the answers for nodes since its call to the work for gangs.
func (b *builder) countAnswers() func() {
	done := b.work
	return func() {
		b.gangs.work += b.work.Nodes - done.Nodes + b.work.Asked - done.Asked + b.work.Tried - done.Tried
	}
}

// newNodes returns the nodes that are proposed beyond those before, by group and number.
func (b *builder) newNodes(before *proposals) (out []newNodeOf) {
	for _, g := range b.State.Groups() {
		m := b.models[g.ID]
		for i := before.of(m); i < b.proposed.of(m); i++ {
			out = append(out, newNodeOf{m, newNode(g, i)})
		}
	}
	return out
}

// record returns the attempt that has led to the state and the plan as they are; nil when an atomic
// group can't be bought whole. The nodes that are bought are numbered anew: some may have been dropped.
func (b *builder) record(pods []*cluster.Pod, d *gangDomain, before *autoscaler.Plan, nodes []newNodeOf) *attempt {
	a := &attempt{domain: d, choice: map[string]*autoscaler.Choice{}}
	names, counts := map[string]string{}, map[*model]int{}
	for _, n := range nodes {
		counts[n.model]++
	}
	priced := true
	for _, g := range b.State.Groups() {
		m := b.models[g.ID]
		first, count := b.proposed.of(m)-counts[m], counts[m]
		// An atomic group is bought to its maximum or not at all. Its price counts the
		// nodes that stay empty, and where a limit forbids the whole there is no attempt.
		if count > 0 && atomicGroup(g) {
			if room, _ := b.headroom(g); room < g.Max-g.Target-first-count {
				return nil
			}
			count = g.Max - g.Target - first
		}
		for i := range count {
			a.nodes = append(a.nodes, newNodeOf{m, newNode(g, first+i)})
			a.price += g.Price
			priced = priced && g.Price > 0
		}
		counts[m] = first
	}
	for _, n := range nodes {
		names[n.name] = newNode(n.model.group, counts[n.model])
		counts[n.model]++
	}
	// Part of a price would make the attempt look cheap.
	if !priced {
		a.price = 0
	}
	for _, pod := range pods {
		if n := b.State.NodeOf(pod.UID); n != nil {
			a.places = append(a.places, memberPlace{pod, cmp.Or(names[n.Name], n.Name)})
		}
	}
	for i := len(before.ScaleUps); i < len(b.plan.ScaleUps); i++ {
		if up := &b.plan.ScaleUps[i]; a.choice[up.Group] == nil {
			a.choice[up.Group] = up.Choice
		}
	}
	return a
}

// chooseAttempt has the expander choose among attempts that buy nodes.
func (b *builder) chooseAttempt(all []*attempt) *attempt {
	if len(all) < 2 {
		if len(all) == 0 {
			return nil
		}
		return all[0]
	}
	all = b.undominated(all)
	// Attempts are known by their main group; of two with the same one the later stands for
	// both.
	byGroup := map[string]*attempt{}
	r := round{}
	for _, a := range all {
		o := a.option()
		byGroup[o.Group.ID] = a
		r.options = append(r.options, o)
	}
	slices.SortFunc(r.options, func(x, y expander.Option) int { return compareIDs(x.Group, y.Group) })
	var by string
	i := b.Expander.Choose(expander.Round{Seed: b.Seed, Request: b.req.Number, Number: len(b.plan.ScaleUps), Nodes: b.limits.nodes,
		Schema: b.State.Schema, Answers: &b.plan.Answers, By: &by}, r.options)
	if i < 0 {
		return nil
	}
	a := byGroup[r.options[i].Group.ID]
	choice := b.choiceOf(by, r.options, i)
	for id := range a.choice { // all the same
		a.choice[id] = choice
	}
	return a
}

// choiceOf returns how one of several domains was chosen, each known by the group that it has the most
// nodes of. All hold the whole gang.
func (b *builder) choiceOf(by string, options []expander.Option, chosen int) *autoscaler.Choice {
	choice := &autoscaler.Choice{Plan: b.req.Number, By: by}
	for i := range options {
		choice.Options = append(choice.Options, optionFor(&options[i]))
	}
	c := &choice.Options[chosen]
	choice.Nodes, choice.Price = c.Nodes, c.Price
	choice.Unpriced = b.Expander.ReadsPrices() && !slices.ContainsFunc(choice.Options, func(o autoscaler.Option) bool { return o.Price > 0 })
	for i, o := range choice.Options {
		if i != chosen && o.Price > 0 && c.Price > 0 {
			choice.Compare(autoscaler.Alternative{Group: o.Group, Nodes: o.Nodes, Price: o.Price})
		}
	}
	return choice
}

// undominated leaves out the attempts that buy more of something than another, and no less of
// anything; with an expander that reads prices, the prices say which of them is to be had.
func (b *builder) undominated(all []*attempt) []*attempt {
	if b.Expander.ReadsPrices() {
		return all
	}
	bought := map[*attempt]cluster.Resources{}
	for _, a := range all {
		var sum cluster.Resources
		for _, n := range a.nodes {
			sum.Add(&n.model.info.Allocatable, 1)
		}
		bought[a] = sum
	}
	return slices.DeleteFunc(slices.Clone(all), func(a *attempt) bool {
		return slices.ContainsFunc(all, func(o *attempt) bool { return buysLess(bought[o], bought[a]) })
	})
}

// buysLess reports whether of each resource there is as little, and of one less.
// It is a strict partial order, so of any number of attempts at least one is undominated.
func buysLess(x, y cluster.Resources) bool {
	less := false
	for id, v := range y.All() {
		less = less || x.At(id) < v
		if x.At(id) > v {
			return false
		}
	}
	for id, v := range x.All() {
		if v > y.At(id) {
			return false
		}
	}
	return less
}

// option returns what the expander is asked about: known by the group with the most nodes.
func (a *attempt) option() expander.Option {
	counts := map[*model]int{}
	var models []*model
	isNew := map[string]bool{}
	for _, n := range a.nodes {
		if counts[n.model] == 0 {
			models = append(models, n.model)
		}
		counts[n.model]++
		isNew[n.name] = true
	}
	main := models[0]
	for _, m := range models {
		if counts[m] > counts[main] {
			main = m
		}
	}
	o := expander.Option{Group: main.group, Nodes: len(a.nodes), Allocatable: &main.info.Allocatable}
	for _, m := range models {
		if m != main {
			o.Similar = append(o.Similar, expander.Share{Group: m.group, Nodes: counts[m]})
		}
	}
	var pods []*cluster.Pod
	for _, p := range a.places {
		if isNew[p.node] {
			pods = append(pods, p.pod)
		}
	}
	o.Pods.Add(pods)
	o.Wasted = wastedBy(a.nodes, pods)
	return o
}

// wastedBy returns the share of new nodes' CPU plus that of their memory which pods leave unused.
func wastedBy(nodes []newNodeOf, pods []*cluster.Pod) (sum float64) {
	for _, id := range []cluster.ResourceID{cluster.CPU, cluster.Memory} {
		var used, all int64
		for _, n := range nodes {
			all += n.model.info.Allocatable.At(id)
		}
		for _, pod := range pods {
			used += pod.Request.At(id)
		}
		if all > 0 {
			sum += 1 - float64(used)/float64(all)
		}
	}
	return sum
}

// carryOut has an attempt be part of the state and the plan.
func (b *builder) carryOut(g *gang, a *attempt) {
	// Whatever failed before may succeed from now on: remembered failures end here.
	b.gangs.kept++
	if a.anew {
		b.takeBack(g)
	}
	for _, n := range a.nodes {
		b.addNode(n.model, n.name)
		b.add(n.model, 1)
	}
	for _, p := range a.places {
		b.Engine(p.pod).PlaceOn(p.pod, b.State.NodeByName(p.node).Index)
	}
	b.orderFor(g, a)
	b.joinFor(g, a)
	g.out.Placed, g.out.Nodes, g.out.Price = len(g.inPlace)+len(a.places), len(a.nodes), a.price
	g.out.Domain = b.domainOfMembers(g)
	g.left = slices.DeleteFunc(slices.Clone(g.left), func(pod *cluster.Pod) bool { return b.State.PodOn(pod.UID) != nil })
	if len(g.left) > 0 {
		b.noHelpForGang(g)
	}
}

// orderFor has the plan buy the nodes of an attempt, a scale-up for each group.
func (b *builder) orderFor(g *gang, a *attempt) {
	first := len(b.plan.ScaleUps)
	var models []*model
	for _, n := range a.nodes {
		if len(models) == 0 || models[len(models)-1] != n.model {
			models = append(models, n.model)
			choice := a.choice[n.model.group.ID]
			if choice == nil {
				choice = &autoscaler.Choice{Plan: b.req.Number}
			}
			b.plan.ScaleUps = append(b.plan.ScaleUps, autoscaler.ScaleUp{Group: n.model.group.ID, Choice: choice, Gang: g.out.Gang})
		}
		i := len(b.plan.ScaleUps) - 1
		up := &b.plan.ScaleUps[i]
		b.gangs.bins[n.name] = binOf{i, up.Nodes}
		up.Nodes++
		up.Bins = append(up.Bins, nil)
	}
	pods := make([][]*cluster.Pod, len(b.plan.ScaleUps))
	for _, p := range a.places {
		at, isNew := b.gangs.bins[p.node]
		if !isNew {
			continue
		}
		up := &b.plan.ScaleUps[at.up]
		up.Bins[at.bin] = append(up.Bins[at.bin], p.pod.UID)
		up.Pods = append(up.Pods, p.pod.UID)
		pods[at.up] = append(pods[at.up], p.pod)
	}
	for i, m := range models {
		var nodes []newNodeOf
		for _, n := range a.nodes {
			if n.model == m {
				nodes = append(nodes, n)
			}
		}
		b.plan.ScaleUps[first+i].Wasted = wastedBy(nodes, pods[first+i])
	}
}

// joinFor keeps the places of an attempt on nodes that exist or are coming. When all members are on
// nodes as they are, they will be there soon; otherwise their room is kept until the last node has come.
func (b *builder) joinFor(g *gang, a *attempt) {
	var nodes []*cluster.Node
	on := map[string][]types.UID{}
	waits := len(a.nodes) > 0
	for _, pod := range g.inPlace {
		waits = waits || b.joins[b.State.NodeOf(pod.UID).Index] != nil
	}
	for _, p := range a.places {
		if _, isNew := b.gangs.bins[p.node]; isNew {
			waits = true
			continue
		}
		if on[p.node] == nil {
			n := b.State.NodeByName(p.node)
			nodes = append(nodes, n)
			waits = waits || b.joins[n.Index] != nil
		}
		on[p.node] = append(on[p.node], p.pod.UID)
		if n := b.State.NodeByName(p.node); b.joins[n.Index] == nil {
			b.fitsNow(p.pod, n.Index)
		}
	}
	if !waits {
		return
	}
	// The order is that of places, not of a map, since joins are part of the plan's digest.
	for _, n := range nodes {
		join := autoscaler.Join{Group: n.Group, Node: n.Name}
		if coming := b.joins[n.Index]; coming != nil {
			if coming.With == "" && len(coming.Pods) > 0 {
				coming.With = coming.Pods[0]
			}
			join = autoscaler.Join{Group: coming.Group, Node: coming.Node, With: coming.With}
			if coming.With == "" {
				coming.With = on[n.Name][0]
			}
		}
		join.Pods, join.Gang = on[n.Name], g.out.Gang
		b.plan.Joins = append(b.plan.Joins, join)
	}
}
