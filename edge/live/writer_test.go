package live

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/berthproject/berth/core/step"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

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
			err := b.bind(context.Background(), step.Bind{UID: "pod-p", Namespace: "default", Name: "p", Node: "n"})
			if (err == nil) != (c.want == nil) || err != nil && err.Error() != c.want.Error() || calls != c.calls {
				t.Errorf("got %v after %d calls, want %v after %d", err, calls, c.want, c.calls)
			}
		})
	}
}

func TestReporterKeepsTheLatestConditionOnly(t *testing.T) {
	r := newReporter(nil, "host", nil, func(step.Input) {})
	r.condition(step.Condition{UID: "a", Message: "old"})
	r.condition(step.Condition{UID: "b", Message: "b"})
	r.condition(step.Condition{UID: "a", Message: "new"})
	r.condition(step.Condition{UID: "c", Message: "c"})
	r.bound("c")
	var got []string
	for x, ok := r.next(); ok; x, ok = r.next() {
		got = append(got, x.condition.Message)
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
			err := (&evictor{client: client}).evict(context.Background(), step.Eviction{UID: "u", Namespace: "default", Name: "p", Node: "n"})
			if (err != nil) != c.fails || calls != 1 {
				t.Errorf("got %v after %d calls", err, calls)
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
		{"told", nil, nil, "patch status delete u ", false},
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
			err := (&preemptor{client: client}).preempt(context.Background(), step.Preemption{UID: "u", Namespace: "default", Name: "p"})
			if (err != nil) != c.fails || calls != c.calls {
				t.Errorf("got %v after %q, want failure %v after %q", err, calls, c.fails, c.calls)
			}
		})
	}
}

// A bind that wasn't posted can be taken back, one that was can't.
func TestBindsAreTakenBack(t *testing.T) {
	client := fake.NewClientset()
	posted := 0
	client.PrependReactor("create", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
		posted++
		return true, nil, nil
	})
	var out []step.Input
	b := &binder{client: client, done: func(in step.Input) { out = append(out, in) }}
	b.add("early")
	b.takeBack("early")
	b.post(t.Context(), step.Bind{UID: "early", Namespace: "default", Name: "early"})
	b.add("late")
	b.begin("late")
	b.takeBack("late")
	b.post(t.Context(), step.Bind{UID: "late", Namespace: "default", Name: "late"})
	b.takeBack("unknown")
	waiting, cancel := context.WithCancel(t.Context())
	defer cancel()
	b.add("volumes")
	waiting, stop := b.waiting(waiting, "volumes")
	defer stop()
	b.takeBack("volumes")
	if waiting.Err() == nil {
		t.Error("a bind that waits for volumes goes on waiting after it was taken back")
	}
	want := []step.Input{step.BindDone{UID: "early", Err: errTakenBack}, step.BindDone{UID: "late"}}
	if posted != 1 || !slices.Equal(out, want) {
		t.Errorf("posted %d, outcomes %v, want 1 and %v", posted, out, want)
	}
}

// A condition and a nomination go in one call, the latest of each.
func TestReporterMergesWhatItSaysOfAPod(t *testing.T) {
	client := fake.NewClientset()
	var patches []string
	client.PrependReactor("patch", "pods", func(a clienttesting.Action) (bool, runtime.Object, error) {
		patches = append(patches, string(a.(clienttesting.PatchAction).GetPatch()))
		return true, &v1.Pod{}, nil
	})
	var out []step.Input
	r := newReporter(client, "host", slog.New(slog.DiscardHandler), func(in step.Input) { out = append(out, in) })
	r.nominate(step.Nomination{UID: "a", Name: "a", Node: "n1"})
	r.condition(step.Condition{UID: "a", Name: "a", Reason: "Unschedulable", Message: "why"})
	r.nominate(step.Nomination{UID: "a", Name: "a", Node: "n2"})
	r.nominate(step.Nomination{UID: "b", Name: "b"})
	r.nominate(step.Nomination{UID: "c", Name: "c", Node: "n3"})
	r.bound("c")
	for x, ok := r.next(); ok; x, ok = r.next() {
		r.write(t.Context(), x)
	}
	if len(patches) != 2 || !strings.Contains(patches[0], `"message":"why"`) || !strings.Contains(patches[0], `"nominatedNodeName":"n2"`) || !strings.Contains(patches[1], `"nominatedNodeName":null`) {
		t.Errorf("patches %q", patches)
	}
	want := []step.Input{step.NominationDone{UID: "c", Node: "n3", Err: errBinding}, step.NominationDone{UID: "a", Node: "n2"}, step.NominationDone{UID: "b"}}
	if !slices.Equal(out, want) {
		t.Errorf("outcomes %v, want %v", out, want)
	}
}

func TestReportsGetWhatIsLeft(t *testing.T) {
	busy := true
	l := newLeftover(1, 1000, 1000, func() bool { return busy })
	accepted := func() (n int) {
		for range 20 {
			if l.TryAccept() {
				n++
			}
		}
		return n
	}
	if n := accepted(); n != 2 {
		t.Errorf("%d of 20 calls at once while binds are under way, want the burst of 2", n)
	}
	busy = false
	if n := accepted(); n != 20 {
		t.Errorf("%d of 20 calls at once while nothing is", n)
	}
}

// TestNotesAreShortened shows that a note keeps to the API's limit and stays valid.
func TestNotesAreShortened(t *testing.T) {
	for _, x := range []struct{ text, want string }{
		{strings.Repeat("a", 1024), strings.Repeat("a", 1024)},
		{strings.Repeat("a", 1025), strings.Repeat("a", 1021) + "..."},
		{"a" + strings.Repeat("€", 400), "a" + strings.Repeat("€", 340) + "..."},
		{"aa" + strings.Repeat("€", 400), "aa" + strings.Repeat("€", 339) + "..."},
	} {
		if got := shorten(x.text); got != x.want || !utf8.ValidString(got) {
			t.Errorf("%d bytes became %d: %q", len(x.text), len(got), got[max(0, len(got)-10):])
		}
	}
}
