package scaledown

import (
	"cmp"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/autoscaler/drainability"
	"github.com/berthproject/berth/core/cluster"
)

// This file makes a pass.

// leastPerPass is how many nodes a pass simulates at least, however long that takes.
const leastPerPass = 50

// pass is one pass in the making.
type pass struct {
	*Simulator
	req      *autoscaler.Request
	down     *autoscaler.ScaleDown
	check    Check
	judge    drainability.Context
	budgets  *budgets
	minimums *Minimums
	kept     []*autoscaler.Kept // by node index; nil of those that don't stay
	until    time.Time          // something may be otherwise after this time though nothing has changed; zero for never
	replaced map[string]int     // the nodes of a consolidation that is under way, from 1 on in their order
	grown    map[string]bool    // the groups that nodes were ordered of for it

	together map[*nodeSet]bool         // that were looked at
	listed   map[cluster.NodeIndex]int // where nodes are among those that may be candidates; nil before the first set

	movers []*cluster.Pod // scratch memory: the pods of a node that are to be evicted
	uses   []use          // scratch memory: what they take from budgets
}

// newPass returns a pass over the world as it is.
func (s *Simulator) newPass(req *autoscaler.Request) *pass {
	p := &pass{Simulator: s, req: req, down: req.ScaleDown, kept: make([]*autoscaler.Kept, s.world.Len()),
		check: Check{Rules: &req.ScaleDown.Rules, State: s.world.State, Readiness: &req.Readiness, Now: req.ServerNow},
		judge: drainability.Context{Rules: &req.ScaleDown.Rules, State: s.world.State, Now: req.ServerNow},
	}
	if s.rebuilt {
		clear(s.sets)
	}
	p.startCounting()
	p.readReplacing()
	return p
}

// startCounting counts what may go, before any candidate.
func (p *pass) startCounting() {
	p.minimums = NewMinimums(p.primary, p.req) // in the world candidates look as if they were going
	p.budgets = newBudgets(p.world.State, p.down.Rules.Surge, p.leaving(), func(pod *cluster.Pod) bool { return p.judge.Judge(pod).Outcome == drainability.Evict })
}

// Plan follows the primary and makes a pass: it fills in a plan's Removals and Kept. When nothing
// can have changed since the last pass, that costs O(1).
func (s *Simulator) Plan(req *autoscaler.Request, questions *autoscaler.Questions, plan *autoscaler.Plan) {
	s.Follow()
	s.passes++
	s.repeated = s.repeats(req, plan)
	if s.repeated {
		plan.Removals, plan.Kept = s.repeat(req)
		return
	}
	s.checks.begin(s.world.State, &req.ScaleDown.Rules, &req.Readiness)
	before := s.version
	p := s.newPass(req)
	questions.Start(autoscaler.Drains)
	p.closeReplaced()
	// Without homes for them nobody else may lose its node.
	if homeless := p.placeDisplaced(); homeless != "" {
		s.undoAll()
		s.world.Nodes(func(n *cluster.Node) {
			p.setKept(n, autoscaler.Kept{Reason: autoscaler.KeptDisplaced, Pod: homeless, Detail: "no other node has room for a pod that is being evicted or was evicted already"})
		})
	} else {
		p.placeFitting(plan.Fitting)
		p.confirm()
		p.doubts = doubts{}
		p.findCandidates(questions)
		// A group that goes as a whole may turn out not to, which frees room for others.
		for p.settle(); p.wholeGroups() || p.wholePodGroups(); {
			p.settle()
		}
		p.keepUndone()
	}
	p.openReplaced()
	for _, c := range s.candidates {
		plan.Removals = append(plan.Removals, c.asRemoval(s.world.State))
	}
	plan.Kept = p.keptByName()
	// A hint is of the pass in which it was given.
	if len(s.hints) > 0 {
		clear(s.hints)
		s.version++
	}
	p.changesAfter(p.judge.Until)
	s.remember(p, plan, before)
}

