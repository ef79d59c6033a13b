package scaledown

import (
	"cmp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/autoscaler/drainability"
	"github.com/berthproject/berth/core/autoscaler/expander"
	"github.com/berthproject/berth/core/autoscaler/scaleup"
	"github.com/berthproject/berth/core/cluster"
)

// This file looks for a consolidation after a pass: nodes that the pass keeps, since they are
// used above the threshold or since their pods have nowhere to go, and that fewer or cheaper
// nodes could replace.
//
// Sets of nodes are tried, first those whose price is the highest for what their pods request:
// of all groups together, and of each group. A set is tried in what-ifs on the world as the
// pass has left it, so candidates and their homes stay what they are:
//
//  1. the nodes of the set carry ToBeDeletedTaint, their pods wait, and the packer of scale-up
//     places them: on nodes that stay as far as there is room, and on the cheapest new nodes;
//  2. what it proposes stands in the world, and the nodes of the set are given up one after the
//     other as a pass would: that decides. So what is accepted is found again by the passes
//     that follow, once the nodes are there.
//
// What is saved has to be worth what is moved (autoscaler.Consolidate.Threshold). Of the sets
// for which that is so the one that saves most is chosen. The world is as it was in the end.

// setSizes are the sizes of the sets that are tried; the last one is the largest. They grow by
// half at most, so that little is lost between two of them.
var setSizes = [...]int{1, 2, 3, 4, 6, 8, 12, 16, 24, 32}

// maxSets is how many sets are tried in one search.
const maxSets = 64

// replaceable is a node that may be one of a set.
type replaceable struct {
	node   *cluster.Node
	movers []*cluster.Pod
	uses   []use
	price  float64
	worth  float64 // its price at what the cluster pays for what its pods request
}

// search is one search for a consolidation.
type search struct {
	*pass
	packer    scaleup.Packer
	questions *autoscaler.Questions
	tried     int
	price     float64 // of all nodes that stay by the pass and have a price, an hour
	pods      int     // on these nodes, but for daemon and mirror pods
	best      *autoscaler.Consolidation
}

// Consolidate fills in a plan's Consolidation. The plan is of the pass that was made last, and
// buys nothing.
func (s *Simulator) Consolidate(req *autoscaler.Request, seed uint64, questions *autoscaler.Questions, plan *autoscaler.Plan) {
	chain, err := expander.NewChain(expander.CostName, nil)
	if err != nil {
		panic("scaledown: " + err.Error()) // the expander is built in
	}
	x := &search{pass: s.newPass(req), questions: questions,
		packer: scaleup.Packer{State: s.world.State, Engine: s.engine, Expander: chain, Seed: seed, Questions: questions}}
	all := x.replaceables(plan)
	x.grow(x.admit(all))
	for _, g := range s.world.Groups() {
		of := slices.DeleteFunc(slices.Clone(all), func(r *replaceable) bool { return r.node.Group != g.ID })
		if len(of) > 0 && len(of) < len(all) {
			x.grow(x.admit(of))
		}
	}
	plan.Consolidation = x.best
	clear(s.hints)
}

// replaceables returns the nodes that may be replaced, those first whose price is the highest
// for what their pods request; and adds up what the cluster costs.
func (x *search) replaceables(plan *autoscaler.Plan) (out []*replaceable) {
	resources := [...]cluster.ResourceID{cluster.CPU, cluster.Memory}
	var all [len(resources)]float64 // of all nodes with a price
	x.world.Nodes(func(n *cluster.Node) {
		if p := x.priceOf(n); p > 0 && !n.HasTaint(autoscaler.ToBeDeletedTaint) {
			x.price += p
			x.pods += n.Workload
			for i, id := range resources {
				all[i] += float64(n.Allocatable.At(id))
			}
		}
	})
	for i := range plan.Kept {
		k := &plan.Kept[i]
		if k.Reason != autoscaler.KeptUtilized && k.Reason != autoscaler.KeptNoPlace {
			continue
		}
		r := x.replaceable(x.world.NodeByName(k.Node))
		if r == nil {
			continue
		}
		for i, id := range resources {
			if all[i] > 0 {
				r.worth += x.price / float64(len(all)) * float64(r.node.Requested.At(id)) / all[i]
			}
		}
		out = append(out, r)
	}
	slices.SortStableFunc(out, func(a, b *replaceable) int { // by price for worth, without dividing by 0
		return cmp.Or(cmp.Compare(b.price*a.worth, a.price*b.worth), strings.Compare(a.node.Name, b.node.Name))
	})
	return out
}

// priceOf returns what a node costs an hour, 0 when that isn't known.
func (x *search) priceOf(n *cluster.Node) float64 {
	if g := x.world.Group(n.Group); g != nil {
		return g.Price
	}
	return 0
}

// replaceable returns a node as one that may be replaced; nil when it mayn't be: its price
// isn't known, it is a home, its group goes as a whole, or one of its pods has to stay or to
// end by itself.
func (x *search) replaceable(n *cluster.Node) *replaceable {
	if n == nil || x.priceOf(n) == 0 || !n.Ready() || x.isHome(n.Index) {
		return nil
	}
	if g := x.world.Group(n.Group); g.Options != nil && g.Options.ZeroOrMax {
		return nil
	}
	r := &replaceable{node: n, price: x.priceOf(n)}
	for _, pod := range n.Pods {
		switch x.judge.Judge(pod).Outcome {
		case drainability.Block, drainability.WaitFor:
			return nil
		case drainability.Evict:
			r.movers = append(r.movers, pod)
		}
	}
	r.uses = x.budgets.appendUses(nil, r.movers)
	return r
}

