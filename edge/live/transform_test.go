package live

import (
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/berthproject/berth/internal/test/testkit"
)

// TestPodsWithoutPodGroups: with GenericWorkload off no pod is a member of a group.
func TestPodsWithoutPodGroups(t *testing.T) {
	for _, extenders := range []bool{false, true} {
		out, err := withoutPodGroups(transformFor(extenders))(testkit.Pod("p").PodGroup("gang").Obj())
		if p, ok := out.(*v1.Pod); err != nil || !ok || p.Name != "p" || p.Spec.SchedulingGroup != nil {
			t.Errorf("with extenders %t: got %+v (%v), want the pod p of no group", extenders, out, err)
		}
	}
}
