package testkit

import (
	"fmt"
	"math"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"
)

// This file draws namespaces, pod affinity terms and topology spread constraints.

// topologyKeys are those of random terms and constraints. No node has the label "rack".
var topologyKeys = []string{v1.LabelHostname, v1.LabelTopologyZone, v1.LabelTopologyZone, "disk", "rack"}

// maxSkews are those of random constraints; the largest that the API takes means "spread as you
// like, over nodes that have the label".
var maxSkews = []int32{1, 1, 2, 2, 3, 3, math.MaxInt32 - 1, math.MaxInt32}

// RandomNamespace draws a namespace object.
func RandomNamespace(t *rapid.T) *v1.Namespace {
	n := &v1.Namespace{}
	n.Name = pick(t, spaces, "namespace")
	n.Labels = map[string]string{"kubernetes.io/metadata.name": n.Name}
	if maybe(t, 60, "team") {
		n.Labels["team"] = pick(t, []string{"red", "blue"}, "of team")
	}
	return n
}

// randomSelector draws a label selector: mostly of one app, sometimes with each operator,
// of everything (empty) or of nothing (nil).
func randomSelector(t *rapid.T) *metav1.LabelSelector {
	expression := func(key string, op metav1.LabelSelectorOperator, values ...string) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: key, Operator: op, Values: values}}}
	}
	switch k := rapid.IntRange(0, 19).Draw(t, "selector"); {
	case k < 12:
		return &metav1.LabelSelector{MatchLabels: map[string]string{"app": pick(t, apps, "selects")}}
	case k < 14:
		return expression("app", metav1.LabelSelectorOpIn, pick(t, apps, "one"), pick(t, apps, "two"))
	case k == 14:
		return expression("app", metav1.LabelSelectorOpNotIn, pick(t, apps, "not"))
	case k == 15:
		return expression("app", metav1.LabelSelectorOpExists)
	case k == 16:
		return expression("index", metav1.LabelSelectorOpDoesNotExist)
	case k == 17:
		return &metav1.LabelSelector{}
	case k == 18:
		return nil
	}
	return &metav1.LabelSelector{MatchLabels: map[string]string{"index": fmt.Sprint(rapid.IntRange(0, 2).Draw(t, "of index"))}}
}

func randomNamespaceSelector(t *rapid.T) *metav1.LabelSelector {
	expression := func(op metav1.LabelSelectorOperator, values ...string) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "team", Operator: op, Values: values}}}
	}
	switch rapid.IntRange(0, 5).Draw(t, "namespaces") {
	case 0:
		return &metav1.LabelSelector{}
	case 1:
		return expression(metav1.LabelSelectorOpDoesNotExist)
	case 2:
		return expression(metav1.LabelSelectorOpNotIn, pick(t, []string{"red", "blue"}, "not of team"))
	}
	return &metav1.LabelSelector{MatchLabels: map[string]string{"team": pick(t, []string{"red", "blue"}, "team")}}
}

func randomTerm(t *rapid.T) v1.PodAffinityTerm {
	term := v1.PodAffinityTerm{TopologyKey: pick(t, topologyKeys, "key"), LabelSelector: randomSelector(t)}
	if maybe(t, 20, "listed") {
		term.Namespaces = []string{pick(t, spaces, "in")}
	}
	if maybe(t, 20, "by labels") {
		term.NamespaceSelector = randomNamespaceSelector(t)
	}
	return term
}

// AddTerms adds one or two pod affinity terms of any kind.
func AddTerms(t *rapid.T, p *v1.Pod) {
	b := &PodBuilder{Pod: *p}
	defer func() { *p = b.Pod }()
	for range rapid.IntRange(1, 2).Draw(t, "terms") {
		weight := int32(rapid.SampledFrom([]int{1, 5, 50, 100}).Draw(t, "weight"))
		weighted := func() v1.WeightedPodAffinityTerm {
			return v1.WeightedPodAffinityTerm{Weight: weight, PodAffinityTerm: randomTerm(t)}
		}
		switch rapid.IntRange(0, 3).Draw(t, "kind") {
		case 0:
			a := b.podAffinity()
			a.RequiredDuringSchedulingIgnoredDuringExecution = append(a.RequiredDuringSchedulingIgnoredDuringExecution, randomTerm(t))
		case 1:
			a := b.podAntiAffinity()
			a.RequiredDuringSchedulingIgnoredDuringExecution = append(a.RequiredDuringSchedulingIgnoredDuringExecution, randomTerm(t))
		case 2:
			a := b.podAffinity()
			a.PreferredDuringSchedulingIgnoredDuringExecution = append(a.PreferredDuringSchedulingIgnoredDuringExecution, weighted())
		case 3:
			a := b.podAntiAffinity()
			a.PreferredDuringSchedulingIgnoredDuringExecution = append(a.PreferredDuringSchedulingIgnoredDuringExecution, weighted())
		}
	}
}

// AddConstraints adds one or two topology spread constraints.
func AddConstraints(t *rapid.T, p *v1.Pod) {
	b := &PodBuilder{Pod: *p}
	defer func() { *p = b.Pod }()
	for range rapid.IntRange(1, 2).Draw(t, "constraints") {
		c := v1.TopologySpreadConstraint{
			MaxSkew: pick(t, maxSkews, "skew"), TopologyKey: pick(t, topologyKeys, "key"),
			WhenUnsatisfiable: pick(t, []v1.UnsatisfiableConstraintAction{v1.DoNotSchedule, v1.ScheduleAnyway}, "when"),
			LabelSelector:     randomSelector(t),
		}
		if c.WhenUnsatisfiable == v1.DoNotSchedule && maybe(t, 30, "minDomains") {
			c.MinDomains = new(int32(rapid.IntRange(1, 4).Draw(t, "domains")))
		}
		if maybe(t, 25, "affinity policy") {
			p := pick(t, []v1.NodeInclusionPolicy{v1.NodeInclusionPolicyHonor, v1.NodeInclusionPolicyIgnore}, "affinity")
			c.NodeAffinityPolicy = &p
		}
		if maybe(t, 25, "taints policy") {
			p := pick(t, []v1.NodeInclusionPolicy{v1.NodeInclusionPolicyHonor, v1.NodeInclusionPolicyIgnore}, "taints")
			c.NodeTaintsPolicy = &p
		}
		if c.LabelSelector != nil && maybe(t, 15, "matchLabelKeys") {
			c.MatchLabelKeys = []string{pick(t, []string{"index", "app", "absent"}, "match")}
		}
		b.Spec.TopologySpreadConstraints = append(b.Spec.TopologySpreadConstraints, c)
	}
}
