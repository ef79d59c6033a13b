package live

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/step"
)

// watcher turns what informers deliver into inputs. Of one object they come in the
// order in which it changed; nothing waits for the core. There is no resync: the
// core keeps what it was told, and looks again by itself.
type watcher struct {
	factory informers.SharedInformerFactory
	in      *inbox
	synced  []cache.InformerSynced
	err     error // the first of adding handlers
}

// watch starts informers of all that the core reads, and returns when they have
// delivered what exists. groupOf tells a node's group, "" for none. They keep what
// transform leaves of an object. An error says that the context ended first.
func watch(ctx context.Context, client kubernetes.Interface, groupOf func(*v1.Node) string, transform cache.TransformFunc, in *inbox) (informers.SharedInformerFactory, error) {
	f := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithTransform(transform))
	w := &watcher{factory: f, in: in}
	w.pods()
	w.nodes(groupOf)
	w.workloads()
	for _, i := range []interface {
		Informer() cache.SharedIndexInformer
	}{
		f.Core().V1().Namespaces(), f.Core().V1().PersistentVolumeClaims(), f.Core().V1().PersistentVolumes(),
		f.Policy().V1().PodDisruptionBudgets(), f.Storage().V1().StorageClasses(), f.Storage().V1().CSINodes(), f.Storage().V1().CSIDrivers(),
		f.Storage().V1().CSIStorageCapacities(), f.Storage().V1().VolumeAttachments(),
	} {
		w.objects(i.Informer())
	}
	if w.err != nil {
		return nil, fmt.Errorf("watching: %w", w.err)
	}
	f.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), w.synced...) {
		return nil, fmt.Errorf("waiting for the first list of objects: %w", context.Cause(ctx))
	}
	return f, nil
}

// handle has an informer's objects become inputs: set makes that of one which came or
// changed, gone that of one which was deleted.
func (w *watcher) handle(i cache.SharedIndexInformer, set, gone func(obj any) step.Input) {
	h, err := i.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { w.in.put(set(obj)) },
		UpdateFunc: func(_, obj any) { w.in.put(set(obj)) },
		DeleteFunc: func(obj any) {
			if d, ok := obj.(cache.DeletedFinalStateUnknown); ok { // the deletion itself was missed
				obj = d.Obj
			}
			w.in.put(gone(obj))
		},
	})
	if err != nil {
		if w.err == nil {
			w.err = err
		}
		return
	}
	w.synced = append(w.synced, h.HasSynced)
}

// pods watches the pods that aren't over: those take nothing and need nothing, and
// one that ends is shown as deleted.
func (w *watcher) pods() {
	i := w.factory.InformerFor(&v1.Pod{}, func(c kubernetes.Interface, resync time.Duration) cache.SharedIndexInformer {
		return coreinformers.NewFilteredPodInformer(c, metav1.NamespaceAll, resync, cache.Indexers{}, func(o *metav1.ListOptions) {
			o.FieldSelector = "status.phase!=Succeeded,status.phase!=Failed"
		})
	})
	w.handle(i, func(obj any) step.Input { return step.PodSet{Pod: obj.(*v1.Pod)} },
		func(obj any) step.Input { return step.PodGone{UID: obj.(*v1.Pod).UID} })
}

func (w *watcher) nodes(groupOf func(*v1.Node) string) {
	w.handle(w.factory.Core().V1().Nodes().Informer(),
		func(obj any) step.Input { n := obj.(*v1.Node); return step.NodeSet{Node: n, Group: groupOf(n)} },
		func(obj any) step.Input { return step.NodeGone{Name: obj.(*v1.Node).Name} })
}

// workloads watches what selects pods or keeps up a number of them, and the DaemonSets,
// whose templates say what a new node has to run.
func (w *watcher) workloads() {
	gone := func(obj any) step.Input {
		x := cluster.WorkloadOf(obj.(runtime.Object))
		return step.WorkloadGone{Kind: x.Kind, Namespace: x.Namespace, Name: x.Name}
	}
	for _, i := range []cache.SharedIndexInformer{
		w.factory.Core().V1().Services().Informer(), w.factory.Core().V1().ReplicationControllers().Informer(),
		w.factory.Apps().V1().ReplicaSets().Informer(), w.factory.Apps().V1().StatefulSets().Informer(), w.factory.Batch().V1().Jobs().Informer(),
	} {
		w.handle(i, func(obj any) step.Input { return step.WorkloadSet{Workload: cluster.WorkloadOf(obj.(runtime.Object))} }, gone)
	}
	w.handle(w.factory.Apps().V1().DaemonSets().Informer(),
		func(obj any) step.Input { return step.DaemonSetSet{DaemonSet: obj.(*appsv1.DaemonSet)} },
		func(obj any) step.Input {
			d := obj.(*appsv1.DaemonSet)
			return step.WorkloadGone{Kind: cluster.DaemonSet, Namespace: d.Namespace, Name: d.Name}
		})
}

// objects watches what rules read as it stands.
func (w *watcher) objects(i cache.SharedIndexInformer) {
	w.handle(i, func(obj any) step.Input { return step.ObjectSet{Object: obj.(cluster.Object)} },
		func(obj any) step.Input {
			o := obj.(cluster.Object)
			return step.ObjectGone{Kind: cluster.KindOf(o), Namespace: o.GetNamespace(), Name: o.GetName()}
		})
}
