package tracing

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-base/tracing"

	"github.com/berthproject/berth/core/step"
)

// maxOpen is how many of each kind of things are remembered until their spans are made. What comes beyond has none.
const maxOpen = 100_000

// decisionKey is the attribute that links a span or an event of it with the ledger: the decision's seq.
const decisionKey = "berth.decision.seq"

// Tracer makes spans. It is a drive.Hook, for the goroutine that owns the core.
type Tracer struct {
	spans tracing.TracerProvider
	t     trace.Tracer

	placed  map[string]decided              // pods that got a node and aren't handed out to be bound, by namespace/name
	binds   map[types.UID]binding           // those that are
	ordered map[types.UID]trace.SpanContext // plans that ordered nodes for pods which aren't bound

	plan     planned            // the plan that is being made
	lastPlan trace.SpanContext  // of the plan that was committed last
	orders   map[string][]order // nodes that were ordered, by group, the oldest first

	removals map[string]*removal // nodes on their way out, by name
}

func newTracer(spans tracing.TracerProvider) *Tracer {
	return &Tracer{
		spans: spans, t: spans.Tracer("github.com/berthproject/berth"),
		placed: map[string]decided{}, binds: map[types.UID]binding{}, ordered: map[types.UID]trace.SpanContext{},
		orders: map[string][]order{}, removals: map[string]*removal{},
	}
}

// decided is a decision that a span comes of.
type decided struct {
	seq  uint64
	took time.Duration // its share of the Step
}

// Step implements drive.Hook. Outcomes come before what the Step has decided: an order's answer is of an earlier one.
func (t *Tracer) Step(now time.Time, took time.Duration, inputs []step.Input, ready *step.Ready) {
	for _, in := range inputs {
		switch x := in.(type) {
		case step.BindDone:
			t.bindDone(now, x)
		case step.PodGone:
			delete(t.binds, x.UID)
			delete(t.ordered, x.UID)
		case step.PlanMade:
			t.planMade(now.Add(took), x.Plan, ready)
		case step.ScaleUpDone:
			t.orderDone(now, x)
		case step.NodeDeletionDone:
			t.deletionDone(now, x)
		case step.NodeGone:
			t.removed(now, x.Name, "gone", nil)
		}
	}
	for _, done := range ready.SettledScaleUps {
		t.orderDone(now, done)
	}
	for _, done := range ready.SettledDeletions {
		t.deletionDone(now, done)
	}
	t.decisions(took, ready)
	for i := range ready.Binds {
		t.bindBegins(now, &ready.Binds[i])
	}
	for _, up := range ready.ScaleUps {
		t.orderBegins(now, up, ready.Decisions)
	}
	if ready.Plan != nil {
		t.plan = planned{number: ready.Plan.Number, pending: len(ready.Plan.Pending), at: now}
	}
}

// decisions reads the ledger of a Step. Its time counts in equal shares for the pods that were tried in it.
func (t *Tracer) decisions(took time.Duration, ready *step.Ready) {
	tried := 0
	for i := range ready.Decisions {
		if k := ready.Decisions[i].Kind; k == step.Placed || k == step.Waits || k == step.Failed {
			tried++
		}
	}
	for i := range ready.Decisions {
		d := &ready.Decisions[i]
		switch d.Kind {
		case step.Placed:
			if len(t.placed) < maxOpen {
				t.placed[d.Pod] = decided{d.Seq, took / time.Duration(tried)}
			}
		case step.Unplaced, step.Refused:
			delete(t.placed, d.Pod)
		case step.NodeTainted:
			t.removalBegins(d)
		case step.PodEvicted, step.PodSurged, step.NodeRemoved:
			t.removalEvent(d)
		case step.NodeKept, step.NodeRecalled:
			t.removalEvent(d)
			t.removed(d.Time, d.Node, string(d.Kind), nil)
		}
	}
}

// span makes a span below that of a context.
func (t *Tracer) span(ctx context.Context, name string, from, to time.Time, err error, attributes []attribute.KeyValue) {
	_, s := t.t.Start(ctx, name, trace.WithTimestamp(from), trace.WithAttributes(attributes...))
	end(s, to, err)
}

// end ends a span, with what went wrong.
func end(s trace.Span, at time.Time, err error) {
	if err != nil {
		s.SetStatus(codes.Error, err.Error())
	}
	s.End(trace.WithTimestamp(at))
}
