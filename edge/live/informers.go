package live

import (
	"context"
	"fmt"
	"time"
	"unique"

	"github.com/berthproject/berth/core/step"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/berthproject/berth/core/cluster"
)

// watch starts informers that fill the inbox, and returns when they have
// delivered what exists. They keep what transform leaves of an object.
func watch(ctx context.Context, client kubernetes.Interface, groupOf func(*v1.Node) string, transform cache.TransformFunc, in *inbox) (informers.SharedInformerFactory, error) {
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithTransform(transform))
	var synced []cache.InformerSynced
	add := func(i cache.SharedIndexInformer, set func(obj any), gone func(obj any)) error {
		h, err := i.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc:    set,
			UpdateFunc: func(_, obj any) { set(obj) },
			DeleteFunc: func(obj any) {
				if d, ok := obj.(cache.DeletedFinalStateUnknown); ok {
					obj = d.Obj
				}
				gone(obj)
			},
		})
		if err != nil {
			return fmt.Errorf("watching: %w", err)
		}
		synced = append(synced, h.HasSynced)
		return nil
	}
	workload := func(obj any) { in.put(step.WorkloadSet{Workload: cluster.WorkloadOf(obj.(runtime.Object))}) }
	workloadGone := func(obj any) {
		w := cluster.WorkloadOf(obj.(runtime.Object))
		in.put(step.WorkloadGone{Kind: w.Kind, Namespace: w.Namespace, Name: w.Name})
	}
	pods := factory.InformerFor(&v1.Pod{}, func(c kubernetes.Interface, resync time.Duration) cache.SharedIndexInformer {
		// Pods that are over take nothing and need nothing.
		return coreinformers.NewFilteredPodInformer(c, metav1.NamespaceAll, resync, cache.Indexers{}, func(o *metav1.ListOptions) {
			o.FieldSelector = "status.phase!=Succeeded,status.phase!=Failed"
		})
	})
	object := func(obj any) { in.put(step.ObjectSet{Object: obj.(cluster.Object)}) }
	objectGone := func(obj any) {
		o := obj.(cluster.Object)
		in.put(step.ObjectGone{Kind: cluster.KindOf(o), Namespace: o.GetNamespace(), Name: o.GetName()})
	}
	storage := factory.Storage().V1()
	for _, err := range []error{
		add(factory.Core().V1().Namespaces().Informer(), object, objectGone),
		add(factory.Core().V1().PersistentVolumeClaims().Informer(), object, objectGone),
		add(factory.Core().V1().PersistentVolumes().Informer(), object, objectGone),
		add(factory.Policy().V1().PodDisruptionBudgets().Informer(), object, objectGone),
		add(storage.StorageClasses().Informer(), object, objectGone),
		add(storage.CSINodes().Informer(), object, objectGone),
		add(storage.CSIDrivers().Informer(), object, objectGone),
		add(storage.CSIStorageCapacities().Informer(), object, objectGone),
		add(storage.VolumeAttachments().Informer(), object, objectGone),
		add(factory.Core().V1().Nodes().Informer(),
			func(obj any) { n := obj.(*v1.Node); in.put(step.NodeSet{Node: n, Group: groupOf(n)}) },
			func(obj any) { in.put(step.NodeGone{Name: obj.(*v1.Node).Name}) }),
		add(pods,
			func(obj any) { in.put(step.PodSet{Pod: obj.(*v1.Pod)}) },
			func(obj any) { in.put(step.PodGone{UID: obj.(*v1.Pod).UID}) }),
		add(factory.Core().V1().Services().Informer(), workload, workloadGone),
		add(factory.Core().V1().ReplicationControllers().Informer(), workload, workloadGone),
		add(factory.Apps().V1().ReplicaSets().Informer(), workload, workloadGone),
		add(factory.Apps().V1().StatefulSets().Informer(), workload, workloadGone),
		add(factory.Apps().V1().DaemonSets().Informer(),
			func(obj any) { in.put(step.DaemonSetSet{DaemonSet: obj.(*appsv1.DaemonSet)}) },
			func(obj any) {
				d := obj.(*appsv1.DaemonSet)
				in.put(step.WorkloadGone{Kind: cluster.DaemonSet, Namespace: d.Namespace, Name: d.Name})
			}),
	} {
		if err != nil {
			return nil, err
		}
	}
	factory.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), synced...) {
		return nil, fmt.Errorf("waiting for the first list of objects: %w", context.Cause(ctx))
	}
	return factory, nil
}

// transformFor returns what drops from an object what isn't needed, before the informer keeps
// it: so 50,000 pods fit into memory. Of most kinds that leaves what Berth reads
// (cluster.Trim). More is kept of what Berth hands on:
//
//   - claims and volumes are written back, whole;
//   - a provider tells by a node's annotations which group it is of;
//   - extenders are sent pods and nodes, and may read anything there but for what
//     is large and says nothing about where a pod may run.
func transformFor(extenders bool) cache.TransformFunc {
	return func(obj any) (any, error) {
		switch o := obj.(type) {
		case *v1.PersistentVolumeClaim, *v1.PersistentVolume:
			o.(metav1.Object).SetManagedFields(nil)
			return o, nil
		case *v1.Node:
			return slimNode(o), nil
		case *v1.Pod:
			if extenders {
				return slimPod(o), nil
			}
		}
		if o, ok := obj.(metav1.Object); ok {
			return cluster.Trim(o), nil
		}
		return obj, nil
	}
}

// slimNode keeps nearly all of a node: there are few. The names of images are
// shared, because most nodes have the same.
func slimNode(o *v1.Node) *v1.Node {
	o.SetManagedFields(nil)
	o.Status.VolumesInUse, o.Status.VolumesAttached = nil, nil
	for i := range o.Status.Images {
		for k, name := range o.Status.Images[i].Names {
			o.Status.Images[i].Names[k] = unique.Make(name).Value()
		}
	}
	return o
}

// slimPod keeps of a pod's containers what Berth reads, and all else.
func slimPod(o *v1.Pod) *v1.Pod {
	o.SetManagedFields(nil)
	delete(o.Annotations, v1.LastAppliedConfigAnnotation)
	read := cluster.Trim(o)
	o.Spec.InitContainers, o.Spec.Containers = read.Spec.InitContainers, read.Spec.Containers
	return o
}
