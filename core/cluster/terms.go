package cluster

import (
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// AffinityTerm is a pod affinity or anti-affinity term of a pod.
type AffinityTerm struct {
	Key         string // canonical text: equal keys mean equal terms
	TopologyKey string
	Namespaces  []string // sorted: those named, or the pod's own when there is neither list nor selector
	// NamespaceSelector selects namespaces by their labels besides; nil when the
	// term has none.
	NamespaceSelector labels.Selector
	Selector          labels.Selector
}

// TermKind tells the four lists apart in which a pod has terms.
type TermKind byte

// The lists of a pod's terms.
const (
	RequiredAffinity TermKind = 'a' + iota
	RequiredAntiAffinity
	PreferredAffinity
	PreferredAntiAffinity
)

// OwnedTerm is a term as a pod has it.
type OwnedTerm struct {
	*AffinityTerm
	Kind     TermKind
	Weight   int32  // of preferred terms
	OwnerKey string // of the kind and the term; the same for every weight
}

// amount is what an owner of the term counts for.
func (t *OwnedTerm) amount() int32 {
	if t.Kind == PreferredAffinity || t.Kind == PreferredAntiAffinity {
		return t.Weight
	}
	return 1
}

// Selects tells whether the term selects a pod in a namespace with these
// labels (nil when the namespace isn't known).
func (t *AffinityTerm) Selects(p *Pod, namespace labels.Set) bool {
	if !slices.Contains(t.Namespaces, p.Object.Namespace) &&
		(t.NamespaceSelector == nil || !t.NamespaceSelector.Matches(namespace)) {
		return false
	}
	return t.Selector.Matches(labels.Set(p.Object.Labels))
}

// In returns the demand that the term makes of other pods, its namespaces
// found among those of the state. As in kube-scheduler 1.36, where a selected
// namespace is added by name and the selector then asked again without labels,
// a selector that an empty set of labels satisfies selects every namespace.
func (t *AffinityTerm) In(s *State) PodMatch {
	m := PodMatch{Namespaces: t.Namespaces, Selector: t.Selector}
	if t.NamespaceSelector == nil {
		return m
	}
	if t.NamespaceSelector.Matches(labels.Set(nil)) {
		m.Namespaces = nil
		return m
	}
	m.Namespaces = slices.Clone(t.Namespaces)
	for _, n := range s.Namespaces() {
		if t.NamespaceSelector.Matches(labels.Set(n.Labels)) {
			m.Namespaces = append(m.Namespaces, n.Name)
		}
	}
	slices.Sort(m.Namespaces)
	if m.Namespaces = slices.Compact(m.Namespaces); m.Namespaces == nil {
		m.Namespaces = []string{}
	}
	return m
}

// affinityTerms reads the terms of a pod. The error is for people, as
// kube-scheduler words it.
func affinityTerms(p *v1.Pod) (out []OwnedTerm, err error) {
	a := p.Spec.Affinity
	if a == nil {
		return nil, nil
	}
	add := func(kind TermKind, weight int32, term *v1.PodAffinityTerm) {
		t, wrong := parseTerm(p, term)
		if wrong != nil && err == nil {
			err = fmt.Errorf("%s: %w", kind.list(), wrong)
		}
		out = append(out, OwnedTerm{t, kind, weight, string(rune(kind)) + t.Key})
	}
	if x := a.PodAffinity; x != nil {
		for i := range x.RequiredDuringSchedulingIgnoredDuringExecution {
			add(RequiredAffinity, 0, &x.RequiredDuringSchedulingIgnoredDuringExecution[i])
		}
		for i := range x.PreferredDuringSchedulingIgnoredDuringExecution {
			w := &x.PreferredDuringSchedulingIgnoredDuringExecution[i]
			add(PreferredAffinity, w.Weight, &w.PodAffinityTerm)
		}
	}
	if x := a.PodAntiAffinity; x != nil {
		for i := range x.RequiredDuringSchedulingIgnoredDuringExecution {
			add(RequiredAntiAffinity, 0, &x.RequiredDuringSchedulingIgnoredDuringExecution[i])
		}
		for i := range x.PreferredDuringSchedulingIgnoredDuringExecution {
			w := &x.PreferredDuringSchedulingIgnoredDuringExecution[i]
			add(PreferredAntiAffinity, w.Weight, &w.PodAffinityTerm)
		}
	}
	return out, err
}

// list is what kube-scheduler calls the list of terms.
func (k TermKind) list() string {
	switch k {
	case RequiredAffinity:
		return "requiredAffinityTerms"
	case RequiredAntiAffinity:
		return "requiredAntiAffinityTerms"
	case PreferredAffinity:
		return "preferredAffinityTerms"
	}
	return "preferredAntiAffinityTerms"
}

// parseTerm reads a term as the API documents it. A selector that doesn't
// parse selects nothing; the API server doesn't let one in, and a pod with one
// isn't placed.
func parseTerm(p *v1.Pod, term *v1.PodAffinityTerm) (*AffinityTerm, error) {
	t := &AffinityTerm{TopologyKey: term.TopologyKey, Selector: selectorOf(term.LabelSelector), Namespaces: []string{}}
	_, wrong := metav1.LabelSelectorAsSelector(term.LabelSelector)
	if _, err := metav1.LabelSelectorAsSelector(term.NamespaceSelector); wrong == nil {
		wrong = err
	}
	switch {
	case len(term.Namespaces) == 0 && term.NamespaceSelector == nil:
		t.Namespaces = []string{p.Namespace}
	default:
		t.Namespaces = slices.Compact(slices.Sorted(slices.Values(term.Namespaces)))
	}
	byLabels := ""
	if term.NamespaceSelector != nil {
		t.NamespaceSelector = selectorOf(term.NamespaceSelector)
		byLabels = SelectorText(t.NamespaceSelector)
	}
	t.Key = strings.Join([]string{t.TopologyKey, strings.Join(t.Namespaces, ","), byLabels, SelectorText(t.Selector)}, "|")
	return t, wrong
}

func selectorOf(s *metav1.LabelSelector) labels.Selector {
	out, err := metav1.LabelSelectorAsSelector(s)
	if err != nil {
		return labels.Nothing()
	}
	return out
}

// SelectorText tells selectors apart; String alone doesn't tell nothing from
// everything.
func SelectorText(s labels.Selector) string {
	if _, selectable := s.Requirements(); !selectable {
		return "<nothing>"
	}
	if s.Empty() {
		return "<everything>"
	}
	return s.String()
}

// Term is a term that pods on nodes own or have owned.
type Term struct {
	OwnedTerm     // of one of the owners; the weights of others may differ
	Position  int // in the order in which terms were first seen
}

// termBook remembers the terms that pods on nodes have had, and which label
// keys they read. Both only grow: a term that nobody owns counts zero, and
// classes that are finer than needed are still right.
type termBook struct {
	byKey    map[string]bool
	list     []*Term
	byLabel  map[labelPair][]*Term // by a pair that the selector demands
	other    []*Term
	keys     []string // sorted label keys that some term reads
	byLabels bool     // some term selects namespaces by their labels
	grown    uint64
}

func (b *termBook) init() {
	b.byKey = map[string]bool{}
	b.byLabel = map[labelPair][]*Term{}
}

func (b *termBook) podCame(p *Pod) {
	for i := range p.Terms {
		if !b.byKey[p.Terms[i].OwnerKey] {
			b.add(&Term{p.Terms[i], len(b.list)})
		}
	}
}

func (b *termBook) add(t *Term) {
	b.byKey[t.OwnerKey] = true
	b.list = append(b.list, t)
	if at, ok := pin(t.Selector); ok {
		b.byLabel[at] = append(b.byLabel[at], t)
	} else {
		b.other = append(b.other, t)
	}
	if len(b.list) == 1 {
		b.grown++ // from now on the namespace counts too
	}
	if t.NamespaceSelector != nil && !b.byLabels {
		b.byLabels = true
		b.grown++ // and now its labels
	}
	reqs, _ := t.Selector.Requirements()
	for _, r := range reqs {
		if at, found := slices.BinarySearch(b.keys, r.Key()); !found {
			b.keys = slices.Insert(b.keys, at, r.Key())
			b.grown++
		}
	}
}

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
		take(s.terms.byLabel[labelPair{k, v}])
	}
	take(s.terms.other)
	slices.SortFunc(out, func(a, b *Term) int { return a.Position - b.Position })
	return out
}

// InterestKeys returns the label keys that those terms read of a pod, sorted.
func (s *State) InterestKeys() []string { return s.terms.keys }

// NamespacesByLabels tells whether some of those terms select namespaces by
// their labels.
func (s *State) NamespacesByLabels() bool { return s.terms.byLabels }

// InterestVersion changes when pods have to be signed again because a rule now
// reads more of them, or because what they read of the cluster has changed.
func (s *State) InterestVersion() uint64 { return s.terms.grown + s.objects.namespaceChanges }
