package clusterapi

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/scale"

	"github.com/berthproject/berth/core/autoscaler/nodegroup"
	"github.com/berthproject/berth/core/door"
)

// Config says where Cluster API is, and which of its objects are node groups. Only API is required.
type Config struct {
	// API reaches the management cluster.
	API *rest.Config
	// Group is the API group, DefaultGroup when it is "". Version is the one to use, "" for the
	// first that the API server serves.
	Group, Version string
	// Arch is the architecture of new nodes that don't say theirs, DefaultArch when it is "".
	Arch string
	// Discovery selects the objects that are node groups; without any all are that have limits.
	Discovery []Selection
}

// clients are what the provider reaches the management cluster with.
type clients struct {
	host      string // of the API server, for messages
	discovery discovery.DiscoveryInterface
	dynamic   dynamic.Interface
	// scales returns the client for the scale subresources of kinds that a mapper knows.
	scales func(meta.RESTMapper) (scale.ScalesGetter, error)
}

// Provider implements nodegroup.Provider. It makes no call before Start. Groups may be called by one
// goroutine at a time and waits for its turn; the other methods by any number.
type Provider struct {
	cfg      Config
	clients  clients
	keys     keys
	now      func() time.Time // the clock
	log      *slog.Logger
	watching watching

	reading sync.Mutex // held by Groups; guards what is below
	said    door.Complaints

	mu    sync.Mutex
	known membership // as Groups read it last; guarded by mu
}

var _ nodegroup.Provider = (*Provider)(nil)

// New returns a provider. now is the clock. It makes no call: a management cluster that can't be
// reached is an error of Groups, which is asked again, so that Berth starts without it.
func New(cfg Config, now func() time.Time, log *slog.Logger) (*Provider, error) {
	d, err := discovery.NewDiscoveryClientForConfig(cfg.API)
	if err != nil {
		return nil, fmt.Errorf("creating a client for the management cluster: %w", err)
	}
	objects, err := dynamic.NewForConfig(cfg.API)
	if err != nil {
		return nil, fmt.Errorf("creating a client for the management cluster: %w", err)
	}
	return newProvider(cfg, clients{host: cfg.API.Host, discovery: d, dynamic: objects, scales: func(m meta.RESTMapper) (scale.ScalesGetter, error) {
		return scale.NewForConfig(cfg.API, m, dynamic.LegacyAPIPathResolverFunc, scale.NewDiscoveryScaleKindResolver(d))
	}}, now, log), nil
}

func newProvider(cfg Config, c clients, now func() time.Time, log *slog.Logger) *Provider {
	cfg.Group, cfg.Arch = cmp.Or(cfg.Group, DefaultGroup), cmp.Or(cfg.Arch, DefaultArch)
	return &Provider{cfg: cfg, clients: c, keys: keysOf(cfg.Group), now: now, log: log, said: door.Complaints{},
		watching: watching{namespace: namespaceOf(cfg.Discovery)}}
}

// Start makes the provider watch the management cluster until ctx is done. It returns at once: an API
// server that can't be reached, or that doesn't have Cluster API, is an error of Groups.
func (p *Provider) Start(ctx context.Context) { p.watching.start(ctx) }

// GroupOf implements nodegroup.Provider.
func (p *Provider) GroupOf(n *v1.Node) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.known.groupOf(n)
}

// warn logs what is wrong with something, "" for nothing, when that has changed. The caller holds
// reading.
func (p *Provider) warn(about, why string) {
	switch {
	case !p.said.IsNews(about, why):
	case why == "":
		p.log.Info("a Cluster API object is usable again", "object", about)
	default:
		p.log.Warn("a Cluster API object is unusable", "object", about, "err", why)
	}
}
