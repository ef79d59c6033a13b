package main

import (
	"errors"
	"fmt"

	"github.com/spf13/pflag"
	logsapi "k8s.io/component-base/logs/api/v1"

	"github.com/berthproject/berth/config"
	"github.com/berthproject/berth/core/weighing"
	"github.com/berthproject/berth/edge/observe"
)

// This file holds the flags of berth run: their names and defaults, what is refused,
// and the files that they name. What must hold: whatever can be refused without a
// cluster is refused before Berth connects to one, and the message names the flag.

// runFlags are the flags of berth run. Those of the autoscaler have the names
// and defaults of Cluster Autoscaler's.
type runFlags struct {
	kubeconfig, config         string // paths, "" for none
	cloudProvider, cloudConfig string // both "" when Berth only schedules
	mode                       string // modeScheduler, modeAutoscaler, or "" for all that the flags allow
	leaderElect                bool   // overrides --config only when it is on the command line
	seed                       uint64 // of ranks: which of equally good nodes wins
	logging                    *logsapi.LoggingConfiguration
	record                     string // path of a recording, "" for none
	recordLimit                int64  // bytes
	scale                      config.Autoscaler
	serving                    *observe.Serving // of the HTTPS server
}

// What --mode may be.
const (
	modeScheduler  = "scheduler"
	modeAutoscaler = "autoscaler"
)

// autoscalerLease is the name of Cluster Autoscaler's Lease: of a Berth with
// --mode=autoscaler and a Cluster Autoscaler, one acts at a time.
const autoscalerLease = "cluster-autoscaler"

func newRunFlags() *runFlags {
	return &runFlags{serving: observe.NewServing(), logging: logsapi.NewLoggingConfiguration()}
}

// register adds the flags to a command. docs/reference/flags.md lists them in this
// order.
func (f *runFlags) register(fs *pflag.FlagSet) {
	fs.SortFlags = false
	fs.StringVar(&f.kubeconfig, "kubeconfig", "", "path to a kubeconfig file (default: clientConnection of --config, $KUBECONFIG, or the pod's service account)")
	fs.StringVar(&f.config, "config", "", "path to a KubeSchedulerConfiguration v1 file")
	fs.StringVar(&f.mode, "mode", "", "scheduler: only schedule, beside another autoscaler; autoscaler: only scale, beside another scheduler (default: both, or scheduling only without --cloud-provider)")
	fs.BoolVar(&f.leaderElect, "leader-elect", true, "hold a Lease, so that only one Berth acts at a time")
	fs.Uint64Var(&f.seed, "seed", 0, "seed of tie-breaking among equally good nodes and node groups")
	logsapi.AddFlags(f.logging, fs)
	fs.StringVar(&f.cloudProvider, "cloud-provider", "", "where nodes come from: externalgrpc (a server of Cluster Autoscaler's protocol), clusterapi or simulated; empty for scheduling only")
	fs.StringVar(&f.cloudConfig, "cloud-config", "", "path to the provider's configuration file; of clusterapi the kubeconfig of the management cluster (default: the same cluster)")
	fs.StringVar(&f.record, "record", "", "record all inputs to this file, for berth simulate --replay; earlier ones are kept as FILE.1 and so on")
	fs.Int64Var(&f.recordLimit, "record-limit", 1<<30, "bytes after which recording ends")
	f.scale.Flags(fs)
	f.serving.Flags(fs)
}

// validate refuses values and combinations of values that Berth can't honour.
func (f *runFlags) validate() error {
	if f.recordLimit <= 0 {
		return fmt.Errorf("--record-limit is %d; it must be greater than 0", f.recordLimit)
	}
	switch f.mode {
	case "":
	case modeScheduler:
		if f.cloudProvider != "" {
			return errors.New("--mode=scheduler adds and removes no nodes; leave --cloud-provider and --cloud-config out")
		}
	case modeAutoscaler:
		if f.cloudProvider == "" {
			return errors.New("--mode=autoscaler has to know where nodes come from; give --cloud-provider and --cloud-config")
		}
	default:
		return fmt.Errorf("--mode is %q; it must be %s, %s or left out", f.mode, modeScheduler, modeAutoscaler)
	}
	switch f.cloudProvider {
	case "", simulatedProvider, externalProvider, capiProvider:
	default:
		return fmt.Errorf("--cloud-provider is %q; it must be %s, %s or %s. Cluster Autoscaler's own providers are reached through %[2]s: docs/external-providers.md", f.cloudProvider, externalProvider, capiProvider, simulatedProvider)
	}
	if f.cloudProvider != capiProvider && (f.cloudProvider == "") != (f.cloudConfig == "") {
		return errors.New("--cloud-provider and --cloud-config go together; give both or neither")
	}
	return f.scale.Validate()
}

// schedulerConfig reads --config, or returns the defaults without it. --leader-elect
// overrides the file only when it is on the command line, not by its default.
func (f *runFlags) schedulerConfig(commandLine *pflag.FlagSet) (config.Scheduler, error) {
	cfg := config.Default()
	if f.config != "" {
		var err error
		if cfg, err = config.Load(f.config); err != nil {
			return config.Scheduler{}, err
		}
	}
	if commandLine.Changed("leader-elect") {
		cfg.LeaderElection.Enabled = f.leaderElect
	}
	if f.mode == modeAutoscaler { // the Lease and the extenders of the file are the other scheduler's
		cfg.LeaderElection = config.Default().LeaderElection
		cfg.LeaderElection.Enabled, cfg.LeaderElection.Name = f.leaderElect, autoscalerLease
		cfg.Extenders = nil
		for _, p := range cfg.Profiles {
			if w := p.Weighing; w != nil && w.Policy != weighing.PreemptFirst {
				return config.Scheduler{}, fmt.Errorf("%s: profile %q has the policy %s (%s), and with --mode=autoscaler the other scheduler preempts, without asking; leave %[4]s out, or have Berth schedule",
					f.config, p.SchedulerName, w.Policy, config.PreemptOrBuy)
			}
		}
	}
	return cfg, nil
}
