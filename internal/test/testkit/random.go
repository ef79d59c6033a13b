package testkit

import (
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"pgregory.net/rapid"

	"github.com/berthproject/berth/core/cluster"
)

// This file draws nodes, pods and workloads. What must hold: draws shrink to the plainest
// object, so that a failing property shows what it takes.

// The names and labels of random objects are few, so that rules of one object often concern
// another.
var (
	zones  = []string{"a", "b", "c"}
	apps   = []string{"web", "db", "batch"}
	taints = []string{"gpu", "spot"}
	spaces = []string{"default", "other"}
	images = []string{"registry.example/web:1", "registry.example/db:latest", "tools:latest"}
	// wantedImages are what pods call images: with a tag or without, and one that no node has.
	wantedImages = []string{"registry.example/web:1", "registry.example/db", "tools", "absent:1"}
	// features are the features that some nodes declare, sorted as the API requires.
	features = []string{"RestartAllContainersOnContainerExits", "UserNamespacesHostNetworkSupport"}
)

// Uniform draws from 0 to n-1, all about equally likely, n being at most 1024: rapid's own
// ranges prefer small numbers, with which most objects would be alike. It shrinks to 0.
// Ten bits, each a draw of its own, are what rapid can shrink one by one.
func Uniform(t *rapid.T, n int, label string) int {
	v := 0
	for range 10 {
		v *= 2
		if rapid.Bool().Draw(t, label) {
			v++
		}
	}
	return v * n / 1024
}

// maybe is true in the given percentage of draws, and shrinks to false.
func maybe(t *rapid.T, percent int, label string) bool {
	return Uniform(t, 100, label) >= 100-percent
}

// pick draws an element, and shrinks to the first.
func pick[T any](t *rapid.T, from []T, label string) T { return from[Uniform(t, len(from), label)] }

// RandomNode draws a node: small ones, so that pods compete, most with a zone, some without a
// hostname or with one that other nodes have, too.
// Percentages are such that in ten nodes each oddity is likely to come up.
func RandomNode(t *rapid.T, name string) *v1.Node {
	b := Node(name).Alloc("cpu", fmt.Sprint(rapid.IntRange(1, 6).Draw(t, "cpu")), "memory", pick(t, []string{"1Gi", "4Gi", "8Gi"}, "memory"))
	if maybe(t, 80, "zoned") {
		b.Zone(pick(t, zones, "zone"))
		// A zone that is there but empty is a domain of its own.
		if maybe(t, 8, "empty zone") {
			b.Zone("")
		}
	}
	if maybe(t, 10, "nohost") {
		// kube-scheduler's rules take the label at its word, so nodes without one or with
		// the same one must work.
		delete(b.Labels, v1.LabelHostname)
	} else if maybe(t, 10, "shared") {
		b.Labels[v1.LabelHostname] = "shared"
	}
	if maybe(t, 30, "disk") {
		b.Label("disk", "ssd")
	}
	if maybe(t, 20, "gpus") {
		b.Alloc("example.com/gpu", "2")
	}
	if maybe(t, 20, "scratch") {
		b.Alloc("ephemeral-storage", "4Gi", "hugepages-2Mi", "128Mi")
	}
	if maybe(t, 15, "few") {
		b.Alloc("pods", "3")
	}
	if maybe(t, 25, "tainted") {
		b.Taint(pick(t, taints, "taint"), "", pick(t, []v1.TaintEffect{v1.TaintEffectNoSchedule, v1.TaintEffectPreferNoSchedule, v1.TaintEffectNoExecute}, "effect"))
	}
	if maybe(t, 8, "cordon") {
		b.Cordon()
	}
	// With a digest and a tag, as kubelets report them.
	for _, name := range images {
		if maybe(t, 25, "image") {
			b.Status.Images = append(b.Status.Images, v1.ContainerImage{
				Names: []string{name + "@sha256:1", name}, SizeBytes: int64(pick(t, []int{1, 30, 250, 700, 3000}, "megabytes")) << 20})
		}
	}
	if maybe(t, 30, "features") {
		b.Status.DeclaredFeatures = features
	}
	return b.Obj()
}

