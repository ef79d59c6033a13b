package main

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/pflag"
	v1 "k8s.io/api/core/v1"
	cliflag "k8s.io/component-base/cli/flag"
	logsapi "k8s.io/component-base/logs/api/v1"

	"github.com/berthproject/berth/config"
	"github.com/berthproject/berth/core/compat"
	"github.com/berthproject/berth/core/plugins"
	"github.com/berthproject/berth/core/queue"
	"github.com/berthproject/berth/core/weighing"
	"github.com/berthproject/berth/edge/apiserver"
	"github.com/berthproject/berth/edge/incumbent"
	"github.com/berthproject/berth/edge/observe"
	"github.com/berthproject/berth/edge/provider"
	"github.com/berthproject/berth/internal/term"
)

// This file holds the flags of berth run: their names and defaults, what is refused,
// and the files that they name. What must hold: whatever can be refused without a
// cluster is refused before Berth connects to one, and the message names the flag.

// runFlags are the flags of berth run: those of kube-scheduler and of Cluster Autoscaler by their
// names, and Berth's own. What those two have and Berth doesn't honour is in config.ForeignFlags.
type runFlags struct {
	sections                   cliflag.NamedFlagSets // all flags, by section
	kubeconfig                 string                // path, "" for none
	config                     config.File           // what --config names
	master                     string                // address of the API server in place of the kubeconfig's, "" for that
	cloudProvider, cloudConfig string                // both "" when Berth only schedules
	nodePrices, nodeDevices    string                // paths, "" for none
	mode                       string                // modeScheduler, modeAutoscaler, or "" for all that the flags allow
	shadow                     bool                  // decide, compare and write nothing
	// allowScheduler and allowAutoscaler let Berth run beside programs that may do the same work
	// (edge/incumbent).
	allowScheduler, allowAutoscaler bool
	seed                            uint64 // of ranks: which of equally good nodes wins
	// Limit of binds, in place of Berth's default, but not of a file's.
	apiQPS   float32
	apiBurst int32
	// maxUnschedulable is how long a pod waits at most until it is tried again without a reason.
	maxUnschedulable time.Duration
	gates            config.FeatureGates
	emulated         config.EmulatedVersion
	lease            config.LeaseFlags
	groups           config.Groups
	logging          *logsapi.LoggingConfiguration
	record, tracing  string // paths of a recording and of a tracing configuration, "" for none
	recordLimit      int64  // bytes
	scale            config.Autoscaler
	serving          *observe.Serving // of the HTTPS server
}

// What --mode may be.
const (
	modeScheduler  = "scheduler"
	modeAutoscaler = "autoscaler"
)

func newRunFlags() *runFlags {
	return &runFlags{serving: observe.NewServing(), logging: logsapi.NewLoggingConfiguration()}
}

// register adds the flags to those of a command, and returns them by section. Help and
// docs/reference/flags.md show the sections in this order.
func (f *runFlags) register(commandLine *pflag.FlagSet) cliflag.NamedFlagSets {
	s := cliflag.NamedFlagSets{NormalizeNameFunc: cliflag.WordSepNormalizeFunc} // --leader_elect is --leader-elect, as there
	f.registerMisc(s.FlagSet("misc"))
	f.registerScheduling(s.FlagSet("scheduling"))
	f.scale.Flags(s.FlagSet)
	f.registerProvider(s.FlagSet("cloud provider"))
	s.FlagSet("feature gate").Var(&f.emulated, "emulated-version", "version of Kubernetes whose scheduling rules to follow, "+compat.Names()+" (default: the API server's, or the nearest of these)")
	s.FlagSet("feature gate").Var(&f.gates, "feature-gates", "NAME=true|false, separated by commas: feature gates of kube-scheduler "+compat.Names()+"; most gates that change its scheduling rules must keep their defaults; may be repeated")
	f.lease.Flags(s.FlagSet("leader election"))
	f.serving.Flags(s.FlagSet)
	s.FlagSet("traces").StringVar(&f.tracing, "tracing-config-file", "", "path to a TracingConfiguration, as kube-apiserver takes one: where spans of pods, plans and node removals are sent (docs/tracing.md); specific to Berth")
	logsapi.AddFlags(f.logging, s.FlagSet("logs"))
	commandLine.SetNormalizeFunc(s.NormalizeNameFunc)
	term.AddSections(commandLine, s)
	config.AddForeign(commandLine)
	f.sections = s
	return s
}

