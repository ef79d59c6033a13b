package engine_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/engine"
	"github.com/berthproject/berth/core/framework"
	"github.com/berthproject/berth/core/plugins"
	"github.com/berthproject/berth/internal/test/testkit"
)

// rolledBackPods counts the pods that what-ifs have placed.
type rolledBackPods int

// RolledBack implements cluster.Cache.
func (p *rolledBackPods) RolledBack(_ cluster.Seq, undone []cluster.Change) {
	for _, c := range undone {
		if c.Op == cluster.PodAdded {
			*p++
		}
	}
}

// TestNominatedPodsArePlacedOnlyForRulesThatReadThem asks about nodes to each of which two pods
// of each of several apps are nominated, the apps being spread over zones by themselves.
func TestNominatedPodsArePlacedOnlyForRulesThatReadThem(t *testing.T) {
	const apps, nodes = 4, 6
	ofApp := func(name, app string) *testkit.PodBuilder {
		return testkit.Pod(name).Req("cpu", "1").Label("app", app).SpreadHard(v1.LabelTopologyZone, 1, "app", app)
	}
	for _, c := range []struct {
		app  string
		want int // pods placed for one question about all nodes
	}{
		{"app-none", 0},
		{"app-1", 2 * nodes},
	} {
		t.Run(c.app, func(t *testing.T) {
			schema := cluster.NewSchema()
			s := cluster.New(schema)
			for i := range nodes {
				name := fmt.Sprint("n", i)
				s.SetNode(schema.ParseNode(testkit.Node(name).Label(v1.LabelTopologyZone, fmt.Sprint("z", i%3)).Alloc("cpu", "8", "memory", "8Gi").Obj(), ""))
				for k := range 2 * apps {
					s.Nominate(schema.ParsePod(ofApp(fmt.Sprintf("%s-%d", name, k), fmt.Sprint("app-", k/2)).Obj()), name)
				}
			}
			var placed rolledBackPods
			s.AddCache(&placed)
			e := testkit.Must(engine.New(s, plugins.Default(schema, plugins.Options{}), engine.Options{}))
			class := e.Class(schema.ParsePod(ofApp("p", c.app).Obj()))
			question := func(name string, ask func()) {
				placed = 0
				if ask(); int(placed) != c.want {
					t.Errorf("%s places %d pods, want %d", name, placed, c.want)
				}
			}
			question("a choice", func() { e.Best(class) })
			var d *engine.Diagnosis
			question("a diagnosis", func() { d = e.Diagnose(class) })
			var touched []cluster.Change
			for i := range nodes {
				touch := cluster.Change{Op: cluster.NodeTouched, Node: cluster.NodeIndex(i)}
				touched = append(touched, touch, touch, touch)
			}
			question("whether changes help", func() { e.MayHelp(class, d, touched) })
		})
	}
}

// nominees draws nominations to nodes that subjects are asked about: of pods that rules of the
// subjects may read, and of others.
func nominees(t *rapid.T, w *testkit.World) {
	for i := range rapid.IntRange(0, 6).Draw(t, "nominees") {
		name := fmt.Sprint("awaited-", i)
		pod := &testkit.PodBuilder{Pod: *w.Pod(t, name)}
		if rapid.Bool().Draw(t, "plain") {
			pod = testkit.Pod(name).Req("cpu", "1").Label("app", rapid.SampledFrom([]string{"web", "db", "cache"}).Draw(t, "app"))
		}
		w.State.Nominate(w.State.Schema.ParsePod(pod.Obj()), rapid.SampledFrom(w.Nodes).Draw(t, "to"))
	}
}

// spread draws a pod that group rules may reject by the pods of one app.
func spread(t *rapid.T, w *testkit.World, name string) *cluster.Pod {
	pod := testkit.Pod(name).Req("cpu", "1").Label("app", "web")
	key := rapid.SampledFrom([]string{v1.LabelTopologyZone, v1.LabelHostname}).Draw(t, "over")
	switch testkit.Uniform(t, 4, "kind") {
	case 0:
		pod.SpreadHard(key, 1, "app", "web")
	case 1:
		pod.Apart(key, "app", "web")
	case 2:
		pod.Together(key, "app", "web")
	default:
		pod = &testkit.PodBuilder{Pod: *w.Pod(t, name)}
	}
	return w.State.Schema.ParsePod(pod.Obj())
}

