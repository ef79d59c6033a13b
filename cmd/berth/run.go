package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/component-base/logs"
	logsapi "k8s.io/component-base/logs/api/v1"
	_ "k8s.io/component-base/logs/json/register" // --logging-format=json
	"k8s.io/klog/v2"

	"github.com/berthproject/berth/config"
	"github.com/berthproject/berth/core"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/drive"
	"github.com/berthproject/berth/edge/extender"
	"github.com/berthproject/berth/edge/live"
	"github.com/berthproject/berth/edge/observe"
	"github.com/berthproject/berth/edge/provider/simulated"
	"github.com/berthproject/berth/internal/simulatedgroup"
	"github.com/berthproject/berth/tools/replay"
)

// runFlags are the flags of berth run. Those of the autoscaler have the names
// and defaults of Cluster Autoscaler's.
type runFlags struct {
	kubeconfig, config         string
	cloudProvider, cloudConfig string
	mode                       string
	leaderElect                bool
	seed                       uint64
	logging                    *logsapi.LoggingConfiguration
	record                     string
	recordLimit                int64
	scale                      config.Autoscaler
	serving                    *observe.Serving
}

// What --mode may be.
const (
	modeScheduler  = "scheduler"
	modeAutoscaler = "autoscaler"
)

// autoscalerLease is that of Cluster Autoscaler: of the two, one acts at a time.
const autoscalerLease = "cluster-autoscaler"

func runCommand() *cobra.Command {
	f := &runFlags{serving: observe.NewServing(), logging: logsapi.NewLoggingConfiguration()}
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Schedule and scale a live cluster",
		Long: `Run schedules the pods of a live cluster, and with --cloud-provider also adds
and removes its nodes, until it is interrupted.`,
		Example: `  berth run --kubeconfig ~/.kube/config
  berth run --kubeconfig kubeconfig --cloud-provider simulated --cloud-config groups.yaml`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd) },
	}
	fs := cmd.Flags()
	fs.SortFlags = false
	fs.StringVar(&f.kubeconfig, "kubeconfig", "", "path to a kubeconfig file (default: clientConnection of --config, $KUBECONFIG, or the pod's service account)")
	fs.StringVar(&f.config, "config", "", "path to a KubeSchedulerConfiguration v1 file")
	fs.StringVar(&f.mode, "mode", "", "scheduler: only schedule, beside another autoscaler; autoscaler: only scale, beside another scheduler (default: both, or scheduling only without --cloud-provider)")
	fs.BoolVar(&f.leaderElect, "leader-elect", true, "hold a Lease, so that only one Berth acts at a time")
	fs.Uint64Var(&f.seed, "seed", 0, "seed of tie-breaking among equally good nodes")
	logsapi.AddFlags(f.logging, fs)
	fs.StringVar(&f.cloudProvider, "cloud-provider", "", "where nodes come from: simulated; empty for scheduling only")
	fs.StringVar(&f.cloudConfig, "cloud-config", "", "path to the provider's configuration file")
	fs.StringVar(&f.record, "record", "", "record all inputs to this file, for berth simulate --replay; earlier ones are kept as FILE.1 and so on")
	fs.Int64Var(&f.recordLimit, "record-limit", 1<<30, "bytes after which recording ends")
	f.scale.Flags(fs)
	f.serving.Flags(fs)
	return cmd
}

