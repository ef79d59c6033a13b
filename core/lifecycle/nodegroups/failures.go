package nodegroups

import (
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"

	"github.com/berthproject/berth/core/autoscaler/nodegroup"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/lifecycle"
	"github.com/berthproject/berth/core/step"
)

// This file tells of orders and of nodes that didn't come: failures for metrics, and events of
// the status ConfigMap with Cluster Autoscaler's reasons and words. Nothing is decided here.

// scalingUp is the action of these events.
const scalingUp = "ScalingUp"

// failed has a failure of so many nodes of a group be counted. Those of one Step, group and code
// are one failure.
func failed(t *lifecycle.Turn, group string, nodes int, code, why string) {
	i := len(t.Ready.ScaleUpFailures) - 1 // those of a group follow each other
	for i >= 0 && (t.Ready.ScaleUpFailures[i].Group != group || t.Ready.ScaleUpFailures[i].Code != code) {
		i--
	}
	if i < 0 {
		i = len(t.Ready.ScaleUpFailures)
		t.Ready.ScaleUpFailures = append(t.Ready.ScaleUpFailures, step.ScaleUpFailure{Group: group, Code: code, Why: why, GPU: gpuOf(t.State, group)})
	}
	t.Ready.ScaleUpFailures[i].Nodes += nodes
}

// gpuOf returns the resource of the GPUs of a group's nodes, "" when they have none.
func gpuOf(state *cluster.State, group string) v1.ResourceName {
	if g := state.Group(group); g != nil && g.Template != nil {
		return cluster.GPUOf(&g.Template.Allocatable)
	}
	return ""
}

// answered returns the oldest order of so many nodes that has had no answer, which it has now;
// known is false when there is none.
func (g *group) answered(nodes int) (order Growth, known bool) {
	i := slices.IndexFunc(g.orders, func(o Growth) bool { return o.To-o.From == nodes })
	if i < 0 {
		return Growth{}, false
	}
	order = g.orders[i]
	g.orders = slices.Delete(g.orders, i, i+1)
	return order, true
}

// tellFailures has events written of instances that didn't become nodes.
func (m *Machine) tellFailures(t *lifecycle.Turn, failures []step.ScaleUpFailure) {
	if m.cfg.ReadOnly {
		return
	}
	for _, f := range failures {
		e := step.StatusEvent(f.Group, "ScaleUpFailed", scalingUp, fmt.Sprintf("Failed adding %d nodes to group %s due to %s; source errors: %s", f.Nodes, f.Group, f.Code, f.Why))
		if f.Code == nodegroup.CodeTimeout {
			e.Reason, e.Message = "ScaleUpTimedOut", fmt.Sprintf("Nodes added to group %s failed to register within %s", f.Group, m.ProvisionTime(t.State.Group(f.Group)))
		}
		t.Emit(e.AsWarning())
	}
}

// tellLateRemoved emits an event about the outcome of removing an instance that has had its
// time to become a node.
func tellLateRemoved(t *lifecycle.Turn, name string, err error) {
	if err != nil {
		t.Emit(step.StatusEvent(name, "DeleteUnregisteredFailed", "ScalingDown", fmt.Sprintf("Failed to remove node %s: %v", name, err)).AsWarning())
		return
	}
	t.Emit(step.StatusEvent(name, "DeleteUnregistered", "ScalingDown", "Removed unregistered node "+name))
}
