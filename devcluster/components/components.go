// Package components is all components of a control plane as Kubernetes ships them, and what plays
// one in benchmarks.
package components

import (
	"github.com/spf13/cobra"
	controllers "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"

	"github.com/berthproject/berth/devcluster/bench"
	"github.com/berthproject/berth/devcluster/bindloop"
	"github.com/berthproject/berth/devcluster/controlplane"
)

// Command returns the command whose subcommands are the components.
func Command() *cobra.Command {
	return controlplane.ComponentCommand(
		controlplane.PassThrough("kube-controller-manager", controllers.NewControllerManagerCommand),
		controlplane.PassThrough("kube-scheduler", func() *cobra.Command { return scheduler.NewSchedulerCommand() }),
		bindloop.Command(), bench.ViewersCommand())
}
