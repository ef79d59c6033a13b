package nomination_test

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/berthproject/berth/core/lifecycle/nomination"
	"github.com/berthproject/berth/core/queue"
	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/internal/test/lifecycletest"
	"github.com/berthproject/berth/internal/test/testkit"
	"github.com/berthproject/berth/internal/test/testkit/script"
)

var errRefused = errors.New("refused")

// world is a machine with some pods.
type world struct {
	*lifecycletest.Bench
	m      *nomination.Machine
	pods   lifecycletest.Pods[nomination.Pod]
	states script.States
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
	return w.m.Show(w.Turn, w.pods[obj.UID], item, node)
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
// brings, and what it changed: the pods' states, and when the machine wants to be woken. The
// commands:
//
//	shows POD [node=n]     the API has the pod, nominated to a node or not
//	decide POD [node=n]    a decision nominates the pod, or takes its nomination back
//	withdraw POD           a preemptor takes the pod's nomination back
//	place POD node=n       the pod is on a node in the state
//	expect POD node=n      the same, and it takes a while until it is bound there
//	unplace POD            that node is taken away from it again
//	keep POD               another scheduler's pod found no node
//	done POD [node=n] | failed POD [node=n]    the outcome of a write
//	gone POD
//	tick DURATION          time passes; Advance
func TestScripts(t *testing.T) {
	datadriven.Walk(t, "testdata/scripts", func(t *testing.T, path string) {
		w := newWorld()
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string { return w.run(t, d) })
	})
}

func (w *world) run(t *testing.T, d *datadriven.TestData) string {
	args := script.NewArgs(t, d)
	name := args.Name()
	node := args.String("node", "")
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
	case "expect":
		w.State.Place(item.Pod(), node)
		w.m.Expect(w.Turn, item.Pod(), node)
	case "unplace":
		w.State.Remove(uid)
		w.m.Restore(w.Turn, p, item)
	case "keep":
		w.State.Nominate(item.Pod(), "") // for its decision
		w.m.Renominate(w.Turn, p, item.Pod())
	case "done":
		w.m.NominationDone(w.Turn, step.NominationDone{UID: uid, Node: node})
	case "failed":
		w.m.NominationDone(w.Turn, step.NominationDone{UID: uid, Node: node, Err: errRefused})
	case "gone":
		w.Queue.Remove(uid)
		w.State.Nominate(item.Pod(), "")
		delete(w.pods, uid)
	case "tick":
		if err := w.Pass(name); err != nil {
			d.Fatalf(t, "%v", err)
		}
		w.m.Advance(w.Turn)
	default:
		d.Fatalf(t, "unknown command %q", d.Cmd)
	}
	args.Done()
	r := w.Flush()
	out.WriteString(lifecycletest.Text(&r))
	var states []string
	for uid, p := range w.pods.All() {
		states = append(states, fmt.Sprintf("%s: %s; in the state %q", uid, p.State(), w.State.NominatedTo(uid)))
	}
	states = append(states, w.m.Unsettled()...)
	out.WriteString(w.states.Text(states, w.Now, w.m.NextWake()))
	for _, s := range w.problems() {
		fmt.Fprintln(&out, s)
	}
	return cmp.Or(out.String(), "nothing\n")
}

// TestPropertyTheAPIEndsWithWhatWasDecided decides at random, has writes succeed, fail,
// or fail after the API server has done them, and shows late what the API has; the
// outcome of a write is known before the next decision. Once writes work, the API has for
// each pod what was decided last, and nothing is held on to.
func TestPropertyTheAPIEndsWithWhatWasDecided(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld()
		api := map[string][]string{} // what the API has had and not shown yet, by pod; the first is shown
		decided := map[string]string{}
		show := func(name string) {
			if h := api[name]; len(h) > 1 {
				api[name] = h[1:]
				if w.shows(name, h[1]) {
					t.Fatalf("%s: the API shows %q, which was decided here, and it was taken for somebody else's", name, h[1])
				}
			}
		}
		// step has time pass, and what is asked for written; with failures, one write in
		// three is refused, and the answer of one in three is lost.
		step := func(wait time.Duration, failures bool) {
			w.Now = w.Now.Add(wait)
			w.m.Advance(w.Turn)
			r := w.Flush()
			for _, n := range r.Nominations {
				outcome := step.NominationDone{UID: n.UID, Node: n.Node}
				refused := false
				if failures {
					switch rapid.IntRange(0, 2).Draw(t, "outcome") {
					case 1:
						outcome.Err, refused = errRefused, true
					case 2:
						outcome.Err = errors.New("the answer was lost")
					}
				}
				if h := api[n.Name]; !refused && h[len(h)-1] != n.Node {
					api[n.Name] = append(h, n.Node)
				}
				w.m.NominationDone(w.Turn, outcome)
			}
			for _, problem := range w.problems() {
				t.Fatal(problem)
			}
		}
		names := []string{"a", "b"}
		for _, name := range names {
			api[name] = []string{""}
			w.shows(name, "")
		}
		for range rapid.IntRange(0, 40).Draw(t, "events") {
			name := rapid.SampledFrom(names).Draw(t, "pod")
			if rapid.Bool().Draw(t, "shows") {
				show(name)
			} else {
				decided[name] = rapid.SampledFrom([]string{"", "x", "y"}).Draw(t, "node")
				w.decide(name, decided[name])
			}
			step(time.Duration(rapid.IntRange(0, 3).Draw(t, "seconds"))*time.Second, true)
		}
		for range 3 { // what is shown may have to be written anew
			step(5*time.Second, false)
			for _, name := range names {
				for len(api[name]) > 1 {
					show(name)
				}
			}
		}
		for _, name := range names {
			if got := api[name][0]; got != decided[name] {
				t.Errorf("the API has %s nominated to %q, and %q was decided", name, got, decided[name])
			}
			if p, _ := w.find(name); p.State() != nomination.Agreed {
				t.Errorf("the nomination of %s is %q in the end", name, p.State())
			}
		}
		if left := w.m.Unsettled(); left != nil {
			t.Errorf("unsettled in the end: %q", left)
		}
	})
}
