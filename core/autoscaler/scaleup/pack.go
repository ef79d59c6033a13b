package scaleup

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/autoscaler/expander"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/engine"
)

// packed is what pack has found that nodes could take.
type packed struct {
	model   *model   // of the group that was packed
	joined  []*model // of other groups that have nodes among the bundles, in the order in which they joined
	needed  []*model // those of joined without which pods would have no node
	bundles []*bundle
	nodes   int           // new ones
	pods    expander.Pods // in the order in which they were placed
	limited bool          // pods of countable classes would have had more nodes but for a limit
	choice  *autoscaler.Choice
}

// pack places what it can of the pending pods on nodes of the state and on new nodes of
// one group, as many as it may have: the largest pods first (first fit decreasing), a new
// node when a pod has no place. A class that an empty node didn't take isn't tried on
// another.
//
// Pods whose place depends on what is elsewhere go first. They are placed one by one in
// the state, wherever the engine holds it to be best. Where only what is elsewhere keeps
// such a pod from a new node of the group, as hard spreading over zones does, the groups
// that would take it join: with the fewest nodes first, so that their sizes stay balanced.
//
// Then the other pods are counted onto the new nodes, first fit, without touching the
// state: of these pods nothing that is elsewhere can say anything. Pods that prefer other
// groups come last, and no node is added for them. So what pack has done is
// in the state only in part: the caller rolls back, and apply does all of it.
//
// Nodes for pods of the first kind are made in sharing, too; those for the others are shared
// over all similar groups (balance.go).
func (b *builder) pack(m *model, sharing []*model, pending []*run) packed {
	before := b.proposed.clone()
	defer func() { b.proposed = before }() // headroom counts what is packed meanwhile
	p := packing{builder: b, packed: packed{model: m}, sharing: sharing, at: map[cluster.NodeIndex]*bundle{}, rejected: map[*engine.Class]bool{}}
	runs := largestFirst(m.group, pending)
	b.notePacking(m.group.ID, runs)
	b.work.Packings++
	if b.Questions != nil {
		b.Questions.Start(autoscaler.OneGroup)
	}
	for _, r := range runs {
		b.work.Tried++
		if !r.countable && r.prefers.includes(m.group) && !p.over() {
			p.oneByOne(r)
		}
	}
	var others []*run
	for _, r := range runs {
		switch {
		case !r.countable || p.over():
		case r.prefers.includes(m.group):
			p.count(r)
		default:
			others = append(others, r)
		}
	}
	for _, r := range others {
		p.countOnBundles(r)
	}
	if b.balances() {
		p.bundles = b.balance(p.bundles)
	}
	for _, x := range p.bundles {
		if x.model != nil && x.model != m && !slices.Contains(p.joined, x.model) {
			p.joined = append(p.joined, x.model)
		}
	}
	return p.packed
}

// packing is one call of pack.
type packing struct {
	*builder
	packed
	sharing  []*model                      // other groups that nodes are made of in turn
	at       map[cluster.NodeIndex]*bundle // those of nodes in the state
	rejected map[*engine.Class]bool        // by an empty node
	// refused are the groups whose node grow has added in vain, for what is elsewhere.
	refused []*model
	ended   bool // it has taken long enough
}

// opened returns the bundle of one node of the state, which has it from now on.
func (p *packing) opened(i cluster.NodeIndex, made *model) *bundle {
	x := &bundle{model: made, nodes: 1, node: p.State.Node(i).Detached(), at: i}
	p.at[i] = x
	p.bundles = append(p.bundles, x)
	return x
}

// oneByOne places pods of a run in the state, each where the engine holds it to be best.
func (p *packing) oneByOne(r *run) {
	e := p.Engine(r.pods[0])
	placed := func(pod *cluster.Pod, choice engine.Choice) {
		if x := p.at[choice.Node]; x != nil {
			x.put(r.class, []*cluster.Pod{pod}, 1, r.prefers)
		} else { // the node has the pod already
			x = p.opened(choice.Node, nil)
			x.fills = append(x.fills, fill{r.class, []*cluster.Pod{pod}, 1, r.prefers})
		}
	}
	for rest := r.pods; len(rest) > 0; {
		n := e.PlaceMany(r.class, rest, placed)
		p.pods.Add(rest[:n])
		if rest = rest[n:]; len(rest) == 0 {
			return
		}
		class := e.Current(r.class, rest[0])
		if p.rejected[class] || p.over() || !p.grow(e, class) {
			return
		}
	}
}

