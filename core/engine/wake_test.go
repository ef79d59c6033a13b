package engine_test

import (
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/engine"
	"github.com/berthproject/berth/core/framework"
	"github.com/berthproject/berth/core/plugins"
	"github.com/berthproject/berth/internal/test/testkit"
)

// waiting is a cluster in which one class waits.
type waiting struct {
	*cluster.State
	engine    *engine.Engine
	class     *engine.Class
	diagnosis *engine.Diagnosis
}

// wait returns a cluster of these nodes and placed pods in which a pod waits under the
// default profile.
func wait(pod *testkit.PodBuilder, builders []*testkit.NodeBuilder, placed ...*testkit.PodBuilder) *waiting {
	s := nodes(builders...)
	w := &waiting{State: s, engine: testkit.Must(engine.New(s, plugins.Default(s.Schema, plugins.Options{}), engine.Options{}))}
	for _, p := range placed {
		w.place(p)
	}
	w.class = w.engine.Class(s.Schema.ParsePod(pod.Obj()))
	w.diagnosis = w.engine.Diagnose(w.class)
	return w
}

func (w *waiting) place(p *testkit.PodBuilder) { w.Place(w.Schema.ParsePod(p.Obj()), p.Spec.NodeName) }

func (w *waiting) node(b *testkit.NodeBuilder) { w.SetNode(w.Schema.ParseNode(b.Obj(), "")) }

// help makes a change, and returns what it does for the class.
func (w *waiting) help(change func()) (engine.Help, *engine.Diagnosis) {
	from := w.Head()
	change()
	changes, _ := w.Since(from)
	return w.engine.MayHelp(w.class, w.diagnosis, changes)
}

func four(name string) *testkit.NodeBuilder {
	return testkit.Node(name).Alloc("cpu", "4", "memory", "4Gi").Zone("a")
}

func running(name, cpu string, priority int32, node string) *testkit.PodBuilder {
	return testkit.Pod(name).Req("cpu", cpu).Priority(priority).On(node)
}

// TestWhatChangesDoForAWaitingClass is about classes that local rules reject, or
// preemption would help.
func TestWhatChangesDoForAWaitingClass(t *testing.T) {
	gone := func(name string) func(*waiting) { return func(w *waiting) { w.Remove(testkit.Pod(name).UID) } }
	full := []*testkit.NodeBuilder{four("n1")}
	// A pod that is to be apart from web in its zone. Its node is full of pods that
	// would have to go, but web is on the other node of the zone, which is cordoned.
	apart := func() *testkit.PodBuilder {
		return testkit.Pod("p").Req("cpu", "2").Priority(10).Apart(v1.LabelTopologyZone, "app", "web")
	}
	zone := []*testkit.NodeBuilder{four("n1"), four("n2").Cordon()}
	inZone := []*testkit.PodBuilder{
		running("low", "4", 0, "n1"), running("web", "1", 20, "n2").Label("app", "web"), running("db", "1", 20, "n2").Label("app", "db"),
	}
	for _, c := range []struct {
		name     string
		pod      *testkit.PodBuilder
		nodes    []*testkit.NodeBuilder
		placed   []*testkit.PodBuilder
		ruledOut bool           // preemption was found not to help
		before   func(*waiting) // happens unnoticed
		change   func(*waiting)
		want     engine.Help
	}{
		{name: "a pod leaves enough room", pod: testkit.Pod("p").Req("cpu", "2"), nodes: full,
			placed: []*testkit.PodBuilder{running("a", "2", 0, "n1"), running("b", "1", 0, "n1")}, change: gone("a"), want: engine.Fits},
		{name: "a pod leaves too little room", pod: testkit.Pod("p").Req("cpu", "2"), nodes: full,
			placed: []*testkit.PodBuilder{running("a", "2500m", 0, "n1"), running("b", "500m", 0, "n1"), running("c", "1", 0, "n1")}, change: gone("b"), want: engine.NoHelp},
		{name: "nothing changes", pod: testkit.Pod("p").Req("cpu", "2"), nodes: full,
			placed: []*testkit.PodBuilder{running("a", "4", 0, "n1")}, change: func(*waiting) {}, want: engine.NoHelp},
		{name: "a node comes", pod: testkit.Pod("p").Req("cpu", "2"), change: func(w *waiting) { w.node(four("new")) }, want: engine.Fits},
		{name: "a node goes", pod: testkit.Pod("p").Req("cpu", "8"), nodes: []*testkit.NodeBuilder{four("n1"), four("n2")},
			change: func(w *waiting) { w.RemoveNode("n1") }, want: engine.NoHelp},

		{name: "a pod comes that may be preempted", pod: testkit.Pod("p").Req("cpu", "2").Priority(10), nodes: full,
			placed: []*testkit.PodBuilder{running("high", "4", 20, "n1")}, ruledOut: true,
			change: func(w *waiting) { gone("high")(w); w.place(running("low", "4", 0, "n1")) }, want: engine.Preempts},
		{name: "the same, where preemption wasn't ruled out", pod: testkit.Pod("p").Req("cpu", "2").Priority(10), nodes: full,
			placed: []*testkit.PodBuilder{running("high", "4", 20, "n1")},
			change: func(w *waiting) { gone("high")(w); w.place(running("low", "4", 0, "n1")) }, want: engine.NoHelp},
		{name: "a pod comes that may not", pod: testkit.Pod("p").Req("cpu", "2").Priority(10), nodes: full,
			placed: []*testkit.PodBuilder{running("high", "4", 20, "n1")}, ruledOut: true,
			change: func(w *waiting) { gone("high")(w); w.place(running("equal", "4", 10, "n1")) }, want: engine.NoHelp},

		{name: "what forbade preemption is gone, on another node", pod: apart(), nodes: zone, placed: inZone, ruledOut: true,
			change: gone("web"), want: engine.Preempts},
		{name: "the same, where preemption wasn't ruled out", pod: apart(), nodes: zone, placed: inZone,
			change: gone("web"), want: engine.NoHelp},
		{name: "something else is gone, about which no rule hints", pod: apart(), nodes: zone, placed: inZone, ruledOut: true,
			before: gone("web"), change: gone("db"), want: engine.NoHelp},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := wait(c.pod, c.nodes, c.placed...)
			w.diagnosis = w.diagnosis.WithPreemption(engine.Preemption{RuledOut: c.ruledOut})
			if c.before != nil {
				c.before(w)
			}
			if got, _ := w.help(func() { c.change(w) }); got != c.want {
				t.Errorf("the change helps %d, want %d; the class waits because %s", got, c.want, w.diagnosis.Message())
			}
		})
	}
}

