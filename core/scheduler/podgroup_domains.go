package scheduler

// This file chooses the topology domain of a group that requires one and has no member on a node
// (KEP-5732). kube-scheduler tries all domains from scratch, and takes the one with the best score. Here, what
// each could hold is bounded first, by the local rules alone, and so is its score: only those that could hold
// enough are tried, the best bound first, until no other can have a better score than the best so far.
//
// What group rules say is not in the bound: members that keep away from what is in a domain find no place
// there. When a domain takes too few members, all others are asked at once which members they take.

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/engine"
	"github.com/berthproject/berth/core/framework"
)

// maxDomains is how many domains a decision tries as a whole: it does as much work as trying all members in so
// many would be. Domains that take few of the members before they fail count for that much less.
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
	// refused is set when its nodes take too few of the members, whatever is tried.
	refused bool
}

// findDomain takes enough places in one domain, and reports whether there are.
func (t *transaction) findDomain() bool {
	all := t.domains()
	if len(all) == 0 {
		t.status = fmt.Sprintf("0/0 placements are available: no node has the label %s", strings.Join(t.labels, " and the label "))
		return false
	}
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
	list = inTurn(list, t.request.Attempt)
	found, untried := t.findBest(list, most)
	if found || t.searchDomains(list) {
		return true
	}
	if t.status == "" { // no domain could hold enough
		room := t.request.Placed
		for i := range all {
			room = max(room, all[i].holds)
		}
		t.status = fmt.Sprintf("minCount (%d) cannot be satisfied: no placement has room for more than %d", t.request.MinCount, room)
	}
	available := fmt.Sprintf("0/%d placements are available", len(all))
	if untried > 0 {
		available += fmt.Sprintf(" (%d of them are tried later)", untried)
	}
	t.status = available + ", first placement status: " + t.status
	return false
}

// inTurn returns domains so that each attempt begins with others, if they are more than one attempt may be able to
// try: the first ones always come first, so that the best are not given up, and the others take turns.
func inTurn(list []domain, attempt int) []domain {
	const first = maxDomains / 2
	if len(list) <= maxDomains {
		return list
	}
	at := first + attempt*first%(len(list)-first)
	return slices.Concat(list[:first], list[at:], list[first:at])
}