// RandomPod draws a pod of any rules: most fields are set in a minority of the pods, so that
// some node takes most pods.
// The name is all that differs between pods drawn alike: classes must not depend on it.
func RandomPod(t *rapid.T, name string) *v1.Pod {
	b := Pod(name).Namespaced(pick(t, spaces, "ns"))
	drawContainers(t, b)
	if maybe(t, 75, "labelled") {
		b.Label("app", pick(t, apps, "app"))
	}
	if maybe(t, 20, "indexed") {
		b.Label("index", fmt.Sprint(rapid.IntRange(0, 9).Draw(t, "index")))
	}
	if maybe(t, 15, "member") {
		b.PodGroup(pick(t, podGroups, "member of"))
	}
	drawNodeRules(t, b)
	drawPodRules(t, b)
	drawStatus(t, b)
	return b.Obj()
}

// RandomPlaced draws a pod that is on a node, some with a resize that the node hasn't carried out.
// It need not fit there: others may have placed it.
func RandomPlaced(t *rapid.T, name, node string) *v1.Pod {
	p := RandomPod(t, name)
	placeOn(t, p, node)
	return p
}

// placeOn puts a pod on a node, and draws whether it is being resized there.
func placeOn(t *rapid.T, p *v1.Pod, node string) {
	p.Spec.NodeName = node
	if maybe(t, 20, "resized") {
		addResize(t, p)
	}
}

// addResize draws what a node has allocated and set up for a pod that is being resized: for its
// containers, the pod as a whole, or both. Some of it may not be known. The node may never carry the
// resize out.
// The same names of resources are drawn for all, so that what is allocated can be more or
// less than what is requested.
func addResize(t *rapid.T, p *v1.Pod) {
	list := func(what string) v1.ResourceList {
		var out v1.ResourceList // an empty list is none, as in the API
		for _, name := range []v1.ResourceName{v1.ResourceCPU, v1.ResourceMemory} {
			if !maybe(t, 20, "no "+string(name)+" "+what) {
				if out == nil {
					out = v1.ResourceList{}
				}
				out[name] = resource.MustParse(pick(t, []string{"100m", "2", "8", "1Gi", "6Gi"}, what))
			}
		}
		return out
	}
	requirements := func(what string) *v1.ResourceRequirements {
		if maybe(t, 15, "nothing "+what) {
			return nil
		}
		return &v1.ResourceRequirements{Requests: list(what)}
	}
	statuses := func(containers []v1.Container) (out []v1.ContainerStatus) {
		for i := range containers {
			if !maybe(t, 15, "no status") {
				out = append(out, v1.ContainerStatus{Name: containers[i].Name, Resources: requirements("set up"), AllocatedResources: list("allocated")})
			}
		}
		return out
	}
	whole := Uniform(t, 3, "of what")
	if whole > 0 {
		if p.Spec.Resources == nil && maybe(t, 60, "requested as a whole") {
			p.Spec.Resources = &v1.ResourceRequirements{Requests: list("of the pod")}
		}
		p.Status.Resources, p.Status.AllocatedResources = requirements("set up"), list("allocated")
	}
	if whole < 2 {
		p.Status.ContainerStatuses, p.Status.InitContainerStatuses = statuses(p.Spec.Containers), statuses(p.Spec.InitContainers)
	}
	if maybe(t, 60, "pending") {
		// The kubelet says why a resize isn't carried out yet, or never.
		reason := pick(t, []string{v1.PodReasonDeferred, v1.PodReasonInfeasible}, "why")
		p.Status.Conditions = append(p.Status.Conditions, v1.PodCondition{Type: v1.PodResizePending, Status: v1.ConditionTrue, Reason: reason})
	}
}

// drawContainers draws what a pod requests, and what else is of its containers.
// Requests are of few sizes, so that several pods are of one class.
func drawContainers(t *rapid.T, b *PodBuilder) {
	if maybe(t, 85, "requests") {
		b.Req("cpu", pick(t, []string{"100m", "500m", "1", "3"}, "cpu"), "memory", pick(t, []string{"64Mi", "1Gi", "3Gi"}, "memory"))
	}
	if maybe(t, 40, "image") {
		b.Spec.Containers[0].Image = pick(t, wantedImages, "of image")
	}
	if maybe(t, 15, "image volume") {
		b.ImageVolume("image", pick(t, wantedImages, "of volume"))
	}
	if maybe(t, 12, "odd resources") {
		oddResources(t, &b.Pod)
	}
	if maybe(t, 6, "feature") {
		needFeature(t, &b.Pod)
	}
	if maybe(t, 15, "gpu") {
		b.Req("example.com/gpu", "1")
	}
}

