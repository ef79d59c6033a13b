package candidates_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/lifecycle"
	"github.com/berthproject/berth/core/lifecycle/candidates"
	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/internal/test/testkit"
)

// around is an API around a machine. It carries out writes late, in any order, sometimes not
// at all and sometimes without saying so, and shows nodes late, each node's changes in order.
// The process crashes, and another takes over.
type around struct {
	t       *rapid.T
	cfg     candidates.Config
	steer   int // soft taints that the state gets at a time
	machine *candidates.Machine
	turn    *lifecycle.Turn

	api     map[string]*v1.Node
	news    map[string][]*v1.Node // by node, nil for gone
	calls   []step.Taint
	answers []step.TaintDone
	removed map[string]bool // nodes of which plans say that they could be removed
	history []string
}

func (w *around) note(format string, args ...any) {
	w.history = append(w.history, fmt.Sprintf("%s ", w.turn.Now.Sub(time.Unix(1000, 0)))+fmt.Sprintf(format, args...))
}

func (w *around) fatalf(format string, args ...any) {
	w.t.Helper()
	w.t.Fatalf("%s; history:\n%s", fmt.Sprintf(format, args...), strings.Join(w.history, "\n"))
}

// begin begins a process, which reads what the API has. What was asked for before may still
// be carried out; nobody is told.
func (w *around) begin() {
	w.turn = &lifecycle.Turn{Now: w.turn.Now, State: cluster.New(cluster.NewSchema()), Ready: &step.Ready{}}
	w.machine, w.answers, w.news = candidates.New(w.cfg), nil, map[string][]*v1.Node{}
	w.machine.SteerBulk(w.steer)
	for _, name := range slices.Sorted(maps.Keys(w.api)) {
		w.show(w.api[name])
	}
}

func (w *around) show(n *v1.Node) {
	info := w.turn.State.Schema.ParseNode(n, "g")
	w.turn.State.SetNode(w.machine.NodeSet(info, info))
}

// change writes a node to the API, nil to delete it.
func (w *around) change(name string, to *v1.Node) {
	if to == nil {
		delete(w.api, name)
	} else {
		w.api[name] = to
	}
	w.news[name] = append(w.news[name], to)
}

// tell delivers what is next to be told of a node.
func (w *around) tell(name string) {
	next := w.news[name][0]
	if w.news[name] = w.news[name][1:]; len(w.news[name]) == 0 {
		delete(w.news, name)
	}
	if next == nil {
		w.note("%s is gone", name)
		w.turn.State.RemoveNode(name)
		w.machine.NodeGone(name)
		return
	}
	w.note("%s is shown with %v", name, next.Spec.Taints)
	w.show(next)
}

// call ends a write: it is carried out or not, and its answer is an error or not. What is
// answered without an error was carried out.
func (w *around) call(i int, done, err bool) {
	x := w.calls[i]
	w.calls = slices.Delete(w.calls, i, i+1)
	w.note("writing %s (remove: %t) is carried out: %t, fails: %t", x.Node, x.Remove, done, err)
	if n := w.api[x.Node]; n != nil && done {
		info := w.turn.State.Schema.ParseNode(n, "g")
		if x.Remove {
			info = info.WithoutTaint(x.Taint.Key)
		} else {
			info = info.WithTaint(x.Taint)
		}
		w.change(x.Node, info.Object)
	}
	out := step.TaintDone{Node: x.Node, Key: x.Taint.Key, Remove: x.Remove}
	if err {
		out.Err = errors.New("refused")
	}
	w.answers = append(w.answers, out)
}

func (w *around) plan() {
	p := &autoscaler.Plan{Now: w.turn.Now}
	for _, name := range slices.Sorted(maps.Keys(w.removed)) {
		p.Removals = append(p.Removals, &autoscaler.Removal{Node: name})
	}
	w.note("a plan would remove %v", slices.Sorted(maps.Keys(w.removed)))
	w.machine.CommitPlan(w.turn, p)
}

// end ends a Step: what is asked for becomes calls, and the invariants are checked.
func (w *around) end() {
	w.machine.Advance(w.turn)
	w.calls = append(w.calls, w.turn.Ready.Taints...)
	w.turn.Ready = &step.Ready{}
	for _, broken := range append(w.machine.Invariants(), w.machine.InvariantsIn(w.turn.State)...) {
		w.fatalf("broken invariant: %s", broken)
	}
}

