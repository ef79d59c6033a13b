package sim

import (
	"cmp"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/berthproject/berth/sim/scenario"
)

// spotTaint is what the termination handler puts on a node that the cloud is about to take.
const spotTaint = "aws-node-termination-handler/spot-itn"

// warnOfReclaim has a termination handler taint a node, and the cloud take its instance later. A node that
// Berth has removed by then is gone already.
func (w *World) warnOfReclaim(x *scenario.Fault, pick func(int) int) {
	list := slices.DeleteFunc(w.sortedNodes(), func(n *node) bool {
		return n.instance == nil || x.Group != "" && n.configured() != x.Group || n.lingers || n.hasTaint(spotTaint) || n.instance.draining()
	})
	if len(list) == 0 {
		return
	}
	n := list[pick(len(list))]
	w.changeNode(n, func(o *v1.Node) {
		o.Spec.Taints = append(slices.Clip(o.Spec.Taints), v1.Taint{Key: spotTaint, Effect: v1.TaintEffectNoSchedule})
	})
	w.after(cmp.Or(x.For.Duration, 2*time.Minute), phaseWorld, func() {
		if m := n.instance; !n.dead && m.node == n && slices.Contains(m.group.instances, m) {
			m.group.lastReclaim = w.now
			w.terminate(m, false)
		}
	})
}
