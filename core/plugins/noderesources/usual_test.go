package noderesources_test

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/framework"
	"github.com/berthproject/berth/core/plugins/noderesources"
	"github.com/berthproject/berth/internal/test/testkit"
)

// TestPropertyManyNodesScoreAsOneByOne gives both rules nodes and pods of all sizes up to beyond what
// is taken as it is, free ones, full ones and some that have promised more than they have: EvalNodes
// says what EvalNode says, to the last bit.
func TestPropertyManyNodesScoreAsOneByOne(t *testing.T) {
	schema := cluster.NewSchema()
	rapid.Check(t, func(t *rapid.T) {
		amount := func(label string) string {
			switch limit := rapid.IntRange(0, 62).Draw(t, label+", bits"); limit {
			case 0:
				return "0"
			default:
				return fmt.Sprint(rapid.Int64Range(1, 1<<limit).Draw(t, label))
			}
		}
		requests := func(p *testkit.PodBuilder) *cluster.Pod {
			for _, name := range []string{"cpu", "memory", "ephemeral-storage"} {
				if rapid.IntRange(0, 2).Draw(t, "requests "+name) > 0 && (name != "ephemeral-storage" || rapid.Bool().Draw(t, "also "+name)) {
					q := amount(name)
					if name == "cpu" {
						q += "m"
					}
					p.Req(name, q)
				}
			}
			return schema.ParsePod(p.Obj())
		}
		var nodes []*cluster.Node
		for i := range rapid.IntRange(1, 8).Draw(t, "nodes") {
			n := cluster.DetachedNode(schema.ParseNode(testkit.Node(fmt.Sprint("n", i)).Alloc("cpu", amount("CPU of a node")+"m", "memory", amount("memory of a node"), "pods", "3").Obj(), ""))
			for k := range rapid.IntRange(0, 3).Draw(t, "pods") {
				n.Add(requests(testkit.Pod(fmt.Sprint("on-", i, "-", k))))
			}
			nodes = append(nodes, n)
		}
		p := requests(testkit.Pod("subject"))
		for _, plugin := range []framework.Plugin{noderesources.NewFit(noderesources.FitArgs{}), noderesources.NewBalanced(nil)} {
			rules, _ := plugin.For(p, nil)
			if rules.Local == nil {
				continue // the pod requests neither
			}
			scores, rejected := make([]int32, len(nodes)), make([]bool, len(nodes))
			rules.Local.(framework.ManyNodesRule).EvalNodes(nodes, 2, scores, rejected)
			for i, n := range nodes {
				code, score := rules.Local.EvalNode(n)
				if rejected[i] != (code != framework.OK) || !rejected[i] && int64(scores[i]) != 2*score {
					t.Fatalf("%s: %s with %v of %v and NonZero %v, pod %v: rejected %t with twice the score %d; alone code %d with score %d",
						plugin.Name(), n.Name, n.Requested, n.Allocatable, n.NonZero, p.Request, rejected[i], scores[i], code, score)
				}
			}
		}
	})
}
