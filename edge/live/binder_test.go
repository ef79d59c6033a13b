package live

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/internal/test/testkit"
)

// The faults here can't be had from a real API server on demand.
func TestBindOutcomes(t *testing.T) {
	conflict := apierrors.NewConflict(schema.GroupResource{Resource: "pods"}, "p", errors.New("already assigned"))
	forbidden := apierrors.NewForbidden(schema.GroupResource{}, "p", nil) // roles that aren't read yet, too
	unavailable := apierrors.NewServiceUnavailable("restarting")
	broken := apierrors.NewInternalError(errors.New("etcdserver: request timed out"))
	for _, c := range []struct {
		name    string
		node    string  // where the API server has the pod
		answers []error // to each bind in turn; then success
		want    error
		calls   int
		unread  []error // answers to the question where the pod is; then that
	}{
		{"bound", "", nil, nil, 1, nil},
		{"a failure that passes", "", []error{unavailable, unavailable}, nil, 3, nil},
		{"succeeded, but the answer was lost", "n", []error{unavailable, conflict}, nil, 2, nil},
		{"unanswered for longer than a call is tried in one go", "", slices.Repeat([]error{io.ErrUnexpectedEOF}, 8), nil, 9, nil},
		{"unanswered, and bound when an answer comes", "n", append(slices.Repeat([]error{io.ErrUnexpectedEOF}, 8), conflict), nil, 9, nil},
		{"answered with errors all the time", "", slices.Repeat([]error{broken}, 8), broken, 5, nil},
		{"answered with errors all the time, and bound", "n", slices.Repeat([]error{broken}, 8), nil, 5, nil},
		{"bound elsewhere", "m", []error{conflict}, conflict, 1, nil},
		{"unanswered, and refused by an API server that has just come back", "n", []error{io.ErrUnexpectedEOF, forbidden}, nil, 2, []error{forbidden, unavailable}},
		{"the same, and not bound", "", []error{io.ErrUnexpectedEOF, forbidden}, forbidden, 2, []error{forbidden}},
		{"refused for good", "", []error{forbidden}, forbidden, 1, []error{errors.New("nobody has to ask")}},
	} {
		// In a bubble, where calls are tried again after no time.
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
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
				client.PrependReactor("get", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
					if len(c.unread) == 0 {
						return false, nil, nil
					}
					err := c.unread[0]
					c.unread = c.unread[1:]
					return true, nil, err
				})
				b := newBinder(client, nil, &atomic.Int64{})
				err := b.bind(context.Background(), step.Bind{UID: "pod-p", Namespace: "default", Name: "p", Node: "n"})
				if (err == nil) != (c.want == nil) || err != nil && err.Error() != c.want.Error() || calls != c.calls {
					t.Errorf("got %v after %d calls, want %v after %d", err, calls, c.want, c.calls)
				}
			})
		})
	}
}

// TestABindGivesUpOnAnAPIServerThatAnswers has every question answered in the same way for ever: that
// the binding can't be served now, or that pods may not be read. The bind is reported once a stage.
func TestABindGivesUpOnAnAPIServerThatAnswers(t *testing.T) {
	unavailable := apierrors.NewServiceUnavailable("webhook is away")
	forbidden := apierrors.NewForbidden(schema.GroupResource{}, "p", nil)
	conflict := apierrors.NewConflict(schema.GroupResource{Resource: "pods"}, "p", errors.New("already assigned"))
	for _, c := range []struct {
		name           string
		binding, read  error
		want           error
		stalled        int
		least, longest time.Duration
	}{
		{"pods may not be read", conflict, forbidden, conflict, 1, giveUpAfter, giveUpAfter + time.Minute},
		{"a webhook is away", unavailable, nil, unavailable, 1, giveUpAfter, giveUpAfter + time.Minute},
		{"both", unavailable, forbidden, unavailable, 2, 2 * giveUpAfter, 2*giveUpAfter + time.Minute},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client := fake.NewClientset(testkit.Pod("p").Obj())
				client.PrependReactor("create", "pods", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, c.binding })
				client.PrependReactor("get", "pods", func(clienttesting.Action) (bool, runtime.Object, error) { return c.read != nil, nil, c.read })
				b := newBinder(client, nil, &atomic.Int64{})
				stalled := 0
				b.stalled = func(step.Bind, error) { stalled++ }
				begun := time.Now()
				ctx, stop := context.WithTimeout(t.Context(), time.Hour)
				defer stop()
				err := b.bind(ctx, step.Bind{UID: "pod-p", Namespace: "default", Name: "p", Node: "n"})
				if took := time.Since(begun); !errors.Is(err, c.want) || stalled != c.stalled || took < c.least || took > c.longest {
					t.Errorf("got %v after %s, reported %d times; want %v after %s, and %d", err, took, stalled, c.want, c.least, c.stalled)
				}
			})
		})
	}
}

