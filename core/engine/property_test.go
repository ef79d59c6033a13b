package engine_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/engine"
	"github.com/berthproject/berth/core/engine/reference"
	"github.com/berthproject/berth/core/framework"
	"github.com/berthproject/berth/core/plugins"
	"github.com/berthproject/berth/internal/test/testkit"
)

// The properties of design §6, over all plugins of the default profile.

func setUp(nodes int) (*testkit.World, *engine.Engine, *framework.Profile) {
	schema := cluster.NewSchema()
	state := cluster.New(schema)
	profile := plugins.Default(schema, plugins.Options{})
	return testkit.NewWorld(state, nodes), testkit.Must(engine.New(state, profile, engine.Options{Seed: 7})), profile
}

func dump(s *cluster.State) string {
	var b strings.Builder
	s.Dump(&b)
	return b.String()
}

// sameAsReference compares the engine's cached answers for a pod with answers from
// nothing.
func sameAsReference(t *rapid.T, e *engine.Engine, profile *framework.Profile, p *cluster.Pod, history []string) {
	want := reference.Answers(e.State(), profile, p)
	c := e.Class(p)
	bestScore, feasible := int64(-1), 0
	for _, v := range e.Answers(c) {
		name := e.State().Node(v.Node).Name
		w := want[name]
		if v.OK != w.OK || v.Score != w.Score {
			t.Fatalf("class of %s on %s: engine says ok=%v score=%d, the reference says ok=%v score=%d plugin=%s\nhistory:\n%s",
				p.Name(), name, v.OK, v.Score, w.OK, w.Score, w.Plugin, strings.Join(history, "\n"))
		}
		if v.OK {
			feasible++
			bestScore = max(bestScore, v.Score)
		}
	}
	best, breakdown, ok := e.BestWithBreakdown(c)
	if ok {
		sameBreakdown(t, e, p, best, breakdown, feasible)
	}
	if ok != (feasible > 0) || ok && best.Score != bestScore {
		t.Fatalf("best of %s: %+v ok=%v, but %d feasible nodes with best score %d", p.Name(), best, ok, feasible, bestScore)
	}
	if ok && !want[e.State().Node(best.Node).Name].OK {
		t.Fatalf("best of %s is on a node that the reference rejects", p.Name())
	}
	if !ok && want != nil {
		sameVictims(t, e, profile, p, history)
	}
	if !ok {
		rejected := map[string]int{}
		for _, w := range want {
			rejected[w.Plugin]++
		}
		if d := e.Diagnose(c); len(want) > 0 && d.Everywhere() == nil && len(d.Counts()) == 0 {
			t.Fatalf("no node for %s and no reason; the reference says %v", p.Name(), rejected)
		}
	}
}

// sameDiagnosis compares why a class fits on no node, or on some not, and why preemption doesn't
// help, with what another engine finds out node by node.
func sameDiagnosis(t *rapid.T, e, byNode *engine.Engine, p *cluster.Pod, history []string) {
	say := func(e *engine.Engine) string {
		c := e.Class(p)
		d := e.Diagnose(c)
		text := fmt.Sprintf("%s\nhints count of %s\npreemption: %s\n", d.Message(), d.Hinting(), e.PreemptionMessage(c))
		for _, x := range d.Counts() {
			text += fmt.Sprintln(x.Message, x.Nodes, x.Plugin)
			if x.Nearest != nil {
				text += fmt.Sprintf("  nearest %+v\n", *x.Nearest)
			}
		}
		return text
	}
	if got, want := say(e), say(byNode); got != want {
		t.Fatalf("%s:\n%s\nnode by node:\n%s\nhistory:\n%s", p.Name(), got, want, strings.Join(history, "\n"))
	}
}

