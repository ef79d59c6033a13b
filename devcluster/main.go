// Command devcluster runs a real Kubernetes control plane on loopback, with simulated kubelets, and
// measures Berth and kube-scheduler on it. Berth's demo is a command of its own, cmd/demo, which
// links less.
package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/berthproject/berth/devcluster/command"
	"github.com/berthproject/berth/devcluster/components"
	"github.com/berthproject/berth/devcluster/controlplane"
)

func main() {
	cmd := &cobra.Command{
		Use: "devcluster", Short: "A real Kubernetes control plane on loopback, with simulated kubelets",
		SilenceUsage: true, SilenceErrors: true,
	}
	cmd.AddCommand(upCommand(), sizeCommand(), burstCommand(), benchCommand(), stormCommand(), components.Command())
	os.Exit(command.Run(cmd))
}

func upCommand() *cobra.Command {
	var o controlplane.Options
	cmd := &cobra.Command{
		Use: "up", Short: "Start a cluster and keep it until interrupted", Args: cobra.NoArgs,
		Long: `Up starts etcd, kube-apiserver, kube-controller-manager and simulated kubelets on
loopback, with fresh certificates, and keeps them until Ctrl-C or SIGTERM.
Nothing is left behind then, unless --data-dir says where to keep it.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.Progress = cmd.OutOrStdout()
			c, err := controlplane.Start(cmd.Context(), o)
			if err != nil {
				return err
			}
			defer c.Stop()
			fmt.Fprintf(cmd.OutOrStdout(), "ready; use it with\n  kubectl --kubeconfig %s get nodes\nstop it with Ctrl-C\n", c.Kubeconfig)
			select {
			case <-cmd.Context().Done():
				return nil
			case err := <-c.Failed():
				return err
			}
		},
	}
	cmd.Flags().StringVar(&o.DataDir, "data-dir", "", "directory for state and logs (default: a temporary one, removed at the end)")
	cmd.Flags().StringVar(&o.Kubeconfig, "kubeconfig", "", "where to write the kubeconfig, a new file that goes with the cluster (default: in the data directory)")
	cmd.Flags().IntVar(&o.Port, "port", 0, "port of the API server (default: a free one)")
	cmd.Flags().StringVar(&o.AuditLog, "audit-log", "", "where the API server writes what the service accounts of kube-system ask for (default: nowhere)")
	cmd.Flags().BoolVar(&o.NoKubelets, "no-kubelets", false, "leave the simulated kubelets out")
	return cmd
}
