// Package scaleup finds how many nodes of which group pending pods need, by
// placing them on virtual nodes with the rules and the engine that place them
// for real.
package scaleup

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/autoscaler/expander"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/engine"
)

// A plan is made in these steps, all of them what-ifs on the packer's state. In each, pods
// are placed in the order in which they will be scheduled, but where it is said otherwise.
//
//  1. Pods that fit on nodes as they are need nothing (cover.go).
//  2. The nodes that are coming stand in the state as they will be (coming.go). Each pod for
//     which a place is kept has it; then any pod may fill them (cover.go).
//  3. Nodes on their way out stay, one after the other, as long as they take pods that are left
//     (recall.go).
//  4. Groups below their minimum grow to it, if that is wanted (minimum.go).
//  5. The cost expander buys the cheapest mix for all pods whose place depends on no other
//     pod (mix.go).
//  6. In rounds, as long as pods are left, each group that may grow (limits.go) is packed
//     with them on new nodes (template.go, pack.go, bundle.go), the largest pods first, and
//     shares these with the groups that are similar (similar.go, balance.go). The expander
//     chooses an option, and its nodes and pods stay for the next round. Nodes of a group
//     are bought for pods that prefer no other (prefer.go).
//  7. For each class of which pods are left the plan says, by group, why it wouldn't help
//     (explain.go).
//  8. Of coming nodes whose pods need them no more it says how many nobody needs.
//
// When a plan has taken long enough it ends with the round that it is in (stopwatch.go).

// Packer packs pods on a state of its own, usually a follower's. It leaves the state as
// it found it.
type Packer struct {
	State *cluster.State
	// Engine returns the engine of a pod's profile; nil for a pod of another scheduler.
	Engine   func(*cluster.Pod) *engine.Engine
	Expander expander.Chain
	Seed     uint64 // of the expander
	// Questions are the plan's to its stopwatch, which has begun to measure the plan; nil for
	// no bound.
	Questions *autoscaler.Questions
	// Memory is what plans before have found out, and takes what this one does; nil for none.
	Memory *Memory

	anew bool // for tests: nothing is kept from round to round, and explained with a node in the state
	work Work
}

// builder makes one plan.
type builder struct {
	*Packer
	req  *autoscaler.Request
	plan *autoscaler.Plan
	// daemons are the DaemonSets whose pods a new node would get.
	daemons      []*cluster.Workload
	plainDaemons bool // whether which of them a new node gets follows from the node alone
	memory       *Memory
	models       map[string]*model  // by group
	coming       map[string]*Coming // by group, before this plan
	promises     promises
	// arriving are, by group, the coming nodes as they stand in the state.
	arriving map[string]*arrivals
	joins    map[cluster.NodeIndex]*autoscaler.Join // by each of these
	limits   limits
	mix      *autoscaler.Mix // of which what is proposed is a part; nil for none
	// proposed is how many nodes of each group the plan has so far.
	proposed proposals
	offers   []*offer // by model.number, of the runs that are left; nil for those not made yet
	patience *patience
	// triedBefore is what was tried before the round, or in it before the last try.
	triedBefore int
}

// Plan fills in a plan's Sick, Covered, Joins, Recalls, ScaleUps, NoHelp, Unneeded and Whole. With
// pods that are to be served together the plan is made for these, too; and when one of them
// is left, once more without them. Both are one plan to the stopwatch and to who replays
// answers.
func (p *Packer) Plan(req autoscaler.Request, plan *autoscaler.Plan) {
	if p.Memory == nil || p.Questions == nil {
		p.planAnew(&req, plan)
		return
	}
	if p.Memory.recall(p.State, &req, plan, p.Questions) {
		return
	}
	p.Memory.last = nil
	asked := p.Questions.Asked()
	p.planAnew(&req, plan)
	if len(p.Questions.Cuts) == 0 {
		p.Memory.remember(p.State, &req, plan, p.Questions.Asked()-asked)
	}
}

// planAnew is Plan without regard to the last plan.
func (p *Packer) planAnew(req *autoscaler.Request, plan *autoscaler.Plan) {
	patience := &patience{}
	if len(req.Whole) > 0 {
		with := *req
		with.Pending = slices.Concat(req.Pending, req.Whole)
		all := autoscaler.NewPlan(req, plan.At)
		left := p.plan(&with, all, patience)
		if serves(left, req.Whole) {
			*plan, plan.Whole = *all, true
			return
		}
		plan.Answers = all.Answers
		patience.ended = false
	}
	p.plan(req, plan, patience)
}