// TestAQuestionReturnsWhatItFoundOut asks twice. A question must not change what it is
// asked with, and has to say what it found out.
func TestAQuestionReturnsWhatItFoundOut(t *testing.T) {
	w := wait(testkit.Pod("p").Apart(v1.LabelTopologyZone, "app", "web"),
		[]*testkit.NodeBuilder{four("web").Cordon(), four("other").Cordon()}, running("web", "1", 0, "web").Label("app", "web"))
	first := w.diagnosis
	help, second := w.help(func() { w.node(four("other")) })
	if help != engine.NoHelp || second == first {
		t.Fatalf("a node is uncordoned and rejected by anti-affinity alone now: help %d, and something new is known: %v", help, second != first)
	}
	if _, again := w.engine.MayHelp(w.class, second, nil); again != second {
		t.Error("nothing new was found out, and another diagnosis is returned")
	}
	for _, c := range []struct {
		name  string
		known *engine.Diagnosis
		want  engine.Help
	}{
		{"the first diagnosis, which must be as it was", first, engine.NoHelp},
		{"the second, which knows that anti-affinity rejects a node", second, engine.Fits},
	} {
		mark := w.Mark()
		w.diagnosis = c.known
		if got, _ := w.help(func() { w.Remove("pod-web") }); got != c.want {
			t.Errorf("asked with %s: help %d, want %d", c.name, got, c.want)
		}
		w.Rollback(mark)
	}
}

// TestWhatRejectsAClassEverywhereIsTriedAgain is about reasons for which no node has to
// be evaluated.
func TestWhatRejectsAClassEverywhereIsTriedAgain(t *testing.T) {
	for _, c := range []struct {
		name string
		why  framework.Reason
		want engine.Help
	}{
		{"something in the cluster is in the way", framework.Reason{}, engine.Fits},
		{"only the pod itself can change it", framework.Reason{OfPod: true}, engine.NoHelp},
	} {
		s := nodes(four("n1"))
		e := testkit.Must(engine.New(s, &framework.Profile{Plugins: []framework.Weighted{weighted(0, &scripted{name: "No", why: &c.why})}}, engine.Options{}))
		class := e.Class(s.Schema.ParsePod(testkit.Pod("p").Obj()))
		from := s.Head()
		s.SetNode(s.Schema.ParseNode(four("n2").Obj(), ""))
		changes, _ := s.Since(from)
		if got, _ := e.MayHelp(class, e.Diagnose(class), changes); got != c.want {
			t.Errorf("%s: a change helps %d, want %d", c.name, got, c.want)
		}
	}
}

// TestAnyChangeMayHelpWhatExtendersRejected since nobody knows what they look at.
func TestAnyChangeMayHelpWhatExtendersRejected(t *testing.T) {
	w := wait(testkit.Pod("p").Req("cpu", "8"), []*testkit.NodeBuilder{four("n1")})
	w.diagnosis = w.diagnosis.WithOutside("Extender", []string{"no"})
	if got, _ := w.help(func() {}); got != engine.NoHelp {
		t.Errorf("nothing changes, and helps %d", got)
	}
	if got, _ := w.help(func() { w.node(four("n1").Cordon()) }); got != engine.Fits {
		t.Errorf("a change helps %d, want that the pod is tried, %d", got, engine.Fits)
	}
}
