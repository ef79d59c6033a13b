// Command demo plays Berth's demo on a real Kubernetes control plane on loopback, with simulated
// kubelets. It links no more of Kubernetes than that takes.
package main

import (
	"os"

	"github.com/berthproject/berth/devcluster/controllers"
	"github.com/berthproject/berth/devcluster/controlplane"
	"github.com/berthproject/berth/devcluster/demo"
)

func main() {
	cmd := demo.Command()
	cmd.AddCommand(controlplane.ComponentCommand(controllers.Command()))
	os.Exit(controlplane.RunCommand(cmd))
}
