package live

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/kubernetes/scheme"
	clienttesting "k8s.io/client-go/testing"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/internal/test/testkit"
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

// fillCaches fills caches from an API, and has an inbox told of them until the test ends.
func fillCaches(t *testing.T, client kubernetes.Interface, nodes *nodeFeed, health *Health, in *inbox) {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	t.Cleanup(wg.Wait)
	t.Cleanup(stop)
	c := newCaches(client, transformFor(false), health, slog.New(slog.DiscardHandler))
	c.tell(nodes, in)
	if err := c.run(ctx, &wg); err != nil {
		t.Fatal(err)
	}
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
		testkit.DeviceClass("devices", "example.com/gpu"), &resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: "slice"}},
		&resourcev1.ResourceClaim{ObjectMeta: meta("gpus")}, &resourcev1.DeviceTaintRule{ObjectMeta: metav1.ObjectMeta{Name: "taint"}},
		&schedulingv1beta1.PodGroup{ObjectMeta: meta("gang")},
	)
	const kinds = 22
	watching := make(chan struct{}, kinds) // this API tells nothing of what happened between a list and a watch
	client.PrependWatchReactor("*", func(a clienttesting.Action) (bool, apiwatch.Interface, error) {
		w, err := client.Tracker().Watch(a.GetResource(), a.GetNamespace())
		watching <- struct{}{}
		return true, w, err
	})
	in, health := newInbox(), NewHealth(true)
	fillCaches(t, client, newNodeFeed(func(n *v1.Node) string { return "group of " + n.Name }, in.putTogether), health, in)
	if got, want := health.Caches(), NewHealth(true).Caches(); len(got) != kinds+1 || !slices.Equal(got, want) { // headroom is watched elsewhere
		t.Errorf("the caches are %q, and were %q at first; want %d, one for each kind and headroom, from the first on", got, want, kinds+1)
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
		"ObjectSet *v1.StorageClass class", "ObjectSet *v1.VolumeAttachment attachment", "ObjectSet *v1.DeviceClass devices", "ObjectSet *v1beta1.PodGroup gang", "PodSet pod",
		"ObjectSet *v1.ResourceSlice slice", "ObjectSet *v1.ResourceClaim gpus", "ObjectSet *v1.DeviceTaintRule taint",
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

// objectsOfEveryKind returns one object of each kind that the core reads, with UIDs of their own.
func objectsOfEveryKind(uid types.UID) []runtime.Object {
	meta := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: "ns", Name: name, UID: uid} }
	global := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Name: name, UID: uid} }
	return []runtime.Object{
		&v1.Pod{ObjectMeta: meta("pod")}, &v1.Node{ObjectMeta: global("node")},
		&v1.Service{ObjectMeta: meta("service")}, &v1.ReplicationController{ObjectMeta: meta("controller")},
		&appsv1.ReplicaSet{ObjectMeta: meta("replicas")}, &appsv1.StatefulSet{ObjectMeta: meta("stateful")}, &appsv1.DaemonSet{ObjectMeta: meta("daemons")},
		&batchv1.Job{ObjectMeta: meta("job")},
		&v1.Namespace{ObjectMeta: global("ns")}, &v1.PersistentVolumeClaim{ObjectMeta: meta("claim")}, &v1.PersistentVolume{ObjectMeta: global("volume")},
		&policyv1.PodDisruptionBudget{ObjectMeta: meta("budget")}, &storagev1.StorageClass{ObjectMeta: global("class")},
		&storagev1.CSINode{ObjectMeta: global("csinode")}, &storagev1.CSIDriver{ObjectMeta: global("driver")},
		&storagev1.CSIStorageCapacity{ObjectMeta: meta("capacity")}, &storagev1.VolumeAttachment{ObjectMeta: global("attachment")},
		&resourcev1.DeviceClass{ObjectMeta: global("devices")}, &resourcev1.ResourceSlice{ObjectMeta: global("slice")},
		&resourcev1.ResourceClaim{ObjectMeta: meta("gpus")}, &resourcev1.DeviceTaintRule{ObjectMeta: global("taint")},
		&schedulingv1beta1.PodGroup{ObjectMeta: meta("gang")},
	}
}

// subject returns what an input is about: the kind and the name of its object, and whether
// it says that the object is gone.
func subject(in step.Input) (what string, gone bool) {
	switch x := in.(type) {
	case step.PodSet:
		return "Pod " + x.Pod.Name, false
	case step.PodGone:
		return "Pod pod", x.UID == "old" // there is only one, and it must be the old one that is gone
	case step.NodeSet:
		return "Node " + x.Node.Name, false
	case step.NodeGone:
		return "Node " + x.Name, true
	case step.WorkloadSet:
		return fmt.Sprint(x.Workload.Kind, " ", x.Workload.Name), false
	case step.DaemonSetSet:
		return "DaemonSet " + x.DaemonSet.Name, false
	case step.WorkloadGone:
		return fmt.Sprint(x.Kind, " ", x.Name), true
	case step.ObjectSet:
		return fmt.Sprint(cluster.KindOf(x.Object), " ", x.Object.GetName()), false
	case step.ObjectGone:
		return fmt.Sprint(x.Kind, " ", x.Name), true
	}
	return fmt.Sprintf("%T", in), false
}

