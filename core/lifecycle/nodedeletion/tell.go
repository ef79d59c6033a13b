package nodedeletion

import (
	"fmt"
	"strings"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/lifecycle"
	"github.com/berthproject/berth/core/step"
)

// This file has events of the status ConfigMap written, with Cluster Autoscaler's reasons and
// words: of a node whose removal begins, and of one that is gone.

func tellBegun(t *lifecycle.Turn, r *autoscaler.Removal) {
	if r.Empty() {
		t.Emit(step.StatusEvent(r.Node, "ScaleDownEmpty", "ScalingDown", fmt.Sprintf("Scale-down: removing empty node %q", r.Node)))
		return
	}
	var pods []string
	for _, h := range r.Homes {
		if p := t.State.PodOn(h.Pod); p != nil {
			pods = append(pods, p.Name())
		}
	}
	t.Emit(step.StatusEvent(r.Node, "ScaleDown", "ScalingDown", fmt.Sprintf("Scale-down: removing node %s, utilization: %.2f, pods to reschedule: %s", r.Node, r.Utilization, strings.Join(pods, ","))))
}

func tellRemoved(t *lifecycle.Turn, node string, drained bool) {
	if drained {
		t.Emit(step.StatusEvent(node, "ScaleDown", "ScalingDown", fmt.Sprintf("Scale-down: node %s removed with drain", node)))
		return
	}
	t.Emit(step.StatusEvent(node, "ScaleDownEmpty", "ScalingDown", fmt.Sprintf("Scale-down: empty node %s removed", node)))
}
