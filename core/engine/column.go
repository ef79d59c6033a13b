package engine

import (
	"encoding/binary"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/framework"
)

// local is a local rule with its weight.
type local struct {
	framework.LocalRule
	weight int64
	reads  framework.Aspects
	plugin int
}

// column holds, for all classes with the same local signature, the local
// verdict on every node and the groups of structurally equal nodes.
type column struct {
	state  *cluster.State
	locals []local
	rules  []groupRule // only TopologyKeys and StaticKey are used, and HostKey when private
	topos  []*cluster.Topology
	// private columns serve one class: their structural key includes the
	// class's host keys, so that no node stands out.
	private bool
	met     uint64 // meetings of the host topologies when a private column was built
	seed    uint64
	how     Options

	cells  []cell
	groups []*group // nil where free
	// What rules see of the groups, by their number; 0 where free.
	feasible []int32            // nodes that the local rules allow
	best     []scoreKey         // key of the best node
	static   [][]int32          // by rule
	host     [][]int32          // by rule, when private
	domains  [][]cluster.Domain // by topology
	free     []int32
	byKey    map[string]int32
	cursor   cluster.Seq
	pending  []cluster.NodeIndex // touched by changes that were rolled back
	built    bool

	seen   stamps // nodes touched in one sync
	object stamps // of them, those whose object changed
	key    []int32
	keyBuf []byte
}

// cell is the local verdict on one node, in 16 bytes: with many columns of many
// nodes, fetching them is most of the work.
type cell struct {
	group     int32 // -1 when the node is gone
	slot      int32
	objScore  int32 // of the rules that read only the object
	objReject bool
	ok        bool
}

// verdict is what the rules that read pods say besides.
type verdict struct {
	score  int32
	reject bool
}

// group is a set of nodes that no structural key tells apart.
type group struct {
	key   []int32
	nodes []cluster.NodeIndex // by slot
	tree  tree
}

// stamps marks node indices without clearing between uses.
type stamps struct {
	at     []uint32
	serial uint32
}

func (s *stamps) next(n int) {
	for len(s.at) < n {
		s.at = append(s.at, 0)
	}
	s.serial++
	if s.serial == 0 {
		clear(s.at)
		s.serial = 1
	}
}

func (s *stamps) has(i cluster.NodeIndex) bool { return s.at[i] == s.serial }

// set marks i and tells whether it was not marked before.
func (s *stamps) set(i cluster.NodeIndex) bool {
	if s.at[i] == s.serial {
		return false
	}
	s.at[i] = s.serial
	return true
}

// rank breaks ties: a bijection of the 40 bits of the node's name hash, so it
// is unique where the hash is.
func (c *column) rank(n *cluster.Node) uint64 {
	const mask = 1<<rankBits - 1
	x := (n.Hash ^ c.seed) & mask
	x = x * 0x9E3779B97F4A7C15 & mask
	x ^= x >> 21
	return x * 0xBF58476D1CE4E5B9 & mask
}

// sync brings the column up to the head of the journal, evaluating each
// touched node once from the state as it is.
func (c *column) sync() {
	head := c.state.Head()
	changes, ok := c.state.Since(c.cursor)
	if !c.built || !ok || c.how.Rebuilt || len(changes)+len(c.pending) > 16*c.state.Len()+1024 {
		c.rebuild()
		return
	}
	if len(changes) == 0 && len(c.pending) == 0 {
		return
	}
	c.seen.next(c.state.Len())
	c.object.next(c.state.Len())
	for i := range changes {
		switch changes[i].Op {
		case cluster.NodeAdded, cluster.NodeUpdated, cluster.NodeRemoved, cluster.NodeTouched:
			c.object.set(changes[i].Node)
		}
	}
	for _, i := range c.pending {
		if int(i) >= c.state.Len() {
			if int(i) < len(c.cells) {
				c.evict(i) // the node was added in what was rolled back
			}
			continue
		}
		c.object.set(i)
		if c.seen.set(i) {
			c.eval(i, true)
		}
	}
	c.pending = c.pending[:0]
	for i := range changes {
		if n := changes[i].Node; n != cluster.NoNode && c.seen.set(n) {
			c.eval(n, c.object.has(n))
		}
	}
	c.cursor = head
}

func (c *column) rebuild() {
	c.cells = c.cells[:0]
	c.groups, c.free = nil, nil
	c.feasible, c.best = c.feasible[:0], c.best[:0]
	c.static, c.host, c.domains = make([][]int32, len(c.rules)), make([][]int32, len(c.rules)), make([][]cluster.Domain, len(c.topos))
	c.byKey = map[string]int32{}
	c.pending = c.pending[:0]
	if c.how.Workers > 1 {
		c.judgeAll()
	} else {
		for i := range c.state.Len() {
			c.eval(cluster.NodeIndex(i), true)
		}
	}
	c.cursor = c.state.Head()
	c.built = true
}

// rolledBack moves the cursor back and remembers what has to be looked at.
func (c *column) rolledBack(to cluster.Seq, undone []cluster.Change) {
	if !c.built || c.cursor <= to {
		return
	}
	for i := range undone[:c.cursor-to] {
		if n := undone[i].Node; n != cluster.NoNode {
			c.pending = append(c.pending, n)
		}
	}
	c.cursor = to
}

func (c *column) eval(i cluster.NodeIndex, object bool) {
	for len(c.cells) <= int(i) {
		c.cells = append(c.cells, cell{group: -1})
	}
	n := c.state.Node(i)
	if n == nil {
		c.evict(i)
		return
	}
	c.place(n, c.judge(n, &c.cells[i], object), object)
}

