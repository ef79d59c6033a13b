package scaledown_test

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/internal/test/testkit"
)

// TestAWholeGroupMovesIntoOneDomain: the members of a group that leave together have homes in one rack, as its
// PodGroup requires, or their nodes stay, whatever room several racks have together. Successors that come first
// have to be in the members' own rack.
func TestAWholeGroupMovesIntoOneDomain(t *testing.T) {
	for _, c := range []struct {
		name      string
		near, far string // what pods that stay request on the nodes of the other racks, of 4 CPUs
		surge     bool
		goes      bool
	}{
		{"one rack has room for both", "3", "1", false, true},
		{"each has room for one", "3", "3", false, false},
		{"successors come while the members are in their own", "1", "1", true, false},
	} {
		p := newPasses(t, "a:", "b:", "c:")
		for name, rack := range map[string]string{"a": "r0", "b": "r1", "c": "r2"} {
			node := testkit.Node(name).Alloc("cpu", "4", "memory", "8Gi", "pods", "110")
			node.Labels["rack"] = rack
			p.s.SetNode(p.s.Schema.ParseNode(node.Obj(), "g"))
		}
		g := testkit.PodGroup("whole", 2, "rack")
		g.Spec.DisruptionMode = &schedulingv1beta1.DisruptionMode{All: &schedulingv1beta1.AllDisruptionMode{}}
		p.s.SetObject(g)
		place := func(name, cpu, node string, group bool) {
			b := testkit.Pod(name).Req("cpu", cpu)
			if group {
				p.s.SetWorkload(cluster.WorkloadOf(oneReplica(name)))
				b.PodGroup("whole").Owner("apps/v1", "ReplicaSet", name+"-1").Label("pod-template-hash", "1").Annotate(cluster.SurgeAnnotation, "true")
			}
			p.s.Place(p.s.Schema.ParsePod(b.Obj()), node)
		}
		place("m0", "1", "a", true)
		place("m1", "1", "a", true)
		place("near", c.near, "b", false)
		place("far", c.far, "c", false)
		p.req.ScaleDown.Rules.UtilizationThreshold, p.req.ScaleDown.Rules.Surge = 0.6, c.surge
		plan := pass(p.sim, p.req)
		if goes := len(plan.Removals) > 0 && plan.Removals[0].Node == "a"; goes != c.goes {
			t.Errorf("%s: the node goes %t, want %t: %+v %+v", c.name, goes, c.goes, plan.Removals, plan.Kept)
		}
	}
}

// oneReplica returns the ReplicaSet of a Deployment of one pod.
func oneReplica(deployment string) *appsv1.ReplicaSet {
	rs := testkit.ReplicaSet(deployment+"-1", "pod-template-hash", "1")
	rs.Spec.Replicas = new(int32(1))
	return rs
}
