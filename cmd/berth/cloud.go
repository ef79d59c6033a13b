package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/berthproject/berth/core"
	"github.com/berthproject/berth/core/autoscaler/nodegroup"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/edge/live"
	"github.com/berthproject/berth/edge/provider/clusterapi"
	"github.com/berthproject/berth/edge/provider/externalgrpc"
	"github.com/berthproject/berth/edge/provider/simulated"
	"github.com/berthproject/berth/internal/simulatedgroup"
)

// This file has --cloud-provider and --cloud-config become a provider of nodes. What must hold:
// only the leader has a provider do anything, and a shadow only reads.

// The values of --cloud-provider.
const (
	simulatedProvider = "simulated"
	externalProvider  = "externalgrpc"
	capiProvider      = "clusterapi"
)

// The environment variables that Cluster Autoscaler reads for Cluster API.
const (
	capiGroupEnv   = "CAPI_GROUP"
	capiVersionEnv = "CAPI_VERSION"
	capiArchEnv    = "CAPI_SCALE_ZERO_DEFAULT_ARCH"
)

// cloudConfig is what --cloud-config says: of one field at most, by --cloud-provider.
type cloudConfig struct {
	simulated *simulatedgroup.File
	external  *externalgrpc.Config
	// capi has no API when Cluster API is in the cluster that Berth works for.
	capi *clusterapi.Config
	// unknown names a key of the file that means nothing, "" for none.
	unknown string
	// shadow has the provider only read.
	shadow bool
}

// readCloudConfig reads --cloud-config; empty without it.
func (f *runFlags) readCloudConfig() (c cloudConfig, err error) {
	c.shadow = f.shadow
	switch f.cloudProvider {
	case simulatedProvider:
		c.simulated, err = simulatedgroup.Load(f.cloudConfig)
	case externalProvider:
		c.external, c.unknown, err = externalgrpc.LoadConfig(f.cloudConfig)
	case capiProvider:
		c.capi, err = f.clusterAPI()
	}
	return c, err
}

// clusterAPI returns the configuration of the provider clusterapi, for which --cloud-config is the
// kubeconfig of the management cluster.
func (f *runFlags) clusterAPI() (*clusterapi.Config, error) {
	c := &clusterapi.Config{Group: os.Getenv(capiGroupEnv), Version: os.Getenv(capiVersionEnv), Arch: os.Getenv(capiArchEnv)}
	for _, value := range f.groups.Discovery {
		s, err := clusterapi.ParseAutoDiscovery(value)
		if err != nil {
			return nil, fmt.Errorf("--node-group-auto-discovery: %w", err)
		}
		c.Discovery = append(c.Discovery, s)
	}
	if f.cloudConfig == "" {
		return c, nil
	}
	rc, err := clientcmd.BuildConfigFromFlags("", f.cloudConfig)
	if err != nil {
		return nil, fmt.Errorf("--cloud-config: %w; give the path of the management cluster's kubeconfig, or leave it out when Cluster API is in the same cluster", err)
	}
	c.API = rc
	return c, nil
}

// What the provider clusterapi may ask of the management cluster in a second: a mark for each node
// that goes, and two calls for each change of a size.
const (
	capiQPS   = 50
	capiBurst = 100
)

// nodes is where nodes come from.
type nodes struct {
	nodegroup.Provider // nil without --cloud-provider
	// watch makes the provider read its groups from its watches, until ctx is done. It comes
	// before lead.
	watch func(ctx context.Context)
	// lead starts the work of the provider, until ctx is done; end ends it. It comes last, and
	// only after lead.
	lead func(ctx context.Context) error
	end  func()
}

// provider returns the provider of a configuration.
func (c *cloudConfig) provider(api *apiServer, flags *core.Autoscale, log *slog.Logger) (nodes, error) {
	none := nodes{watch: func(context.Context) {}, lead: func(context.Context) error { return nil }, end: func() {}}
	switch {
	case c.simulated != nil:
		p := simulated.New(api.client.CoreV1().Nodes(), c.simulated, time.Now, log)
		if c.shadow {
			return nodes{simulated.Seen{Provider: p}, none.watch, none.lead, none.end}, nil
		}
		return nodes{p, none.watch, func(ctx context.Context) error { return adopt(ctx, p) }, none.end}, nil
	case c.capi != nil:
		cfg := *c.capi
		cfg.API = c.managementAPI(api)
		p, err := clusterapi.New(cfg, time.Now, log)
		if err != nil {
			return none, err
		}
		return nodes{p, p.Start, none.lead, none.end}, nil
	case c.external != nil:
		if c.unknown != "" {
			log.Warn("--cloud-config has an unknown key", "err", c.unknown)
		}
		if !c.external.Encrypted() {
			log.Warn("the connection to the external provider is not encrypted, so anyone who can reach the server can remove nodes; set cert, key and cacert in --cloud-config", "server", c.external.Address)
		}
		p, err := externalgrpc.NewClient(c.external, groupDefaults(flags), time.Now, log)
		if err != nil {
			return none, err
		}
		return nodes{p, none.watch, none.lead, func() {
			// Another leader may use the server already: it isn't told that its client goes then. A
			// shadow's server is somebody else's, too.
			if !c.shadow && api.fence.Open() {
				if err := p.Cleanup(context.Background()); err != nil {
					log.Info("could not notify the external provider that this client is shutting down", "err", err)
				}
			}
			if err := p.Close(); err != nil {
				log.Info("closing the connection to the external provider", "err", err)
			}
		}}, nil
	}
	return none, nil
}

// managementAPI returns how the provider clusterapi reaches the management cluster.
func (c *cloudConfig) managementAPI(api *apiServer) *rest.Config {
	out := rest.CopyConfig(api.rest)
	if c.capi.API != nil {
		out = api.fence.Config(c.capi.API)
		out.UserAgent = api.rest.UserAgent
	}
	if c.shadow {
		out = live.ReadOnly(out)
	}
	out.QPS, out.Burst = capiQPS, capiBurst
	return out
}

// groupDefaults are the options that hold for a node group without options of its own.
func groupDefaults(a *core.Autoscale) cluster.GroupOptions {
	return cluster.GroupOptions{
		UtilizationThreshold: &a.Removal.UtilizationThreshold, GPUUtilizationThreshold: &a.Removal.GPUUtilizationThreshold,
		UnneededTime: &metav1.Duration{Duration: a.UnneededTime}, UnreadyTime: &metav1.Duration{Duration: a.UnreadyTime},
		ProvisionTime: &metav1.Duration{Duration: a.MaxProvisionTime}, StartupTime: &metav1.Duration{Duration: a.Readiness.StartupTime},
		IgnoreDaemonSetsUtilization: &a.Removal.IgnoreDaemonPods,
	}
}

// adopt has the simulated provider take over the nodes that exist, and make nodes until ctx is
// done. Only one process at a time may: two providers would make each node twice.
func adopt(ctx context.Context, p *simulated.Provider) error {
	if err := p.Adopt(ctx); err != nil {
		return fmt.Errorf("taking over simulated nodes: %w", err)
	}
	go p.Run(ctx, 200*time.Millisecond)
	return nil
}
