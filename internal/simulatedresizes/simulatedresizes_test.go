package simulatedresizes_test

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berthproject/berth/internal/simulatedresizes"
	"github.com/berthproject/berth/internal/test/testkit"
)

// running returns a pod whose node has allocated so much CPU, and whose spec asks for so much.
func running(name, allocated, wanted string) *v1.Pod {
	p := testkit.Pod(name).Req("cpu", allocated).On("n").Obj()
	simulatedresizes.Allocate(p)
	p.Spec.Containers[0].Resources.Requests = v1.ResourceList{"cpu": resource.MustParse(wanted)}
	return p
}

// TestDecide has a node with 4 CPUs, of which another pod has been allocated 2, whatever it asks for.
func TestDecide(t *testing.T) {
	n := testkit.Node("n").Alloc("cpu", "4", "memory", "8Gi").Obj()
	for _, x := range []struct {
		name, allocated, wanted, others string
		reason                          string
	}{
		{"fits", "1", "2", "3", ""},
		{"the other has been allocated all that is left", "1", "3", "2", v1.PodReasonDeferred},
		{"larger than the node", "1", "5", "2", v1.PodReasonInfeasible},
		{"smaller", "2", "1", "2", ""},
		{"nothing is asked for", "1", "1", "2", ""},
	} {
		p, other := running("p", x.allocated, x.wanted), running("other", "2", x.others)
		v := simulatedresizes.Decide(n, []*v1.Pod{p, other}, p)
		if v.Reason != x.reason || (v.Message == "") != (x.reason == "") {
			t.Errorf("%s: got %+v, want %q", x.name, v, x.reason)
		}
		if got, want := simulatedresizes.Wanted(p), x.allocated != x.wanted; got != want {
			t.Errorf("%s: a resize is wanted: %t, want %t", x.name, got, want)
		}
		before := len(p.Status.Conditions)
		simulatedresizes.Apply(p, v, metav1.Now())
		if got := simulatedresizes.Pending(p); got != x.reason {
			t.Errorf("%s: the condition says %q, want %q", x.name, got, x.reason)
		}
		simulatedresizes.Apply(p, simulatedresizes.Verdict{}, metav1.Now())
		if got := simulatedresizes.Allocated(p)["cpu"]; got.String() != x.wanted || simulatedresizes.Wanted(p) || len(p.Status.Conditions) != before {
			t.Errorf("%s: carried out, %s is allocated and the conditions are %v", x.name, &got, p.Status.Conditions)
		}
	}
}

// TestApplyChangesACopy: what was read before stays as it was.
func TestApplyChangesACopy(t *testing.T) {
	p := running("p", "1", "3")
	old := *p
	simulatedresizes.Apply(p, simulatedresizes.Verdict{Reason: v1.PodReasonDeferred}, metav1.Now())
	deferred := *p
	simulatedresizes.Apply(p, simulatedresizes.Verdict{Reason: v1.PodReasonInfeasible}, metav1.Now())
	simulatedresizes.Apply(p, simulatedresizes.Verdict{}, metav1.Now())
	if !simulatedresizes.Wanted(&old) || simulatedresizes.Pending(&old) != "" || simulatedresizes.Pending(&deferred) != v1.PodReasonDeferred {
		t.Errorf("before, a resize was wanted: %t, pending as %q; then as %q", simulatedresizes.Wanted(&old), simulatedresizes.Pending(&old), simulatedresizes.Pending(&deferred))
	}
}
