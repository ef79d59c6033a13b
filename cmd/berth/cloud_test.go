package main

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"

	"github.com/berthproject/berth/config"
	"github.com/berthproject/berth/core"
	"github.com/berthproject/berth/core/autoscaler/nodegroup"
	"github.com/berthproject/berth/edge/leader"
	"github.com/berthproject/berth/edge/live"
	"github.com/berthproject/berth/edge/observe"
	"github.com/berthproject/berth/edge/provider/clusterapi"
	"github.com/berthproject/berth/edge/provider/externalgrpc"
	"github.com/berthproject/berth/edge/provider/externalgrpc/protocol"
	"github.com/berthproject/berth/edge/provider/simulated"
	"github.com/berthproject/berth/internal/testkit"
)

// severalGroups is a file of simulated node groups.
const severalGroups = "../../examples/demo/groups.yaml"

// optionsOf returns what berth run has the live edge run with, and what ends it.
func optionsOf(t *testing.T, args ...string) (live.Options, func()) {
	t.Helper()
	o, end, err := processOf(t, fake.NewClientset(), args...).options(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return o, end
}

// processOf returns a berth run with simulated node groups that has connected to an API.
func processOf(t *testing.T, client kubernetes.Interface, args ...string) *process {
	t.Helper()
	f, fs := parsed(t, append([]string{"--cloud-provider=simulated", "--cloud-config=" + filepath.FromSlash(severalGroups)}, args...)...)
	if err := f.validate(); err != nil {
		t.Fatal(err)
	}
	cfg, err := f.schedulerConfig(fs)
	if err != nil {
		t.Fatal(err)
	}
	cloud, err := f.readCloudConfig()
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	return &process{flags: f, cfg: cfg, cloud: cloud, api: &apiServer{rest: &rest.Config{}, client: client}, log: log,
		server: observe.NewServer(config.Default(), log), health: live.NewHealth(true), incumbents: newIncumbents(f, &cfg, client, log)}
}

// TestABerthThatNeverLedEnds as one that has led does.
func TestABerthThatNeverLedEnds(t *testing.T) {
	_, end := optionsOf(t)
	end()
}

// TestNodesNameTheGroupsThatAreBerths has a provider with several groups, of which --nodes names
// one: the others, and their nodes, are nobody's.
func TestNodesNameTheGroupsThatAreBerths(t *testing.T) {
	groups := func(o live.Options) []nodegroup.Group {
		t.Helper()
		list, err := o.Provider.Groups(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return list
	}
	o, _ := optionsOf(t)
	all := groups(o)
	if len(all) < 2 {
		t.Fatalf("%s has %d groups; the test wants several", severalGroups, len(all))
	}
	ours, others := all[0].ID, all[1].ID
	o, _ = optionsOf(t, "--nodes=1:2:"+ours)
	if named := groups(o); len(named) != 1 || named[0].ID != ours || named[0].Min != 1 || named[0].Max != 2 {
		t.Errorf("the groups are %+v, want %s only, with at least 1 and at most 2 nodes", named, ours)
	}
	for group, want := range map[string]string{ours: ours, others: ""} {
		n := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: map[string]string{"berth.dev/node-group": group}}}
		if got := o.Provider.GroupOf(n); got != want {
			t.Errorf("a node of %s belongs to %q, want %q", group, got, want)
		}
	}
}

// TestDiscoveryOfClusterAPI has each value select some of the groups, and a value that selects
// nothing refused with what it should be.
func TestDiscoveryOfClusterAPI(t *testing.T) {
	f := &runFlags{cloudProvider: capiProvider}
	f.groups.Discovery = []string{"clusterapi:namespace=a", "clusterapi:clusterName=c,team=x"}
	c, err := f.readCloudConfig()
	if err != nil {
		t.Fatal(err)
	}
	if got := c.capi.Discovery; len(got) != 2 || got[0].Namespace != "a" || got[1].ClusterName != "c" || got[1].Labels.String() != "team=x" {
		t.Errorf("got %+v", got)
	}
	f.groups.Discovery = []string{"asg:tag=x"}
	const want = `--node-group-auto-discovery: "asg:tag=x" is not for the provider clusterapi; it must be clusterapi:namespace=NAME`
	if _, err := f.readCloudConfig(); err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("got %v, want %s", err, want)
	}
}

// TestAShadowsProviderOnlyReads: the simulated one is told of nodes by the API, and makes none when
// the shadow begins; clients of Cluster API refuse to write.
func TestAShadowsProviderOnlyReads(t *testing.T) {
	o, end := optionsOf(t, "--shadow")
	defer end()
	if _, ok := o.Provider.(simulated.Seen); !ok || o.Core.Shadow == nil || o.Core.Autoscale == nil {
		t.Errorf("the provider is a %T, and the core's shadow %v; want one that looks only", o.Provider, o.Core.Shadow)
	}
	if err := o.OnBecomeLeader(t.Context()); err != nil {
		t.Error(err)
	}
	for name, cfg := range map[string]*clusterapi.Config{"the same cluster": {}, "another": {API: &rest.Config{Host: "http://management"}}} {
		c := cloudConfig{shadow: true, capi: cfg}
		client := testkit.Must(rest.HTTPClientFor(c.managementAPI(&apiServer{rest: &rest.Config{Host: "http://cluster"}, fence: leader.NewFence()})))
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
		c := cloudConfig{shadow: shadow, external: &externalgrpc.Config{Address: listener.Addr().String()}}
		n, err := c.provider(&apiServer{rest: &rest.Config{}, fence: fence}, &scale, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		n.end()
		server.Stop()
		if got := counted.n.Load(); got != want {
			t.Errorf("shadow: %t, %d times told, want %d", shadow, got, want)
		}
	}
}

// TestTheConfigurationIsNotChangedByTheCore: the server reads it from another goroutine.
func TestTheConfigurationIsNotChangedByTheCore(t *testing.T) {
	p := processOf(t, fake.NewClientset(), "--mode=autoscaler", "--allowed-scheduler-names=default-scheduler", "--allowed-scheduler-names=other")
	before := p.cfg
	_, end, err := p.options(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer end()
	if !reflect.DeepEqual(before, p.cfg) || len(before.Profiles) == 0 {
		t.Errorf("the configuration was\n%+v\nand is\n%+v", before, p.cfg)
	}
}
