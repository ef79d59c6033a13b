package engine_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/engine"
	"github.com/berthproject/berth/core/framework"
	"github.com/berthproject/berth/core/plugins"
	"github.com/berthproject/berth/internal/test/testkit"
)

// TestDiagnosisMessages are as kube-scheduler words them.
func TestDiagnosisMessages(t *testing.T) {
	never := testkit.Pod("p").Req("cpu", "8").Priority(10)
	never.Spec.PreemptionPolicy = new(v1.PreemptNever)
	for _, c := range []struct {
		name       string
		pod        *testkit.PodBuilder
		nodes      []*testkit.NodeBuilder
		placed     []*testkit.PodBuilder
		message    string
		preemption string
	}{
		{name: "no nodes", pod: testkit.Pod("p"), message: "no nodes available to schedule pods"},
		{name: "each node counts for the first rule that rejects it, the texts are sorted", pod: testkit.Pod("p").Req("cpu", "3"),
			nodes:      []*testkit.NodeBuilder{four("a"), four("b"), four("c").Cordon(), four("d").Taint("gpu", "", v1.TaintEffectNoSchedule)},
			placed:     []*testkit.PodBuilder{running("x", "2", 0, "a"), running("y", "2", 0, "b"), running("z", "2", 0, "c")},
			message:    "0/4 nodes are available: 1 node(s) had untolerated taint(s), 1 node(s) were unschedulable, 2 Insufficient cpu.",
			preemption: "0/4 nodes are available: 2 No preemption victims found for incoming pod, 2 Preemption is not helpful for scheduling."},
		{name: "a rule may give several reasons", pod: testkit.Pod("p").Req("cpu", "3", "memory", "4Gi"), nodes: []*testkit.NodeBuilder{four("a")},
			placed:     []*testkit.PodBuilder{running("x", "2", 0, "a").Req("memory", "1Gi")},
			message:    "0/1 nodes are available: 1 Insufficient cpu, 1 Insufficient memory.",
			preemption: "0/1 nodes are available: 1 No preemption victims found for incoming pod."},
		{name: "numbers sort as text; a pod that is too large for a node doesn't fit there whoever leaves", pod: testkit.Pod("p").Req("cpu", "8"),
			nodes:      append([]*testkit.NodeBuilder{four("x").Cordon(), four("y").Cordon()}, many(10)...),
			message:    "0/12 nodes are available: 10 Insufficient cpu, 2 node(s) were unschedulable.",
			preemption: "0/12 nodes are available: 12 Preemption is not helpful for scheduling."},
		{name: "it wouldn't fit if others left", pod: testkit.Pod("p").Req("cpu", "3").Priority(10), nodes: []*testkit.NodeBuilder{four("a")},
			placed:     []*testkit.PodBuilder{running("low", "1", 0, "a"), running("equal", "2", 10, "a")},
			message:    "0/1 nodes are available: 1 Insufficient cpu.",
			preemption: "0/1 nodes are available: 1 Insufficient cpu."},
		{name: "it mustn't preempt", pod: never, nodes: []*testkit.NodeBuilder{four("a")}, placed: []*testkit.PodBuilder{running("low", "1", 0, "a")},
			message: "0/1 nodes are available: 1 Insufficient cpu.", preemption: "not eligible due to preemptionPolicy=Never."},
		{name: "a rule rejects all nodes", pod: testkit.Pod("p").RequireIn(v1.LabelHostname), nodes: []*testkit.NodeBuilder{four("a")},
			message:    "0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector.",
			preemption: "0/1 nodes are available: 1 Preemption is not helpful for scheduling."},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := wait(c.pod, c.nodes, c.placed...)
			if got := w.diagnosis.Message(); got != c.message {
				t.Errorf("the message is\n%s, want\n%s", got, c.message)
			}
			got := w.engine.PreemptionMessage(w.class)
			if got != c.preemption {
				t.Errorf("about preemption it is\n%s, want\n%s", got, c.preemption)
			}
			if got, want := w.diagnosis.WithPreemption(engine.Preemption{RuledOut: true, Message: got}).Message(), c.message+" preemption: "+c.preemption; len(c.nodes) > 0 && got != want {
				t.Errorf("both are\n%s, want\n%s", got, want)
			}
		})
	}
}

