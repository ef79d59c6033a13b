// Command devcluster runs a real Kubernetes control plane on loopback, with simulated kubelets, and
// measures Berth and kube-scheduler on it. Berth's demo is a command of its own, cmd/demo, which
// links less.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/spf13/cobra"

	"github.com/berthproject/berth/devcluster/api"
	"github.com/berthproject/berth/devcluster/components"
	"github.com/berthproject/berth/devcluster/controlplane"
	"github.com/berthproject/berth/devcluster/devices"
	"github.com/berthproject/berth/devcluster/realnode"
)

func main() {
	cmd := &cobra.Command{
		Use: "devcluster", Short: "A real Kubernetes control plane on loopback, with simulated kubelets",
		SilenceUsage: true, SilenceErrors: true,
	}
	cmd.AddCommand(upCommand(), sizeCommand(), burstCommand(), benchCommand(), viewersCommand(), stormCommand(), components.Command())
	os.Exit(controlplane.RunCommand(cmd))
}

// upCommand returns the command up. What it starts is stopped in the reverse order, also
// after an error.
func upCommand() *cobra.Command {
	var o controlplane.Options
	var driver devices.Options
	var real realNodes
	cmd := &cobra.Command{
		Use: "up", Short: "Start a cluster and keep it until interrupted", Args: cobra.NoArgs,
		Long: `Up starts etcd, kube-apiserver, kube-controller-manager and simulated kubelets on
loopback, with fresh certificates, and keeps them until Ctrl-C or SIGTERM.
Nothing is left behind then, unless --data-dir says where to keep it.

With --devices, a simulated driver publishes devices of every node in ResourceSlices,
of the DeviceClass gpu.example.com, which backs the extended resource
example.com/gpu.

With --real-node, containerd and the kubelet run on this machine beside the simulated
kubelets, and what is placed on their node runs in containers. They need root. The
API server serves on loopback: containers reach it from the network of the machine.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := driver.Validate(); err != nil {
				return err
			}
			o.Progress = cmd.OutOrStdout()
			c, err := controlplane.Start(cmd.Context(), o)
			if err != nil {
				return err
			}
			defer c.Stop()
			// The driver needs the API server, so it is the first to end.
			stop, err := drive(cmd.Context(), c, driver, cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			defer stop()
			leave, err := real.join(cmd.Context(), c, cmd.OutOrStdout(), cmd.ErrOrStderr())
			// Deferred before the error is looked at: of several nodes some may have been
			// started.
			defer leave()
			if err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "ready; use it with\n  kubectl --kubeconfig %s get nodes\nstop it with Ctrl-C\n", c.Kubeconfig)
			// A cluster whose component ended by itself is of no use: the command says so
			// instead of waiting.
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
	cmd.Flags().BoolVar(&o.PodGroups, "pod-groups", false, "serve Workloads and PodGroups, and have Jobs make their groups")
	cmd.Flags().StringSliceVar(&real.names, "real-node", nil, "name of a node that runs containers on this machine, as root, with what ./hack/build-node builds; several are separated by commas (default: none)")
	cmd.Flags().StringSliceVar(&real.images, "real-node-image", nil, "archive of images that real nodes have, as docker save writes it (default: none)")
	cmd.Flags().IntVar(&driver.PerNode, "devices", 0, "number of devices of each node (default: no driver)")
	cmd.Flags().DurationVar(&driver.Delay, "devices-after", 0, "how long after a node is ready its devices are published")
	cmd.Flags().DurationVar(&driver.Changes, "devices-change", 0, "how often the devices of a node get another driver version (default: never)")
	cmd.Flags().DurationVar(&driver.Taints, "devices-taint", 0, "how often another device is tainted, and the one before gets well (default: never)")
	return cmd
}

// realNodes are the nodes of a cluster that run containers.
// They run as root on this machine, unlike all else in the cluster, which is why there are
// none by default.
type realNodes struct {
	names  []string
	images []string // paths of archives
}

// join starts the nodes. leave ends those that were started, also after an error.
func (r realNodes) join(ctx context.Context, c *controlplane.Cluster, progress, warn io.Writer) (leave func(), err error) {
	// Later nodes are stopped first.
	var started []*realnode.Node
	leave = func() {
		for _, n := range slices.Backward(started) {
			if err := n.Stop(); err != nil {
				fmt.Fprintln(warn, "stopping a real node:", err)
			}
		}
	}
	if len(r.names) == 0 {
		return leave, nil
	}
	client, err := api.New(c.Config)
	if err != nil {
		return leave, err
	}
	// The programs of a node lie beside the dev cluster's own binary, wherever that was
	// built to.
	self, err := os.Executable()
	if err != nil {
		return leave, err
	}
	for i, name := range r.names {
		port, err := controlplane.FreePort()
		if err != nil {
			return leave, err
		}
		fmt.Fprintf(progress, "starting containerd and the kubelet of %s …\n", name)
		// Each node has a port and a network of its own, so that several can run on one
		// machine.
		n, err := realnode.Start(ctx, client, realnode.Options{Name: name, Kubeconfig: c.Kubeconfig, Port: port, Images: r.images,
			Network: i, Programs: filepath.Join(filepath.Dir(self), "node"), Dir: filepath.Join(c.Dir(), "node-"+name)})
		if err != nil {
			return leave, fmt.Errorf("the real node %s: %w", name, err)
		}
		started = append(started, n)
	}
	return leave, nil
}

// drive plays the driver of devices on a cluster until stop is called, if there are devices.
// An error of the driver's is logged and doesn't end the cluster.
func drive(ctx context.Context, c *controlplane.Cluster, o devices.Options, log io.Writer) (stop func(), err error) {
	if o.PerNode == 0 {
		return func() {}, nil
	}
	client, err := api.New(c.Config)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	var driver sync.WaitGroup
	driver.Go(func() {
		failed := func(err error) { fmt.Fprintln(log, "devices:", err) }
		if err := devices.Run(ctx, client, o, failed); err != nil && ctx.Err() == nil {
			failed(err)
		}
	})
	// Waiting matters: a driver that writes after the API server is gone would log errors.
	return func() { cancel(); driver.Wait() }, nil
}
