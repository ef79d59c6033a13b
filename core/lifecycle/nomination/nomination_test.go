package nomination_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berthproject/berth/core/lifecycle/nomination"
	"github.com/berthproject/berth/core/queue"
	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/internal/lifecycletest"
	"github.com/berthproject/berth/internal/testkit"
)

var errRefused = errors.New("refused")

// world is a machine with some pods.
type world struct {
	*lifecycletest.Bench
	m    *nomination.Machine
	pods lifecycletest.Pods[nomination.Pod]
}

func newWorld() *world {
	w := &world{Bench: lifecycletest.NewBench(), pods: lifecycletest.Pods[nomination.Pod]{}}
	w.m = nomination.New(w.pods)
	return w
}

// shows has the API show a pod that is nominated to a node.
func (w *world) shows(name, node string) (others bool) {
	obj := testkit.Pod(name).Obj()
	obj.Status.NominatedNodeName = node
	item := w.Queued(obj)
	if w.pods[obj.UID] == nil {
		w.pods[obj.UID] = &nomination.Pod{}
	}
	return w.m.Show(w.Turn, w.pods[obj.UID], item)
}

func (w *world) find(name string) (*nomination.Pod, *queue.Item) {
	uid := types.UID("pod-" + name)
	return w.pods[uid], w.Queue.Get(uid)
}

// decide nominates a pod, "" for no longer.
func (w *world) decide(name, node string) {
	p, item := w.find(name)
	w.State.Nominate(item.Pod(), node)
	w.m.Write(w.Turn, p, item)
}

func (w *world) problems() []string {
	return append(w.m.Invariants(), w.m.InvariantsIn(w.State)...)
}

// TestScripts runs testdata/scripts/*.txt. After each command it prints the work that it
// brings, the pods' states, and when the machine wants to be woken. The commands:
//
//	shows POD [NODE]     the API has the pod, nominated to NODE or not
//	decide POD [NODE]    a decision nominates the pod, or takes its nomination back
//	withdraw POD         a preemptor takes the pod's nomination back
//	place POD NODE       the pod is on a node in the state
//	unplace POD          that node is taken away from it again
//	keep POD             another scheduler's pod found no node
//	done POD [NODE] | failed POD [NODE]    the outcome of a write
//	gone POD
//	tick SECONDS         time passes; Advance
func TestScripts(t *testing.T) {
	datadriven.Walk(t, "testdata/scripts", func(t *testing.T, path string) {
		w := newWorld()
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string { return w.run(t, d) })
	})
}

func (w *world) run(t *testing.T, d *datadriven.TestData) string {
	name, node := d.CmdArgs[0].Key, ""
	if len(d.CmdArgs) > 1 {
		node = d.CmdArgs[1].Key
	}
	p, item := w.find(name)
	uid := types.UID("pod-" + name)
	var out strings.Builder
	switch d.Cmd {
	case "shows":
		if w.shows(name, node) {
			fmt.Fprintln(&out, "somebody else has written that")
		}
	case "decide":
		w.decide(name, node)
	case "withdraw":
		w.m.Withdraw(w.Turn, p, item)
	case "place":
		w.State.Place(item.Pod(), node)
	case "unplace":
		w.State.Remove(uid)
		w.m.Restore(w.Turn, p, item)
	case "keep":
		w.State.Nominate(item.Pod(), "") // for its decision
		w.m.Keep(w.Turn, p, item.Pod())
	case "done":
		w.m.Done(w.Turn, step.NominationDone{UID: uid, Node: node})
	case "failed":
		w.m.Done(w.Turn, step.NominationDone{UID: uid, Node: node, Err: errRefused})
	case "gone":
		w.Queue.Remove(uid)
		w.State.Nominate(item.Pod(), "")
		delete(w.pods, uid)
	case "tick":
		var seconds int
		if _, err := fmt.Sscan(name, &seconds); err != nil {
			d.Fatalf(t, "tick %s: %v", name, err)
		}
		w.Now = w.Now.Add(time.Duration(seconds) * time.Second)
		w.m.Advance(w.Turn)
	default:
		d.Fatalf(t, "unknown command %q", d.Cmd)
	}
	r := w.Take()
	out.WriteString(lifecycletest.Text(&r))
	for uid, p := range w.pods.All() {
		fmt.Fprintf(&out, "%s: %s; in the state %q\n", uid, p.State(), w.State.NominatedTo(uid))
	}
	if at := w.m.NextWake(); !at.IsZero() {
		fmt.Fprintf(&out, "next wake in %s\n", at.Sub(w.Now))
	}
	for _, s := range append(w.m.Unsettled(), w.problems()...) {
		fmt.Fprintln(&out, s)
	}
	return out.String()
}
