package scaleup

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/engine"
)

// Soft preferences: which groups pods would rather have a node of. A preferred node or pod
// affinity, soft spreading and a PreferNoSchedule taint only lower a node's score, so each
// group is an option for such a pod; but the scheduler, had it the choice, would take the
// best. So the engine is asked: a new node of every group that may grow stands in the state,
// and the groups of the best nodes are those that the pod prefers. The nodes are large, of one
// size, and hold one pod each, so that what their size adds to the score tells no groups apart.
//
// A pod whose scores look at other pods, for spreading or attraction, is placed on such a node
// before the next is asked about: each has a preference of its own, and so they are spread
// over zones as the scheduler would.
//
// In rounds, new nodes of a group are bought for pods that prefer the group, or none. What
// room is left on them then is for any other pod: the scheduler would give it that as well.
//
// Invariant: preferences buy no node more, and leave no pod more without one (buy). They come
// after an operator's order of groups: price, cost, priority and grpc ignore them
// (expander.Chain.WeighsPreferences).

// preference is the groups that some pods prefer, of those that may grow. Two of one builder
// that are equal are one.
type preference struct{ groups []*cluster.NodeGroup }

// includes reports whether pods with the preference, nil for none, may be bought a node of a
// group.
func (p *preference) includes(g *cluster.NodeGroup) bool {
	return p == nil || slices.Contains(p.groups, g)
}

// preferring returns the runs divided by what their pods prefer; ok is false when none of
// them prefers any group, or there was no time to find out. It leaves the state as it was. It costs one answer of the engine for
// each class, and two for each of some hundred pods whose scores look at other pods.
func (b *builder) preferring(left []*run) (out []*run, ok bool) {
	if !b.Expander.WeighsPreferences() {
		return nil, false
	}
	q := &preferences{builder: b, sets: map[string]*preference{}, byPod: map[*cluster.Pod]*preference{}}
	for _, g := range b.State.Groups() {
		if room, _ := b.headroom(g); room > 0 {
			q.models = append(q.models, b.models[g.ID])
		}
	}
	if len(q.models) < 2 {
		return nil, false
	}
	mark := b.State.Mark()
	defer b.State.Rollback(mark)
	for _, m := range q.models {
		q.nodes = append(q.nodes, q.newNode(m))
	}
	q.placed = make([]int, len(q.models))
	q.ask(left)
	if len(q.byPod) == 0 || q.late {
		return nil, false
	}
	for _, r := range left {
		out = append(out, q.divide(r)...)
	}
	return out, true
}

// byClass returns one run for each class, of all its pods.
func byClass(runs []*run) (out []*run) {
	at := map[*engine.Class]*run{}
	for _, r := range runs {
		whole := at[r.class]
		if whole == nil {
			whole = &run{class: r.class, countable: r.countable}
			at[r.class] = whole
			out = append(out, whole)
		}
		whole.pods = append(whole.pods, r.pods...)
	}
	return out
}

// preferences is one call of preferring.
type preferences struct {
	*builder
	models []*model            // of the groups that may grow, by ID
	nodes  []cluster.NodeIndex // by model: a node that nothing is on yet
	placed []int               // by model: how many pods were placed on nodes of its group
	late   bool                // there is no time to ask for preferences
	serial int
	sets   map[string]*preference // by the models in it
	byPod  map[*cluster.Pod]*preference
}

// newNode adds a node of a group to the state that takes one pod, of whatever size.
func (q *preferences) newNode(m *model) cluster.NodeIndex {
	q.serial++
	info := m.info.Renamed(fmt.Sprintf("%s/preferred-%d", m.group.ID, q.serial))
	info.AllowedPods = 1
	info.Images = m.group.Template.Images // a live node has pulled others, a new one won't have them
	info.Allocatable = cluster.Resources{}
	for id, v := range m.info.Allocatable.All() {
		if v > 0 {
			info.Allocatable.Set(id, 1<<40)
		}
	}
	return q.State.SetNode(info)
}

// ask finds out what pods prefer. Pods that something on other nodes may keep from a node
// have no preference: where they can be is decided as they are packed. What pods prefer
// whose scores look at no other pod is asked once for each class; the others are placed one
// after the other, as they will be scheduled, whatever their classes.
func (q *preferences) ask(runs []*run) {
	classOf := map[*cluster.Pod]*engine.Class{}
	for i, r := range byClass(runs) {
		if q.late = q.late || i%preferredTogether == preferredTogether-1 && q.over(autoscaler.WholePlan); q.late {
			return
		}
		if r.class.LooksBeyondNode() && !r.countable {
			continue
		}
		if !q.Engine(r.pods[0]).Reacts(r.class) {
			q.askOnce(r.class, r.pods)
			continue
		}
		for _, pod := range r.pods {
			classOf[pod] = r.class
		}
	}
	own, rest := map[*engine.Class][]*preference{}, map[*engine.Class][]*cluster.Pod{}
	placed := 0
	for _, pod := range q.req.Pending {
		class := classOf[pod]
		switch {
		case class == nil:
		case placed == oneByOnePods:
			rest[class] = append(rest[class], pod)
		default:
			placed++
			own[class] = append(own[class], q.place(class, pod))
		}
	}
	for class, pods := range rest { // in any order: what is placed stays as it is
		if len(own[class]) == 0 {
			q.askOnce(class, pods)
			continue
		}
		for i, pod := range pods { // what the second half of them have begun goes on
			half := own[class][len(own[class])/2:]
			q.prefer(pod, half[i%len(half)])
		}
	}
}