// searchDomains searches one domain after the other further than in order, maxDomains at most, but for those that hold
// too few members. Together they ask for maxAnswers answers, which are shared out evenly, as long as that
// lets a search come to an end once.
func (t *transaction) searchDomains(list []domain) bool {
	list = slices.DeleteFunc(list, func(d domain) bool { return d.refused })
	t.cut = t.cut || len(list) > maxDomains
	list = list[:min(len(list), maxDomains)]
	classes, _ := t.classes()
	defer func() { t.answers = maxAnswers }()
	left := maxAnswers
	for i := range list {
		if t.cut = t.cut || left <= 0; t.exhausted() || left <= 0 {
			break
		}
		before := t.work
		t.answers = min(left, max(left/(len(list)-i), 2*len(list[i].nodes)*len(classes)*t.need))
		if t.enter(&list[i]); t.searchFurther() {
			return true
		}
		left -= t.work - before
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

// findBest takes enough places in the domain of the best score, and reports whether there is one, or how many
// domains weren't tried because of the work for others (maxDomains). None holds more than most members. A domain to
// whose nodes members are nominated isn't compared with others, and nothing is where any domain will do.
func (t *transaction) findBest(list []domain, most int) (bool, int) {
	var found []tried
	begun, left, asked, untried := 0, t.workInDomains(list), false, 0
	ahead := bestBounds(list, most)
	for i := range list {
		d := &list[i]
		best := bestScore(found, most)
		// What was found is enough: that the work for comparing is used up is no reason to call the attempt cut.
		spent := left <= 0 || t.work-begun > framework.MaxCompared || t.most > 0 && t.work >= t.most
		if len(found) > 0 && (spent || known(found, most) && ahead[i] <= best) || len(found) == 0 && t.exhausted() {
			break
		}
		if d.refused || len(found) > 0 && known(found, most) && d.bound(most) <= best {
			continue
		}
		if left <= 0 {
			untried++
			continue
		}
		mark, before := t.state.Mark(), t.work
		t.enter(d)
		ok := t.tryInOrder()
		// With all members its score is its bound: if no later domain's bound is better, no later domain is.
		if ok && (t.anyDomain || d.nominated > 0 || len(t.places) == len(t.request.Members) && d.bound(most) > best && d.bound(most) >= ahead[i+1]) {
			t.state.Release(mark)
			return true, 0
		}
		placed := t.placedPods()
		t.state.Rollback(mark)
		if t.places = t.places[:0]; !ok {
			left -= t.work - before
			if !asked {
				asked = true
				t.markRefused(list[i:])
				ahead = bestBounds(list, most)
			}
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
		return false, untried
	}
	t.enter(bestOf(found))
	return t.tryInOrder(), 0 // as before: nothing is left of the other attempts
}

// workInDomains returns how much work attempts that fail in domains may be: each domain's nodes are looked at once
// for the first member, and all members tried in maxDomains of them, or framework.MaxCompared of a small group.
func (t *transaction) workInDomains(list []domain) int {
	work := max(maxDomains*len(t.request.Members), framework.MaxCompared)
	for i := range list {
		work += len(list[i].nodes)
	}
	return work
}

// bestBounds returns the best bound of the scores of the domains from each one on, -1 where none is left. Those that
// refuse all members don't count.
func bestBounds(list []domain, most int) []int64 {
	out := make([]int64, len(list)+1)
	out[len(list)] = -1
	for i := len(list) - 1; i >= 0; i-- {
		if out[i] = out[i+1]; !list[i].refused {
			out[i] = max(out[i], list[i].bound(most))
		}
	}
	return out
}

// markRefused marks the domains that can't hold enough members by what their nodes take while none has a place. A
// class counts with these nodes alone, unless members that are placed may have other nodes take it (helped). It asks
// about all nodes at once, O(nodes × classes), where attempts would take that for each domain. Of a group with more
// than boundedClasses classes none is marked.
func (t *transaction) markRefused(list []domain) {
	classes, counts := t.classes()
	if len(classes) > boundedClasses {
		return
	}
	var nodes []cluster.NodeIndex
	for i := range list {
		nodes = append(nodes, list[i].nodes...)
	}
	holds, helped := make([]int, len(list)), t.helped(classes, nodes[0])
	for k, c := range classes {
		answers := t.engine.AnswersFor(c, nodes)
		t.work += len(nodes)
		for i := range list {
			of, room := answers[:len(list[i].nodes)], 0
			answers = answers[len(of):]
			for _, a := range of {
				if room < counts[k] && (a.OK || helped[k]) {
					room += t.engine.HoldsAtMost(c, t.state.Node(a.Node), unbounded)
				}
			}
			holds[i] += min(room, counts[k])
		}
	}
	for i := range list {
		list[i].refused = holds[i] < t.need && list[i].nominated == 0
	}
}

// helped reports, by class, whether members that have places may have nodes take others of it that don't take them
// now, as those do that want to be together. Plugins say so by their hints about a pod of each class that comes to some
// node: which node that is must make no difference to a hint. Of members that take objects it isn't known.
func (t *transaction) helped(classes []*engine.Class, on cluster.NodeIndex) []bool {
	mark, at := t.state.Mark(), t.state.Head()
	defer t.state.Rollback(mark)
	for i, seen := 0, map[*engine.Class]bool{}; i < len(t.request.Members); i++ {
		if m := &t.request.Members[i]; !seen[m.Class] {
			seen[m.Class] = true
			t.state.PlaceAt(m.Pod, on)
		}
	}
	changes, known := t.state.Since(at)
	out := make([]bool, len(classes))
	for k, c := range classes {
		out[k] = !known || t.state.TakesObjects(c.Pod()) || t.engine.MayHelpMembers(c, false, changes)
	}
	return out
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
			room := t.roomFor(c, nodes[i], t.state.Node)
			d.holds, d.room = d.holds+min(room, counts[k]), d.room+room
		}
		out = append(out, d)
	}
	return out
}

// roomFor bounds how many pods of a class some nodes take, each as it is looked at.
func (t *transaction) roomFor(c *engine.Class, nodes []cluster.NodeIndex, as func(cluster.NodeIndex) *cluster.Node) (room int) {
	t.work += len(nodes)
	for _, n := range nodes {
		room += t.engine.HoldsAtMost(c, as(n), unbounded)
	}
	return room
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
