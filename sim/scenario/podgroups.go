package scenario

import (
	v1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/berthproject/berth/core/cluster"
)

// This file is pod groups as workloads have them in short: their form, what is wrong with them, and the
// objects that they stand for.

// PodGroup is a group of pods that are scheduled together, in short. Its priority is the pods'.
type PodGroup struct {
	// MinCount is how many members must have nodes for any to be bound; 0 for the basic policy.
	MinCount int `json:"minCount,omitempty"`
	// Topology is a label that the nodes of all members must have with one value.
	Topology string `json:"topology,omitempty"`
	// Levels are further labels of nodes, outermost first, each required or preferred, in the form of the
	// annotation berth.dev/topology-levels: LABEL=required,LABEL=preferred.
	Levels string `json:"levels,omitempty"`
	// DisruptionMode is single (when absent), or all when members are disrupted only all together.
	DisruptionMode string `json:"disruptionMode,omitempty"`
}

// podGroup checks the pod group of a workload; at is its field.
func (v *validator) podGroup(w *Workload, at string) {
	g := w.PodGroup
	if g == nil {
		return
	}
	if w.Kind == "DaemonSet" {
		v.bad(at, "is set, and the kind is DaemonSet, whose pods have their nodes already; remove one of them")
	}
	if g.MinCount < 0 || g.MinCount > maxCount {
		v.bad(at+".minCount", "is %d; it must be from 0 to %d", g.MinCount, maxCount)
	}
	if g.Levels != "" {
		if _, err := cluster.TopologyLevels(g.withTopology(&schedulingv1beta1.PodGroup{})); err != nil {
			v.bad(at+".levels", "%s", err)
		}
	}
	if m := g.DisruptionMode; m != "" && m != "single" && m != "all" {
		v.bad(at+".disruptionMode", "is %q; it must be single or all", m)
	}
	if w.Template.Spec.SchedulingGroup != nil {
		v.bad(at, "is set, and so is template.spec.schedulingGroup; remove one of them")
	}
}

// podGroup returns the PodGroup of a copy, and makes its pods members; nil when they have none.
func (w *Workload) podGroup(meta metav1.ObjectMeta, pod *v1.PodSpec) *schedulingv1beta1.PodGroup {
	if w.PodGroup == nil {
		return nil
	}
	pod.SchedulingGroup = &v1.PodSchedulingGroup{PodGroupName: ptr.To(meta.Name)}
	g := &schedulingv1beta1.PodGroup{ObjectMeta: *meta.DeepCopy(), Spec: schedulingv1beta1.PodGroupSpec{Priority: pod.Priority}}
	if n := w.PodGroup.MinCount; n > 0 {
		g.Spec.SchedulingPolicy.Gang = &schedulingv1beta1.GangSchedulingPolicy{MinCount: int32(n)} //nolint:gosec // at most maxCount
	} else {
		g.Spec.SchedulingPolicy.Basic = &schedulingv1beta1.BasicSchedulingPolicy{}
	}
	w.PodGroup.withTopology(g)
	if w.PodGroup.DisruptionMode == "all" {
		g.Spec.DisruptionMode = &schedulingv1beta1.DisruptionMode{All: &schedulingv1beta1.AllDisruptionMode{}}
	}
	return g
}

// withTopology puts the group's topology and its further levels into an object, and returns that.
func (g *PodGroup) withTopology(object *schedulingv1beta1.PodGroup) *schedulingv1beta1.PodGroup {
	if g.Topology != "" {
		object.Spec.SchedulingConstraints = &schedulingv1beta1.PodGroupSchedulingConstraints{Topology: []schedulingv1beta1.TopologyConstraint{{Key: g.Topology}}}
	}
	if g.Levels != "" {
		metav1.SetMetaDataAnnotation(&object.ObjectMeta, cluster.TopologyLevelsAnnotation, g.Levels)
	}
	return object
}