func many(n int) (out []*testkit.NodeBuilder) {
	for _, name := range testkit.Names("n", n) {
		out = append(out, four(name))
	}
	return out
}

// TestADiagnosisNamesTheNodeThatComesNearest by the quantity that falls short.
func TestADiagnosisNamesTheNodeThatComesNearest(t *testing.T) {
	w := wait(testkit.Pod("p").Req("cpu", "8"), many(3), running("a", "1", 0, "n0"), running("b", "2", 0, "n1"), running("c", "500m", 0, "n2"))
	counts := w.diagnosis.Counts()
	if len(counts) != 1 || counts[0].Nearest == nil {
		t.Fatalf("counts %+v, want one with a quantity", counts)
	}
	want := engine.NearestShortfall{Deficit: framework.Deficit{Resource: "cpu", Needed: 8000, Available: 3500}, Node: "n2"}
	if *counts[0].Nearest != want || counts[0].Plugin != "NodeResourcesFit" {
		t.Errorf("%s says that the nearest is %+v, want %+v", counts[0].Plugin, *counts[0].Nearest, want)
	}
}

// TestADiagnosisIsNotChangedAfterItWasMade by what makes others of it.
func TestADiagnosisIsNotChangedAfterItWasMade(t *testing.T) {
	w := wait(testkit.Pod("p").Req("cpu", "8"), many(2))
	d := w.diagnosis
	before := fmt.Sprintf("%+v %+v %v", *d, d.Counts(), d.Message())
	for name, make := range map[string]func() *engine.Diagnosis{
		"outside": func() *engine.Diagnosis {
			return d.WithOutside("Extender", []string{"Insufficient cpu", "busy", "busy"})
		},
		"preemption": func() *engine.Diagnosis { return d.WithPreemption(engine.Preemption{RuledOut: true, Message: "no"}) },
		"refreshed":  func() *engine.Diagnosis { w.node(four("n2")); return w.engine.Refreshed(w.class, d) },
	} {
		if made := make(); made == d || made.Message() == d.Message() {
			t.Errorf("%s: nothing new is said: %s", name, made.Message())
		}
		if after := fmt.Sprintf("%+v %+v %v", *d, d.Counts(), d.Message()); after != before {
			t.Errorf("%s: the diagnosis was\n%s, and is\n%s", name, before, after)
		}
	}
	if got, want := d.WithOutside("Extender", []string{"Insufficient cpu", "busy", "busy"}).Message(), "0/2 nodes are available: 2 busy, 3 Insufficient cpu."; got != want {
		t.Errorf("with what extenders say it is\n%s, want\n%s", got, want)
	}
	if same := d.WithPreemption(d.Preemption()); same != d {
		t.Error("a diagnosis with what it has already is another one")
	}
}

// TestADiagnosisHasTheMostFrequentMessagesFromOutside of an extender that has another message for
// each node, but for a few: the text is bounded, and counts each node once.
func TestADiagnosisHasTheMostFrequentMessagesFromOutside(t *testing.T) {
	d := wait(testkit.Pod("p").Req("cpu", "8"), many(3)).diagnosis
	messages := []string{"no disk", "no disk", "no network", "no network", "no network", "Insufficient cpu"}
	for i := range 2000 {
		messages = append(messages, fmt.Sprintf("node n%04d has no GPU %s", 1999-i, strings.Repeat("x", 900)))
	}
	out := d.WithOutside("Extender", messages)
	total := 0
	for _, c := range out.Counts() {
		total += c.Nodes
	}
	if n := len(out.Counts()); n != 34 || total != len(messages)+3 {
		t.Errorf("%d messages for %d nodes, want 32, that of the rule and one for the others, for %d", n, total, len(messages)+3)
	}
	text := out.Message()
	for _, want := range []string{" 2 no disk", " 3 no network", " 4 Insufficient cpu", " 1 node n0000 has", " 1 node n0029 has", " 1970 node(s) were rejected for 1970 other reason(s)"} {
		if !strings.Contains(text, want) {
			t.Errorf("the text has no %q", want)
		}
	}
	if strings.Contains(text, "n0030") || len(text) > 32*1024+100 {
		t.Errorf("the text has %d bytes, and more than 32 messages", len(text))
	}
}