func (f *runFlags) registerMisc(fs *pflag.FlagSet) {
	fs.StringVar(&f.kubeconfig, "kubeconfig", "", "path to a kubeconfig file (default: clientConnection of --config, $KUBECONFIG, or the pod's service account)")
	fs.StringVar(&f.master, "master", "", "address of the API server; overrides the kubeconfig's")
	fs.StringVar(&f.master, "kubernetes", "", "the same as --master, by Cluster Autoscaler's name")
	fs.StringVar(&f.config.Path, "config", "", "path to a KubeSchedulerConfiguration v1 file")
	fs.StringVar(&f.mode, "mode", "", "scheduler: only schedule, next to another autoscaler; autoscaler: only scale, next to another scheduler (default: both, or only schedule without --cloud-provider)")
	fs.BoolVar(&f.shadow, "shadow", false, "dry run: decide next to the cluster's scheduler (and autoscaler, with --cloud-provider), compare, and write nothing; berth shadow report prints the comparison")
	fs.BoolVar(&f.allowScheduler, incumbent.AllowScheduler, false, "run with a profile named default-scheduler although a kube-scheduler renews its Lease kube-system/kube-scheduler; only for one that has no such profile, or both place the same pods; Berth's own")
	fs.BoolVar(&f.allowAutoscaler, incumbent.AllowAutoscaler, false, "resize node groups although a Cluster Autoscaler renews its Lease cluster-autoscaler and has the same groups, or its groups aren't known; Berth's own")
	fs.StringVar(&f.record, "record", "", "record all inputs to this file, for berth simulate --replay; earlier recordings are kept as FILE.1 and so on")
	fs.Int64Var(&f.recordLimit, "record-limit", 1<<30, "size in bytes at which recording stops")
	fs.Uint64Var(&f.seed, "seed", 0, "seed for breaking ties between equally good nodes and node groups")
}

func (f *runFlags) registerScheduling(fs *pflag.FlagSet) {
	fs.Float32Var(&f.apiQPS, "kube-api-qps", config.DefaultBindQPS, "QPS limit of binding requests; ignored if clientConnection of --config sets it")
	fs.Int32Var(&f.apiBurst, "kube-api-burst", config.DefaultBindBurst, "burst limit of binding requests; ignored if clientConnection of --config sets it")
	fs.DurationVar(&f.maxUnschedulable, "pod-max-in-unschedulable-pods-duration", queue.DefaultConfig().Leftover, "maximum time that a pod stays unschedulable before it is retried even though no event could have made it schedulable")
}

func (f *runFlags) registerProvider(fs *pflag.FlagSet) {
	fs.StringVar(&f.cloudProvider, "cloud-provider", "", "cloud provider type: externalgrpc (a server of Cluster Autoscaler's protocol), clusterapi or simulated; empty to only schedule")
	fs.StringVar(&f.cloudConfig, "cloud-config", "", "path to the cloud provider configuration file; for clusterapi the kubeconfig of the management cluster (default: the same cluster)")
	fs.StringVar(&f.nodePrices, "node-prices", "", "path to a file with prices of nodes by their labels, in place of the cloud provider's; reloaded when it changes (docs/prices.md); specific to Berth")
	fs.StringVar(&f.nodeDevices, "node-device-templates", "", "path to a file with the devices that drivers will publish on new nodes of node groups that have no node to show them; reloaded when it changes (docs/devices.md); specific to Berth")
	f.groups.Flags(fs)
}

// foreign returns what to log about flags that have no effect here. An error names the first that can't
// be honoured: to ignore a flag that changes decisions would be worse than not to start.
func (f *runFlags) foreign(commandLine *pflag.FlagSet) ([]string, error) {
	notes, err := config.CheckForeign(commandLine)
	if err != nil {
		return nil, err
	}
	for _, name := range []string{"kube-api-qps", "kube-api-burst"} {
		if f.config.Path != "" && commandLine.Changed(name) {
			notes = append(notes, "--"+name+" has no effect: clientConnection of --config takes precedence")
		}
	}
	if f.shadow {
		notes = append(notes, shadowNotes(commandLine)...)
	}
	return notes, nil
}

// forServer returns the configuration for the version in force, and what to log about feature gates.
// cfg is the configuration that was read before the API server's version was known.
func (f *runFlags) forServer(commandLine *pflag.FlagSet, cfg config.Scheduler, server compat.Version) (_ config.Scheduler, notes []string, err error) {
	if v := f.emulated.Or(server); v != cfg.Version {
		if cfg, err = f.schedulerConfig(commandLine, v); err != nil {
			return cfg, nil, fmt.Errorf("%w (read as Kubernetes %s does, the version of the API server; --emulated-version=%s reads it as %[3]s does)", err, v, compat.Newest)
		}
	}
	_, notes, err = f.gates.Check(cfg.Version)
	return cfg, notes, err
}