// judge fills in the local verdict on a node. It reads only; that of another
// node may be found at the same time.
func (c *column) judge(n *cluster.Node, cl *cell, object bool) (v verdict) {
	if object {
		cl.objScore, cl.objReject = c.run(n, framework.ReadsObject)
	}
	if !cl.objReject {
		v.score, v.reject = c.run(n, framework.ReadsPods)
	}
	return v
}

// place puts a judged node where its verdict belongs.
func (c *column) place(n *cluster.Node, v verdict, object bool) {
	cl := &c.cells[n.Index]
	ok := !cl.objReject && !v.reject
	var key scoreKey
	if ok {
		key = newKey(cl.objScore+v.score, c.rank(n))
	}
	if object || c.private || cl.group < 0 {
		c.settle(n, cl)
	}
	g := c.groups[cl.group]
	if ok != cl.ok {
		cl.ok = ok
		if ok {
			c.feasible[cl.group]++
		} else {
			c.feasible[cl.group]--
		}
	}
	g.tree.set(int(cl.slot), key)
	c.best[cl.group] = g.tree.top()
}

// run evaluates the rules that read only the object, or those that read pods.
func (c *column) run(n *cluster.Node, aspect framework.Aspects) (score int32, reject bool) {
	for k := range c.locals {
		l := &c.locals[k]
		if (l.reads&framework.ReadsPods != 0) != (aspect == framework.ReadsPods) {
			continue
		}
		code, s := l.EvalNode(n)
		if code != framework.OK {
			return 0, true
		}
		score += int32(s * l.weight)
	}
	return score, false
}

// settle puts the node into the group of its structural key.
func (c *column) settle(n *cluster.Node, cl *cell) {
	c.key = c.key[:0]
	for _, t := range c.topos {
		c.key = append(c.key, int32(t.Of(n.Index)))
	}
	for k := range c.rules {
		c.key = append(c.key, c.rules[k].StaticKey(n.NodeInfo))
	}
	if c.private {
		for k := range c.rules {
			c.key = append(c.key, c.rules[k].HostKey(n.Index))
		}
	}
	if cl.group >= 0 && equal(c.groups[cl.group].key, c.key) {
		return
	}
	c.evict(n.Index)
	id := c.groupOf()
	g := c.groups[id]
	cl.group, cl.slot = id, int32(len(g.nodes))
	g.nodes = append(g.nodes, n.Index)
	g.tree.add(0)
}

func equal(a, b []int32) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

// groupOf finds or makes the group of c.key.
func (c *column) groupOf() int32 {
	c.keyBuf = c.keyBuf[:0]
	for _, k := range c.key {
		c.keyBuf = binary.LittleEndian.AppendUint32(c.keyBuf, uint32(k))
	}
	if id, ok := c.byKey[string(c.keyBuf)]; ok {
		return id
	}
	g := &group{key: append([]int32(nil), c.key...)}
	id := int32(len(c.groups))
	if k := len(c.free); k > 0 {
		id = c.free[k-1]
		c.free = c.free[:k-1]
		c.groups[id] = g
	} else {
		c.groups = append(c.groups, g)
		c.feasible, c.best = append(c.feasible, 0), append(c.best, 0)
		for k := range c.rules {
			c.static[k], c.host[k] = append(c.static[k], 0), append(c.host[k], 0)
		}
		for t := range c.topos {
			c.domains[t] = append(c.domains[t], 0)
		}
	}
	c.describe(id, g)
	c.byKey[string(c.keyBuf)] = id
	return id
}

// describe lays out a group's structural key for the rules.
func (c *column) describe(id int32, g *group) {
	for t := range c.topos {
		c.domains[t][id] = cluster.Domain(g.key[t])
	}
	for k := range c.rules {
		c.static[k][id] = g.key[len(c.topos)+k]
		if c.private {
			c.host[k][id] = g.key[len(c.topos)+len(c.rules)+k]
		}
	}
}

// evict takes a node out of its group; an empty group goes.
func (c *column) evict(i cluster.NodeIndex) {
	cl := &c.cells[i]
	if cl.group < 0 {
		return
	}
	g := c.groups[cl.group]
	if cl.ok {
		c.feasible[cl.group]--
	}
	last := len(g.nodes) - 1
	if int(cl.slot) != last {
		moved := g.nodes[last]
		g.nodes[cl.slot] = moved
		g.tree.set(int(cl.slot), g.tree.levels[0][last])
		c.cells[moved].slot = cl.slot
	}
	g.nodes = g.nodes[:last]
	g.tree.pop()
	c.best[cl.group] = g.tree.top()
	if last == 0 {
		c.keyBuf = c.keyBuf[:0]
		for _, k := range g.key {
			c.keyBuf = binary.LittleEndian.AppendUint32(c.keyBuf, uint32(k))
		}
		delete(c.byKey, string(c.keyBuf))
		c.groups[cl.group] = nil
		c.free = append(c.free, cl.group)
	}
	cl.group, cl.slot, cl.ok = -1, 0, false
}

// keyOf returns the column's key for a candidate node, 0 for none.
func (c *column) keyOf(i cluster.NodeIndex) scoreKey {
	if int(i) >= len(c.cells) || !c.cells[i].ok {
		return 0
	}
	cl := &c.cells[i]
	return c.groups[cl.group].tree.levels[0][cl.slot]
}
