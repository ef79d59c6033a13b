package scheduler

// This file chooses the topology domain of a group that requires one and has no member on a node
// (KEP-5732). kube-scheduler tries all domains from scratch, and takes the one with the best score. Here, what
// each could hold is bounded first, by the local rules alone, and so is its score: only those that could hold
// enough are tried, the best bound first, until no other can have a better score than the best so far.

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/engine"
	"github.com/berthproject/berth/core/framework"
)

// maxDomains is how many domains a decision tries.
const maxDomains = 64

// boundedClasses is how many classes of members bound what a domain holds; members of others count as
// if it held them.
const boundedClasses = 8

// unbounded is more pods than any node takes, and small enough to be added up.
const unbounded = 1 << 20

// domain is a domain of the required topology, or of several.
type domain struct {
	value string // of the label; of several labels a/b/c
	nodes []cluster.NodeIndex
	// holds bounds how many of the members its nodes take, and room how many pods like them. nominated is
	// how many members are nominated to its nodes.
	holds, room, nominated int
	// fill is how full its nodes are with all members, by the profile's PlacementScorer; 0 before it is needed.
	fill int64
}

// findDomain takes enough places in one domain, and reports whether there are.
func (t *transaction) findDomain() bool {
	all := t.domains()
	list := slices.DeleteFunc(slices.Clone(all), func(d domain) bool { return d.holds < t.need })
	members, most := t.engine.Profile().Placement(t.memberPods()), 0
	for i := range list {
		most = max(most, list[i].holds)
		if members != nil {
			list[i].fill = members.ScoreNodes(t.state, list[i].nodes)
			t.work += len(list[i].nodes)
		}
	}
	slices.SortFunc(list, func(a, b domain) int { return compareDomains(&a, &b, most) })
	list = list[:min(len(list), maxDomains)]
	if t.findBest(list, most) || t.findIn(list, t.searchFurther) {
		return true
	}
	if t.status == "" { // no domain could hold enough
		room := t.request.Placed
		for i := range all {
			room = max(room, all[i].holds)
		}
		t.status = fmt.Sprintf("minCount (%d) cannot be satisfied: no placement has room for more than %d", t.request.MinCount, room)
	}
	t.status = fmt.Sprintf("0/%d placements are available, first placement status: %s", len(all), t.status)
	return false
}

// findIn searches one domain after the other.
func (t *transaction) findIn(list []domain, search func() bool) bool {
	for i := range list {
		if t.exhausted() {
			break
		}
		if t.enter(&list[i]); search() {
			return true
		}
	}
	return false
}

// enter has the next search be in a domain.
func (t *transaction) enter(d *domain) {
	t.nodes, t.inDomain, t.domain = d.nodes, map[*engine.Class]*engine.Class{}, d.value
}

// bound bounds the score of a domain: it is the score if all members find places that it may hold.
func (d *domain) bound(most int) int64 { return framework.PlacementScore(d.holds, most, d.fill) }

// compareDomains puts the domain first whose nodes members are nominated to: they were bought for the
// group, or others have left them. Then come those whose score may be the best, of these the ones with the
// least room for others.
func compareDomains(a, b *domain, most int) int {
	return cmp.Or(cmp.Compare(b.nominated, a.nominated), cmp.Compare(b.bound(most), a.bound(most)), cmp.Compare(a.room, b.room), cmp.Compare(a.value, b.value))
}

// tried is a domain in which enough members find places.
type tried struct {
	domain *domain
	holds  int   // members
	fill   int64 // with those
}