// admit returns the nodes that may go together, in order: as far as disruption budgets,
// minimums and node budgets let them, after the candidates of the pass.
func (x *search) admit(list []*replaceable) (out []*replaceable) {
	x.startCounting()
	for _, c := range x.candidates {
		x.budgets.draw(c.uses)
		x.minimums.Remove(x.world.Node(c.node))
	}
	of := map[string]int{}
	for _, r := range list {
		most, limited := x.down.Consolidate.Most[r.node.Group]
		over, _ := x.budgets.refuse(r.uses)
		if over != nil || x.minimums.May(r.node) != nil || limited && of[r.node.Group] >= most {
			continue
		}
		x.budgets.draw(r.uses)
		x.minimums.Remove(r.node)
		of[r.node.Group]++
		out = append(out, r)
	}
	return out
}

// grow tries the first nodes of a list together, more and more of them. A node one of whose
// pods no new node takes either is left out.
func (x *search) grow(list []*replaceable) {
	for last, k := 0, 0; k < len(setSizes); {
		size := min(setSizes[k], len(list))
		if size == last || x.tried == maxSets || x.tried > 0 && x.questions.Over(autoscaler.Drains) {
			return
		}
		x.tried++
		stuck := x.try(list[:size])
		if len(stuck) > 0 {
			list = slices.DeleteFunc(slices.Clone(list), func(r *replaceable) bool { return stuck[r.node.Name] })
			continue
		}
		last, k = size, k+1
	}
}

// try tries to replace a set, and remembers it if it is better than what was found before. It
// returns the nodes with pods that have nowhere to go, whatever is bought.
func (x *search) try(set []*replaceable) (stuck map[string]bool) {
	req := &autoscaler.Request{Number: x.req.Number, Now: x.req.Now, ServerNow: x.req.ServerNow, Limits: x.req.Limits,
		Readiness: x.req.Readiness, Balancing: x.req.Balancing, Conditions: x.req.Conditions}
	bought := autoscaler.NewPlan(req, 0)
	mark := x.world.Mark()
	on := map[types.UID]string{}
	for _, r := range set {
		x.world.SetNode(asLeaving(r.node.NodeInfo))
		for _, pod := range r.movers {
			on[pod.UID] = r.node.Name
			x.engine(pod).TakeOff(pod)
			req.Pending = append(req.Pending, pod)
		}
	}
	slices.SortStableFunc(req.Pending, largestFirst)
	x.packer.Plan(*req, bought)
	x.world.Rollback(mark)
	if len(bought.NoHelp) > 0 {
		stuck = map[string]bool{}
		for _, h := range bought.NoHelp {
			for _, uid := range h.Pods {
				stuck[on[uid]] = true
			}
		}
		return stuck
	}
	found := &autoscaler.Consolidation{Pods: len(req.Pending)}
	for _, r := range set {
		found.Nodes = append(found.Nodes, r.node.Name)
		found.Before += r.price
	}
	for _, up := range bought.ScaleUps {
		price := x.world.Group(up.Group).Price
		if price == 0 {
			return nil // nobody knows what it costs
		}
		found.After += float64(up.Nodes) * price
		up.Pods, up.Bins, up.Replaces = nil, nil, len(set)
		found.ScaleUps = append(found.ScaleUps, up)
	}
	if bought.Sick == "" && bought.Unplanned == 0 && x.worthwhile(found) && x.confirmSet(req, set, found) {
		x.best = found
	}
	return nil
}

// worthwhile reports whether a consolidation saves enough for what it moves, and more than what
// was found before. It fills in the score.
func (x *search) worthwhile(found *autoscaler.Consolidation) bool {
	saved := found.Before - found.After
	if saved <= 1e-9*found.Before { // rounding
		return false
	}
	found.Score = saved / x.price / (float64(max(found.Pods, 1)) / float64(max(x.pods, 1)))
	return found.Score >= x.down.Consolidate.Threshold && (x.best == nil || saved > x.best.Before-x.best.After)
}

// confirmSet reports whether a pass gives up all nodes of a set once what is bought stands there,
// with all homes that were found before still possible.
func (x *search) confirmSet(req *autoscaler.Request, set []*replaceable, found *autoscaler.Consolidation) bool {
	mark := x.world.Mark()
	defer x.world.Rollback(mark)
	req.Pending = nil
	x.packer.Stand(req, found.ScaleUps)
	var all, moved []*candidate
	for _, r := range set {
		c := &candidate{node: r.node.Index, info: r.node.NodeInfo}
		all = append(all, c)
		x.world.SetNode(c.info.WithTaint(replacedTaint)) // as closeReplaced has it
	}
	defer func() {
		for _, c := range moved {
			for _, h := range c.homes {
				x.moved[h.at]--
			}
		}
	}()
	for i, c := range all {
		if x.move(c, slices.Clone(set[i].movers)) != nil {
			return false
		}
		moved = append(moved, c)
	}
	for _, c := range slices.Concat(x.candidates, moved) {
		for _, h := range c.homes {
			// What is bought may have the pod's class signed anew.
			if h.class = h.engine.Class(h.pod); !x.stillFits(&h) {
				return false
			}
		}
	}
	return true
}
