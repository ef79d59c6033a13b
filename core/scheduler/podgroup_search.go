package scheduler

// This file looks for places of a group further than kube-scheduler does, which gives up when the
// members find too few nodes in the order of scheduling: members that could be anywhere may take what
// others need, and a node that is best for one may be the only one for another.

import (
	"cmp"
	"math/bits"
	"slices"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/engine"
)

// maxAnswers is how many answers for nodes the exhaustive search asks for, in all domains that are tried. It takes
// some milliseconds, and more the more domains the members' rules tell apart.
const maxAnswers = 100_000

// searchFurther takes enough places in other ways than in the order of scheduling, and reports whether
// it has found any. A group is given up at once for which no other way can find more.
func (t *transaction) searchFurther() bool {
	classes, counts := t.classes()
	if t.need == 1 || len(classes) == 1 && t.orderless || t.exhausted() {
		return false
	}
	if len(classes) > 1 && t.try(RarestFirst, t.rarestFirst(classes)) {
		return true
	}
	return t.searchExhaustively(classes, counts)
}

// among returns the nodes on which a member may be: those of the domain that is tried, or all.
func (t *transaction) among() (out []cluster.NodeIndex) {
	if t.nodes != nil {
		return t.nodes
	}
	t.state.Nodes(func(n *cluster.Node) { out = append(out, n.Index) })
	return out
}

// rarestFirst returns the members in the order of how many nodes would take one now.
func (t *transaction) rarestFirst(classes []*engine.Class) []int {
	nodes := t.among()
	feasible := map[*engine.Class]int{}
	for _, c := range classes {
		for _, a := range t.engine.AnswersFor(c, nodes) {
			if a.OK {
				feasible[c]++
			}
		}
		t.work += len(nodes)
	}
	order := make([]int, len(t.request.Members))
	for i := range order {
		order[i] = i
	}
	at := map[*engine.Class]int{} // so that members of one class follow one another
	for k, c := range classes {
		at[c] = k
	}
	slices.SortStableFunc(order, func(i, j int) int {
		a, b := t.request.Members[i].Class, t.request.Members[j].Class
		return cmp.Or(cmp.Compare(feasible[a], feasible[b]), cmp.Compare(at[a], at[b]))
	})
	return order
}

// walk is an exhaustive search: depth first through the sets of places that members can take one after
// the other, each set once. Which member of a class has which place makes no difference.
type walk struct {
	*transaction
	nodes   []cluster.NodeIndex
	classes []*engine.Class
	members [][]int // by class: those without a place
	visited map[uint64]bool
	left    int // answers that may still be asked for
}

// searchExhaustively takes enough places if the walk finds them before it has asked for too many
// answers. Where not even one set of places could be walked to, it isn't begun.
func (t *transaction) searchExhaustively(classes []*engine.Class, counts []int) bool {
	w := &walk{transaction: t, nodes: t.among(), classes: classes, members: make([][]int, len(classes)), visited: map[uint64]bool{}, left: t.answersLeft()}
	if len(w.nodes)*len(classes)*t.need > w.left {
		t.cut = t.cut || w.left < maxAnswers
		return false
	}
	at := map[*engine.Class]int{}
	for k, c := range classes {
		at[c], w.members[k] = k, make([]int, 0, counts[k])
	}
	for i := range t.request.Members {
		k := at[t.request.Members[i].Class]
		w.members[k] = append(w.members[k], i)
	}
	before := w.left
	found := w.step(0)
	t.work += before - w.left
	if !found {
		t.cut = t.cut || w.left <= 0
		return false
	}
	var failed []int
	for _, list := range w.members {
		failed = append(failed, list...)
	}
	slices.Sort(failed)
	t.vain = map[*engine.Class]int{}
	t.succeed(Exhaustive, slices.DeleteFunc(failed, t.place))
	return true
}

// answersLeft returns how many answers an exhaustive search may ask for.
func (t *transaction) answersLeft() int {
	if t.most == 0 {
		return t.answers
	}
	return max(min(t.answers, t.most-t.work), 0)
}

// option is a class with the nodes that take one of its members now.
type option struct {
	class int
	nodes []engine.NodeAnswer
}

// step takes one more place, and then the others, until there are enough; key is what tells the places
// so far from others. When there aren't enough, the state is as it was.
func (w *walk) step(key uint64) bool {
	if len(w.places) >= w.need {
		return true
	}
	for _, o := range w.optionsByRarity() {
		for _, a := range o.nodes {
			next := key + placeKey(o.class, a.Node)
			if w.left <= 0 {
				return false
			}
			if w.visited[next] {
				continue
			}
			w.visited[next] = true
			if w.take(o.class, a, next) {
				return true
			}
		}
	}
	return false
}

// take puts a member of a class on a node, and goes on from there.
func (w *walk) take(class int, a engine.NodeAnswer, key uint64) bool {
	i := w.members[class][0]
	mark := w.state.Mark()
	writes := w.engine.PlaceOn(w.request.Members[i].Pod, a.Node)
	w.places = append(w.places, Place{i, w.classes[class], engine.Choice{Node: a.Node, Score: a.Score, Writes: writes}})
	w.members[class] = w.members[class][1:]
	if w.step(key) {
		w.state.Release(mark)
		return true
	}
	w.members[class] = append([]int{i}, w.members[class]...)
	w.places = w.places[:len(w.places)-1]
	w.state.Rollback(mark)
	return false
}

// optionsByRarity returns the classes of which members are left and some node takes one, those first
// for which the fewest nodes do, and the nodes of each by rising score: what is good for one member
// has room for others.
func (w *walk) optionsByRarity() (out []option) {
	for k, c := range w.classes {
		if len(w.members[k]) == 0 || w.left <= 0 {
			continue
		}
		w.left -= len(w.nodes)
		c = w.engine.Current(c, w.request.Members[w.members[k][0]].Pod)
		nodes := slices.DeleteFunc(w.engine.AnswersFor(c, w.nodes), func(a engine.NodeAnswer) bool { return !a.OK })
		if len(nodes) == 0 {
			continue
		}
		slices.SortFunc(nodes, func(a, b engine.NodeAnswer) int {
			return cmp.Or(cmp.Compare(a.Score, b.Score), cmp.Compare(a.Node, b.Node))
		})
		out = append(out, option{k, nodes})
	}
	slices.SortStableFunc(out, func(a, b option) int { return cmp.Compare(len(a.nodes), len(b.nodes)) })
	return out
}

// placeKey is a number for a place of a class on a node. The sum of several tells sets of places apart,
// but for accidents that only cost the search a set.
func placeKey(class int, n cluster.NodeIndex) uint64 {
	x := (uint64(class)+1)*0x9e3779b97f4a7c15 ^ (uint64(n)+1)*0xd1b54a32d192ed03
	x = bits.RotateLeft64(x, 31) * 0x94d049bb133111eb
	return x ^ x>>29
}
