package devices

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/dynamic-resource-allocation/structured"
)

// Nodes is what an inventory reads of the cluster's nodes. Indices are small, and used again.
type Nodes interface {
	// DeviceNode returns the node of a name, and its index; nil when there is none.
	DeviceNode(name string) (index int32, node *v1.Node)
	// DeviceNodes calls f for every node, by index.
	DeviceNodes(f func(index int32, node *v1.Node))
}

// PoolID names a pool: a driver's devices that are published together.
type PoolID struct{ Driver, Name string }

// comparePools is the order in which nodes list their pools.
func comparePools(a, b PoolID) int {
	return cmp.Or(strings.Compare(a.Driver, b.Driver), strings.Compare(a.Name, b.Name))
}

// Inventory has the devices of a cluster. Only methods that say so may be called by several goroutines, and none
// that changes it meanwhile.
type Inventory struct {
	nodes    Nodes
	features structured.Features
	pools    map[PoolID]*pool
	// pinned are the pools with a slice for a node, by its name; spread are those with a slice that isn't
	// for one node. A pool may be both. The lists are sorted.
	pinned map[string][]*pool
	spread []*pool
	rules  []*resourcev1.DeviceTaintRule // by name
	specs  map[*resourcev1.ResourceClaim]Digest
	made   digests
	views  []view // by node index
	contents
	memo
	workload
	stale     map[*pool]bool  // pools of which something has changed since the last Settle
	unseen    map[string]bool // the names of nodes that may see other pools since then
	unseenAll bool            // every node may
	changed   []int32         // see Changed
}

// view is what a node sees of the inventory.
// It is found anew when pools or labels change.
type view struct {
	pools   []seen // those with a slice for the node, sorted
	content Content
}

// seen is a pool that a node sees. What the node reads of its slices is kept: allocations don't change it,
// and a pool may be large, and be seen by every node.
type seen struct {
	*pool
	shape  int    // of the pool when it was last read, 0 for never
	static Digest // stands for what the library reads of its slices for the node
}

// pool is a driver's devices that are published together.
type pool struct {
	PoolID
	slices      []*slice                    // by name
	generations []generation                // of the slices, ascending
	claims      []*resourcev1.ResourceClaim // those that have devices of it, by namespace and name
	taken       *Digest                     // stands for what of it is taken, nil when that has to be found anew
	shape       int                         // counts the changes of its slices, from 1 on
	units       units                       // when the workload is followed, as of the last Settle
	kinds       []Kind                      // the same
}

// slice is a published part of a pool.
type slice struct {
	object  *resourcev1.ResourceSlice // as it was published
	tainted *resourcev1.ResourceSlice // with the taints that rules add
	digest  Digest                    // of tainted, without the names of slice, pool and node
	where   selector
	devices []selector // by device; nil unless each says for itself
}

// selector says for which nodes something is.
type selector struct {
	name string // of the node, "" when it isn't for one
	all  bool
	some *nodeaffinity.NodeSelector
	// broken is set when the selector can't be read. The library says so for every node.
	broken bool
}

// newSelector returns what the three fields say that the API has for it; at most one is
// set.
func newSelector(name *string, all *bool, some *v1.NodeSelector) (s selector) {
	switch {
	case name != nil && *name != "":
		s.name = *name
	case all != nil && *all:
		s.all = true
	case some != nil:
		parsed, err := nodeaffinity.NewNodeSelector(some)
		s.some, s.broken = parsed, err != nil
	}
	return s
}

// matches reports whether it is for a node. One that can't be read matches all: the
// library's error has to come up.
func (s *selector) matches(n *v1.Node) bool {
	switch {
	case s.name != "":
		return s.name == n.Name
	case s.some != nil:
		return s.some.Match(n)
	}
	return s.all || s.broken
}

// matches reports whether the library reads the slice for a node.
func (s *slice) matches(n *v1.Node) bool {
	if s.devices == nil {
		return s.where.matches(n)
	}
	return slices.ContainsFunc(s.devices, func(d selector) bool { return d.matches(n) })
}

