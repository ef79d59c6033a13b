package live

import (
	"context"
	"fmt"
	"strings"
	"sync"

	v1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berthproject/berth/core/step"
)

// Events are written by hand, not by client-go's recorder: they share the reporter's
// budget, which a recorder's own goroutines would exceed, and aggregate nothing,
// since the core says each thing once. Events beyond the backlog are dropped and
// counted; the decision ledger has what they said.

// Controller is the reporting controller of events.
const Controller = "berth"

// eventBacklog is how many events wait to be written at most.
const eventBacklog = 50000

// event has an event written, or counts it as dropped when too many wait.
func (r *reporter) event(e step.Event) {
	select {
	case r.events <- e:
	default:
		r.dropped.Add(1)
	}
}

func (r *reporter) runEvents(ctx context.Context, wg *sync.WaitGroup) {
	serve(ctx, wg, eventWorkers, r.events, func(e step.Event) { r.emit(ctx, e) })
}

// emit writes an event, or counts it as dropped.
func (r *reporter) emit(ctx context.Context, e step.Event) {
	if err := r.writeEvent(ctx, e); err != nil && ctx.Err() == nil {
		r.dropped.Add(1)
	}
}

// writeEvent creates the event, once: a lost event isn't worth a second call. Events
// about nodes go to the namespace default, as everywhere in Kubernetes.
func (r *reporter) writeEvent(ctx context.Context, e step.Event) error {
	now := metav1.NowMicro()
	namespace := e.Namespace
	if namespace == "" {
		namespace = metav1.NamespaceDefault
	}
	kind := v1.EventTypeNormal
	if e.Warning {
		kind = v1.EventTypeWarning
	}
	_, err := r.client.EventsV1().Events(namespace).Create(ctx, &eventsv1.Event{
		ObjectMeta:          metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("%s.%x.%x", e.Name, now.UnixNano(), r.serial.Add(1))},
		EventTime:           now,
		ReportingController: Controller,
		ReportingInstance:   r.host,
		Regarding:           v1.ObjectReference{Kind: e.Kind, APIVersion: "v1", Namespace: e.Namespace, Name: e.Name, UID: e.UID},
		Type:                kind,
		Reason:              e.Reason,
		Action:              e.Action,
		Note:                shorten(e.Message),
	}, metav1.CreateOptions{})
	return err
}

// shorten cuts a text to the API's limit for the note of an event, 1024 bytes, at a
// whole character.
func shorten(s string) string {
	const limit, more = 1024, "..."
	if len(s) <= limit {
		return s
	}
	return strings.ToValidUTF8(s[:limit-len(more)], "") + more
}