// drawNodeRules draws what a pod requires or prefers of nodes.
// Labels are those of RandomNode.
func drawNodeRules(t *rapid.T, b *PodBuilder) {
	if maybe(t, 30, "tolerates") {
		b.Tolerate(pick(t, taints, "taint"))
	}
	if maybe(t, 15, "selects") {
		b.Select("disk", "ssd")
	}
	if maybe(t, 15, "requires") {
		b.RequireIn(v1.LabelTopologyZone, pick(t, zones, "zone"), pick(t, zones, "zone2"))
	}
	if maybe(t, 12, "named") {
		nameNodes(t, b)
	}
	if maybe(t, 20, "prefers") {
		b.PreferIn(int32(rapid.IntRange(1, 20).Draw(t, "weight")), "disk", "ssd")
	}
}

// nameNodes makes a pod require nodes by name: mostly one, as pods of a DaemonSet do, sometimes one
// of a few or of many, with or without a label. There may be no such nodes, or they come later.
// Many names go beyond what is kept as a list of single nodes.
func nameNodes(t *rapid.T, b *PodBuilder) {
	names := pick(t, []int{1, 1, 1, 1, 2, 3, 24}, "how many names")
	if maybe(t, 10, "beside a label") {
		b.RequireIn(v1.LabelTopologyZone, pick(t, zones, "or zone")) // an alternative, so that names decide nothing
	}
	for range names {
		name := fmt.Sprint("n", Uniform(t, 8, "named node"))
		switch {
		// Two names at once are satisfied by no node.
		case maybe(t, 10, "conflict"):
			in := func(name string) v1.NodeSelectorRequirement {
				return v1.NodeSelectorRequirement{Key: metav1.ObjectNameField, Operator: v1.NodeSelectorOpIn, Values: []string{name}}
			}
			b.Require(v1.NodeSelectorTerm{MatchFields: []v1.NodeSelectorRequirement{in(name), in(fmt.Sprint("n", Uniform(t, 8, "and at once")))}})
		case names > 3:
			b.OnlyOn(fmt.Sprint("n", Uniform(t, 64, "of many")))
		default:
			b.OnlyOn(name)
		}
		if maybe(t, 10, "and a label") {
			terms := b.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
			terms[len(terms)-1].MatchExpressions = []v1.NodeSelectorRequirement{labelIn("disk", []string{"ssd"}).MatchExpressions[0]}
		}
	}
}

// drawPodRules draws what relates a pod to other pods: terms, constraints, volumes, ports.
// Selectors are of apps, so that they select other random pods.
func drawPodRules(t *rapid.T, b *PodBuilder) {
	if maybe(t, 25, "apart") {
		b.Apart(pick(t, []string{v1.LabelHostname, v1.LabelHostname, v1.LabelTopologyZone}, "key"), "app", pick(t, apps, "from"))
	}
	if maybe(t, 15, "terms") {
		AddTerms(t, &b.Pod)
	}
	if maybe(t, 12, "constraints") {
		AddConstraints(t, &b.Pod)
	}
	if maybe(t, 10, "volumes") {
		AddVolumes(t, &b.Pod)
	}
	if maybe(t, 8, "spreads") {
		b.SpreadSoft(pick(t, []string{v1.LabelHostname, v1.LabelTopologyZone}, "key"), int32(rapid.IntRange(1, 3).Draw(t, "skew")), "app", pick(t, apps, "over"))
	}
	if maybe(t, 10, "port") {
		b.HostPort(int32(rapid.IntRange(80, 81).Draw(t, "port")))
	}
}

// drawStatus draws what preemption reads of a pod, and its owner.
// Times are in 1970, far from any clock, and differ, so that the order of victims is
// defined.
func drawStatus(t *rapid.T, b *PodBuilder) {
	if maybe(t, 15, "owned") {
		b.Owner("apps/v1", "ReplicaSet", pick(t, apps, "rs"))
	}
	if maybe(t, 40, "prioritised") {
		b.Spec.Priority = new(int32(pick(t, []int{-10, 5, 5, 100}, "priority")))
		// Such a pod waits rather than preempting.
		if maybe(t, 10, "peaceful") {
			b.Spec.PreemptionPolicy = new(v1.PreemptNever)
		}
	}
	if maybe(t, 60, "started") {
		at := metav1.NewTime(time.Unix(int64(Uniform(t, 1000, "start")), 0))
		b.Status.StartTime = &at
	}
	if maybe(t, 15, "ends") {
		b.Spec.ActiveDeadlineSeconds = new(pick(t, []int64{30, 90}, "deadline"))
	}
	if maybe(t, 10, "terminating") {
		b.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
	}
}