// TestPropertyNominatedPodsAreJudgedAsInAWhatIf compares what is answered about nodes with
// nominated pods with an engine that places all of them in what-ifs.
func TestPropertyNominatedPodsAreJudgedAsInAWhatIf(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w, e, profile := setUp(rapid.IntRange(1, 5).Draw(t, "nodes"))
		byNode := testkit.Must(engine.New(w.State, profile, engine.Options{Seed: 7, Rebuilt: true}))
		w.Furnish(t)
		var history []string
		for range rapid.IntRange(5, 25).Draw(t, "before") {
			history = append(history, w.Change(t))
		}
		nominees(t, w)
		p := spread(t, w, "subject")
		d := e.Diagnose(e.Class(p))
		from, version := w.State.Head(), w.State.SignatureVersion()
		for range 4 {
			history = append(history, w.Change(t))
		}
		nominees(t, w)
		sameAsReference(t, e, profile, p, history)
		sameDiagnosis(t, e, byNode, p, history)
		changes, _ := w.State.Since(from)
		if version != w.State.SignatureVersion() {
			return // the queue has pods signed again then, and tries them
		}
		changes = slices.Clone(changes)
		got, known := e.MayHelp(e.Class(p), d, changes)
		want, knownByNode := byNode.MayHelp(byNode.Class(p), d, changes)
		if got != want || fmt.Sprint(known.Hinting()) != fmt.Sprint(knownByNode.Hinting()) {
			t.Fatalf("changes help %s %d (hints count of %s), node by node %d (%s)\nhistory:\n%s",
				p.Name(), got, known.Hinting(), want, knownByNode.Hinting(), strings.Join(history, "\n"))
		}
	})
}

// TestPropertyAPodThatARuleDoesNotReadChangesNothing is what framework.PodReader promises of all
// plugins: Filter says the same of every node once such a pod is placed.
func TestPropertyAPodThatARuleDoesNotReadChangesNothing(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w, _, profile := setUp(rapid.IntRange(1, 5).Draw(t, "nodes"))
		w.Furnish(t)
		for range rapid.IntRange(5, 25).Draw(t, "before") {
			w.Change(t)
		}
		nominees(t, w)
		p, awaited := spread(t, w, "subject"), w.State.Nominations()
		for i := range profile.Plugins {
			rules, _ := profile.Plugins[i].For(p, w.State)
			reader, ok := rules.Group.(framework.PodReader)
			for _, x := range awaited {
				if !ok || x.Node == cluster.NoNode || reader.ReadsPod(x.Pod) {
					continue
				}
				before := filtered(w.State, rules.Group)
				mark := w.State.Mark()
				w.State.PlaceAt(x.Pod, x.Node)
				after := filtered(w.State, rules.Group)
				w.State.Rollback(mark)
				if !slices.Equal(before, after) {
					t.Fatalf("%s doesn't read %s, but answers %v for %s without and %v with it", profile.Plugins[i].Name(), x.Pod.Name(), before, p.Name(), after)
				}
			}
		}
	})
}

// filtered returns what a group rule says about each node.
func filtered(s *cluster.State, r framework.GroupRule) []framework.Code {
	g := &framework.Groups{}
	s.Nodes(func(n *cluster.Node) {
		g.Nodes, g.Static, g.Host = append(g.Nodes, 1), append(g.Static, r.StaticKey(&n.NodeBasics)), append(g.Host, r.HostKey(n.Index))
	})
	for _, key := range r.TopologyKeys() {
		var domains []cluster.Domain
		s.Nodes(func(n *cluster.Node) { domains = append(domains, s.Topology(key).Of(n.Index)) })
		g.Domains = append(g.Domains, domains)
	}
	out := make([]framework.Code, g.Len())
	r.Filter(g, out)
	return out
}
