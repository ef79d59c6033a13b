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
	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/internal/test/testkit"
)

// TestPropertyMembersGetSuccessorsTogether is the history of TestPropertyOutcomesInAnyOrderLeaveNothingBehind
// with pods that are members of two groups, which go together and ask for successors, in two tiers. Whatever
// happens, crashes included: no member is evicted unless the cloud takes its node; a member's Deployment is
// asked only together with those of all other members, and with all members on their nodes, once all these
// nodes are tainted; no drain waits for ever, and nothing is left behind.
func TestPropertyMembersGetSuccessorsTogether(t *testing.T) {
	surged := 0
	rapid.Check(t, func(t *rapid.T) {
		w := newAround(t)
		w.members, w.atomic = true, false
		w.taken = map[string]bool{}
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

// member returns a member of one of the groups, the only pod of its Deployment.
func (w *around) member(name, node string) *v1.Pod {
	p := testkit.Pod(name).On(node).Owner("apps/v1", "ReplicaSet", name+"-1").Label("pod-template-hash", "1").Annotate(cluster.SurgeAnnotation, "true").
		PodGroup([]string{"whole", "entire"}[testkit.Uniform(w.t, 2, "group")]).Priority(int32(10 * testkit.Uniform(w.t, 2, "tier")))
	if testkit.Uniform(w.t, 8, "safe") == 0 {
		p.Annotate(cluster.SafeToEvictAnnotation, "true")
	}
	return p.Obj()
}

// waits reports whether a pod is a member that gets its successor with the others.
func (p *onNode) waits() bool {
	return p.Spec.SchedulingGroup != nil && p.Annotations[cluster.SafeToEvictAnnotation] == ""
}

// showGroup shows the group and the ReplicaSet of a member.
func (w *around) showGroup(p *onNode) {
	g := testkit.PodGroup(*p.Spec.SchedulingGroup.PodGroupName, 1, "")
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

// interrupt has the cloud be about to take a node that is on its way out.
func (w *around) interrupt(name string) {
	if w.taken != nil && w.machine.Leaving(name) {
		w.note("the cloud is about to take %s", name)
		w.taken[name] = true
		w.machine.Interrupted(w.turn, name)
	}
}

// checkSurges fails if members' Deployments are asked without those of others that are on nodes that are shown,
// without others on the same nodes, or before all these nodes are tainted.
func (w *around) checkSurges(surges []step.Surge) {
	var asked []*onNode
	for _, x := range surges {
		p := w.pods[x.UID]
		if p == nil || !p.waits() || w.taken[x.Node] {
			continue
		}
		asked = append(asked, p)
		for _, m := range w.membersLike(func(m *onNode) bool {
			return *m.Spec.SchedulingGroup.PodGroupName == *p.Spec.SchedulingGroup.PodGroupName
		}) {
			if m != p && !slices.Contains(x.With, m.Name) {
				w.fatalf("the successor of %s is asked for with those of %v, and %s is a member, too", p.Name, x.With, m.Name)
			}
			if node := m.Spec.NodeName; !autoscaler.Going(w.turn.State.NodeByName(node).NodeInfo) || w.taken[node] {
				w.fatalf("the successor of %s is asked for, and member %s is on %s, which does not go with it", p.Name, m.Name, node)
			}
		}
	}
	w.surged += len(asked)
	for _, m := range w.membersLike(func(m *onNode) bool {
		return slices.ContainsFunc(asked, func(p *onNode) bool {
			return p.Spec.NodeName == m.Spec.NodeName || *p.Spec.SchedulingGroup.PodGroupName == *m.Spec.SchedulingGroup.PodGroupName
		})
	}) {
		if !slices.Contains(asked, m) {
			w.fatalf("the successor of %s is asked for before that of %s", asked[0].Name, m.Name)
		}
	}
}

// membersLike returns the members of which f is true, that wait for others and are on nodes that are shown.
func (w *around) membersLike(f func(*onNode) bool) (out []*onNode) {
	for _, uid := range slices.Sorted(maps.Keys(w.pods)) {
		if p := w.pods[uid]; p.waits() && p.DeletionTimestamp == nil && w.turn.State.NodeByName(p.Spec.NodeName) != nil && f(p) {
			out = append(out, p)
		}
	}
	return out
}
