package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/component-base/logs"
	logsapi "k8s.io/component-base/logs/api/v1"
	_ "k8s.io/component-base/logs/json/register" // --logging-format=json
	"k8s.io/klog/v2"

	"github.com/berthproject/berth/config"
	"github.com/berthproject/berth/core"
	"github.com/berthproject/berth/core/autoscaler/expander"
	"github.com/berthproject/berth/core/compat"
	"github.com/berthproject/berth/edge/apiserver"
	edgeexpander "github.com/berthproject/berth/edge/expander"
	"github.com/berthproject/berth/edge/extender"
	"github.com/berthproject/berth/edge/incumbent"
	"github.com/berthproject/berth/edge/leader"
	"github.com/berthproject/berth/edge/live"
	"github.com/berthproject/berth/edge/observe"
	"github.com/berthproject/berth/edge/provider"
	"github.com/berthproject/berth/edge/tracing"
	"github.com/berthproject/berth/internal/background"
	"github.com/berthproject/berth/internal/term"
)

// This file puts berth run together: flags and files (run_flags.go), the API server (edge/apiserver),
// the HTTPS server, the Lease (edge/leader), the live edge, and a recording (record.go).

// runCommand returns berth run. Its flags are parsed before RunE, so that help needs no cluster.
func runCommand() *cobra.Command {
	f := newRunFlags()
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Schedule the pods of a live cluster and scale its node groups",
		Long: `Run schedules the pods of a live cluster and, with --cloud-provider, also adds
and removes its nodes, until it is interrupted.`,
		Example: `  berth run --kubeconfig ~/.kube/config
  berth run --kubeconfig kubeconfig --cloud-provider externalgrpc --cloud-config external.yaml
  berth run --kubeconfig kubeconfig --cloud-provider clusterapi
  berth run --kubeconfig kubeconfig --cloud-provider simulated --cloud-config groups.yaml
  berth run --kubeconfig ~/.kube/config --shadow
  berth run --kubeconfig ~/.kube/config --shadow --cloud-provider clusterapi`,
		Args: term.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd) },
	}
	term.SetSections(cmd, f.register(cmd.Flags()))
	term.HasVersion(cmd, versionText())
	term.Choices(cmd, "cloud-provider", "externalgrpc", "clusterapi", "simulated")
	term.Choices(cmd, "expander", expander.Names()...)
	term.Choices(cmd, "mode", modeScheduler, modeAutoscaler)
	return cmd
}

// run returns when the command's context is done or Berth can't go on. First comes what needs
// no cluster, then the connection, for which it waits as long as it must, and last what writes to the
// cluster: a mistake in a flag or a file has no effect there.
//
// The order of the rest matters, too: rights are checked before the election, since a Berth that may
// not write the Lease would wait for it forever; and the checks of probes are complete before the
// server answers the first of them.
func (f *runFlags) run(cmd *cobra.Command) error {
	background.LimitGarbage(os.LookupEnv)
	defer logs.FlushLogs()
	p, err := f.prepare(cmd)
	if err != nil {
		return term.Usage(err)
	}
	defer p.tracer.Close()
	if p.identity, err = leader.Identity(); err != nil {
		return err
	}
	p.log.Info("starting Berth", f.startUp(cmd.Flags(), &p.cfg)...)
	f.watch(p.server)
	return p.run(cmd.Context(), cmd.Flags())
}

// prepare returns a Berth by the flags and the files that they name. Nothing is begun: its errors are of usage.
func (f *runFlags) prepare(cmd *cobra.Command) (*process, error) {
	log, err := f.logger()
	if err != nil {
		return nil, err
	}
	notes, err := f.foreign(cmd.Flags())
	if err != nil {
		return nil, err
	}
	for _, note := range notes {
		log.Info(note)
	}
	cfg, err := f.firstConfig(cmd.Flags())
	if err != nil {
		return nil, err
	}
	if err := f.validate(); err != nil {
		return nil, err
	}
	cloud, err := f.provider().Load()
	if err != nil {
		return nil, err
	}
	api, err := apiserver.Open(f.server(cfg))
	if err != nil {
		return nil, err
	}
	p := &process{flags: f, cfg: cfg, cloud: cloud, api: api, log: log,
		server: observe.NewServer(log), served: make(chan struct{}), health: live.NewHealth(f.cloudProvider != ""),
		incumbents: incumbent.New(f.incumbents(&cfg), api.Client, log)}
	p.tracer, err = tracing.Open(cmd.Context(), f.tracing, log)
	return p, err
}