// serves reports whether none of some pods is left.
func serves(left []*run, pods []*cluster.Pod) bool {
	waiting := map[types.UID]bool{}
	for _, r := range left {
		for _, pod := range r.pods {
			waiting[pod.UID] = true
		}
	}
	return !slices.ContainsFunc(pods, func(pod *cluster.Pod) bool { return waiting[pod.UID] })
}

// plan makes a plan for the pending pods, and returns those that have no place in it. The request isn't
// changed.
func (p *Packer) plan(req *autoscaler.Request, plan *autoscaler.Plan, patience *patience) (left []*run) {
	plan.Sick = Sick(p.State, req)
	short := p.belowMinimum(req)
	if len(req.Pending) == 0 && short == nil && len(req.Spare) == 0 {
		return nil // nothing has to be looked for
	}
	mark := p.State.Mark()
	defer p.State.Rollback(mark)
	b := p.begin(req, plan)
	b.patience = patience
	left = b.recall(b.cover(b.runs(req.Pending)))
	b.limits = b.newLimits()
	if short != nil {
		b.fillUp(short)
		left = b.place(left)
	}
	plan.Covered = len(req.Pending) - count(left)
	if req.NotFor != nil {
		left = filtered(left, func(pod *cluster.Pod) bool { return !req.NotFor[pod.UID] })
	}
	left = merged(left)
	if b.Expander.BuysMix() {
		left = b.placeOnProposed(b.buyMix(left))
		if len(plan.ScaleUps) > 0 {
			b.planOver()
		}
	}
	left = b.buy(left)
	if !b.patience.ended {
		plan.Unneeded = b.unneeded()
	} else if len(plan.ScaleUps)+len(plan.Recalls) > 0 {
		plan.Unplanned = count(left) // why no group helps them isn't known
		return left
	}
	b.explain(left)
	return left
}

// begin returns the builder of a plan.
func (p *Packer) begin(req *autoscaler.Request, plan *autoscaler.Plan) *builder {
	b := &builder{Packer: p, req: req, plan: plan, patience: &patience{}, arriving: map[string]*arrivals{},
		coming: Survey(p.State, req.Conditions, &req.Readiness, req.ServerNow)}
	b.promises = newPromises(p.State, req.Conditions, &req.Readiness, req.ServerNow)
	if b.memory = p.Memory; b.memory == nil {
		b.memory = &Memory{}
	}
	b.plainDaemons = true
	for _, w := range p.State.Workloads() {
		// Of another scheduler's pods nothing is known about where they go.
		if w.Kind != cluster.DaemonSet {
			continue
		}
		if e := p.Engine(w.Template); e != nil {
			p.State.LearnTerms(w.Template) // before any pod is classified
			b.daemons = append(b.daemons, w)
			b.plainDaemons = b.plainDaemons && plain(e, e.Class(w.Template))
		}
	}
	b.memory.begin(p.State, req, b.daemons, b.plainDaemons)
	b.models = b.newModels()
	b.proposed.nodes = make([]int, len(b.models))
	for _, pod := range req.Pending {
		p.State.Nominate(pod, "") // the place that is kept for it is no obstacle to it
	}
	return b
}

// grow has groups grow and returns the pods that are left. As long as there are pods whose
// place depends on what is elsewhere, the zones of all groups are known.
func (b *builder) grow(left []*run) []*run {
	if slices.ContainsFunc(left, func(r *run) bool { return !r.countable }) {
		domains := b.addDomains()
		left = b.rounds(left)
		for _, name := range domains {
			b.State.RemoveNode(name)
		}
		left = b.placeOnProposed(left)
	}
	return b.rounds(left)
}

// rounds has groups grow, one option after the other, as long as one takes pods, and
// returns the pods that are left. Pods that no group they prefer takes are content with
// others.
func (b *builder) rounds(left []*run) []*run {
	b.forgetOffers()
	for len(left) > 0 && !b.patience.ended {
		k, ok := b.best(left)
		if !ok {
			if left, ok = indifferent(left); !ok {
				break
			}
			b.forgetOffers() // the runs are others
			continue
		}
		rest := b.propose(left, k)
		b.outdate(k, left, rest)
		left = b.placeOnProposed(rest)
	}
	return left
}

