package live

import (
	"context"
	"log/slog"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/edge/follow"
)

// caches have all that the core reads of the API, kind by kind. Of one object, inputs come in the
// order in which it changed; nothing waits for the core.
type caches struct {
	kinds []*kind
	start sync.Once
	// Those that others look things up in.
	pods, nodes, claims, volumes, csiNodes, resourceClaims *kind
}

// newCaches returns empty caches, which keep what transform leaves of an object. What only the
// autoscaler reads is among them where health expects it, so that scheduling alone takes no more
// rights than kube-scheduler has. health learns how far the first lists are, and log which rights are
// missing that Berth can do without.
func newCaches(client kubernetes.Interface, transform cache.TransformFunc, health *Health, log *slog.Logger) *caches {
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
	resource := client.ResourceV1()
	optional(m, log, resourcev1.SchemeGroupVersion.WithResource("deviceclasses"), &resourcev1.DeviceClass{}, resource.DeviceClasses(), &resourcev1.DeviceClassList{})
	optional(m, log, resourcev1.SchemeGroupVersion.WithResource("resourceslices"), &resourcev1.ResourceSlice{}, resource.ResourceSlices(), &resourcev1.ResourceSliceList{})
	c.resourceClaims = optional(m, log, resourcev1.SchemeGroupVersion.WithResource("resourceclaims"), &resourcev1.ResourceClaim{}, resource.ResourceClaims(v1.NamespaceAll), &resourcev1.ResourceClaimList{})
	optional(m, log, resourcev1.SchemeGroupVersion.WithResource("devicetaintrules"), &resourcev1.DeviceTaintRule{}, resource.DeviceTaintRules(), &resourcev1.DeviceTaintRuleList{})
	optional(m, log, schedulingv1beta1.SchemeGroupVersion.WithResource("podgroups"), &schedulingv1beta1.PodGroup{}, client.SchedulingV1beta1().PodGroups(v1.NamespaceAll), &schedulingv1beta1.PodGroupList{})
	c.kinds = m.kinds
	return c
}

// kind is the cache of one kind of objects.
type kind struct {
	*follow.Cache
	// set makes the input of an object that came or changed, gone that of one which was deleted.
	set, gone func(object any) step.Input
}

// tell tells an inbox of all that the cache has and of what changes from then on, by inputs that
// set and gone make; put puts them there. An object that takes the name of another one is another
// object to the core (step.Input), whatever its kind: the old one is gone before the new one is set,
// and no Step sees one of the two inputs alone.
func (k *kind) tell(put func(inputs func() []step.Input), set, gone func(object any) step.Input) {
	k.Tell(follow.Reader{
		Set:  func(object any) { put(func() []step.Input { return []step.Input{set(object)} }) },
		Gone: func(object any) { put(func() []step.Input { return []step.Input{gone(object)} }) },
		Replaced: func(old, object any) {
			put(func() []step.Input { return []step.Input{gone(old), set(object)} })
		},
	})
}

// maker makes kinds.
type maker struct {
	client    kubernetes.Interface
	transform cache.TransformFunc
	health    *Health
	kinds     []*kind
}

func add[L runtime.Object](m *maker, name string, o runtime.Object, api follow.Lister[L], match func(*metav1.ListOptions), set, gone func(any) step.Input) *kind {
	k := &kind{follow.New(name, o, api, m.client, follow.Options{Match: match, Transform: m.transform, Outcome: m.health.outcomesOf(name)}), set, gone}
	m.health.watched(name, k.Full)
	m.kinds = append(m.kinds, k)
	return k
}

func workload[L runtime.Object](m *maker, name string, o runtime.Object, api follow.Lister[L]) *kind {
	return add(m, name, o, api, nil, func(o any) step.Input { return step.WorkloadSet{Workload: cluster.WorkloadOf(o.(runtime.Object))} }, workloadGone)
}

func workloadGone(o any) step.Input {
	x := cluster.WorkloadOf(o.(runtime.Object))
	return step.WorkloadGone{Kind: x.Kind, Namespace: x.Namespace, Name: x.Name}
}

func object[L runtime.Object](m *maker, name string, o runtime.Object, api follow.Lister[L]) *kind {
	return add(m, name, o, api, nil, objectSet, objectGone)
}

// optional is an object of a kind that the API server may not serve, or that Berth may not read.
func optional[L runtime.Object](m *maker, log *slog.Logger, at schema.GroupVersionResource, o runtime.Object, api follow.Lister[L], empty L) *kind {
	served := func() (bool, error) { return kindServed(m.client.Discovery(), at) }
	return object(m, at.Resource, o, &whereServed[L]{api: api, empty: empty, served: served, log: log})
}

func objectSet(o any) step.Input { return step.ObjectSet{Object: o.(cluster.Object)} }

func objectGone(o any) step.Input {
	x := o.(cluster.Object)
	return step.ObjectGone{Kind: cluster.KindOf(x), Namespace: x.GetNamespace(), Name: x.GetName()}
}

// unfinished selects the pods that aren't over. Those that are take nothing and need nothing, and
// one that ends is shown as deleted.
func unfinished(o *metav1.ListOptions) {
	o.FieldSelector = "status.phase!=Succeeded,status.phase!=Failed"
}

// tell tells an inbox of all that there is and of what changes from then on, in place of the
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
			wg.Go(func() { k.Run(ctx) })
		}
	})
	for _, k := range c.kinds {
		if err := k.Wait(ctx); err != nil {
			return err
		}
	}
	return nil
}

// catchUp returns when whatever was written of the pods, the nodes and the resource claims before the
// call is in the inbox, or with an error at the end of the context. Who decided by old caches would
// take room and devices that the leader before has given away since, and buy nodes for pods that have
// theirs. Of other kinds a leader writes only what the API server refuses to whoever has an old
// version of it.
func (c *caches) catchUp(ctx context.Context) error {
	return follow.CatchUp(ctx, c.pods.Cache, c.nodes.Cache, c.resourceClaims.Cache)
}

// resourceClaimCache implements claimCache.
type resourceClaimCache struct{ *follow.Cache }

func (c resourceClaimCache) get(namespace, name string) *resourcev1.ResourceClaim {
	object, ok, err := c.Objects().GetByKey(namespace + "/" + name)
	if err != nil || !ok {
		return nil
	}
	return object.(*resourcev1.ResourceClaim)
}

func (c resourceClaimCache) reached(version string) bool { return c.Reached(version) }
