package live

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
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
	health  *Health
	names   []string // of caches, in the order of synced
	synced  []cache.ResourceEventHandlerRegistration
	err     error // the first of adding handlers
}

// newFactory returns what makes the informers of watch. They keep what transform leaves of an
// object.
func newFactory(client kubernetes.Interface, transform cache.TransformFunc) informers.SharedInformerFactory {
	return informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithTransform(transform))
}

// watch starts informers of all that the core reads, and returns when they have
// delivered what exists; those that run already deliver it from their caches. What only the
// autoscaler reads is watched where health expects it, so that scheduling alone takes no more
// rights than kube-scheduler has. Nodes go through nodes. health learns how far the first lists
// are. An error says that the context ended first.
func watch(ctx context.Context, f informers.SharedInformerFactory, nodes *nodeFeed, health *Health, in *inbox) error {
	w := &watcher{factory: f, in: in, health: health}
	w.pods()
	w.nodes(nodes)
	w.workloads()
	if health.autoscales {
		w.jobs()
		w.daemonSets()
	}
	for _, x := range []struct {
		name     string
		informer cache.SharedIndexInformer
	}{
		{"namespaces", f.Core().V1().Namespaces().Informer()}, {"persistentvolumeclaims", f.Core().V1().PersistentVolumeClaims().Informer()},
		{"persistentvolumes", f.Core().V1().PersistentVolumes().Informer()}, {"poddisruptionbudgets", f.Policy().V1().PodDisruptionBudgets().Informer()},
		{"storageclasses", f.Storage().V1().StorageClasses().Informer()}, {"csinodes", f.Storage().V1().CSINodes().Informer()},
		{"csidrivers", f.Storage().V1().CSIDrivers().Informer()}, {"csistoragecapacities", f.Storage().V1().CSIStorageCapacities().Informer()},
		{"volumeattachments", f.Storage().V1().VolumeAttachments().Informer()},
	} {
		w.objects(w.named(x.name, x.informer))
	}
	if w.err != nil {
		return fmt.Errorf("watching: %w", w.err)
	}
	for i, name := range w.names {
		health.watched(name, w.synced[i].HasSynced)
	}
	f.Start(ctx.Done())
	if !waitForSync(ctx, w.synced) {
		return fmt.Errorf("waiting for the first list of objects: %w", context.Cause(ctx))
	}
	return nil
}

// waitForSync returns true when the handlers have been told what existed when they were added, and
// false when the context ends before.
func waitForSync(ctx context.Context, handlers []cache.ResourceEventHandlerRegistration) bool {
	var synced []cache.DoneChecker
	for _, h := range handlers {
		synced = append(synced, h.HasSyncedChecker())
	}
	return cache.WaitFor(ctx, "", synced...)
}

// named gives an informer, which has a handler next, its name among the caches of Health, which
// learns why it can't list or watch.
func (w *watcher) named(name string, i cache.SharedIndexInformer) cache.SharedIndexInformer {
	w.names = append(w.names, name)
	// The error of setting it says that the informer runs already, and has it.
	_ = i.SetWatchErrorHandlerWithContext(func(ctx context.Context, r *cache.Reflector, err error) {
		w.health.failed(name, err)
		cache.DefaultWatchErrorHandler(ctx, r, err)
	})
	return i
}

// handle has an informer's objects become inputs: set makes that of one which came or
// changed, gone that of one which was deleted.
//
// When a watch has broken and the objects are listed anew, client-go shows an object that was
// deleted and created again under its name meanwhile as an update of the old one. To the core
// it is another object (step.Input), whatever its kind: the old one is gone before the new one
// is set, and no Step sees one of the two inputs alone.
func (w *watcher) handle(i cache.SharedIndexInformer, set, gone func(obj any) step.Input) {
	w.deliver(i, set, gone, func(inputs func() []step.Input) { w.in.putTogether(inputs()...) })
}

// deliver is handle with somebody else who puts the inputs into the inbox, in the order in which
// they come.
func (w *watcher) deliver(i cache.SharedIndexInformer, set, gone func(obj any) step.Input, put func(inputs func() []step.Input)) {
	h, err := i.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) { put(func() []step.Input { return []step.Input{set(obj)} }) },
		UpdateFunc: func(old, obj any) {
			put(func() []step.Input {
				if uidOf(old) != uidOf(obj) {
					return []step.Input{gone(old), set(obj)}
				}
				return []step.Input{set(obj)}
			})
		},
		DeleteFunc: func(obj any) {
			if d, ok := obj.(cache.DeletedFinalStateUnknown); ok { // the deletion itself was missed
				obj = d.Obj
			}
			if obj == nil {
				return // client-go's store has lost the object, which client-go has logged
			}
			put(func() []step.Input { return []step.Input{gone(obj)} })
		},
	})
	if err != nil {
		if w.err == nil {
			w.err = err
		}
		return
	}
	w.synced = append(w.synced, h)
}

// uidOf returns the UID of an object that an informer delivers.
func uidOf(obj any) types.UID { return obj.(metav1.Object).GetUID() }

// pods watches the pods that aren't over: those take nothing and need nothing, and
// one that ends is shown as deleted.
func (w *watcher) pods() {
	i := w.factory.InformerFor(&v1.Pod{}, func(c kubernetes.Interface, resync time.Duration) cache.SharedIndexInformer {
		return coreinformers.NewFilteredPodInformer(c, metav1.NamespaceAll, resync, cache.Indexers{}, unfinished)
	})
	w.handle(w.named("pods", i), func(obj any) step.Input { return step.PodSet{Pod: obj.(*v1.Pod)} },
		func(obj any) step.Input { return step.PodGone{UID: obj.(*v1.Pod).UID} })
}

// unfinished has pods listed and watched that aren't over.
func unfinished(o *metav1.ListOptions) {
	o.FieldSelector = "status.phase!=Succeeded,status.phase!=Failed"
}

func (w *watcher) nodes(feed *nodeFeed) {
	w.deliver(w.named("nodes", w.factory.Core().V1().Nodes().Informer()),
		func(obj any) step.Input { return feed.set(obj.(*v1.Node)) }, func(obj any) step.Input { return feed.gone(obj.(*v1.Node)) }, feed.deliver)
}

// workloads watches what selects pods: the pods of one are spread by default.
func (w *watcher) workloads() {
	for _, i := range []cache.SharedIndexInformer{
		w.named("services", w.factory.Core().V1().Services().Informer()), w.named("replicationcontrollers", w.factory.Core().V1().ReplicationControllers().Informer()),
		w.named("replicasets", w.factory.Apps().V1().ReplicaSets().Informer()), w.named("statefulsets", w.factory.Apps().V1().StatefulSets().Informer()),
	} {
		w.workload(i)
	}
}

// jobs watches Jobs, which replace pods that are evicted.
func (w *watcher) jobs() { w.workload(w.named("jobs", w.factory.Batch().V1().Jobs().Informer())) }

func (w *watcher) workload(i cache.SharedIndexInformer) {
	w.handle(i, func(obj any) step.Input { return step.WorkloadSet{Workload: cluster.WorkloadOf(obj.(runtime.Object))} },
		func(obj any) step.Input {
			x := cluster.WorkloadOf(obj.(runtime.Object))
			return step.WorkloadGone{Kind: x.Kind, Namespace: x.Namespace, Name: x.Name}
		})
}

// daemonSets watches DaemonSets, whose templates say what a new node has to run.
func (w *watcher) daemonSets() {
	w.handle(w.named("daemonsets", w.factory.Apps().V1().DaemonSets().Informer()),
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
