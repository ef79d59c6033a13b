package scaleup

import (
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/engine"
)

// bundle is a number of nodes that are alike: made after one model, or one node of the
// state, and each with as many pods of each class. Packing ten thousand equal pods takes
// one bundle instead of ten thousand nodes.
//
// Invariant: node has one node's share of fills on it.
type bundle struct {
	// model is what the nodes are to be made after; nil for a node of the state that was
	// there before.
	model *model
	nodes int           // how many there are, at least 1
	node  *cluster.Node // one of them, detached
	fills []fill        // in the order in which they were placed
	// at is where the node of a bundle of one stands in the state, NoNode when it
	// stands in none.
	at cluster.NodeIndex
}

// fill is pods of one class on the nodes of a bundle: the first each of them on the first
// node, and so on.
type fill struct {
	class *engine.Class // of the pods' run
	pods  []*cluster.Pod
	each  int // at least 1; len(pods) is that times the bundle's nodes
	// prefers are the groups that the nodes may be of for the pods' sake; nil for any.
	prefers *preference
}

// newBundle returns a bundle of new nodes with nothing on them but what they get by
// themselves.
func newBundle(m *model, blank *cluster.Node, nodes int) *bundle {
	return &bundle{model: m, nodes: nodes, node: blank.Detached(), at: cluster.NoNode}
}

// split takes the first nodes off a bundle, as a bundle of their own.
func (x *bundle) split(nodes int) *bundle {
	first := &bundle{model: x.model, nodes: nodes, node: x.node.Detached(), at: cluster.NoNode}
	for i := range x.fills {
		f := &x.fills[i]
		first.fills = append(first.fills, fill{f.class, f.pods[:nodes*f.each], f.each, f.prefers})
		f.pods = f.pods[nodes*f.each:]
	}
	x.nodes -= nodes
	return first
}

// put puts pods of a class on a bundle's nodes, each on every one.
func (x *bundle) put(class *engine.Class, pods []*cluster.Pod, each int, prefers *preference) {
	x.fills = append(x.fills, fill{class, pods, each, prefers})
	x.node.Add(pods[:each]...)
}

// fillBundles puts pods of a run of a countable class on bundles, first fit: as many as a node
// takes on the first node that takes any, and so on. Bundles are split where not all of their
// nodes get as many. It returns the bundles and the pods left over.
func (b *builder) fillBundles(bundles []*bundle, e *engine.Engine, r *run, pods []*cluster.Pod) ([]*bundle, []*cluster.Pod) {
	var asked *model // of the bundle before
	takes := false   // a node of it that has no pods yet takes one
	for i := 0; i < len(bundles) && len(pods) > 0; i++ {
		x := bundles[i]
		each := 0
		if x.model == nil {
			each = e.Count(r.class, x.node)
		} else {
			if x.model != asked {
				asked, takes = x.model, b.fits(x.model, e, r.class) > 0
			}
			if takes {
				each = e.CountByPods(r.class, x.node)
			}
		}
		if each = min(each, len(pods)); each == 0 {
			continue
		}
		if nodes := len(pods) / each; nodes < x.nodes {
			// The first nodes get as many as they take, the next what is left. The rest of
			// the bundle stands behind them, and is looked at for the pods left over.
			first := x.split(nodes)
			bundles = append(bundles, nil)
			copy(bundles[i+1:], bundles[i:])
			bundles[i], x = first, first
		}
		x.put(r.class, pods[:x.nodes*each], each, r.prefers)
		pods = pods[x.nodes*each:]
	}
	return bundles, pods
}
