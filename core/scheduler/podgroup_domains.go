package scheduler

// This file chooses the topology domain of a group that requires one and has no member on a node
// (KEP-5732). kube-scheduler tries all domains from scratch, and takes the one with the best score. Here, what
// each could hold is bounded first, by the local rules alone, and so is its score: only those that could hold
// enough are tried, the best bound first, until no other can have a better score than the best so far.

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/engine"
	"github.com/berthproject/berth/core/framework"
)

// maxDomains is how many domains a decision tries.
const maxDomains = 64

// maxCompared is how much work more is done to find a better domain when one was found that holds enough.
const maxCompared = 4096

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
	// fill is how full its nodes are with all members, by the profile's PlacementScorer.
	fill int64
}

// findDomain takes enough places in one domain, and reports whether there are.
func (t *transaction) findDomain() bool {
	all := t.domains()
	list := slices.DeleteFunc(slices.Clone(all), func(d domain) bool { return d.holds < t.need })
	most := 0
	for i := range list {
		most = max(most, min(list[i].holds, len(t.request.Members)))
	}
	slices.SortFunc(list, func(a, b domain) int { return compareDomains(&a, &b, len(t.request.Members), most) })
	list = list[:min(len(list), maxDomains)]
	if t.findBest(list, most) || t.findIn(list, t.searchFurther) {
		return true
	}
	if t.status == "" { // no domain could hold enough
		most = t.request.Placed
		for i := range all {
			most = max(most, all[i].holds)
		}
		t.status = fmt.Sprintf("minCount (%d) cannot be satisfied: no placement has room for more than %d", t.request.MinCount, most)
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

// placementScore is the score of a domain that holds so many members, where the best holds most: the sum of
// those of kube-scheduler's PodGroupPodsCount and NodeResourcesFit, both of weight 1.
func placementScore(holds, most int, fill int64) int64 {
	return framework.MaxScore*int64(holds)/int64(most) + fill
}

// compareDomains puts the domain first whose nodes members are nominated to: they were bought for the
// group, or others have left them. Then come those whose score may be the best, of these the ones with the
// least room for others.
func compareDomains(a, b *domain, members, most int) int {
	score := func(d *domain) int64 { return placementScore(min(d.holds, members), most, d.fill) }
	return cmp.Or(cmp.Compare(b.nominated, a.nominated), cmp.Compare(score(b), score(a)), cmp.Compare(a.room, b.room), cmp.Compare(a.value, b.value))
}

// tried is a domain in which enough members find places.
type tried struct {
	domain *domain
	holds  int   // members
	fill   int64 // with those
}

// findBest takes enough places in the domain of the best score, of domains in the order of compareDomains, and
// reports whether there is one. None holds more than most members. A domain to whose nodes members are nominated
// isn't compared with others.
func (t *transaction) findBest(list []domain, most int) bool {
	var found []tried
	begun := 0
	for i := range list {
		d := &list[i]
		bound := placementScore(min(d.holds, len(t.request.Members)), most, d.fill)
		// What was found is enough: that the work for comparing is used up is no reason to call the attempt cut.
		spent := t.work-begun > maxCompared || t.most > 0 && t.work >= t.most
		if len(found) > 0 && (spent || known(found, most) && bound <= bestScore(found, most)) || len(found) == 0 && t.exhausted() {
			break
		}
		mark := t.state.Mark()
		t.enter(d)
		ok := t.tryInOrder()
		// With all members its score is its bound: no later domain's is better.
		if ok && (d.nominated > 0 || len(t.places) == len(t.request.Members) && bound > bestScore(found, most)) {
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
		found = append(found, tried{d, len(placed), t.fillOf(placed, d.nodes)})
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
		best = max(best, placementScore(x.holds, most, x.fill))
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
	return found[slices.IndexFunc(found, func(x tried) bool { return placementScore(x.holds, most, x.fill) == best })].domain
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

// fillOf returns how full nodes are with members that aren't on them.
func (t *transaction) fillOf(members []*cluster.Pod, nodes []cluster.NodeIndex) int64 {
	s := t.engine.Profile().PlacementScorer()
	if s == nil {
		return 0
	}
	return s.Placement(members).ScoreNodes(t.state, nodes)
}

// domainsOf returns the values of the labels that count and the nodes that have them, by value.
func (t *transaction) domainsOf() (values []string, nodes [][]cluster.NodeIndex) {
	if len(t.labels) == 1 {
		return t.state.Topology(t.labels[0]).Domains()
	}
	in := map[string][]cluster.NodeIndex{}
	t.state.Nodes(func(n *cluster.Node) {
		if value, has := t.domainOf(n); has {
			in[value] = append(in[value], n.Index)
		}
	})
	values = slices.Sorted(maps.Keys(in))
	for _, value := range values {
		nodes = append(nodes, in[value])
	}
	return values, nodes
}

// domainOf returns in which domain a node is; has is false when it lacks a label.
func (t *transaction) domainOf(n *cluster.Node) (value string, has bool) {
	for i, label := range t.labels {
		v, has := n.Object.Labels[label]
		if !has {
			return "", false
		}
		if i > 0 {
			value += "/" // which is in no value
		}
		value += v
	}
	return value, true
}

// domains returns the domains of the labels that count by their values. It costs O(nodes × classes).
func (t *transaction) domains() (out []domain) {
	values, nodes := t.domainsOf()
	classes, counts := t.classes()
	nominated := t.nominatedIn()
	fill := func([]cluster.NodeIndex) int64 { return 0 }
	if s := t.engine.Profile().PlacementScorer(); s != nil {
		members := s.Placement(t.memberPods())
		fill = func(nodes []cluster.NodeIndex) int64 { return members.ScoreNodes(t.state, nodes) }
	}
	for i, value := range values {
		d := domain{value: value, nodes: nodes[i], nominated: nominated[value], fill: fill(nodes[i])}
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
			if value, has := t.domainOf(n); has {
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
