package nodedeletion_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/internal/test/testkit"
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

// TestPropertyNoPodIsHitByADeletionWithoutAnAnswer has a provider that never answers and carries
// deletions out within two minutes of each call, or never, or refuses the second call, while it
// lists its instances and pods come to whatever nodes the state has. No pod is on a node when it
// is deleted, and in the end each node is gone or takes pods again.
func TestPropertyNoPodIsHitByADeletionWithoutAnAnswer(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newAround(t)
		w.lists, w.atomic = true, false
		w.list()
		for _, name := range []string{"n2", "n3", "n4"} { // those that nobody else has marked
			w.join(name)
			w.tell(name)
		}
		for range rapid.IntRange(20, 60).Draw(t, "steps") {
			w.withoutAnswers()
		}
		w.settle()
		for _, line := range w.machine.Unsettled() {
			w.fatalf("%s", line)
		}
		for name := range w.api {
			if w.turn.State.NodeByName(name) == nil {
				w.fatalf("node %s is in the API, and takes no pods", name)
			}
		}
	})
}

// withoutAnswers is something of the property above.
func (w *around) withoutAnswers() {
	name := fmt.Sprint("n", 2+testkit.Uniform(w.t, 3, "node"))
	switch what := testkit.Uniform(w.t, 8, "what"); {
	case what == 0:
		w.plan()
	case what == 1 && w.turn.State.NodeByName(name) != nil:
		w.comes(name, testkit.Pod(fmt.Sprint("p", w.made+1)).On(name).Obj(), false)
	case what <= 3:
		w.list()
	case what <= 5:
		w.wait(time.Duration(testkit.Uniform(w.t, 60, "seconds")) * time.Second)
	default:
		w.oneCall([]luck{lateCall, lateCall, lostCall, fails}[testkit.Uniform(w.t, 4, "luck")])
	}
	w.take()
	for _, name := range slices.Sorted(maps.Keys(w.news)) {
		w.tell(name)
		w.take()
	}
	for _, answer := range w.answers {
		answer()
	}
	w.answers = nil
	w.take()
}
