package cluster

import (
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// namespaceKind: terms of pod affinity select namespaces by their labels. When
// these change, the pods are signed again that the change concerns
// (framework.Reclassifier); no local rule reads them.
var namespaceKind = kindOf[*v1.Namespace]{
	new: func() *v1.Namespace { return &v1.Namespace{} },
	reads: func(o *v1.Namespace) *v1.Namespace {
		return &v1.Namespace{ObjectMeta: labelled(&o.ObjectMeta)}
	},
}

// NamespaceLabels returns the labels of a namespace, nil when it isn't known.
func (s *State) NamespaceLabels(name string) labels.Set {
	if n := find[*v1.Namespace](s, NamespaceKind, "", name); n != nil {
		return n.Labels
	}
	return nil
}

// Namespaces returns the known namespaces, by name, in O(objects).
func (s *State) Namespaces() []*v1.Namespace {
	var out []*v1.Namespace
	for _, o := range s.objects.byKey { // sorted below
		if n, ok := o.(*v1.Namespace); ok {
			out = append(out, n)
		}
	}
	slices.SortFunc(out, func(a, b *v1.Namespace) int { return strings.Compare(a.Name, b.Name) })
	return out
}
