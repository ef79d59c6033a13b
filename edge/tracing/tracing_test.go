package tracing

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/grpc"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/berthproject/berth/core"
	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/autoscaler/nodegroup"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/framework"
	"github.com/berthproject/berth/core/plugins"
	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/drive"
	"github.com/berthproject/berth/internal/test/testkit"
)

// provider keeps spans in memory.
type provider struct{ *sdktrace.TracerProvider }

// inMemory returns a tracer, and where its spans are.
func inMemory() (*Tracer, *tracetest.InMemoryExporter) {
	spans := tracetest.NewInMemoryExporter()
	return newTracer(provider{sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans))}), spans
}

// world is a driven core whose outcomes a test gives. One second passes after each Step, which takes 10 ms.
type world struct {
	t      testing.TB
	driver *drive.Driver
	tracer *Tracer
	spans  *tracetest.InMemoryExporter
	now    time.Time
	ready  step.Ready // of the last Step
	plan   *autoscaler.Request
}

func newWorld(t testing.TB) *world {
	tracer, spans := inMemory()
	w := &world{t: t, tracer: tracer, spans: spans, now: time.Unix(1000, 0)}
	keep := drive.HookFunc(func(_ time.Time, _ time.Duration, _ []step.Input, r *step.Ready) { w.ready = *r })
	schema := cluster.NewSchema()
	cfg, a := core.DefaultConfig(), core.DefaultAutoscale()
	a.ScanInterval = time.Second
	cfg.Autoscale = &a
	cfg.Profiles = []*framework.Profile{plugins.Default(schema, plugins.Options{})}
	var err error
	w.driver, err = drive.New(drive.Config{Schema: schema, Core: cfg, Workers: drive.Unanswered{}, Inbox: func(step.Input) {}, Hooks: w.tracer.Hooks(keep),
		Clock: func() time.Time { return w.now.Add(10 * time.Millisecond) }})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *world) step(in ...step.Input) step.Ready {
	w.t.Helper()
	if _, err := w.driver.Step(w.now, in...); err != nil {
		w.t.Fatal(err)
	}
	if w.ready.Plan != nil {
		w.plan = w.ready.Plan
	}
	w.now = w.now.Add(time.Second)
	return w.ready
}

// described returns spans with their times after the start, attributes, events, parents and links, by name.
func described(spans tracetest.SpanStubs) string {
	var out []string
	name := map[trace.SpanID]string{}
	for _, s := range spans {
		name[s.SpanContext.SpanID()] = s.Name
	}
	at := func(t time.Time) string { return fmt.Sprintf("%.2f", t.Sub(time.Unix(1000, 0)).Seconds()) }
	for _, s := range spans {
		var b strings.Builder
		fmt.Fprintf(&b, "%s %s-%s", s.Name, at(s.StartTime), at(s.EndTime))
		if s.Parent.IsValid() {
			fmt.Fprintf(&b, " below %s", name[s.Parent.SpanID()])
		}
		for _, l := range s.Links {
			fmt.Fprintf(&b, " linked to %s", name[l.SpanContext.SpanID()])
		}
		for _, a := range s.Attributes {
			fmt.Fprintf(&b, " %s=%s", a.Key, a.Value.String())
		}
		if s.Status.Description != "" {
			fmt.Fprintf(&b, " error: %s", s.Status.Description)
		}
		for _, e := range s.Events {
			fmt.Fprintf(&b, "\n  %s at %s", e.Name, at(e.Time))
			for _, a := range e.Attributes {
				fmt.Fprintf(&b, " %s=%s", a.Key, a.Value.String())
			}
		}
		out = append(out, b.String())
	}
	return strings.Join(out, "\n") + "\n"
}

