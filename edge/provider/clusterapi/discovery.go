package clusterapi

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
)

// discoverer is the name of this provider before the colon of --node-group-auto-discovery.
const discoverer = "clusterapi"

// Selection selects objects that may be node groups. What isn't set selects all. The zero value
// selects every object.
type Selection struct {
	Namespace   string
	ClusterName string // spec.clusterName of the object
	Labels      labels.Selector
}

// ParseAutoDiscovery reads a value of --node-group-auto-discovery, of the form
// clusterapi:namespace=NAME,clusterName=NAME,LABEL=VALUE. Each part may be left out, and an object
// has to match all parts. Of several values an object has to match one.
func ParseAutoDiscovery(value string) (Selection, error) {
	const form = "it must be clusterapi:namespace=NAME,clusterName=NAME,LABEL=VALUE, with any part optional"
	name, parts, found := strings.Cut(value, ":")
	if !found || name != discoverer {
		return Selection{}, fmt.Errorf("%q is not for the provider clusterapi; %s", value, form)
	}
	s := Selection{Labels: labels.Everything()}
	seen := map[string]bool{}
	for part := range strings.SplitSeq(parts, ",") {
		if part = strings.TrimSpace(part); part == "" {
			continue
		}
		key, val, found := strings.Cut(part, "=")
		switch {
		case !found || key == "" || strings.Contains(val, "="):
			return Selection{}, fmt.Errorf("%q has the part %q; %s", value, part, form)
		case seen[key]:
			return Selection{}, fmt.Errorf("%q has %s twice; give the flag once for each value", value, key)
		}
		seen[key] = true
		switch key {
		case "namespace":
			s.Namespace = val
		case "clusterName":
			s.ClusterName = val
		default:
			r, err := labels.NewRequirement(key, selection.Equals, []string{val})
			if err != nil {
				return Selection{}, fmt.Errorf("%q has the part %q, which is not a label: %w", value, part, err)
			}
			s.Labels = s.Labels.Add(*r)
		}
	}
	return s, nil
}

// selects reports whether an object may be a node group.
func (s *Selection) selects(o *scalable) bool {
	return (s.Namespace == "" || s.Namespace == o.Namespace) &&
		(s.ClusterName == "" || s.ClusterName == o.Spec.ClusterName) &&
		(s.Labels == nil || s.Labels.Matches(labels.Set(o.Labels)))
}

// selected reports whether any selection selects an object; without any all are.
func selected(selections []Selection, o *scalable) bool {
	for i := range selections {
		if selections[i].selects(o) {
			return true
		}
	}
	return len(selections) == 0
}

// namespaceOf returns the namespace that all selections name, "" for all namespaces. Rights in
// that one are enough then.
func namespaceOf(selections []Selection) string {
	if len(selections) == 0 {
		return ""
	}
	for _, s := range selections {
		if s.Namespace != selections[0].Namespace {
			return ""
		}
	}
	return selections[0].Namespace
}
