package scheduler

// This file looks for the victims of a group (podgroup_preempt.go). All of it is a what-if.

import (
	"cmp"
	"fmt"
	"slices"
	"sort"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/engine"
	"github.com/berthproject/berth/core/framework"
)

// maxSteps is how many nodes an attempt may look at, in all domains, to place the members of a group one after the other
// with preemption, where rules look beyond a node, so that no look is remembered. One takes some 50 µs.
const maxSteps = 1 << 14

// maxUnits is how many units are taken off at once to see whether a group finds places then, of each domain: those of
// the lowest priorities. maxTakenOff is how many pods are taken off their nodes, and brought back, for it in all; then
// no other way is tried, and no other domain.
// maxAsked is for how many members it is asked on which node preemption costs the least.
const (
	maxUnits    = 1 << 13
	maxTakenOff = 1 << 17
	maxAsked    = 1 << 12
)

// victimSearch looks for victims on the nodes of one domain, or on all.
// What it finds is a proposal: nothing leaves before the decision is made.
type victimSearch struct {
	*transaction                  // of its own
	all          []framework.Unit // that could leave
	units        []framework.Unit // of these, the ones that may be taken off at once
	goal         int              // how many members have to find places
}

// searchVictims returns the victims that cost the least, nil when the group doesn't find enough places
// without anybody of lower priority; why says so.
func (t *transaction) searchVictims() (best *groupVictims, why string) {
	// A transaction of its own: the group's real one goes on if no victims are found.
	x := t.transactionFor(t.request)
	x.quiet = true
	defer func() { t.takenOff, t.work = x.takenOff, t.work+x.work }()
	mark := t.state.Mark()
	defer t.state.Rollback(mark)
	// What the group was promised before must not keep it from better places.
	x.takeBackNominations()
	some := false
	scopes, all := x.scopes()
	for _, d := range scopes {
		// Only pods of lower priority than the first member's may leave.
		s := victimSearch{transaction: x, all: x.engine.Leavable(d.nodes, x.request.Members[0].Pod.Priority), goal: x.need}
		if s.units = lowest(s.all); len(s.units) == 0 {
			continue
		}
		if x.takenOff > maxTakenOff {
			break
		}
		some = true
		// Placed members tie the group to their domain, so only a group without any is
		// tried by domain.
		if x.request.Topology != "" && x.request.Placed == 0 {
			x.enter(&d)
		}
		if v := s.search(); v.better(best) {
			best = v
		}
	}
	switch {
	case !some:
		return nil, messageNoVictims
	case best == nil && x.nodes != nil:
		return nil, fmt.Sprintf("0/%d placements are available, first placement status: %s", all, x.status)
	}
	return best, x.status
}

// lowest returns maxUnits of units at most: those of the lowest priorities, and of these the first.
func lowest(units []framework.Unit) []framework.Unit {
	if len(units) <= maxUnits {
		return units
	}
	slices.SortStableFunc(units, func(a, b framework.Unit) int { return cmp.Compare(priority(&a), priority(&b)) })
	return units[:maxUnits]
}

// scopes returns the domains in which all members have to be, and of how many they are. Where nothing is required,
// or where members are already, it is one, with all nodes. Domains from which nobody could leave are left out. Of
// more than maxDomains those are, too, that couldn't hold enough members if everybody had left who could. The
// first are those that hold the most members as they are; others come in turn from attempt to attempt.
func (t *transaction) scopes() (list []domain, all int) {
	if t.request.Topology == "" || t.request.Placed > 0 {
		d := domain{}
		t.state.Nodes(func(n *cluster.Node) { d.nodes = append(d.nodes, n.Index) })
		return []domain{d}, 1
	}
	list = t.domains()
	all = len(list)
	list = slices.DeleteFunc(list, func(d domain) bool { return !slices.ContainsFunc(d.nodes, t.hasLower) })
	if len(list) > maxDomains {
		classes, counts := t.classes()
		list = slices.DeleteFunc(list, func(d domain) bool { return t.holdsWithoutLower(&d, classes, counts) < t.need })
	}
	slices.SortStableFunc(list, func(a, b domain) int { return cmp.Compare(b.holds, a.holds) })
	list = inTurn(list, t.request.Attempt)
	return list[:min(len(list), maxDomains)], all
}

// hasLower reports whether a pod of lower priority than the group's is on a node.
func (t *transaction) hasLower(n cluster.NodeIndex) bool {
	below := t.request.Members[0].Pod.Priority
	return slices.ContainsFunc(t.state.Node(n).Pods, func(p *cluster.Pod) bool { return p.Priority < below })
}

