package cluster

import (
	"slices"

	"k8s.io/apimachinery/pkg/labels"
)

// FactSpec says what a fact counts. Exactly one of Selector and Owners is set.
type FactSpec struct {
	Key        string          // canonical: equal keys mean the same fact
	Topology   string          // topology key, or PerNode
	Namespaces []string        // count pods of these namespaces, nil for all
	Selector   labels.Selector // count pods that it selects
	Owners     string          // count pods owning the anti-affinity term with this key
	NodeFilter NodeFilter      // count pods on these nodes only; nil for all
	// SkipTerminating leaves out pods that are being deleted.
	SkipTerminating bool
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
}

type factCell struct {
	domain Domain
	count  int32
	at     int32 // position in nonzero
}

// Key returns the canonical key of the fact.
func (f *Fact) Key() string { return f.spec.Key }

// Topology returns the topology it counts by.
func (f *Fact) Topology() *Topology { return f.topo }

// Count returns the count of a domain; 0 for NoDomain.
func (f *Fact) Count(d Domain) int32 {
	if c := f.counts[d]; c != nil {
		return c.count
	}
	return 0
}

// CountAt returns the count of the node's domain.
func (f *Fact) CountAt(i NodeIndex) int32 { return f.Count(f.topo.Of(i)) }

// Nonzero returns the number of domains with a count.
func (f *Fact) Nonzero() int { return len(f.nonzero) }

// NonzeroAt returns the i-th domain with a count. The order is arbitrary.
func (f *Fact) NonzeroAt(i int) (Domain, int32) {
	c := f.nonzero[i]
	return c.domain, c.count
}

func (f *Fact) add(d Domain, delta int32) {
	if d == NoDomain {
		return
	}
	c := f.counts[d]
	if c == nil {
		c = &factCell{domain: d, at: int32(len(f.nonzero))}
		f.counts[d] = c
		f.nonzero = append(f.nonzero, c)
	}
	c.count += delta
	if c.count == 0 {
		last := f.nonzero[len(f.nonzero)-1]
		f.nonzero[c.at] = last
		last.at = c.at
		f.nonzero = f.nonzero[:len(f.nonzero)-1]
		delete(f.counts, d)
	}
}

// factBook finds the facts that a pod counts in without asking all of them:
// a selector that demands key=value is filed under that pair.
type factBook struct {
	byKey    map[string]*Fact
	byOwners map[string][]*Fact
	byLabel  map[labelPair][]*Fact
	other    []*Fact
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

func (b *factBook) file(f *Fact) {
	if f.spec.Selector == nil {
		b.byOwners[f.spec.Owners] = append(b.byOwners[f.spec.Owners], f)
		return
	}
	if at, ok := pin(f.spec.Selector); ok {
		b.byLabel[at] = append(b.byLabel[at], f)
		return
	}
	b.other = append(b.other, f)
}

func (b *factBook) unfile(f *Fact) {
	without := func(list []*Fact) []*Fact {
		return slices.DeleteFunc(list, func(x *Fact) bool { return x == f })
	}
	if f.spec.Selector == nil {
		if b.byOwners[f.spec.Owners] = without(b.byOwners[f.spec.Owners]); len(b.byOwners[f.spec.Owners]) == 0 {
			delete(b.byOwners, f.spec.Owners)
		}
		return
	}
	if at, ok := pin(f.spec.Selector); ok {
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
	for _, t := range p.AntiAffinity {
		for _, f := range b.byOwners[t.Key] {
			f.countOn(n, sign)
		}
	}
}

func (f *Fact) countSelected(n *Node, p *Pod, sign int32) {
	if f.selects(p) {
		f.countOn(n, sign)
	}
}

func (f *Fact) selects(p *Pod) bool {
	if f.spec.Namespaces != nil && !slices.Contains(f.spec.Namespaces, p.Object.Namespace) {
		return false
	}
	if f.spec.SkipTerminating && p.Object.DeletionTimestamp != nil {
		return false
	}
	return f.spec.Selector.Matches(labels.Set(p.Object.Labels))
}

// Counts tells whether a pod counts, on a node that passes the filter.
func (f *Fact) Counts(p *Pod) bool {
	if f.spec.Selector != nil {
		return f.selects(p)
	}
	return slices.ContainsFunc(p.AntiAffinity, func(t *AffinityTerm) bool { return t.Key == f.spec.Owners })
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
	f := &Fact{spec: spec, topo: s.Topology(spec.Topology), counts: map[Domain]*factCell{}}
	s.Nodes(func(n *Node) {
		for _, p := range n.Pods {
			if spec.Selector != nil {
				f.countSelected(n, p, 1)
				continue
			}
			for _, t := range p.AntiAffinity {
				if t.Key == spec.Owners {
					f.countOn(n, 1)
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
	out := make([]*Fact, 0, len(s.facts.byKey))
	for _, f := range s.facts.byKey {
		out = append(out, f)
	}
	slices.SortFunc(out, func(a, b *Fact) int {
		if a.spec.Key < b.spec.Key {
			return -1
		}
		return 1
	})
	return out
}

// Spec returns what the fact counts.
func (f *Fact) Spec() FactSpec { return f.spec }

// termBook remembers the required anti-affinity terms that pods on nodes have
// had, and which label keys they read. Both only grow: a term that nobody owns
// counts zero, and classes that are finer than needed are still right.
type termBook struct {
	byKey map[string]bool
	list  []*AffinityTerm
	keys  []string // sorted label keys that some term reads
	grown uint64
}

func (b *termBook) init() { b.byKey = map[string]bool{} }

func (b *termBook) podCame(p *Pod) {
	for _, t := range p.AntiAffinity {
		if b.byKey[t.Key] {
			continue
		}
		b.byKey[t.Key] = true
		b.list = append(b.list, t)
		if len(b.list) == 1 {
			b.grown++ // from now on the namespace counts too
		}
		reqs, _ := t.Selector.Requirements()
		for _, r := range reqs {
			if at, found := slices.BinarySearch(b.keys, r.Key()); !found {
				b.keys = slices.Insert(b.keys, at, r.Key())
				b.grown++
			}
		}
	}
}

// AntiAffinityTerms returns the terms that pods on nodes own or have owned. A
// longer list than last time is how a reader notices new ones.
func (s *State) AntiAffinityTerms() []*AffinityTerm { return s.terms.list }

// InterestKeys returns the label keys that those terms read of a pod, sorted.
func (s *State) InterestKeys() []string { return s.terms.keys }

// InterestVersion grows when pods have to be signed again because a rule now
// reads more of their labels.
func (s *State) InterestVersion() uint64 { return s.terms.grown }
