package cluster

import (
	"slices"

	"k8s.io/apimachinery/pkg/labels"
)

// Term is a term that pods on nodes own or have owned.
type Term struct {
	OwnedTerm     // of one of the owners; the weights of others may differ
	Position  int // in the order in which terms were met; no two terms have had the same
}

// termIndex remembers the terms that pods on nodes, or nominated to one, have had, and those that were learnt,
// and which label keys they read. Between two calls of State.Forget both only grow, rollbacks
// included: a term that nobody owns counts zero, and classes that are finer than needed are
// still right. Invariants:
//
//   - each term is in list once, in the order of Position, and in byLabel or other;
//   - read changes whenever keys, namespaceKeys, or whether there is a term changes.
type termIndex struct {
	byKey         map[string]*Term
	list          []*Term
	met           int               // the Position of the next term
	forgotten     uint64            // times that terms were forgotten
	byLabel       map[label][]*Term // by a label that the selector requires
	other         []*Term           // those that require none
	keys          []string          // sorted label keys that some term reads of pods
	namespaceKeys []string          // sorted label keys that some term reads of namespaces
	read          uint64            // times that something else was read of pods than before
}

func (x *termIndex) init() {
	x.byKey = map[string]*Term{}
	x.byLabel = map[label][]*Term{}
}

func (x *termIndex) podAdded(p *Pod) {
	for i := range p.Terms {
		if x.byKey[p.Terms[i].OwnerKey] == nil {
			x.add(&Term{p.Terms[i], x.met})
			x.met++
		}
	}
}

func (x *termIndex) add(t *Term) {
	x.byKey[t.OwnerKey] = t
	x.list = append(x.list, t)
	if l, ok := requiredLabel(t.Selector); ok {
		x.byLabel[l] = append(x.byLabel[l], t)
	} else {
		x.other = append(x.other, t)
	}
	if len(x.list) == 1 {
		x.read++ // from now on the namespace counts too
	}
	if t.NamespaceSelector != nil {
		x.readKeys(&x.namespaceKeys, t.NamespaceSelector)
	}
	x.readKeys(&x.keys, t.Selector)
}

// readKeys adds the label keys of a selector to a sorted list.
func (x *termIndex) readKeys(keys *[]string, selector labels.Selector) {
	reqs, _ := selector.Requirements()
	for _, r := range reqs {
		if at, found := slices.BinarySearch(*keys, r.Key()); !found {
			*keys = slices.Insert(*keys, at, r.Key())
			x.read++
		}
	}
}

// forget forgets the terms that no pod on a node or nominated to one has, in O(pods and
// terms).
func (x *termIndex) forget(s *State) {
	owned := map[string]bool{}
	note := func(p *Pod) {
		for i := range p.Terms {
			if key := p.Terms[i].OwnerKey; x.byKey[key] != nil { // those of orphans may not be there
				owned[key] = true
			}
		}
	}
	s.Pods(note)
	for _, n := range s.Nominations() {
		note(n.Pod)
	}
	if len(owned) == len(x.list) {
		return
	}
	old := *x
	*x = termIndex{met: old.met, forgotten: old.forgotten + 1, read: old.read + 1}
	x.init()
	for _, t := range old.list {
		if owned[t.OwnerKey] {
			x.add(t)
		}
	}
	if len(x.list) > 0 && slices.Equal(x.keys, old.keys) && slices.Equal(x.namespaceKeys, old.namespaceKeys) {
		x.read = old.read
	}
}

// LearnTerms records the terms of a pod that may be placed: from now on pods are
// signed by what these terms read of them.
func (s *State) LearnTerms(p *Pod) { s.terms.podAdded(p) }

// Terms returns the terms that pods on nodes own or have owned, in the order in which they
// were met.
func (s *State) Terms() []*Term { return s.terms.list }

// TermsMet returns how many terms have been met so far, those that were forgotten included,
// which is the Position of the next one.
func (s *State) TermsMet() int { return s.terms.met }

// TermsSince returns the terms from a Position on.
func (s *State) TermsSince(position int) []*Term {
	at, _ := slices.BinarySearchFunc(s.terms.list, position, func(t *Term, position int) int { return t.Position - position })
	return s.terms.list[at:]
}

// TermsForgotten changes when terms were forgotten: rules that were made before may count the
// owners of a term that nobody has owned since.
func (s *State) TermsForgotten() uint64 { return s.terms.forgotten }

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

// TermNamespaceKeys returns the label keys that those terms read of a pod's namespace, sorted.
func (s *State) TermNamespaceKeys() []string { return s.terms.namespaceKeys }

// TermsRead changes when TermLabelKeys, TermNamespaceKeys, or whether there are terms has
// changed; it never has a value again. Who signs values without their keys signs
// it, too: under other keys the same values may mean another pod.
func (s *State) TermsRead() uint64 { return s.terms.read }
