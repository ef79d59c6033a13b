package consulting_test

import (
	"errors"
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/berthproject/berth/core/framework"
	"github.com/berthproject/berth/core/lifecycle/consulting"
	"github.com/berthproject/berth/core/queue"
	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/internal/test/lifecycletest"
	"github.com/berthproject/berth/internal/test/testkit"
)

var errRefused = errors.New("refused")

// world is a machine whose profile has an extender that filters, scores and has a say in
// preemption, with two nodes.
type world struct {
	*lifecycletest.Bench
	m    *consulting.Machine
	pods lifecycletest.Pods[consulting.Pod]
}

func newWorld() *world {
	w := &world{pods: lifecycletest.Pods[consulting.Pod]{}}
	w.Bench = lifecycletest.NewBenchOf(func(p *framework.Profile) {
		p.Extenders = []framework.Extender{{Filters: true, Prioritizes: true, Preempts: true}}
	})
	w.m = consulting.New(w.Scheduler, w.pods)
	for _, name := range []string{"n1", "n2"} {
		w.Node(testkit.Node(name).Alloc("cpu", "4", "memory", "8Gi").Obj())
	}
	return w
}

// ask decides on a new pod, and asks the extenders.
func (w *world) ask(name, cpu string, priority int32) *consulting.Pod {
	item := w.Queued(testkit.Pod(name).Req("cpu", cpu).Priority(priority).Obj())
	w.PopOnly(item)
	d := w.Scheduler.Decide(item.Pod(), item.Class(), w.Queue)
	w.Queue.SetClass(item, d.Class)
	p := &consulting.Pod{}
	w.pods[item.Pod().UID] = p
	w.m.Ask(w.Turn, p, item, &d)
	return p
}

func TestAnswers(t *testing.T) {
	for _, c := range []struct {
		name string
		in   step.Consulted
		node string // where the pod is placed, "" for nowhere
	}{
		{"the node with the higher score", step.Consulted{Nodes: []string{"n1", "n2"}, Scores: map[string]int64{"n2": 1000}}, "n2"},
		{"the only one allowed", step.Consulted{Nodes: []string{"n1"}}, "n1"},
		{"none allowed", step.Consulted{Failed: map[string]string{"n1": "no", "n2": "no"}}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld()
			p := w.ask("a", "1", 0)
			r := w.Flush()
			if len(r.Consults) != 1 || len(r.Consults[0].Nodes) != 2 || p.State() != consulting.AboutNodes {
				t.Fatalf("asked %+v, state %s, want two nodes and %s", r.Consults, p.State(), consulting.AboutNodes)
			}
			c.in.UID, c.in.Number = "pod-a", r.Consults[0].Number
			d, waited := w.m.Answer(w.Turn, c.in)
			got := ""
			if d.Node != nil {
				got = d.Node.Name
			}
			if !waited || got != c.node {
				t.Errorf("waited %t, placed on %q, want true and %q", waited, got, c.node)
			}
			if _, again := w.m.Answer(w.Turn, c.in); again || p.State() != consulting.None {
				t.Errorf("a second answer is taken: %t, state %s", again, p.State())
			}
		})
	}
}

func TestVictimsAreAskedAbout(t *testing.T) {
	w := newWorld()
	for _, node := range []string{"n1", "n2"} {
		w.State.Place(w.State.Schema.ParsePod(testkit.Pod("on-"+node).Req("cpu", "4").Obj()), node)
	}
	p := w.ask("a", "4", 10)
	r := w.Flush()
	if len(r.Consults) != 1 || len(r.Consults[0].Candidates) != 2 || p.State() != consulting.AboutVictims {
		t.Fatalf("asked %+v, state %s, want two candidates and %s", r.Consults, p.State(), consulting.AboutVictims)
	}
	d, waited := w.m.Answer(w.Turn, step.Consulted{UID: "pod-a", Number: r.Consults[0].Number, Agreed: []step.Agreed{{Node: "n2", Pods: []types.UID{"pod-on-n2"}}}})
	if !waited || d.Victims == nil || w.State.Node(d.Victims.Node).Name != "n2" {
		t.Errorf("waited %t, victims %+v, want the pod on n2", waited, d.Victims)
	}
}

func TestAnErrorDecidesNothing(t *testing.T) {
	w := newWorld()
	p := w.ask("a", "1", 0)
	d, waited := w.m.Answer(w.Turn, step.Consulted{UID: "pod-a", Number: w.Flush().Consults[0].Number, Nodes: []string{"n1"}, Err: errRefused})
	if !waited || d.Node != nil || d.Diagnosis != nil || p.State() != consulting.None {
		t.Errorf("waited %t, decision %+v, state %s, want an answer without a decision", waited, d, p.State())
	}
}

// TestPropertyAnswersLeaveNothingBehind asks about pods and has answers come in any order,
// some of pods that are gone or that wait for none: in the end nobody is asked.
func TestPropertyAnswersLeaveNothingBehind(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld()
		var owed []step.Consulted
		for k := range rapid.IntRange(1, 15).Draw(t, "pods") {
			w.ask(fmt.Sprint("p", k), "100m", 0)
			in := step.Consulted{UID: types.UID(fmt.Sprint("pod-p", k)), Number: w.Flush().Consults[0].Number, Nodes: []string{"n1"}}
			if rapid.Bool().Draw(t, "fails") {
				in.Err = errRefused
			}
			owed = append(owed, in)
			if rapid.Bool().Draw(t, "gone") {
				w.Queue.Remove(in.UID)
				delete(w.pods, in.UID)
			}
		}
		for _, in := range rapid.Permutation(owed).Draw(t, "order") {
			p := w.pods[in.UID]
			d, waited := w.m.Answer(w.Turn, in)
			if waited != (p != nil) || (d.Node != nil) != (p != nil && in.Err == nil) {
				t.Errorf("%s: waited %t, decided %t; known %t, error %v", in.UID, waited, d.Node != nil, p != nil, in.Err)
			}
			if item := w.Queue.Get(in.UID); item != nil && item.Stage() != queue.InFlight {
				t.Errorf("%s is %s before the decision is carried out", in.UID, item.Stage())
			}
			if broken := w.m.InvariantsIn(w.Queue); broken != nil {
				t.Errorf("broken invariants: %q", broken)
			}
		}
		if left := w.m.Unsettled(); left != nil {
			t.Errorf("left behind: %q", left)
		}
	})
}
