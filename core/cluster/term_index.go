package cluster

import (
	"slices"
)

// Term is a term that pods on nodes own or have owned.
type Term struct {
	OwnedTerm     // of one of the owners; the weights of others may differ
	Position  int // in the order in which terms were first seen
}

// termIndex remembers the terms that pods on nodes, or nominated to one, have had, and those that were learnt,
// and which label keys they read. Both only grow, rollbacks included: a term that
// nobody owns counts zero, and classes that are finer than needed are still right.
//
// Invariant: each term is in list once, at its Position, and in byLabel or other.
type termIndex struct {
	byKey    map[string]bool
	list     []*Term
	byLabel  map[label][]*Term // by a label that the selector requires
	other    []*Term           // those that require none
	keys     []string          // sorted label keys that some term reads
	byLabels bool              // some term selects namespaces by their labels
	grown    uint64            // times that pods were read more of than before
}

func (x *termIndex) init() {
	x.byKey = map[string]bool{}
	x.byLabel = map[label][]*Term{}
}

func (x *termIndex) podAdded(p *Pod) {
	for i := range p.Terms {
		if !x.byKey[p.Terms[i].OwnerKey] {
			x.add(&Term{p.Terms[i], len(x.list)})
		}
	}
}

func (x *termIndex) add(t *Term) {
	x.byKey[t.OwnerKey] = true
	x.list = append(x.list, t)
	if l, ok := requiredLabel(t.Selector); ok {
		x.byLabel[l] = append(x.byLabel[l], t)
	} else {
		x.other = append(x.other, t)
	}
	if len(x.list) == 1 {
		x.grown++ // from now on the namespace counts too
	}
	if t.NamespaceSelector != nil && !x.byLabels {
		x.byLabels = true
		x.grown++ // and now its labels
	}
	reqs, _ := t.Selector.Requirements()
	for _, r := range reqs {
		if at, found := slices.BinarySearch(x.keys, r.Key()); !found {
			x.keys = slices.Insert(x.keys, at, r.Key())
			x.grown++
		}
	}
}

// LearnTerms takes note of the terms of a pod that may be placed: from now on pods are
// signed by what these terms read of them.
func (s *State) LearnTerms(p *Pod) { s.terms.podAdded(p) }

// Terms returns the terms that pods on nodes own or have owned. A longer list
// than last time is how a reader notices new ones.
func (s *State) Terms() []*Term { return s.terms.list }

// TermsSelecting returns those of the terms that select a pod, in their order.
func (s *State) TermsSelecting(p *Pod) []*Term {
	var out []*Term
	namespace := s.NamespaceLabels(p.Object.Namespace)
	take := func(list []*Term) {
		for _, t := range list {
			if t.Selects(p, namespace) {
				out = append(out, t)
			}
		}
	}
	for k, v := range p.Object.Labels { // sorted below
		take(s.terms.byLabel[label{k, v}])
	}
	take(s.terms.other)
	slices.SortFunc(out, func(a, b *Term) int { return a.Position - b.Position })
	return out
}

// TermLabelKeys returns the label keys that those terms read of a pod, sorted.
func (s *State) TermLabelKeys() []string { return s.terms.keys }

// NamespacesByLabels tells whether some of those terms select namespaces by
// their labels.
func (s *State) NamespacesByLabels() bool { return s.terms.byLabels }

// SignatureVersion changes when pods have to be signed again because a rule now
// reads more of them, because what they read of the cluster has changed, or because other
// headrooms may admit them.
func (s *State) SignatureVersion() uint64 {
	return s.terms.grown + s.objects.namespaceChanges + s.headrooms.changes
}
