package live

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/internal/testkit"
)

// describe writes an input as its type with the name of what it is about.
func describe(in step.Input) string {
	switch x := in.(type) {
	case step.PodSet:
		return "PodSet " + x.Pod.Name
	case step.PodGone:
		return fmt.Sprint("PodGone ", x.UID)
	case step.NodeSet:
		return "NodeSet " + x.Node.Name + " of " + x.Group
	case step.NodeGone:
		return "NodeGone " + x.Name
	case step.WorkloadSet:
		return fmt.Sprint("WorkloadSet ", x.Workload.Kind, " ", x.Workload.Name)
	case step.DaemonSetSet:
		return "DaemonSetSet " + x.DaemonSet.Name
	case step.WorkloadGone:
		return fmt.Sprint("WorkloadGone ", x.Kind, " ", x.Name)
	case step.ObjectSet:
		return fmt.Sprintf("ObjectSet %T %s", x.Object, x.Object.GetName())
	case step.ObjectGone:
		return fmt.Sprint("ObjectGone ", x.Kind, " ", x.Name)
	}
	return fmt.Sprintf("%T", in)
}

// TestEveryKindIsWatched has an API with one object of each kind that the core reads,
// and has those go whose going is an input of its own.
func TestEveryKindIsWatched(t *testing.T) {
	meta := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: "ns", Name: name} }
	claim := &v1.PersistentVolumeClaim{ObjectMeta: meta("claim")}
	client := fake.NewClientset(
		testkit.Pod("pod").Obj(), testkit.Node("node").Obj(),
		&v1.Service{ObjectMeta: meta("service")}, &v1.ReplicationController{ObjectMeta: meta("controller")},
		&appsv1.ReplicaSet{ObjectMeta: meta("replicas")}, &appsv1.StatefulSet{ObjectMeta: meta("stateful")}, &appsv1.DaemonSet{ObjectMeta: meta("daemons")},
		&batchv1.Job{ObjectMeta: meta("job")},
		&v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns"}}, claim, &v1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "volume"}},
		&policyv1.PodDisruptionBudget{ObjectMeta: meta("budget")}, &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "class"}},
		&storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: "csinode"}}, &storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: "driver"}},
		&storagev1.CSIStorageCapacity{ObjectMeta: meta("capacity")}, &storagev1.VolumeAttachment{ObjectMeta: metav1.ObjectMeta{Name: "attachment"}},
	)
	const kinds = 17
	watching := make(chan struct{}, kinds) // this API tells nothing of what happened between a list and a watch
	client.PrependWatchReactor("*", func(a clienttesting.Action) (bool, apiwatch.Interface, error) {
		w, err := client.Tracker().Watch(a.GetResource(), a.GetNamespace())
		watching <- struct{}{}
		return true, w, err
	})
	in, health := newInbox(), NewHealth(false)
	if err := watch(t.Context(), newFactory(client, transformFor(false)), func(n *v1.Node) string { return "group of " + n.Name }, health, in); err != nil {
		t.Fatal(err)
	}
	if got, want := health.Caches(), NewHealth(false).Caches(); len(got) != kinds || !slices.Equal(got, want) {
		t.Errorf("the caches are %q, and were %q at first; want %d, one for each kind, from the first on", got, want, kinds)
	}
	expect := func(what string, want ...string) {
		t.Helper()
		var got []string
		for len(got) < len(want) {
			<-in.signal
			for _, x := range in.take() {
				got = append(got, describe(x))
			}
		}
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", what, got, want)
		}
	}
	expect("what exists",
		"DaemonSetSet daemons", "NodeSet node of group of node",
		"ObjectSet *v1.CSIDriver driver", "ObjectSet *v1.CSINode csinode", "ObjectSet *v1.CSIStorageCapacity capacity", "ObjectSet *v1.Namespace ns",
		"ObjectSet *v1.PersistentVolume volume", "ObjectSet *v1.PersistentVolumeClaim claim", "ObjectSet *v1.PodDisruptionBudget budget",
		"ObjectSet *v1.StorageClass class", "ObjectSet *v1.VolumeAttachment attachment", "PodSet pod",
		fmt.Sprint("WorkloadSet ", cluster.ReplicaSet, " replicas"), fmt.Sprint("WorkloadSet ", cluster.ReplicationController, " controller"),
		fmt.Sprint("WorkloadSet ", cluster.Service, " service"), fmt.Sprint("WorkloadSet ", cluster.StatefulSet, " stateful"),
		fmt.Sprint("WorkloadSet ", cluster.Job, " job"))
	for range kinds {
		<-watching
	}
	for _, err := range []error{
		client.CoreV1().Pods("default").Delete(t.Context(), "pod", metav1.DeleteOptions{}),
		client.CoreV1().Nodes().Delete(t.Context(), "node", metav1.DeleteOptions{}),
		client.CoreV1().Services("ns").Delete(t.Context(), "service", metav1.DeleteOptions{}),
		client.AppsV1().DaemonSets("ns").Delete(t.Context(), "daemons", metav1.DeleteOptions{}),
		client.CoreV1().PersistentVolumeClaims("ns").Delete(t.Context(), "claim", metav1.DeleteOptions{}),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	expect("what goes", "PodGone pod-pod", "NodeGone node", fmt.Sprint("WorkloadGone ", cluster.Service, " service"),
		fmt.Sprint("WorkloadGone ", cluster.DaemonSet, " daemons"), fmt.Sprint("ObjectGone ", cluster.KindOf(claim), " claim"))
}

// handled is an informer of which only the handler counts.
type handled struct {
	cache.SharedIndexInformer
	handler cache.ResourceEventHandler
}

type registration struct {
	cache.ResourceEventHandlerRegistration
}

func (h *handled) AddEventHandler(handler cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	h.handler = handler
	return registration{}, nil
}

// TestADeletionThatWasMissedIsAnInput plays an informer's events by hand, since one
// can't have a watch miss a deletion on demand.
func TestADeletionThatWasMissedIsAnInput(t *testing.T) {
	w, h := &watcher{in: newInbox()}, &handled{}
	w.objects(h)
	claim := &v1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c"}}
	h.handler.OnAdd(claim, true)
	h.handler.OnUpdate(claim, claim)
	h.handler.OnDelete(claim)
	h.handler.OnDelete(cache.DeletedFinalStateUnknown{Obj: claim})
	var got []string
	for _, x := range w.in.take() {
		got = append(got, describe(x))
	}
	set, gone := "ObjectSet *v1.PersistentVolumeClaim c", fmt.Sprint("ObjectGone ", cluster.KindOf(claim), " c")
	if want := []string{set, set, gone, gone}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestWatchingEndsWithTheContext says why.
func TestWatchingEndsWithTheContext(t *testing.T) {
	ctx, stop := context.WithCancelCause(t.Context())
	why := errors.New("told to")
	stop(why)
	err := watch(ctx, newFactory(fake.NewClientset(), transformFor(false)), func(*v1.Node) string { return "" }, NewHealth(false), newInbox())
	if !errors.Is(err, why) {
		t.Errorf("got %v, want %v", err, why)
	}
}