// bindExtender binds, and filters nothing.
type bindExtender struct {
	Extenders
	bound []string
}

func (x *bindExtender) Bind(_ context.Context, bind step.Bind) error {
	x.bound = append(x.bound, bind.Name+" to "+bind.Node)
	return nil
}

func TestAnExtenderBindsInTheBindersPlace(t *testing.T) {
	client := fake.NewClientset()
	x := &bindExtender{}
	b := newBinder(client, x, &atomic.Int64{})
	if err := b.bind(t.Context(), step.Bind{Name: "p", Node: "n", Extender: true}); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(x.bound, []string{"p to n"}) || len(client.Actions()) > 0 {
		t.Errorf("the extender bound %v, the API server was called %v; want the extender alone", x.bound, client.Actions())
	}
}

// TestBindsCanBeCancelledUntilTheyArePosted walks through the states of a bind.
func TestBindsCanBeCancelledUntilTheyArePosted(t *testing.T) {
	client := fake.NewClientset()
	posted := 0
	client.PrependReactor("create", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
		posted++
		return true, nil, nil
	})
	var queued atomic.Int64
	b := newBinder(client, nil, &queued)
	var out []string
	add := func(name string) *bindJob {
		return b.add(step.Bind{UID: testkit.Pod(name).UID, Namespace: "default", Name: name}, func(err error) { out = append(out, fmt.Sprint(name, ": ", err)) })
	}
	early := add("early")
	b.cancel("pod-early")
	b.post(t.Context(), early)
	late := add("late")
	b.beginPost(late)
	b.cancel("pod-late")
	b.post(t.Context(), late)
	b.cancel("pod-unknown")

	volumes := add("volumes")
	waiting, stop := b.waitContext(t.Context(), volumes)
	defer stop()
	if waiting.Err() != nil {
		t.Error("a bind doesn't wait for its volumes though nobody has cancelled it")
	}
	b.cancel("pod-volumes")
	if waiting.Err() == nil {
		t.Error("a bind goes on waiting for its volumes after it was cancelled")
	}
	soon := add("soon")
	b.cancel("pod-soon")
	waiting, stop = b.waitContext(t.Context(), soon)
	defer stop()
	if waiting.Err() == nil {
		t.Error("a bind that was cancelled before waits for its volumes")
	}
	if n := queued.Load(); n != 2 {
		t.Errorf("%d binds are counted as queued, want 2: those without an outcome", n)
	}
	// The pod is bound a second time while the first is still to be reported.
	again := add("volumes")
	b.finish(volumes, errCancelled)
	b.cancel("pod-volumes")
	b.post(t.Context(), again)

	taken := fmt.Sprint(errCancelled)
	want := []string{"early: " + taken, "late: <nil>", "volumes: " + taken, "volumes: " + taken}
	if posted != 1 || !slices.Equal(out, want) {
		t.Errorf("posted %d, outcomes %q, want 1 and %q", posted, out, want)
	}
}
