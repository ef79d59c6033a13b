package cluster

import (
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// Terms of pod affinity and anti-affinity, as pods have them. A term is known by
// its key: terms with equal keys select the same pods by the same topology, in
// whatever pods they stand.

// AffinityTerm is a pod affinity or anti-affinity term of a pod.
type AffinityTerm struct {
	Key         string // canonical text: equal keys mean equal terms
	TopologyKey string
	Namespaces  []string // sorted: those named, or the pod's own when there is neither list nor selector
	// NamespaceSelector selects namespaces by their labels besides; nil when the
	// term has none.
	NamespaceSelector labels.Selector
	// AllNamespaces says that NamespaceSelector selects every namespace where the term is of the
	// pod to place.
	AllNamespaces bool
	Selector      labels.Selector
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

// Preferred reports whether the term only scores nodes.
func (t *OwnedTerm) Preferred() bool {
	return t.Kind == PreferredAffinity || t.Kind == PreferredAntiAffinity
}

// amount is what an owner of the term counts for in a fact: the weight of a
// preferred term, 1 for a required one.
func (t *OwnedTerm) amount() int32 {
	if t.Preferred() {
		return t.Weight
	}
	return 1
}

// Selects reports whether the term selects a pod in a namespace with these
// labels (nil when the namespace isn't known).
func (t *AffinityTerm) Selects(p *Pod, namespace labels.Set) bool {
	if !slices.Contains(t.Namespaces, p.Object.Namespace) &&
		(t.NamespaceSelector == nil || !t.NamespaceSelector.Matches(namespace)) {
		return false
	}
	return t.Selector.Matches(labels.Set(p.Object.Labels))
}

// In returns the demand that the term makes of other pods, its namespaces
// found among those of the state.
func (t *AffinityTerm) In(s *State) PodMatch {
	m := PodMatch{Namespaces: t.Namespaces, Selector: t.Selector}
	if t.NamespaceSelector == nil {
		return m
	}
	if t.AllNamespaces {
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
func (s *Schema) affinityTerms(p *v1.Pod) (out []OwnedTerm, err error) {
	a := p.Spec.Affinity
	if a == nil {
		return nil, nil
	}
	add := func(kind TermKind, weight int32, term *v1.PodAffinityTerm) {
		t, wrong := s.parseTerm(p, term)
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
func (s *Schema) parseTerm(p *v1.Pod, term *v1.PodAffinityTerm) (*AffinityTerm, error) {
	selector, wrong := parseSelector(term.LabelSelector)
	t := &AffinityTerm{TopologyKey: term.TopologyKey, Selector: selector, Namespaces: []string{}}
	switch {
	case len(term.Namespaces) == 0 && term.NamespaceSelector == nil:
		t.Namespaces = []string{p.Namespace}
	default:
		t.Namespaces = slices.Compact(slices.Sorted(slices.Values(term.Namespaces)))
	}
	byLabels := ""
	if term.NamespaceSelector != nil {
		var err error
		if t.NamespaceSelector, err = parseSelector(term.NamespaceSelector); wrong == nil {
			wrong = err
		}
		t.AllNamespaces = s.selectsAll(t.NamespaceSelector)
		byLabels = SelectorText(t.NamespaceSelector)
	}
	t.Key = strings.Join([]string{t.TopologyKey, strings.Join(t.Namespaces, ","), byLabels, SelectorText(t.Selector)}, "|")
	return t, wrong
}

// matchesNoLabels reports whether a selector matches an empty set of labels, as DoesNotExist and
// NotIn do. kube-scheduler 1.36 adds the namespaces that a namespaceSelector selects by name, and
// then asks the selector again without labels: one that matches these selects every namespace.
func matchesNoLabels(s labels.Selector) bool { return s.Matches(labels.Set(nil)) }

// parseSelector reads a selector. With an error it returns one that selects nothing.
func parseSelector(s *metav1.LabelSelector) (labels.Selector, error) {
	out, err := metav1.LabelSelectorAsSelector(s)
	if err != nil {
		return labels.Nothing(), err
	}
	return out, nil
}

// selectorOf is parseSelector where nobody can be told of an error.
func selectorOf(s *metav1.LabelSelector) labels.Selector {
	out, _ := parseSelector(s)
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
