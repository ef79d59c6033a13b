package live

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berthproject/berth/core/cluster"
)

// templatePod returns a pod that has all that pods share, newly made.
func templatePod(i int) *v1.Pod {
	controller, seconds, priority, never, always := true, int64(300), int32(7), v1.PreemptNever, v1.ContainerRestartPolicyAlways
	grace := int64(5)
	requests := func() v1.ResourceList {
		return v1.ResourceList{v1.ResourceCPU: resource.MustParse("100m"), v1.ResourceMemory: resource.MustParse("500Mi")}
	}
	p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: fmt.Sprint("p", i), Labels: map[string]string{"app": "web", "tier": "front"},
		Annotations:     map[string]string{"cluster-autoscaler.kubernetes.io/safe-to-evict": "true"},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web", UID: "u", Controller: &controller}}}}
	p.Spec = v1.PodSpec{SchedulerName: "berth", NodeSelector: map[string]string{"disk": "ssd"}, Priority: &priority, PreemptionPolicy: &never, TerminationGracePeriodSeconds: &grace,
		Tolerations:               []v1.Toleration{{Key: "gpu", Operator: v1.TolerationOpExists, Effect: v1.TaintEffectNoExecute, TolerationSeconds: &seconds}},
		Affinity:                  &v1.Affinity{NodeAffinity: &v1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{{MatchExpressions: []v1.NodeSelectorRequirement{{Key: "zone", Operator: v1.NodeSelectorOpIn, Values: []string{"a"}}}}}}}},
		TopologySpreadConstraints: []v1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: "zone", WhenUnsatisfiable: v1.DoNotSchedule}},
		Containers:                []v1.Container{{Name: "c", Image: "i", Ports: []v1.ContainerPort{{HostPort: 80, ContainerPort: 80}}, Resources: v1.ResourceRequirements{Requests: requests(), Limits: requests()}}},
		InitContainers:            []v1.Container{{Name: "side", Image: "s", RestartPolicy: &always, Resources: v1.ResourceRequirements{Requests: requests()}}},
	}
	return p
}

// shared names what two pods have in one memory.
func shared(a, b *v1.Pod) (out []string) {
	for _, x := range []struct {
		name string
		a, b any // maps, slices or pointers
	}{
		{"labels", a.Labels, b.Labels}, {"annotations", a.Annotations, b.Annotations}, {"owners", a.OwnerReferences, b.OwnerReferences},
		{"selector", a.Spec.NodeSelector, b.Spec.NodeSelector}, {"tolerations", a.Spec.Tolerations, b.Spec.Tolerations},
		{"affinity", a.Spec.Affinity, b.Spec.Affinity}, {"spread", a.Spec.TopologySpreadConstraints, b.Spec.TopologySpreadConstraints},
		{"containers", a.Spec.Containers, b.Spec.Containers}, {"init", a.Spec.InitContainers, b.Spec.InitContainers},
		{"priority", a.Spec.Priority, b.Spec.Priority}, {"policy", a.Spec.PreemptionPolicy, b.Spec.PreemptionPolicy}, {"grace", a.Spec.TerminationGracePeriodSeconds, b.Spec.TerminationGracePeriodSeconds},
	} {
		if reflect.ValueOf(x.a).Pointer() == reflect.ValueOf(x.b).Pointer() && !reflect.ValueOf(x.a).IsNil() {
			out = append(out, x.name)
		}
	}
	return out
}