// sameBreakdown compares the breakdown of a choice with the answers for all nodes.
func sameBreakdown(t *rapid.T, e *engine.Engine, p *cluster.Pod, best engine.Choice, a engine.Breakdown, feasible int) {
	c := e.Class(p)
	scores := e.Scores(c)[best.Node]
	for i := range scores {
		scores[i].Raw = 0
	}
	if !slices.Equal(scores, a.Scores) {
		t.Fatalf("%s on %d scores %v, and by its breakdown %v", p.Name(), best.Node, scores, a.Scores)
	}
	second, at := int64(-1), map[cluster.NodeIndex]int64{}
	for _, v := range e.Answers(c) {
		if v.OK && v.Node != best.Node {
			second, at[v.Node] = max(second, v.Score), v.Score
		}
	}
	if (a.RunnerUp == cluster.NoNode) != (feasible == 1) || feasible > 1 && (a.RunnerUpScore != second || at[a.RunnerUp] != second) {
		t.Fatalf("%s: by its breakdown the runner-up of node %d is %d with %d, of %v", p.Name(), best.Node, a.RunnerUp, a.RunnerUpScore, at)
	}
}

// sameVictims compares which pods would have to leave with the reference.
func sameVictims(t *rapid.T, e *engine.Engine, profile *framework.Profile, p *cluster.Pod, history []string) {
	want := reference.Preempt(e.State(), profile, p)
	got := map[string][]string{}
	for _, c := range e.Candidates(e.Class(p)) {
		name := e.State().Node(c.Node).Name
		for _, v := range c.Pods {
			got[name] = append(got[name], v.Name())
		}
	}
	if !maps.EqualFunc(want, got, slices.Equal[[]string]) {
		t.Fatalf("%s of priority %d would preempt %v, the reference says %v\nhistory:\n%s", p.Name(), p.Priority, got, want, strings.Join(history, "\n"))
	}
	best, ok := e.Preempt(e.Class(p))
	if ok != (len(want) > 0) || ok && want[e.State().Node(best.Node).Name] == nil {
		t.Fatalf("%s would preempt on %v (%v), one of %v", p.Name(), best, ok, want)
	}
}

// Variants of one pod that fall into one class must get one answer.
func TestPropertySignatureCoversWhatRulesRead(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w, e, profile := setUp(6)
		w.Furnish(t)
		for range 40 {
			w.Change(t)
		}
		base := w.Pod(t, "subject")
		for range rapid.IntRange(0, 6).Draw(t, "richness") {
			testkit.Perturb(t, base)
		}
		answers := map[*engine.Class]string{}
		variants := map[*engine.Class]*v1.Pod{}
		for range 24 {
			pod := base.DeepCopy()
			for range rapid.IntRange(1, 2).Draw(t, "changes") {
				testkit.Perturb(t, pod)
			}
			p := w.State.Schema.ParsePod(pod)
			c := e.Class(p)
			answer := fmt.Sprint(reference.Answers(w.State, profile, p), reference.Preempt(w.State, profile, p))
			if known, ok := answers[c]; ok && known != answer {
				t.Fatalf("one class, but answers differ:\n%s\n%s\npods:\n%+v\n%+v", known, answer, variants[c], pod)
			}
			answers[c], variants[c] = answer, pod
		}
	})
}

func TestPropertyCachedAnswersEqualFreshOnes(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w, e, profile := setUp(rapid.IntRange(1, 24).Draw(t, "nodes"))
		byNode := testkit.Must(engine.New(w.State, profile, engine.Options{Seed: 7, Rebuilt: true}))
		w.Furnish(t)
		var subjects []*cluster.Pod
		for i := range 5 {
			subjects = append(subjects, w.State.Schema.ParsePod(w.Pod(t, fmt.Sprint("s", i))))
		}
		if rapid.Bool().Draw(t, "siblings") {
			for i, p := range w.Siblings(t, "s0", "s1", "s2") {
				subjects[i] = w.State.Schema.ParsePod(p)
			}
		}
		var history []string
		var marks []cluster.Mark
		for i := range rapid.IntRange(1, 60).Draw(t, "steps") {
			switch k := rapid.IntRange(0, 19).Draw(t, "step"); {
			case k == 0:
				marks = append(marks, w.State.Mark())
				history = append(history, "mark")
			case k <= 2 && len(marks) > 0:
				w.State.Rollback(marks[len(marks)-1])
				marks = marks[:len(marks)-1]
				history = append(history, "rollback")
			case k <= 6:
				p := subjects[rapid.IntRange(0, 4).Draw(t, "subject")]
				placed := w.State.Schema.ParsePod(p.Object.DeepCopy())
				placed.UID += "-placed"
				choice, ok := e.Place(e.Class(p), placed)
				history = append(history, fmt.Sprintf("engine places %s: %v %v", p.Name(), choice, ok))
			default:
				history = append(history, w.Change(t))
			}
			if i%3 == 0 {
				p := subjects[rapid.IntRange(0, 4).Draw(t, "asked")]
				sameAsReference(t, e, profile, p, history)
				sameDiagnosis(t, e, byNode, p, history)
			}
		}
		for _, p := range subjects {
			sameAsReference(t, e, profile, p, history)
			sameDiagnosis(t, e, byNode, p, history)
		}
		for _, f := range w.State.Facts() {
			if afresh := w.State.CountAfresh(f.Spec()); !f.Equal(afresh) {
				t.Fatalf("fact %q differs from counting afresh\nhistory:\n%s", f.Key(), strings.Join(history, "\n"))
			}
		}
	})
}

func TestPropertyHintMissesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w, e, _ := setUp(rapid.IntRange(2, 5).Draw(t, "nodes"))
		w.Furnish(t)
		for range rapid.IntRange(0, 20).Draw(t, "before") {
			w.Change(t)
		}
		subject := &testkit.PodBuilder{Pod: *w.Pod(t, "subject")}
		switch testkit.Uniform(t, 5, "kind") { // so that one pod decides for many nodes
		case 0, 1:
			subject.Apart(v1.LabelTopologyZone, "app", "web")
		case 2:
			subject = testkit.Pod("subject").Label("app", "web").SpreadHard(v1.LabelTopologyZone, 1, "app", "web")
		case 3:
			subject = testkit.Pod("subject").Together(v1.LabelTopologyZone, "app", "web")
		}
		p := w.State.Schema.ParsePod(subject.Obj())
		var d *engine.Diagnosis
		var asked *engine.Class
		for range 40 {
			c := e.Class(p)
			if c != asked { // pods are then signed again, which the core sees to
				asked, d = c, nil
			}
			if _, ok := e.Best(c); ok {
				d = nil
				w.Change(t)
				continue
			}
			if d == nil { // kept while no change helps, as in the queue
				d = e.Diagnose(c)
			}
			_, could := e.Preempt(c)
			d = d.WithPreemption(engine.Preemption{RuledOut: !could})
			from := w.State.Head()
			version := w.State.SignatureVersion()
			what := w.Change(t)
			if version != w.State.SignatureVersion() {
				d = nil
				continue // pods are signed again then, which the queue sees to
			}
			changes, _ := w.State.Since(from)
			var help engine.Help
			help, d = e.MayHelp(c, d, changes)
			if e.Class(p) != c {
				continue
			}
			if _, ok := e.Best(c); ok && help != engine.Fits {
				t.Fatalf("%q let the class in, but no plugin said it may help; it was rejected by %s", what, d.Message())
			}
			if _, ok := e.Preempt(c); ok && d.Preemption().RuledOut && help == engine.NoHelp {
				t.Fatalf("after %q the class may preempt, which nothing said", what)
			}
			if help == engine.Fits {
				d = nil
			}
		}
	})
}

func TestPropertyRollbackRestoresEverything(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w, e, profile := setUp(8)
		w.Furnish(t)
		var subjects []*cluster.Pod
		for i := range 4 {
			subjects = append(subjects, w.State.Schema.ParsePod(w.Pod(t, fmt.Sprint("s", i))))
		}
		for range rapid.IntRange(0, 30).Draw(t, "before") {
			w.Change(t)
		}
		var answers []string
		ask := func(p *cluster.Pod) string {
			c := e.Class(p)
			best, ok := e.Best(c)
			return fmt.Sprint(e.Answers(c), best, ok)
		}
		for _, p := range subjects {
			answers = append(answers, ask(p))
		}
		before := dump(w.State)
		mark := w.State.Mark()
		var history []string
		for range rapid.IntRange(1, 25).Draw(t, "inside") {
			history = append(history, w.Change(t))
			if rapid.Bool().Draw(t, "look") {
				ask(subjects[rapid.IntRange(0, 3).Draw(t, "who")])
			}
			if rapid.IntRange(0, 9).Draw(t, "nest") == 0 {
				inner := w.State.Mark()
				w.Change(t)
				w.State.Rollback(inner)
			}
		}
		w.State.Rollback(mark)
		after := onlyFactsOf(before, dump(w.State))
		if after != before {
			t.Fatalf("state after rollback:\n%s\nbefore:\n%s\nhistory:\n%s", after, before, strings.Join(history, "\n"))
		}
		for i, p := range subjects {
			if got := ask(p); got != answers[i] {
				t.Fatalf("answers for %s after rollback:\n%s\nbefore:\n%s\nhistory:\n%s", p.Name(), got, answers[i], strings.Join(history, "\n"))
			}
			sameAsReference(t, e, profile, p, history)
		}
	})
}