// TestAPodThatNeedsANode follows a pod from the queue over a plan and an order to its bind, which fails once.
func TestAPodThatNeedsANode(t *testing.T) {
	w := newWorld(t)
	template := testkit.Node("t").Alloc("cpu", "4", "memory", "8Gi", "pods", "10").Obj()
	group := nodegroup.Group{ID: "g", Max: 3, Template: template, Instances: []nodegroup.Instance{}}
	pod := testkit.Pod("p").Req("cpu", "1").Obj()
	w.step(step.GroupsSet{Groups: []nodegroup.Group{group}}, step.PodSet{Pod: pod}, step.NodeSet{Node: testkit.Node("full").Alloc("cpu", "0", "pods", "1").Obj()})
	for range 20 {
		if w.plan != nil {
			break
		}
		w.step()
	}
	if w.plan == nil {
		t.Fatal("no plan is asked for")
	}
	plan := autoscaler.NewPlan(w.plan, 0)
	plan.ScaleUps = []autoscaler.ScaleUp{{Group: "g", Nodes: 1, Pods: []types.UID{pod.UID}, Bins: [][]types.UID{{pod.UID}}}}
	w.plan = nil
	if len(w.step(step.PlanMade{Plan: plan}).ScaleUps) != 1 {
		t.Fatal("nothing is ordered")
	}
	w.step(step.ScaleUpDone{Group: "g", Nodes: 1, Unknown: true, Err: context.DeadlineExceeded}) // the list tells
	group.Target, group.Instances = 1, []nodegroup.Instance{{ID: "i"}}
	w.step(step.GroupsSet{Groups: []nodegroup.Group{group}})
	node := testkit.Node("n").Alloc("cpu", "4", "memory", "8Gi", "pods", "10").Obj()
	node.Spec.ProviderID = "i"
	for range 10 {
		if w.step(step.NodeSet{Node: node, Group: "g"}); len(w.ready.Binds) > 0 {
			break
		}
	}
	w.step()
	w.step(step.BindDone{UID: pod.UID, Err: errors.New("refused")})
	for range 30 {
		if w.step(); len(w.ready.Binds) > 0 {
			break
		}
	}
	w.step(step.BindDone{UID: pod.UID})
	got := described(w.spans.GetSpans())
	want := `plan 0.00-1.01 berth.plan.number=1 berth.plan.pending_pods=1 berth.plan.scale_ups=1
  ScaledUp at 1.01 berth.decision.seq=2 berth.node_group=g berth.reason=for 1 pending pod(s); 0->1 (max: 3), 0 % of cpu and memory unused berth.nodes=1
scale up 1.00-3.00 below plan berth.node_group=g berth.nodes=1 berth.decision.seq=2
`
	if !strings.HasPrefix(got, want) {
		t.Errorf("the spans are\n%s\nwant\n%s", got, want)
	}
	for _, want := range []string{
		"schedule pod 0.00-6.00 linked to plan k8s.namespace.name=default k8s.pod.name=p k8s.pod.uid=pod-p k8s.node.name=n berth.profile=default-scheduler", "error: refused",
		"queue 0.00-4.00 below schedule pod\ndecide 4.00-4.01 below schedule pod berth.decision.seq=", "bind 4.01-6.00 below schedule pod error: refused\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("the spans are\n%s\nwant %q", got, want)
		}
	}
	if n := strings.Count(got, "linked to plan k8s.namespace.name=default k8s.pod.name=p "); n != 2 {
		t.Errorf("%d spans of the pod are linked to the plan, want one for each bind:\n%s", n, got)
	}
	if last := got[strings.LastIndex(got, "schedule pod"):]; strings.Contains(last, "error") {
		t.Errorf("the bind that went well has an error:\n%s", last)
	}
	if w.tracer.open() != 0 {
		t.Errorf("%d things are left open", w.tracer.open())
	}
}

// open returns how many things the tracer remembers.
func (t *Tracer) open() int {
	return len(t.placed) + len(t.binds) + len(t.ordered) + len(t.orders) + len(t.removals)
}

// decide is a Step with decisions of its time.
func decide(t *Tracer, second int, inputs []step.Input, decisions ...step.Decision) {
	now := time.Unix(1000+int64(second), 0)
	for i := range decisions {
		decisions[i].Time = now
	}
	t.Step(now, 0, inputs, &step.Ready{Decisions: decisions})
}