// TestPodsOfOneTemplateShareMemory changes each part of a pod: that part is its own, the others
// are shared, and no pod says anything else than before.
func TestPodsOfOneTemplateShareMemory(t *testing.T) {
	five, six := int64(6), int32(8)
	lower := v1.PreemptLowerPriority
	for _, x := range []struct {
		own    string // "" for nothing
		change func(*v1.Pod)
	}{
		{"", func(*v1.Pod) {}},
		{"labels", func(p *v1.Pod) { p.Labels["app"] = "api" }},
		{"labels", func(p *v1.Pod) { delete(p.Labels, "app") }},
		{"annotations", func(p *v1.Pod) { p.Annotations["cluster-autoscaler.kubernetes.io/safe-to-evict"] = "false" }},
		{"owners", func(p *v1.Pod) { p.OwnerReferences[0].Name = "api" }},
		{"selector", func(p *v1.Pod) { p.Spec.NodeSelector = map[string]string{"disk": "hdd"} }},
		{"tolerations", func(p *v1.Pod) { p.Spec.Tolerations[0].TolerationSeconds = &five }},
		{"tolerations", func(p *v1.Pod) { p.Spec.Tolerations[0].TolerationSeconds = nil }},
		{"tolerations", func(p *v1.Pod) { p.Spec.Tolerations[0].Effect = v1.TaintEffectNoSchedule }},
		{"affinity", func(p *v1.Pod) {
			p.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms[0].MatchExpressions[0].Values[0] = "b"
		}},
		{"spread", func(p *v1.Pod) { p.Spec.TopologySpreadConstraints[0].MaxSkew = 2 }},
		{"containers", func(p *v1.Pod) {
			p.Spec.Containers[0].Resources.Requests[v1.ResourceCPU] = resource.MustParse("200m")
		}},
		{"containers", func(p *v1.Pod) {
			p.Spec.Containers[0].Resources.Requests[v1.ResourceCPU] = resource.MustParse("0.1")
		}},
		{"containers", func(p *v1.Pod) { p.Spec.Containers[0].Resources.Limits = nil }},
		{"containers", func(p *v1.Pod) { p.Spec.Containers[0].Image = "j" }},
		{"containers", func(p *v1.Pod) { p.Spec.Containers[0].Ports[0].HostPort = 81 }},
		{"containers", func(p *v1.Pod) { p.Spec.Containers = append(p.Spec.Containers, v1.Container{Name: "d"}) }},
		{"init", func(p *v1.Pod) { p.Spec.InitContainers[0].RestartPolicy = nil }},
		{"init", func(p *v1.Pod) {
			p.Spec.InitContainers[0].RestartPolicyRules = []v1.ContainerRestartRule{{Action: "Restart"}}
		}},
		{"priority", func(p *v1.Pod) { p.Spec.Priority = &six }},
		{"policy", func(p *v1.Pod) { p.Spec.PreemptionPolicy = &lower }},
		{"grace", func(p *v1.Pod) { p.Spec.TerminationGracePeriodSeconds = &five }},
	} {
		s := newSharer()
		first, second := cluster.Trim(templatePod(1)), templatePod(2)
		x.change(second)
		want := cluster.Trim(second.DeepCopy())
		second = cluster.Trim(second)
		s.share(first)
		s.share(second)
		if !reflect.DeepEqual(second, want) {
			t.Errorf("with other %s the pod is %+v, want %+v", x.own, second, want)
		}
		if got := cluster.Trim(templatePod(1)); !reflect.DeepEqual(first, got) {
			t.Errorf("the first pod has changed to %+v", first)
		}
		var wantShared []string
		for _, part := range shared(first, first) {
			if part != x.own {
				wantShared = append(wantShared, part)
			}
		}
		if got := shared(first, second); len(wantShared) < 11 || fmt.Sprint(got) != fmt.Sprint(wantShared) {
			t.Errorf("with other %s the pods share %v, want %v", x.own, got, wantShared)
		}
	}
}

