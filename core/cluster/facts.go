package cluster

import (
	"maps"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
)

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

// Matches tells whether the pod meets the demand.
func (m *PodMatch) Matches(p *Pod) bool {
	return (m.Namespaces == nil || slices.Contains(m.Namespaces, p.Object.Namespace)) &&
		m.Selector.Matches(labels.Set(p.Object.Labels))
}

// NodeFilter selects nodes by their object. It must not read what is placed.
type NodeFilter interface{ Match(*NodeInfo) bool }

// Fact is a count of pods per topology domain, kept current by the state. It
// is stored sparsely.
type Fact struct {
	spec    FactSpec
	topo    *Topology
	users   int
	counts  map[Domain]*factCell
	nonzero []*factCell
	low     lowest
	// dense repeats the counts of the first domains, for topologies with few.
	dense []int32
}

// denseDomains bounds Fact.dense: 16 KiB.
const denseDomains = 4096

type factCell struct {
	domain Domain
	count  int32
	at     int32 // position in nonzero, when the count isn't zero
	nodes  int32 // that pass the filter; kept for Lowest only
}

// lowest knows the lowest count of the domains that have nodes.
type lowest struct {
	domains int32
	at      map[int32]int32 // domains by their count
	min     int32
}

func (l *lowest) enter(count int32) {
	if l.domains == 0 || count < l.min {
		l.min = count
	}
	l.domains++
	l.at[count]++
}

func (l *lowest) leave(count int32) {
	l.domains--
	if l.at[count]--; l.at[count] == 0 {
		delete(l.at, count)
		if count == l.min && l.domains > 0 {
			l.rise()
		}
	}
}

// move is leave and enter for a count that changes.
func (l *lowest) move(from, to int32) {
	l.enter(to)
	l.leave(from)
}

// rise finds the next lowest count, usually the one above.
func (l *lowest) rise() {
	if l.at[l.min+1] > 0 {
		l.min++
		return
	}
	first := true
	for count := range l.at { // the minimum, whatever the order
		if first || count < l.min {
			l.min, first = count, false
		}
	}
}

// Key returns the canonical key of the fact.
func (f *Fact) Key() string { return f.spec.Key }

// Topology returns the topology it counts by.
func (f *Fact) Topology() *Topology { return f.topo }

