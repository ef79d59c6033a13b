// Package provider makes a provider of nodes of --cloud-provider and --cloud-config. What must hold:
// only the leader makes a provider do anything, and a shadow only reads.
package provider

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
	"github.com/berthproject/berth/edge/apiserver"
	"github.com/berthproject/berth/edge/live"
	"github.com/berthproject/berth/edge/provider/clusterapi"
	"github.com/berthproject/berth/edge/provider/externalgrpc"
	"github.com/berthproject/berth/edge/provider/simulated"
	"github.com/berthproject/berth/internal/simulatedgroup"
)

// The values of --cloud-provider.
const (
	Simulated  = "simulated"
	External   = "externalgrpc"
	ClusterAPI = "clusterapi"
)

// The environment variables that Cluster Autoscaler reads for Cluster API.
const (
	capiGroupEnv   = "CAPI_GROUP"
	capiVersionEnv = "CAPI_VERSION"
	capiArchEnv    = "CAPI_SCALE_ZERO_DEFAULT_ARCH"
)

// Config is what the flags and their files say: of --cloud-config one field at most, by --cloud-provider.
type Config struct {
	simulated *simulatedgroup.File
	external  *externalgrpc.Config
	// capi has no API when Cluster API is in the cluster that Berth works for.
	capi *clusterapi.Config
	// unknown names a key of the file that means nothing, "" for none.
	unknown string
	bounds  []nodegroup.Bound // of --nodes
	prices  *PricesFile       // of --node-prices, nil for none
	devices *DevicesFile      // of --node-device-templates, nil for none
	// shadow is true for a provider that only reads.
	shadow bool
}

// Options are the flags that say where nodes come from.
type Options struct {
	Name      string            // of the provider, "" for none
	File      string            // path of --cloud-config
	Bounds    []nodegroup.Bound // values of --nodes
	Discovery []string          // values of --node-group-auto-discovery
	Prices    string            // path of --node-prices, "" for none
	Devices   string            // path of --node-device-templates, "" for none
	Shadow    bool              // the provider only reads
}

// Load reads --cloud-config, --node-prices and --node-device-templates; the result is empty without a provider. It needs no
// cluster, so that a mistake in a file is found before Berth connects. Its errors name the flag.
func (o Options) Load() (c Config, err error) {
	c.shadow, c.bounds = o.Shadow, o.Bounds
	if c.prices, err = LoadPrices(o.Prices); err != nil {
		return c, err
	}
	if c.devices, err = LoadDevices(o.Devices); err != nil {
		return c, err
	}
	switch o.Name {
	case Simulated:
		c.simulated, err = simulatedgroup.Load(o.File)
	case External:
		c.external, c.unknown, err = externalgrpc.LoadConfig(o.File)
	case ClusterAPI:
		c.capi, err = o.clusterAPI()
	}
	return c, err
}

// clusterAPI returns the configuration of the provider clusterapi, for which --cloud-config is the
// kubeconfig of the management cluster.
func (o Options) clusterAPI() (*clusterapi.Config, error) {
	c := &clusterapi.Config{Group: os.Getenv(capiGroupEnv), Version: os.Getenv(capiVersionEnv), Arch: os.Getenv(capiArchEnv)}
	for _, value := range o.Discovery {
		s, err := clusterapi.ParseAutoDiscovery(value)
		if err != nil {
			return nil, fmt.Errorf("--node-group-auto-discovery: %w", err)
		}
		c.Discovery = append(c.Discovery, s)
	}
	if o.File == "" {
		return c, nil
	}
	rc, err := clientcmd.BuildConfigFromFlags("", o.File)
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

// Nodes is where nodes come from.
type Nodes struct {
	nodegroup.Provider // nil without --cloud-provider
	// Watch makes the provider read its groups from its watches, until ctx is done. It comes
	// before Lead.
	Watch func(ctx context.Context)
	// Lead starts the work of the provider, until ctx is done; End ends it. It comes last, and
	// only after Lead.
	Lead func(ctx context.Context) error
	End  func()
}

// Open returns the provider of a configuration, with the groups that --nodes names, the prices of
// --node-prices and the devices of --node-device-templates. told is called when the price file was read and whenever it has changed (Price).
func (c *Config) Open(api *apiserver.Connection, flags *core.Autoscale, told func(currency, failure string), log *slog.Logger) (Nodes, error) {
	nodes, err := c.open(api, flags, log)
	if err != nil || nodes.Provider == nil {
		return nodes, err
	}
	if len(c.bounds) > 0 {
		nodes.Provider = Bound(nodes.Provider, c.bounds, log)
	}
	nodes.Provider = Devise(nodes.Provider, c.devices, log)
	nodes.Provider = Price(nodes.Provider, c.prices, flags, told, log)
	return nodes, nil
}

// open returns the provider of a configuration. Nothing is asked of it yet: that begins with Watch and
// Lead. The simulated provider is the only one that works by itself, and the external one the only one
// that is told when its client goes.
func (c *Config) open(api *apiserver.Connection, flags *core.Autoscale, log *slog.Logger) (Nodes, error) {
	none := Nodes{Watch: func(context.Context) {}, Lead: func(context.Context) error { return nil }, End: func() {}}
	switch {
	case c.simulated != nil:
		p := simulated.New(api.Client.CoreV1().Nodes(), c.simulated, time.Now, log)
		if c.shadow {
			return Nodes{simulated.Seen{Provider: p}, none.Watch, none.Lead, none.End}, nil
		}
		return Nodes{p, none.Watch, func(ctx context.Context) error { return Adopt(ctx, p) }, none.End}, nil
	case c.capi != nil:
		cfg := *c.capi
		cfg.API = c.managementAPI(api)
		p, err := clusterapi.New(cfg, time.Now, log)
		if err != nil {
			return none, err
		}
		return Nodes{p, p.Start, none.Lead, none.End}, nil
	case c.external != nil:
		if c.unknown != "" {
			log.Warn("--cloud-config has an unknown key", "err", c.unknown)
		}
		if !c.external.Private() {
			log.Warn("the connection to the external provider is not encrypted, so anyone who can reach the server can remove nodes; set cert, key and cacert in --cloud-config", "server", c.external.Address)
		}
		p, err := externalgrpc.NewClient(c.external, groupDefaults(flags), time.Now, log)
		if err != nil {
			return none, err
		}
		return Nodes{p, none.Watch, none.Lead, func() {
			// Another leader may use the server already: it isn't told that its client goes then. A
			// shadow's server is somebody else's, too.
			if !c.shadow && api.Fence.Open() {
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
func (c *Config) managementAPI(api *apiserver.Connection) *rest.Config {
	out := rest.CopyConfig(api.Rest)
	if c.capi.API != nil {
		out = api.Fence.Config(c.capi.API)
		out.UserAgent = api.Rest.UserAgent
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

// Adopt makes the simulated provider take over the nodes that exist, and make nodes until ctx is
// done. Only one process at a time may: two providers would make each node twice.
func Adopt(ctx context.Context, p *simulated.Provider) error {
	if err := p.Adopt(ctx); err != nil {
		return fmt.Errorf("taking over simulated nodes: %w", err)
	}
	go p.Run(ctx, 200*time.Millisecond)
	return nil
}