// validate refuses values and combinations of values that Berth can't honour. Those of the autoscaler
// are refused by config.Autoscaler, and those of a shadow come first: they explain more.
func (f *runFlags) validate() error {
	if f.shadow {
		if err := f.validateShadow(); err != nil {
			return err
		}
	}
	if err := term.Creatable("--record", f.record); err != nil {
		return err
	}
	if f.recordLimit <= 0 {
		return fmt.Errorf("--record-limit is %d; it must be greater than 0", f.recordLimit)
	}
	switch f.mode {
	case "":
	case modeScheduler:
		if f.cloudProvider != "" {
			return errors.New("--mode=scheduler does not add or remove nodes; omit --cloud-provider and --cloud-config")
		}
	case modeAutoscaler:
		if f.cloudProvider == "" {
			return errors.New("--mode=autoscaler needs a cloud provider; set --cloud-provider and --cloud-config")
		}
	default:
		return fmt.Errorf("--mode is %q; it must be %s, %s or unset", f.mode, modeScheduler, modeAutoscaler)
	}
	if err := f.provider().Validate(); err != nil {
		return err
	}
	if f.apiQPS <= 0 || f.apiBurst <= 0 {
		return fmt.Errorf("--kube-api-qps is %v and --kube-api-burst %d; both must be greater than 0", f.apiQPS, f.apiBurst)
	}
	if f.maxUnschedulable < 0 {
		return fmt.Errorf("--pod-max-in-unschedulable-pods-duration is %s; it must not be negative", f.maxUnschedulable)
	}
	return errors.Join(f.scale.Validate(), f.serving.Validate())
}

// schedulerConfig reads --config as a version does with the feature gates, or returns the defaults without
// it. --leader-elect and its kin override the file only when they are on the command line, not by their
// defaults.
//
// With --mode=autoscaler the file describes another scheduler: its profiles hold, since pods are
// planned as they will be placed, but its Lease and extenders are its own.
func (f *runFlags) schedulerConfig(commandLine *pflag.FlagSet, v compat.Version) (config.Scheduler, error) {
	rules, _, err := f.gates.Check(v)
	if err != nil {
		return config.Scheduler{}, err
	}
	cfg, err := f.config.For(rules)
	if err != nil {
		return config.Scheduler{}, err
	}
	if f.config.Path == "" {
		cfg.BindQPS, cfg.BindBurst = f.apiQPS, max(int(f.apiQPS), int(f.apiBurst))
	}
	cfg.Queue.Leftover = cmp.Or(f.maxUnschedulable, cfg.Queue.Leftover)
	if f.mode == modeAutoscaler { // the Lease and the extenders of the file are the other scheduler's
		cfg.LeaderElection = config.Default().LeaderElection
		cfg.LeaderElection.Name = incumbent.AutoscalerLease
		cfg.Extenders = nil
		for _, p := range cfg.Profiles {
			if w := p.Weighing; w != nil && w.Policy != weighing.PreemptFirst {
				return config.Scheduler{}, fmt.Errorf("%s: profile %q has the policy %s (%s), but with --mode=autoscaler the other scheduler preempts without asking; remove %[4]s, or let Berth schedule",
					f.config.Path, p.SchedulerName, w.Policy, config.PreemptOrBuy)
			}
		}
	}
	if err := f.lease.Apply(commandLine, &cfg.LeaderElection); err != nil || !f.shadow {
		return cfg, err
	}
	cfg.LeaderElection.Enabled = false
	return cfg, nil
}

// firstConfig reads the configuration before the API server's version is known: as the newest version
// that takes it does, unless a version is emulated.
func (f *runFlags) firstConfig(commandLine *pflag.FlagSet) (config.Scheduler, error) {
	cfg, first := f.schedulerConfig(commandLine, f.emulated.Or(compat.Newest))
	for _, v := range slices.Backward(compat.Versions()) {
		if first == nil || f.emulated.String() != "" {
			break
		}
		if older, err := f.schedulerConfig(commandLine, v); err == nil {
			return older, nil
		}
	}
	return cfg, first
}

// server returns how the API server is found.
func (f *runFlags) server(cfg config.Scheduler) apiserver.Options {
	return apiserver.Options{Kubeconfig: f.kubeconfig, Master: f.master, Shadow: f.shadow, Config: cfg}
}

// provider returns where nodes come from.
func (f *runFlags) provider() provider.Options {
	return provider.Options{Name: f.cloudProvider, File: f.cloudConfig, Bounds: f.groups.Bounds, Discovery: f.groups.Discovery, Prices: f.nodePrices, Devices: f.nodeDevices, Shadow: f.shadow}
}

// incumbents returns which other programs must not be live: none beside a shadow, which writes
// nothing. A Berth without a profile of the default scheduler's name may run beside kube-scheduler:
// each pod names the one that places it.
func (f *runFlags) incumbents(cfg *config.Scheduler) incumbent.Options {
	places := slices.ContainsFunc(cfg.Profiles, func(p plugins.Options) bool { return p.SchedulerName == v1.DefaultSchedulerName })
	return incumbent.Options{
		Scheduler:  !f.shadow && f.mode != modeAutoscaler && places && !f.allowScheduler,
		Autoscaler: !f.shadow && f.cloudProvider != "" && !f.allowAutoscaler,
		Lease:      cfg.LeaderElection, Namespace: f.scale.Watch.Namespace, Status: f.scale.Watch.StatusConfigMap(),
	}
}
