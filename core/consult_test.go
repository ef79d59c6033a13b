package core_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/berthproject/berth/core"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/door"
	"github.com/berthproject/berth/core/framework"
	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/internal/test/testkit"
)

// consulted is a default profile with an extender that filters, scores and has a say in
// preemption.
func consulted(schema *cluster.Schema) *framework.Profile {
	p := defaults(schema)
	p.Extenders = []framework.Extender{{Filters: true, Prioritizes: true, Preempts: true}}
	return p
}

// extended is a core that asks an extender, which allows the nodes whose names begin with
// "good".
type extended struct {
	t    *testing.T
	c    *core.Core
	now  time.Time
	asks map[types.UID]step.Consult // without an answer
	at   map[types.UID]string       // where pods are bound to
}

func newExtended(t *testing.T) *extended {
	schema := cluster.NewSchema()
	cfg := core.DefaultConfig(consulted(schema))
	return &extended{t: t, c: testkit.Must(core.New(schema, cfg)), now: time.Unix(1000, 0), asks: map[types.UID]step.Consult{}, at: map[types.UID]string{}}
}

func (e *extended) step(in ...step.Input) {
	e.t.Helper()
	r := e.c.Step(e.now, door.Must(in...)...)
	for _, broken := range e.c.Invariants() {
		e.t.Errorf("broken invariant: %s", broken)
	}
	for _, x := range r.Consults {
		e.asks[x.UID] = x
	}
	for _, b := range r.Binds {
		e.at[b.UID] = b.Node
	}
}

// answer is the extender's answer about a pod, about the nodes that it was asked about.
func (e *extended) answer(pod types.UID) step.Input {
	e.t.Helper()
	x, ok := e.asks[pod]
	if !ok {
		e.t.Fatalf("the extender isn't asked about %s", pod)
	}
	delete(e.asks, pod)
	return answerOf(x, func(node string) bool { return strings.HasPrefix(node, "good") })
}

func answerOf(x step.Consult, allows func(node string) bool) step.Consulted {
	out := step.Consulted{UID: x.UID, Number: x.Number, Failed: map[string]string{}}
	for _, n := range x.Nodes {
		if allows(n) {
			out.Nodes = append(out.Nodes, n)
		} else {
			out.Failed[n] = "not good"
		}
	}
	for _, c := range x.Candidates {
		if allows(c.Node) {
			agreed := step.Agreed{Node: c.Node, Violations: c.Violations}
			for _, v := range c.Victims {
				agreed.Pods = append(agreed.Pods, v.UID)
			}
			out.Agreed = append(out.Agreed, agreed)
		}
	}
	return out
}

// waits has time pass, in which the extender answers at once, but no leftover sweep.
func (e *extended) waits() {
	for range 6 {
		e.now = e.now.Add(11 * time.Second)
		e.step()
		for len(e.asks) > 0 {
			var in []step.Input
			for _, uid := range slices.Sorted(maps.Keys(e.asks)) {
				in = append(in, e.answer(uid))
			}
			e.step(in...)
		}
	}
}

func anyNode(name string) step.Input {
	return step.NodeSet{Node: testkit.Node(name).Alloc("cpu", "4", "memory", "8Gi").Obj()}
}

func anyPod(name string) step.Input {
	return step.PodSet{Pod: testkit.Pod(name).Req("cpu", "1").Obj()}
}

// TestAChangeDuringAConsultationCounts asks the extender about a pod before a node comes
// that it would allow, and answer after it.
func TestAChangeDuringAConsultationCounts(t *testing.T) {
	e := newExtended(t)
	e.step(anyNode("bad"), anyPod("p"))
	e.step(anyNode("good"))
	e.step(e.answer("pod-p"))
	e.waits()
	if e.at["pod-p"] != "good" {
		t.Errorf("the pod is bound to %q, want the node that came while the extender was asked", e.at["pod-p"])
	}
}

// TestAnOldAnswerDoesNotEndTheProbingOfItsClass: three pods of one class wait, of which the
// extender is asked about the first when a node comes. What it says about that one must not keep
// the others from the node.
func TestAnOldAnswerDoesNotEndTheProbingOfItsClass(t *testing.T) {
	e := newExtended(t)
	e.step(anyNode("bad"), anyPod("a"), anyPod("b"), anyPod("c"))
	e.step(e.answer("pod-b"), e.answer("pod-c"))
	e.step(anyNode("good"))
	e.now = e.now.Add(2 * time.Second) // past the backoff
	e.step()
	e.step(e.answer("pod-a")) // as of before the change
	e.waits()
	if want := map[types.UID]string{"pod-a": "good", "pod-b": "good", "pod-c": "good"}; !maps.Equal(e.at, want) {
		t.Errorf("the pods are bound to %v, want %v", e.at, want)
	}
}

// TestARejectionThatNothingChangedIsFinal: without a change the extender isn't asked again.
func TestARejectionThatNothingChangedIsFinal(t *testing.T) {
	e := newExtended(t)
	e.step(anyNode("bad"), anyPod("p"))
	e.step(e.answer("pod-p"))
	e.now = e.now.Add(time.Minute)
	e.step()
	if len(e.asks) != 0 {
		t.Errorf("the extender is asked again: %v", e.asks)
	}
}