// TestRemovals traces nodes that are deleted, kept, recalled, deleted with an error, and gone by themselves.
func TestRemovals(t *testing.T) {
	tracer, spans := inMemory()
	taint := func(seq uint64, node string) step.Decision {
		return step.Decision{Seq: seq, Kind: step.NodeTainted, Node: node, Group: "g", Reason: "unneeded"}
	}
	decide(tracer, 0, nil, taint(1, "deleted"), taint(2, "kept"), taint(3, "recalled"), taint(4, "failed"), taint(5, "gone"), taint(6, "unknown"))
	decide(tracer, 1, nil, step.Decision{Seq: 7, Kind: step.PodEvicted, Pod: "d/p", Node: "deleted"}, step.Decision{Seq: 8, Kind: step.PodEvicted, Pod: "d/q", Node: "other"},
		step.Decision{Seq: 9, Kind: step.NodeRecalled, Node: "recalled", Reason: "a pod came"})
	decide(tracer, 2, nil, step.Decision{Seq: 10, Kind: step.NodeKept, Node: "kept"}, step.Decision{Seq: 11, Kind: step.NodeRemoved, Node: "deleted", Group: "g"})
	decide(tracer, 3, []step.Input{step.NodeDeletionDone{Node: "deleted"}, step.NodeDeletionDone{Node: "failed", Err: errors.New("no")},
		step.NodeDeletionDone{Node: "unknown", Unknown: true, Err: context.DeadlineExceeded}, step.NodeGone{Name: "gone"}, step.NodeGone{Name: "other"}})
	tracer.Step(time.Unix(1005, 0), 0, nil, &step.Ready{SettledDeletions: []step.NodeDeletionDone{{Node: "unknown"}}})
	want := `remove node 0.00-1.00 berth.decision.seq=3 k8s.node.name=recalled berth.node_group=g berth.reason=unneeded berth.outcome=NodeRecalled
  NodeRecalled at 1.00 berth.decision.seq=9 k8s.node.name=recalled berth.reason=a pod came
remove node 0.00-2.00 berth.decision.seq=2 k8s.node.name=kept berth.node_group=g berth.reason=unneeded berth.outcome=NodeKept
  NodeKept at 2.00 berth.decision.seq=10 k8s.node.name=kept
remove node 0.00-3.00 berth.decision.seq=1 k8s.node.name=deleted berth.node_group=g berth.reason=unneeded berth.outcome=deleted
  PodEvicted at 1.00 berth.decision.seq=7 berth.pod=d/p k8s.node.name=deleted
  NodeRemoved at 2.00 berth.decision.seq=11 k8s.node.name=deleted berth.node_group=g
remove node 0.00-3.00 berth.decision.seq=4 k8s.node.name=failed berth.node_group=g berth.reason=unneeded berth.outcome=deleted error: no
remove node 0.00-3.00 berth.decision.seq=5 k8s.node.name=gone berth.node_group=g berth.reason=unneeded berth.outcome=gone
remove node 0.00-5.00 berth.decision.seq=6 k8s.node.name=unknown berth.node_group=g berth.reason=unneeded berth.outcome=deleted
`
	if got := described(spans.GetSpans()); got != want {
		t.Errorf("the spans are\n%s\nwant\n%s", got, want)
	}
	if tracer.open() != 0 {
		t.Errorf("%d things are left open", tracer.open())
	}
}

// TestPropertyEverySpanEnds: pods are placed, refused, bound and gone, and nodes are removed, in any order. Whatever has come
// to its end is forgotten, and no span ends before it begins.
func TestPropertyEverySpanEnds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tracer, spans := inMemory()
		open := map[string]bool{}
		seconds := rapid.IntRange(5, 40).Draw(t, "seconds")
		for i := range seconds {
			now := time.Unix(1000+int64(i), 0)
			ready, inputs := &step.Ready{}, []step.Input(nil)
			name := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "name")
			uid := types.UID(name)
			switch rapid.IntRange(0, 5).Draw(t, "what") {
			case 0:
				ready.Decisions = []step.Decision{{Kind: step.Placed, Pod: "d/" + name, Time: now}}
				ready.Binds = []step.Bind{{UID: uid, Namespace: "d", Name: name, Queued: now.Add(-time.Second)}}
				open["bind "+name] = true
			case 1:
				inputs = []step.Input{step.BindDone{UID: uid}}
				delete(open, "bind "+name)
			case 2:
				inputs = []step.Input{step.PodGone{UID: uid}}
				delete(open, "bind "+name)
			case 3:
				ready.Decisions = []step.Decision{{Kind: step.NodeTainted, Node: name, Time: now}}
				open["node "+name] = true
			case 4:
				ready.Decisions = []step.Decision{{Kind: rapid.SampledFrom([]step.DecisionKind{step.NodeKept, step.NodeRecalled}).Draw(t, "kind"), Node: name, Time: now}}
				delete(open, "node "+name)
			case 5:
				inputs = []step.Input{step.NodeDeletionDone{Node: name}}
				delete(open, "node "+name)
			}
			tracer.Step(now, 0, inputs, ready)
			if tracer.open() != len(open) {
				t.Fatalf("after %d Steps %d things are open, want %v", i+1, tracer.open(), open)
			}
		}
		for _, s := range spans.GetSpans() {
			if s.EndTime.Before(s.StartTime) {
				t.Fatalf("%s ends %s before it begins", s.Name, s.StartTime.Sub(s.EndTime))
			}
		}
	})
}

