package externalgrpc_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berthproject/berth/core/autoscaler/nodegroup"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/edge/provider/externalgrpc"
	"github.com/berthproject/berth/edge/provider/externalgrpc/protocol"
	"github.com/berthproject/berth/internal/test/testkit"
)

// fakeProvider has the groups that a test gives it. A node is of the group that its label "group"
// names. Errors are by "CALL GROUP".
type fakeProvider struct {
	mu     sync.Mutex
	groups map[string]*nodegroup.Group // guarded by mu; by ID
	fails  map[string]error            // guarded by mu
	calls  []string                    // guarded by mu; those that change something
}

func newFakeProvider(groups ...nodegroup.Group) *fakeProvider {
	p := &fakeProvider{groups: map[string]*nodegroup.Group{}, fails: map[string]error{}}
	for _, g := range groups {
		g.Instances = slices.Clone(g.Instances)
		p.groups[g.ID] = &g
	}
	return p
}

func (p *fakeProvider) Groups(context.Context) ([]nodegroup.Group, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var out []nodegroup.Group
	for _, id := range slices.Sorted(maps.Keys(p.groups)) {
		g := *p.groups[id]
		g.Instances = slices.Clone(g.Instances)
		out = append(out, g)
	}
	return out, p.fails["list"]
}

func (p *fakeProvider) GroupOf(n *v1.Node) string { return n.Labels["group"] }

func (p *fakeProvider) change(call, group string, f func(*nodegroup.Group)) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls = append(p.calls, call+" "+group)
	if err := p.fails[strings.Fields(call)[0]+" "+group]; err != nil {
		return err
	}
	f(p.groups[group])
	return nil
}

func (p *fakeProvider) IncreaseSize(_ context.Context, group string, delta int) error {
	return p.change(fmt.Sprint("increase by ", delta), group, func(g *nodegroup.Group) {
		for range delta {
			g.Instances = append(g.Instances, nodegroup.Instance{ID: fmt.Sprintf("fake://%s/%d", group, g.Target)})
			g.Target++
		}
	})
}

func (p *fakeProvider) DeleteNodes(_ context.Context, group string, list []nodegroup.Instance) error {
	return p.change(fmt.Sprint("delete ", list), group, func(g *nodegroup.Group) {
		for _, x := range list {
			g.Instances = slices.DeleteFunc(g.Instances, func(y nodegroup.Instance) bool { return x.ID == y.ID })
			g.Target--
		}
	})
}

func (p *fakeProvider) DecreaseTargetSize(_ context.Context, group string, delta int) error {
	return p.change(fmt.Sprint("decrease by ", delta), group, func(g *nodegroup.Group) { g.Target -= delta })
}

// group returns a group with a template.
func group(id string, change ...func(*nodegroup.Group)) nodegroup.Group {
	n := testkit.Node(id+"-template").Alloc("cpu", "4", "memory", "8Gi", "pods", "110").Label("group", id).Obj()
	g := nodegroup.Group{ID: id, Max: 1000, Price: 0.25, Template: n, Instances: []nodegroup.Instance{}}
	for _, f := range change {
		f(&g)
	}
	return g
}

// intercept answers a call in place of the server, or has next answer it.
type intercept func(ctx context.Context, call string, request any, next func() (any, error)) (any, error)

// bed is a client of a server on loopback, and what the client has logged.
type bed struct {
	*externalgrpc.Client
	address string
	now     time.Time
	log     lockedBuffer
}

type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

// take returns the lines that were logged since the last call.
func (b *lockedBuffer) take() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	defer b.buf.Reset()
	return strings.TrimSpace(b.buf.String())
}

// serve serves a provider on loopback until the test ends, and returns the address.
func serve(t testing.TB, p nodegroup.Provider, f intercept) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g := grpc.NewServer(grpc.UnaryInterceptor(func(ctx context.Context, request any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		next := func() (any, error) { return handler(ctx, request) }
		if f == nil {
			return next()
		}
		return f(ctx, path.Base(info.FullMethod), request, next)
	}))
	protocol.RegisterCloudProviderServer(g, externalgrpc.NewServer(p))
	go func() { _ = g.Serve(listener) }() // ends with Stop
	t.Cleanup(g.Stop)
	return listener.Addr().String()
}

// allDefaults are what flags say about every group.
func allDefaults() cluster.GroupOptions {
	ratio, daemons := 0.5, false
	minutes := func(n time.Duration) *metav1.Duration { return &metav1.Duration{Duration: n * time.Minute} }
	return cluster.GroupOptions{UtilizationThreshold: &ratio, GPUUtilizationThreshold: &ratio, UnneededTime: minutes(10), UnreadyTime: minutes(20), ProvisionTime: minutes(15), StartupTime: minutes(15), IgnoreDaemonSetsUtilization: &daemons}
}

// newBed returns a client of a provider's server.
func newBed(t testing.TB, timeout time.Duration, p nodegroup.Provider, f intercept) *bed {
	t.Helper()
	b := &bed{address: serve(t, p, f), now: time.Unix(1000, 0)}
	b.Client = b.connect(t, &externalgrpc.Config{Address: b.address, Timeout: &metav1.Duration{Duration: timeout}})
	return b
}

// connect returns a client that the test closes.
func (b *bed) connect(t testing.TB, cfg *externalgrpc.Config) *externalgrpc.Client {
	t.Helper()
	log := slog.New(slog.NewTextHandler(&b.log, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey || a.Key == slog.LevelKey || a.Key == "server" {
			return slog.Attr{}
		}
		return a
	}}))
	c, err := externalgrpc.NewClient(cfg, allDefaults(), func() time.Time { return b.now }, log)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// list reads the groups, which must not fail.
func (b *bed) list(t testing.TB) []nodegroup.Group {
	t.Helper()
	groups, err := b.Groups(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return groups
}