// holdsWithoutLower bounds how many members a domain holds once all pods of lower priority have left it.
// Nothing is taken off: each node is looked at as a copy with the pods that stay, O(pods × classes) in all. What is
// left of objects that pods share, such as devices, isn't known of a copy: members that take them count as held.
func (t *transaction) holdsWithoutLower(d *domain, classes []*engine.Class, counts []int) (holds int) {
	below := t.request.Members[0].Pod.Priority
	without := func(i cluster.NodeIndex) *cluster.Node {
		n := t.state.Node(i)
		out := cluster.DetachedNode(n.NodeInfo)
		for _, p := range n.Pods {
			if p.Priority >= below {
				out.Add(p)
			}
		}
		return out
	}
	for k, c := range classes {
		if k >= boundedClasses || t.state.TakesObjects(c.Pod()) {
			holds += counts[k]
			continue
		}
		holds += min(t.roomFor(c, d.nodes, without), counts[k])
	}
	return holds
}

// search returns the cheapest victims of those that the ways find which the head of podgroup_preempt.go
// names, and without whom the group will find its places.
// The ways differ in what they minimize, so the cheapest of their results is taken.
func (s *victimSearch) search() *groupVictims {
	var found []*groupVictims
	for _, find := range [...]func() *groupVictims{s.withoutAll, s.withoutLowest, s.stepwise} {
		if s.takenOff > maxTakenOff {
			break
		}
		if v := find(); v != nil {
			found = append(found, v)
			// A later way must place at least as many.
			s.goal = max(s.goal, len(v.places))
		}
	}
	// More members placed count before lower costs.
	slices.SortStableFunc(found, func(a, b *groupVictims) int {
		return cmp.Or(cmp.Compare(len(b.places), len(a.places)), a.cost.Compare(&b.cost))
	})
	for _, v := range found {
		s.goal = len(v.places)
		for _, v := range [...]*groupVictims{s.rescue(v), v} {
			if s.holds(v) {
				return v
			}
		}
	}
	return nil
}

// holds reports whether the group finds as many places when its victims are gone and its members are
// nominated: a rule may allow places only in an order that isn't tried again.
// The real placement follows nominations; a proposal that doesn't survive them is of no
// use.
func (s *victimSearch) holds(v *groupVictims) bool {
	before := s.nominated
	defer func() { s.nominated = before }()
	s.nominated = make([]string, len(s.request.Members))
	for _, p := range v.places {
		s.nominated[p.Member] = s.state.Node(p.Choice.Node).Name
	}
	return s.fits(v.units)
}

// withoutAll returns the victims that kube-scheduler finds.
func (s *victimSearch) withoutAll() *groupVictims { return s.without(s.units) }

// without returns the victims among some units when all of these are taken off at first.
// Members are placed in the room that is free then, and what isn't needed comes back.
func (s *victimSearch) without(units []framework.Unit) *groupVictims {
	mark := s.state.Mark()
	defer s.state.Rollback(mark)
	s.takeOff(units)
	if !s.placeMembers() {
		return nil
	}
	return s.reprieve(units)
}

// withoutLowest returns the victims among those of the lowest priorities that will do, nil when all are
// needed.
// Fewer priorities are affected than by withoutAll, at the price of more victims sometimes.
func (s *victimSearch) withoutLowest() *groupVictims {
	units := slices.Clone(s.units)
	slices.SortStableFunc(units, func(a, b framework.Unit) int { return cmp.Compare(priority(&a), priority(&b)) })
	var ends []int // of the units up to each priority, but the highest
	for i := 1; i < len(units); i++ {
		if priority(&units[i]) > priority(&units[i-1]) {
			ends = append(ends, i)
		}
	}
	// More units gone rarely make it harder, so an end that suffices is found by halves.
	at := sort.Search(len(ends), func(k int) bool { return s.takenOff <= maxTakenOff && s.fits(units[:ends[k]]) })
	if at == len(ends) {
		return nil
	}
	return s.without(units[:ends[at]])
}

// priority returns the highest priority of a pod that leaves with the others.
func priority(u *framework.Unit) int32 {
	out := u.Pods[0].Priority
	for _, p := range u.Pods[1:] {
		out = max(out, p.Priority)
	}
	return out
}

// fits reports whether the group finds places when units are gone; they are in s.places.
func (s *victimSearch) fits(units []framework.Unit) bool {
	mark := s.state.Mark()
	defer s.state.Rollback(mark)
	s.takeOff(units)
	return s.placeMembers()
}

// placeMembers places members, and reports whether enough find places.
func (s *victimSearch) placeMembers() bool {
	s.places = s.places[:0]
	return (s.tryInOrder() || s.searchFurther()) && len(s.places) >= s.goal
}

// takeOff takes units off their nodes, with what they have taken there.
// The pods are counted: bringing them back costs as much.
func (s *victimSearch) takeOff(units []framework.Unit) {
	for i := range units {
		s.takenOff += len(units[i].Pods)
		for _, p := range units[i].Pods {
			s.engine.TakeOff(p)
		}
	}
}

// bringBack undoes takeOff, and reports whether nobody has taken what the units had. Which devices
// they have may differ: whether the group finds its places beside the real ones is asked in the end (holds).
func (s *victimSearch) bringBack(units []framework.Unit) bool {
	ok := true
	for i := range units {
		for k, p := range units[i].Pods {
			n := units[i].Nodes[k]
			ok = ok && (!s.state.TakesObjects(p) || s.engine.FitsOn(s.engine.Class(p), s.state.Node(n)))
			s.engine.PlaceOn(p, n)
		}
	}
	return ok
}