// propose has what was packed become part of the plan, and returns the pods that are left.
func (b *builder) propose(left []*run, all ...packed) []*run {
	left = without(left, all)
	apply := b.needsState(left)
	for _, k := range all {
		if apply {
			b.apply(k)
		}
		for _, m := range append([]*model{k.model}, k.joined...) {
			part := k.only(m)
			if part.nodes == 0 {
				continue // all of its pods need what others of the parts bring
			}
			b.add(m, part.nodes)
			b.plan.ScaleUps = append(b.plan.ScaleUps, autoscaler.ScaleUp{Group: m.group.ID, Nodes: part.nodes, Wasted: wasted(part.bundles), Mix: b.mix, Choice: k.choice, Pods: uids(part.pods), Bins: part.bins()})
		}
	}
	return left
}

// placeOnProposed places pods that have room, or are let in, now that proposed nodes stand
// in the state with their pods, and returns the pods that are left. Pods of countable
// classes were tried on these nodes when they were packed.
func (b *builder) placeOnProposed(left []*run) []*run {
	if !b.needsState(left) {
		return left
	}
	var rest []*run
	for _, r := range left {
		if r.countable {
			rest = append(rest, r)
		} else {
			rest = append(rest, b.place([]*run{r})...)
		}
	}
	b.plan.Covered += count(left) - count(rest)
	return rest
}

// needsState reports whether what the plan proposes has to stand in the state for the pods
// that are left. Pods of countable classes were packed on all nodes proposed so far, and
// where they didn't fit once they won't again.
func (b *builder) needsState(left []*run) bool {
	return slices.ContainsFunc(left, func(r *run) bool { return !r.countable })
}

// best packs each group that may grow with the pods that are left, and returns what the
// expander chooses; ok is false when no group takes any of them or the expander forbids
// them all.
func (b *builder) best(left []*run) (best packed, ok bool) {
	r := round{kept: !b.anew && !b.needsState(left), needed: map[string]bool{}}
	b.triedBefore = b.work.Tried
	groups := b.State.Groups()
	for _, g := range groups {
		took := b.ask(&r, g, left)
		if (took || b.inVain()) && b.planOver() {
			break // the expander has these to choose from
		}
	}
	if len(r.options) == 0 && b.patience.ended && len(groups) > 0 {
		b.triedBefore = b.work.Tried
		b.ask(&r, groups[int(b.req.Number%uint64(len(groups)))], left) // in each plan another
	}
	var by string
	i := b.Expander.Choose(expander.Round{Seed: b.Seed, Request: b.req.Number, Number: len(b.plan.ScaleUps), Nodes: b.limits.nodes,
		Schema: b.State.Schema, Answers: &b.plan.Answers, By: &by}, r.options)
	if i < 0 {
		return packed{}, false
	}
	best = r.choices[i]
	best.choice = b.recordChoice(by, &r, i)
	return best, true
}

// round is one choice among the groups.
type round struct {
	kept    bool // whether offers are kept from the round before
	options []expander.Option
	choices []packed
	needed  map[string]bool // groups needed by another's option, which is no other than their own
}

// ask adds a group to the options of a round, and reports whether it takes any pods on new
// nodes.
func (b *builder) ask(r *round, g *cluster.NodeGroup, left []*run) bool {
	if room, _ := b.headroom(g); room <= 0 || r.needed[g.ID] {
		return false
	}
	x := b.offer(b.models[g.ID], left, r.kept)
	if x.packed.nodes == 0 {
		return false
	}
	for _, m := range x.packed.needed {
		r.needed[m.group.ID] = true
	}
	r.options = append(r.options, x.option)
	r.choices = append(r.choices, x.packed)
	return true
}

// option packs a group with the pods that are left, in the state as it is. Nodes that are
// shared over similar groups while pods are placed may be more than of one group alone: then
// there are only the nodes of that.
func (b *builder) option(m *model, left []*run) packed {
	try := func(sharing []*model) packed {
		mark := b.State.Mark()
		defer b.State.Rollback(mark)
		return b.pack(m, sharing, left)
	}
	k := try(b.similar(m))
	sharedInState := slices.ContainsFunc(k.bundles, func(x *bundle) bool {
		return x.at != cluster.NoNode && x.model != nil && slices.Contains(b.similar(m), x.model)
	})
	if sharedInState {
		if alone := try(nil); alone.nodes < k.nodes && alone.pods.Len() >= k.pods.Len() {
			return alone
		}
	}
	return k
}