// grow adds a new node that takes a pod of a class, of the packed group, of one that it
// shares nodes with, or of one that is needed, and reports whether there is any. A class for
// which there is none is rejected for good, unless the groups of the first two kinds have
// just as many nodes as they may have.
func (p *packing) grow(e *engine.Engine, class *engine.Class) bool {
	full := true
	p.refused = p.refused[:0]
	for _, m := range p.inTurn() {
		if room, _ := p.headroom(m.group); room > 0 {
			if full = false; p.addFor(m, e, class) {
				return true
			}
		}
	}
	if full {
		return false
	}
	if e.TakesAlone(class, p.blank(p.model)) {
		var others []*model
		for _, g := range p.State.Groups() {
			if room, _ := p.headroom(g); room > 0 && g != p.model.group && !slices.Contains(p.sharing, p.models[g.ID]) {
				others = append(others, p.models[g.ID])
			}
		}
		slices.SortStableFunc(others, func(x, y *model) int { return cmp.Compare(p.size(x), p.size(y)) })
		for _, m := range others {
			if p.addFor(m, e, class) {
				if !slices.Contains(p.needed, m) {
					p.needed = append(p.needed, m)
				}
				return true
			}
		}
	}
	p.rejected[class] = true
	return false
}

// addFor adds a new node of a group, if it takes a pod of the class. It isn't added to find
// that out where the node alone says no, or where what is elsewhere has said no to another
// group's node that the rules don't tell from it.
func (p *packing) addFor(m *model, e *engine.Engine, class *engine.Class) bool {
	if !e.TakesAlone(class, p.blank(m)) || slices.ContainsFunc(p.refused, func(o *model) bool { return e.RejectedAlike(class, o.info, m.info) }) {
		return false
	}
	p.work.Tried++
	mark := p.State.Mark()
	i := p.addNode(m, newNode(m.group, p.proposed.of(m)))
	if _, ok := e.Best(class); !ok {
		p.State.Rollback(mark)
		p.refused = append(p.refused, m)
		return false
	}
	p.State.Release(mark)
	p.add(m, 1)
	p.nodes++
	p.opened(i, m)
	return true
}

// countOnBundles counts pods of a run onto bundles, and returns the pods left over.
func (p *packing) countOnBundles(r *run) (rest []*cluster.Pod) {
	p.bundles, rest = p.fillBundles(p.bundles, p.Engine(r.pods[0]), r, r.pods)
	p.pods.Add(r.pods[:len(r.pods)-len(rest)])
	return rest
}

// count counts pods of a run onto bundles, and onto as many new nodes as they need.
func (p *packing) count(r *run) {
	e := p.Engine(r.pods[0])
	left := p.countOnBundles(r)
	rest := p.open(p.model, e, r, left)
	for _, m := range p.similar(p.model) {
		rest = p.open(m, e, r, rest) // what the packed group may not have
	}
	p.pods.Add(left[:len(left)-len(rest)])
}

// open counts the pods of a run that are left onto as many new nodes of a group as they need
// and the group may have, and returns the pods left over.
func (p *packing) open(m *model, e *engine.Engine, r *run, rest []*cluster.Pod) []*cluster.Pod {
	if len(rest) == 0 || !r.prefers.includes(m.group) {
		return rest
	}
	each := min(p.fits(m, e, r.class), len(rest))
	if each == 0 {
		return rest
	}
	needed := (len(rest) + each - 1) / each
	room, _ := p.headroom(m.group)
	p.limited = p.limited || room < needed
	if room <= 0 {
		return rest
	}
	nodes := min(needed, room)
	last := len(p.bundles)
	p.bundles = append(p.bundles, newBundle(m, p.blank(m), nodes))
	p.nodes += nodes
	p.add(m, nodes)
	made, rest := p.fillBundles(p.bundles[last:], e, r, rest)
	p.bundles = append(p.bundles[:last], made...)
	return rest
}

