package testkit

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"
)

// This file changes pods the way in which rules may notice it: the property that equal
// signatures mean equal answers is only as good as these changes. Whoever adds a rule adds
// a change of each field that the rule reads.

// Perturb changes one part of a pod: mostly one that some rule may read, sometimes any
// (Mutate).
// Two pods that differ by it must differ in signature or fare alike: that is what the
// property checks.
func Perturb(t *rapid.T, p *v1.Pod) {
	b := &PodBuilder{Pod: *p}
	defer func() { *p = b.Pod }()
	if len(b.Spec.Containers) == 0 { // Mutate may have dropped it
		b.Spec.Containers = []v1.Container{{Name: "c"}}
	}
	if b.Spec.Containers[0].Resources.Requests == nil {
		b.Spec.Containers[0].Resources.Requests = v1.ResourceList{}
	}
	pick(t, perturbations, "part")(t, b)
}

// perturbations are drawn with equal odds: one that is listed twice is drawn twice as often.
var perturbations = []func(*rapid.T, *PodBuilder){
	// Metadata that selectors and default spreading read.
	perturbNamespace, perturbApp, dropApp, perturbIndex, perturbOwner,
	// By these and by an annotation, headrooms admit pods.
	perturbAnnotation,
	// NodeResourcesFit, NodeResourcesBalancedAllocation.
	perturbRequest, perturbNothingRequested, perturbNothingRequested, perturbOddResources,
	// TaintToleration, NodeUnschedulable.
	addToleration, perturbToleration,
	// NodeAffinity.
	perturbNodeSelector, requireZone, perturbRequiredZone, preferNodes, nameNodes, dropNodeAffinity,
	// InterPodAffinity.
	perturbAntiAffinity, perturbPreferredAffinity, addTerms,
	// PodTopologySpread.
	perturbSoftSpread, redrawConstraints, perturbConstraint,
	// NodePorts, ImageLocality, NodeDeclaredFeatures, DefaultPreemption.
	perturbHostPort, perturbImages, perturbFeature, perturbPriority, perturbPreemptionPolicy,
	// The rules of storage.
	perturbVolumes, perturbVolumes,
	// Fields that nobody has thought of.
	mutateAnything, mutateAnything,
}

// dropNodeAffinity takes node affinity away: a rule must tell none from one that is
// satisfied everywhere.
func dropNodeAffinity(_ *rapid.T, b *PodBuilder) {
	if b.Spec.Affinity != nil {
		b.Spec.Affinity.NodeAffinity = nil
	}
}

// perturbNamespace changes the namespace, in which terms and default spreading look for
// other pods.
func perturbNamespace(t *rapid.T, b *PodBuilder) { b.Pod.Namespace = pick(t, spaces, "ns") }

// perturbApp sets the label that most selectors of random objects read.
func perturbApp(t *rapid.T, b *PodBuilder) { b.Label("app", pick(t, apps, "app")) }

// dropApp removes that label: a selector that doesn't match it any more is as much of a
// change.
func dropApp(_ *rapid.T, b *PodBuilder) { delete(b.Labels, "app") }

// perturbIndex sets a label that tells pods of one Job apart, and sometimes adds a constraint
// that reads it.
func perturbIndex(t *rapid.T, b *PodBuilder) {
	b.Label("index", fmt.Sprint(rapid.IntRange(0, 2).Draw(t, "index")))
	if maybe(t, 20, "selects index") {
		b.Spread(v1.TopologySpreadConstraint{
			MaxSkew: 1, TopologyKey: v1.LabelTopologyZone, WhenUnsatisfiable: v1.ScheduleAnyway,
			LabelSelector: &metav1.LabelSelector{}, MatchLabelKeys: []string{"index"},
		})
	}
}

// perturbOwner sets a controller; with some kinds pods spread by default.
func perturbOwner(t *rapid.T, b *PodBuilder) {
	b.Owner("apps/v1", pick(t, []string{"ReplicaSet", "StatefulSet"}, "kind"), pick(t, apps, "owner"))
}

// perturbAnnotation sets an annotation by which a headroom admits pods, or another value of
// it.
func perturbAnnotation(t *rapid.T, b *PodBuilder) {
	b.Annotate(headroomAnnotation.Key, pick(t, []string{headroomAnnotation.Value, "other"}, "of"))
}

// perturbRequest changes how much of a resource the first container requests, down to
// nothing.
func perturbRequest(t *rapid.T, b *PodBuilder) {
	name := pick(t, []v1.ResourceName{v1.ResourceCPU, v1.ResourceMemory, "example.com/gpu"}, "resource")
	requests := b.Spec.Containers[0].Resources.Requests
	if maybe(t, 25, "absent") {
		delete(requests, name)
	} else {
		requests[name] = resource.MustParse(pick(t, []string{"0", "100m", "1", "2", "1Gi"}, "quantity"))
	}
}

