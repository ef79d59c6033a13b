// Package gangscheduling stands in for the scheduling of pod groups (KEP-4671). Berth can't place a
// group as a whole, and a member that is placed alone may wait for the others for ever, on a node that
// they need. So members stay out of the queue, as kube-scheduler's plugin of this name keeps those of
// an incomplete group out of it. The plugin is part of every profile: an API server keeps
// spec.schedulingGroup of a pod only where its feature gate GenericWorkload is on.
package gangscheduling

import (
	"fmt"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/framework"
)

// Name is the name of kube-scheduler's plugin for pod groups.
const Name = "GangScheduling"

// Plugin implements framework.PreEnqueuer.
type Plugin struct{}

var _ framework.PreEnqueuer = Plugin{}

// PreEnqueue implements framework.PreEnqueuer: a reason that names the pod's group. A pod's group
// never changes.
func (Plugin) PreEnqueue(pod *cluster.Pod) *framework.Reason {
	group := pod.PodGroup()
	if group == "" {
		return nil
	}
	return &framework.Reason{
		Plugin:   Name,
		Messages: []string{fmt.Sprintf("this version of Berth cannot place members of pod groups, and the pod is a member of PodGroup %s", group)},
		Final:    true,
		OfPod:    true,
	}
}
