package live

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	v1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/kubernetes"

	"github.com/berthproject/berth/core/step"
)

// Events are grouped into series, as k8s.io/client-go/tools/events does: those of one object,
// type, reason and action are one Event object, with the text of the first. The first is
// created, and the second makes it a series with one more call. Those that follow are counted
// here, and the count is written every seriesEvery, and when none has come for seriesEnd; after
// that the next is a new Event object. Of an event that can't happen again (step.Event.HappensOnce) nothing
// is kept.
//
// It isn't client-go's recorder itself: that starts a goroutine for each event, however many
// wait for the limiter of API calls, and drops events without saying how many. Here so many
// workers write, and events beyond the backlog are dropped and counted; the decision ledger
// has what they said.

const (
	// eventBacklog is how many events wait to be written at most.
	eventBacklog = 50000
	// seriesEvery is how often the count of a series is written at most, so that its object
	// outlives the API server's time-to-live of events, an hour.
	seriesEvery = 30 * time.Minute
	// seriesEnd is how long after its last event a series ends.
	seriesEnd = 6 * time.Minute
	// seriesCheck is how often it is looked for series that are to be written.
	seriesCheck = time.Minute
)

// recorder writes events.
type recorder struct {
	client  kubernetes.Interface
	host    string           // part of the reporting instance
	busy    func() bool      // binds, preemptions or nominations are queued
	backlog chan *step.Event // of pointers, as all long backlogs: the room in them is allocated at the start
	helpers atomic.Int64     // goroutines that write beside the workers
	dropped atomic.Int64     // events that were not written
	serial  atomic.Int64     // makes events' names unique

	mu     sync.Mutex
	series map[step.Event]*series // guarded by mu; by the event without its message
}

// series is an Event object and how often its event has happened. Its fields are guarded by
// the recorder's mu, but for event, which doesn't change.
type series struct {
	event   *eventsv1.Event // as it was created
	count   int32
	last    time.Time // when it happened last
	written int32     // the count that the API has; 0 until the object is created
	at      time.Time // when that was written
	writing bool      // a call for it is under way: there is no second one beside it
}

func newRecorder(client kubernetes.Interface, host string, busy func() bool) *recorder {
	return &recorder{client: client, host: host, busy: busy, backlog: make(chan *step.Event, eventBacklog), series: map[step.Event]*series{}}
}

// event asks for an event to be written, or counts it as dropped when too many wait.
func (r *recorder) event(e step.Event) {
	select {
	case r.backlog <- &e:
	default:
		r.dropped.Add(1)
	}
}

// run starts the goroutines that write events, and the one that writes how often a repeated event has
// come.
func (r *recorder) run(ctx context.Context, wg *sync.WaitGroup) {
	serve(ctx, wg, eventWorkers, r.backlog, func(e *step.Event) {
		r.getHelp(ctx, wg)
		r.emit(ctx, *e)
	})
	wg.Go(func() {
		tick := time.NewTicker(seriesCheck)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				r.writeCounts(ctx)
			}
		}
	})
}

// getHelp has one goroutine more write events, eventHelpers at most, until none waits or binds,
// preemptions or nominations are queued. An API server that has many writes at a time carries them
// out together, at a lower cost for each, and so does this end of the connection. While other
// calls are queued only the workers write: more of them waiting for the limiter would leave less
// of it to conditions.
func (r *recorder) getHelp(ctx context.Context, wg *sync.WaitGroup) {
	if len(r.backlog) == 0 || r.busy() {
		return
	}
	if r.helpers.Add(1) > eventHelpers {
		r.helpers.Add(-1)
		return
	}
	wg.Go(func() {
		defer r.helpers.Add(-1)
		for !r.busy() && ctx.Err() == nil {
			select {
			case e := <-r.backlog:
				r.emit(ctx, *e)
			default:
				return
			}
		}
	})
}

// emit writes an event, or counts it in its series.
func (r *recorder) emit(ctx context.Context, e step.Event) {
	if e.HappensOnce() { // no series: one is kept for six minutes, and most pods have no other event
		if err := r.put(ctx, r.newEvent(e), 1, time.Time{}); err != nil && ctx.Err() == nil {
			r.dropped.Add(1)
		}
		return
	}
	key := e
	key.Message = ""
	r.mu.Lock()
	s := r.series[key]
	if s == nil {
		s = &series{event: r.newEvent(e)}
		r.series[key] = s
	}
	s.count++
	s.last = time.Now()
	begins := !s.writing && s.written < 2
	s.writing = s.writing || begins
	r.mu.Unlock()
	if begins {
		r.write(ctx, key, s)
	}
}

