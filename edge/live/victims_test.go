package live

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/berthproject/berth/core/step"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

func TestEvictOutcomes(t *testing.T) {
	resource := schema.GroupResource{Resource: "pods"}
	for _, c := range []struct {
		name   string
		answer error
		fails  bool
	}{
		{"evicted", nil, false},
		{"gone already", apierrors.NewNotFound(resource, "p"), false},
		{"another pod has its name", apierrors.NewConflict(resource, "p", errors.New("uid")), false},
		{"forbidden", apierrors.NewForbidden(resource, "p", nil), true},
	} {
		t.Run(c.name, func(t *testing.T) {
			client := fake.NewClientset()
			calls := 0
			client.PrependReactor("create", "pods", func(a clienttesting.Action) (bool, runtime.Object, error) {
				calls++
				return true, nil, c.answer
			})
			err := newEvictor(client).evict(context.Background(), step.Eviction{UID: "u", Namespace: "default", Name: "p", Node: "n"})
			if (err != nil) != c.fails || calls != 1 {
				t.Errorf("got %v after %d calls, want failure %v after 1", err, calls, c.fails)
			}
		})
	}
}

func TestPreemptOutcomes(t *testing.T) {
	resource := schema.GroupResource{Resource: "pods"}
	gone, other, never := apierrors.NewNotFound(resource, "p"), apierrors.NewConflict(resource, "p", errors.New("uid")), apierrors.NewForbidden(resource, "p", nil)
	for _, c := range []struct {
		name          string
		patch, remove error
		calls         string
		fails         bool
	}{
		{"asked to leave", nil, nil, "patch status delete u ", false},
		{"gone before the condition", gone, nil, "patch status ", false},
		{"gone before the deletion", nil, gone, "patch status delete u ", false},
		{"another pod has its name", other, nil, "patch status ", false},
		{"another pod has its name by now", nil, other, "patch status delete u ", false},
		{"no condition, no deletion", never, nil, "patch status ", true},
		{"not allowed to delete", nil, never, "patch status delete u ", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			client := fake.NewClientset()
			calls := ""
			client.PrependReactor("patch", "pods", func(a clienttesting.Action) (bool, runtime.Object, error) {
				calls += "patch " + a.GetSubresource() + " "
				if text := string(a.(clienttesting.PatchAction).GetPatch()); !strings.Contains(text, "PreemptionByScheduler") || !strings.Contains(text, `"uid":"u"`) {
					t.Errorf("patch %s", text)
				}
				return true, &v1.Pod{}, c.patch
			})
			client.PrependReactor("delete", "pods", func(a clienttesting.Action) (bool, runtime.Object, error) {
				calls += "delete " + string(*a.(clienttesting.DeleteActionImpl).DeleteOptions.Preconditions.UID) + " "
				return true, nil, c.remove
			})
			err := newPreemptor(client, &atomic.Int64{}).preempt(context.Background(), step.Preemption{UID: "u", Namespace: "default", Name: "p"})
			if (err != nil) != c.fails || calls != c.calls {
				t.Errorf("got %v after %q, want failure %v after %q", err, calls, c.fails, c.calls)
			}
		})
	}
}