// TestANameUsedAgainAcrossARelistIsADeletionAndAnAddition has all watches end with 410 while
// every object is deleted and created anew under its name. client-go shows that as an update;
// the core must be told of the deletion and then of the addition, in one Step.
func TestANameUsedAgainAcrossARelistIsADeletionAndAnAddition(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset(objectsOfEveryKind("old")...)
		var mu sync.Mutex
		var watches []*apiwatch.FakeWatcher
		client.PrependWatchReactor("*", func(clienttesting.Action) (bool, apiwatch.Interface, error) {
			mu.Lock()
			defer mu.Unlock()
			w := apiwatch.NewFake()
			watches = append(watches, w)
			return true, w, nil
		})
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		in := newInbox()
		var wg sync.WaitGroup
		c := newCaches(client, transformFor(false), NewHealth(true), slog.New(slog.DiscardHandler))
		c.tell(newNodeFeed(func(*v1.Node) string { return "" }, in.putTogether), in)
		if err := c.run(ctx, &wg); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		in.take()
		for _, o := range objectsOfEveryKind("new") {
			gvks, _, err := scheme.Scheme.ObjectKinds(o)
			if err != nil {
				t.Fatal(err)
			}
			gvr, _ := meta.UnsafeGuessKindToResource(gvks[0])
			if err := client.Tracker().Update(gvr, o, o.(metav1.Object).GetNamespace()); err != nil {
				t.Fatal(err)
			}
		}
		expired := apierrors.NewResourceExpired("the resource version is too old").ErrStatus
		for _, w := range slices.Clone(watches) {
			w.Error(&expired)
		}
		time.Sleep(time.Minute) // of the bubble: reflectors wait before they list again
		synctest.Wait()
		got := in.take()
		if len(got) != 2*len(objectsOfEveryKind("")) {
			t.Errorf("%d inputs for %d objects, want two each: %v", len(got), len(objectsOfEveryKind("")), got)
		}
		for i := 0; i+1 < len(got); i += 2 {
			a, gone := subject(got[i])
			b, goneToo := subject(got[i+1])
			if a != b || !gone || goneToo {
				t.Errorf("got %s (gone: %t), %s (gone: %t), want the same object gone and then set", a, gone, b, goneToo)
			}
		}
		stop()
		wg.Wait()
	})
}

// TestAListIsTriedAgainSoon refuses the lists of pods for a while: client-go's own reflectors would
// wait for up to a minute then.
func TestAListIsTriedAgainSoon(t *testing.T) {
	testkit.WithoutErrorBackoff(t)
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset()
		var refused atomic.Pointer[time.Time]
		client.PrependReactor("list", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
			refused.Store(new(time.Now()))
			return true, nil, apierrors.NewInternalError(errors.New("refused"))
		})
		ctx, stop := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		health := NewHealth(false)
		c := newCaches(client, transformFor(false), health, slog.New(slog.DiscardHandler))
		ended := make(chan error, 1)
		go func() { ended <- c.run(ctx, &wg) }()
		for range 20 {
			time.Sleep(30 * time.Second)
			synctest.Wait()
			if ago := time.Since(*refused.Load()); ago > 2500*time.Millisecond {
				t.Errorf("the last attempt to list is %s ago", ago)
			}
		}
		if err := health.Cache("pods"); err == nil || !strings.Contains(err.Error(), "refused") {
			t.Errorf("health says of the pods: %v", err)
		}
		stop()
		if err := <-ended; !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "pods") {
			t.Errorf("got %v, want that the context was cancelled, and which list is missing", err)
		}
		wg.Wait()
	})
}

// TestSchedulingAloneWatchesWhatKubeSchedulerWatches: the user that kubeadm makes for
// kube-scheduler may neither list Jobs nor DaemonSets, which only the autoscaler reads.
func TestSchedulingAloneWatchesWhatKubeSchedulerWatches(t *testing.T) {
	client := fake.NewClientset()
	health := NewHealth(false)
	fillCaches(t, client, newNodeFeed(func(*v1.Node) string { return "" }, newInbox().putTogether), health, newInbox())
	for _, a := range client.Actions() {
		if r := a.GetResource().Resource; r == "jobs" || r == "daemonsets" {
			t.Errorf("it asks to %s %s", a.GetVerb(), r)
		}
	}
	if got := health.Caches(); len(got) != 20 || slices.Contains(got, "jobs") || slices.Contains(got, "daemonsets") {
		t.Errorf("the caches are %q", got)
	}
}

// TestWatchingEndsWithTheContext says why.
func TestWatchingEndsWithTheContext(t *testing.T) {
	ctx, stop := context.WithCancelCause(t.Context())
	why := errors.New("told to")
	stop(why)
	var wg sync.WaitGroup
	err := newCaches(fake.NewClientset(), transformFor(false), NewHealth(false), slog.New(slog.DiscardHandler)).run(ctx, &wg)
	wg.Wait()
	if !errors.Is(err, why) {
		t.Errorf("got %v, want %v", err, why)
	}
}

// TestLeadersCatchUpWithClaims: before an instance takes over it asks how new the kinds are by which
// room and devices would be given away twice.
func TestLeadersCatchUpWithClaims(t *testing.T) {
	client := fake.NewClientset()
	c := newCaches(client, transformFor(false), NewHealth(false), slog.New(slog.DiscardHandler))
	if err := c.catchUp(t.Context()); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, a := range client.Actions() {
		got = append(got, a.GetVerb()+" "+a.GetResource().Resource)
	}
	slices.Sort(got)
	if want := []string{"list nodes", "list pods", "list resourceclaims"}; !slices.Equal(got, want) {
		t.Errorf("it asks for %q, want %q", got, want)
	}
}
