package scaleup

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/engine"
)

// packed is what pack has found that a group could take.
type packed struct {
	group *cluster.NodeGroup
	from  int // number of its first new node
	nodes int
	pods  []*cluster.Pod // in the order in which they were placed
	where []string       // name of the node of each, new or not
	// wasted is the share of the new nodes' CPU plus that of their memory which the
	// pods leave unused: 0 to 2.
	wasted float64
}

// pack places what it can on the nodes of the state and on new nodes of a group, room of
// them at most: the largest pods first (first fit decreasing), adding a node when a pod
// has no place. A class that an empty node didn't take isn't tried on another. The
// caller rolls back what pack has done, or keeps it.
func (b *builder) pack(g *cluster.NodeGroup, name func(int) string, from, room int, pending []*run) packed {
	k := packed{group: g, from: from}
	rejected := map[*engine.Class]bool{} // by an empty node
	for _, r := range largestFirst(g, pending) {
		e := b.Engine(r.pods[0])
		placed := func(pod *cluster.Pod, choice engine.Choice) {
			k.pods = append(k.pods, pod)
			k.where = append(k.where, b.State.Node(choice.Node).Name)
		}
		for rest := r.pods; len(rest) > 0; {
			n := e.PlaceMany(r.class, rest, placed)
			rest = rest[n:]
			if len(rest) == 0 || k.nodes >= room {
				break
			}
			class := e.Current(r.class, rest[0])
			if rejected[class] {
				break
			}
			mark := b.State.Mark()
			b.addNode(g, name(from+k.nodes))
			if _, ok := e.Best(class); !ok {
				b.State.Rollback(mark)
				rejected[class] = true
				break
			}
			b.State.Release(mark)
			k.nodes++
		}
	}
	return k
}

// apply does again what pack did before it was rolled back.
func (b *builder) apply(k packed) {
	for i := range k.nodes {
		b.addNode(k.group, newNode(k.from+i))
	}
	for i, pod := range k.pods {
		b.Engine(pod).PlaceOn(pod, b.State.NodeByName(k.where[i]).Index)
	}
}

// largestFirst orders runs by the share of a template node that a pod takes; runs of
// equal shares keep their order.
func largestFirst(g *cluster.NodeGroup, runs []*run) []*run {
	out := slices.Clone(runs)
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

// wasted computes packed.wasted, while the nodes are still there. Daemon pods are
// overhead, not use.
func (b *builder) wasted(k packed) float64 {
	var used [2]int64 // by cluster.CPU and cluster.Memory
	for i := range k.nodes {
		n := b.State.NodeByName(virtualName(k.group, newNode(k.from+i)))
		for _, pod := range n.Pods {
			if pod.Daemon() {
				continue
			}
			for id := range used {
				used[id] += pod.Request.At(cluster.ResourceID(id))
			}
		}
	}
	var sum float64
	for id := range used {
		if all := k.group.Template.Allocatable.At(cluster.ResourceID(id)) * int64(k.nodes); all > 0 {
			sum += 1 - float64(used[id])/float64(all)
		}
	}
	return sum
}

// addNode adds a virtual node as the group would make it, with the daemon pods that it
// would get.
func (b *builder) addNode(g *cluster.NodeGroup, suffix string) cluster.NodeIndex {
	i := b.State.SetNode(g.Template.Renamed(virtualName(g, suffix)))
	for _, w := range b.daemons {
		e := b.Engine(w.Template)
		if e.Explain(e.Class(w.Template), i) == nil {
			b.State.PlaceAt(w.Template.Instance(fmt.Sprintf("%s/%s on %s", w.Namespace, w.Name, b.State.Node(i).Name)), i)
		}
	}
	return i
}

// Names of virtual nodes. Ties between nodes go by their names, so other names make
// other plans.
func virtualName(g *cluster.NodeGroup, suffix string) string { return g.ID + "/" + suffix }
func newNode(i int) string                                   { return fmt.Sprintf("new-%d", i) }
func comingNode(i int) string                                { return fmt.Sprintf("upcoming-%d", i) }
