package nodedeletion_test

import (
	"fmt"
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/cluster"
)

// TestPropertyOutcomesInAnyOrderLeaveNothingBehind has taints, evictions, surges and deletions
// answered late, in any order, wrongly or not at all, while nodes and pods come and go, and
// the process crashes, and nodes are recalled. No node is deleted with a pod on it that wasn't
// evicted, nor one that somebody else has tainted; none is recalled that a pod has left for its
// removal. Once all is answered no node is on its way out, none has Berth's
// taint, cordon or note, those are unschedulable that were before, and the state has the nodes
// that the API has.
func TestPropertyOutcomesInAnyOrderLeaveNothingBehind(t *testing.T) {
	recalls := 0
	rapid.Check(t, func(t *rapid.T) {
		w := newAround(t)
		w.recalls = &recalls
		w.list()
		for i := range nodes {
			w.join(fmt.Sprint("n", i))
		}
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			w.something()
		}
		w.settle()
		for _, line := range w.machine.Unsettled() {
			w.fatalf("%s", line)
		}
		if n, m := w.machine.Planned("g"), w.machine.Unanswered("g"); n != 0 || m != 0 {
			w.fatalf("%d deletions are planned and %d unanswered, want none", n, m)
		}
		state := map[string]bool{}
		w.turn.State.Nodes(func(n *cluster.Node) {
			state[n.Name] = true
			w.checkClean(n.Object, "the state")
		})
		for name, n := range w.api {
			if !state[name] {
				w.fatalf("node %s is in the API, and not in the state", name)
			}
			w.checkClean(n, "the API")
		}
		if len(state) != len(w.api) {
			w.fatalf("the state has nodes %v, the API has %d", state, len(w.api))
		}
	})
	if recalls == 0 {
		t.Error("no node was recalled in any history")
	}
}

// checkClean fails if a node carries anything of Berth's, or has lost what it had before.
func (w *around) checkClean(n *v1.Node, where string) {
	_, cordoned := n.Labels[cordonLabel]
	_, noted := n.Annotations[autoscaler.RemovalNote]
	others := slices.DeleteFunc(slices.Clone(n.Spec.Taints), func(t v1.Taint) bool { return cordoned && isControllers(t) })
	if len(others) > 0 && !isForeign(n) || noted || n.Spec.Unschedulable != cordoned {
		w.fatalf("node %s has taints %v, unschedulable %t, noted %t in %s; want unschedulable %t", n.Name, n.Spec.Taints, n.Spec.Unschedulable, noted, where, cordoned)
	}
}
