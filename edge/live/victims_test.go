package live

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/berthproject/berth/core/step"

	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/ptr"
)

func TestEvictOutcomes(t *testing.T) {
	resource := schema.GroupResource{Resource: "pods"}
	for _, c := range []struct {
		name    string
		answer  error
		fails   bool
		refused bool
	}{
		{"evicted", nil, false, false},
		{"gone already", apierrors.NewNotFound(resource, "p"), false, false},
		{"another pod has its name", apierrors.NewConflict(resource, "p", errors.New("uid")), false, false},
		{"forbidden", apierrors.NewForbidden(resource, "p", nil), true, false},
		{"a budget doesn't allow it", apierrors.NewTooManyRequests("disruption budget", 0), true, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			client := fake.NewClientset()
			calls := 0
			client.PrependReactor("create", "pods", func(a clienttesting.Action) (bool, runtime.Object, error) {
				calls++
				return true, nil, c.answer
			})
			err := newEvictor(client).evict(context.Background(), step.Eviction{UID: "u", Namespace: "default", Name: "p", Node: "n"})
			if (err != nil) != c.fails || errors.Is(err, step.ErrRefused) != c.refused || calls != 1 {
				t.Errorf("got %v after %d calls, want failure %v, refused %v, after 1", err, calls, c.fails, c.refused)
			}
		})
	}
}

// TestEvictionsNameThePodAndItsGrace: another pod of the name is left alone, and the pod has
// as long as the core says, or as it says itself.
func TestEvictionsNameThePodAndItsGrace(t *testing.T) {
	for grace, want := range map[*time.Duration]string{nil: "u <nil>", ptr.To(90 * time.Second): "u 90", ptr.To(time.Duration(0)): "u 0"} {
		client := fake.NewClientset()
		got := ""
		client.PrependReactor("create", "pods", func(a clienttesting.Action) (bool, runtime.Object, error) {
			options := a.(clienttesting.CreateAction).GetObject().(*policyv1.Eviction).DeleteOptions
			got = fmt.Sprint(*options.Preconditions.UID, " ")
			if s := options.GracePeriodSeconds; s != nil {
				got += fmt.Sprint(*s)
			} else {
				got += "<nil>"
			}
			return true, nil, nil
		})
		if err := newEvictor(client).evict(t.Context(), step.Eviction{UID: "u", Namespace: "default", Name: "p", Grace: grace}); err != nil || got != want {
			t.Errorf("grace %v: got %q, %v, want %q", grace, got, err, want)
		}
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
