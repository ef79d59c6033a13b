package tracing

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/berthproject/berth/core/step"
)

// This file traces pods: "schedule pod" from when a pod was first queued until it is bound, with "queue", "decide" and
// "bind" as its parts.

// binding is a bind whose outcome hasn't come.
type binding struct {
	*step.Bind
	decided
	at time.Time // when it was handed out
}

// bindBegins remembers a bind that is handed out.
func (t *Tracer) bindBegins(now time.Time, b *step.Bind) {
	name := b.Namespace + "/" + b.Name
	d := t.placed[name]
	delete(t.placed, name)
	if len(t.binds) < maxOpen {
		t.binds[b.UID] = binding{b, d, now}
	}
}

// bindDone makes the spans of a pod. After an error it is tried again, and the next outcome has spans of its own.
func (t *Tracer) bindDone(now time.Time, done step.BindDone) {
	b, ok := t.binds[done.UID]
	if !ok {
		return
	}
	delete(t.binds, done.UID)
	attributes := []attribute.KeyValue{
		attribute.String("k8s.namespace.name", b.Namespace), attribute.String("k8s.pod.name", b.Name), attribute.String("k8s.pod.uid", string(b.UID)),
		attribute.String("k8s.node.name", b.Node), attribute.String("berth.profile", b.Profile), attribute.Int("berth.attempts", b.Attempts),
		attribute.Int64(decisionKey, int64(b.seq)),
	}
	o := []trace.SpanStartOption{trace.WithNewRoot(), trace.WithTimestamp(b.Queued), trace.WithAttributes(attributes...)}
	if plan, ok := t.ordered[done.UID]; ok {
		o = append(o, trace.WithLinks(trace.Link{SpanContext: plan, Attributes: []attribute.KeyValue{attribute.String("berth.link", "the plan that ordered nodes for the pod")}}))
	}
	if done.Err == nil {
		delete(t.ordered, done.UID)
	}
	ctx, s := t.t.Start(context.Background(), "schedule pod", o...)
	if s.IsRecording() {
		decided := b.at.Add(b.took)
		t.span(ctx, "queue", b.Queued, b.at, nil, nil)
		t.span(ctx, "decide", b.at, decided, nil, attributes[6:])
		t.span(ctx, "bind", decided, now, done.Err, nil)
	}
	end(s, now, done.Err)
}
