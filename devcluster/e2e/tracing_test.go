package e2e

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	tracev1 "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// receiver is a collector of spans.
type receiver struct {
	collector.UnimplementedTraceServiceServer
	mu    sync.Mutex
	spans map[string]*tracev1.Span // by name and what it is about; guarded by mu
	plans map[string]bool          // IDs of the spans of plans; guarded by mu
}

// Export implements collector.TraceServiceServer.
func (r *receiver) Export(_ context.Context, request *collector.ExportTraceServiceRequest) (*collector.ExportTraceServiceResponse, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, resource := range request.ResourceSpans {
		for _, scope := range resource.ScopeSpans {
			for _, s := range scope.Spans {
				name := s.Name
				for _, a := range s.Attributes {
					if a.Key == "k8s.pod.name" || a.Key == "k8s.node.name" && s.Name == "remove node" || a.Key == "berth.node_group" && s.Name == "scale up" {
						name += " " + a.Value.GetStringValue()
					}
				}
				r.spans[name] = s
				if s.Name == "plan" {
					r.plans[string(s.SpanId)] = true
				}
			}
		}
	}
	return &collector.ExportTraceServiceResponse{}, nil
}

// TestTracing runs Berth with a collector. A pod that needs a node has a span from when it was made until it is bound,
// which is linked to that of the plan that ordered the node, and the node's removal has one.
func TestTracing(t *testing.T) {
	t.Parallel()
	c, client := startCluster(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &receiver{spans: map[string]*tracev1.Span{}, plans: map[string]bool{}}
	server := grpc.NewServer()
	collector.RegisterTraceServiceServer(server, r)
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	path := filepath.Join(t.TempDir(), "tracing.yaml")
	if err := os.WriteFile(path, fmt.Appendf(nil, "apiVersion: apiserver.config.k8s.io/v1\nkind: TracingConfiguration\nendpoint: %s\nsamplingRatePerMillion: 1000000\n", listener.Addr()), 0o600); err != nil {
		t.Fatal(err)
	}
	berth, _ := startBerth(t, c, append(append(nodeGroups(t, c, swapGroups), scaleSoon...), "--tracing-config-file="+path)...)
	p := pod("traced", "1500m")
	p.Spec.NodeSelector = map[string]string{groupOf: "shared"}
	create(t, client, p)
	eventually(t, "the pod to be bound", func(ctx context.Context) bool { return get(ctx, client, "traced").Spec.NodeName != "" })
	bound := get(t.Context(), client, "traced")
	if err := client.CoreV1().Pods(bound.Namespace).Delete(t.Context(), bound.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	find := func(name string) *tracev1.Span {
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.spans[name]
	}
	eventually(t, "the span of the node's removal", func(context.Context) bool { return find("remove node "+bound.Spec.NodeName) != nil })
	berth.Stop(10 * time.Second) // the last spans are sent
	if find("scale up shared") == nil {
		t.Error("the order has no span")
	}
	s := find("schedule pod traced")
	if s == nil {
		t.Fatal("the pod has no span")
	}
	if took := time.Duration(s.EndTimeUnixNano - s.StartTimeUnixNano); took <= 0 || took > time.Since(bound.CreationTimestamp.Time)+time.Second {
		t.Errorf("the pod's span has %s", took)
	}
	if len(s.Links) != 1 || !r.plans[string(s.Links[0].SpanId)] {
		t.Errorf("the pod's span has the links %v, want one to a plan", s.Links)
	}
}
