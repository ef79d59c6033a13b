// Package schedulinggates keeps pods with scheduling gates out of the queue (KEP-3521).
// A change of the pod asks again.
package schedulinggates

import (
	"fmt"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/framework"
)

// Name is the plugin's name in kube-scheduler configuration.
const Name = framework.SchedulingGates

// Plugin implements framework.PreEnqueuer.
type Plugin struct{}

var _ framework.PreEnqueuer = Plugin{}

// PreEnqueue implements framework.PreEnqueuer: a reason that names the gates while
// there are any.
func (Plugin) PreEnqueue(pod *cluster.Pod, _ *cluster.State) *framework.Reason {
	gates := pod.Object.Spec.SchedulingGates
	if len(gates) == 0 {
		return nil
	}
	names := make([]string, len(gates))
	for i, g := range gates {
		names[i] = g.Name
	}
	return &framework.Reason{
		Plugin:   Name,
		Messages: []string{fmt.Sprintf("waiting for scheduling gates: %v", names)},
		Final:    true,
	}
}