// setKept records why a node stays.
func (p *pass) setKept(n *cluster.Node, k autoscaler.Kept) {
	k.Node = n.Name
	p.setKeptShared(n, &k)
}

// setKeptShared is setKept without a copy: k must not be changed any more.
func (p *pass) setKeptShared(n *cluster.Node, k *autoscaler.Kept) { p.kept[n.Index] = k }

// keptByName returns why nodes stay, by their names, in O(nodes).
func (p *pass) keptByName() []autoscaler.Kept {
	out := make([]autoscaler.Kept, 0, len(p.checks.order))
	for _, i := range p.checks.order {
		if k := p.kept[i]; k != nil {
			out = append(out, *k)
		}
	}
	return out
}

// changesAfter records that something may be otherwise after a time; zero for never.
// The next pass is due then even if nothing else happens.
func (p *pass) changesAfter(at time.Time) { p.until = earlier(p.until, at) }

// leaving returns the nodes that Berth has on their way out, by index. What another autoscaler
// does with nodes that it has tainted isn't known.
func (p *pass) leaving() (out []*cluster.Node) {
	p.world.Nodes(func(n *cluster.Node) {
		switch {
		case p.byNode[n.Index] != nil:
		case p.isHome(n.Index) && leavesByBerth(n), !p.isHome(n.Index) && p.checked(n).leaves:
			out = append(out, n)
		}
	})
	return out
}

// placeDisplaced finds homes for the pods that are displaced already. These come before
// candidates: if one finds none beside them, all candidates are undone. It returns the name of
// a pod that finds none even so, "" when all have homes.
func (p *pass) placeDisplaced() (homeless string) {
	for i := 0; i < len(p.down.Displaced); i++ {
		pod := p.down.Displaced[i]
		if _, ok := p.world.Placed(pod.UID); ok {
			pod = pod.Instance("displaced/" + string(pod.UID)) // it is still on the node that it has to leave
		}
		if e := p.engine(pod); p.find(pod, e, e.Class(pod), &p.lent) != cluster.NoNode {
			p.guests = append(p.guests, pod)
			p.version++
			continue
		}
		if len(p.candidates) == 0 {
			return p.down.Displaced[i].Name()
		}
		p.undoAll()
		i-- // once more, with their room
	}
	return ""
}

// placeFitting has pending pods that fit on nodes as they are take their room before candidates
// do, where the plan has them if that is possible: a node that they need would be bought back at
// once. Rules of packing may reject one; it is left aside.
func (p *pass) placeFitting(pods []autoscaler.Fitting) {
	for i := 0; i < len(pods); i++ {
		pod := pods[i].Pod
		switch p.world.NominatedTo(pod.UID) {
		case "":
		case pods[i].Node:
			continue // its node stays for that, and a pod that is placed loses its nomination
		default:
			if len(pod.Object.Spec.ResourceClaims) > 0 {
				continue // two pods can't both have devices by its claims
			}
			// Its place is on another node. Both stay: a second pod takes its room here, and it
			// keeps its nomination there.
			pod = pod.Instance("fits/" + string(pod.UID))
		}
		e := p.engine(pod)
		if n := p.world.NodeByName(pods[i].Node); n != nil {
			if c := p.byNode[n.Index]; c != nil {
				// The node is needed.
				p.undo(c)
			}
			p.hints[pod.UID] = n.Name
		}
		switch at := p.find(pod, e, e.Class(pod), &p.lent); {
		case at != cluster.NoNode:
			p.guests = append(p.guests, pod)
			p.version++
		case len(p.candidates) > 0:
			p.undoAll()
			i-- // once more, with their room
		}
	}
}

// confirm undoes the candidates that may not go any more.
func (p *pass) confirm() {
	for _, c := range slices.Clone(p.candidates) {
		p.world.Turn()
		n := p.world.Node(c.node)
		if !p.mayStillGo(c, n) {
			// Undoing one may undo others that depended on it.
			p.undo(c) // why it stays is found out with the nodes that never were candidates
			continue
		}
		p.budgets.draw(c.uses)
		p.minimums.Remove(n)
	}
}

