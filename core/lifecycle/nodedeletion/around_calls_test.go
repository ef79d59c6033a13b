package nodedeletion_test

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/internal/test/testkit"
)

// This file carries out what the machine asks of the API and of the provider: late, in any order,
// sometimes not at all, and sometimes without saying so.

// luck is how a call ends.
type luck int

const (
	succeeds luck = iota
	fails
	answerLost // carried out, and taken for a failure
	deceives   // not carried out, and taken for a success

	// Without an answer: never carried out, carried out, or carried out later. Other calls than
	// deletions succeed instead.
	lostCall
	lostAnswer
	lateCall
)

// take makes of what the machine asks for calls whose outcome is owed, and checks the
// invariants.
func (w *around) take() {
	r := w.turn.Ready
	w.turn.Ready = &step.Ready{}
	for i := range r.Decisions {
		w.note("%s", r.Decisions[i].String())
		if kind := r.Decisions[i].Kind; kind == step.NodeTainted || kind == step.NodeRemoved {
			delete(w.lost, r.Decisions[i].Node)
			delete(w.taken, r.Decisions[i].Node)
		}
	}
	for _, x := range r.Taints {
		w.calls = append(w.calls, func(luck luck) {
			w.note("tainting %s (remove: %t) ends with %v", x.Node, x.Remove, luck)
			if w.api[x.Node] != nil && luck != fails { // a taint that was written is there
				w.taint(x)
			}
			w.answer(func() {
				w.machine.TaintDone(w.turn, step.TaintDone{Node: x.Node, Key: x.Taint.Key, Remove: x.Remove, Err: luck.err()})
			})
		})
	}
	for _, x := range r.Evictions {
		if p := w.pods[x.UID]; p != nil && p.waits() && !w.taken[x.Node] {
			w.fatalf("member %s is evicted", x.Name)
		}
		w.calls = append(w.calls, func(luck luck) {
			w.note("evicting %s ends with %v", x.Name, luck)
			if luck == succeeds || luck == answerLost {
				w.lose(x.Node, x.UID)
			}
			w.answer(func() {
				w.machine.EvictionDone(w.turn, step.EvictionDone{UID: x.UID, Node: x.Node, Err: luck.err(), Refused: luck == fails})
			})
		})
	}
	w.checkSurges(r.Surges)
	for _, x := range r.Surges {
		w.calls = append(w.calls, func(began luck) {
			w.note("the surge of %s ends with %v", x.Deployment, began)
			if began == succeeds || began == answerLost {
				w.calls = append(w.calls, func(available luck) {
					if available == succeeds {
						w.lose(x.Node, x.UID)
					}
				})
			}
			w.answer(func() { w.machine.SurgeDone(w.turn, step.SurgeDone{UID: x.UID, Node: x.Node, Err: began.err()}) })
		})
	}
	for _, x := range r.NodeDeletions {
		if left := w.podsOn(x.Node, func(p *onNode) bool { return !p.daemon && !w.longTerminating(p) }); len(left) > 0 {
			w.fatalf("node %s is deleted with pod %s on it", x.Node, left[0].Name)
		}
		if n := w.api[x.Node]; n != nil && isForeign(n) {
			w.fatalf("node %s is deleted, which somebody else has tainted", x.Node)
		}
		w.calls = append(w.calls, func(luck luck) {
			w.note("deleting %s ends with %v", x.Node, luck)
			if luck == succeeds || luck == answerLost || luck == lostAnswer {
				w.vanish(x.Node)
			}
			if luck == lateCall {
				w.later(x.Node)
			}
			w.answer(func() {
				w.note("the deletion of %s is answered", x.Node)
				in := step.NodeDeletionDone{Node: x.Node, Instance: x.Instance, Err: luck.err(), Unknown: luck.unanswered()}
				if in.Unknown {
					in.Err = context.DeadlineExceeded
				}
				w.machine.NodeDeletionDone(w.turn, in)
			})
		})
	}
	for _, broken := range append(w.machine.Invariants(), w.machine.InvariantsIn(w.turn.State)...) {
		w.fatalf("broken invariant: %s", broken)
	}
}

// answer keeps the outcome of a call until it is told.
func (w *around) answer(tell func()) { w.answers = append(w.answers, tell) }

func (l luck) err() error {
	if l == fails || l == answerLost {
		return errors.New("refused")
	}
	return nil
}

func (l luck) unanswered() bool { return l >= lostCall }

// later has the provider carry out a deletion that it hasn't answered, at any time in the next two
// minutes. Nothing that has come to the node since may be hit by it.
func (w *around) later(node string) {
	until, machine := w.turn.Now.Add(2*time.Minute), w.joined[node]
	w.calls = append(w.calls, func(luck) {
		if w.turn.Now.After(until) || w.joined[node] != machine || !w.instances[node] {
			return
		}
		w.note("node %s is deleted by a call that had no answer", node)
		if hit := w.podsOn(node, func(p *onNode) bool { return !p.daemon && !w.longTerminating(p) }); len(hit) > 0 {
			w.fatalf("node %s is deleted with pod %s on it, by a call that had no answer", node, hit[0].Name)
		}
		w.vanish(node)
	})
}

// vanish ends an instance and its node.
func (w *around) vanish(name string) {
	delete(w.instances, name)
	if w.api[name] != nil {
		w.change(name, nil)
	}
}

// oneCall has any call that is under way end.
func (w *around) oneCall(luck luck) {
	if n := len(w.calls); n > 0 {
		i := testkit.Uniform(w.t, n, "call")
		call := w.calls[i]
		w.calls = slices.Delete(w.calls, i, i+1)
		call(luck)
	}
}