// something happens.
func (w *around) something() {
	t := w.t
	name := fmt.Sprint("n", testkit.Uniform(t, 4, "node"))
	node := w.turn.State.NodeByName(name)
	switch testkit.Uniform(t, 12, "what") {
	case 0, 1:
		if n := len(w.calls); n > 0 {
			luck := testkit.Uniform(t, 4, "luck")
			w.call(testkit.Uniform(t, n, "call"), luck != 3, luck > 1)
		}
	case 2, 3:
		if n := len(w.answers); n > 0 {
			i := testkit.Uniform(t, n, "answer")
			in := w.answers[i]
			w.answers = slices.Delete(w.answers, i, i+1)
			w.machine.TaintDone(w.turn, in)
		}
	case 4, 5:
		if len(w.news[name]) > 0 {
			w.tell(name)
		}
	case 6, 7:
		if w.removed[name] = !w.removed[name]; !w.removed[name] {
			delete(w.removed, name)
		}
		w.plan()
	case 8:
		switch {
		case w.api[name] == nil:
			w.change(name, testkit.Node(name).Obj())
		case rapid.Bool().Draw(t, "goes"):
			w.change(name, nil)
		default:
			w.change(name, w.api[name]) // a heartbeat
		}
	case 9: // a removal begins, or ends with the node staying
		switch {
		case node == nil:
		case node.HasTaint(autoscaler.ToBeDeletedTaint):
			w.machine.Forget(name)
			w.turn.State.SetNode(node.WithoutTaint(autoscaler.ToBeDeletedTaint))
		default:
			w.turn.State.SetNode(node.WithTaint(v1.Taint{Key: autoscaler.ToBeDeletedTaint, Effect: v1.TaintEffectNoSchedule}))
		}
	case 10:
		if testkit.Uniform(t, 4, "crash") == 0 {
			w.note("the process ends")
			w.begin()
		}
	default:
		w.turn.Now = w.turn.Now.Add(time.Duration(testkit.Uniform(t, 8, "seconds")) * time.Second)
	}
	w.end()
}

// settle has everything succeed, everything told, and time pass with a plan in between.
func (w *around) settle() {
	for range 8 {
		for _, name := range slices.Sorted(maps.Keys(w.api)) {
			w.change(name, w.api[name])
		}
		for len(w.calls)+len(w.answers)+len(w.news) > 0 {
			for len(w.calls) > 0 {
				w.call(0, true, false)
			}
			for _, in := range w.answers {
				w.machine.TaintDone(w.turn, in)
			}
			w.answers = nil
			for _, name := range slices.Sorted(maps.Keys(w.news)) {
				w.tell(name)
			}
			w.end()
		}
		w.turn.Now = w.turn.Now.Add(6 * time.Second)
		w.plan()
		w.end()
	}
}

// TestPropertyEachCandidateAndNoOtherNodeHasTheSoftTaint has soft taints written late, in any
// order, wrongly or not at all, while plans change their minds, nodes come and go, removals
// begin and end, and the process crashes. Once all is answered, exactly the candidates have
// the soft taint in the API, with their time.
func TestPropertyEachCandidateAndNoOtherNodeHasTheSoftTaint(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := &around{t: t, steer: rapid.IntRange(1, 4).Draw(t, "steer"), turn: &lifecycle.Turn{Now: time.Unix(1000, 0)}, api: map[string]*v1.Node{}, removed: map[string]bool{},
			cfg: candidates.Config{UnneededTime: 20 * time.Second, MaxBulk: rapid.IntRange(0, 3).Draw(t, "bulk"), BulkTime: 3 * time.Second}}
		w.begin()
		for i := range 4 {
			w.change(fmt.Sprint("n", i), testkit.Node(fmt.Sprint("n", i)).Obj())
		}
		for range rapid.IntRange(1, 150).Draw(t, "steps") {
			w.something()
		}
		w.settle()
		for _, line := range w.machine.Unsettled() {
			w.fatalf("%s", line)
		}
		for name, n := range w.api {
			want := ""
			if since := w.machine.Since(name); !since.IsZero() && w.cfg.MaxBulk > 0 {
				want = strconv.FormatInt(since.Unix(), 10)
			}
			if w.removed[name] == w.machine.Since(name).IsZero() {
				w.fatalf("plans would remove node %s: %t, and it is a candidate since %s", name, w.removed[name], w.machine.Since(name))
			}
			if got := softTaintOf(n); got != want {
				w.fatalf("the soft taint of node %s in the API is %q, want %q", name, got, want)
			}
		}
	})
}

func softTaintOf(n *v1.Node) string {
	for _, t := range n.Spec.Taints {
		if t.Key == autoscaler.DeletionCandidateTaint {
			return t.Value
		}
	}
	return ""
}