// perturbNothingRequested makes a pod request zero, or nothing, which are scored differently.
func perturbNothingRequested(t *rapid.T, b *PodBuilder) {
	requests := b.Spec.Containers[0].Resources.Requests
	for _, name := range []v1.ResourceName{v1.ResourceCPU, v1.ResourceMemory} {
		delete(requests, name)
		if maybe(t, 50, "zero") {
			requests[name] = resource.MustParse("0")
		}
	}
}

// perturbOddResources adds requests where a pod rarely has them.
func perturbOddResources(t *rapid.T, b *PodBuilder) { oddResources(t, &b.Pod) }

// addToleration tolerates a taint by key, or all taints.
func addToleration(t *rapid.T, b *PodBuilder) { b.Tolerate(pick(t, append(taints, ""), "taint")) }

// perturbToleration redraws each part of a toleration that is there.
func perturbToleration(t *rapid.T, b *PodBuilder) {
	n := len(b.Spec.Tolerations)
	if n == 0 {
		return
	}
	x := &b.Spec.Tolerations[rapid.IntRange(0, n-1).Draw(t, "which")]
	x.Key = pick(t, taints, "key")
	x.Operator = pick(t, []v1.TolerationOperator{v1.TolerationOpExists, v1.TolerationOpEqual, ""}, "op")
	x.Value = pick(t, []string{"", "v"}, "value")
	x.Effect = pick(t, []v1.TaintEffect{"", v1.TaintEffectNoSchedule, v1.TaintEffectPreferNoSchedule, v1.TaintEffectNoExecute}, "effect")
}

// perturbNodeSelector selects a label that some nodes have, or one that none has.
func perturbNodeSelector(t *rapid.T, b *PodBuilder) {
	b.Select("disk", pick(t, []string{"ssd", "hdd"}, "disk"))
}

// requireZone adds a required term of node affinity.
func requireZone(t *rapid.T, b *PodBuilder) {
	b.RequireIn(v1.LabelTopologyZone, pick(t, zones, "zone"))
}

// perturbRequiredZone replaces all terms of required node affinity, if the pod has any.
func perturbRequiredZone(t *rapid.T, b *PodBuilder) {
	a := b.Spec.Affinity
	if a == nil || a.NodeAffinity == nil || a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return
	}
	a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms = []v1.NodeSelectorTerm{{
		MatchExpressions: []v1.NodeSelectorRequirement{{
			Key:      v1.LabelTopologyZone,
			Operator: pick(t, []v1.NodeSelectorOperator{v1.NodeSelectorOpIn, v1.NodeSelectorOpNotIn}, "op"),
			Values:   []string{pick(t, zones, "zone")},
		}},
	}}
}

// preferNodes adds a preferred term, which only scores.
func preferNodes(t *rapid.T, b *PodBuilder) {
	b.PreferIn(int32(rapid.IntRange(1, 50).Draw(t, "weight")), pick(t, []string{"disk", v1.LabelTopologyZone}, "key"), pick(t, []string{"ssd", "a", "b"}, "value"))
}

// perturbAntiAffinity changes whom the pod keeps away from, or adds a term.
func perturbAntiAffinity(t *rapid.T, b *PodBuilder) {
	if a := b.Spec.Affinity; a != nil && a.PodAntiAffinity != nil && len(a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution) > 0 && maybe(t, 60, "alter") {
		a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution[0].LabelSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": pick(t, apps, "from")}}
		return
	}
	term := podsWith(pick(t, []string{v1.LabelHostname, v1.LabelTopologyZone}, "key"), "app", pick(t, apps, "from"))
	if maybe(t, 40, "everywhere") {
		term.Namespaces = []string{"other"}
	}
	b.AntiAffinityTerm(term)
}

// perturbPreferredAffinity changes a weight, or adds terms that only score.
func perturbPreferredAffinity(t *rapid.T, b *PodBuilder) {
	weight := int32(pick(t, []int{1, 40, 90}, "weight"))
	if a := b.Spec.Affinity; a != nil && a.PodAffinity != nil && len(a.PodAffinity.PreferredDuringSchedulingIgnoredDuringExecution) > 0 {
		a.PodAffinity.PreferredDuringSchedulingIgnoredDuringExecution[0].Weight = weight
		return
	}
	b.PreferTogether(weight, v1.LabelTopologyZone, "app", pick(t, apps, "app"))
	b.PreferApart(50, v1.LabelHostname, "app", pick(t, apps, "app"))
}

