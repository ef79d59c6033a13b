package nodedeletion_test

import (
	"maps"
	"slices"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"pgregory.net/rapid"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/internal/test/testkit"
)

// TestPropertyMembersGetSuccessorsTogether is the history of TestPropertyOutcomesInAnyOrderLeaveNothingBehind
// with pods that are members of one group, which go together and ask for successors. Whatever happens, crashes
// included: no member is evicted; a member's Deployment is asked only together with those of all other
// members, once all their nodes are tainted; and nothing is left behind.
func TestPropertyMembersGetSuccessorsTogether(t *testing.T) {
	surged := 0
	rapid.Check(t, func(t *rapid.T) {
		w := newAround(t)
		w.members, w.atomic = true, false
		w.list()
		for _, name := range []string{"n2", "n3", "n4"} { // those that nobody else has marked
			w.join(name)
			w.tell(name)
		}
		for range rapid.IntRange(20, 200).Draw(t, "steps") {
			if w.something(); testkit.Uniform(t, 2, "go on") == 0 {
				w.goOn()
			}
		}
		w.settle()
		for _, line := range w.machine.Unsettled() {
			w.fatalf("%s", line)
		}
		for name, n := range w.api {
			w.checkClean(n, "the API: "+name)
		}
		surged += w.surged
	})
	if surged < 5 {
		t.Errorf("%d members were to get successors in all histories, want 5", surged)
	}
}

// goOn takes a removal further, so that more histories come to members' successors.
func (w *around) goOn() {
	if !w.groups.known {
		w.list()
	}
	switch testkit.Uniform(w.t, 3, "how") {
	case 0:
		w.plan()
	case 1:
		w.wait(25 * time.Second)
	default:
		for _, name := range slices.Sorted(maps.Keys(w.news)) {
			w.tell(name)
			w.take()
		}
		w.oneCall([]luck{succeeds, succeeds, fails, answerLost}[testkit.Uniform(w.t, 4, "luck")])
		for _, answer := range w.answers {
			answer()
		}
		w.answers = nil
	}
	w.take()
}

// member returns a member of the group, the only pod of its Deployment.
func (w *around) member(name, node string) *v1.Pod {
	return testkit.Pod(name).On(node).Owner("apps/v1", "ReplicaSet", name+"-1").Label("pod-template-hash", "1").Annotate(cluster.SurgeAnnotation, "true").PodGroup("whole").Obj()
}

// showGroup shows the group and the ReplicaSet of a member.
func (w *around) showGroup(p *onNode) {
	g := testkit.PodGroup("whole", 1, "")
	g.Spec.DisruptionMode = &schedulingv1beta1.DisruptionMode{All: &schedulingv1beta1.AllDisruptionMode{}}
	w.turn.State.SetObject(g)
	rs := testkit.ReplicaSet(p.Name+"-1", "pod-template-hash", "1")

	rs.Spec.Replicas, rs.Status.Replicas = new(int32(1)), 1
	w.turn.State.SetWorkload(cluster.WorkloadOf(rs))
}

// together has a plan's nodes with members go together.
func (w *around) together(p *autoscaler.Plan) {
	var names []string
	has := func(name string) bool {
		return len(w.podsOn(name, func(p *onNode) bool { return p.Spec.SchedulingGroup != nil })) > 0
	}
	for _, r := range p.Removals {
		if has(r.Node) {
			names = append(names, r.Node)
		}
	}
	if slices.Sort(names); len(names) < 2 {
		return
	}
	for _, r := range p.Removals {
		if has(r.Node) {
			r.With = names
		}
	}
}

// checkSurge fails if a member's Deployment is asked without those of others that are on nodes that are shown, or
// before all these nodes are tainted.
func (w *around) checkSurge(deployment string, with []string) {
	w.surged++
	for _, uid := range slices.Sorted(maps.Keys(w.pods)) {
		p := w.pods[uid]
		if p.Spec.SchedulingGroup == nil || p.DeletionTimestamp != nil || p.Name == deployment {
			continue
		}
		n := w.turn.State.NodeByName(p.Spec.NodeName)
		if n == nil {
			continue
		}
		if !slices.Contains(with, p.Name) {
			w.fatalf("the successor of %s is asked for with those of %v, and %s is a member, too", deployment, with, p.Name)
		}
		if !autoscaler.Going(n.NodeInfo) {
			w.fatalf("the successor of %s is asked for, and member %s is on %s, which stays", deployment, p.Name, p.Spec.NodeName)
		}
	}
}
