package expectation_test

import (
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/lifecycle"
	"github.com/berthproject/berth/core/lifecycle/expectation"
	"github.com/berthproject/berth/core/queue"
	"github.com/berthproject/berth/internal/test/lifecycletest"
	"github.com/berthproject/berth/internal/test/testkit"
)

// world is a machine with a node and some pods.
type world struct {
	*lifecycletest.Bench
	m    *expectation.Machine
	pods lifecycletest.Pods[expectation.Pod]
	kept []types.UID // pods whose nominations were kept
}

func newWorld() *world {
	w := &world{Bench: lifecycletest.NewBench(), pods: lifecycletest.Pods[expectation.Pod]{}}
	w.m = expectation.New(w.pods, w)
	w.Node(testkit.Node("n").Alloc("cpu", "4").Obj())
	return w
}

// RenominateFor implements expectation.Nominations.
func (w *world) RenominateFor(_ *lifecycle.Turn, pod *cluster.Pod) { w.kept = append(w.kept, pod.UID) }

// expect has a decision place a pod on a node.
func (w *world) expect(name, node string) *expectation.Pod {
	item := w.Queued(testkit.Pod(name).Obj())
	w.PopOnly(item)
	uid := item.Pod().UID
	if w.pods[uid] == nil {
		w.pods[uid] = &expectation.Pod{}
	}
	w.State.Place(item.Pod(), node)
	w.m.Expect(w.Turn, w.pods[uid], item, node)
	return w.pods[uid]
}

func TestAnExpectationIsInTheLedgerUntilItChanges(t *testing.T) {
	w := newWorld()
	for i, c := range []struct {
		node string
		want int // decisions
	}{{"n", 1}, {"n", 0}, {"other", 1}, {"n", 1}} {
		p := w.expect("a", c.node)
		r := w.Flush()
		if got := len(r.Decisions); got != c.want {
			t.Errorf("expectation %d, of node %s: %d decisions, want %d", i, c.node, got, c.want)
		}
		if p.Node() != c.node {
			t.Errorf("expectation %d: the pod is expected on %q, want %q", i, p.Node(), c.node)
		}
		w.m.TakeBack(w.Turn, 0)
		if p.Node() != "" {
			t.Errorf("taken back, the pod is expected on %q", p.Node())
		}
	}
}

func TestTakeBackLeavesWhatIsFresh(t *testing.T) {
	w := newWorld()
	old := w.expect("old", "n")
	w.Now = w.Now.Add(9 * time.Second)
	fresh := w.expect("fresh", "n")
	w.Now = w.Now.Add(time.Second)
	changed := w.State.Schema.ParsePod(testkit.Pod("old").Label("changed", "yes").Obj())
	old.Update(changed)
	w.m.TakeBack(w.Turn, 10*time.Second)
	if old.Node() != "" || fresh.Node() != "n" {
		t.Errorf("the old pod is expected on %q, the fresh one on %q, want none and n", old.Node(), fresh.Node())
	}
	item := w.Queue.Get("pod-old")
	if item.Stage() != queue.Active || item.Pod() != changed {
		t.Errorf("the old pod is %s, as last shown: %t; want it active so that it is tried anew", item.Stage(), item.Pod() == changed)
	}
	if got := w.State.NodeOf("pod-old"); got != nil {
		t.Errorf("the old pod takes room on %s", got.Name)
	}
	if fmt.Sprint(w.kept) != "[pod-old]" {
		t.Errorf("the nominations of %v are kept, want those of the old pod", w.kept)
	}
}

// TestPropertyOutcomesLeaveNothingBehind expects pods, and has some shown, some deleted and
// some taken back: in the end nothing is expected.
func TestPropertyOutcomesLeaveNothingBehind(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld()
		for k := range rapid.IntRange(1, 20).Draw(t, "events") {
			switch rapid.IntRange(0, 3).Draw(t, "event") {
			case 0, 1:
				w.expect(fmt.Sprint("p", k), rapid.SampledFrom([]string{"n", "gone"}).Draw(t, "node"))
			case 2: // shown or deleted: the core forgets it
				for uid := range w.pods.All() {
					w.State.Remove(uid)
					w.Queue.Remove(uid)
					delete(w.pods, uid)
					break
				}
			case 3:
				w.m.TakeBack(w.Turn, time.Duration(rapid.IntRange(0, 5).Draw(t, "age"))*time.Second)
			}
			w.Now = w.Now.Add(time.Second)
			if broken := w.m.Invariants(); broken != nil {
				t.Fatalf("broken invariants: %q", broken)
			}
		}
		w.m.TakeBack(w.Turn, 0)
		if left := w.m.Unsettled(); left != nil {
			t.Errorf("left behind: %q", left)
		}
		for uid := range w.pods.All() {
			if _, placed := w.State.Placed(uid); placed {
				t.Errorf("%s is placed in the end", uid)
			}
		}
	})
}
