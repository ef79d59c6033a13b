package controlplane

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/client/pkg/v3/transport"
	"go.etcd.io/etcd/server/v3/embed"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"

	"github.com/berthproject/berth/devcluster/kubelets"
	"github.com/berthproject/berth/internal/test/devpki"
)

// This file makes this binary each of the control plane's components: Start runs it again
// as "component NAME" with the component's own flags.

// ComponentCommand returns the hidden command whose subcommands are the components: those of every
// cluster but its controllers, and more. The name of the controllers must be
// kube-controller-manager. A process runs at most one of them, since Kubernetes sets its signal
// handler up once per process.
func ComponentCommand(more ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{Use: "component", Hidden: true, Short: "Run one component; for the use of up and demo",
		PersistentPreRunE: func(*cobra.Command, []string) error { return setVersion() }}
	cmd.AddCommand(etcdCommand(), PassThrough("kube-apiserver", app.NewAPIServerCommand), kubelets.Command())
	cmd.AddCommand(more...)
	return cmd
}

// PassThrough returns a command that hands its arguments to a component's own command,
// which is made only when it is run: making it registers flags for the whole process.
func PassThrough(name string, make func() *cobra.Command) *cobra.Command {
	return &cobra.Command{
		Use: name, DisableFlagParsing: true, SilenceUsage: true,
		RunE: func(_ *cobra.Command, args []string) error {
			inner := make()
			inner.SetArgs(args)
			return inner.Execute()
		},
	}
}

func etcdCommand() *cobra.Command {
	var dir, client, peer, pkiDir string
	cmd := &cobra.Command{
		Use: "etcd", Args: cobra.NoArgs, SilenceUsage: true,
		RunE: func(*cobra.Command, []string) error {
			ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			return runEtcd(ctx, dir, client, peer, devpki.Open(pkiDir))
		},
	}
	cmd.Flags().StringVar(&dir, "data-dir", "", "")
	cmd.Flags().StringVar(&client, "client-url", "", "")
	cmd.Flags().StringVar(&peer, "peer-url", "", "")
	cmd.Flags().StringVar(&pkiDir, "pki", "", "")
	return cmd
}

// runEtcd serves until the context ends or etcd fails.
func runEtcd(ctx context.Context, dir, client, peer string, certs *devpki.Authority) error {
	cfg := embed.NewConfig()
	cfg.Dir = dir
	cfg.Name = "dev"
	cfg.UnsafeNoFsync = true // the data needn't outlive a crash of the machine
	cfg.LogLevel = "error"
	cfg.LogOutputs = []string{"stderr"}
	cfg.QuotaBackendBytes = 8 << 30
	clientURL, err := url.Parse(client)
	if err != nil {
		return err
	}
	peerURL, err := url.Parse(peer)
	if err != nil {
		return err
	}
	cfg.ListenClientUrls, cfg.AdvertiseClientUrls = []url.URL{*clientURL}, []url.URL{*clientURL}
	cfg.ListenPeerUrls, cfg.AdvertisePeerUrls = []url.URL{*peerURL}, []url.URL{*peerURL}
	cfg.InitialCluster = "dev=" + peer
	tls := transport.TLSInfo{
		CertFile: certs.Path("etcd.crt"), KeyFile: certs.Path("etcd.key"),
		TrustedCAFile: certs.Path("ca.crt"), ClientCertAuth: true,
	}
	cfg.ClientTLSInfo, cfg.PeerTLSInfo = tls, tls
	e, err := embed.StartEtcd(cfg)
	if err != nil {
		return fmt.Errorf("starting etcd: %w", err)
	}
	defer e.Close()
	select {
	case <-ctx.Done():
		return nil
	case err := <-e.Err():
		return fmt.Errorf("etcd stopped: %w", err)
	}
}
