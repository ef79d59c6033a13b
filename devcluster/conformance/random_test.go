package conformance_test

import (
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"pgregory.net/rapid"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/devcluster/oracle"
	"github.com/berthproject/berth/internal/test/testkit"
)

// This file draws the clusters and pods that both schedulers answer about. What must
// hold: kube-scheduler's answers about them are its own rules', so what it is known to
// count wrongly isn't drawn; each restriction says why.

// comparesDevices says that random clusters have devices and claims for them, and that
// kube-scheduler keeps the plugin that allocates them. While Berth can't, both are off.
const comparesDevices = true

// randomCluster draws a cluster: nodes, what is placed and nominated, and what rules
// read beside.
func randomCluster(t *rapid.T) *oracle.Cluster {
	c := &oracle.Cluster{}
	names := testkit.Names("n", 1+testkit.Uniform(t, 8, "nodes"))
	for _, name := range names {
		n := testkit.RandomNode(t, name)
		if testkit.Uniform(t, 2, "roomy") == 1 {
			n.Status.Allocatable[v1.ResourceCPU], n.Status.Allocatable[v1.ResourceMemory] = resource.MustParse("32"), resource.MustParse("64Gi")
		}
		// Random nodes are cordoned more often than is good for their scores.
		n.Spec.Unschedulable = n.Spec.Unschedulable && rapid.IntRange(0, 3).Draw(t, "cordoned") == 3
		c.Nodes = append(c.Nodes, n)
	}
	c.Pods, c.Nominated = randomPlaced(t, names), randomNominated(t, names)
	for range testkit.Uniform(t, 4, "budgets") {
		if b, gone := testkit.RandomBudget(t); !gone && !slices.ContainsFunc(c.Objects, func(o metav1.Object) bool { return o.GetNamespace() == b.Namespace && o.GetName() == b.Name }) {
			c.Objects = append(c.Objects, b)
		}
	}
	for range testkit.Uniform(t, 4, "workloads") {
		c.Workloads = append(c.Workloads, workloadObject(testkit.RandomWorkload(t)))
	}
	for _, name := range []string{"default", "other"} {
		if n := testkit.RandomNamespace(t); rapid.IntRange(0, 3).Draw(t, "exists") > 0 {
			n.Name = name
			c.Objects = append(c.Objects, n)
		}
	}
	if testkit.Uniform(t, 3, "storage") > 0 {
		c.Objects = append(c.Objects, randomStorage(t)...)
	}
	if comparesDevices && testkit.Uniform(t, 3, "devices") == 2 {
		addDevices(t, c)
	}
	return c
}

// addDevices adds devices and claims for them to a cluster, of which some of its pods have some.
func addDevices(t *rapid.T, c *oracle.Cluster) {
	published := testkit.RandomDevices(t, c.Nodes)
	c.Objects = append(append(c.Objects, published...), testkit.RandomDeviceClaims(t, published)...)
	for _, o := range c.Objects {
		if n, ok := o.(*v1.Namespace); ok && n.Name == testkit.AdminNamespace {
			n.Labels[resourcev1.DRAAdminNamespaceLabelKey] = "true"
		}
	}
	for _, p := range c.Pods {
		if testkit.Uniform(t, 4, "uses devices") == 3 {
			testkit.AddDeviceClaims(t, p)
		}
	}
}

// hasDevices reports whether addDevices was called for a cluster.
func hasDevices(c *oracle.Cluster) bool {
	return slices.ContainsFunc(c.Objects, func(o metav1.Object) bool { _, ok := o.(*resourcev1.ResourceClaim); return ok })
}

// wantDevices makes most pods of a cluster that has devices want some; of them most want little else.
func wantDevices(t *rapid.T, p *v1.Pod) {
	k := testkit.Uniform(t, 8, "wants devices")
	if k == 0 {
		return
	}
	if k > 2 {
		plain := testkit.Pod(p.Name).Namespaced(p.Namespace).Obj()
		p.Spec = plain.Spec
		p.Spec.Tolerations = []v1.Toleration{{Operator: v1.TolerationOpExists}}
	}
	if k != 4 {
		testkit.AddDeviceClaims(t, p)
	}
	if k < 5 {
		testkit.AddExtendedResources(t, p)
	}
}