// stepwise places the members one after the other. Where no node takes one, those leave whom it costs the
// least. It ends when too few members are left.
func (s *victimSearch) stepwise() *groupVictims {
	mark := s.state.Mark()
	defer s.state.Rollback(mark)
	s.places, s.vain = s.places[:0], map[*engine.Class]int{}
	costs := costs{victimSearch: s, of: map[*engine.Class][]engine.Candidate{}, none: map[*engine.Class]int{}}
	for i, asked := 0, 0; i < len(s.request.Members); i++ {
		if len(s.places)+len(s.request.Members)-i < s.goal {
			return nil
		}
		if s.place(i) || asked == maxAsked {
			continue
		}
		asked++
		if victims, ok := costs.cheapest(s.classOf(&s.request.Members[i])); ok {
			s.takenOff += len(victims.Pods)
			for _, p := range victims.Pods {
				s.engine.TakeOff(p)
			}
			// Classes that found no place may find one now.
			clear(s.vain)
			s.place(i)
		}
	}
	if len(s.places) < s.goal {
		return nil
	}
	// Those that were taken off: of all, since they were chosen by their nodes.
	return s.reprieve(slices.DeleteFunc(slices.Clone(s.all), func(u framework.Unit) bool {
		_, placed := s.state.Placed(u.Pods[0].UID)
		return placed
	}))
}

// costs is what preemption for one more member costs on each node. The engine remembers it for classes whose rules look
// at one node. For others every change would count, so a list is made of all nodes and its cheapest node is given to one
// member after the other, as long as the node still costs what it did: a node that has become cheaper since is found late.
//
// It must hold that a list is gone through once, and that maxSteps nodes at most are looked at for all lists of an attempt.
type costs struct {
	*victimSearch
	of   map[*engine.Class][]engine.Candidate // not given to a member yet, the cheapest first
	none map[*engine.Class]int                // classes that preemption helped nowhere when so many places were taken
}

// cheapest returns the node on which preemption for one more member of a class costs the least.
func (x *costs) cheapest(c *engine.Class) (best engine.Candidate, ok bool) {
	if x.nodes == nil && !c.LooksBeyondNode() {
		return x.engine.Preempt(c)
	}
	if n, tried := x.none[c]; tried && n == len(x.places) {
		return best, false
	}
	best, ok, same := x.next(c)
	if ok && same {
		return best, true
	}
	// A list that ended, or costs that have changed: all nodes are looked at once more.
	if x.list(c) {
		if now, helps, _ := x.next(c); helps {
			return now, true
		}
	}
	if !ok {
		x.none[c] = len(x.places)
	}
	return best, ok
}

// next takes the first candidate off a class's list on whose node preemption still helps. same reports whether it costs
// what it did when the list was made.
func (x *costs) next(c *engine.Class) (now engine.Candidate, ok, same bool) {
	list := x.of[c]
	for len(list) > 0 && x.look(1) {
		first := list[0]
		list = list[1:]
		if now, ok = x.engine.PreemptOn(c, first.Node); ok {
			same = x.cost(&now).Compare(x.cost(&first)) == 0
			break
		}
	}
	x.of[c] = list
	return now, ok, same
}

// cost returns what a candidate costs.
func (x *costs) cost(of *engine.Candidate) *framework.PreemptionCost {
	cost := x.engine.Profile().Preempter.Cost(&of.Victims)
	return &cost
}

// list makes the list of a class anew, of the nodes of the domain that is tried, or of all; false says that there are no
// candidates, or that too many nodes have been looked at.
func (x *costs) list(c *engine.Class) bool {
	var list []engine.Candidate
	switch {
	case x.nodes == nil && x.look(x.state.Live()):
		list = x.engine.Candidates(c)
	case x.nodes != nil && x.look(len(x.nodes)):
		for _, n := range x.nodes {
			if now, ok := x.engine.PreemptOn(c, n); ok {
				list = append(list, now)
			}
		}
	}
	x.engine.CheapestFirst(c, list)
	x.of[c] = list
	return len(list) > 0
}

// look counts nodes that are about to be looked at, and reports whether they may be.
func (x *costs) look(nodes int) bool {
	if x.looks+nodes > maxSteps {
		return false
	}
	x.looks, x.work = x.looks+nodes, x.work+nodes
	return true
}

// victims returns units as victims with what they cost; nil when there are none.
// The cost compares proposals of all ways.
func (s *victimSearch) victims(units []framework.Unit, places []Place) *groupVictims {
	if len(units) == 0 {
		return nil
	}
	v := &groupVictims{units: slices.Clone(units), places: slices.Clone(places)}
	s.engine.Profile().Preempter.Order(v.units, s.state)
	for _, u := range v.units {
		v.Pods = append(v.Pods, u.Pods...)
		v.Violations += u.Violations
	}
	v.cost = s.engine.Profile().Preempter.Cost(&v.Victims)
	return v
}
