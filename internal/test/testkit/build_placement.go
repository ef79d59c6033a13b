package testkit

import (
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// This file builds what says where a pod may run: tolerations, node affinity, pod affinity,
// topology spread. The methods with few arguments are for the common terms, those that take
// a term or a constraint for all others.

// Tolerate adds a toleration of all taints with a key.
func (b *PodBuilder) Tolerate(key string) *PodBuilder {
	return b.Toleration(v1.Toleration{Key: key, Operator: v1.TolerationOpExists})
}

// Toleration adds a toleration.
func (b *PodBuilder) Toleration(t v1.Toleration) *PodBuilder {
	b.Spec.Tolerations = append(b.Spec.Tolerations, t)
	return b
}

// Select adds a nodeSelector entry.
func (b *PodBuilder) Select(k, v string) *PodBuilder {
	if b.Spec.NodeSelector == nil {
		b.Spec.NodeSelector = map[string]string{}
	}
	b.Spec.NodeSelector[k] = v
	return b
}

// RequireIn requires a node label to have one of the values. Called again, it adds an
// alternative.
func (b *PodBuilder) RequireIn(key string, values ...string) *PodBuilder {
	return b.Require(labelIn(key, values))
}

// Require adds a term to the required node affinity. Terms are alternatives.
func (b *PodBuilder) Require(term v1.NodeSelectorTerm) *PodBuilder {
	a := b.nodeAffinity()
	if a.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		a.RequiredDuringSchedulingIgnoredDuringExecution = &v1.NodeSelector{}
	}
	s := a.RequiredDuringSchedulingIgnoredDuringExecution
	s.NodeSelectorTerms = append(s.NodeSelectorTerms, term)
	return b
}

// OnlyOn requires one of the nodes by name, each with a term of its own.
func (b *PodBuilder) OnlyOn(nodes ...string) *PodBuilder {
	for _, name := range nodes {
		b.Require(v1.NodeSelectorTerm{MatchFields: []v1.NodeSelectorRequirement{
			{Key: metav1.ObjectNameField, Operator: v1.NodeSelectorOpIn, Values: []string{name}}}})
	}
	return b
}

// PreferIn prefers nodes whose label has one of the values.
func (b *PodBuilder) PreferIn(weight int32, key string, values ...string) *PodBuilder {
	return b.Prefer(weight, labelIn(key, values))
}

// Prefer adds a term to the preferred node affinity.
func (b *PodBuilder) Prefer(weight int32, term v1.NodeSelectorTerm) *PodBuilder {
	a := b.nodeAffinity()
	a.PreferredDuringSchedulingIgnoredDuringExecution = append(a.PreferredDuringSchedulingIgnoredDuringExecution,
		v1.PreferredSchedulingTerm{Weight: weight, Preference: term})
	return b
}

// labelIn returns a term that nodes meet whose label has one of the values.
func labelIn(key string, values []string) v1.NodeSelectorTerm {
	return v1.NodeSelectorTerm{MatchExpressions: []v1.NodeSelectorRequirement{{Key: key, Operator: v1.NodeSelectorOpIn, Values: values}}}
}

// Together requires pods with a label to be in the same domain of a topology key.
func (b *PodBuilder) Together(topologyKey, k, v string) *PodBuilder {
	return b.AffinityTerm(podsWith(topologyKey, k, v))
}

// AffinityTerm adds a required pod affinity term.
func (b *PodBuilder) AffinityTerm(t v1.PodAffinityTerm) *PodBuilder {
	a := b.podAffinity()
	a.RequiredDuringSchedulingIgnoredDuringExecution = append(a.RequiredDuringSchedulingIgnoredDuringExecution, t)
	return b
}

// Apart requires pods with a label to be in other domains of a topology key.
func (b *PodBuilder) Apart(topologyKey, k, v string) *PodBuilder {
	return b.AntiAffinityTerm(podsWith(topologyKey, k, v))
}

// AntiAffinityTerm adds a required pod anti-affinity term.
func (b *PodBuilder) AntiAffinityTerm(t v1.PodAffinityTerm) *PodBuilder {
	a := b.podAntiAffinity()
	a.RequiredDuringSchedulingIgnoredDuringExecution = append(a.RequiredDuringSchedulingIgnoredDuringExecution, t)
	return b
}