// randomStorage draws objects of storage. Of two drivers that a node lacks kube-scheduler names any:
// only one of them is demanded.
func randomStorage(t *rapid.T) []cluster.Object {
	out, demanded := testkit.RandomStorage(t), false
	for _, o := range out {
		if d, ok := o.(*storagev1.CSIDriver); ok && cluster.DriverDemanded(d) {
			if demanded {
				d.Spec.PreventPodSchedulingIfMissing = nil
			}
			demanded = true
		}
	}
	return out
}

// randomPlaced draws the pods that are on the nodes of these names.
func randomPlaced(t *rapid.T, nodes []string) (pods []*v1.Pod) {
	ports := map[string]bool{}
	for i := range testkit.Uniform(t, 20, "pods") {
		p := testkit.RandomPlaced(t, fmt.Sprint("p", i), rapid.SampledFrom(nodes).Draw(t, "on"))
		// Starts differ: of equally important pods kube-scheduler spares any.
		at := metav1.NewTime(time.Unix(int64(testkit.Uniform(t, 100, "start")*100+i), 0))
		p.Status.StartTime = &at
		// No two pods of a node have the same host port, which can't happen in a
		// cluster: kube-scheduler's simulation would free the port with one of them.
		if port := p.Spec.Containers[0].Ports; len(port) > 0 && port[0].HostPort > 0 {
			if key := fmt.Sprint(p.Spec.NodeName, port[0].HostPort); ports[key] {
				p.Spec.Containers[0].Ports = nil
			} else {
				ports[key] = true
			}
		}
		pods = append(pods, p)
	}
	return pods
}

// randomNominated draws pods that are nominated to the nodes of these names.
func randomNominated(t *rapid.T, nodes []string) (pods []*v1.Pod) {
	for i := range testkit.Uniform(t, 5, "nominated") {
		p := testkit.RandomPod(t, fmt.Sprint("nominee", i))
		p.DeletionTimestamp = nil
		// kube-scheduler skips InterPodAffinity and the volume filters for a pod that
		// none of them concerns, and then also with nominated pods added: anti-affinity
		// and claims that only a nominated pod has are forgotten (docs/compatibility.md).
		if p.Spec.Affinity != nil {
			p.Spec.Affinity.PodAntiAffinity = nil
		}
		p.Spec.Volumes = slices.DeleteFunc(p.Spec.Volumes, func(v v1.Volume) bool { return v.PersistentVolumeClaim != nil })
		p.Status.NominatedNodeName = rapid.SampledFrom(nodes).Draw(t, "to")
		pods = append(pods, p)
	}
	return pods
}

// incoming draws the pod to be placed.
func incoming(t *rapid.T, name string) *v1.Pod {
	p := testkit.RandomPod(t, name)
	p.DeletionTimestamp = nil
	switch testkit.Uniform(t, 8, "focus") { // what few random pods have
	case 0:
		testkit.AddTerms(t, p)
	case 1:
		testkit.AddConstraints(t, p)
	case 2, 3:
		testkit.AddVolumes(t, p)
	case 4: // and nothing that keeps it from getting them
		plain := testkit.Pod(name).Obj()
		p.Spec, p.Labels = plain.Spec, plain.Labels
		p.Spec.Tolerations = []v1.Toleration{{Operator: v1.TolerationOpExists}}
		testkit.AddDelayedClaims(t, p)
	}
	if rapid.IntRange(0, 9).Draw(t, "named") == 9 {
		names := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"n0", "n1", "n2", "nowhere"}), 1, 2, rapid.ID[string]).Draw(t, "names")
		if p.Spec.Affinity == nil {
			p.Spec.Affinity = &v1.Affinity{}
		}
		p.Spec.Affinity.NodeAffinity = &v1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{
			{MatchFields: []v1.NodeSelectorRequirement{{Key: metav1.ObjectNameField, Operator: v1.NodeSelectorOpIn, Values: names}}},
		}}}
	}
	if testkit.Uniform(t, 20, "of a node") == 0 {
		p.Spec.NodeName = []string{"n0", "n1", "nowhere"}[testkit.Uniform(t, 3, "its node")]
	}
	return p
}

// workloadObject returns the API object of a random workload.
func workloadObject(w *cluster.Workload) runtime.Object {
	meta := metav1.ObjectMeta{Namespace: w.Namespace, Name: w.Name}
	if w.Kind == cluster.Service {
		return &v1.Service{ObjectMeta: meta, Spec: v1.ServiceSpec{Selector: w.Set}}
	}
	// The selectors of random ReplicaSets are of one label, named as they are.
	return &appsv1.ReplicaSet{ObjectMeta: meta, Spec: appsv1.ReplicaSetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": w.Name}}}}
}
