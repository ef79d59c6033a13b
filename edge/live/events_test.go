package live

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	v1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/berthproject/berth/core/step"
)

// TestEventsAsTheAPIHasThem: a scheduler's events have its name, so that those of a component can be
// selected; where the API server wouldn't take the name they have Berth's.
func TestEventsAsTheAPIHasThem(t *testing.T) {
	client := fake.NewClientset()
	r := newRecorder(client, "host", idle)
	for _, e := range []step.Event{
		{Reporter: "packing", Kind: "Pod", UID: "u", Namespace: "ns", Name: "p", Warning: true, Reason: "FailedScheduling", Action: "Scheduling", Message: "why"},
		{Reporter: step.Autoscaler, Kind: "Node", UID: "v", Name: "n", Reason: "ScaleDown", Action: "Deleting", Message: "empty"},
		{Reporter: "packing", Kind: "Pod", UID: "u", Namespace: "ns", Name: "p", Reason: "Preempted", Action: "Preempting", Message: "why", Preemptor: step.PodName{UID: "w", Namespace: "other", Name: "q"}},
		{Reporter: step.Autoscaler, Kind: "ConfigMap", Namespace: "ns", Name: "status", Related: "g", Reason: "ScaledUpGroup", Action: "ScalingUp", Message: "why"},
		{Reporter: "no qualified name", Kind: "Pod", UID: "u", Namespace: "ns", Name: "p", Reason: "FailedScheduling", Action: "Scheduling", Message: "why"},
	} {
		r.emit(t.Context(), e)
	}
	var got []*eventsv1.Event
	for _, a := range client.Actions() {
		got = append(got, a.(clienttesting.CreateAction).GetObject().(*eventsv1.Event))
	}
	if len(got) != 5 {
		t.Fatalf("%d events were created, want 5", len(got))
	}
	for i, want := range []struct {
		namespace, kind string
		regarding       v1.ObjectReference
		related         *v1.ObjectReference
		note, reporter  string
	}{
		{"ns", v1.EventTypeWarning, v1.ObjectReference{Kind: "Pod", APIVersion: "v1", Namespace: "ns", Name: "p", UID: "u"}, nil, "why", "packing"},
		{"default", v1.EventTypeNormal, v1.ObjectReference{Kind: "Node", APIVersion: "v1", Name: "n", UID: "v"}, nil, "empty", "cluster-autoscaler"},
		{"ns", v1.EventTypeNormal, v1.ObjectReference{Kind: "Pod", APIVersion: "v1", Namespace: "ns", Name: "p", UID: "u"},
			&v1.ObjectReference{Kind: "Pod", APIVersion: "v1", Namespace: "other", Name: "q", UID: "w"}, "why", "packing"},
		{"ns", v1.EventTypeNormal, v1.ObjectReference{Kind: "ConfigMap", APIVersion: "v1", Namespace: "ns", Name: "status"}, &v1.ObjectReference{Name: "g"}, "why", "cluster-autoscaler"},
		{"ns", v1.EventTypeNormal, v1.ObjectReference{Kind: "Pod", APIVersion: "v1", Namespace: "ns", Name: "p", UID: "u"}, nil, "why", "berth"},
	} {
		e := got[i]
		if e.Namespace != want.namespace || e.Type != want.kind || e.Regarding != want.regarding || !reflect.DeepEqual(e.Related, want.related) || e.Note != want.note ||
			e.ReportingController != want.reporter || e.ReportingInstance != want.reporter+"-host" || e.EventTime.IsZero() {
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
	r := newRecorder(nil, "host", idle)
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
	r = newRecorder(client, "host", idle)
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

// TestEventsOfOneKindAreASeries has the same happen to one pod for an hour, once in a minute and
// in other words: the API has one object with the first words, which outlives its time-to-live.
// After a break there is a new one.
func TestEventsOfOneKindAreASeries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		defer wg.Wait()
		defer stop()
		client := fake.NewClientset()
		r := newRecorder(client, "host", idle)
		r.run(ctx, &wg)
		begin := time.Now()
		var log []string
		wrote := func() string {
			out := ""
			for _, a := range client.Actions() {
				out += a.GetVerb() + " "
			}
			client.ClearActions()
			return out
		}
		note := func(what string) { log = append(log, fmt.Sprint(time.Since(begin), ": ", what)) }
		for i := range 60 {
			r.event(step.Event{Kind: "Pod", UID: "u", Namespace: "ns", Name: "p", Reason: "FailedScheduling", Action: "Scheduling", Message: fmt.Sprint("try ", i)})
			if i == 0 { // of another object
				r.event(step.Event{Kind: "Pod", UID: "v", Namespace: "ns", Name: "q", Reason: "FailedScheduling", Action: "Scheduling"})
			}
			synctest.Wait()
			if w := wrote(); w != "" {
				note(w)
			}
			time.Sleep(time.Minute)
		}
		time.Sleep(2 * seriesEnd)
		synctest.Wait()
		note(wrote())
		list, err := client.EventsV1().Events("ns").List(ctx, metav1.ListOptions{})
		if err != nil || len(list.Items) != 2 {
			t.Fatalf("%d events, %v, want one of each pod", len(list.Items), err)
		}
		for _, e := range list.Items {
			if e.Regarding.Name == "p" && (e.Series == nil || e.Series.Count != 60 || e.Note != "try 0") {
				t.Errorf("the event is %+v, want the first note and a count of 60", e)
			}
			if e.Regarding.Name == "q" && e.Series != nil {
				t.Errorf("what happened once is a series: %+v", e)
			}
		}
		client.ClearActions()
		if n := len(r.series); n != 0 {
			t.Errorf("%d series are remembered after they have ended", n)
		}
		r.event(step.Event{Kind: "Pod", UID: "u", Namespace: "ns", Name: "p", Reason: "FailedScheduling", Action: "Scheduling", Message: "much later"})
		synctest.Wait()
		note(wrote())
		want := []string{"0s: create create ", "1m0s: patch ", "31m0s: patch ", "1h12m0s: patch ", "1h12m0s: create "}
		if !slices.Equal(log, want) {
			t.Errorf("written:\n%s\nwant:\n%s", strings.Join(log, "\n"), strings.Join(want, "\n"))
		}
		if n := r.dropped.Load(); n != 0 {
			t.Errorf("%d events were dropped", n)
		}
	})
}

