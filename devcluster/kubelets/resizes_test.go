package kubelets

import (
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/berthproject/berth/internal/simulatedresizes"
)

// TestResizesInPlace has a node of 4 CPUs with two pods of 1: one grows to 4, which has to wait until the other has gone,
// then to 5, which never fits, and then to 2, which is carried out.
func TestResizesInPlace(t *testing.T) {
	n := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}, Status: v1.NodeStatus{Allocatable: v1.ResourceList{"cpu": resource.MustParse("4"), "memory": resource.MustParse("8Gi")}}}
	pod := func(name string) *v1.Pod {
		return &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(name)}, Status: v1.PodStatus{Phase: v1.PodPending},
			Spec: v1.PodSpec{NodeName: "n", Containers: []v1.Container{{Name: "c", Resources: v1.ResourceRequirements{Requests: v1.ResourceList{"cpu": resource.MustParse("1")}}}}}}
	}
	client := fake.NewClientset(n, pod("a"), pod("b"))
	k := newKubelets(client, Options{LeaseInterval: time.Minute})
	k.nodes["n"] = n
	shown := func(name string) *v1.Pod {
		p, err := client.CoreV1().Pods("default").Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	calls := func() {
		for k.due.Len() > 0 {
			due := k.due
			k.due = nil
			for _, job := range due {
				if time.Until(job.when) < time.Minute { // not the retry of a deferred resize
					job.job(t.Context())
				}
			}
			k.podChanged(shown("a"))
		}
	}
	resize := func(cpu, pending, allocated string) {
		t.Helper()
		p := shown("a")
		p.Spec.Containers[0].Resources.Requests = v1.ResourceList{"cpu": resource.MustParse(cpu)}
		if _, err := client.CoreV1().Pods("default").Update(t.Context(), p, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		k.podChanged(p)
		calls()
		p = shown("a")
		got := simulatedresizes.Allocated(p)["cpu"]
		if simulatedresizes.Pending(p) != pending || got.String() != allocated {
			t.Errorf("resized to %s it is pending as %q with %s allocated, want %q and %s", cpu, simulatedresizes.Pending(p), &got, pending, allocated)
		}
	}
	k.podChanged(pod("a"))
	k.podChanged(pod("b"))
	calls()
	k.podChanged(shown("b"))
	// The API server refuses to resize a running pod whose status doesn't say what is set up for it.
	if c := shown("a").Status.ContainerStatuses; len(c) != 1 || c[0].State.Running == nil || c[0].Resources == nil || c[0].AllocatedResources.Cpu().String() != "1" {
		t.Errorf("running, its containers are shown as %+v, want 1 CPU allocated and set up", c)
	}
	resize("4", v1.PodReasonDeferred, "1")
	resize("5", v1.PodReasonInfeasible, "1")
	resize("4", v1.PodReasonDeferred, "1")
	k.podGone("b")
	calls()
	if p := shown("a"); simulatedresizes.Pending(p) != "" || simulatedresizes.Wanted(p) {
		t.Errorf("when the other is gone its status is %+v", p.Status)
	}
	resize("2", "", "2")
}

// TestDeferredResizes has a node of 4 CPUs with pods of 1, 1 and 2. The first two are to grow to 3.
func TestDeferredResizes(t *testing.T) {
	client := fake.NewClientset()
	k := newKubelets(client, Options{LeaseInterval: time.Minute})
	k.nodes["n"] = &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}, Status: v1.NodeStatus{Allocatable: v1.ResourceList{"cpu": resource.MustParse("4"), "memory": resource.MustParse("8Gi")}}}
	long := metav1.NewTime(time.Now().Add(-time.Hour).Truncate(time.Second))
	for name, cpu := range map[string][2]string{"a": {"1", "3"}, "b": {"1", "3"}, "c": {"2", "2"}} {
		p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(name)}, Status: v1.PodStatus{Phase: v1.PodRunning},
			Spec: v1.PodSpec{NodeName: "n", Containers: []v1.Container{{Name: "c", Resources: v1.ResourceRequirements{Requests: v1.ResourceList{"cpu": resource.MustParse(cpu[0])}}}}}}
		simulatedresizes.Allocate(p)
		p.Spec.Containers[0].Resources.Requests = v1.ResourceList{"cpu": resource.MustParse(cpu[1])}
		if name != "c" {
			simulatedresizes.Apply(p, simulatedresizes.Verdict{Reason: v1.PodReasonDeferred, Message: "of an hour ago"}, long)
		}
		if err := client.Tracker().Add(p); err != nil {
			t.Fatal(err)
		}
		k.podChanged(p)
	}
	k.due = nil // the looks that are due
	shown := func(name string) *v1.Pod {
		p, err := client.CoreV1().Pods("default").Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	patches := func() (n int) {
		for _, action := range client.Actions() {
			if action.GetVerb() == "patch" {
				n++
			}
		}
		return n
	}
	// A pod that stays deferred is written once, and tried again once every retryResizes.
	for range 5 {
		k.resizePod(t.Context(), "a")
	}
	if len(k.due) != 1 || patches() != 1 {
		t.Errorf("after five looks %d retries are due and %d patches were sent, want 1 and 1", len(k.due), patches())
	}
	if c := shown("a").Status.Conditions; len(c) != 1 || c[0].Reason != v1.PodReasonDeferred || c[0].Message == "of an hour ago" || !c[0].LastTransitionTime.Equal(&long) {
		t.Errorf("still deferred, its conditions are %+v, want another message and the time of before", c)
	}
	retry := k.due[0]
	k.due = nil
	retry.job(t.Context())
	if len(k.due) != 1 || time.Until(k.due[0].when) < time.Minute {
		t.Errorf("after the retry %d are due, want the next one", len(k.due))
	}
	// Both are tried when the third pod goes, and one has room, before a watch shows what the other got.
	k.due = nil
	k.podGone("c")
	for len(k.due) > 0 && time.Until(k.due[0].when) < time.Minute {
		job := k.due[0]
		k.due = k.due[1:]
		job.job(t.Context())
	}
	a, b := simulatedresizes.Allocated(shown("a"))["cpu"], simulatedresizes.Allocated(shown("b"))["cpu"]
	if sum := a.Value() + b.Value(); sum != 4 {
		t.Errorf("%s and %s of 4 CPUs are allocated, want 3 to one of both", &a, &b)
	}
}