func (f *runFlags) run(cmd *cobra.Command) error {
	ctx := cmd.Context()
	log, err := f.logger()
	if err != nil {
		return err
	}
	defer logs.FlushLogs()
	cfg := config.Default()
	if f.config != "" {
		if cfg, err = config.Load(f.config); err != nil {
			return err
		}
	}
	if cmd.Flags().Changed("leader-elect") {
		cfg.LeaderElection.Enabled = f.leaderElect
	}
	if err := f.validate(); err != nil {
		return err
	}
	if f.mode == modeAutoscaler { // the file's Lease is the scheduler's
		cfg.LeaderElection = config.Default().LeaderElection
		cfg.LeaderElection.Enabled, cfg.LeaderElection.Name = f.leaderElect, autoscalerLease
		cfg.Extenders = nil
	}
	var groups *simulatedgroup.File
	if f.cloudConfig != "" {
		if groups, err = simulatedgroup.Load(f.cloudConfig); err != nil {
			return err
		}
	}
	rc, err := f.restConfig(cfg)
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(rc)
	if err != nil {
		return fmt.Errorf("making an API client: %w", err)
	}
	if err := answers(ctx, client, rc); err != nil {
		return err
	}
	host, err := os.Hostname()
	if err != nil {
		return fmt.Errorf("reading the host's name: %w", err)
	}
	identity := fmt.Sprintf("%s_%d", host, os.Getpid())
	server := observe.NewServer(cfg, log)
	f.serving.UseKubeconfig(f.kubeconfigPath(cfg))
	if _, err := server.Run(ctx, f.serving); err != nil {
		return err
	}
	run := func(ctx context.Context, becomeLeader <-chan struct{}) error {
		schema := cluster.NewSchema()
		o := live.Options{
			Config: rc, Schema: schema, Host: identity, Log: log,
			Hooks: []drive.Hook{server}, State: server.State, Questions: server.Questions,
			Core:         core.DefaultConfig(cfg.Build(schema)...),
			BecomeLeader: becomeLeader,
		}
		o.Core.Engine.Seed, o.Core.Queue = f.seed, cfg.Queue
		o.Core.ExternalScheduler = f.mode == modeAutoscaler
		if len(cfg.Extenders) > 0 {
			if o.Extenders, err = extender.NewChain(cfg.Extenders, cfg.Profiles[0].Extenders, log); err != nil {
				return err
			}
		}
		var nodes *simulated.Provider
		if groups != nil {
			nodes = simulated.New(client.CoreV1().Nodes(), groups, time.Now, log)
			o.Provider, o.Core.Autoscale = nodes, &f.scale.Core
		}
		o.OnBecomeLeader = func(ctx context.Context) error {
			server.BecomeLeader()
			return adopt(ctx, nodes)
		}
		defer server.StopLeading()
		return f.recorded(o, log, func(o live.Options) error { return live.Run(ctx, o) })
	}
	if !cfg.LeaderElection.Enabled {
		return run(ctx, nil)
	}
	return elect(ctx, client, cfg.LeaderElection, identity, log, run)
}

// logger sets klog up, which the libraries use too, and returns what writes to it.
func (f *runFlags) logger() (*slog.Logger, error) {
	if err := logsapi.ValidateAndApply(f.logging, nil); err != nil {
		return nil, fmt.Errorf("the flags for logging: %w; --logging-format is text or json", err)
	}
	return slog.New(logr.ToSlogHandler(klog.Background())), nil
}

// recorded runs Berth, with a recording of it if the flags ask for one. A recording
// has to begin with the first input, so Berth is idle until it is the leader then.
func (f *runFlags) recorded(o live.Options, log *slog.Logger, run func(live.Options) error) error {
	if f.record == "" {
		return run(o)
	}
	r, err := f.recorder(o.Core)
	if err != nil {
		return err
	}
	r.Ended = func(err error) { log.Warn("recording", "err", err) }
	o.Hooks, o.StandBy = append(o.Hooks, r), live.Idle
	if err := errors.Join(run(o), r.Close()); err != nil {
		return err
	}
	log.Info("recorded", "digest", r.Digest())
	return nil
}

// recorder begins the recording that the flags ask for.
func (f *runFlags) recorder(cfg core.Config) (*replay.Recorder, error) {
	h := replay.Header{Seed: f.seed, Autoscale: cfg.Autoscale, ExternalScheduler: cfg.ExternalScheduler}
	if f.config != "" {
		raw, err := os.ReadFile(f.config)
		if err != nil {
			return nil, fmt.Errorf("reading the scheduler configuration: %w", err)
		}
		h.Scheduler = string(raw)
	}
	return replay.Create(f.record, f.recordLimit, h)
}

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
	case "", "simulated":
	default:
		return fmt.Errorf("--cloud-provider is %q; this version of Berth has simulated only", f.cloudProvider)
	}
	if (f.cloudProvider == "") != (f.cloudConfig == "") {
		return errors.New("--cloud-provider and --cloud-config go together; give both or neither")
	}
	return f.scale.Finish()
}