// TestOffIsNoHook: without the file a core has no hook more, and nothing to close.
func TestOffIsNoHook(t *testing.T) {
	tracer, err := Open(t.Context(), "", slog.Default())
	if tracer != nil || err != nil {
		t.Fatalf("without a file there is %v, %v", tracer, err)
	}
	tracer.Close()
	hook := drive.HookFunc(func(time.Time, time.Duration, []step.Input, *step.Ready) {})
	if hooks := tracer.Hooks(hook); len(hooks) != 1 {
		t.Errorf("there are %d hooks, want the one that is given", len(hooks))
	}
}

// receiver is a collector that keeps the names of spans, with the service that they are of.
type receiver struct {
	collector.UnimplementedTraceServiceServer
	got chan string
}

// Export implements collector.TraceServiceServer.
func (r *receiver) Export(_ context.Context, request *collector.ExportTraceServiceRequest) (*collector.ExportTraceServiceResponse, error) {
	for _, resource := range request.ResourceSpans {
		var service string
		for _, a := range resource.Resource.Attributes {
			if a.Key == "service.name" {
				service = a.Value.GetStringValue()
			}
		}
		for _, scope := range resource.ScopeSpans {
			for _, s := range scope.Spans {
				r.got <- service + ": " + s.Name
			}
		}
	}
	return &collector.ExportTraceServiceResponse{}, nil
}

// write returns the path of a file.
func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tracing.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestSpansReachACollector sends spans to a collector by a file; Close sends what isn't sent yet.
func TestSpansReachACollector(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &receiver{got: make(chan string, 10)}
	server := grpc.NewServer()
	collector.RegisterTraceServiceServer(server, r)
	go func() { _ = server.Serve(listener) }()
	defer server.Stop()
	path := write(t, "apiVersion: apiserver.config.k8s.io/v1\nkind: TracingConfiguration\nendpoint: "+listener.Addr().String()+"\nsamplingRatePerMillion: 1000000\n")
	tracer, err := Open(t.Context(), path, slog.New(slog.NewTextHandler(io.Discard, nil)))
	if err != nil {
		t.Fatal(err)
	}
	decide(tracer, 0, nil, step.Decision{Kind: step.NodeTainted, Node: "n"})
	decide(tracer, 1, []step.Input{step.NodeDeletionDone{Node: "n"}})
	tracer.Close()
	if len(r.got) != 1 {
		t.Fatalf("%d spans have come, want 1", len(r.got))
	}
	if got := <-r.got; got != "berth: remove node" {
		t.Errorf("%q has come", got)
	}
}

// TestWhatIsWrongWithTheFileIsNamed has files with each mistake.
func TestWhatIsWrongWithTheFileIsNamed(t *testing.T) {
	const head = "apiVersion: apiserver.config.k8s.io/v1\nkind: TracingConfiguration\n"
	for name, x := range map[string]struct{ text, want string }{
		"another kind":    {"apiVersion: v1\nkind: ConfigMap\n", `apiVersion is "v1" and kind "ConfigMap"; they must be apiserver.config.k8s.io/v1`},
		"empty":           {"", `apiVersion is "" and kind ""`},
		"no YAML":         {"a: [", "tracing.yaml: "},
		"an unknown key":  {head + "sampling: 1\n", `unknown field "sampling"`},
		"a negative rate": {head + "samplingRatePerMillion: -1\n", "samplingRatePerMillion: Invalid value: -1: sampling rate must be positive"},
		"too high a rate": {head + "samplingRatePerMillion: 1000001\n", "less than or equal to one million"},
		"http":            {head + "endpoint: https://collector:4317\n", "unsupported scheme: https"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := Open(t.Context(), write(t, x.text), slog.Default()); err == nil || !strings.Contains(err.Error(), x.want) || !strings.Contains(err.Error(), "--tracing-config-file") {
				t.Errorf("the error is %v, want one with %q", err, x.want)
			}
		})
	}
	if _, err := Open(t.Context(), "nothing.yaml", slog.Default()); err == nil || !strings.Contains(err.Error(), "nothing.yaml") {
		t.Errorf("without the file the error is %v", err)
	}
}

