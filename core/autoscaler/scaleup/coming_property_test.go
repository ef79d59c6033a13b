package scaleup_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/autoscaler/scaleup"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/internal/test/testkit"
)

// TestPropertyWhatIsComingIsWhatAWalkOverTheNodesFinds has nodes of all ages come, change their group and
// what they report, and go. The reference looks at each node.
func TestPropertyWhatIsComingIsWhatAWalkOverTheNodesFinds(t *testing.T) {
	starting := 0
	rapid.Check(t, func(t *rapid.T) {
		readiness := autoscaler.Readiness{StartupTime: 10 * time.Minute}
		now := time.Unix(100_000, 0)
		s := cluster.New(cluster.NewSchema())
		conditions := map[string]autoscaler.GroupCondition{}
		for _, id := range []string{"a", "b"} {
			g := &cluster.NodeGroup{ID: id, Target: testkit.Uniform(t, 6, "target"), Template: s.Schema.ParseNode(testkit.Node("t").Obj(), id)}
			if testkit.Uniform(t, 2, "own time") == 0 {
				g.Options = &cluster.GroupOptions{StartupTime: &metav1.Duration{Duration: time.Duration(testkit.Uniform(t, 30, "minutes")) * time.Minute}}
			}
			s.SetGroup(id, g)
			conditions[id] = autoscaler.GroupCondition{Gone: map[string]bool{"n0": true, "n3": true}, Deleting: testkit.Uniform(t, 2, "deleting")}
		}
		for range 1 + testkit.Uniform(t, 20, "changes") {
			b := testkit.Node(fmt.Sprint("n", testkit.Uniform(t, 8, "node")))
			if testkit.Uniform(t, 5, "goes") == 0 {
				s.RemoveNode(b.Name)
				continue
			}
			if testkit.Uniform(t, 6, "age") > 0 { // otherwise it doesn't say when it was created
				b.CreationTimestamp.Time = now.Add(-time.Duration(testkit.Uniform(t, 40*60_000, "ms")-60_000) * time.Millisecond)
			}
			n := b.Obj()
			switch testkit.Uniform(t, 4, "what") {
			case 0:
				n.Status.Conditions = []v1.NodeCondition{{Type: v1.NodeReady, Status: v1.ConditionUnknown}}
			case 1:
				n.Spec.Taints = []v1.Taint{{Key: v1.TaintNodeNotReady, Effect: v1.TaintEffectNoSchedule}}
			}
			s.SetNode(s.Schema.ParseNode(n, []string{"a", "b", "", "none"}[testkit.Uniform(t, 4, "group")]))
		}
		got, want := scaleup.Survey(s, conditions, &readiness, now), surveyWalking(s, conditions, &readiness, now)
		if !slices.Equal(slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want))) {
			t.Fatalf("groups are %v, want %v", got, want)
		}
		for id, c := range want {
			if starting += len(c.Starting); got[id].Registered != c.Registered || got[id].Unregistered != c.Unregistered || !slices.Equal(got[id].Starting, c.Starting) {
				t.Fatalf("group %s: what is coming is %+v, want %+v", id, got[id], c)
			}
		}
	})
	if starting == 0 {
		t.Error("no node was starting")
	}
}

// surveyWalking is Survey with a walk over all nodes, without CSI drivers.
func surveyWalking(s *cluster.State, conditions map[string]autoscaler.GroupCondition, readiness *autoscaler.Readiness, now time.Time) map[string]*scaleup.Coming {
	out := map[string]*scaleup.Coming{}
	for _, g := range s.Groups() {
		out[g.ID] = &scaleup.Coming{}
	}
	s.Nodes(func(n *cluster.Node) {
		c := out[n.Group]
		if c == nil || conditions[n.Group].Lost(n.NodeInfo) {
			return
		}
		c.Registered++
		if readiness.Starting(n.NodeInfo, s.Group(n.Group), now) {
			c.Starting = append(c.Starting, n)
		}
	})
	for _, g := range s.Groups() {
		known := conditions[g.ID]
		out[g.ID].Expect(g, &known)
	}
	return out
}
