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