// NewInventory returns an inventory without devices.
func NewInventory(nodes Nodes, features structured.Features) *Inventory {
	v := &Inventory{nodes: nodes, features: features, pools: map[PoolID]*pool{}, pinned: map[string][]*pool{},
		specs: map[*resourcev1.ResourceClaim]Digest{}, made: digests{}, stale: map[*pool]bool{}, unseen: map[string]bool{}}
	v.contents.init()
	v.memo.init()
	v.expressions = newExpressions(features)
	return v
}

// Empty reports whether no device is published.
func (v *Inventory) Empty() bool { return len(v.pinned) == 0 && len(v.spread) == 0 }

// pool returns a pool that is about to change, and makes it when there is none.
// It marks the pool, so that Settle finds whose content may have changed.
func (v *Inventory) pool(id PoolID) *pool {
	p := v.pools[id]
	if p == nil {
		p = &pool{PoolID: id}
		v.pools[id] = p
	}
	p.taken = nil
	v.stale[p] = true
	return p
}

// drop forgets a pool of which nothing is left.
func (v *Inventory) drop(p *pool) {
	if len(p.slices) == 0 && len(p.claims) == 0 {
		delete(v.pools, p.PoolID)
	}
}

// SetSlice replaces a slice: either of the two may be nil.
func (v *Inventory) SetSlice(now, old *resourcev1.ResourceSlice) {
	if old != nil {
		v.removeSlice(old)
	}
	if now != nil {
		v.addSlice(now)
	}
}

// addSlice adds a slice to its pool, sorted by name.
func (v *Inventory) addSlice(o *resourcev1.ResourceSlice) {
	p := v.pool(poolOf(o))
	s := &slice{object: o, where: newSelector(o.Spec.NodeName, o.Spec.AllNodes, o.Spec.NodeSelector)}
	if x := o.Spec.PerDeviceNodeSelection; x != nil && *x && s.where == (selector{}) {
		s.devices = make([]selector, len(o.Spec.Devices))
		for i := range o.Spec.Devices {
			d := &o.Spec.Devices[i]
			s.devices[i] = newSelector(d.NodeName, d.AllNodes, d.NodeSelector)
		}
	}
	s.taint(v.rules, v.made)
	p.shape++
	at, _ := slices.BinarySearchFunc(p.slices, o.Name, bySliceName)
	p.slices = slices.Insert(p.slices, at, s)
	p.countGeneration(s, 1)
	v.publish(p, s, 1)
}

// removeSlice takes a slice out; one that isn't there is no error.
func (v *Inventory) removeSlice(o *resourcev1.ResourceSlice) {
	p := v.pool(poolOf(o))
	at, found := slices.BinarySearchFunc(p.slices, o.Name, bySliceName)
	if !found {
		v.drop(p)
		return
	}
	s := p.slices[at]
	p.shape++
	p.slices = slices.Delete(p.slices, at, at+1)
	p.countGeneration(s, -1)
	v.publish(p, s, -1)
	v.drop(p)
}

// bySliceName is the order of slices in a pool.
func bySliceName(s *slice, name string) int { return strings.Compare(s.object.Name, name) }

// poolOf returns which pool a slice is of.
func poolOf(o *resourcev1.ResourceSlice) PoolID { return PoolID{o.Spec.Driver, o.Spec.Pool.Name} }

// publish has nodes see a pool's slice that was added (sign is 1), or was taken away (-1).
func (v *Inventory) publish(p *pool, s *slice, sign int) {
	if node := s.where.name; node != "" && s.devices == nil {
		others := slices.ContainsFunc(p.slices, func(x *slice) bool { return x != s && x.devices == nil && x.where.name == node })
		if others {
			return
		}
		if v.pinned[node] = list(v.pinned[node], p, sign); len(v.pinned[node]) == 0 {
			delete(v.pinned, node)
		}
		// Only that node has to look again.
		v.unseen[node] = true
		return
	}
	spread := slices.ContainsFunc(p.slices, func(x *slice) bool { return x != s && (x.devices != nil || x.where.name == "") })
	if !spread {
		v.spread = list(v.spread, p, sign)
	}
	// Which nodes it is for can't be told without looking at each.
	v.unseenAll = true
}