// Count returns the count of a domain; 0 for NoDomain.
func (f *Fact) Count(d Domain) int32 {
	if uint(d) < uint(len(f.dense)) {
		return f.dense[d]
	}
	if c := f.counts[d]; c != nil {
		return c.count
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
func (f *Fact) Nonzero() int { return len(f.nonzero) }

// NonzeroAt returns the i-th domain with a count. The order is arbitrary.
func (f *Fact) NonzeroAt(i int) (Domain, int32) {
	c := f.nonzero[i]
	return c.domain, c.count
}

func (f *Fact) cell(d Domain) *factCell {
	c := f.counts[d]
	if c == nil {
		c = &factCell{domain: d}
		f.counts[d] = c
	}
	return c
}

func (f *Fact) dropEmpty(c *factCell) {
	if c.count == 0 && c.nodes == 0 {
		delete(f.counts, c.domain)
	}
}

func (f *Fact) add(d Domain, delta int32) {
	if d == NoDomain || delta == 0 {
		return
	}
	c := f.cell(d)
	if c.nodes > 0 {
		f.low.move(c.count, c.count+delta)
	}
	if c.count == 0 {
		c.at = int32(len(f.nonzero))
		f.nonzero = append(f.nonzero, c)
	}
	c.count += delta
	f.repeat(d, c.count)
	if c.count == 0 {
		last := f.nonzero[len(f.nonzero)-1]
		f.nonzero[c.at] = last
		last.at = c.at
		f.nonzero = f.nonzero[:len(f.nonzero)-1]
		f.dropEmpty(c)
	}
}

func (f *Fact) repeat(d Domain, count int32) {
	if d >= denseDomains || f.spec.Topology == PerNode || f.spec.Topology == v1.LabelHostname {
		return
	}
	for int(d) >= len(f.dense) {
		f.dense = append(f.dense, 0)
	}
	f.dense[d] = count
}

// node books a node into, or out of, its domain.
func (f *Fact) node(n *Node, sign int32) {
	if !f.spec.Lowest || f.spec.NodeFilter != nil && !f.spec.NodeFilter.Match(n.NodeInfo) {
		return
	}
	d := f.topo.Of(n.Index)
	if d == NoDomain {
		return
	}
	c := f.cell(d)
	switch c.nodes += sign; {
	case sign > 0 && c.nodes == 1:
		f.low.enter(c.count)
	case c.nodes == 0:
		f.low.leave(c.count)
		f.dropEmpty(c)
	}
}

// factBook finds the facts that a pod counts in without asking all of them:
// a selector that demands key=value is filed under that pair.
type factBook struct {
	byKey    map[string]*Fact
	byOwners map[string][]*Fact
	byLabel  map[labelPair][]*Fact
	other    []*Fact
	lowest   []*Fact // those that count nodes too
}

type labelPair struct{ key, value string }

func (b *factBook) init() {
	b.byKey = map[string]*Fact{}
	b.byOwners = map[string][]*Fact{}
	b.byLabel = map[labelPair][]*Fact{}
}

// pin returns a key=value pair that the selector demands.
func pin(sel labels.Selector) (labelPair, bool) {
	reqs, _ := sel.Requirements()
	for _, r := range reqs {
		if vals := r.ValuesUnsorted(); len(vals) == 1 {
			switch r.Operator() {
			case "=", "==", "in":
				return labelPair{r.Key(), vals[0]}, true
			}
		}
	}
	return labelPair{}, false
}

// pinned returns a pair that one of the demands pins.
func (f *FactSpec) pinned() (labelPair, bool) {
	for i := range f.Match {
		if at, ok := pin(f.Match[i].Selector); ok {
			return at, true
		}
	}
	return labelPair{}, false
}

func (b *factBook) file(f *Fact) {
	if f.spec.Lowest {
		b.lowest = append(b.lowest, f)
	}
	if f.spec.Match == nil {
		b.byOwners[f.spec.Owners] = append(b.byOwners[f.spec.Owners], f)
		return
	}
	if at, ok := f.spec.pinned(); ok {
		b.byLabel[at] = append(b.byLabel[at], f)
		return
	}
	b.other = append(b.other, f)
}

func (b *factBook) unfile(f *Fact) {
	without := func(list []*Fact) []*Fact {
		return slices.DeleteFunc(list, func(x *Fact) bool { return x == f })
	}
	if f.spec.Lowest {
		b.lowest = without(b.lowest)
	}
	if f.spec.Match == nil {
		if b.byOwners[f.spec.Owners] = without(b.byOwners[f.spec.Owners]); len(b.byOwners[f.spec.Owners]) == 0 {
			delete(b.byOwners, f.spec.Owners)
		}
		return
	}
	if at, ok := f.spec.pinned(); ok {
		if b.byLabel[at] = without(b.byLabel[at]); len(b.byLabel[at]) == 0 {
			delete(b.byLabel, at)
		}
		return
	}
	b.other = without(b.other)
}

// count books a pod on a node into, or out of, every fact it counts in.
func (b *factBook) count(s *State, n *Node, p *Pod, sign int32) {
	if len(b.byKey) == 0 {
		return
	}
	for k, v := range p.Object.Labels { // each fact is filed once, so order doesn't matter
		for _, f := range b.byLabel[labelPair{k, v}] {
			f.countSelected(n, p, sign)
		}
	}
	for _, f := range b.other {
		f.countSelected(n, p, sign)
	}
	for i := range p.Terms {
		t := &p.Terms[i]
		for _, f := range b.byOwners[t.OwnerKey] {
			f.countOn(n, sign*t.amount())
		}
	}
}

// node books a node into, or out of, the facts that count nodes.
func (b *factBook) node(n *Node, sign int32) {
	for _, f := range b.lowest {
		f.node(n, sign)
	}
}

func (f *Fact) countSelected(n *Node, p *Pod, sign int32) {
	if f.selects(p) {
		f.countOn(n, sign)
	}
}

func (f *Fact) selects(p *Pod) bool {
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

// Counts tells whether a pod counts, on a node that passes the filter.
func (f *Fact) Counts(p *Pod) bool {
	if f.spec.Match != nil {
		return f.selects(p)
	}
	return slices.ContainsFunc(p.Terms, func(t OwnedTerm) bool { return t.OwnerKey == f.spec.Owners })
}

func (f *Fact) countOn(n *Node, sign int32) {
	if f.spec.NodeFilter == nil || f.spec.NodeFilter.Match(n.NodeInfo) {
		f.add(f.topo.Of(n.Index), sign)
	}
}

// Fact returns the fact of a spec, counted from the state when it is new, in
// O(pods). Each call is to be matched by a DropFact.
func (s *State) Fact(spec FactSpec) *Fact {
	if f, ok := s.facts.byKey[spec.Key]; ok {
		f.users++
		return f
	}
	f := s.CountAfresh(spec)
	f.users = 1
	s.facts.byKey[spec.Key] = f
	s.facts.file(f)
	return f
}

// CountAfresh counts a spec from nothing, without keeping the fact: the slow
// twin of the facts that the state keeps.
func (s *State) CountAfresh(spec FactSpec) *Fact {
	f := &Fact{spec: spec, topo: s.Topology(spec.Topology), counts: map[Domain]*factCell{}, low: lowest{at: map[int32]int32{}}}
	s.Nodes(func(n *Node) {
		f.node(n, 1)
		for _, p := range n.Pods {
			if spec.Match != nil {
				f.countSelected(n, p, 1)
				continue
			}
			for i := range p.Terms {
				if t := &p.Terms[i]; t.OwnerKey == spec.Owners {
					f.countOn(n, t.amount())
				}
			}
		}
	})
	return f
}

// DropFact gives a fact back; it is no longer kept when nobody uses it.
func (s *State) DropFact(f *Fact) {
	if f.users--; f.users == 0 {
		delete(s.facts.byKey, f.spec.Key)
		s.facts.unfile(f)
	}
}

// Facts returns the facts in use, ordered by key.
func (s *State) Facts() []*Fact {
	return slices.SortedFunc(maps.Values(s.facts.byKey), func(a, b *Fact) int { return strings.Compare(a.spec.Key, b.spec.Key) })
}

// Spec returns what the fact counts.
func (f *Fact) Spec() FactSpec { return f.spec }
