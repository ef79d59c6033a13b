package live

import (
	"context"
	"errors"
	"testing"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/berthproject/berth/core"
	"github.com/berthproject/berth/internal/testkit"
)

// The faults here can't be had from a real API server on demand.
func TestBindOutcomes(t *testing.T) {
	conflict := apierrors.NewConflict(schema.GroupResource{Resource: "pods"}, "p", errors.New("already assigned"))
	unavailable := apierrors.NewServiceUnavailable("restarting")
	for _, c := range []struct {
		name    string
		node    string  // where the API server has the pod
		answers []error // to each bind in turn; then success
		want    error
		calls   int
	}{
		{"bound", "", nil, nil, 1},
		{"a failure that passes", "", []error{unavailable, unavailable}, nil, 3},
		{"succeeded, but the answer was lost", "n", []error{unavailable, conflict}, nil, 2},
		{"bound elsewhere", "m", []error{conflict}, conflict, 1},
		{"refused for good", "", []error{apierrors.NewForbidden(schema.GroupResource{}, "p", nil)}, apierrors.NewForbidden(schema.GroupResource{}, "p", nil), 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			client := fake.NewClientset(testkit.Pod("p").On(c.node).Obj())
			calls := 0
			client.PrependReactor("create", "pods", func(a clienttesting.Action) (bool, runtime.Object, error) {
				if a.GetSubresource() != "binding" {
					return false, nil, nil
				}
				calls++
				if calls <= len(c.answers) {
					return true, nil, c.answers[calls-1]
				}
				return true, &v1.Binding{}, nil
			})
			b := &binder{client: client}
			err := b.bind(context.Background(), core.Bind{UID: "pod-p", Namespace: "default", Name: "p", Node: "n"})
			if (err == nil) != (c.want == nil) || err != nil && err.Error() != c.want.Error() || calls != c.calls {
				t.Errorf("got %v after %d calls, want %v after %d", err, calls, c.want, c.calls)
			}
		})
	}
}

func TestReporterKeepsTheLatestConditionOnly(t *testing.T) {
	r := newReporter(nil, "host", nil)
	r.condition(core.Condition{UID: "a", Message: "old"})
	r.condition(core.Condition{UID: "b", Message: "b"})
	r.condition(core.Condition{UID: "a", Message: "new"})
	r.condition(core.Condition{UID: "c", Message: "c"})
	r.bound("c")
	var got []string
	for c, ok := r.next(); ok; c, ok = r.next() {
		got = append(got, c.Message)
	}
	if len(got) != 2 || got[0] != "new" || got[1] != "b" {
		t.Errorf("got %v, want [new b]", got)
	}
}

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
			err := (&evictor{client: client}).evict(context.Background(), core.Eviction{UID: "u", Namespace: "default", Name: "p", Node: "n"})
			if (err != nil) != c.fails || calls != 1 {
				t.Errorf("got %v after %d calls", err, calls)
			}
		})
	}
}
