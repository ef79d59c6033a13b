package cluster

import (
	"maps"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// Facts: counts of pods by topology domain, which rules about groups of nodes
// read. A rule asks for a fact when it is prepared for a class and drops it with
// the class; equal facts are one. The state keeps the counts of those in use
// current with every change, and a rollback restores them by taking the changes
// back. Invariants:
//
//   - a fact in use equals CountAfresh of its spec;
//   - Fact.nonzero lists the domains whose count isn't 0, each once, and every
//     cell there knows its position;
//   - a cell that has neither a count nor nodes isn't kept.

// FactSpec says what a fact counts. Exactly one of Match and Owners is set.
type FactSpec struct {
	Key      string // canonical: equal keys mean the same fact
	Topology string // topology key, or PerNode
	// Match are demands on a pod, all of which it has to meet to count.
	Match []PodMatch
	// Owners is the key of an owned term (OwnedTerm.OwnerKey): its owners count,
	// by the term's weight where it has one.
	Owners     string
	NodeFilter NodeFilter // count pods on these nodes only; nil for all
	// FilterKey is canonical: filters of equal keys pass the same nodes. "" is equal to none.
	FilterKey string
	// SkipTerminating leaves out pods that are being deleted.
	SkipTerminating bool
	// Lowest keeps the lowest count among the domains of nodes that pass the
	// filter, see Fact.Lowest.
	Lowest bool
}

// PodMatch is a demand on a pod's namespace and labels.
type PodMatch struct {
	Namespaces []string // nil for all
	Selector   labels.Selector
}

// Matches reports whether the pod meets the demand.
func (m *PodMatch) Matches(p *Pod) bool {
	return (m.Namespaces == nil || slices.Contains(m.Namespaces, p.Object.Namespace)) &&
		m.Selector.Matches(labels.Set(p.Object.Labels))
}

// NodeFilter selects nodes by their labels, and by their taints of the effects
// NoSchedule and NoExecute. It must read nothing else: when these change, the pods
// of a node are counted anew, and only then. The soft taint of a candidate for
// removal comes and goes by the thousands after a plan.
type NodeFilter interface{ Match(*NodeInfo) bool }

// Fact is a count of pods per topology domain, kept current by the state. It
// is stored sparsely.
type Fact struct {
	spec    FactSpec
	topo    *Topology
	users   int              // calls of State.Fact without their DropFact
	cells   []factCell       // the first nonzero of them have a count, in no order that means anything
	at      map[Domain]int32 // positions in cells
	nonzero int
	low     lowest
	filter  *nodeFilter // of the spec, nil for none. Facts in use share those of equal keys
	label   *label      // that pods must have to count; nil when the spec requires none
	// listed and atLowest are its positions in lists of the factIndex.
	listed, atLowest int
	// dense repeats the counts of the domains before denseEnd, which is 0 for topologies with many.
	// It reaches to the last domain that has had pods: those behind have none.
	dense    []int32
	denseEnd Domain
}

// denseDomains limits Fact.dense: to 16 KiB.
const denseDomains = 4096

// factCell is what a fact knows of a domain.
type factCell struct {
	domain Domain
	count  int32
	nodes  int32 // that pass the filter; kept for Lowest only
}

// Key returns the canonical key of the fact.
func (f *Fact) Key() string { return f.spec.Key }

// Spec returns what the fact counts.
func (f *Fact) Spec() FactSpec { return f.spec }

// Topology returns the topology it counts by.
func (f *Fact) Topology() *Topology { return f.topo }

// Count returns the count of a domain; 0 for NoDomain.
func (f *Fact) Count(d Domain) int32 {
	if uint(d) < uint(len(f.dense)) {
		return f.dense[d]
	}
	if d < f.denseEnd {
		return 0
	}
	if i, ok := f.at[d]; ok {
		return f.cells[i].count
	}
	return 0
}

// CountAt returns the count of the node's domain.
func (f *Fact) CountAt(i NodeIndex) int32 { return f.Count(f.topo.Of(i)) }

// Lowest returns the lowest count among the domains that have a node which
// passes the filter, and how many such domains there are. It is kept only for
// specs that ask for it; without a domain the count is 0.
func (f *Fact) Lowest() (count, domains int32) {
	if f.low.domains == 0 {
		return 0, 0
	}
	return f.low.min, f.low.domains
}

// Nonzero returns the number of domains with a count.
func (f *Fact) Nonzero() int { return f.nonzero }

// NonzeroAt returns the i-th domain with a count. The order is arbitrary.
func (f *Fact) NonzeroAt(i int) (Domain, int32) {
	c := &f.cells[:f.nonzero][i]
	return c.domain, c.count
}

// Counts reports whether a pod counts, on a node that passes the filter.
func (f *Fact) Counts(p *Pod) bool {
	if f.label != nil {
		if v, ok := p.Object.Labels[f.label.key]; !ok || v != f.label.value {
			return false
		}
	}
	if f.spec.Match != nil {
		return f.matches(p)
	}
	return slices.ContainsFunc(p.Terms, func(t OwnedTerm) bool { return t.OwnerKey == f.spec.Owners })
}

// matches reports whether a pod meets all demands of a spec that has some.
func (f *Fact) matches(p *Pod) bool {
	if f.spec.SkipTerminating && p.Object.DeletionTimestamp != nil {
		return false
	}
	for i := range f.spec.Match {
		if !f.spec.Match[i].Matches(p) {
			return false
		}
	}
	return true
}

// admits reports whether pods on a node count.
func (f *Fact) admits(n *Node) bool { return f.filter == nil || f.filter.match(n.NodeInfo) }

// addMatching counts a pod on a node sign times if it meets the demands.
func (f *Fact) addMatching(n *Node, p *Pod, sign int32) {
	if f.matches(p) {
		f.addOn(n, sign)
	}
}

// addOn adds delta to the count of a node's domain if pods on the node count.
func (f *Fact) addOn(n *Node, delta int32) {
	if f.admits(n) {
		f.add(f.topo.Of(n.Index), delta)
	}
}

// add adds delta to the count of a domain.
func (f *Fact) add(d Domain, delta int32) {
	if d == NoDomain || delta == 0 {
		return
	}
	i := f.cell(d)
	c := &f.cells[i]
	if c.nodes > 0 {
		f.low.move(c.count, c.count+delta)
	}
	before := c.count
	c.count += delta
	f.setDense(d, c.count)
	switch {
	case before == 0:
		f.swap(i, f.nonzero)
		f.nonzero++
	case c.count == 0:
		f.nonzero--
		f.swap(i, f.nonzero)
		f.dropEmpty(f.nonzero)
	}
}

// swap has two cells change places.
func (f *Fact) swap(i, j int) {
	if i == j {
		return
	}
	f.cells[i], f.cells[j] = f.cells[j], f.cells[i]
	f.at[f.cells[i].domain], f.at[f.cells[j].domain] = int32(i), int32(j)
}

func (f *Fact) setDense(d Domain, count int32) {
	if d >= f.denseEnd {
		return
	}
	for int(d) >= len(f.dense) {
		f.dense = append(f.dense, 0)
	}
	f.dense[d] = count
}

// addNode adds a node to its domain (sign is 1), or takes it out (-1). Only facts
// that know their lowest count need to know nodes.
func (f *Fact) addNode(n *Node, sign int32) {
	d := f.topo.Of(n.Index)
	if !f.spec.Lowest || d == NoDomain || !f.admits(n) {
		return
	}
	i := f.cell(d)
	c := &f.cells[i]
	switch c.nodes += sign; {
	case sign > 0 && c.nodes == 1:
		f.low.enter(c.count)
	case c.nodes == 0:
		f.low.leave(c.count)
		f.dropEmpty(i)
	}
}

// cell returns the position of a domain's cell, which is made if there is none.
func (f *Fact) cell(d Domain) int {
	i, ok := f.at[d]
	if !ok {
		i = int32(len(f.cells))
		f.cells = append(f.cells, factCell{domain: d})
		f.at[d] = i
	}
	return int(i)
}

// dropEmpty drops a cell behind those with a count, unless its domain has nodes to be known.
func (f *Fact) dropEmpty(i int) {
	if c := &f.cells[i]; c.count != 0 || c.nodes != 0 {
		return
	}
	last := len(f.cells) - 1
	f.swap(i, last)
	delete(f.at, f.cells[last].domain)
	f.cells = f.cells[:last]
}

// Fact returns the fact of a spec, counted from the state when it is new: in O(pods) when the spec
// requires no label, and when it requires one of a key that no other fact does; otherwise in O(pods on
// nodes that have a pod with the label, or an owner of the term). With the lowest count it takes
// O(nodes) besides. Each call is to be matched by a DropFact.
func (s *State) Fact(spec FactSpec) *Fact {
	f, ok := s.facts.byKey[spec.Key]
	if !ok {
		f = s.count(spec)
		f.topo.users++
		s.facts.add(f)
	}
	f.users++
	return f
}

// count counts a spec from what is known of labels and owned terms, where that says which pods
// may count.
func (s *State) count(spec FactSpec) *Fact {
	e := s.facts.byOwners[spec.Owners]
	if spec.Match != nil {
		of, ok := spec.requiredLabel()
		if !ok {
			return s.CountAfresh(spec)
		}
		s.facts.requireKey(of.key) // until the fact is removed
		e = s.facts.byLabel[of]
	}
	f := s.newFact(spec)
	if spec.Lowest {
		s.Nodes(func(n *Node) { f.addNode(n, 1) })
	}
	if e != nil {
		for _, i := range e.distinct() {
			if n := s.Node(i); n != nil {
				f.addPodsOf(n)
			}
		}
	}
	return f
}

func (s *State) newFact(spec FactSpec) *Fact {
	f := &Fact{spec: spec, topo: s.Topology(spec.Topology), at: map[Domain]int32{}, low: lowest{at: map[int32]int32{}}}
	if l, ok := spec.requiredLabel(); ok {
		f.label = &l
	}
	if spec.NodeFilter != nil {
		f.filter = &nodeFilter{NodeFilter: spec.NodeFilter}
	}
	if spec.Topology != PerNode && spec.Topology != v1.LabelHostname {
		f.denseEnd = denseDomains
	}
	return f
}

// CountAfresh counts a spec from nothing, without keeping the fact: the slow
// reference of the facts that the state keeps.
func (s *State) CountAfresh(spec FactSpec) *Fact {
	f := s.newFact(spec)
	s.Nodes(func(n *Node) {
		f.addNode(n, 1)
		f.addPodsOf(n)
	})
	return f
}

// addPodsOf counts the pods of a node.
func (f *Fact) addPodsOf(n *Node) {
	for _, p := range n.Pods {
		if f.spec.Match != nil {
			f.addMatching(n, p, 1)
			continue
		}
		for i := range p.Terms {
			if t := &p.Terms[i]; t.OwnerKey == f.spec.Owners {
				f.addOn(n, t.amount())
			}
		}
	}
}

// DropFact gives a fact back; it is no longer kept when nobody uses it.
func (s *State) DropFact(f *Fact) {
	if f.users--; f.users == 0 {
		f.topo.users--
		s.facts.remove(f)
	}
}

// Facts returns the facts in use, ordered by key.
func (s *State) Facts() []*Fact {
	return slices.SortedFunc(maps.Values(s.facts.byKey), func(a, b *Fact) int { return strings.Compare(a.spec.Key, b.spec.Key) })
}