// run has the server come up before the API server has answered and the caches are full: until then it
// says what is missing. An error of it ends the rest, before anything is written. It goes on while what
// is under way comes to its end.
func (p *process) run(ctx context.Context, commandLine *pflag.FlagSet) error {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	p.server.Stopping, p.server.Flags, p.server.MayWrite = ctx.Done(), observe.Flags(p.flags.sections), p.api.Fence.Open
	p.server.Show(p.shown(0))
	p.server.About = observe.About{Mode: observe.ModeOf(p.flags.mode, p.flags.shadow), Provider: p.flags.cloudProvider, Identity: p.identity}
	var e *leader.Election
	if le := p.cfg.LeaderElection; le.Enabled {
		e = leader.NewElection(p.api.Lease, le, p.identity, p.api.Fence, p.log)
		p.server.About.Leader = e.Leader
	}
	p.check(e)
	serving, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	go p.serve(serving, p.flags.server(p.cfg).KubeconfigPath(), e, fail)
	err := p.begin(ctx, commandLine, e)
	if serving := (errServing{}); errors.As(context.Cause(ctx), &serving) {
		return serving.error
	}
	return ignoreEnd(ctx, err)
}

// shown returns what the server shows of the configuration; the version is 0 while it isn't known.
func (p *process) shown(v compat.Version) observe.Configuration {
	s := p.flags.serving
	return observe.Configuration{Component: p.cfg.Component(config.Debugging{Profiling: s.Profiling, Contention: s.Contention}), Own: p.cfg, Version: v}
}

// begin waits for the API server, reads the configuration as its version does, and works.
func (p *process) begin(ctx context.Context, commandLine *pflag.FlagSet, e *leader.Election) (err error) {
	if err := p.api.Await(ctx, p.log); err != nil {
		return err
	}
	var notes []string
	if p.cfg, notes, err = p.flags.forServer(commandLine, p.cfg, p.api.Version); err != nil {
		return err
	}
	for _, note := range notes {
		p.log.Info(note)
	}
	p.server.Show(p.shown(p.cfg.Version))
	p.log.Info("following the scheduling rules of Kubernetes "+p.cfg.Version.String(), "emulated", p.flags.emulated.String() != "")
	if e == nil {
		return p.work(ctx, nil, nil)
	}
	if err := leader.MayLead(ctx, p.api.Lease, p.cfg.LeaderElection); err != nil {
		return err
	}
	return e.Run(ctx, p.work)
}

// ignoreEnd takes an error unless it is that of the context: that Berth is interrupted is no error.
func ignoreEnd(ctx context.Context, err error) error {
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return nil
	}
	return err
}

// serve runs the server until ctx is done, and calls fail when it can't run. The election, nil without
// one, tells where this process serves.
func (p *process) serve(ctx context.Context, kubeconfig string, e *leader.Election, fail context.CancelCauseFunc) {
	defer close(p.served)
	serving := p.flags.serving
	serving.UseKubeconfig(kubeconfig)
	address, err := p.server.Run(ctx, serving)
	if err != nil {
		fail(errServing{err})
		return
	}
	if e != nil { // the election waits for served
		e.ServeAt(leader.PodNamespace(), observe.PortOf(address), serving.OwnCertificate())
	}
}

// errServing ends everything: the server can't run. As the cause of the context it is no interrupt.
type errServing struct{ error }

// watch makes a server show what the flags of the autoscaler ask for.
func (f *runFlags) watch(server *observe.Server) {
	w := f.scale.Watch
	if w.PerGroupMetrics {
		server.Metrics.EmitPerNodeGroup()
	}
	if f.cloudProvider != "" {
		server.CheckPlans(observe.HealthTimes{MaxInactivity: w.MaxInactivity, MaxFailing: w.MaxFailing, MaxStartup: w.MaxStartup})
	}
}

// logger sets klog up, which the libraries use too, and returns a logger that writes
// to it.
func (f *runFlags) logger() (*slog.Logger, error) {
	gates, err := f.gates.Logging()
	if err != nil {
		return nil, err
	}
	if err := logsapi.ValidateAndApply(f.logging, gates); err != nil {
		return nil, fmt.Errorf("logging flags: %w; --logging-format must be text or json", err)
	}
	return slog.New(logr.ToSlogHandler(klog.Background())), nil
}

// process is a Berth that is configured, and doesn't work yet. The goroutine of run owns it; the
// server's goroutine reads server, flags and served.
type process struct {
	flags    *runFlags
	cfg      config.Scheduler
	cloud    provider.Config
	api      *apiserver.Connection
	identity string // of this process among all Berths
	server   *observe.Server
	served   chan struct{} // closed when the server runs, or has failed
	health   *live.Health
	tracer   *tracing.Tracer // nil without --tracing-config-file
	log      *slog.Logger

	incumbents *incumbent.Programs
}

// check tells the server what probes are to ask for. The election is nil without one. Caches and the
// Lease decide readiness: such a Berth gets no traffic and goes on. What is stuck, or doesn't renew its
// Lease, fails liveness and is restarted.
func (p *process) check(e *leader.Election) {
	p.server.Ready = append(p.server.Ready, observe.Check{Name: "api-server", Err: p.api.Answered})
	for _, name := range p.health.Caches() {
		p.server.Ready = append(p.server.Ready, observe.Check{Name: "cache-" + name, Err: func() error { return p.health.Cache(name) }})
	}
	p.server.Alive = append(p.server.Alive, observe.Check{Name: "stuck", Err: p.health.Alive})
	if e != nil {
		p.server.Ready = append(p.server.Ready, observe.Check{Name: "lease", Err: e.Usable}, observe.Check{Name: "leaderElection", Err: e.Renewing})
		p.server.Alive = append(p.server.Alive, observe.Check{Name: "leaderElection", Err: e.Renewing})
	}
}

