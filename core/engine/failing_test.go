package engine_test

import (
	"strings"
	"testing"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/engine"
	"github.com/berthproject/berth/core/framework"
	"github.com/berthproject/berth/internal/test/testkit"
)

// failing is a local rule that has an error on nodes with a label.
type failing struct{}

func (failing) Reads() framework.Aspects { return framework.ReadsObject }

func (failing) EvalNode(n *cluster.Node) (framework.Code, int64) {
	if n.Object.Labels["fails"] != "" {
		return framework.Error, 0
	}
	return framework.OK, 0
}

func (failing) Explain(n *cluster.Node) *framework.Reason {
	return &framework.Reason{Plugin: "Failing", Messages: []string{"no idea of " + n.Name}}
}

// failingWorld is an engine with a rule before the one that fails, which rejects nodes with three pods,
// and one behind it that scores.
func failingWorld(o engine.Options, fails ...string) (*cluster.State, *engine.Engine) {
	var builders []*testkit.NodeBuilder
	for _, name := range []string{"n1", "n2", "n3", "n4"} {
		b := testkit.Node(name)
		if strings.Contains(strings.Join(fails, " "), name) {
			b.Label("fails", "yes")
		}
		builders = append(builders, b)
	}
	s := nodes(builders...)
	profile := &framework.Profile{Plugins: []framework.Weighted{
		weighted(1, &scripted{name: "Before", rules: framework.Rules{Local: &localScript{reads: framework.ReadsPods, limit: 1}}}),
		weighted(1, &scripted{name: "Failing", rules: framework.Rules{Local: failing{}}}),
		weighted(1, &scripted{name: "Behind", rules: framework.Rules{Local: &localScript{reads: framework.ReadsObject, scores: map[string]int64{"n1": 1, "n2": 2, "n3": 3}}}}),
	}}
	return s, testkit.Must(engine.New(s, profile, o))
}

// eachOptions runs a test with columns that are kept, made anew each time, and filled by workers.
func eachOptions(t *testing.T, test func(t *testing.T, o engine.Options)) {
	for name, o := range map[string]engine.Options{"kept": {}, "rebuilt": {Rebuilt: true}, "workers": {Workers: 8}} {
		t.Run(name, func(t *testing.T) { test(t, o) })
	}
}

// TestErrorsEndAttempts: an error on a node that all rules before take keeps a pod from every node; the
// first node by name is told of. As long as a rule before rejects the node, nobody asks further.
func TestErrorsEndAttempts(t *testing.T) {
	eachOptions(t, func(t *testing.T, o engine.Options) {
		s, e := failingWorld(o, "n3", "n2")
		c := e.Class(parsed(s, testkit.Pod("p")))
		check := func(what, failure, best string) {
			t.Helper()
			choice, ok := e.Best(c)
			if got := e.Failure(c); got != failure || ok != (best != "") || ok && nodeName(s, choice.Node) != best {
				t.Errorf("%s: failure %q, best %v %s, want %q and %q", what, got, ok, nodeName(s, choice.Node), failure, best)
			}
		}
		check("two nodes fail", `running "Failing" filter plugin: no idea of n2`, "")
		s.Place(parsed(s, testkit.Pod("on2")), "n2")
		check("one is full", `running "Failing" filter plugin: no idea of n3`, "")
		mark := s.Mark()
		s.Place(parsed(s, testkit.Pod("on3")), "n3")
		check("both are", "", "n1")
		s.Rollback(mark)
		check("one is free again", `running "Failing" filter plugin: no idea of n3`, "")
		s.RemoveNode("n3")
		s.RemoveNode("n3")
		check("it is gone", "", "n1")
		s.SetNode(s.Schema.ParseNode(testkit.Node("n1").Label("fails", "yes").Obj(), ""))
		check("another fails", `running "Failing" filter plugin: no idea of n1`, "")
		s.SetNode(s.Schema.ParseNode(testkit.Node("n1").Obj(), ""))
		check("no more", "", "n1")
		if n := e.FailingNodes(c); n != 1 {
			t.Errorf("%d nodes have an error, want n2 alone", n)
		}
		for _, a := range e.Answers(c) {
			if name := nodeName(s, a.Node); a.OK != (name == "n1") {
				t.Errorf("%s takes the pod: %v", name, a.OK)
			}
		}
	})
}

// TestErrorsWakeClasses: a class that waits is woken when it would fail, since nobody else looks for what
// helps it beside the error.
func TestErrorsWakeClasses(t *testing.T) {
	eachOptions(t, func(t *testing.T, o engine.Options) {
		s, e := failingWorld(o)
		for _, n := range []string{"n1", "n2", "n3"} {
			s.Place(parsed(s, testkit.Pod("on-"+n)), n)
		}
		c := e.Class(parsed(s, testkit.Pod("p")))
		d := e.Diagnose(c)
		if _, ok := e.Best(c); ok {
			t.Fatal("a node takes the pod")
		}
		from := s.Head()
		s.SetNode(s.Schema.ParseNode(testkit.Node("n4").Label("fails", "yes").Obj(), ""))
		changes, _ := s.Since(from)
		if help, _ := e.MayHelp(c, d, changes); help != engine.Fits {
			t.Errorf("help is %v, want that the class is tried", help)
		}
	})
}