// PreferTogether prefers domains that have pods with a label.
func (b *PodBuilder) PreferTogether(weight int32, topologyKey, k, v string) *PodBuilder {
	return b.PreferredAffinityTerm(weight, podsWith(topologyKey, k, v))
}

// PreferredAffinityTerm adds a preferred pod affinity term.
func (b *PodBuilder) PreferredAffinityTerm(weight int32, t v1.PodAffinityTerm) *PodBuilder {
	a := b.podAffinity()
	a.PreferredDuringSchedulingIgnoredDuringExecution = append(a.PreferredDuringSchedulingIgnoredDuringExecution,
		v1.WeightedPodAffinityTerm{Weight: weight, PodAffinityTerm: t})
	return b
}

// PreferApart prefers domains without pods with a label.
func (b *PodBuilder) PreferApart(weight int32, topologyKey, k, v string) *PodBuilder {
	return b.PreferredAntiAffinityTerm(weight, podsWith(topologyKey, k, v))
}

// PreferredAntiAffinityTerm adds a preferred pod anti-affinity term.
func (b *PodBuilder) PreferredAntiAffinityTerm(weight int32, t v1.PodAffinityTerm) *PodBuilder {
	a := b.podAntiAffinity()
	a.PreferredDuringSchedulingIgnoredDuringExecution = append(a.PreferredDuringSchedulingIgnoredDuringExecution,
		v1.WeightedPodAffinityTerm{Weight: weight, PodAffinityTerm: t})
	return b
}

// podsWith returns a term about pods with a label, in the domains of a topology key.
func podsWith(topologyKey, k, v string) v1.PodAffinityTerm {
	return v1.PodAffinityTerm{TopologyKey: topologyKey, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{k: v}}}
}

// SpreadSoft adds a ScheduleAnyway constraint over pods with a label.
func (b *PodBuilder) SpreadSoft(topologyKey string, maxSkew int32, k, v string) *PodBuilder {
	return b.Spread(spreadOver(topologyKey, maxSkew, v1.ScheduleAnyway, k, v))
}

// SpreadHard adds a DoNotSchedule constraint over pods with a label.
func (b *PodBuilder) SpreadHard(topologyKey string, maxSkew int32, k, v string) *PodBuilder {
	return b.Spread(spreadOver(topologyKey, maxSkew, v1.DoNotSchedule, k, v))
}

// Spread adds a topology spread constraint.
func (b *PodBuilder) Spread(c v1.TopologySpreadConstraint) *PodBuilder {
	b.Spec.TopologySpreadConstraints = append(b.Spec.TopologySpreadConstraints, c)
	return b
}

// spreadOver returns a constraint over pods with a label; otherwise is what to do when it can't be met.
func spreadOver(topologyKey string, maxSkew int32, otherwise v1.UnsatisfiableConstraintAction, k, v string) v1.TopologySpreadConstraint {
	return v1.TopologySpreadConstraint{MaxSkew: maxSkew, TopologyKey: topologyKey, WhenUnsatisfiable: otherwise,
		LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{k: v}}}
}

func (b *PodBuilder) affinity() *v1.Affinity {
	if b.Spec.Affinity == nil {
		b.Spec.Affinity = &v1.Affinity{}
	}
	return b.Spec.Affinity
}

func (b *PodBuilder) nodeAffinity() *v1.NodeAffinity {
	a := b.affinity()
	if a.NodeAffinity == nil {
		a.NodeAffinity = &v1.NodeAffinity{}
	}
	return a.NodeAffinity
}

func (b *PodBuilder) podAffinity() *v1.PodAffinity {
	a := b.affinity()
	if a.PodAffinity == nil {
		a.PodAffinity = &v1.PodAffinity{}
	}
	return a.PodAffinity
}

func (b *PodBuilder) podAntiAffinity() *v1.PodAntiAffinity {
	a := b.affinity()
	if a.PodAntiAffinity == nil {
		a.PodAntiAffinity = &v1.PodAntiAffinity{}
	}
	return a.PodAntiAffinity
}