// TestAnAnswerCountsForThePodAsItWasAskedAbout has a pod change while the extender is asked about it,
// so that it is asked again. The first answer comes last, first, or when the pod is gone and another has come.
func TestAnAnswerCountsForThePodAsItWasAskedAbout(t *testing.T) {
	all := func(string) bool { return true }
	none := func(string) bool { return false }
	change := func(e *extended) (first, second step.Consult) {
		e.step(anyNode("good"), anyPod("p"))
		first = e.asks["pod-p"]
		e.step(step.PodSet{Pod: testkit.Pod("p").Req("cpu", "3").Obj()})
		return first, e.asks["pod-p"]
	}
	t.Run("the first answer comes first", func(t *testing.T) {
		e := newExtended(t)
		first, second := change(e)
		e.step(answerOf(first, all))
		e.step(answerOf(second, none))
		if node := e.at["pod-p"]; node != "" {
			t.Errorf("the pod is bound to %s, which the extender allows for 1 CPU and not for 3", node)
		}
	})
	t.Run("the first answer comes last", func(t *testing.T) {
		e := newExtended(t)
		first, second := change(e)
		e.step(answerOf(second, all))
		e.step(answerOf(first, none))
		if e.at["pod-p"] != "good" {
			t.Errorf("the pod is bound to %q, want good", e.at["pod-p"])
		}
	})
	t.Run("an answer without a number", func(t *testing.T) { // as older recordings have
		e := newExtended(t)
		_, second := change(e)
		answer := answerOf(second, all)
		answer.Number = 0
		e.step(answer)
		if e.at["pod-p"] != "good" {
			t.Errorf("the pod is bound to %q, want good", e.at["pod-p"])
		}
	})
	t.Run("the pod is another one of that name", func(t *testing.T) {
		e := newExtended(t)
		first, _ := change(e)
		e.step(step.PodGone{UID: "pod-p"}, anyPod("p"))
		e.step(answerOf(first, all))
		if node := e.at["pod-p"]; node != "" {
			t.Errorf("the pod is bound to %s by an answer about one that is gone", node)
		}
	})
}

// TestAnAnswerCountsForNoOtherDecision has a pod change so that the extender has no say in it any more.
// It is placed at once, and what the extender says then places it nowhere else.
func TestAnAnswerCountsForNoOtherDecision(t *testing.T) {
	e := newExtended(t)
	schema := cluster.NewSchema()
	profile := defaults(schema)
	profile.Extenders = []framework.Extender{{Filters: true, Managed: []string{"example.com/gpu"}}}
	e.c = testkit.Must(core.New(schema, core.DefaultConfig(profile)))
	for _, name := range []string{"n0", "n1"} {
		e.step(step.NodeSet{Node: testkit.Node(name).Alloc("cpu", "4", "memory", "8Gi", "example.com/gpu", "1").Obj()})
	}
	e.step(step.PodSet{Pod: testkit.Pod("p").Req("cpu", "1", "example.com/gpu", "1").Obj()})
	asked := e.asks["pod-p"]
	e.step(anyPod("p"))
	first := e.at["pod-p"]
	e.step(answerOf(asked, func(node string) bool { return node != first }))
	if first == "" || e.at["pod-p"] != first {
		t.Errorf("the pod is bound to %q and then to %q, want one node", first, e.at["pod-p"])
	}
}

// slowExtender is an edge whose extender answers late, in any order, and allows some nodes.
type slowExtender struct{ *edge }

// Consult implements drive.Workers.
func (e slowExtender) Consult(x step.Consult, answer func(step.Consulted)) {
	if err := e.fails("asking fails"); err != nil {
		answer(step.Consulted{Err: err})
		return
	}
	answer(answerOf(x, func(node string) bool { return e.allows(x.Pod, node) }))
}

// TestPropertyChangesDuringConsultationsCount answers what extenders are asked late and in any
// order, as of when they were asked. Once all is answered nobody waits who could be placed
// (edge.watch), and nothing is held on to.
func TestPropertyChangesDuringConsultationsCount(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := newEdge(t, consulted)
		e.consults = true
		for _, in := range randomHistory(t) {
			e.step(500*time.Millisecond, 10, append(e.some(rapid.IntRange(0, 3).Draw(t, "answers")), in...)...)
		}
		e.settle()
	})
}

// asSized is an extender that allows a pod the nodes whose number goes with the pod's CPUs.
func asSized(pod *v1.Pod, node string) bool {
	return (pod.Spec.Containers[0].Resources.Requests.Cpu().Value()+int64(node[1]))%2 == 0
}

// TestPropertyAnAnswerCountsForThePodThatItIsAbout has pods change while an extender thinks about them,
// which looks at what they request. It answers late and in any order. Each pod is placed where
// the extender allows it as it is then.
func TestPropertyAnAnswerCountsForThePodThatItIsAbout(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := newEdge(t, consulted)
		e.consults, e.allows = true, asSized
		var lives [4]int // no pod has the UID of one that is gone
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			var in []step.Input
			for range rapid.IntRange(0, 3).Draw(t, "changes") {
				i := rapid.IntRange(0, 3).Draw(t, "pod")
				pod := testkit.Pod(fmt.Sprintf("p%d-%d", i, lives[i])).Req("cpu", fmt.Sprint(rapid.IntRange(1, 3).Draw(t, "CPUs"))).Obj()
				switch old := e.pods[pod.UID]; {
				case testkit.Uniform(t, 6, "gone") == 0:
					in = append(in, step.PodGone{UID: pod.UID})
					lives[i]++
				case old == nil || old.Spec.NodeName == "":
					in = append(in, step.PodSet{Pod: pod})
				}
			}
			if testkit.Uniform(t, 3, "node") == 0 {
				in = append(in, anyNode(fmt.Sprint("n", rapid.IntRange(0, 3).Draw(t, "node"))))
			}
			e.step(500*time.Millisecond, 10, append(in, e.some(rapid.IntRange(0, 3).Draw(t, "answers"))...)...)
		}
		e.settle()
	})
}