// only returns the part of what was packed that is on new nodes of one group. With the
// part of the packed group go the pods that have a place on nodes of the state.
func (k *packed) only(m *model) packed {
	out := packed{model: m}
	for _, x := range k.bundles {
		if x.model != m && (x.model != nil || m != k.model) {
			continue
		}
		out.bundles = append(out.bundles, x)
		if x.model != nil {
			out.nodes += x.nodes
		}
		for _, f := range x.fills {
			out.pods.Add(f.pods)
		}
	}
	if len(k.joined) == 0 {
		out.pods = k.pods // in the order in which they were placed
	}
	return out
}

// bins returns for each new node the pods that it is for.
func (k *packed) bins() [][]types.UID {
	var out [][]types.UID
	for _, x := range k.bundles {
		if x.model == nil {
			continue
		}
		for i := range x.nodes {
			var bin expander.Pods
			for _, f := range x.fills {
				bin.Add(f.pods[i*f.each : (i+1)*f.each])
			}
			out = append(out, uids(bin))
		}
	}
	return out
}

// apply puts into the state what pack has found, after it was rolled back.
func (b *builder) apply(k packed) {
	made := b.proposed.clone().nodes
	for _, x := range k.bundles {
		for i := range x.nodes {
			at := x.at
			if x.model != nil {
				at = b.addNode(x.model, newNode(x.model.group, made[x.model.number]))
				made[x.model.number]++
			}
			for _, f := range x.fills {
				for _, pod := range f.pods[i*f.each : (i+1)*f.each] {
					b.Engine(pod).PlaceOn(pod, at)
				}
			}
		}
	}
}

// largestFirst orders runs by the share of a template node that a pod takes; runs of
// equal shares keep their order. Before all others come the pods that look at other pods:
// the nodes that keep these apart are needed anyway, and others find room there.
func largestFirst(g *cluster.NodeGroup, runs []*run) []*run {
	out := slices.Clone(runs)
	slices.SortStableFunc(out, func(x, y *run) int {
		switch {
		case !x.class.LooksBeyondNode() && y.class.LooksBeyondNode():
			return 1
		case x.class.LooksBeyondNode() && !y.class.LooksBeyondNode():
			return -1
		}
		return cmp.Compare(share(g, y.class.Pod()), share(g, x.class.Pod()))
	})
	return out
}

// share returns the share of a template node's CPU that a pod requests plus that of its
// memory.
func share(g *cluster.NodeGroup, pod *cluster.Pod) float64 {
	var sum float64
	for _, id := range []cluster.ResourceID{cluster.CPU, cluster.Memory} {
		if all := g.Template.Allocatable.At(id); all > 0 {
			sum += float64(pod.Request.At(id)) / float64(all)
		}
	}
	return sum
}

// wasted returns the share of the new nodes' CPU plus that of their memory which the pods
// leave unused: 0 to 2. Daemon and static pods are overhead, not use.
func wasted(bundles []*bundle) float64 {
	resources := [...]cluster.ResourceID{cluster.CPU, cluster.Memory}
	var used, all [len(resources)]int64
	for _, x := range bundles {
		if x.model == nil {
			continue
		}
		for i, id := range resources {
			all[i] += int64(x.nodes) * x.node.Allocatable.At(id)
			for _, pod := range x.node.Pods {
				if !pod.OfNode {
					used[i] += int64(x.nodes) * pod.Request.At(id)
				}
			}
		}
	}
	var sum float64
	for i := range used {
		if all[i] > 0 {
			sum += 1 - float64(used[i])/float64(all[i])
		}
	}
	return sum
}

// notePacking notes in the plan what a group is packed with, in O(runs).
func (b *builder) notePacking(group string, runs []*run) {
	classes, namespaces := map[*engine.Class]bool{}, map[string]bool{}
	for _, r := range runs {
		classes[r.class] = true
		namespaces[r.pods[0].Object.Namespace] = true
	}
	b.plan.Packed = append(b.plan.Packed, autoscaler.Packing{Group: group, Classes: len(classes), Namespaces: len(namespaces)})
}
