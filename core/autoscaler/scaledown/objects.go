package scaledown

import (
	"slices"

	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berthproject/berth/core/cluster"
)

// This file has what moves change of objects: a pod that leaves its node gives its devices back, and
// takes others at its home. Each candidate knows how the objects were before (candidate.was), and undoing
// it restores them. That is right as long as nobody else has anything to do with them. Of devices that
// one node alone can use, and of a claim that was made for one pod, nobody has. Candidates with others
// are entangled: what one has given back another may have taken, or both have pods that share a claim.
// They are undone all together, the last one first, and never kept from one pass to the next: pods that
// are placed before candidates would otherwise count on what these gave back.

// entangled reports whether pods elsewhere may use what the pods of a candidate have given back or taken.
func (s *Simulator) entangled(c *candidate) (is bool) {
	c.was.Each(func(x *cluster.ObjectChange) {
		one := x.New
		if one == nil {
			one = x.Old
		}
		is = is || !s.ownDevices(x.Old) || !s.ownDevices(s.world.Object(x.Kind(), one.GetNamespace(), one.GetName()))
	})
	return is
}

// ownDevices reports whether an object is a claim of one pod with devices of one node, or none.
func (s *Simulator) ownDevices(o cluster.Object) bool {
	if o == nil {
		return true
	}
	c, ok := o.(*resourcev1.ResourceClaim)
	return ok && metav1.GetControllerOfNoCopy(c) != nil && len(c.Status.ReservedFor) <= 1 && s.world.Devices().OfOneNode(c)
}

// undoEntangled undoes the candidates that are entangled.
func (s *Simulator) undoEntangled() {
	are := slices.DeleteFunc(slices.Clone(s.candidates), func(c *candidate) bool { return !s.entangled(c) })
	for _, c := range slices.Backward(are) {
		s.undoOne(c)
	}
}

// undoChanged undoes the candidates whose pods have given back or taken something of objects that have
// changed in the primary, or whose pods are concerned by them.
func (s *Simulator) undoChanged(changes []cluster.Change) {
	var objects []*cluster.ObjectChange
	for i := range changes {
		if o := changes[i].Object; o != nil {
			objects = append(objects, o)
		}
	}
	if len(objects) == 0 {
		return
	}
	concerned := s.sched.Reclassifies(changes)
	for _, c := range slices.Clone(s.candidates) {
		takes := concerned != nil && slices.ContainsFunc(c.homes, func(h home) bool { return s.world.TakesObjects(h.pod) && concerned(h.pod) })
		if takes || slices.ContainsFunc(objects, c.was.Has) {
			s.undo(c)
		}
	}
}
