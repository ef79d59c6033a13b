package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	cliflag "k8s.io/component-base/cli/flag"
	"k8s.io/component-base/logs"
	logsapi "k8s.io/component-base/logs/api/v1"

	"github.com/berthproject/berth/config"
	"github.com/berthproject/berth/edge/apiserver"
	"github.com/berthproject/berth/edge/provider"
	"github.com/berthproject/berth/edge/provider/externalgrpc"
	"github.com/berthproject/berth/edge/provider/simulated"
	"github.com/berthproject/berth/internal/simulatedgroup"
	"github.com/berthproject/berth/internal/term"
)

// This file is berth provider: the simulated provider as a process of its own, and the check of
// any provider's server.

// providerCommand returns berth provider, which does nothing without one of its commands.
func providerCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "provider",
		Short: "Serve node groups, or check a server that does",
		Long: `Provider has commands for the servers behind --cloud-provider=externalgrpc, which speak
Cluster Autoscaler's externalgrpc protocol.`,
	}
	cmd.AddCommand(providerSimulatedCommand(), providerCheckCommand())
	return cmd
}

// providerFlags are those of berth provider simulated. listen and cloudConfig are required,
// kubeconfig is "" for the environment's.
type providerFlags struct {
	listen, kubeconfig, cloudConfig string
	tls                             externalgrpc.ServerTLS
	logging                         *logsapi.LoggingConfiguration
}

// providerSimulatedCommand returns berth provider simulated. It makes and deletes nodes, for which the
// Berth that it serves needs no right then.
func providerSimulatedCommand() *cobra.Command {
	f := &providerFlags{logging: logsapi.NewLoggingConfiguration()}
	cmd := &cobra.Command{
		Use:   "simulated",
		Short: "Serve simulated node groups whose nodes are Node objects in a real API server",
		Long: `Simulated serves the node groups of a file over the externalgrpc protocol until it is
interrupted. For each added node it creates a Node object and makes it ready; for each
removed node it deletes the object. Only one such process may serve a cluster at a time.`,
		Example: `  berth provider simulated --kubeconfig kubeconfig --cloud-config groups.yaml
  berth provider simulated --listen 0.0.0.0:8086 --cloud-config groups.yaml \
    --tls-cert-file server.crt --tls-private-key-file server.key --client-ca-file ca.crt`,
		Args: term.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.serve(cmd) },
	}
	var s cliflag.NamedFlagSets
	fs := s.FlagSet("misc")
	fs.StringVar(&f.listen, "listen", "127.0.0.1:8086", "address to serve on, host:port or unix:///PATH; without TLS it must be a loopback address or a socket")
	fs.StringVar(&f.kubeconfig, "kubeconfig", "", "path to a kubeconfig file (default: $KUBECONFIG, or the pod's service account)")
	fs.StringVar(&f.cloudConfig, "cloud-config", "", "path to the file with the node groups")
	fs = s.FlagSet("secure serving")
	fs.StringVar(&f.tls.Cert, "tls-cert-file", "", "path to a PEM file with the server's certificate")
	fs.StringVar(&f.tls.Key, "tls-private-key-file", "", "path to a PEM file with the private key of that certificate")
	fs.StringVar(&f.tls.ClientCA, "client-ca-file", "", "path to a PEM file with the CA certificates that clients' certificates are verified with")
	logsapi.AddFlags(f.logging, s.FlagSet("logs"))
	term.SetSections(cmd, s)
	return cmd
}

// validate refuses what can't be served.
func (f *providerFlags) validate() error {
	if f.cloudConfig == "" {
		return errors.New("--cloud-config is required; set it to the path of a file with node groups")
	}
	return errors.Join(f.tls.MayListen(f.listen), f.tls.Validate())
}

// serve returns when the command's context is done or it can't go on. Files and flags are read before
// the cluster is asked for anything, and the listener is open before nodes are adopted: a second
// process for the same address fails without having touched a node.
func (f *providerFlags) serve(cmd *cobra.Command) error {
	ctx := cmd.Context()
	if err := f.validate(); err != nil {
		return term.Usage(err)
	}
	file, err := simulatedgroup.Load(f.cloudConfig)
	if err != nil {
		return term.Usage(err)
	}
	run := &runFlags{kubeconfig: f.kubeconfig, logging: f.logging}
	log, err := run.logger()
	if err != nil {
		return term.Usage(err)
	}
	defer logs.FlushLogs()
	cfg := config.Default()
	cfg.LeaderElection.Enabled = false
	api, err := apiserver.Connect(ctx, run.server(cfg), log)
	if err != nil {
		return err
	}
	listener, err := externalgrpc.Listen(ctx, f.listen)
	if err != nil {
		return fmt.Errorf("--listen: %w; choose a host:port, or a socket, that is free on this machine", err)
	}
	p := simulated.New(api.Client.CoreV1().Nodes(), file, time.Now, log)
	// Nodes of these groups that exist count before the first call is answered: otherwise a client would
	// order them again.
	if err := provider.Adopt(ctx, p); err != nil {
		return err
	}
	log.Info("serving node groups", "address", listener.Addr().String(), "groups", len(file.Groups))
	return externalgrpc.NewServer(p).Serve(ctx, listener, f.tls)
}

// providerCheckCommand returns berth provider check. Its flags are the keys of the file of
// --cloud-config, for authors who have no such file yet.
func providerCheckCommand() *cobra.Command {
	cfg := &externalgrpc.Config{}
	timeout := externalgrpc.DefaultTimeout
	var what externalgrpc.Checking
	cmd := &cobra.Command{
		Use:   "check ADDRESS",
		Short: "Check an externalgrpc server for what Berth relies on",
		Long: `Check makes each call of the externalgrpc protocol and prints a line for it: ok, left out
(the server answers UNIMPLEMENTED, which is allowed), not tried, or wrong, with the value
and what it should be. It only reads, unless --change names a group: that group is scaled
up by one node and down again. The exit code is 1 if anything is wrong.`,
		Example: `  berth provider check localhost:8086
  berth provider check provider.example.org:8086 --cert client.crt --key client.key --cacert ca.crt --change pool-1`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			cfg.Address, cfg.Timeout = args[0], &metav1.Duration{Duration: timeout}
			if err := cfg.Validate(); err != nil {
				return term.Usage(err)
			}
			if err := externalgrpc.Check(cmd.Context(), cfg, what, cmd.OutOrStdout()); err != nil {
				return fmt.Errorf("checking %s: %w", cfg.Address, err)
			}
			return nil
		},
	}
	fs := cmd.Flags()
	fs.SortFlags = false
	fs.StringVar(&cfg.Cert, "cert", "", "path to a PEM file with the client's certificate; without it the connection is not encrypted")
	fs.StringVar(&cfg.Key, "key", "", "path to a PEM file with the private key of that certificate")
	fs.StringVar(&cfg.CACert, "cacert", "", "path to a PEM file with the CA certificate that the server's certificate is verified with")
	fs.DurationVar(&timeout, "timeout", timeout, "timeout of each call")
	fs.StringVar(&what.Change, "change", "", "a group to scale up by one node and down again; you pay for that node meanwhile")
	fs.DurationVar(&what.Wait, "wait", 5*time.Minute, "how long to wait for a new instance to be listed, and for a deleted one to disappear from the list")
	return cmd
}