// list puts a pool into a sorted list (sign is 1), or takes it out (-1).
func list(l []*pool, p *pool, sign int) []*pool {
	at, found := slices.BinarySearchFunc(l, p, func(a, b *pool) int { return comparePools(a.PoolID, b.PoolID) })
	switch {
	case sign > 0 && !found:
		return slices.Insert(l, at, p)
	case sign < 0 && found:
		return slices.Delete(l, at, at+1)
	}
	return l
}

// look finds which pools a node sees.
func (v *Inventory) look(i int32, n *v1.Node) {
	if int(i) >= len(v.views) {
		v.views = append(v.views, make([]view, int(i)+1-len(v.views))...)
	}
	v.views[i].pools = v.poolsOf(n)
	v.update(i, n)
}

// poolsOf returns the pools with a slice for a node, sorted.
func (v *Inventory) poolsOf(n *v1.Node) (out []seen) {
	pools := append([]*pool(nil), v.pinned[n.Name]...)
	for _, p := range v.spread {
		if slices.ContainsFunc(p.slices, func(s *slice) bool { return s.matches(n) }) {
			pools = list(pools, p, 1)
		}
	}
	for _, p := range pools {
		out = append(out, seen{pool: p})
	}
	return out
}

// SetNode records that a node has come, or that its labels have changed.
func (v *Inventory) SetNode(i int32, n *v1.Node) {
	// Without devices no node has a view, so that clusters without any pay nothing.
	if v.Empty() && int(i) >= len(v.views) {
		return
	}
	v.look(i, n)
}

// NodeGone records that there is no node at an index.
func (v *Inventory) NodeGone(i int32) {
	if int(i) < len(v.views) {
		v.views[i] = view{}
	}
}

// Settle brings the contents up to date after changes. Changed then has the nodes with another one.
// It costs as much as there are nodes that may see another content.
func (v *Inventory) Settle() {
	v.changed, v.turned = v.changed[:0], false
	if len(v.stale) == 0 {
		return
	}
	v.settleWorkload()
	if v.unseenAll {
		v.nodes.DeviceNodes(v.look)
	} else {
		for _, name := range slices.Sorted(maps.Keys(v.unseen)) {
			if i, n := v.nodes.DeviceNode(name); n != nil {
				v.look(i, n)
			}
		}
		for _, p := range slices.SortedFunc(maps.Keys(v.stale), func(a, b *pool) int { return comparePools(a.PoolID, b.PoolID) }) {
			v.updateReaders(p)
		}
	}
	v.unseenAll = false
	clear(v.unseen)
	clear(v.stale)
}

// updateReaders finds the contents of the nodes that see a pool anew.
// A pool that is for single nodes concerns only these.
func (v *Inventory) updateReaders(p *pool) {
	if slices.ContainsFunc(p.slices, func(s *slice) bool { return s.devices != nil || s.where.name == "" }) {
		v.nodes.DeviceNodes(func(i int32, n *v1.Node) {
			if int(i) < len(v.views) && v.views[i].sees(p) {
				v.update(i, n)
			}
		})
		return
	}
	for _, s := range p.slices {
		if i, n := v.nodes.DeviceNode(s.where.name); n != nil && int(i) < len(v.views) {
			v.update(i, n)
		}
	}
}

// sees reports whether a pool is among those of a view.
func (w *view) sees(p *pool) bool {
	return slices.ContainsFunc(w.pools, func(x seen) bool { return x.pool == p })
}

// update finds the content of a node anew.
func (v *Inventory) update(i int32, n *v1.Node) {
	w := &v.views[i]
	if now := v.contentOf(w, n); now != w.content {
		w.content = now
		v.changed = append(v.changed, i)
	}
}

// Changed returns the nodes that have another content since the last Settle, some of them twice. The
// list is valid until the next one.
func (v *Inventory) Changed() []int32 { return v.changed }

// Content returns what stands for a node's devices, and what of them is taken. A node that has no index,
// because it is in no state, has none.
func (v *Inventory) Content(i int32) Content {
	if i >= 0 && int(i) < len(v.views) {
		return v.views[i].content
	}
	return 0
}
