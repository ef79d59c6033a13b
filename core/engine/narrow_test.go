package engine_test

import (
	"fmt"
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/engine"
	"github.com/berthproject/berth/core/framework"
	"github.com/berthproject/berth/internal/test/testkit"
)

// narrowScript is a local rule by node name that names the nodes to which it keeps the class.
type narrowScript struct {
	localScript
	names []string
}

func (r *narrowScript) NarrowsTo() []string { return r.names }

func (r *narrowScript) EvalNode(n *cluster.Node) (framework.Code, int64) {
	code, score := r.localScript.EvalNode(n)
	if !slices.Contains(r.names, n.Name) {
		return framework.Final, 0
	}
	return code, score
}

// TestNoRuleIsAskedAboutNodesThatAreLeftOut of 100, whatever is asked about a class that names n5
// and n7.
func TestNoRuleIsAskedAboutNodesThatAreLeftOut(t *testing.T) {
	narrow := &narrowScript{localScript{reads: framework.ReadsObject}, []string{"n5", "n7"}}
	full := &localScript{reads: framework.ReadsPods, limit: 1}
	s := named(testkit.Names("n", 100)...)
	e := over(s, &scripted{name: "A", rules: framework.Rules{Local: narrow}}, &scripted{name: "B", rules: framework.Rules{Local: full}})
	class := e.Class(parsed(s, testkit.Pod("p")))
	asked := func(what string) {
		t.Helper()
		for _, name := range append(narrow.asked, full.asked...) {
			if name != "n5" && name != "n7" {
				t.Fatalf("%s: a rule was asked about %s", what, name)
			}
		}
		if len(narrow.asked) == 0 {
			t.Errorf("%s: the rule wasn't asked at all", what)
		}
		narrow.asked, full.asked = nil, nil
	}
	for i := range 2 {
		choice, ok := e.Place(class, parsed(s, testkit.Pod(fmt.Sprint("placed", i))))
		if n := s.Node(choice.Node); !ok || n.Name != "n5" && n.Name != "n7" {
			t.Fatalf("placed on %v (%v), want n5 and n7", choice, ok)
		}
		asked("placing")
	}
	if choice, ok := e.Best(class); ok {
		t.Fatalf("both nodes are full, and a pod may go to %d", choice.Node)
	}
	asked("refusing")
	d := e.Diagnose(class)
	if want := "0/100 nodes are available: 2 not in the script, 98 node(s) didn't satisfy plugin(s) [A]."; d.Message() != want {
		t.Errorf("message %q, want %q", d.Message(), want)
	}
	asked("diagnosing")
	from := s.Head()
	s.Place(parsed(s, testkit.Pod("elsewhere")), "n1")
	changes, _ := s.Since(from)
	if help, _ := e.MayHelp(class, d, changes); help != engine.NoHelp || len(narrow.asked)+len(full.asked) > 0 {
		t.Errorf("a change of n1 is help %d, and rules were asked about %v and %v", help, narrow.asked, full.asked)
	}
}

// TestRulesThatNarrowTogether leave the nodes that each of them names. People read of the others
// which plugins these are.
func TestRulesThatNarrowTogether(t *testing.T) {
	s := named("n0", "n1", "n2", "n3")
	plugin := func(name string, nodes ...string) framework.Plugin {
		return &scripted{name: name, rules: framework.Rules{Local: &narrowScript{localScript{reads: framework.ReadsObject, scores: map[string]int64{}}, nodes}}}
	}
	e := over(s, plugin("B", "n0", "n1", "n2"), plugin("A", "n2", "n3", "n9"))
	class := e.Class(parsed(s, testkit.Pod("p")))
	if got, want := e.Diagnose(class).Message(), "0/4 nodes are available: 1 not in the script, 3 node(s) didn't satisfy plugin(s) [A B]."; got != want {
		t.Errorf("message %q, want %q", got, want)
	}
}

// TestRulesThatNarrowToNothing reject the class before any node is looked at, unless a plugin before
// the last of them does.
func TestRulesThatNarrowToNothing(t *testing.T) {
	none := &framework.Reason{Plugin: "R", Messages: []string{"rejected everywhere"}, Final: true, OfPod: true}
	rejects := &scripted{name: "R", why: none}
	names := func(name string, nodes ...string) *scripted {
		return &scripted{name: name, rules: framework.Rules{Local: &narrowScript{localScript{reads: framework.ReadsObject}, nodes}}}
	}
	const together = "0/2 nodes are available: node(s) didn't satisfy plugin(s) [A B] simultaneously."
	for _, c := range []struct {
		name    string
		plugins []framework.Plugin
		want    string
	}{
		{"each names another node", []framework.Plugin{names("B", "n0"), names("A", "n1")}, together},
		{"the next isn't asked", []framework.Plugin{names("B", "n0"), names("A", "n1"), names("C", "n0")}, together},
		{"one names none", []framework.Plugin{&scripted{name: "A", rules: framework.Rules{Local: &narrowScript{localScript{reads: framework.ReadsObject}, []string{}}}}}, "0/2 nodes are available: node(s) didn't satisfy plugin A."},
		{"another rejects before", []framework.Plugin{names("B", "n0"), rejects, names("A", "n1")}, "0/2 nodes are available: rejected everywhere."},
		{"another rejects behind", []framework.Plugin{names("B", "n0"), names("A", "n1"), rejects}, together},
	} {
		s := named("n0", "n1")
		e := over(s, c.plugins...)
		class := e.Class(parsed(s, testkit.Pod("p")))
		if _, ok := e.Best(class); ok {
			t.Errorf("%s: a node takes the pod", c.name)
		}
		if got := e.Diagnose(class).Message(); got != c.want {
			t.Errorf("%s: message %q, want %q", c.name, got, c.want)
		}
		if class.Rejected == nil || !class.Rejected.OfPod || !class.Rejected.Final {
			t.Errorf("%s: rejected for %+v, want a reason that only the pod can change", c.name, class.Rejected)
		}
	}
}