// TestACollectorThatIsAwayIsToldOnce: the same error is logged once, until another comes.
func TestACollectorThatIsAwayIsToldOnce(t *testing.T) {
	var log strings.Builder
	c := &complaints{log: slog.New(slog.NewTextHandler(&log, nil))}
	for _, text := range []string{"refused", "refused", "timeout", "refused"} {
		c.Handle(errors.New(text))
	}
	if n := strings.Count(log.String(), "spans can't be exported"); n != 3 {
		t.Errorf("there are %d lines, want 3:\n%s", n, log.String())
	}
}

// steps returns a function that takes 24 Steps of a core with hooks: eight pods are placed, bound and gone.
func steps(t testing.TB, hooks []drive.Hook) (round func()) {
	schema := cluster.NewSchema()
	cfg := core.DefaultConfig(plugins.Default(schema, plugins.Options{}))
	d, err := drive.New(drive.Config{Schema: schema, Core: cfg, Workers: drive.Unanswered{}, Inbox: func(step.Input) {}, Hooks: hooks})
	if err != nil {
		t.Fatal(err)
	}
	now := time.Unix(1000, 0)
	run := func(in ...step.Input) {
		if _, err := d.Step(now, in...); err != nil {
			t.Fatal(err)
		}
		now = now.Add(time.Millisecond)
	}
	run(step.NodeSet{Node: testkit.Node("n").Alloc("cpu", "4", "memory", "8Gi", "pods", "10").Obj()})
	var pods []*v1.Pod
	for i := range 8 {
		pods = append(pods, testkit.Pod(fmt.Sprint("p", i)).Req("cpu", "100m").Obj())
	}
	return func() {
		for _, p := range pods {
			run(step.PodSet{Pod: p})
			run(step.BindDone{UID: p.UID})
			run(step.PodGone{UID: p.UID})
		}
	}
}

// unsampled returns a tracer that makes spans of which none is sent.
func unsampled() *Tracer {
	return newTracer(provider{sdktrace.NewTracerProvider(sdktrace.WithSampler(sdktrace.NeverSample()))})
}

// TestOffAllocatesNothing: without the file, Steps allocate what they allocate in a program without tracing. With it they
// allocate more, so the comparison notices a tracer that is there.
func TestOffAllocatesNothing(t *testing.T) {
	off, err := Open(t.Context(), "", slog.Default())
	if err != nil {
		t.Fatal(err)
	}
	allocs := func(hooks []drive.Hook) float64 {
		round := steps(t, hooks)
		for range 100 { // what the core keeps has its size then
			round()
		}
		return testing.AllocsPerRun(100, round)
	}
	without, with := allocs(nil), allocs(unsampled().Hooks())
	if got := allocs(off.Hooks()); got != without || with <= without {
		t.Errorf("24 Steps have %v allocations without tracing, %v with tracing off and %v with it on; want the same when it is off, and more when it is on", without, got, with)
	}
}

// BenchmarkSteps takes Steps in which pods are placed and bound: in a program that knows no tracing, with tracing off,
// with spans of which none is sampled, and with all of them.
func BenchmarkSteps(b *testing.B) {
	for _, x := range []struct {
		name  string
		hooks []drive.Hook
	}{
		{"without", nil},
		{"off", (*Tracer)(nil).Hooks()},
		{"none", unsampled().Hooks()},
		{"all", newTracer(provider{sdktrace.NewTracerProvider()}).Hooks()},
	} {
		b.Run(x.name, func(b *testing.B) {
			round := steps(b, x.hooks)
			b.ReportAllocs()
			for b.Loop() {
				round()
			}
		})
	}
}