// mayStillGo reports whether a candidate may go still. What would have changed its node has
// undone it before.
func (p *pass) mayStillGo(c *candidate, n *cluster.Node) bool {
	g := p.world.Group(c.info.Group)
	if g == nil || g.KeepNodes != "" || !reflect.DeepEqual(g.Options, c.options) || p.isReplacement(n) {
		return false
	}
	if p.doubts.about(c) && !p.judgeAnew(c) {
		return false
	}
	if !p.goesWith(c.node).same(c.removal.With) {
		return false
	}
	over, _ := p.budgets.refuse(c.uses)
	return over == nil && p.minimums.May(n) == nil
}

// judgeAnew reports whether the same pods of a candidate have to be evicted as before, and none
// keeps the node. What they take from budgets is counted again.
// It is asked only where something was doubted.
func (p *pass) judgeAnew(c *candidate) bool {
	movers := 0
	for _, pod := range c.pods {
		switch p.judge.Judge(pod).Outcome {
		case drainability.Block:
			return false
		case drainability.Evict:
			movers++
		}
	}
	p.movers = c.appendMovers(p.movers[:0])
	c.uses, c.recount = p.budgets.appendUses(c.uses[:0], p.movers), false
	return movers == len(c.homes)
}

// findCandidates simulates the removal of further nodes.
func (p *pass) findCandidates(questions *autoscaler.Questions) {
	list := p.eligible()
	for k, x := range list {
		p.world.Turn()
		n := x.node
		switch {
		// Those that weren't reached come first in the next pass.
		case k >= leastPerPass && questions.Over(autoscaler.Drains):
			for _, y := range list[k:] {
				if p.skipped[y.node.Name] == 0 {
					p.skipped[y.node.Name] = p.passes
				}
				p.setKept(y.node, autoscaler.Kept{Reason: autoscaler.KeptNotSimulated, Detail: "the last plan ran out of time before it simulated its removal", Utilization: y.utilization})
			}
			return
		case p.isHome(n.Index):
			p.setKept(n, autoscaler.Kept{Reason: autoscaler.KeptDestination, Detail: "pods of removable nodes need the room on it", Utilization: x.utilization})
		// Pods of one pod group leave together, with all of its nodes.
		case p.byNode[n.Index] != nil: // with another
		default:
			p.simulateWith(x, list)
		}
		delete(p.skipped, n.Name)
	}
}

// eligibleNode is a node that may be a candidate.
type eligibleNode struct {
	node        *cluster.Node
	utilization float64
	skipped     uint64 // the first pass that had no time for it since it was last looked at; 0 for none
	replaced    int    // its place in the order of the consolidation that is under way; 0 for none
}

// eligible returns the nodes that may be candidates, as far as they aren't, in the order in
// which they are simulated: those of a consolidation, those that passes had no time for, empty
// ones, then by rising utilization. Why the others stay is said.
func (p *pass) eligible() (out []eligibleNode) {
	skipped := map[string]uint64{}
	p.world.Nodes(func(n *cluster.Node) {
		p.world.Turn()
		if p.byNode[n.Index] != nil {
			return
		}
		if p.isHome(n.Index) {
			p.setKept(n, autoscaler.Kept{Reason: autoscaler.KeptDestination, Detail: "pods of removable nodes need the room on it"})
			return
		}
		if p.isReplacement(n) {
			p.setKept(n, autoscaler.Kept{Reason: autoscaler.KeptReplacement, Detail: "nodes of its group were added to replace other nodes, which are still being removed"})
			return
		}
		replaced := p.replaced[n.Name]
		is := p.checked(n)
		// A node of a consolidation goes however much it is used.
		if is.kept != nil && (replaced == 0 || is.kept.Reason != autoscaler.KeptUtilized) {
			p.setKeptShared(n, is.kept)
			return
		}
		// A node whose pod found no place isn't simulated again for RecheckAfter.
		if k := p.noPlace[n.Name]; k != nil && replaced == 0 && p.req.Now.Sub(k.Since) < p.down.Rules.RecheckAfter {
			p.setKeptShared(n, &k.Kept)
			return
		}
		delete(p.noPlace, n.Name)
		x := eligibleNode{n, is.utilization, p.skipped[n.Name], replaced}
		if x.skipped > 0 {
			skipped[n.Name] = x.skipped
		}
		out = append(out, x)
	})
	p.skipped = skipped // without nodes that are gone, or not eligible any more
	// The name decides last, so the order doesn't depend on history.
	slices.SortFunc(out, func(a, b eligibleNode) int {
		return cmp.Or(
			cmp.Compare(uint(a.replaced-1), uint(b.replaced-1)),
			cmp.Compare(a.skipped-1, b.skipped-1), // 0 becomes the largest
			cmp.Compare(min(a.node.Workload, 1), min(b.node.Workload, 1)), cmp.Compare(a.utilization, b.utilization),
			strings.Compare(a.node.Name, b.node.Name))
	})
	return out
}

