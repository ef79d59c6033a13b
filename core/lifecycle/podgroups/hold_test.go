package podgroups_test

import (
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/lifecycle/podgroups"
	"github.com/berthproject/berth/internal/test/testkit"
)

// TestHold has a group with members that wait and members on nodes.
func TestHold(t *testing.T) {
	member := func(name string) *testkit.PodBuilder { return testkit.Pod(name).PodGroup("gang") }
	parent := testkit.PodGroup("gang", 1, "")
	parent.Spec.ParentCompositePodGroupName = new("tree")
	none := testkit.PodGroup("gang", 1, "")
	none.Spec.SchedulingPolicy.Gang.MinCount = 0
	const zone = v1.LabelTopologyZone
	for _, c := range []struct {
		name    string
		object  cluster.Object // nil for none
		waiting []*testkit.PodBuilder
		placed  []*testkit.PodBuilder
		gated   int
		asks    bool // extenders have a say
		want    string
		failure bool
	}{
		{name: "no object", waiting: []*testkit.PodBuilder{member("a")}, want: `waiting for pods's pod group "gang" to appear in scheduling queue`},
		{name: "of a composite group", object: parent, waiting: []*testkit.PodBuilder{member("a")},
			want: "PodGroup gang is part of CompositePodGroup tree, which Berth does not place: make it a group of its own, without spec.parentCompositePodGroupName (create it anew, the field cannot be changed), or have the members placed by another scheduler (spec.schedulerName)"},
		{name: "enough", object: testkit.PodGroup("gang", 2, ""), waiting: []*testkit.PodBuilder{member("a"), member("b")}},
		{name: "too few", object: testkit.PodGroup("gang", 3, ""), waiting: []*testkit.PodBuilder{member("a"), member("b")}, want: "waiting for minCount pods from a gang to appear in scheduling queue"},
		{name: "enough with those on nodes", object: testkit.PodGroup("gang", 2, ""), waiting: []*testkit.PodBuilder{member("a")}, placed: []*testkit.PodBuilder{member("b").On("n1")}},
		{name: "the basic policy", object: testkit.PodGroup("gang", 0, ""), waiting: []*testkit.PodBuilder{member("a")}},
		{name: "a gang that needs no member", object: none, waiting: []*testkit.PodBuilder{member("a")}},
		{name: "a member has a gate", object: testkit.PodGroup("gang", 1, ""), waiting: []*testkit.PodBuilder{member("a")}, gated: 1,
			want: `waiting for 1 pods of pod group "gang" that have scheduling gates`},
		{name: "another priority than the group's", object: testkit.PodGroup("gang", 1, ""), waiting: []*testkit.PodBuilder{member("a").Priority(5)}, failure: true,
			want: "all pods in a single pod group should have the same priority as the pod group's priority, got 5 and 0"},
		{name: "another scheduler", object: testkit.PodGroup("gang", 1, ""), waiting: []*testkit.PodBuilder{member("a"), member("b").With(func(p *v1.Pod) { p.Spec.SchedulerName = "mine" })}, failure: true,
			want: `all pods in a single pod group should have the same .spec.schedulerName set, got: "mine" and "default-scheduler"`},
		{name: "another preemption policy on a node", object: testkit.PodGroup("gang", 1, ""), waiting: []*testkit.PodBuilder{member("a")}, failure: true,
			placed: []*testkit.PodBuilder{member("b").On("n1").With(func(p *v1.Pod) { p.Spec.PreemptionPolicy = new(v1.PreemptNever) })},
			want:   "all pods in a single pod group should have the same preemption policy, got Never and PreemptLowerPriority"},
		{name: "members in one domain", object: testkit.PodGroup("gang", 1, zone), waiting: []*testkit.PodBuilder{member("a")}, placed: []*testkit.PodBuilder{member("b").On("n1"), member("c").On("n2")}},
		{name: "a member in no domain", object: testkit.PodGroup("gang", 1, zone), waiting: []*testkit.PodBuilder{member("a")}, failure: true,
			placed: []*testkit.PodBuilder{member("b").On("n4")}, want: "cannot determine domain for already scheduled pods: no topology domain found"},
		{name: "a member on a node that isn't known", object: testkit.PodGroup("gang", 1, zone), waiting: []*testkit.PodBuilder{member("a")}, failure: true,
			placed: []*testkit.PodBuilder{member("b").On("n5")}, want: "cannot determine domain for already scheduled pods: no topology domain found"},
		{name: "extenders have a say", object: testkit.PodGroup("gang", 1, ""), waiting: []*testkit.PodBuilder{member("a")}, asks: true,
			want: "an extender filters or scores nodes for pod default/a, and a pod group is placed in one decision, which cannot wait for its answers: limit the extender to other pods (managedResources), or take the pod out of the group"},
	} {
		t.Run(c.name, func(t *testing.T) {
			schema := cluster.NewSchema()
			s := cluster.New(schema)
			for _, n := range []*testkit.NodeBuilder{testkit.Node("n1").Zone("a"), testkit.Node("n2").Zone("a"), testkit.Node("n3").Zone("b"), testkit.Node("n4")} {
				s.SetNode(schema.ParseNode(n.Obj(), ""))
			}
			if c.object != nil {
				s.SetObject(c.object)
			}
			for _, p := range c.placed {
				s.Place(schema.ParsePod(p.Obj()), p.Spec.NodeName)
			}
			g := &podgroups.Group{Key: cluster.PodGroupKey{Namespace: "default", Name: "gang"}, Gated: c.gated, Consults: func(*cluster.Pod) bool { return c.asks }}
			for _, p := range c.waiting {
				g.Waiting = append(g.Waiting, schema.ParsePod(p.Obj()))
			}
			why, failure := podgroups.Hold(g, s)
			if why != c.want || failure != c.failure {
				t.Errorf("got %q, failure %t; want %q, failure %t", why, failure, c.want, c.failure)
			}
		})
	}
}