// TestNothingIsKeptOfAnEventThatHappensOnce writes that pods were bound, of which one can't be
// written.
func TestNothingIsKeptOfAnEventThatHappensOnce(t *testing.T) {
	client := fake.NewClientset()
	r := newRecorder(client, "host", idle)
	for i := range 3 {
		r.emit(t.Context(), step.Event{Kind: "Pod", Namespace: "ns", Name: fmt.Sprint("p", i), Reason: "Scheduled", Action: "Binding", Message: "to n"})
	}
	client.PrependReactor("create", "events", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, errors.New("no")
	})
	r.emit(t.Context(), step.Event{Kind: "Pod", Namespace: "ns", Name: "p3", Reason: "Scheduled", Action: "Binding", Message: "to n"})
	list, err := client.EventsV1().Events("ns").List(t.Context(), metav1.ListOptions{})
	if err != nil || len(list.Items) != 3 || list.Items[0].Note != "to n" {
		t.Errorf("the events are %+v, %v; want one for each of three pods", list.Items, err)
	}
	if len(r.series) != 0 || r.dropped.Load() != 1 {
		t.Errorf("%d series are kept and %d events count as dropped, want 0 and 1", len(r.series), r.dropped.Load())
	}
}

// TestASeriesWhoseObjectIsGoneIsCreatedAgain: the API server forgets events after a while.
func TestASeriesWhoseObjectIsGoneIsCreatedAgain(t *testing.T) {
	client := fake.NewClientset()
	r := newRecorder(client, "host", idle)
	r.emit(t.Context(), step.Event{Namespace: "ns", Name: "p"})
	list, _ := client.EventsV1().Events("ns").List(t.Context(), metav1.ListOptions{})
	if err := client.EventsV1().Events("ns").Delete(t.Context(), list.Items[0].Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	r.emit(t.Context(), step.Event{Namespace: "ns", Name: "p"})
	list, _ = client.EventsV1().Events("ns").List(t.Context(), metav1.ListOptions{})
	if len(list.Items) != 1 || list.Items[0].Series == nil || list.Items[0].Series.Count != 2 {
		t.Errorf("the events are %+v, want one that has happened twice", list.Items)
	}
}

// TestNamesOfEventsAreNames of the API, however long the object's name is.
func TestNamesOfEventsAreNames(t *testing.T) {
	r := newRecorder(nil, "host", func() bool { return false })
	for _, n := range []int{1, 200, 230, 240, 253} {
		object := strings.Repeat("p", n)
		first, second := r.newEvent(step.Event{Kind: "Pod", Namespace: "default", Name: object}), r.newEvent(step.Event{Kind: "Pod", Namespace: "default", Name: object})
		if wrong := validation.IsDNS1123Subdomain(first.Name); len(wrong) > 0 || first.Name == second.Name {
			t.Errorf("events of an object with a name of %d bytes are called %s and %s: %v", n, first.Name, second.Name, wrong)
		}
		if n < 200 && !strings.HasPrefix(first.Name, object+".") {
			t.Errorf("the event of %s is called %s", object, first.Name)
		}
	}
}
