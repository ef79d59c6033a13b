package provider

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"k8s.io/client-go/rest"

	"github.com/berthproject/berth/core"
	"github.com/berthproject/berth/edge/apiserver"
	"github.com/berthproject/berth/edge/leader"
	"github.com/berthproject/berth/edge/live"
	"github.com/berthproject/berth/edge/provider/clusterapi"
	"github.com/berthproject/berth/edge/provider/externalgrpc"
	"github.com/berthproject/berth/edge/provider/externalgrpc/protocol"
	"github.com/berthproject/berth/internal/test/testkit"
)

// TestDiscoveryOfClusterAPI has each value select some of the groups, and a value that selects
// nothing refused with what it should be.
func TestDiscoveryOfClusterAPI(t *testing.T) {
	f := Options{Name: ClusterAPI}
	f.Discovery = []string{"clusterapi:namespace=a", "clusterapi:clusterName=c,team=x"}
	c, err := f.Load()
	if err != nil {
		t.Fatal(err)
	}
	if got := c.capi.Discovery; len(got) != 2 || got[0].Namespace != "a" || got[1].ClusterName != "c" || got[1].Labels.String() != "team=x" {
		t.Errorf("got %+v", got)
	}
	f.Discovery = []string{"asg:tag=x"}
	const want = `--node-group-auto-discovery: "asg:tag=x" is not for the provider clusterapi; it must be clusterapi:namespace=NAME`
	if _, err := f.Load(); err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("got %v, want %s", err, want)
	}
}

// TestAShadowsClientsOfClusterAPIOnlyRead in the same cluster and in another one.
func TestAShadowsClientsOfClusterAPIOnlyRead(t *testing.T) {
	for name, cfg := range map[string]*clusterapi.Config{"the same cluster": {}, "another": {API: &rest.Config{Host: "http://management"}}} {
		c := Config{shadow: true, capi: cfg}
		client := testkit.Must(rest.HTTPClientFor(c.managementAPI(&apiserver.Connection{Rest: &rest.Config{Host: "http://cluster"}, Fence: leader.NewFence()})))
		request := testkit.Must(http.NewRequestWithContext(t.Context(), http.MethodPatch, "http://management/apis/cluster.x-k8s.io/v1beta2/machines/m", http.NoBody))
		if answer, err := client.Do(request); !errors.Is(err, live.ErrShadow) {
			t.Errorf("Cluster API in %s: %v, %v; want a refusal", name, answer, err)
		}
	}
}

// cleanups is a server of the externalgrpc protocol that counts how often a client says that it
// goes away.
type cleanups struct {
	protocol.UnimplementedCloudProviderServer
	n atomic.Int32
}

func (s *cleanups) Cleanup(context.Context, *protocol.CleanupRequest) (*protocol.CleanupResponse, error) {
	s.n.Add(1)
	return &protocol.CleanupResponse{}, nil
}

// TestAShadowTellsAnExternalProviderNothing: a leader says at its end that it goes away, and a
// shadow, whose server is another autoscaler's, doesn't.
func TestAShadowTellsAnExternalProviderNothing(t *testing.T) {
	for shadow, want := range map[bool]int32{false: 1, true: 0} {
		listener := testkit.Must(new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0"))
		server, counted := grpc.NewServer(), &cleanups{}
		protocol.RegisterCloudProviderServer(server, counted)
		go func() { _ = server.Serve(listener) }()
		fence, scale := leader.NewFence(), core.DefaultAutoscale()
		fence.Renew(time.Now(), time.Minute)
		c := Config{shadow: shadow, external: &externalgrpc.Config{Address: listener.Addr().String()}}
		n, err := c.Open(&apiserver.Connection{Rest: &rest.Config{}, Fence: fence}, &scale, nil, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		n.End()
		server.Stop()
		if got := counted.n.Load(); got != want {
			t.Errorf("shadow: %t, %d times told, want %d", shadow, got, want)
		}
	}
}