// kubeconfigPath returns the file that says where the API server is, "" for the
// pod's service account.
func (f *runFlags) kubeconfigPath(cfg config.Scheduler) string {
	if path := cmp.Or(f.kubeconfig, cfg.Kubeconfig); path != "" {
		return path
	}
	if path := clientcmd.NewDefaultClientConfigLoadingRules().GetDefaultFilename(); path != "" {
		if _, err := os.Stat(path); err == nil {
			return path
		}
	}
	return ""
}

func (f *runFlags) restConfig(cfg config.Scheduler) (*rest.Config, error) {
	path := cmp.Or(f.kubeconfig, cfg.Kubeconfig)
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	if path != "" {
		if _, err := os.Stat(path); err != nil {
			return nil, fmt.Errorf("--kubeconfig: %w; give the path of a kubeconfig file", err)
		}
		rules = &clientcmd.ClientConfigLoadingRules{ExplicitPath: path}
	}
	rc, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig: %w", err)
	}
	rc.UserAgent = "berth"
	rc.QPS, rc.Burst = cfg.BindQPS, cfg.BindBurst
	return rc, nil
}

// answers asks the API server for its version, for ten seconds at most.
func answers(ctx context.Context, client kubernetes.Interface, rc *rest.Config) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	done := make(chan error, 1)
	go func() {
		_, err := client.Discovery().ServerVersion()
		done <- err
	}()
	select {
	case err := <-done:
		if err != nil {
			return fmt.Errorf("the API server at %s does not answer: %w; check that it runs and that the kubeconfig names it", rc.Host, err)
		}
		return nil
	case <-ctx.Done():
		return fmt.Errorf("the API server at %s did not answer within 10 seconds; check that it runs and that the kubeconfig names it", rc.Host)
	}
}

// adopt has the provider take over the nodes that exist, and run.
func adopt(ctx context.Context, p *simulated.Provider) error {
	if p == nil {
		return nil
	}
	if err := p.Adopt(ctx); err != nil {
		return err
	}
	go p.Run(ctx, 200*time.Millisecond)
	return nil
}

// elect runs Berth, which leads while the Lease is held and stands by before. It
// returns when Berth does or the Lease is lost: another may be acting then.
func elect(ctx context.Context, client kubernetes.Interface, le config.LeaderElection, identity string, log *slog.Logger, run func(context.Context, <-chan struct{}) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	leading := make(chan struct{})
	var started atomic.Bool
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Name: le.Name,
		Lock: &resourcelock.LeaseLock{
			LeaseMeta:  resourcelockMeta(le),
			Client:     client.CoordinationV1(),
			LockConfig: resourcelock.ResourceLockConfig{Identity: identity},
		},
		LeaseDuration: le.LeaseDuration, RenewDeadline: le.RenewDeadline, RetryPeriod: le.RetryPeriod,
		ReleaseOnCancel: true,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(context.Context) {
				started.Store(true)
				log.Info("leading", "lease", le.Namespace+"/"+le.Name)
				close(leading)
			},
			OnStoppedLeading: func() {},
			OnNewLeader: func(who string) {
				if who != identity {
					log.Info("standing by: another Berth leads", "leader", who, "lease", le.Namespace+"/"+le.Name)
				}
			},
		},
	})
	if err != nil {
		return fmt.Errorf("setting up leader election: %w", err)
	}
	// Berth stops before the Lease is given up.
	berth, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, 1)
	election, resign := context.WithCancel(context.WithoutCancel(ctx))
	defer resign()
	go func() {
		err := run(berth, leading)
		ended <- err
		resign()
	}()
	elector.Run(election)
	lost := berth.Err() == nil && election.Err() == nil && started.Load()
	stop()
	if err := <-ended; err != nil {
		return err
	}
	if lost {
		return fmt.Errorf("the lease %s/%s was lost; another Berth may be leading", le.Namespace, le.Name)
	}
	return nil
}

func resourcelockMeta(le config.LeaderElection) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: le.Namespace, Name: le.Name}
}