// TestRefreshingChangesTheMessagesAlone and what wakes the class stays known.
func TestRefreshingChangesTheMessagesAlone(t *testing.T) {
	w := wait(testkit.Pod("p").Req("cpu", "2").Priority(10).Apart(v1.LabelTopologyZone, "app", "web"),
		[]*testkit.NodeBuilder{four("n1").Cordon(), four("n2")}, running("web", "1", 20, "n1").Label("app", "web"))
	w.diagnosis = w.diagnosis.WithPreemption(engine.Preemption{RuledOut: true, Message: "as it was"})
	w.node(four("n2").Cordon()) // now no node is rejected by anti-affinity first
	d := w.engine.Refreshed(w.class, w.diagnosis)
	want := "0/2 nodes are available: 2 node(s) were unschedulable. preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling."
	if got := d.Message(); got != want {
		t.Errorf("the message is\n%s, want\n%s", got, want)
	}
	w.node(four("n2"))
	w.diagnosis = d
	if got, _ := w.help(func() { w.Remove("pod-web") }); got != engine.Fits {
		t.Errorf("what anti-affinity rejected is free, and helps %d, want %d", got, engine.Fits)
	}
	outside := d.WithOutside("Extender", nil)
	if got := w.engine.Refreshed(w.class, outside); got != outside {
		t.Error("what extenders said was replaced without asking them")
	}
	w.node(four("n1"))
	if !w.engine.Refreshed(w.class, d).LeavesNode() {
		t.Error("the class fits, and the refreshed diagnosis says otherwise")
	}
}

// TestExplainAndRelaxedAnswerForSingleNodesAndRules of a class.
func TestExplainAndRelaxedAnswerForSingleNodesAndRules(t *testing.T) {
	w := wait(testkit.Pod("p").Req("cpu", "3"), []*testkit.NodeBuilder{
		four("free"), four("cordoned").Cordon(), four("full"), four("both").Cordon(), testkit.Node("small").Alloc("cpu", "1", "memory", "4Gi"),
	}, running("a", "2", 0, "full"), running("b", "2", 0, "both"))
	got := map[string]string{}
	w.Nodes(func(n *cluster.Node) {
		if why := w.engine.Explain(w.class, n.Index); why != nil {
			got[n.Name] = why.Plugin
		}
	})
	want := map[string]string{"cordoned": "NodeUnschedulable", "full": "NodeResourcesFit", "both": "NodeUnschedulable", "small": "NodeResourcesFit"}
	if !maps.Equal(got, want) {
		t.Errorf("the nodes are rejected by %v, want %v", got, want)
	}
	if got, want := w.engine.Relaxed(w.class), (map[string]int{"NodeUnschedulable": 1, "NodeResourcesFit": 2}); !maps.Equal(got, want) {
		t.Errorf("single rules reject alone %v nodes, want %v", got, want)
	}
	if got := w.engine.PreemptionMessage(w.engine.Class(w.Schema.ParsePod(testkit.Pod("none").Obj()))); got == "" {
		t.Error("pods of the default profile preempt, and nothing is said of it")
	}
}

// TestNothingIsSaidOfPreemptionWithoutIt of a profile that doesn't preempt.
func TestNothingIsSaidOfPreemptionWithoutIt(t *testing.T) {
	s := nodes(four("n1"))
	profile := plugins.Default(s.Schema, plugins.Options{})
	profile.Preempter = nil
	e := testkit.Must(engine.New(s, profile, engine.Options{}))
	if got := e.PreemptionMessage(e.Class(s.Schema.ParsePod(testkit.Pod("p").Req("cpu", "8").Obj()))); got != "" {
		t.Errorf("about preemption it says %q", got)
	}
}
