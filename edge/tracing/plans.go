package tracing

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/step"
)

// This file traces plans: "plan" from the core's request until the commit, and below it "scale up", from an order of
// nodes until the provider's answer.

// planned is a plan that was requested.
type planned struct {
	number  uint64
	pending int // pods
	at      time.Time
}

// order is an order of nodes without an answer.
type order struct {
	plan  context.Context // of the span of the plan that made it
	at    time.Time
	nodes int
	seq   uint64
}

// errRefused is that a plan wasn't committed.
var errRefused = errors.New("the plan answers no open request")

// planMade makes the span of a plan, with the decisions that its commit has made as events.
func (t *Tracer) planMade(at time.Time, plan *autoscaler.Plan, ready *step.Ready) {
	p := t.plan
	if t.plan = (planned{}); p.at.IsZero() {
		return
	}
	_, s := t.t.Start(context.Background(), "plan", trace.WithNewRoot(), trace.WithTimestamp(p.at), trace.WithAttributes(
		attribute.Int64("berth.plan.number", int64(p.number)), attribute.Int("berth.plan.pending_pods", p.pending), attribute.Int("berth.plan.scale_ups", len(plan.ScaleUps))))
	var err error
	for i := range ready.Decisions {
		switch d := &ready.Decisions[i]; d.Kind {
		case step.ScaledUp, step.NotScaledUp, step.Consolidates, step.PlanCut:
			s.AddEvent(string(d.Kind), trace.WithTimestamp(at), trace.WithAttributes(decisionAttributes(d)...))
		case step.PlanRefused:
			err = errRefused
		}
	}
	end(s, at, err)
	if t.lastPlan = s.SpanContext(); err != nil || !s.SpanContext().IsSampled() {
		return
	}
	for i := range plan.ScaleUps {
		for _, uid := range plan.ScaleUps[i].Pods {
			if len(t.ordered) < maxOpen {
				t.ordered[uid] = s.SpanContext()
			}
		}
	}
}

// decisionAttributes says which decision it is, and what it is about.
func decisionAttributes(d *step.Decision) []attribute.KeyValue {
	out := []attribute.KeyValue{attribute.Int64(decisionKey, int64(d.Seq))}
	for _, x := range []struct{ key, value string }{{"berth.pod", d.Pod}, {"k8s.node.name", d.Node}, {"berth.node_group", d.Group}, {"berth.reason", d.Reason}} {
		if x.value != "" {
			out = append(out, attribute.String(x.key, x.value))
		}
	}
	if d.Nodes != 0 {
		out = append(out, attribute.Int("berth.nodes", d.Nodes))
	}
	return out
}

// orderBegins remembers an order that is handed out.
func (t *Tracer) orderBegins(now time.Time, up step.ScaleUp, decisions []step.Decision) {
	o := order{plan: trace.ContextWithSpanContext(context.Background(), t.lastPlan), at: now, nodes: up.Nodes}
	for i := range decisions {
		if d := &decisions[i]; d.Kind == step.ScaledUp && d.Group == up.Group {
			o.seq = d.Seq
		}
	}
	if len(t.orders[up.Group]) < maxOpen {
		t.orders[up.Group] = append(t.orders[up.Group], o)
	}
}

// orderDone makes the span of an order. One that has no answer ends when the provider's list tells.
func (t *Tracer) orderDone(now time.Time, done step.ScaleUpDone) {
	open := t.orders[done.Group]
	if done.Unknown || len(open) == 0 {
		return
	}
	o := open[0]
	if t.orders[done.Group] = open[1:]; len(open) == 1 {
		delete(t.orders, done.Group)
	}
	t.span(o.plan, "scale up", o.at, now, done.Err, []attribute.KeyValue{
		attribute.String("berth.node_group", done.Group), attribute.Int("berth.nodes", o.nodes), attribute.Int64(decisionKey, int64(o.seq))})
}