// simulate makes a node a candidate, or says why it stays; then the world is as it was.
func (p *pass) simulate(x eligibleNode) {
	c := p.prepare(x)
	if c == nil {
		return
	}
	if stuck := p.move(c, p.movers); stuck != nil {
		p.retired = append(p.retired, c)
		p.keepStuck(x, stuck)
		return
	}
	p.add(c)
}

// prepare returns a node as a candidate whose pods have not moved yet: those that have to are p.movers
// then. It returns nil, and says why the node stays, when something keeps it.
func (p *pass) prepare(x eligibleNode) *candidate {
	n := x.node
	keep := func(k autoscaler.Kept) {
		k.Utilization = x.utilization
		p.setKept(n, k)
	}
	// The cheapest checks come first.
	if k := p.minimums.May(n); k != nil {
		keep(*k)
		return nil
	}
	removal := &autoscaler.Removal{Node: n.Name, Utilization: x.utilization}
	movers := p.movers[:0]
	for _, pod := range n.Pods {
		switch v := p.judge.Judge(pod); v.Outcome {
		case drainability.Block:
			keep(autoscaler.Kept{Reason: autoscaler.KeptBlockedByPod, Pod: pod.Name(), Detail: v.Why})
			return nil
		// Such pods end by themselves; the node goes when they have.
		case drainability.WaitFor:
			removal.WaitsFor = append(removal.WaitsFor, pod.Name())
		case drainability.Evict:
			movers = append(movers, pod)
		}
	}
	p.movers = movers
	p.uses = p.budgets.appendUses(p.uses[:0], movers)
	if u, why := p.budgets.refuse(p.uses); u != nil {
		keep(autoscaler.Kept{Reason: autoscaler.KeptBlockedByPod, Pod: u.pod.Name(), Detail: why})
		return nil
	}
	c := p.newCandidate(p.primary.Node(n.Index).NodeInfo, n.Index)
	c.options, c.uses = p.world.Group(n.Group).Options, append(c.uses, p.uses...)
	c.pods, c.owners = append(c.pods, n.Pods...), appendOwners(c.owners, n.Pods)
	// A terminating pod may be gone at any time, so the candidate is looked at again.
	c.ages = slices.ContainsFunc(n.Pods, func(pod *cluster.Pod) bool { return pod.Object.DeletionTimestamp != nil })
	c.removal = removal
	return c
}

// keepStuck says that a node stays since a pod has nowhere to go.
func (p *pass) keepStuck(x eligibleNode, stuck *cluster.Pod) {
	if x.replaced > 0 {
		p.setKept(x.node, autoscaler.Kept{Reason: autoscaler.KeptReplaced, Pod: stuck.Name(), Detail: "the nodes that replace it have no room for the pod yet", Utilization: x.utilization})
		return
	}
	p.keepNoPlace(x.node, stuck, x.utilization)
}

