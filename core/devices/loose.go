package devices

import (
	"slices"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
)

// Loose is the devices of a node that may be in no state, with what of them is taken: what-ifs about
// many nodes that are alike look at one. It isn't changed once it is made.
type Loose struct {
	node    *v1.Node
	pools   []seen
	content Content
}

// LooseOf returns the devices that are published for a node, with what is taken of them now.
func (v *Inventory) LooseOf(n *v1.Node) *Loose {
	w := view{pools: v.poolsOf(n)}
	return &Loose{node: n, pools: w.pools, content: v.contentOf(&w, n)}
}

// LooseAt is LooseOf for the node at an index of the state. It costs nothing.
func (v *Inventory) LooseAt(i int32, n *v1.Node) *Loose {
	if i < 0 || int(i) >= len(v.views) {
		return &Loose{node: n}
	}
	return &Loose{node: n, pools: v.views[i].pools, content: v.views[i].content}
}

// Take returns the devices once claims are allocated from them, which a question stands for; nil if they
// can't be. The library is asked once for each content. What takes nothing returns the same Loose.
func (v *Inventory) Take(l *Loose, q Question, claims []*resourcev1.ResourceClaim, classes Classes, how How) *Loose {
	key := asked{question: q, content: l.content}
	if next, ok := v.takes[key]; ok {
		if next != nil && next.content == l.content {
			return l
		}
		return next
	}
	v.mu.Lock()
	results, err := v.allocateOnce(q, l.content, l.pools, l.node, claims, classes, how)
	v.mu.Unlock()
	var next *Loose
	if err == nil && results != nil {
		next = v.without(l, results)
	}
	if len(v.takes) >= remembered {
		clear(v.takes)
	}
	v.takes[key] = next
	if next != nil && next.content == l.content {
		return l
	}
	return next
}

// without returns what allocations leave.
func (v *Inventory) without(l *Loose, results []resourcev1.AllocationResult) *Loose {
	w := view{pools: make([]seen, len(l.pools))}
	for k, p := range l.pools {
		w.pools[k] = seen{p.copied(), p.shape, p.static}
	}
	for i := range results {
		c := &resourcev1.ResourceClaim{}
		c.Status.Allocation = &results[i]
		for _, p := range w.pools {
			if slices.ContainsFunc(results[i].Devices.Results, func(r resourcev1.DeviceRequestAllocationResult) bool { return p.PoolID == PoolID{r.Driver, r.Pool} }) {
				p.claims, p.taken = append(p.claims, c), nil
			}
		}
	}
	return &Loose{node: l.node, pools: w.pools, content: v.contentOf(&w, l.node)}
}

// copied returns the pool as it is now: what is remembered of it must not change with the inventory.
func (p *pool) copied() *pool {
	out := &pool{PoolID: p.PoolID, claims: slices.Clone(p.claims), taken: p.taken, shape: p.shape}
	for _, s := range p.slices {
		c := *s
		out.slices = append(out.slices, &c)
	}
	return out
}

// AskLoose is Ask for a node that may be in no state. Only one goroutine may ask.
func (v *Inventory) AskLoose(q Question, l *Loose, claims []*resourcev1.ResourceClaim, classes Classes, how How) Answer {
	return v.remember(asked{question: q, content: l.content, bare: how.Packed}, claims, func() ([]resourcev1.AllocationResult, []Use, error) {
		out, err := v.allocateOnce(q, l.content, l.pools, l.node, claims, classes, how)
		return out, nil, err
	})
}

// NodesOnly reports whether every pool is one node's alone, so that what is allocated on a node takes
// nothing from others.
func (v *Inventory) NodesOnly() bool { return len(v.spread) == 0 }
