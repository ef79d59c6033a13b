package noderesources_test

import (
	"testing"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/plugins/noderesources"
	"github.com/berthproject/berth/internal/test/testkit"
)

// TestScoreNodes has two nodes scored together for two members.
func TestScoreNodes(t *testing.T) {
	const gpu = "example.com/gpu"
	node := func(name, gpus string) *testkit.NodeBuilder {
		return testkit.Node(name).Alloc("cpu", "4", "memory", "8Gi", gpu, gpus)
	}
	byGPU := noderesources.FitArgs{Resources: []noderesources.ResourceWeight{{Name: "cpu", Weight: 1}, {Name: gpu, Weight: 3}}}
	for _, c := range []struct {
		name   string
		args   noderesources.FitArgs
		nodes  []*testkit.NodeBuilder
		placed []*testkit.PodBuilder
		member *testkit.PodBuilder
		want   int64
	}{
		{"what the members request of all nodes", noderesources.FitArgs{}, []*testkit.NodeBuilder{node("a", "0"), node("b", "0")}, nil,
			testkit.Pod("m").Req("cpu", "1", "memory", "4Gi"), (25 + 50) / 2},
		{"with what is requested there", noderesources.FitArgs{}, []*testkit.NodeBuilder{node("a", "0"), node("b", "0")}, []*testkit.PodBuilder{testkit.Pod("x").Req("cpu", "2", "memory", "8Gi").On("b")},
			testkit.Pod("m").Req("cpu", "1", "memory", "2Gi"), (50 + 75) / 2},
		{"the fullest is the best under LeastAllocated, too", noderesources.FitArgs{Strategy: noderesources.LeastAllocated}, []*testkit.NodeBuilder{node("a", "0")}, nil,
			testkit.Pod("m").Req("cpu", "2", "memory", "4Gi"), 100},
		{"more than there is counts as all", noderesources.FitArgs{}, []*testkit.NodeBuilder{node("a", "0")}, nil, testkit.Pod("m").Req("cpu", "8", "memory", "4Gi"), 100},
		{"an extended resource that members request", byGPU, []*testkit.NodeBuilder{node("a", "4"), node("b", "0")}, nil, testkit.Pod("m").Req("cpu", "2", gpu, "1"), (50 + 3*50) / 4},
		{"one that they don't", byGPU, []*testkit.NodeBuilder{node("a", "4"), node("b", "0")}, nil, testkit.Pod("m").Req("cpu", "2"), 50},
		{"no resource that counts", noderesources.FitArgs{}, []*testkit.NodeBuilder{testkit.Node("a")}, nil, testkit.Pod("m"), 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			schema := cluster.NewSchema()
			s := cluster.New(schema)
			var nodes []cluster.NodeIndex
			for _, n := range c.nodes {
				s.SetNode(schema.ParseNode(n.Obj(), ""))
				nodes = append(nodes, s.NodeByName(n.Obj().Name).Index)
			}
			for _, p := range c.placed {
				s.Place(schema.ParsePod(p.Obj()), p.Spec.NodeName)
			}
			member := schema.ParsePod(c.member.Obj())
			if got := noderesources.NewFit(c.args).Placement([]*cluster.Pod{member, member}).ScoreNodes(s, nodes); got != c.want {
				t.Errorf("the score is %d, want %d", got, c.want)
			}
		})
	}
}
