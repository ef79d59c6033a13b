package testkit

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"
)

// Perturb changes one part of a pod: mostly in a way that some rule may
// notice, sometimes anywhere (Mutate).
func Perturb(t *rapid.T, p *v1.Pod) {
	b := &PodBuilder{Pod: *p}
	defer func() { *p = b.Pod }()
	if len(b.Spec.Containers) == 0 { // Mutate may have dropped it
		b.Spec.Containers = []v1.Container{{Name: "c"}}
	}
	if b.Spec.Containers[0].Resources.Requests == nil {
		b.Spec.Containers[0].Resources.Requests = v1.ResourceList{}
	}
	switch Uniform(t, 30, "part") {
	case 0:
		b.Pod.Namespace = pick(t, spaces, "ns")
	case 1:
		b.Label("app", pick(t, apps, "app"))
	case 2:
		delete(b.Labels, "app")
	case 3:
		name := pick(t, []v1.ResourceName{v1.ResourceCPU, v1.ResourceMemory, "example.com/gpu"}, "resource")
		requests := b.Spec.Containers[0].Resources.Requests
		if maybe(t, 25, "absent") {
			delete(requests, name)
		} else {
			requests[name] = resource.MustParse(pick(t, []string{"0", "100m", "1", "2", "1Gi"}, "quantity"))
		}
	case 15, 16:
		// Requesting nothing and requesting zero are scored differently.
		requests := b.Spec.Containers[0].Resources.Requests
		for _, name := range []v1.ResourceName{v1.ResourceCPU, v1.ResourceMemory} {
			delete(requests, name)
			if maybe(t, 50, "zero") {
				requests[name] = resource.MustParse("0")
			}
		}
	case 4:
		b.Tolerate(pick(t, append(taints, ""), "taint"))
	case 5:
		if n := len(b.Spec.Tolerations); n > 0 {
			x := &b.Spec.Tolerations[rapid.IntRange(0, n-1).Draw(t, "which")]
			x.Key = pick(t, taints, "key")
			x.Operator = pick(t, []v1.TolerationOperator{v1.TolerationOpExists, v1.TolerationOpEqual, ""}, "op")
			x.Value = pick(t, []string{"", "v"}, "value")
			x.Effect = pick(t, []v1.TaintEffect{"", v1.TaintEffectNoSchedule, v1.TaintEffectPreferNoSchedule, v1.TaintEffectNoExecute}, "effect")
		}
	case 6:
		b.Select("disk", pick(t, []string{"ssd", "hdd"}, "disk"))
	case 7:
		b.RequireIn(v1.LabelTopologyZone, pick(t, zones, "zone"))
	case 8:
		if a := b.Spec.Affinity; a != nil && a.NodeAffinity != nil && a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution != nil {
			a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms = []v1.NodeSelectorTerm{{
				MatchExpressions: []v1.NodeSelectorRequirement{{
					Key:      v1.LabelTopologyZone,
					Operator: pick(t, []v1.NodeSelectorOperator{v1.NodeSelectorOpIn, v1.NodeSelectorOpNotIn}, "op"),
					Values:   []string{pick(t, zones, "zone")},
				}},
			}}
		}
	case 9:
		b.PreferIn(int32(rapid.IntRange(1, 50).Draw(t, "weight")), pick(t, []string{"disk", v1.LabelTopologyZone}, "key"), pick(t, []string{"ssd", "a", "b"}, "value"))
	case 10:
		if a := b.Spec.Affinity; a != nil && a.PodAntiAffinity != nil && len(a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution) > 0 && maybe(t, 60, "alter") {
			a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution[0].LabelSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": pick(t, apps, "from")}}
			return
		}
		b.Apart(pick(t, []string{v1.LabelHostname, v1.LabelTopologyZone}, "key"), "app", pick(t, apps, "from"))
		if maybe(t, 40, "everywhere") {
			terms := b.Spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution
			terms[len(terms)-1].Namespaces = []string{"other"}
		}
	case 11:
		if cs := b.Spec.TopologySpreadConstraints; len(cs) > 0 && maybe(t, 60, "alter") {
			cs[0].LabelSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": pick(t, apps, "over")}}
			return
		}
		b.SpreadSoft(pick(t, []string{v1.LabelHostname, v1.LabelTopologyZone}, "key"), int32(rapid.IntRange(1, 4).Draw(t, "skew")), "app", pick(t, apps, "over"))
		c := &b.Spec.TopologySpreadConstraints[len(b.Spec.TopologySpreadConstraints)-1]
		if maybe(t, 30, "taints") {
			c.NodeTaintsPolicy = new(v1.NodeInclusionPolicyHonor)
		}
		if maybe(t, 30, "affinity") {
			c.NodeAffinityPolicy = new(v1.NodeInclusionPolicyIgnore)
		}
		if maybe(t, 30, "keys") {
			c.MatchLabelKeys = []string{"index"}
		}
	case 12:
		b.Spec.Containers[0].Ports = []v1.ContainerPort{{
			HostPort: int32(rapid.IntRange(80, 81).Draw(t, "port")),
			HostIP:   pick(t, []string{"", "10.0.0.1", "10.0.0.2"}, "ip"),
			Protocol: pick(t, []v1.Protocol{v1.ProtocolTCP, v1.ProtocolUDP}, "protocol"),
		}}
	case 13:
		b.Owner("apps/v1", pick(t, []string{"ReplicaSet", "StatefulSet"}, "kind"), pick(t, apps, "owner"))
	case 14:
		b.Label("index", fmt.Sprint(rapid.IntRange(0, 2).Draw(t, "index")))
		if maybe(t, 20, "selects index") {
			b.Spec.TopologySpreadConstraints = append(b.Spec.TopologySpreadConstraints, v1.TopologySpreadConstraint{
				MaxSkew: 1, TopologyKey: v1.LabelTopologyZone, WhenUnsatisfiable: v1.ScheduleAnyway,
				LabelSelector: &metav1.LabelSelector{}, MatchLabelKeys: []string{"index"},
			})
		}
	case 17:
		AddTerms(t, &b.Pod)
	case 18:
		b.Spec.TopologySpreadConstraints = nil
		AddConstraints(t, &b.Pod)
	case 19:
		if cs := b.Spec.TopologySpreadConstraints; len(cs) > 0 {
			switch Uniform(t, 3, "of the constraint") {
			case 0:
				cs[0].WhenUnsatisfiable = pick(t, []v1.UnsatisfiableConstraintAction{v1.DoNotSchedule, v1.ScheduleAnyway}, "when")
			case 1:
				cs[0].MaxSkew = int32(rapid.IntRange(1, 3).Draw(t, "skew"))
			default:
				cs[0].MinDomains = new(int32(1 + Uniform(t, 4, "domains")))
			}
			return
		}
		b.SpreadHard(v1.LabelTopologyZone, 1, "app", pick(t, apps, "over"))
	case 20:
		b.Spec.Containers[0].Image = pick(t, []string{"registry.example/web:1", "registry.example/db", "tools", "absent:1"}, "image")
		if maybe(t, 30, "second") {
			b.Spec.InitContainers = append(b.Spec.InitContainers, v1.Container{Name: "init", Image: pick(t, images, "of init")})
		}
	case 21:
		needFeature(t, &b.Pod)
	case 28:
		if a := b.Spec.Affinity; a != nil && a.PodAffinity != nil && len(a.PodAffinity.PreferredDuringSchedulingIgnoredDuringExecution) > 0 {
			a.PodAffinity.PreferredDuringSchedulingIgnoredDuringExecution[0].Weight = int32(pick(t, []int{1, 40, 90}, "weight"))
		} else {
			b.PreferTogether(int32(pick(t, []int{1, 40, 90}, "weight")), v1.LabelTopologyZone, "app", pick(t, apps, "app"))
			b.PreferApart(50, v1.LabelHostname, "app", pick(t, apps, "app"))
		}
	case 29:
		oddResources(t, &b.Pod)
	case 24:
		b.Priority(int32(pick(t, []int{-10, 0, 5, 100}, "priority")))
	case 25:
		policy := pick(t, []v1.PreemptionPolicy{v1.PreemptNever, v1.PreemptLowerPriority}, "policy")
		b.Spec.PreemptionPolicy = &policy
	case 22, 23:
		if n := len(b.Spec.Volumes); n > 0 && maybe(t, 50, "drop") {
			b.Spec.Volumes = b.Spec.Volumes[:n-1]
		}
		AddVolumes(t, &b.Pod)
	default:
		Mutate(t, &b.Pod)
	}
}
