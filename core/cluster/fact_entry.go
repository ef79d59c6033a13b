package cluster

import (
	"slices"
)

// factEntry is what the factIndex knows of a label, or of the key of owned terms: the facts that only
// pods with it count in, and where pods with it are, so that a new fact needn't ask all pods.
// Invariants, for labels of the keys that some fact in use requires (factIndex.keys), and for all
// owned terms:
//
//   - each that a pod on a node has is known, with the number of such pods (of a pod that owns two
//     terms with one key, twice);
//   - nodes has each node at least as often as there are such pods on it, and at most
//     2*pods + staleNodes entries.
type factEntry struct {
	facts []*Fact
	nodes []NodeIndex
	pods  int
}

// staleNodes is how many entries of factEntry.nodes may be of pods that are gone, however few are
// left.
const staleNodes = 16

func (e *factEntry) empty() bool { return len(e.facts) == 0 && e.pods == 0 }

// add adds a fact.
func (e *factEntry) add(f *Fact) {
	f.listed = len(e.facts)
	e.facts = append(e.facts, f)
}

// podAdded takes in a pod on a node, in O(1).
func (e *factEntry) podAdded(n NodeIndex) {
	e.pods++
	e.nodes = append(e.nodes, n)
}

// podRemoved takes a pod off again, in O(1). It reports whether so many entries may be of pods that are
// gone that the nodes are to be recounted. A pod that came last, as those of a what-if did, leaves
// none behind.
func (e *factEntry) podRemoved(n NodeIndex) (recount bool) {
	e.pods--
	if last := len(e.nodes) - 1; last >= 0 && e.nodes[last] == n {
		e.nodes = e.nodes[:last]
	}
	return len(e.nodes) > 2*e.pods+staleNodes
}

// recount has each node as often as has says, in O(pods on these nodes).
func (e *factEntry) recount(has func(NodeIndex) int) {
	distinct := e.distinct()
	e.nodes = make([]NodeIndex, 0, e.pods)
	for _, n := range distinct {
		for range has(n) {
			e.nodes = append(e.nodes, n)
		}
	}
}

// distinct returns the nodes that may have such pods, sorted.
func (e *factEntry) distinct() []NodeIndex {
	list := slices.Clone(e.nodes)
	slices.Sort(list)
	return slices.Compact(list)
}

// entryOf returns what is known of a label or term, which is remembered from now on.
func entryOf[K comparable](m map[K]*factEntry, of K) *factEntry {
	e := m[of]
	if e == nil {
		e = &factEntry{}
		m[of] = e
	}
	return e
}

// requireKey notes that another fact requires a label of a key. With the first such fact all pods
// are looked at.
func (x *factIndex) requireKey(key string) {
	x.keys[key]++
	if x.keys[key] > 1 {
		return
	}
	x.state.Nodes(func(n *Node) {
		for _, p := range n.Pods {
			if v, ok := p.Object.Labels[key]; ok {
				entryOf(x.byLabel, label{key, v}).podAdded(n.Index)
			}
		}
	})
}

// unrequireKey takes requireKey back. With the last fact, labels of the key are forgotten.
func (x *factIndex) unrequireKey(key string) {
	if x.keys[key]--; x.keys[key] > 0 {
		return
	}
	delete(x.keys, key)
	for of := range x.byLabel { // in any order: all of the key go
		if of.key == key {
			delete(x.byLabel, of)
		}
	}
}

// counter returns a function that returns how many pods with a label or term a node has, but for one
// pod: each as often as times says.
func (x *factIndex) counter(but *Pod, times func(*Pod) int) func(NodeIndex) int {
	return func(i NodeIndex) (count int) {
		n := x.state.Node(i)
		if n == nil {
			return 0
		}
		for _, p := range n.Pods {
			if p != but {
				count += times(p)
			}
		}
		return count
	}
}

// has returns 1 for pods with the label, and 0 for others.
func (l label) has(p *Pod) int {
	if v, ok := p.Object.Labels[l.key]; ok && v == l.value {
		return 1
	}
	return 0
}

// owns returns how many terms of a pod have the key.
func owns(p *Pod, key string) (count int) {
	for i := range p.Terms {
		if p.Terms[i].OwnerKey == key {
			count++
		}
	}
	return count
}
