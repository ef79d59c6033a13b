package tracing

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/berthproject/berth/core/step"
)

// This file traces removals: "remove node" from the taint until the provider has taken the deletion, or the node stays.
// Evictions are its events.

// removal is a node on its way out.
type removal struct {
	began  step.Decision
	plan   trace.SpanContext // after which it began
	events []step.Decision
}

// maxEvents is how many events a removal has.
const maxEvents = 200

// removalBegins remembers a node that got its taint.
func (t *Tracer) removalBegins(d *step.Decision) {
	if len(t.removals) < maxOpen {
		t.removals[d.Node] = &removal{began: *d, plan: t.lastPlan}
	}
}

// removalEvent remembers a decision about a node on its way out.
func (t *Tracer) removalEvent(d *step.Decision) {
	if r := t.removals[d.Node]; r != nil && len(r.events) < maxEvents {
		r.events = append(r.events, *d)
	}
}

// deletionDone ends a removal by the provider's answer. One that has no answer ends when the provider's list tells,
// and one that failed when the node is kept.
func (t *Tracer) deletionDone(now time.Time, done step.NodeDeletionDone) {
	if !done.Unknown {
		t.removed(now, done.Node, "deleted", done.Err)
	}
}

// removed makes the span of a removal that has come to its end.
func (t *Tracer) removed(now time.Time, node, outcome string, err error) {
	r := t.removals[node]
	if r == nil {
		return
	}
	delete(t.removals, node)
	o := []trace.SpanStartOption{trace.WithNewRoot(), trace.WithTimestamp(r.began.Time), trace.WithAttributes(append(decisionAttributes(&r.began), attribute.String("berth.outcome", outcome))...)}
	if r.plan.IsValid() {
		o = append(o, trace.WithLinks(trace.Link{SpanContext: r.plan, Attributes: []attribute.KeyValue{attribute.String("berth.link", "the plan before the removal")}}))
	}
	_, s := t.t.Start(context.Background(), "remove node", o...)
	for i := range r.events {
		d := &r.events[i]
		s.AddEvent(string(d.Kind), trace.WithTimestamp(d.Time), trace.WithAttributes(decisionAttributes(d)...))
	}
	end(s, now, err)
}
