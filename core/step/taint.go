package step

import (
	"maps"
	"strings"

	v1 "k8s.io/api/core/v1"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/cluster"
)

// cordonedNote begins the note of a node that the write of the note has made unschedulable.
const cordonedNote = "cordoned; "

// ReadNote returns the note that a node carries, as a Taint had it, and whether the write of
// the note has made the node unschedulable; noted is false when it carries none.
func ReadNote(n *v1.Node) (note string, cordoned, noted bool) {
	note, noted = n.Annotations[autoscaler.RemovalNote]
	note, cordoned = strings.CutPrefix(note, cordonedNote)
	return note, cordoned, noted
}

// Apply makes of a Node object what the Taint asks for: what an API server is to be sent in
// one write. Whether a node was unschedulable before is known then, and only then; the note
// remembers it, so that the removal of the taint, by whatever process, doesn't make a node
// schedulable that Berth hasn't cordoned. Maps and slices of the object are replaced, not
// changed.
//
// A node that becomes schedulable again loses the taint, too, that the node controller puts on
// nodes which aren't: pods may come at once, not when the controller has seen it.
func (x *Taint) Apply(n *v1.Node) {
	n.Spec.Taints = cluster.TaintsWithout(n.Spec.Taints, x.Taint.Key)
	if !x.Remove {
		n.Spec.Taints = append(n.Spec.Taints, x.Taint)
	}
	if x.Note == "" {
		return
	}
	_, cordoned, _ := ReadNote(n)
	n.Annotations = maps.Clone(n.Annotations)
	if x.Remove {
		delete(n.Annotations, autoscaler.RemovalNote)
		if cordoned {
			n.Spec.Unschedulable = false
			n.Spec.Taints = cluster.TaintsWithout(n.Spec.Taints, v1.TaintNodeUnschedulable)
		}
		return
	}
	if n.Annotations == nil {
		n.Annotations = map[string]string{}
	}
	note := x.Note
	if x.Cordon && (cordoned || !n.Spec.Unschedulable) {
		n.Spec.Unschedulable = true
		note = cordonedNote + note
	}
	n.Annotations[autoscaler.RemovalNote] = note
}
