package scaleup

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/engine"
)

// packed is what pack has found that nodes could take.
type packed struct {
	model   *model
	bundles []*bundle
	nodes   int            // new ones
	pods    []*cluster.Pod // in the order in which they were placed
	// wasted is the share of the new nodes' CPU plus that of their memory which the pods
	// leave unused: 0 to 2. Daemon and static pods are overhead, not use.
	wasted float64
}

// pack places what it can of the pending pods on nodes of the state and on new nodes of
// one group, room of them at most: the largest pods first (first fit decreasing), a new
// node when a pod has no place. A class that an empty node didn't take isn't tried on
// another.
//
// Pods whose place depends on what is elsewhere go first. They are placed one by one in
// the state, wherever the engine holds it to be best. Then the others are counted onto
// the new nodes, first fit, without touching the state: of these
// pods nothing that is elsewhere can say anything. So what pack has done is in the state
// only in part: the caller rolls back, and apply does all of it.
//
// name names new nodes.
func (b *builder) pack(m *model, name func(int) string, room int, pending []*run) packed {
	p := packing{builder: b, packed: packed{model: m}, name: name, room: room, at: map[cluster.NodeIndex]*bundle{}, rejected: map[*engine.Class]bool{}}
	runs := largestFirst(m.group, pending)
	for _, r := range runs {
		if !r.countable {
			p.oneByOne(r)
		}
	}
	for _, r := range runs {
		if r.countable {
			p.count(r)
		}
	}
	p.wasted = wasted(p.bundles)
	return p.packed
}

// packing is one call of pack.
type packing struct {
	*builder
	packed
	name     func(int) string
	room     int
	at       map[cluster.NodeIndex]*bundle // those of nodes in the state
	rejected map[*engine.Class]bool        // by an empty node
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
		p.pods = append(p.pods, pod)
		if x := p.at[choice.Node]; x != nil {
			x.put([]*cluster.Pod{pod}, 1)
		} else { // the node has the pod already
			x = p.opened(choice.Node, nil)
			x.fills = append(x.fills, fill{[]*cluster.Pod{pod}, 1})
		}
	}
	for rest := r.pods; len(rest) > 0; {
		rest = rest[e.PlaceMany(r.class, rest, placed):]
		if len(rest) == 0 || p.nodes >= p.room {
			return
		}
		class := e.Current(r.class, rest[0])
		if p.rejected[class] {
			return
		}
		mark := p.State.Mark()
		i := p.addNode(p.model, p.name(p.nodes))
		if _, ok := e.Best(class); !ok {
			p.State.Rollback(mark)
			p.rejected[class] = true
			return
		}
		p.State.Release(mark)
		p.nodes++
		p.opened(i, p.model)
	}
}

// count counts pods of a run onto bundles, and onto as many new nodes as they need.
func (p *packing) count(r *run) {
	e := p.Engine(r.pods[0])
	var rest []*cluster.Pod
	p.bundles, rest = fillBundles(p.bundles, e, r.class, r.pods)
	if len(rest) > 0 && p.nodes < p.room {
		blank := p.blank(p.model)
		if each := min(e.Count(r.class, blank), len(rest)); each > 0 {
			nodes := min((len(rest)+each-1)/each, p.room-p.nodes)
			last := len(p.bundles)
			p.bundles = append(p.bundles, newBundle(p.model, blank, nodes))
			p.nodes += nodes
			var made []*bundle
			made, rest = fillBundles(p.bundles[last:], e, r.class, rest)
			p.bundles = append(p.bundles[:last], made...)
		}
	}
	p.pods = append(p.pods, r.pods[:len(r.pods)-len(rest)]...)
}

// bins returns for each new node the pods that it is for.
func (k *packed) bins() [][]types.UID {
	var out [][]types.UID
	for _, x := range k.bundles {
		if x.model == nil {
			continue
		}
		for i := range x.nodes {
			var bin []types.UID
			for _, f := range x.fills {
				bin = append(bin, uids(f.pods[i*f.each:(i+1)*f.each])...)
			}
			out = append(out, bin)
		}
	}
	return out
}

// apply puts into the state what pack has found, after it was rolled back.
func (b *builder) apply(k packed, name func(int) string) {
	made := 0
	for _, x := range k.bundles {
		for i := range x.nodes {
			at := x.at
			if x.model != nil {
				at = b.addNode(x.model, name(made))
				made++
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
// equal shares keep their order. Countable runs of one class become one run: no rule tells
// in which order their pods are placed.
func largestFirst(g *cluster.NodeGroup, runs []*run) []*run {
	var out []*run
	at := map[*engine.Class]*run{} // of countable classes
	for _, r := range runs {
		whole := at[r.class]
		if whole == nil {
			whole = &run{r.class, r.countable, r.pods}
			out = append(out, whole)
			if r.countable {
				at[r.class] = whole
			}
			continue
		}
		whole.pods = append(whole.pods[:len(whole.pods):len(whole.pods)], r.pods...)
	}
	slices.SortStableFunc(out, func(x, y *run) int {
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

// wasted computes packed.wasted.
func wasted(bundles []*bundle) float64 {
	var used, all [2]int64 // by cluster.CPU and cluster.Memory
	for _, x := range bundles {
		if x.model == nil {
			continue
		}
		for id := range used {
			all[id] += int64(x.nodes) * x.node.Allocatable.At(cluster.ResourceID(id))
			for _, pod := range x.node.Pods {
				if !pod.Daemon() && !pod.Mirror() {
					used[id] += int64(x.nodes) * pod.Request.At(cluster.ResourceID(id))
				}
			}
		}
	}
	var sum float64
	for id := range used {
		if all[id] > 0 {
			sum += 1 - float64(used[id])/float64(all[id])
		}
	}
	return sum
}