// TestClassesThatNameTheirNodesHaveNoColumn unless they name many, when one that follows changes
// costs less. Nothing is left of them when they are forgotten.
func TestClassesThatNameTheirNodesHaveNoColumn(t *testing.T) {
	for _, c := range []struct {
		name            string
		pod             *testkit.PodBuilder
		byName, columns int
	}{
		{"one node", testkit.DaemonPod("agent", "n1"), 1, 0},
		{"one that isn't there", testkit.DaemonPod("agent", "gone"), 1, 0},
		{"spread over zones", testkit.DaemonPod("agent", "n1").SpreadHard(v1.LabelTopologyZone, 1, "app", "agent"), 1, 0},
		{"apart from others", testkit.DaemonPod("agent", "n1").Apart(v1.LabelHostname, "app", "agent"), 1, 0},
		{"16 names", testkit.Pod("p").OnlyOn(testkit.Names("n", 16)...), 1, 0},
		{"17 names", testkit.Pod("p").OnlyOn(testkit.Names("n", 17)...), 0, 1},
		{"a name or a label", testkit.Pod("p").OnlyOn("n1").RequireIn(v1.LabelTopologyZone, "a"), 0, 1},
	} {
		w, e, _ := setUp(0)
		w.State.SetNode(w.State.Schema.ParseNode(four("n1").Obj(), ""))
		if choice, ok := e.Best(e.Class(parsed(w.State, c.pod))); ok != (c.name != "one that isn't there") {
			t.Errorf("%s: best node %v (%v)", c.name, choice, ok)
		}
		if size := e.Size(); size.Classes != 1 || size.ByName != c.byName || size.Columns != c.columns {
			t.Errorf("%s: the engine holds %+v, want 1 class, %d by name, %d columns", c.name, size, c.byName, c.columns)
		}
		e.Sweep(func(*engine.Class) bool { return false })
		if size := e.Size(); size != (engine.Size{}) {
			t.Errorf("%s: %+v is left", c.name, size)
		}
	}
}

// TestWhatChangesDoForAPodOfOneNode that waits for its node n1, of which another pod has taken all.
func TestWhatChangesDoForAPodOfOneNode(t *testing.T) {
	pod := func() *testkit.PodBuilder { return testkit.DaemonPod("agent", "n1").Req("cpu", "1").Priority(10) }
	n1 := []*testkit.NodeBuilder{four("n1"), four("n2")}
	full := []*testkit.PodBuilder{running("a", "4", 10, "n1"), running("b", "4", 10, "n2")}
	const rejected = "0/2 nodes are available: 1 Insufficient cpu, 1 node(s) didn't satisfy plugin(s) [NodeAffinity]."
	for _, c := range []struct {
		name    string
		nodes   []*testkit.NodeBuilder
		placed  []*testkit.PodBuilder
		message string
		change  func(*waiting)
		want    engine.Help
	}{
		{"its node gets room", n1, full, rejected, func(w *waiting) { w.Remove("pod-a") }, engine.Fits},
		{"another does", n1, full, rejected, func(w *waiting) { w.Remove("pod-b") }, engine.NoHelp},
		{"others that may leave come to its node", n1, full, rejected, func(w *waiting) {
			w.Remove("pod-a")
			w.place(running("c", "4", 0, "n1"))
		}, engine.Preempts},
		{"others that may leave come to another", n1, full, rejected, func(w *waiting) { w.place(running("c", "1", 0, "n2")) }, engine.NoHelp},
		{"its node goes", n1, full, rejected, func(w *waiting) { w.Remove("pod-a"); w.RemoveNode("n1") }, engine.NoHelp},
		{"its node is made anew", n1, full, rejected, func(w *waiting) { w.Remove("pod-a"); w.RemoveNode("n1"); w.node(four("n1")) }, engine.Fits},
		{"its node comes", n1[1:], full[1:], "0/1 nodes are available: 1 node(s) didn't satisfy plugin(s) [NodeAffinity].", func(w *waiting) { w.node(four("n1")) }, engine.Fits},
		{"another comes", n1[1:], full[1:], "0/1 nodes are available: 1 node(s) didn't satisfy plugin(s) [NodeAffinity].", func(w *waiting) { w.node(four("n3")) }, engine.NoHelp},
	} {
		w := wait(pod(), c.nodes, c.placed...)
		if got := w.diagnosis.Message(); got != c.message {
			t.Errorf("%s: message %q, want %q", c.name, got, c.message)
		}
		w.diagnosis = w.diagnosis.WithPreemption(engine.Preemption{RuledOut: true})
		if got, _ := w.help(func() { c.change(w) }); got != c.want {
			t.Errorf("%s: help %d, want %d", c.name, got, c.want)
		}
	}
}