// onlyFactsOf leaves out the facts that were first asked for inside the mark.
// They stay, and are compared with counting afresh elsewhere.
func onlyFactsOf(before, after string) string {
	var out strings.Builder
	for line := range strings.Lines(after) {
		name, _, _ := strings.Cut(line, "\" ")
		if !strings.HasPrefix(line, "fact ") || strings.Contains(before, name+"\" ") {
			out.WriteString(line)
		}
	}
	return out.String()
}

// TestPropertyFollowerEqualsPrimary replays the journal into a second state.
func TestPropertyFollowerEqualsPrimary(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w, _, _ := setUp(6)
		w.Furnish(t)
		f := cluster.Follow(w.State)
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			w.Change(t)
			if rapid.IntRange(0, 3).Draw(t, "whatif") == 0 {
				m := w.State.Mark()
				w.Change(t)
				w.State.Rollback(m)
			}
			if rapid.IntRange(0, 3).Draw(t, "sync") == 0 {
				if err := f.CatchUp(); err != nil {
					t.Fatal(err)
				}
				w.State.Trim(w.State.Head())
			}
		}
		if err := f.CatchUp(); err != nil {
			t.Fatal(err)
		}
		if got, want := dump(f.State), dump(w.State); got != want {
			t.Fatalf("follower:\n%s\nprimary:\n%s", got, want)
		}
	})
}

// TestPropertyNothingIsLeftOver takes a state and an engine through random histories with
// what-ifs, and then everything away: no table of names has an entry then.
func TestPropertyNothingIsLeftOver(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w, e, _ := setUp(6)
		w.Furnish(t)
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			mark, whatIf := w.State.Mark(), testkit.Uniform(t, 4, "what-if") == 0
			for range rapid.IntRange(1, 3).Draw(t, "changes") {
				w.Change(t)
			}
			p := w.State.Schema.ParsePod(w.Pod(t, "asks"))
			e.Best(e.Class(p))
			if whatIf {
				w.State.Rollback(mark)
			} else {
				w.State.Release(mark)
			}
			if testkit.Uniform(t, 8, "sweep") == 0 {
				e.Sweep(func(*engine.Class) bool { return testkit.Uniform(t, 2, "keep") == 0 })
				w.State.Forget()
			}
		}
		takeEverythingAway(w.State)
		e.Sweep(func(*engine.Class) bool { return false })
		w.State.Forget()
		// Lists by node index are as long as there were nodes at once.
		left := testkit.Lengths(w.State, "State.journal", "State.caches", "State.nodes", "State.free", "State.Schema", "nodeIndex.created")
		for path, n := range left {
			if n > 0 {
				t.Errorf("%s has %d entries", path, n)
			}
		}
	})
}

func takeEverythingAway(s *cluster.State) {
	var pods []*cluster.Pod
	s.Pods(func(p *cluster.Pod) { pods = append(pods, p) })
	for _, p := range pods {
		s.Remove(p.UID)
		s.SetReady(p.UID, false)
	}
	for _, n := range s.Nominations() {
		s.Nominate(n.Pod, "")
	}
	var nodes []string
	s.Nodes(func(n *cluster.Node) { nodes = append(nodes, n.Name) })
	for _, name := range nodes {
		s.RemoveNode(name)
	}
	for _, o := range s.Objects() {
		s.RemoveObject(cluster.KindOf(o), o.GetNamespace(), o.GetName())
	}
	for _, w := range s.Workloads() {
		s.RemoveWorkload(w.Kind, w.Namespace, w.Name)
	}
	for _, h := range s.Headrooms() {
		s.RemoveHeadroom(h.ID)
	}
	for _, g := range s.Groups() {
		s.SetGroup(g.ID, nil)
	}
}
