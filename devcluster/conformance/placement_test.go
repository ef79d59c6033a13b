package conformance_test

import (
	"fmt"
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/feature"
	upstreamresources "k8s.io/kubernetes/pkg/scheduler/framework/plugins/noderesources"
	"pgregory.net/rapid"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/compat"
	"github.com/berthproject/berth/core/plugins"
	"github.com/berthproject/berth/core/plugins/noderesources"
	"github.com/berthproject/berth/internal/test/testkit"
)

// assigned is a member that would go to some node of a placement.
type assigned struct {
	fwk.ProposedAssignment
	pod *v1.Pod
}

// GetPod implements fwk.ProposedAssignment: it is all that the plugin asks for.
func (a assigned) GetPod() *v1.Pod { return a.pod }

// TestPropertyPlacementScores: NodeResourcesFit scores the nodes of a topology domain for the members of a pod group
// as kube-scheduler's does with TopologyAwareWorkloadScheduling, for random nodes, pods there, members and resources
// that count.
func TestPropertyPlacementScores(t *testing.T) {
	scores := map[int64]bool{}
	rapid.Check(t, func(rt *rapid.T) {
		c := randomCluster(rt)
		dropDevices(c) // kube-scheduler counts no devices here
		var members []*v1.Pod
		for i := range 1 + testkit.Uniform(rt, 4, "members") {
			members = append(members, incoming(rt, fmt.Sprint("m", i)))
		}
		counts := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"cpu", "memory", "ephemeral-storage", "example.com/gpu"}), 1, 3, rapid.ID[string]).Draw(rt, "resources")
		var ours noderesources.FitArgs
		strategy := &config.ScoringStrategy{Type: config.LeastAllocated}
		for _, name := range counts {
			weight := rapid.Int64Range(1, 5).Draw(rt, "weight")
			ours.Resources = append(ours.Resources, noderesources.ResourceWeight{Name: v1.ResourceName(name), Weight: weight})
			strategy.Resources = append(strategy.Resources, config.ResourceSpec{Name: name, Weight: weight})
		}

		plugin, err := upstreamresources.NewFit(t.Context(), &config.NodeResourcesFitArgs{ScoringStrategy: strategy}, nil,
			feature.Features{EnablePodLevelResources: true, EnableInPlacePodVerticalScaling: true, EnableTopologyAwareWorkloadScheduling: true})
		if err != nil {
			rt.Fatal(err)
		}
		placement := &fwk.PodGroupAssignments{Placement: &fwk.Placement{}}
		for _, n := range c.Nodes {
			info := framework.NewNodeInfo(slices.DeleteFunc(slices.Clone(c.Pods), func(p *v1.Pod) bool { return p.Spec.NodeName != n.Name })...)
			info.SetNode(n)
			placement.Nodes = append(placement.Nodes, info)
		}
		s, _ := stateOf(compat.V37, c, plugins.Options{})
		var parsed []*cluster.Pod
		for _, p := range members {
			placement.ProposedAssignments = append(placement.ProposedAssignments, assigned{pod: p})
			parsed = append(parsed, s.Schema.ParsePod(p))
		}
		want, status := plugin.(fwk.PlacementScorePlugin).ScorePlacement(t.Context(), nil, nil, placement)
		if !status.IsSuccess() {
			rt.Fatal(status.AsError())
		}
		var nodes []cluster.NodeIndex
		s.Nodes(func(n *cluster.Node) { nodes = append(nodes, n.Index) })
		if got := noderesources.NewFit(ours).Placement(parsed).ScoreNodes(s, nodes); got != want {
			rt.Fatalf("the score is %d, and kube-scheduler's %d", got, want)
		}
		scores[want] = true
	})
	if len(scores) < 10 {
		t.Errorf("kube-scheduler gave only the scores %v", scores)
	}
}