// oddResources gives a pod requests beyond those of its first container: of the pod as a
// whole, of init containers, sidecars and a second container, or overhead.
// How these add up is Kubernetes' own, and differs from a plain sum.
func oddResources(t *rapid.T, p *v1.Pod) {
	list := func() v1.ResourceList {
		name := pick(t, []v1.ResourceName{v1.ResourceCPU, v1.ResourceMemory, v1.ResourceEphemeralStorage, "hugepages-2Mi", "example.com/gpu"}, "resource")
		return v1.ResourceList{name: resource.MustParse(pick(t, []string{"0", "1", "2", "64Mi", "2Gi"}, "quantity"))}
	}
	switch Uniform(t, 5, "odd") {
	case 0:
		p.Spec.Resources = &v1.ResourceRequirements{Requests: v1.ResourceList{
			pick(t, []v1.ResourceName{v1.ResourceCPU, v1.ResourceMemory}, "of the pod"): resource.MustParse(pick(t, []string{"2", "1Gi"}, "whole"))}}
	case 1:
		p.Spec.InitContainers = append(p.Spec.InitContainers, v1.Container{Name: "init", Resources: v1.ResourceRequirements{Requests: list()}})
	case 2:
		p.Spec.InitContainers = append(p.Spec.InitContainers, v1.Container{Name: "sidecar", RestartPolicy: new(v1.ContainerRestartPolicyAlways), Resources: v1.ResourceRequirements{Requests: list()}})
	case 3:
		p.Spec.Overhead = list()
	default:
		p.Spec.Containers = append(p.Spec.Containers, v1.Container{Name: "second", Resources: v1.ResourceRequirements{Requests: list()}})
	}
}

// needFeature gives a pod a field for which its node must declare a feature.
// Most nodes declare none, so few take such a pod.
func needFeature(t *rapid.T, p *v1.Pod) {
	if maybe(t, 50, "network") {
		p.Spec.HostNetwork, p.Spec.HostUsers = true, new(false)
		return
	}
	p.Spec.Containers[0].RestartPolicyRules = []v1.ContainerRestartRule{{Action: v1.ContainerRestartRuleActionRestartAllContainers}}
}

// RandomWorkload draws a Service or ReplicaSet, named after the app that it selects.
// A Service selects by a map, a ReplicaSet by a selector; default spreading reads both.
func RandomWorkload(t *rapid.T) *cluster.Workload {
	app := pick(t, apps, "app")
	w := &cluster.Workload{Kind: cluster.Service, Namespace: pick(t, spaces, "ns"), Name: app, Set: map[string]string{"app": app}}
	if maybe(t, 40, "rs") {
		w.Kind, w.Set = cluster.ReplicaSet, nil
		w.Selector = labels.SelectorFromSet(labels.Set{"app": app})
	}
	return w
}

// RandomBudget draws a disruption budget; gone says that it is to be deleted.
func RandomBudget(t *rapid.T) (b *policyv1.PodDisruptionBudget, gone bool) {
	b = &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: pick(t, spaces, "ns"), Name: pick(t, []string{"b0", "b1"}, "budget")}}
	switch Uniform(t, 10, "selects") {
	case 0:
		b.Spec.Selector = &metav1.LabelSelector{}
	case 1:
		// An operator that doesn't exist: such a budget selects nothing.
		b.Spec.Selector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: "Near"}}}
	default:
		b.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": pick(t, apps, "app")}}
	}
	b.Status.DisruptionsAllowed = int32(Uniform(t, 3, "allowed"))
	// Pods in disruptedPods were evicted, and the budget has been charged for them.
	if maybe(t, 20, "gone already") {
		b.Status.DisruptedPods = map[string]metav1.Time{fmt.Sprint("p", Uniform(t, 10, "which")): {}}
	}
	return b, maybe(t, 20, "gone")
}
