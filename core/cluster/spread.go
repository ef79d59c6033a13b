package cluster

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// SpreadSelector is what one of a pod's topology spread constraints selects, parsed once: a
// pod is asked for it each time that it is signed.
type SpreadSelector struct {
	// Selector is the constraint's labelSelector, and with it the pod's values of the keys
	// in matchLabelKeys (KEP-3243). Keys that the pod doesn't have are left out. Without a
	// labelSelector it selects nothing, whatever the keys.
	Selector labels.Selector
	Text     string // SelectorText(Selector)
	// Problem is why the labelSelector can't be read, "" if it can: then it selects nothing.
	// The API server lets no such pod in.
	Problem string
}

// spreadSelectors returns the selectors of a pod's own constraints, in their order.
func spreadSelectors(p *v1.Pod) []SpreadSelector {
	var out []SpreadSelector
	for i := range p.Spec.TopologySpreadConstraints {
		c := &p.Spec.TopologySpreadConstraints[i]
		s := SpreadSelector{}
		selector, err := metav1.LabelSelectorAsSelector(c.LabelSelector)
		if err != nil {
			s.Problem = fmt.Sprintf("topologySpreadConstraints[%d].labelSelector: %v", i, err)
			selector = labels.Nothing()
		}
		s.Selector = withLabelKeys(selector, c.MatchLabelKeys, p.Labels)
		s.Text = SelectorText(s.Selector)
		out = append(out, s)
	}
	return out
}

// withLabelKeys adds to a selector that the keys have the values that they have among own.
func withLabelKeys(s labels.Selector, keys []string, own labels.Set) labels.Selector {
	if _, selectable := s.Requirements(); !selectable {
		return s
	}
	for _, key := range keys {
		if value, ok := own[key]; ok {
			if r, err := labels.NewRequirement(key, "in", []string{value}); err == nil {
				s = s.Add(*r)
			}
		}
	}
	return s
}
