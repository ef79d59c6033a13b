package testkit

import (
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/berthproject/berth/core/cluster"
)

// The vocabulary of random objects is small, so that things meet.
var (
	zones  = []string{"a", "b", "c"}
	apps   = []string{"web", "db", "batch"}
	taints = []string{"gpu", "spot"}
	spaces = []string{"default", "other"}
	images = []string{"registry.example/web:1", "registry.example/db:latest", "tools:latest"}
	// features are what some nodes declare, in the order in which they have to.
	features = []string{"RestartAllContainersOnContainerExits", "UserNamespacesHostNetworkSupport"}
)

// Uniform draws from 0 to n-1, all about equally likely: rapid's own ranges
// prefer small numbers, so that with a few dozen choices most objects would be
// alike. It shrinks to 0.
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

// maybe is true in so many percent of the cases, and shrinks to false.
func maybe(t *rapid.T, percent int, label string) bool {
	return Uniform(t, 100, label) >= 100-percent
}

func pick[T any](t *rapid.T, from []T, label string) T { return from[Uniform(t, len(from), label)] }

// RandomNode draws a node.
func RandomNode(t *rapid.T, name string) *v1.Node {
	b := Node(name).Alloc("cpu", fmt.Sprint(rapid.IntRange(1, 6).Draw(t, "cpu")), "memory", pick(t, []string{"1Gi", "4Gi", "8Gi"}, "memory"))
	if maybe(t, 80, "zoned") {
		b.Zone(pick(t, zones, "zone"))
		if maybe(t, 8, "empty zone") {
			b.Zone("")
		}
	}
	if maybe(t, 10, "nohost") {
		delete(b.Labels, v1.LabelHostname)
	} else if maybe(t, 10, "twin") {
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

// RandomPod draws a pod.
func RandomPod(t *rapid.T, name string) *v1.Pod {
	b := Pod(name).Namespaced(pick(t, spaces, "ns"))
	if maybe(t, 85, "requests") {
		b.Req("cpu", pick(t, []string{"100m", "500m", "1", "3"}, "cpu"), "memory", pick(t, []string{"64Mi", "1Gi", "3Gi"}, "memory"))
	}
	if maybe(t, 40, "image") {
		b.Spec.Containers[0].Image = pick(t, []string{"registry.example/web:1", "registry.example/db", "tools", "absent:1"}, "of image")
	}
	if maybe(t, 12, "odd resources") {
		oddResources(t, &b.Pod)
	}
	if maybe(t, 6, "feature") {
		needFeature(t, &b.Pod)
	}
	if maybe(t, 75, "labelled") {
		b.Label("app", pick(t, apps, "app"))
	}
	if maybe(t, 20, "indexed") {
		b.Label("index", fmt.Sprint(rapid.IntRange(0, 9).Draw(t, "index")))
	}
	if maybe(t, 15, "gpu") {
		b.Req("example.com/gpu", "1")
	}
	if maybe(t, 30, "tolerates") {
		b.Tolerate(pick(t, taints, "taint"))
	}
	if maybe(t, 15, "selects") {
		b.Select("disk", "ssd")
	}
	if maybe(t, 15, "requires") {
		b.RequireIn(v1.LabelTopologyZone, pick(t, zones, "zone"), pick(t, zones, "zone2"))
	}
	if maybe(t, 20, "prefers") {
		b.PreferIn(int32(rapid.IntRange(1, 20).Draw(t, "weight")), "disk", "ssd")
	}
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
	if maybe(t, 15, "owned") {
		b.Owner("apps/v1", "ReplicaSet", pick(t, apps, "rs"))
	}
	if maybe(t, 40, "prioritised") {
		b.Spec.Priority = new(int32(pick(t, []int{-10, 5, 5, 100}, "priority")))
		if maybe(t, 10, "peaceful") {
			b.Spec.PreemptionPolicy = new(v1.PreemptNever)
		}
	}
	if maybe(t, 60, "started") {
		at := metav1.NewTime(time.Unix(int64(Uniform(t, 1000, "start")), 0))
		b.Status.StartTime = &at
	}
	if maybe(t, 10, "terminating") {
		b.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
	}
	return b.Obj()
}

// oddResources gives a pod resources beyond those of its one container: of the
// whole pod, of init containers and sidecars, overhead, other resources.
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

// needFeature makes a pod need a declared feature.
func needFeature(t *rapid.T, p *v1.Pod) {
	if maybe(t, 50, "network") {
		p.Spec.HostNetwork, p.Spec.HostUsers = true, new(false)
		return
	}
	p.Spec.Containers[0].RestartPolicyRules = []v1.ContainerRestartRule{{Action: v1.ContainerRestartRuleActionRestartAllContainers}}
}

// RandomWorkload draws a Service or ReplicaSet.
func RandomWorkload(t *rapid.T) *cluster.Workload {
	app := pick(t, apps, "app")
	w := &cluster.Workload{Kind: cluster.Service, Namespace: pick(t, spaces, "ns"), Name: app, Set: map[string]string{"app": app}}
	if maybe(t, 40, "rs") {
		w.Kind, w.Set = cluster.ReplicaSet, nil
		w.Selector = labels.SelectorFromSet(labels.Set{"app": app})
	}
	return w
}

// World drives a state through a random history.
type World struct {
	State   *cluster.State
	Nodes   []string
	next    int
	storage bool
}

// NewWorld returns a world over an empty state with names for a few nodes.
func NewWorld(s *cluster.State, nodes int) *World { return &World{State: s, Nodes: Names("n", nodes)} }

// Furnish decides what the history is about: in some worlds pods have volumes
// and much happens to storage, in others there is none of it.
func (w *World) Furnish(t *rapid.T) {
	if w.storage = maybe(t, 40, "about storage"); !w.storage {
		return
	}
	for _, o := range RandomStorage(t) {
		w.State.SetObject(o)
	}
	for _, name := range w.Nodes {
		w.State.SetNode(w.State.Schema.ParseNode(w.node(t, name), ""))
	}
}

// Pod draws a pod that suits what the history is about.
func (w *World) Pod(t *rapid.T, name string) *v1.Pod {
	if w.storage && maybe(t, 60, "stores") {
		p := Pod(name).Namespaced(pick(t, spaces, "ns")).Obj() // that only storage can reject
		AddVolumes(t, p)
		return p
	}
	return RandomPod(t, name)
}

// Siblings draws pods that differ only in their names and in those of their
// claims, all alike and waiting for their consumers, as of a StatefulSet.
func (w *World) Siblings(t *rapid.T, names ...string) []*v1.Pod {
	base := w.Pod(t, "sibling")
	base.Namespace, base.Spec.Volumes = "default", nil
	class := pick(t, []string{"static", "static", "fast", "zoned"}, "sibling class")
	var out []*v1.Pod
	for _, name := range names {
		c := randomClaim(t, "default", "of-"+name)
		c.Spec = v1.PersistentVolumeClaimSpec{StorageClassName: &class, AccessModes: modes[:1],
			Resources: v1.VolumeResourceRequirements{Requests: v1.ResourceList{v1.ResourceStorage: resource.MustParse("1Gi")}}}
		c.Annotations, c.Status, c.DeletionTimestamp = nil, v1.PersistentVolumeClaimStatus{}, nil
		w.State.SetObject(c)
		p := base.DeepCopy()
		p.Name, p.UID = name, types.UID("pod-"+name)
		p.Spec.Volumes = []v1.Volume{{Name: "v", VolumeSource: v1.VolumeSource{PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: c.Name}}}}
		out = append(out, p)
	}
	return out
}

// node draws a node that suits what the history is about.
func (w *World) node(t *rapid.T, name string) *v1.Node {
	n := RandomNode(t, name)
	if w.storage && maybe(t, 80, "roomy") {
		n.Status.Allocatable[v1.ResourceCPU] = resource.MustParse("64")
		n.Spec.Taints, n.Spec.Unschedulable = nil, false
	}
	return n
}

// Change does one random thing and says what.
func (w *World) Change(t *rapid.T) string {
	s := w.State
	k := Uniform(t, 100, "what")
	if w.storage && maybe(t, 25, "storage") {
		k = 75
	}
	switch {
	case k < 37:
		w.next++
		p := s.Schema.ParsePod(w.Pod(t, fmt.Sprint("p", w.next)))
		node := pick(t, w.Nodes, "on")
		s.Place(p, node)
		return fmt.Sprintf("place %s on %s", p.Name(), node)
	case k < 52:
		uid := w.anyPod(t)
		s.Remove(uid)
		return "remove " + string(uid)
	case k < 68:
		name := pick(t, w.Nodes, "node")
		s.SetNode(s.Schema.ParseNode(w.node(t, name), ""))
		return "set " + name
	case k < 72:
		name := pick(t, w.Nodes, "node")
		s.RemoveNode(name)
		return "remove " + name
	case k < 80:
		o, gone := RandomStored(t)
		if gone {
			s.RemoveObject(cluster.KindOf(o), o.GetNamespace(), o.GetName())
			return fmt.Sprintf("remove %T %s/%s", o, o.GetNamespace(), o.GetName())
		}
		s.SetObject(o)
		return fmt.Sprintf("set %T %s/%s", o, o.GetNamespace(), o.GetName())
	case k < 83:
		b, gone := RandomBudget(t)
		if gone {
			s.RemoveObject(cluster.BudgetKind, b.Namespace, b.Name)
			return fmt.Sprintf("remove budget %s/%s", b.Namespace, b.Name)
		}
		s.SetObject(b)
		return fmt.Sprintf("set budget %s/%s of %v to %d", b.Namespace, b.Name, b.Spec.Selector, b.Status.DisruptionsAllowed)
	case k < 90:
		return w.nominate(t)
	case k < 94:
		n := RandomNamespace(t)
		s.SetObject(n)
		return fmt.Sprintf("set namespace %s %v", n.Name, n.Labels)
	case k < 95:
		name := pick(t, spaces, "gone")
		s.RemoveObject(cluster.NamespaceKind, "", name)
		return "remove namespace " + name
	case k < 98:
		wl := RandomWorkload(t)
		s.SetWorkload(wl)
		return fmt.Sprintf("set %s %s/%s", wl.Kind, wl.Namespace, wl.Name)
	default:
		wl := RandomWorkload(t)
		s.RemoveWorkload(wl.Kind, wl.Namespace, wl.Name)
		return fmt.Sprintf("remove %s %s/%s", wl.Kind, wl.Namespace, wl.Name)
	}
}

// nominate makes or ends a nomination.
func (w *World) nominate(t *rapid.T) string {
	if list := w.State.Nominations(); len(list) > 0 && maybe(t, 40, "end") {
		n := list[Uniform(t, len(list), "nomination")]
		w.State.Nominate(n.Pod, "")
		return "end the nomination of " + n.Pod.Name()
	}
	p := w.State.Schema.ParsePod(w.Pod(t, fmt.Sprint("nominee", Uniform(t, 4, "nominee"))))
	if _, placed := w.State.Placed(p.UID); placed {
		return "nothing"
	}
	node := pick(t, w.Nodes, "to")
	w.State.Nominate(p, node)
	return fmt.Sprintf("nominate %s of priority %d to %s", p.Name(), p.Priority, node)
}

// RandomBudget draws a disruption budget; gone tells that it is to be removed.
func RandomBudget(t *rapid.T) (b *policyv1.PodDisruptionBudget, gone bool) {
	b = &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: pick(t, spaces, "ns"), Name: pick(t, []string{"b0", "b1"}, "budget")}}
	switch Uniform(t, 10, "selects") {
	case 0:
		b.Spec.Selector = &metav1.LabelSelector{}
	case 1:
		b.Spec.Selector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: "Near"}}}
	default:
		b.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": pick(t, apps, "app")}}
	}
	b.Status.DisruptionsAllowed = int32(Uniform(t, 3, "allowed"))
	if maybe(t, 20, "gone already") {
		b.Status.DisruptedPods = map[string]metav1.Time{fmt.Sprint("p", Uniform(t, 10, "which")): {}}
	}
	return b, maybe(t, 20, "gone")
}

func (w *World) anyPod(t *rapid.T) types.UID {
	if w.next == 0 {
		return ""
	}
	return types.UID(fmt.Sprint("pod-p", rapid.IntRange(1, w.next).Draw(t, "pod")))
}