// TestPodsOfOtherTemplatesShareNothing: those of another controller; without one, those with other
// labels. Neither do they keep the pods of one template from sharing, which come in turn with them.
func TestPodsOfOtherTemplatesShareNothing(t *testing.T) {
	owned := func(by types.UID, labels map[string]string) func() *v1.Pod {
		return func() *v1.Pod {
			p := templatePod(1)
			p.Labels = maps.Clone(labels)
			if p.OwnerReferences[0].UID = by; by == "" {
				p.OwnerReferences = nil
			}
			return p
		}
	}
	labels := map[string]string{"app": "web", "tier": "front"}
	for _, x := range []struct {
		name         string
		first, other func() *v1.Pod
		shares       bool
	}{
		{"of one controller, with other labels", owned("u", labels), owned("u", map[string]string{"app": "web"}), true},
		{"of two controllers", owned("u", labels), owned("v", labels), false},
		{"with one's labels", owned("", labels), owned("", map[string]string{"tier": "front", "app": "web"}), true},
		{"with labels whose keys are the other's values", owned("", labels), owned("", map[string]string{"web": "app", "front": "tier"}), false},
		{"with fewer labels", owned("", labels), owned("", map[string]string{"app": "web"}), false},
	} {
		s, first, other := newSharer(), x.first(), x.other()
		// Hashes have another seed each time. Once in 2,048 times two templates have one place.
		for i := 0; !x.shares && s.place(first) == s.place(other); i++ {
			if i == 20 {
				t.Fatalf("pods %s have the same place with each seed", x.name)
			}
			s = newSharer()
		}
		s.share(first)
		s.share(other)
		if got := shared(first, other); (got != nil) != x.shares {
			t.Errorf("pods %s share %v", x.name, got)
		}
		third := x.first()
		s.share(third)
		if got := shared(first, third); !slices.Contains(got, "containers") {
			t.Errorf("beside pods %s, two of one template share only %v", x.name, got)
		}
	}
}

// TestNodesOfOneSizeShareMemory: lists that say the same are one, whether of one node or of two, and
// lists that differ stay apart.
func TestNodesOfOneSizeShareMemory(t *testing.T) {
	node := func(capacity, allocatable string) *v1.Node {
		n := &v1.Node{}
		n.Status.Capacity = v1.ResourceList{v1.ResourceCPU: resource.MustParse(capacity), v1.ResourcePods: resource.MustParse("110")}
		n.Status.Allocatable = v1.ResourceList{v1.ResourceCPU: resource.MustParse(allocatable), v1.ResourcePods: resource.MustParse("110")}
		return n
	}
	same := func(a, b v1.ResourceList) bool { return reflect.ValueOf(a).Pointer() == reflect.ValueOf(b).Pointer() }
	s := newSharer()
	whole, like, less, none := node("4", "4"), node("4", "4"), node("4", "3500m"), &v1.Node{}
	for _, n := range []*v1.Node{whole, like, less, none} {
		s.shareNode(n)
	}
	switch {
	case !same(whole.Status.Capacity, whole.Status.Allocatable) || !same(whole.Status.Capacity, like.Status.Allocatable):
		t.Error("nodes that can allocate all that they have don't share the two lists")
	case !same(less.Status.Capacity, whole.Status.Capacity) || same(less.Status.Allocatable, less.Status.Capacity):
		t.Error("a node that can allocate less has to share its capacity, and only that")
	case !reflect.DeepEqual(less, node("4", "3500m")) || !reflect.DeepEqual(like, node("4", "4")) || none.Status.Capacity != nil:
		t.Errorf("what nodes say has changed: %v, %v, %v", less.Status, like.Status, none.Status)
	}
}

// TestNodesThatReserveAPartOfACPUShareMemory: capacity and allocatable of a node differ by less than
// a CPU here, in nothing else, and come in turn.
func TestNodesThatReserveAPartOfACPUShareMemory(t *testing.T) {
	list := func(cpu string) v1.ResourceList {
		return v1.ResourceList{v1.ResourceCPU: resource.MustParse(cpu), v1.ResourcePods: resource.MustParse("110")}
	}
	node := func() *v1.Node {
		return &v1.Node{Status: v1.NodeStatus{Capacity: list("4"), Allocatable: list("3500m")}}
	}
	pointer := func(l v1.ResourceList) uintptr { return reflect.ValueOf(l).Pointer() }
	s, shared := newSharer(), 0
	for range 20 { // of seeds: once in 256 times the two lists have one place
		first, second := node(), node()
		s.shareNode(first)
		s.shareNode(second)
		if pointer(first.Status.Capacity) == pointer(second.Status.Capacity) && pointer(first.Status.Allocatable) == pointer(second.Status.Allocatable) {
			shared++
		}
		s = newSharer()
	}
	if shared < 15 {
		t.Errorf("nodes of one size share memory with %d of 20 seeds", shared)
	}
}
