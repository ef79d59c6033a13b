package scaleup

import (
	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/engine"
)

// recall has nodes on their way out stay in the state, as they would be without the removal, if
// they take pods that are left, and returns those left over. They are asked one after the other,
// so that as few stay as the pods need: all at a time, the pods would be spread over all of them.
// A plan that has taken long enough by then ends once a node is recalled.
func (b *builder) recall(left []*run) []*run {
	for _, x := range b.req.Recallable {
		if len(left) == 0 {
			break
		}
		if b.over(autoscaler.WholePlan) {
			b.patience.ended = len(b.plan.Recalls) > 0 // otherwise it buys a node at least
			break
		}
		leaving := b.State.NodeByName(x.Node)
		if leaving == nil {
			continue
		}
		as := leaving.NodeInfo
		at := b.State.SetNode(x.Stays())
		recall := autoscaler.Recall{Node: x.Node}
		left = b.placeAnd(left, func(pod *cluster.Pod, c engine.Choice) {
			if c.Node == at {
				recall.Pods = append(recall.Pods, pod.UID)
			}
		})
		if recall.Pods == nil {
			b.State.SetNode(as)
			continue
		}
		b.plan.Recalls = append(b.plan.Recalls, recall)
	}
	return left
}
