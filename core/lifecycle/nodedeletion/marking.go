package nodedeletion

// This file says how a node on its way out is marked, and how marks of a process before this
// one are read. What must be true: what is written to the API with a Taint and what the state
// has until the API shows it are the same (step.Taint.Apply).

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/step"
)

// marking is the taint of a node, with what goes with it.
type marking struct {
	taint  v1.Taint // as it is, or was, on the node
	cordon bool     // the node is made unschedulable with the taint
	note   string   // why it goes; "" for a node that isn't noted
}

// readMarking returns the marking that a node carries; ok is false when it has no taint of a
// deletion, or no note. A node that is schedulable isn't cordoned, whatever the note says:
// somebody has uncordoned it since, or has written the note.
func readMarking(node *v1.Node) (_ marking, ok bool) {
	i := taintOf(node)
	note, cordoned, noted := step.ReadNote(node)
	if i < 0 || !noted {
		return marking{}, false
	}
	return marking{taint: node.Spec.Taints[i], cordon: cordoned && node.Spec.Unschedulable, note: cmp.Or(note, "removal")}, true
}

// taintOf returns the index of the taint of a deletion, -1 for none.
func taintOf(node *v1.Node) int {
	return slices.IndexFunc(node.Spec.Taints, func(t v1.Taint) bool { return t.Key == autoscaler.ToBeDeletedTaint })
}

func deletionTaint(now time.Time) v1.Taint {
	return v1.Taint{Key: autoscaler.ToBeDeletedTaint, Value: fmt.Sprint(now.Unix()), Effect: v1.TaintEffectNoSchedule}
}

// put returns the work that marks the node.
func (k *marking) put(node string) step.Taint {
	return step.Taint{Node: node, Taint: k.taint, Cordon: k.cordon, Note: k.note}
}

// takeOff returns the work that unmarks the node.
func (k *marking) takeOff(node string) step.Taint {
	return step.Taint{Node: node, Taint: k.taint, Remove: true, Note: k.note}
}

// on returns the node as it is when it is marked.
func (k *marking) on(info *cluster.NodeInfo) *cluster.NodeInfo {
	return applied(info, k.put(info.Name))
}

// off returns the node as it is when it is unmarked.
func (k *marking) off(info *cluster.NodeInfo) *cluster.NodeInfo {
	return applied(info, k.takeOff(info.Name))
}

// applied returns a copy of a node to which a Taint was written.
func applied(info *cluster.NodeInfo, x step.Taint) *cluster.NodeInfo {
	object := *info.Object
	x.Apply(&object)
	return info.With(&object)
}

// delays reports whether an annotation asks for the node's deletion to wait.
func delays(node *v1.Node) bool {
	for key := range node.Annotations { // in any order
		if strings.HasPrefix(key, cluster.DelayDeletionPrefix) {
			return true
		}
	}
	return false
}