// work runs the live edge until ctx is done. It calls synced, which may be nil, when its caches
// are full and the server runs, and stands by until becomeLeader is closed; nil means that it
// decides as soon as they are. It is to be called once. It returns an error before anything is written
// when another program is running that does the same. That it is interrupted is no error.
func (p *process) work(ctx context.Context, synced func(leader.CatchUp), becomeLeader <-chan struct{}) (err error) {
	defer func() { err = ignoreEnd(ctx, err) }()
	if err := p.incumbents.NoScheduler(ctx); err != nil {
		return err
	}
	o, end, err := p.options(ctx, becomeLeader)
	if err != nil {
		return err
	}
	defer end()
	o.Synced = func(catchUp func(context.Context) error) {
		p.server.HandlersSynced()
		select { // nothing is written before
		case <-p.served:
		case <-ctx.Done():
		}
		if synced != nil && ctx.Err() == nil {
			synced(catchUp)
		}
	}
	defer p.server.StopLeading()
	return p.flags.recorded(o, p.log, func(o live.Options) error { return live.Run(ctx, o) })
}

// options returns what the live edge is to run with until ctx is done: the core's
// configuration, the hooks that see every Step, and the edges that the flags ask for. Every
// core gets a schema of its own, which its profiles are made with. end is to be called when the
// edge has come to its end.
//
// What is in OnBecomeLeader runs when this Berth has got the Lease and before it decides: other
// programs are looked for once more, as one may have been started since, and only then does the
// provider begin to work. An error of it gives the Lease up.
func (p *process) options(ctx context.Context, becomeLeader <-chan struct{}) (_ live.Options, end func(), err error) {
	cfg := p.cfg // which the server reads meanwhile
	if a := p.flags.scale.Core; p.flags.mode == modeAutoscaler {
		cfg = cfg.Beside(slices.Concat(a.AllowedSchedulers, a.BypassedSchedulers)...)
	}
	schema, profiles := cfg.Build()
	o := live.Options{
		Config: p.api.Rest, Fence: p.api.Fence, Health: p.health, Schema: schema, Log: p.log,
		Hooks: p.tracer.Hooks(p.server), State: p.server.State, Questions: p.server.Questions, Watcher: p.server,
		Core:         core.DefaultConfig(profiles...),
		BecomeLeader: becomeLeader, BindStalled: p.server.BindStalled,
	}
	o.Core.Engine.Seed, o.Core.Queue = p.flags.seed, cfg.Queue
	o.Core.NoExpectedNominations = !cfg.Enabled(config.NominatedNodeNameForExpectation)
	o.NoPodGroups = !cfg.PodGroups()
	o.Core.ExternalScheduler = p.flags.mode == modeAutoscaler
	if p.flags.shadow {
		how := core.DefaultShadow()
		o.Core.Shadow = &how
		if len(cfg.Extenders) > 0 {
			p.log.Info("the extenders of --config are not called, since one may take a call for an actual placement; nodes that they would reject count as allowed")
		}
	}
	if len(cfg.Extenders) > 0 && !p.flags.shadow { // all profiles have the same extenders
		if o.Extenders, err = extender.NewChain(cfg.Extenders, cfg.Profiles[0].Extenders, p.log); err != nil {
			return live.Options{}, nil, err
		}
	}
	nodes, err := p.cloud.Open(p.api, &p.flags.scale.Core, p.server.PricesRead, p.log)
	if err != nil {
		return live.Options{}, nil, err
	}
	if nodes.Provider != nil {
		o.Provider, o.Core.Autoscale = nodes.Provider, &p.flags.scale.Core
		o.Namespace, o.StatusName = p.flags.scale.Watch.Namespace, p.flags.scale.Watch.StatusConfigMap()
		if server := p.flags.scale.GRPCExpander; expander.Named(p.flags.scale.Core.Expander, expander.GRPCName) {
			if o.GRPCExpander, err = edgeexpander.NewGRPC(ctx, server.URL, server.Cert, p.log); err != nil {
				return live.Options{}, nil, err
			}
		}
	}
	ended := func() {} // what to do at the end: nothing unless this Berth has led
	o.OnBecomeLeader = func(ctx context.Context) error {
		nodes.Watch(ctx)
		if err := errors.Join(p.incumbents.NoScheduler(ctx), p.incumbents.NoAutoscaler(ctx, o.Provider)); err != nil {
			return err
		}
		p.server.BecomeLeader()
		ended = nodes.End
		return nodes.Lead(ctx)
	}
	return o, func() { ended() }, nil
}
