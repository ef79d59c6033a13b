package live

import (
	"context"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/step"
)

// caches have all that the core reads of the API, kind by kind. Of one object, inputs come in the
// order in which it changed; nothing waits for the core.
type caches struct {
	kinds []*kind
	start sync.Once
	// Those that others look things up in.
	pods, nodes, claims, volumes, csiNodes *kind
}

// newCaches returns empty caches, which keep what transform leaves of an object. What only the
// autoscaler reads is among them where health expects it, so that scheduling alone takes no more
// rights than kube-scheduler has. health learns how far the first lists are.
func newCaches(client kubernetes.Interface, transform cache.TransformFunc, health *Health) *caches {
	core, apps, storage := client.CoreV1(), client.AppsV1(), client.StorageV1()
	m := &maker{client: client, transform: transform, health: health}
	c := &caches{
		pods: add(m, "pods", &v1.Pod{}, core.Pods(v1.NamespaceAll), unfinished,
			func(o any) step.Input { return step.PodSet{Pod: o.(*v1.Pod)} }, func(o any) step.Input { return step.PodGone{UID: o.(*v1.Pod).UID} }),
		nodes:    add(m, "nodes", &v1.Node{}, core.Nodes(), nil, nil, nil), // by a feed
		claims:   object(m, "persistentvolumeclaims", &v1.PersistentVolumeClaim{}, core.PersistentVolumeClaims(v1.NamespaceAll)),
		volumes:  object(m, "persistentvolumes", &v1.PersistentVolume{}, core.PersistentVolumes()),
		csiNodes: object(m, "csinodes", &storagev1.CSINode{}, storage.CSINodes()),
	}
	// What selects pods: the pods of one are spread by default.
	workload(m, "services", &v1.Service{}, core.Services(v1.NamespaceAll))
	workload(m, "replicationcontrollers", &v1.ReplicationController{}, core.ReplicationControllers(v1.NamespaceAll))
	workload(m, "replicasets", &appsv1.ReplicaSet{}, apps.ReplicaSets(v1.NamespaceAll))
	workload(m, "statefulsets", &appsv1.StatefulSet{}, apps.StatefulSets(v1.NamespaceAll))
	if health.autoscales {
		// Jobs replace pods that are evicted; the templates of DaemonSets say what a new node has to run.
		workload(m, "jobs", &batchv1.Job{}, client.BatchV1().Jobs(v1.NamespaceAll))
		add(m, "daemonsets", &appsv1.DaemonSet{}, apps.DaemonSets(v1.NamespaceAll), nil,
			func(o any) step.Input { return step.DaemonSetSet{DaemonSet: o.(*appsv1.DaemonSet)} }, workloadGone)
	}
	// What rules read as it stands.
	object(m, "namespaces", &v1.Namespace{}, core.Namespaces())
	object(m, "poddisruptionbudgets", &policyv1.PodDisruptionBudget{}, client.PolicyV1().PodDisruptionBudgets(v1.NamespaceAll))
	object(m, "storageclasses", &storagev1.StorageClass{}, storage.StorageClasses())
	object(m, "csidrivers", &storagev1.CSIDriver{}, storage.CSIDrivers())
	object(m, "csistoragecapacities", &storagev1.CSIStorageCapacity{}, storage.CSIStorageCapacities(v1.NamespaceAll))
	object(m, "volumeattachments", &storagev1.VolumeAttachment{}, storage.VolumeAttachments())
	c.kinds = m.kinds
	return c
}

// maker makes kinds.
type maker struct {
	client    kubernetes.Interface
	transform cache.TransformFunc
	health    *Health
	kinds     []*kind
}

func add[L runtime.Object](m *maker, name string, o runtime.Object, api listed[L], match func(*metav1.ListOptions), set, gone func(any) step.Input) *kind {
	k := newKind(name, o, api, m.client, match, m.transform, func(err error) { m.health.failed(name, err) }, set, gone)
	m.health.watched(name, k.isFull)
	m.kinds = append(m.kinds, k)
	return k
}

func workload[L runtime.Object](m *maker, name string, o runtime.Object, api listed[L]) *kind {
	return add(m, name, o, api, nil, func(o any) step.Input { return step.WorkloadSet{Workload: cluster.WorkloadOf(o.(runtime.Object))} }, workloadGone)
}

func workloadGone(o any) step.Input {
	x := cluster.WorkloadOf(o.(runtime.Object))
	return step.WorkloadGone{Kind: x.Kind, Namespace: x.Namespace, Name: x.Name}
}

func object[L runtime.Object](m *maker, name string, o runtime.Object, api listed[L]) *kind {
	return add(m, name, o, api, nil, objectSet, objectGone)
}

func objectSet(o any) step.Input { return step.ObjectSet{Object: o.(cluster.Object)} }

func objectGone(o any) step.Input {
	x := o.(cluster.Object)
	return step.ObjectGone{Kind: cluster.KindOf(x), Namespace: x.GetNamespace(), Name: x.GetName()}
}

// unfinished has pods listed and watched that aren't over: those take nothing and need nothing, and
// one that ends is shown as deleted.
func unfinished(o *metav1.ListOptions) {
	o.FieldSelector = "status.phase!=Succeeded,status.phase!=Failed"
}

// tell has an inbox told of all that there is and of what changes from then on, in place of the
// one that was told before. Nodes go through a feed into the same inbox.
func (c *caches) tell(nodes *nodeFeed, in *inbox) {
	for _, k := range c.kinds {
		if k != c.nodes {
			k.tell(func(inputs func() []step.Input) { in.putTogether(inputs()...) }, k.set, k.gone)
			continue
		}
		k.tell(nodes.deliver, func(o any) step.Input { return nodes.set(o.(*v1.Node)) }, func(o any) step.Input { return nodes.gone(o.(*v1.Node)) })
	}
}

// run lists and watches all kinds until the context ends, and returns when the caches are full; the
// second time at once. An error says that the context ended first.
func (c *caches) run(ctx context.Context, wg *sync.WaitGroup) error {
	c.start.Do(func() {
		for _, k := range c.kinds {
			wg.Go(func() { k.reflector.RunWithContext(ctx) })
		}
	})
	for _, k := range c.kinds {
		if err := k.wait(ctx); err != nil {
			return err
		}
	}
	return nil
}