// preferredTogether is how many classes are asked about until the stopwatch is.
const preferredTogether = 64

// oneByOnePods is how many pods are placed to find out what each prefers.
const oneByOnePods = 512

// askOnce finds out what pods of a class prefer, all the same.
func (q *preferences) askOnce(class *engine.Class, pods []*cluster.Pod) {
	best, takers := top(q.Engine(pods[0]).AnswersFor(class, q.nodes))
	if takers < 2 {
		return
	}
	all := q.set(best, takers)
	for _, pod := range pods {
		q.prefer(pod, all)
	}
}

func (q *preferences) prefer(pod *cluster.Pod, p *preference) {
	if p != nil {
		q.byPod[pod] = p
	}
}

// place finds out what one pod prefers, and places it there: on the best node of the group
// that has got the fewest so far.
func (q *preferences) place(class *engine.Class, pod *cluster.Pod) *preference {
	e := q.Engine(pod)
	best, takers := top(e.AnswersFor(e.Current(class, pod), q.nodes))
	if takers < 2 {
		return nil
	}
	chosen := slices.MinFunc(best, func(x, y int) int { return cmp.Compare(q.placed[x], q.placed[y]) })
	mark := q.State.Mark()
	e.PlaceOn(pod, q.nodes[chosen])
	before := q.nodes[chosen]
	q.nodes[chosen] = q.newNode(q.models[chosen])
	after := e.AnswersFor(e.Current(class, pod), q.nodes)
	if _, n := top(after); n != takers { // a rule looks beyond the node after all
		q.State.Rollback(mark)
		q.nodes[chosen] = before
		all := q.set(best, takers)
		q.prefer(pod, all)
		return all
	}
	q.State.Release(mark)
	q.placed[chosen]++
	// Groups that no rule tells from the chosen one fare as it does.
	own := q.set(slices.DeleteFunc(best, func(x int) bool { return after[x].Score != after[chosen].Score }), takers)
	q.prefer(pod, own)
	return own
}

// top returns which answers are the best, and how many nodes take the class.
func top(answers []engine.NodeAnswer) (best []int, takers int) {
	for i, a := range answers {
		if !a.OK {
			continue
		}
		takers++
		if len(best) > 0 && a.Score > answers[best[0]].Score {
			best = best[:0]
		}
		if len(best) == 0 || a.Score == answers[best[0]].Score {
			best = append(best, i)
		}
	}
	return best, takers
}

// set returns the preference for some of the groups that take a class; nil when it is all of
// them.
func (q *preferences) set(models []int, takers int) *preference {
	if len(models) == takers {
		return nil
	}
	key := fmt.Sprint(models)
	if q.sets[key] == nil {
		p := &preference{}
		for _, i := range models {
			p.groups = append(p.groups, q.models[i].group)
		}
		q.sets[key] = p
	}
	return q.sets[key]
}

// divide returns the pods of a run as runs of one preference each, by their first pods.
func (q *preferences) divide(r *run) []*run {
	var out []*run
	for _, pod := range r.pods {
		own := q.byPod[pod]
		i := slices.IndexFunc(out, func(x *run) bool { return x.prefers == own })
		if i < 0 {
			i = len(out)
			out = append(out, &run{class: r.class, countable: r.countable, prefers: own})
		}
		out[i].pods = append(out[i].pods, pod)
	}
	return out
}

// indifferent returns the runs without their preferences; ok is false when they had none.
func indifferent(runs []*run) (out []*run, ok bool) {
	for _, r := range runs {
		ok = ok || r.prefers != nil
		out = append(out, &run{class: r.class, countable: r.countable, pods: r.pods})
	}
	return merged(out), ok
}

// buy has groups grow, and returns the pods that are left: of the groups that pods prefer, if
// that takes no more nodes and leaves no more pods. A plan that takes too long is the one
// without preferences.
func (b *builder) buy(left []*run) []*run {
	preferring, ok := b.preferring(left)
	if !ok {
		return b.grow(left)
	}
	b.plan.ScaleUps = slices.Clip(b.plan.ScaleUps) // both ways go on from these
	before, proposed := *b.plan, b.proposed.clone()
	mark := b.State.Mark()
	undo := func(to autoscaler.Plan) {
		b.State.Rollback(mark)
		*b.plan, b.proposed = to, proposed.clone()
	}
	plain := b.grow(left)
	if b.patience.ended {
		b.State.Release(mark)
		return plain
	}
	without := *b.plan
	undo(before)
	mark = b.State.Mark()
	rest := b.grow(preferring)
	switch {
	case b.patience.ended:
		undo(without) // the state isn't looked at any more
		return plain
	case nodes(b.plan) <= nodes(&without) && count(rest) <= count(plain):
		b.State.Release(mark)
		return rest
	}
	undo(before)
	return b.grow(left)
}

// nodes returns how many nodes a plan proposes.
func nodes(plan *autoscaler.Plan) (n int) {
	for i := range plan.ScaleUps {
		n += plan.ScaleUps[i].Nodes
	}
	return n
}
