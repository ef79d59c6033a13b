package sim

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/sim/scenario"
)

// This file is what goes wrong while nodes are drained: the part of the faults that concerns
// nodes with autoscaler.ToBeDeletedTaint, whoever has put it there, and the pods on them.

// draining reports whether the instance's node is on its way out.
func (m *instance) draining() bool {
	return m.node != nil && m.node.hasTaint(autoscaler.ToBeDeletedTaint)
}

// forbidEvictions creates a disruption budget that allows no disruption of a controller's
// pods, and deletes it after a while. Controllers with pods on a node that is being drained
// come first; one whose pods have no labels can't be selected.
func (w *World) forbidEvictions(x *scenario.Fault, pick func(int) int) {
	var all, drained []*controller
	for _, p := range w.sortedPods() {
		c := p.controller
		if p.node == nil || x.Group != "" && p.node.configured() != x.Group || c == nil || c.removed || p.daemon() || len(c.template.Labels) == 0 {
			continue
		}
		if !slices.Contains(all, c) {
			all = append(all, c)
		}
		if p.node.hasTaint(autoscaler.ToBeDeletedTaint) && !slices.Contains(drained, c) {
			drained = append(drained, c)
		}
	}
	if len(drained) > 0 {
		all = drained
	}
	if len(all) == 0 {
		return
	}
	c := all[pick(len(all))]
	b := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: c.key.namespace, Name: fmt.Sprint("forbids-", w.faults.serial)}}
	b.Spec.Selector = &metav1.LabelSelector{MatchLabels: c.template.Labels}
	none := intstr.FromInt32(0)
	b.Spec.MaxUnavailable = &none
	w.create(b)
	w.after(cmp.Or(x.For.Duration, 10*time.Minute), phaseWorld, func() { w.remove(b) })
}

// maxStop is after how long somebody kills a pod that doesn't stop, whatever its grace period.
const maxStop = time.Hour

// timeToStop returns how long a pod needs to end once it is asked to, within its grace period.
func (w *World) timeToStop(p *pod, grace time.Duration) time.Duration {
	group := ""
	if p.node != nil {
		group = p.node.configured()
	}
	if x := w.faults.thatHits(w, scenario.SlowStop, group, string(p.obj.UID)); x != nil {
		return min(grace, maxStop) + x.For.Duration
	}
	return min(w.between(w.run.Spec.Kubelet.Stop, 500, 5000, "stop", string(p.obj.UID)), grace)
}

// stalls reports whether a controller makes no pods now.
func (w *World) stalls(c *controller) bool {
	return w.faults.hits(w, scenario.ControllerStalls, "", c.key.kind, c.key.namespace, c.key.name)
}
