package sim

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berthproject/berth/core/autoscalingapi"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/step"
)

// This file is what the API server does with what Berth writes about pods and nodes:
// conditions, nominations, preemptions and taints. Bindings are in pods.go, evictions in
// budgets.go, volumes and claims in volumes.go. Workers call these when a call is served,
// which a fault may prevent.

// condition writes a pod's PodScheduled condition, unless the pod has its node.
func (w *World) condition(x step.Condition) error {
	p := w.pods[x.UID]
	if p == nil || p.ended {
		return fmt.Errorf("pods %q not found", x.Name)
	}
	if p.obj.Spec.NodeName == "" {
		w.changePod(p, func(o *v1.Pod) {
			o.Status.Conditions = []v1.PodCondition{{Type: v1.PodScheduled, Status: v1.ConditionFalse, Reason: x.Reason, Message: x.Message}}
		})
	}
	return nil
}

// preempt writes a victim's condition DisruptionTarget and deletes the pod. A victim that
// is gone or terminating is no error; one of no lower priority than the pod that preempts
// is a violation.
func (w *World) preempt(x step.Preemption) error {
	p, by := w.pods[x.UID], w.pods[x.By]
	if p == nil || p.terminating() {
		return nil
	}
	if by != nil && priority(by) <= priority(p) {
		w.violation("pod %s of priority %d was preempted by pod %s of priority %d", p.name, priority(p), by.name, priority(by))
	}
	w.changePod(p, func(o *v1.Pod) {
		o.Status.Conditions = append(o.Status.Conditions[:len(o.Status.Conditions):len(o.Status.Conditions)],
			v1.PodCondition{Type: v1.DisruptionTarget, Status: v1.ConditionTrue, Reason: v1.PodReasonPreemptionByScheduler, Message: x.Message})
	})
	w.stats.Pods.Preempted++
	w.roomTaken = true
	w.deletePod(p)
	return nil
}

// priority returns a pod's priority, 0 if it has none.
func priority(p *pod) int32 {
	if p.obj.Spec.Priority == nil {
		return 0
	}
	return *p.obj.Spec.Priority
}

// nominate writes a pod's status.nominatedNodeName, unless a call with a higher serial has.
func (w *World) nominate(x step.Nomination, serial int) error {
	p := w.pods[x.UID]
	if p == nil || p.ended {
		return fmt.Errorf("pods %q not found", x.Name)
	}
	if serial < p.nominated {
		return nil
	}
	p.nominated = serial
	w.changePod(p, func(o *v1.Pod) { o.Status.NominatedNodeName = x.Node })
	return nil
}

// writeStatus replaces the status of a CapacityBuffer, the conditions of a ProvisioningRequest, or the
// one condition of a PodGroup that there is.
func (w *World) writeStatus(x step.StatusWrite) error {
	kind := cluster.BufferKind
	switch {
	case x.Request != nil:
		kind = cluster.ProvisioningRequestKind
	case x.PodGroup != nil:
		kind = cluster.PodGroupKind
	}
	switch o := w.objects[objectKey{kind, x.Namespace, x.Name}].(type) {
	case *autoscalingapi.CapacityBuffer:
		changed := *o
		changed.Status = *x.Buffer
		w.storeObject(&changed)
	case *autoscalingapi.ProvisioningRequest:
		changed := *o
		changed.Status = *x.Request
		w.storeObject(&changed)
	case *schedulingv1beta1.PodGroup:
		changed := *o
		changed.Status.Conditions = []metav1.Condition{*x.PodGroup}
		w.storeObject(&changed)
	default:
		return fmt.Errorf("%s/%s not found", x.Namespace, x.Name)
	}
	return nil
}

// taint puts a taint on a node, in the place of one of that key, or takes it off, with the
// node's being schedulable and the note that go with it. A node that is gone has no taint.
func (w *World) taint(x step.Taint) error {
	n := w.nodes[x.Node]
	if n == nil {
		if x.Remove {
			return nil
		}
		return fmt.Errorf("nodes %q not found", x.Node)
	}
	w.checkTaint(n, x)
	w.changeNode(n, x.Apply)
	return nil
}