// findBest takes enough places in the domain of the best score, of domains in the order of compareDomains, and
// reports whether there is one. None holds more than most members. A domain to whose nodes members are nominated
// isn't compared with others, and nothing is where any domain will do.
func (t *transaction) findBest(list []domain, most int) bool {
	var found []tried
	begun := 0
	for i := range list {
		d := &list[i]
		bound := d.bound(most)
		// What was found is enough: that the work for comparing is used up is no reason to call the attempt cut.
		spent := t.work-begun > framework.MaxCompared || t.most > 0 && t.work >= t.most
		if len(found) > 0 && (spent || known(found, most) && bound <= bestScore(found, most)) || len(found) == 0 && t.exhausted() {
			break
		}
		mark := t.state.Mark()
		t.enter(d)
		ok := t.tryInOrder()
		// With all members its score is its bound: no later domain's is better.
		if ok && (t.anyDomain || d.nominated > 0 || len(t.places) == len(t.request.Members) && bound > bestScore(found, most)) {
			t.state.Release(mark)
			return true
		}
		placed := t.placedPods()
		t.state.Rollback(mark)
		if t.places = t.places[:0]; !ok {
			continue
		}
		if len(found) == 0 {
			begun = t.work
		}
		x := tried{domain: d, holds: len(placed)}
		if p := t.engine.Profile().Placement(placed); p != nil {
			x.fill = p.ScoreNodes(t.state, d.nodes)
		}
		found = append(found, x)
	}
	if len(found) == 0 {
		return false
	}
	t.enter(bestOf(found))
	return t.tryInOrder() // as before: nothing is left of the other attempts
}

// known reports whether the scores of domains are certain: one of them holds as many members as any could.
func known(found []tried, most int) bool {
	return slices.ContainsFunc(found, func(x tried) bool { return x.holds == most })
}

// bestScore returns the best score of some domains where the best holds most, -1 for none.
func bestScore(found []tried, most int) int64 {
	best := int64(-1)
	for _, x := range found {
		best = max(best, framework.PlacementScore(x.holds, most, x.fill))
	}
	return best
}

// bestOf returns the domain with the best score, the first of equals.
func bestOf(found []tried) *domain {
	most := 0
	for _, x := range found {
		most = max(most, x.holds)
	}
	best := bestScore(found, most)
	return found[slices.IndexFunc(found, func(x tried) bool { return framework.PlacementScore(x.holds, most, x.fill) == best })].domain
}

// placedPods returns the members that have places.
func (t *transaction) placedPods() (out []*cluster.Pod) {
	for _, p := range t.places {
		out = append(out, t.request.Members[p.Member].Pod)
	}
	return out
}

// memberPods returns all members that have no node.
func (t *transaction) memberPods() []*cluster.Pod {
	out := make([]*cluster.Pod, len(t.request.Members))
	for i := range out {
		out[i] = t.request.Members[i].Pod
	}
	return out
}

// domains returns the domains of the labels that count by their values. It costs O(nodes × classes).
func (t *transaction) domains() (out []domain) {
	values, nodes := t.state.DomainsOf(t.labels)
	classes, counts := t.classes()
	nominated := t.nominatedIn()
	for i, value := range values {
		d := domain{value: value, nodes: nodes[i], nominated: nominated[value]}
		for k, c := range classes {
			if k >= boundedClasses {
				d.holds, d.room = d.holds+counts[k], d.room+counts[k]
				continue
			}
			room := 0
			for _, n := range nodes[i] {
				room += t.engine.HoldsAtMost(c, t.state.Node(n), unbounded)
			}
			t.work += len(nodes[i])
			d.holds, d.room = d.holds+min(room, counts[k]), d.room+room
		}
		out = append(out, d)
	}
	return out
}

// nominatedIn returns how many members are nominated to nodes of each domain, by its value; nil when
// none is.
func (t *transaction) nominatedIn() map[string]int {
	if t.nominated == nil {
		return nil
	}
	out := map[string]int{}
	for _, name := range t.nominated {
		if n := t.state.NodeByName(name); n != nil {
			if value, has := cluster.DomainOf(n.Object.Labels, t.labels); has {
				out[value]++
			}
		}
	}
	return out
}

// classes returns the classes of the members in the order of scheduling, and how many are of each.
func (t *transaction) classes() (classes []*engine.Class, counts []int) {
	at := map[*engine.Class]int{}
	for i := range t.request.Members {
		c := t.request.Members[i].Class
		k, known := at[c]
		if !known {
			k = len(classes)
			at[c] = k
			classes, counts = append(classes, c), append(counts, 0)
		}
		counts[k]++
	}
	return classes, counts
}