// addTerms adds affinity terms of any kind.
func addTerms(t *rapid.T, b *PodBuilder) { AddTerms(t, &b.Pod) }

// perturbSoftSpread changes what a constraint counts, or adds one with policies that are
// rarely set.
func perturbSoftSpread(t *rapid.T, b *PodBuilder) {
	if cs := b.Spec.TopologySpreadConstraints; len(cs) > 0 && maybe(t, 60, "alter") {
		cs[0].LabelSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": pick(t, apps, "over")}}
		return
	}
	c := spreadOver(pick(t, []string{v1.LabelHostname, v1.LabelTopologyZone}, "key"), int32(rapid.IntRange(1, 4).Draw(t, "skew")), v1.ScheduleAnyway, "app", pick(t, apps, "over"))
	if maybe(t, 30, "taints") {
		c.NodeTaintsPolicy = new(v1.NodeInclusionPolicyHonor)
	}
	if maybe(t, 30, "affinity") {
		c.NodeAffinityPolicy = new(v1.NodeInclusionPolicyIgnore)
	}
	if maybe(t, 30, "keys") {
		c.MatchLabelKeys = []string{"index"}
	}
	b.Spread(c)
}

// redrawConstraints replaces all constraints.
func redrawConstraints(t *rapid.T, b *PodBuilder) {
	b.Spec.TopologySpreadConstraints = nil
	AddConstraints(t, &b.Pod)
}

// perturbConstraint changes a field of the first constraint, or adds a hard one.
func perturbConstraint(t *rapid.T, b *PodBuilder) {
	cs := b.Spec.TopologySpreadConstraints
	if len(cs) == 0 {
		b.SpreadHard(v1.LabelTopologyZone, 1, "app", pick(t, apps, "over"))
		return
	}
	switch Uniform(t, 3, "of the constraint") {
	case 0:
		cs[0].WhenUnsatisfiable = pick(t, []v1.UnsatisfiableConstraintAction{v1.DoNotSchedule, v1.ScheduleAnyway}, "when")
	case 1:
		cs[0].MaxSkew = pick(t, maxSkews, "skew")
	default:
		cs[0].MinDomains = new(int32(1 + Uniform(t, 4, "domains")))
	}
}

// perturbHostPort sets a port; addresses and protocols decide which ports conflict.
func perturbHostPort(t *rapid.T, b *PodBuilder) {
	b.Spec.Containers[0].Ports = []v1.ContainerPort{{
		HostPort: int32(rapid.IntRange(80, 81).Draw(t, "port")),
		HostIP:   pick(t, []string{"", "10.0.0.1", "10.0.0.2"}, "ip"),
		Protocol: pick(t, []v1.Protocol{v1.ProtocolTCP, v1.ProtocolUDP}, "protocol"),
	}}
}

// perturbImages changes what the pod needs to pull.
func perturbImages(t *rapid.T, b *PodBuilder) {
	b.Image(pick(t, wantedImages, "image"))
	if maybe(t, 40, "volume") {
		b.ImageVolume("another", pick(t, wantedImages, "of volume"))
	}
	if maybe(t, 30, "second") {
		b.Spec.InitContainers = append(b.Spec.InitContainers, v1.Container{Name: "init", Image: pick(t, images, "of init")})
	}
}

// perturbFeature needs a feature that nodes declare.
func perturbFeature(t *rapid.T, b *PodBuilder) { needFeature(t, &b.Pod) }

// perturbPriority changes whom the pod may preempt, and who may preempt it.
func perturbPriority(t *rapid.T, b *PodBuilder) {
	b.Priority(int32(pick(t, []int{-10, 0, 5, 100}, "priority")))
}

// perturbPreemptionPolicy changes whether it preempts at all.
func perturbPreemptionPolicy(t *rapid.T, b *PodBuilder) {
	policy := pick(t, []v1.PreemptionPolicy{v1.PreemptNever, v1.PreemptLowerPriority}, "policy")
	b.Spec.PreemptionPolicy = &policy
}

// perturbVolumes exchanges the last volume or adds some.
func perturbVolumes(t *rapid.T, b *PodBuilder) {
	if n := len(b.Spec.Volumes); n > 0 && maybe(t, 50, "drop") {
		b.Spec.Volumes = b.Spec.Volumes[:n-1]
	}
	AddVolumes(t, &b.Pod)
}

// mutateAnything changes any field of the pod, of the API as it is compiled in.
func mutateAnything(t *rapid.T, b *PodBuilder) { Mutate(t, &b.Pod) }
