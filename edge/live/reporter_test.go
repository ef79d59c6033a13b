package live

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/berthproject/berth/core/step"
)

func TestReporterKeepsTheLatestConditionOnly(t *testing.T) {
	r := newReporter(nil, "host", nil)
	r.condition(step.Condition{UID: "a", Message: "old"})
	r.condition(step.Condition{UID: "b", Message: "b"})
	r.condition(step.Condition{UID: "a", Message: "new"})
	r.condition(step.Condition{UID: "c", Message: "c"})
	r.drop("c")
	var got []string
	for x, ok := r.next(); ok; x, ok = r.next() {
		got = append(got, x.condition.Message)
	}
	if len(got) != 2 || got[0] != "new" || got[1] != "b" {
		t.Errorf("got %v, want [new b]", got)
	}
}

// TestReporterWritesAPodsStatusInOneCall gives it a condition and nominations of a
// pod, and drops what another pod waits with.
func TestReporterWritesAPodsStatusInOneCall(t *testing.T) {
	client := fake.NewClientset()
	var patches []string
	client.PrependReactor("patch", "pods", func(a clienttesting.Action) (bool, runtime.Object, error) {
		patches = append(patches, string(a.(clienttesting.PatchAction).GetPatch()))
		return true, &v1.Pod{}, nil
	})
	var out []string
	r := newReporter(client, "host", slog.New(slog.DiscardHandler))
	nominate := func(n step.Nomination) {
		r.nominate(job[step.Nomination]{n, func(err error) { out = append(out, fmt.Sprint(n.Name, " to ", n.Node, ": ", err)) }})
	}
	nominate(step.Nomination{UID: "a", Name: "a", Node: "n1"})
	r.condition(step.Condition{UID: "a", Name: "a", Reason: "Unschedulable", Message: "why"})
	nominate(step.Nomination{UID: "a", Name: "a", Node: "n2"})
	nominate(step.Nomination{UID: "b", Name: "b"})
	nominate(step.Nomination{UID: "c", Name: "c", Node: "n3"})
	r.drop("c")
	for x, ok := r.next(); ok; x, ok = r.next() {
		r.write(t.Context(), x)
	}
	if len(patches) != 2 || !strings.Contains(patches[0], `"message":"why"`) || !strings.Contains(patches[0], `"nominatedNodeName":"n2"`) ||
		!strings.Contains(patches[0], `"uid":"a"`) || !strings.Contains(patches[1], `"nominatedNodeName":null`) {
		t.Errorf("patches %q", patches)
	}
	want := []string{fmt.Sprint("c to n3: ", errBinding), "a to n2: <nil>", "b to : <nil>"}
	if !slices.Equal(out, want) {
		t.Errorf("outcomes %q, want %q", out, want)
	}
}

// TestReporterEmitsTheEventOfAConditionThatWasWritten shows that people don't read of
// a pod that is gone, and that the API's answer is the nomination's outcome.
func TestReporterEmitsTheEventOfAConditionThatWasWritten(t *testing.T) {
	gone := apierrors.NewNotFound(schema.GroupResource{Resource: "pods"}, "p")
	for _, answer := range []error{nil, gone} {
		client := fake.NewClientset()
		client.PrependReactor("patch", "pods", func(clienttesting.Action) (bool, runtime.Object, error) { return true, &v1.Pod{}, answer })
		r := newReporter(client, "host", slog.New(slog.DiscardHandler))
		outcomes := []error{}
		r.write(t.Context(), report{
			condition:  &step.Condition{UID: "p", Name: "p", Event: &step.Event{Reason: "FailedScheduling"}},
			nomination: &job[step.Nomination]{step.Nomination{UID: "p", Name: "p"}, func(err error) { outcomes = append(outcomes, err) }},
		})
		if want := answer == nil; want != (len(r.events) == 1) {
			t.Errorf("after %v there are %d events, want one only of a condition that was written", answer, len(r.events))
		}
		if len(outcomes) != 1 || outcomes[0] != answer {
			t.Errorf("outcomes of the nomination: %v, want [%v]", outcomes, answer)
		}
	}
}
