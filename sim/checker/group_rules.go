package checker

import (
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
)

// This file checks what concerns pods on several nodes: pod affinity, pod anti-affinity and
// topology spread. A selector that can't be parsed matches no pod, and is no violation.

// antiAffinity checks required pod anti-affinity, one term of one pod at a time.
func (c *check) antiAffinity() {
	for _, name := range slices.Sorted(maps.Keys(c.podsByNode)) {
		for _, pod := range c.podsByNode[name] {
			if pod.Spec.Affinity == nil || pod.Spec.Affinity.PodAntiAffinity == nil {
				continue
			}
			for i := range pod.Spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution {
				c.antiAffinityTerm(pod, &pod.Spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution[i])
			}
		}
	}
}

// antiAffinityTerm checks that no other pod which matches the term is in the pod's domain.
// With CheckPods, one of the two must be a placed one.
func (c *check) antiAffinityTerm(pod *v1.Pod, term *v1.PodAffinityTerm) {
	domain, ok := c.nodes[pod.Spec.NodeName].Labels[term.TopologyKey]
	if !ok {
		return
	}
	selector, err := metav1.LabelSelectorAsSelector(term.LabelSelector)
	if err != nil {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(c.podsByNode)) {
		if v, ok := c.nodes[name].Labels[term.TopologyKey]; !ok || v != domain {
			continue
		}
		for _, other := range c.podsByNode[name] {
			if !matches(pod, other, term, selector) {
				continue
			}
			if c.placed != nil && !c.placed(pod) && !c.placed(other) {
				continue
			}
			c.add(pod, "anti-affinity", "%s/%s matches its term in domain %s=%s", other.Namespace, other.Name, term.TopologyKey, domain)
		}
	}
}

// affinityTerm checks one required affinity term: another pod that matches it is in the
// pod's domain, or the pod matches its own term and no other pod does anywhere.
func (c *check) affinityTerm(pod *v1.Pod, term *v1.PodAffinityTerm) {
	selector, err := metav1.LabelSelectorAsSelector(term.LabelSelector)
	if err != nil {
		return
	}
	domain, ok := c.nodes[pod.Spec.NodeName].Labels[term.TopologyKey]
	elsewhere := ""
	for _, name := range slices.Sorted(maps.Keys(c.podsByNode)) {
		for _, other := range c.podsByNode[name] {
			if !matches(pod, other, term, selector) {
				continue
			}
			if v, has := c.nodes[name].Labels[term.TopologyKey]; ok && has && v == domain {
				return
			}
			elsewhere = other.Namespace + "/" + other.Name
		}
	}
	if elsewhere != "" || !selector.Matches(labels.Set(pod.Labels)) {
		c.add(pod, "pod affinity", "no pod that it has to be with is in domain %s=%s (%s is elsewhere)", term.TopologyKey, domain, elsewhere)
	}
}

// spread checks one hard constraint: the pod's domain has at most maxSkew pods more than
// the domain with the fewest, of those where the pod may be.
func (c *check) spread(pod *v1.Pod, constraint *v1.TopologySpreadConstraint) {
	selector, err := metav1.LabelSelectorAsSelector(constraint.LabelSelector)
	if err != nil {
		return
	}
	counts := map[string]int{}
	for name, node := range c.nodes {
		domain, ok := node.Labels[constraint.TopologyKey]
		if !ok {
			continue
		}
		if fits, err := nodeaffinity.GetRequiredNodeAffinity(pod).Match(node); err != nil || !fits {
			continue
		}
		counts[domain] += 0 // a domain without pods counts, too
		for _, other := range c.podsByNode[name] {
			if other.Namespace == pod.Namespace && other.DeletionTimestamp == nil && selector.Matches(labels.Set(other.Labels)) {
				counts[domain]++
			}
		}
	}
	domain := c.nodes[pod.Spec.NodeName].Labels[constraint.TopologyKey]
	fewest := counts[domain]
	for _, n := range counts {
		fewest = min(fewest, n)
	}
	if constraint.MinDomains != nil && len(counts) < int(*constraint.MinDomains) {
		fewest = 0
	}
	if skew := counts[domain] - fewest; skew > int(constraint.MaxSkew) {
		c.add(pod, "spread", "domain %s=%s has %d pods, another has %d", constraint.TopologyKey, domain, counts[domain], fewest)
	}
}

// matches reports whether another pod matches a term of the pod.
func matches(pod, other *v1.Pod, term *v1.PodAffinityTerm, selector labels.Selector) bool {
	return other.UID != pod.UID && selector.Matches(labels.Set(other.Labels)) && inNamespaces(pod, other, term)
}

// inNamespaces reports whether another pod is in a namespace of the pod's term. Without
// Namespace objects, a namespaceSelector with requirements matches none.
func inNamespaces(pod, other *v1.Pod, term *v1.PodAffinityTerm) bool {
	if s := term.NamespaceSelector; s != nil && len(s.MatchLabels)+len(s.MatchExpressions) == 0 {
		return true
	}
	if len(term.Namespaces) > 0 {
		return slices.Contains(term.Namespaces, other.Namespace)
	}
	return term.NamespaceSelector == nil && pod.Namespace == other.Namespace
}