// write writes what the API doesn't have of the beginning of a series: its object, and that it
// happened again. The caller has set s.writing. A lost event isn't worth a second call.
func (r *recorder) write(ctx context.Context, key step.Event, s *series) {
	for {
		r.mu.Lock()
		count, last := s.count, s.last
		if s.written == 0 {
			count = 1
		}
		r.mu.Unlock()
		err := r.put(ctx, s.event, count, last)
		r.mu.Lock()
		if err != nil && ctx.Err() == nil {
			r.dropped.Add(int64(s.count - s.written))
		}
		if err != nil && s.written == 0 {
			delete(r.series, key) // there is no object to count in
		}
		again := err == nil && count == 1 && s.count > 1
		s.written, s.at, s.writing = count, time.Now(), again
		r.mu.Unlock()
		if !again {
			return
		}
	}
}

// writeCounts writes the counts of series that go on or have ended, and forgets the latter.
func (r *recorder) writeCounts(ctx context.Context) {
	now := time.Now()
	due := map[step.Event]*series{}
	r.mu.Lock()
	for key, s := range r.series {
		ended := now.Sub(s.last) >= seriesEnd
		switch {
		case s.writing:
		case s.count > s.written && (ended || now.Sub(s.at) >= seriesEvery):
			s.writing = true
			due[key] = s
		case ended:
			delete(r.series, key)
		}
	}
	r.mu.Unlock()
	for key, s := range due { // in any order: each is an object of its own
		r.write(ctx, key, s)
	}
}

// put creates an event, or writes how often it has happened. An object that is gone by then
// is created again.
func (r *recorder) put(ctx context.Context, e *eventsv1.Event, count int32, last time.Time) error {
	events := r.client.EventsV1().Events(e.Namespace)
	if count > 1 {
		e = e.DeepCopy()
		e.Series = &eventsv1.EventSeries{Count: count, LastObservedTime: metav1.NewMicroTime(last)}
		patch, err := json.Marshal(map[string]any{"series": e.Series})
		if err != nil {
			return err
		}
		_, err = events.Patch(ctx, e.Name, types.MergePatchType, patch, metav1.PatchOptions{})
		if !apierrors.IsNotFound(err) {
			return err
		}
	}
	_, err := events.Create(ctx, e, metav1.CreateOptions{})
	return err
}

// newEvent returns the object of an event. Events about nodes go to the namespace default, as
// everywhere in Kubernetes.
func (r *recorder) newEvent(e step.Event) *eventsv1.Event {
	now := metav1.NowMicro()
	namespace := e.Namespace
	if namespace == "" {
		namespace = metav1.NamespaceDefault
	}
	kind := v1.EventTypeNormal
	if e.Warning {
		kind = v1.EventTypeWarning
	}
	reporter := reportingController(e.Reporter)
	return &eventsv1.Event{
		ObjectMeta:          metav1.ObjectMeta{Namespace: namespace, Name: eventName(e.Name, now.UnixNano(), r.serial.Add(1))},
		EventTime:           now,
		ReportingController: reporter,
		ReportingInstance:   shortenTo(128, reporter+"-"+r.host),
		Regarding:           v1.ObjectReference{Kind: e.Kind, APIVersion: "v1", Namespace: e.Namespace, Name: e.Name, UID: e.UID},
		Related:             related(e),
		Type:                kind,
		Reason:              e.Reason,
		Action:              e.Action,
		Note:                shorten(e.Message),
	}
}

// reportingController returns the name of an event's reporting controller. The API server refuses an
// event whose controller isn't a qualified name; a schedulerName may be anything.
func reportingController(reporter string) string {
	if len(validation.IsQualifiedName(reporter)) > 0 {
		return step.Berth
	}
	return reporter
}

// eventName returns a name that no other event has: that of the object with a suffix, as everywhere
// in Kubernetes, or a UUID when that would be longer than names may be.
func eventName(object string, nanoseconds, serial int64) string {
	name := fmt.Sprintf("%s.%x.%x", object, nanoseconds, serial)
	if len(name) > validation.DNS1123SubdomainMaxLength {
		return string(uuid.NewUUID())
	}
	return name
}

// related returns what an event is about besides, nil for nothing: the preemptor of a pod, or what an
// event of the status ConfigMap speaks of: a node, or a node group, which the API has no object for.
func related(e step.Event) *v1.ObjectReference {
	switch p := e.Preemptor; {
	case p.PodGroup:
		return &v1.ObjectReference{Kind: "PodGroup", APIVersion: schedulingv1beta1.SchemeGroupVersion.String(), Namespace: p.Namespace, Name: p.Name, UID: p.UID}
	case p != step.PodName{}:
		return &v1.ObjectReference{Kind: "Pod", APIVersion: "v1", Namespace: p.Namespace, Name: p.Name, UID: p.UID}
	case e.Related != "":
		return &v1.ObjectReference{Name: e.Related}
	}
	return nil
}

// shorten cuts a text to the API's limit for the note of an event, 1024 bytes.
func shorten(s string) string { return shortenTo(1024, s) }

// shortenTo cuts a text to so many bytes, at a whole character.
func shortenTo(limit int, s string) string {
	const more = "..."
	if len(s) <= limit {
		return s
	}
	return strings.ToValidUTF8(s[:limit-len(more)], "") + more
}
