package lifecycle

import (
	"slices"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berthproject/berth/core/cluster"
)

// This file and together.go have what machines share that keep room by stand-ins: pods in no
// API that are nominated where others would be bound (headroom and homes). They say what a
// stand-in is like, and which of them may have lost their room since a machine last looked.

// StandInShape returns what the stand-ins of a template's pods are like, but for name, UID and owner.
// They keep what the template says about where its pods may run and what they need. Volumes are left out:
// room is kept on nodes, not in storage. They preempt nobody, and no gate holds them.
func StandInShape(namespace string, template *v1.PodTemplateSpec) *v1.Pod {
	never := v1.PreemptNever
	out := &v1.Pod{ObjectMeta: template.ObjectMeta, Spec: template.Spec} // which nobody changes
	out.Namespace, out.Name, out.UID, out.OwnerReferences = namespace, "", "", nil
	out.DeletionTimestamp = nil
	out.Spec.PreemptionPolicy, out.Spec.NodeName = &never, ""
	out.Spec.SchedulingGates, out.Spec.Volumes, out.Spec.ResourceClaims, out.Spec.SchedulingGroup = nil, nil, nil, nil
	if out.Spec.SchedulerName == "" {
		out.Spec.SchedulerName = v1.DefaultSchedulerName
	}
	return out
}

// StandInOf returns what keeps room for a pod, or for the one that will replace it: it asks for what the
// pod does and keeps away from whom the pod does, without claims. Its UID begins with a prefix, the pod's
// follows.
func StandInOf(pod *cluster.Pod, prefix, name string) *cluster.Pod {
	o := pod.Object
	shape := StandInShape(o.Namespace, &v1.PodTemplateSpec{ObjectMeta: o.ObjectMeta, Spec: o.Spec})
	shape.Name, shape.UID = name, types.UID(prefix)+o.UID
	if ref := metav1.GetControllerOfNoCopy(o); ref != nil { // rules may read it
		shape.OwnerReferences = []metav1.OwnerReference{*ref}
	}
	out := *pod
	out.Object, out.UID, out.StandIn = shape, shape.UID, cluster.HeadroomID(shape.UID)
	out.Claims, out.Problems = nil, nil
	return &out
}

// ClaimLike returns a resource claim that asks for the same as another and is a pod's own.
func ClaimLike(c *resourcev1.ResourceClaim, name string, pod *v1.Pod) *resourcev1.ResourceClaim {
	yes := true
	return &resourcev1.ResourceClaim{Spec: c.Spec, ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: name,
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID, Controller: &yes}}}}
}

// NameOfBrought returns the name of the resource claim that a stand-in brings in place of one of its pod: one that
// the API allows no claim.
func NameOfBrought(standIn *v1.Pod, ref *v1.PodResourceClaim) string {
	return string(standIn.UID) + "/" + ref.Name
}

// RoomWatch remembers up to where a machine has looked at the changes of the state. Its zero
// value has seen none.
type RoomWatch struct{ seen cluster.Seq }

// Skip passes over the changes so far: the machine keeps no room, or has just looked.
func (w *RoomWatch) Skip(s *cluster.State) { w.seen = s.Head() }

// EachEndangered calls look with every pod whose room the changes since the last call or Skip may
// have taken: those nominated to touched nodes, unless the node takes them all (FitTogether),
// and to names of no node when a node went; all nominated pods when the changes aren't known any
// more, of which it tells. Before that it calls change with each change. Both may change the
// state; what they change is for the caller to pass over, or for the next call.
//
// fits reports whether a pod was nominated when it was known to fit beside all that were, and all
// beside it (FitBeside): that alone is no reason to look at a node.
func (w *RoomWatch) EachEndangered(s *cluster.State, scheduler Scheduler, fits func(*cluster.Pod) bool, change func(*cluster.Change), look func(*cluster.Pod)) (known bool) {
	changes, known := s.Since(w.seen)
	if !known { // they were forgotten; any node may have changed
		w.seen = s.Head()
		for _, n := range slices.Clone(s.Nominations()) {
			look(n.Pod)
		}
		return false
	}
	w.seen = s.Head()
	changes = slices.Clone(changes) // what is done here adds to them
	var touched []cluster.NodeIndex
	gone := false
	for i := range changes {
		c := &changes[i]
		if c.Op != cluster.NominationAdded || !fits(c.Pod) {
			touched = append(touched, c.Node)
		}
		gone = gone || c.Op == cluster.NodeRemoved
		change(c)
	}
	slices.Sort(touched)
	for _, i := range slices.Compact(touched) {
		if n := s.Node(i); n != nil && len(n.Nominated) > 0 && !FitTogether(s, scheduler, n) {
			for _, pod := range slices.Backward(slices.Clone(n.Nominated)) {
				look(pod)
			}
		}
	}
	if gone {
		for _, n := range slices.Clone(s.Nominations()) {
			if n.Node == cluster.NoNode {
				look(n.Pod)
			}
		}
	}
	return true
}