// add adds a candidate whose pods have moved.
// From here on its pods count as being in their homes for those that follow.
func (p *pass) add(c *candidate) {
	p.version++
	p.candidates = append(p.candidates, c)
	p.byNode[c.node] = c
	c.fillHomes(p.world.State)
	p.budgets.draw(c.uses)
	p.minimums.Remove(p.world.Node(c.node))
}

// move moves pods of a node to homes, all or none: then it returns one that finds none.
func (p *pass) move(c *candidate, movers []*cluster.Pod) (stuck *cluster.Pod) {
	return p.moveAll([]*candidate{c}, [][]*cluster.Pod{movers})
}

// moveAll moves pods of several nodes, all or none: then it returns one that finds no home.
func (p *pass) moveAll(list []*candidate, movers [][]*cluster.Pod) (stuck *cluster.Pod) {
	for i := range movers {
		slices.SortFunc(movers[i], largestFirst) // large pods are harder to place
	}
	stuck = p.tryMove(list, movers)
	if stuck == nil || stuck.Group == nil {
		return stuck
	}
	// The rules keep members of a pod group beside the one that moves first, and the domain of
	// the node that is best for it needn't have room for all. Of several such groups the domains of
	// one are tried.
	first, nodes := p.otherDomains(list, movers, *stuck.Group)
	if first == nil {
		return stuck
	}
	hint, hinted := p.hints[first.UID]
	for _, n := range nodes {
		p.hints[first.UID] = n
		if p.tryMove(list, movers) == nil {
			return nil
		}
	}
	// A failed search leaves nothing behind that later ones would begin with.
	if delete(p.hints, first.UID); hinted {
		p.hints[first.UID] = hint
	}
	return stuck
}

// takeOffAll takes pods off their nodes, which are on their way out from then on.
func (p *pass) takeOffAll(list []*candidate, movers [][]*cluster.Pod) {
	for i, c := range list {
		c.homes, c.was = slices.Grow(c.homes[:0], len(movers[i])), cluster.Former{}
		p.world.SetNode(c.marked())
		for _, pod := range movers[i] {
			c.was.Note(p.engine(pod).TakeOff(pod))
		}
	}
}

// tryMove is moveAll by the pods' hints.
func (p *pass) tryMove(list []*candidate, movers [][]*cluster.Pod) (stuck *cluster.Pod) {
	mark := p.world.Mark()
	p.takeOffAll(list, movers)
	for i, c := range list {
		for _, pod := range movers[i] {
			e := p.engine(pod)
			class := e.Class(pod)
			at := p.find(pod, e, class, &c.was)
			if at != cluster.NoNode {
				c.homes = append(c.homes, home{pod, e, class, at})
			}
			if at == cluster.NoNode || !p.mayFollow(pod, at) {
				for _, c := range list {
					for k := range c.homes {
						p.moved[c.homes[k].at]--
					}
				}
				p.world.Rollback(mark)
				return pod
			}
		}
	}
	p.world.Release(mark)
	return nil
}

// largestFirst orders pods as they are packed, by what doesn't depend on history.
func largestFirst(a, b *cluster.Pod) int {
	return cmp.Or(cmp.Compare(b.Request.At(cluster.CPU), a.Request.At(cluster.CPU)), cmp.Compare(b.Request.At(cluster.Memory), a.Request.At(cluster.Memory)),
		strings.Compare(string(a.UID), string(b.UID)))
}

// keepNoPlace says that a node stays since a pod has nowhere to go, also in the next passes.
func (p *pass) keepNoPlace(n *cluster.Node, pod *cluster.Pod, utilization float64) {
	k := &stuck{autoscaler.Kept{Node: n.Name, Reason: autoscaler.KeptNoPlace, Pod: pod.Name(), Detail: "no other remaining node has room for the pod", Since: p.req.Now, Utilization: utilization}, p.version}
	p.noPlace[n.Name] = k
	p.setKeptShared(n, &k.Kept)
}
