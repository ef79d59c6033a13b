package live

import (
	"context"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	v1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/berthproject/berth/core/step"
)

func TestEventsAsTheAPIHasThem(t *testing.T) {
	client := fake.NewClientset()
	r := newReporter(client, "host", nil)
	for _, e := range []step.Event{
		{Kind: "Pod", UID: "u", Namespace: "ns", Name: "p", Warning: true, Reason: "FailedScheduling", Action: "Scheduling", Message: "why"},
		{Kind: "Node", UID: "v", Name: "n", Reason: "ScaleDown", Action: "Deleting", Message: "empty"},
	} {
		if err := r.writeEvent(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
	var got []*eventsv1.Event
	for _, a := range client.Actions() {
		got = append(got, a.(clienttesting.CreateAction).GetObject().(*eventsv1.Event))
	}
	if len(got) != 2 {
		t.Fatalf("%d events were created, want 2", len(got))
	}
	for i, want := range []struct {
		namespace, kind string
		regarding       v1.ObjectReference
		note            string
	}{
		{"ns", v1.EventTypeWarning, v1.ObjectReference{Kind: "Pod", APIVersion: "v1", Namespace: "ns", Name: "p", UID: "u"}, "why"},
		{"default", v1.EventTypeNormal, v1.ObjectReference{Kind: "Node", APIVersion: "v1", Name: "n", UID: "v"}, "empty"},
	} {
		e := got[i]
		if e.Namespace != want.namespace || e.Type != want.kind || e.Regarding != want.regarding || e.Note != want.note ||
			e.ReportingController != Controller || e.ReportingInstance != "host" || e.EventTime.IsZero() {
			t.Errorf("got %+v, want %+v", e, want)
		}
	}
	if got[0].Name == got[1].Name {
		t.Errorf("both events are called %s", got[0].Name)
	}
}

// TestEventsThatAreNotWrittenAreCounted fills the backlog beyond its end, and has the
// API server refuse one.
func TestEventsThatAreNotWrittenAreCounted(t *testing.T) {
	r := newReporter(nil, "host", nil)
	for range eventBacklog + 3 {
		r.event(step.Event{})
	}
	if n := r.dropped.Load(); n != 3 {
		t.Errorf("%d events beyond the backlog are counted, want 3", n)
	}

	client := fake.NewClientset()
	client.PrependReactor("create", "events", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, errors.New("refused")
	})
	r = newReporter(client, "host", nil)
	r.emit(t.Context(), step.Event{Name: "p"})
	if n := r.dropped.Load(); n != 1 {
		t.Errorf("%d events are counted after one was refused, want 1", n)
	}
	stopped, stop := context.WithCancel(t.Context())
	stop()
	r.emit(stopped, step.Event{Name: "p"})
	if n := r.dropped.Load(); n != 1 {
		t.Errorf("an event that isn't written since Berth stops is counted")
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
