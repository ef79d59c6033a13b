package controllers

import (
	"slices"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

// TestOrphansAreDeleted has pods on a node, on none, on a node that is gone, and on one that only the
// cache doesn't know yet. Those of the node that is gone are deleted when it has been gone for the
// quarantine, and fail before if they haven't ended by then.
func TestOrphansAreDeleted(t *testing.T) {
	pod := func(name, node string, phase v1.PodPhase) *v1.Pod {
		p := &v1.Pod{}
		p.Namespace, p.Name, p.Spec.NodeName, p.Status.Phase = "default", name, node, phase
		return p
	}
	node := func(name string) *v1.Node { return &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}} }
	client := fake.NewClientset(node("n"), node("new"))
	factory := informers.NewSharedInformerFactory(client, 0)
	pods, nodes := factory.Core().V1().Pods(), factory.Core().V1().Nodes()
	for _, p := range []*v1.Pod{pod("stays", "n", v1.PodRunning), pod("pending", "", v1.PodPending), pod("new", "new", v1.PodPending), pod("runs", "gone", v1.PodRunning), pod("done", "gone", v1.PodSucceeded), pod("late", "gone", v1.PodRunning)} {
		if err := pods.Informer().GetStore().Add(p); err != nil {
			t.Fatal(err)
		}
		if err := client.Tracker().Add(p); err != nil {
			t.Fatal(err)
		}
	}
	if err := nodes.Informer().GetStore().Add(node("n")); err != nil {
		t.Fatal(err)
	}
	o := newOrphanage(client, pods.Lister(), nodes.Lister())
	now := time.Unix(1000, 0)
	for range 2 {
		o.collect(t.Context(), now)
		now = now.Add(quarantine - 1)
	}
	if err := pods.Informer().GetStore().Update(pod("late", "gone", v1.PodSucceeded)); err != nil {
		t.Fatal(err)
	}
	for _, a := range client.Actions() {
		if a.GetVerb() == "delete" || a.GetVerb() == "patch" {
			t.Errorf("before the quarantine is over there is %v", a)
		}
	}
	o.collect(t.Context(), time.Unix(1000, 0).Add(quarantine))
	left, err := client.CoreV1().Pods("default").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var names, failed []string
	for i := range left.Items {
		names = append(names, left.Items[i].Name)
	}
	for _, a := range client.Actions() {
		if patch, ok := a.(clienttesting.PatchAction); ok {
			failed = append(failed, patch.GetName())
		}
	}
	slices.Sort(names)
	if !slices.Equal(names, []string{"new", "pending", "stays"}) || !slices.Equal(failed, []string{"runs"}) {
		t.Errorf("left are %v, and marked as failed %v; want new, pending, stays, and runs", names, failed)
	}
}
