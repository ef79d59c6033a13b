package clusterapi

import (
	"fmt"
	"strconv"
)

// This file finds the MachineDeployments that roll out. Until the last Machine of an older revision is
// gone, Cluster API lowers the old MachineSets itself, whichever Machines are marked for deletion:
// another node than the drained one would go. Cluster Autoscaler leaves all their nodes out of its
// candidates, too.

// revision is the annotation by which Cluster API numbers the MachineSets of a MachineDeployment.
const revision = "machinedeployment.clusters.x-k8s.io/revision"

// rollout returns why no node of a MachineDeployment may be chosen for removal, by its MachineSets: ""
// unless one that isn't of the newest revision has or wants Machines.
func rollout(sets []*scalable) string {
	newest := 0
	for _, s := range sets {
		newest = max(newest, s.revision())
	}
	for _, s := range sets {
		if s.revision() < newest && (s.Status.Replicas > 0 || s.Spec.Replicas != nil && *s.Spec.Replicas > 0) {
			return fmt.Sprintf("its MachineDeployment is rolling out: MachineSet %s/%s, of an older revision, still has Machines, and Cluster API selects which node goes", s.Namespace, s.Name)
		}
	}
	return ""
}

// revision returns the number of a MachineSet's revision, 0 when there is none.
func (s *scalable) revision() int {
	n, err := strconv.Atoi(s.Annotations[revision])
	if err != nil {
		return 0
	}
	return n
}
