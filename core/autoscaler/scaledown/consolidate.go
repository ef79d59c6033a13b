package scaledown

import (
	"cmp"
	"maps"
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

// replaceable is a node that may be one of a set, or nodes that go together (podgroups.go).
type replaceable struct {
	parts []part // at least one
	uses  []use
	price float64
	worth float64 // its price at what the cluster pays for what its pods request
}

// part is a node that may be replaced, with the pods that would be moved.
type part struct {
	node   *cluster.Node
	movers []*cluster.Pod
}

// has reports whether one of the nodes is among some, by name.
func (r *replaceable) has(names map[string]bool) bool {
	return slices.ContainsFunc(r.parts, func(p part) bool { return names[p.node.Name] })
}

// countNodes returns how many nodes are in a set.
func countNodes(set []*replaceable) (n int) {
	for _, r := range set {
		n += len(r.parts)
	}
	return n
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
		of := slices.DeleteFunc(slices.Clone(all), func(r *replaceable) bool { return r.parts[0].node.Group != g.ID })
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
	kept, seen := map[string]autoscaler.KeptReason{}, map[string]bool{}
	for i := range plan.Kept {
		kept[plan.Kept[i].Node] = plan.Kept[i].Reason
	}
	for i := range plan.Kept {
		k := &plan.Kept[i]
		if seen[k.Node] || k.Reason != autoscaler.KeptUtilized && k.Reason != autoscaler.KeptNoPlace {
			continue
		}
		n := x.world.NodeByName(k.Node)
		if n == nil {
			continue
		}
		nodes := []cluster.NodeIndex{n.Index}
		if set := x.goesWith(n.Index); set != nil {
			nodes = set.nodes
			for _, name := range set.names {
				seen[name] = true // whether or not they may be replaced
			}
		}
		r := x.replaceable(nodes, kept)
		if r == nil {
			continue
		}
		for _, part := range r.parts {
			for i, id := range resources {
				if all[i] > 0 {
					r.worth += x.price / float64(len(all)) * float64(part.node.Requested.At(id)) / all[i]
				}
			}
		}
		out = append(out, r)
	}
	slices.SortStableFunc(out, func(a, b *replaceable) int { // by price for worth, without dividing by 0
		return cmp.Or(cmp.Compare(b.price*a.worth, a.price*b.worth), strings.Compare(a.parts[0].node.Name, b.parts[0].node.Name))
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

// replaceable returns nodes that go together as one that may be replaced; nil when one of them
// mayn't be: its price isn't known, it is a home, it stays for another reason than its use or its pods' homes (by kept, why
// the nodes stay), or one of its pods has to stay or to end by itself.
func (x *search) replaceable(nodes []cluster.NodeIndex, kept map[string]autoscaler.KeptReason) *replaceable {
	r := &replaceable{}
	var movers []*cluster.Pod
	for _, i := range nodes {
		x.world.Turn()
		part, ok := x.part(x.world.Node(i))
		reason := kept[x.world.Node(i).Name]
		together := reason == autoscaler.KeptBlockedByPod && len(nodes) > 1 // the reason of nodes whose pods must leave with those of other nodes
		if !ok || reason != autoscaler.KeptUtilized && reason != autoscaler.KeptNoPlace && !together {
			return nil
		}
		r.parts, r.price = append(r.parts, part), r.price+x.priceOf(part.node)
		movers = append(movers, part.movers...)
	}
	r.uses = x.budgets.appendUses(nil, movers)
	return r
}

// part returns a node with the pods that would be moved; ok is false when the node has to stay.
func (x *search) part(n *cluster.Node) (out part, ok bool) {
	if x.priceOf(n) == 0 || !n.Ready() || x.isHome(n.Index) {
		return out, false
	}
	if g := x.world.Group(n.Group); g.Options != nil && g.Options.ZeroOrMax {
		return out, false
	}
	out.node = n
	for _, pod := range n.Pods {
		switch x.judge.Judge(pod).Outcome {
		case drainability.Block, drainability.WaitFor:
			return out, false
		case drainability.Evict:
			out.movers = append(out.movers, pod)
		}
	}
	return out, true
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
		if over, _ := x.budgets.refuse(r.uses); over != nil || !x.admitNodes(r, of) {
			continue
		}
		x.budgets.draw(r.uses)
		out = append(out, r)
	}
	return out
}

// admitNodes reports whether minimums and node budgets let all nodes go, and counts them then; of is how many of each group
// go so far.
func (x *search) admitNodes(r *replaceable, of map[string]int) bool {
	groups, totals, before := maps.Clone(x.minimums.groups), slices.Clone(x.minimums.totals), maps.Clone(of)
	for _, part := range r.parts {
		n := part.node
		most, limited := x.down.Consolidate.Most[n.Group]
		if x.minimums.May(n) != nil || limited && of[n.Group] >= most {
			x.minimums.groups, x.minimums.totals = groups, totals
			clear(of)
			maps.Copy(of, before)
			return false
		}
		x.minimums.Remove(n)
		of[n.Group]++
	}
	return true
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
			list = slices.DeleteFunc(slices.Clone(list), func(r *replaceable) bool { return r.has(stuck) })
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
		for _, part := range r.parts {
			x.world.SetNode(asLeaving(part.node.NodeInfo))
			for _, pod := range part.movers {
				on[pod.UID] = part.node.Name
				x.engine(pod).TakeOff(pod)
				x.askFor(req, pod)
			}
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
	found := &autoscaler.Consolidation{Pods: len(on)}
	for _, r := range set {
		for _, part := range r.parts {
			found.Nodes = append(found.Nodes, part.node.Name)
		}
		found.Before += r.price
	}
	for _, up := range bought.ScaleUps {
		price := x.world.Group(up.Group).Price
		if price == 0 {
			return nil // nobody knows what it costs
		}
		found.After += float64(up.Nodes) * price
		up.Pods, up.Bins, up.Gang, up.Replaces = nil, nil, "", countNodes(set)
		found.ScaleUps = append(found.ScaleUps, up)
	}
	if bought.Sick == "" && bought.Unplanned == 0 && x.worthwhile(found) && x.confirmSet(req, set, found) {
		x.best = found
	}
	return nil
}

// askFor adds a pod that is moved to the pods that a purchase must serve, together with the other members of its
// group if these move as a whole.
func (x *search) askFor(req *autoscaler.Request, pod *cluster.Pod) {
	key, whole := x.primary.GoesWhole(pod)
	if !whole {
		req.Pending = append(req.Pending, pod)
		return
	}
	i := slices.IndexFunc(req.Gangs, func(g autoscaler.Gang) bool { return g.Key == key })
	if i < 0 {
		i = len(req.Gangs)
		req.Gangs = append(req.Gangs, autoscaler.Gang{Key: key, Topologies: cluster.RequiredTopologies(x.primary.PodGroup(key))})
	}
	g := &req.Gangs[i]
	if g.In == nil {
		g.In = x.mustFollowTo(pod)
	}
	g.Members = append(g.Members, pod)
	g.MinCount = len(g.Members)
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
	req.Pending, req.Gangs = nil, nil
	x.packer.Stand(req, found.ScaleUps)
	var all [][]*candidate // by what goes together
	var moved []*candidate
	for _, r := range set {
		var list []*candidate
		for _, part := range r.parts {
			c := &candidate{node: part.node.Index, info: part.node.NodeInfo}
			list = append(list, c)
			x.world.SetNode(c.info.WithTaint(replacedTaint)) // as closeReplaced has it
		}
		all = append(all, list)
	}
	defer func() {
		for _, c := range moved {
			for _, h := range c.homes {
				x.moved[h.at]--
			}
		}
	}()
	for i, list := range all {
		var movers [][]*cluster.Pod
		for _, part := range set[i].parts {
			movers = append(movers, slices.Clone(part.movers))
		}
		if x.moveAll(list, movers) != nil {
			return false
		}
		moved = append(moved, list...)
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
