package engine_test

import (
	"fmt"
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/engine"
	"github.com/berthproject/berth/core/framework"
	"github.com/berthproject/berth/core/plugins"
	"github.com/berthproject/berth/internal/test/testkit"
)

// A pod that leaves one node of a zone lets a class into another of its nodes,
// which the change did not touch.
func TestHintReachesTheOtherNodesOfADomain(t *testing.T) {
	schema := cluster.NewSchema()
	s := cluster.New(schema)
	e := testkit.Must(engine.New(s, plugins.Default(schema, plugins.Options{}), engine.Options{}))
	s.SetNode(schema.ParseNode(testkit.Node("closed").Alloc("cpu", "4", "memory", "4Gi").Zone("a").Cordon().Obj(), ""))
	s.SetNode(schema.ParseNode(testkit.Node("open").Alloc("cpu", "4", "memory", "4Gi").Zone("a").Obj(), ""))
	for name, label := range map[string]string{"foe": "web", "stranger": "db"} {
		s.Place(schema.ParsePod(testkit.Pod(name).Label("app", label).Obj()), "closed")
	}
	c := e.Class(schema.ParsePod(testkit.Pod("p").Apart(v1.LabelTopologyZone, "app", "web").Obj()))
	if _, ok := e.Best(c); ok {
		t.Fatal("the pod fits beside what it is to be kept apart from")
	}
	d := e.Diagnose(c)
	for _, x := range []struct {
		gone string
		want bool
	}{{"pod-stranger", false}, {"pod-foe", true}} {
		from := s.Head()
		s.Remove(testkit.Pod(x.gone[4:]).UID)
		changes, _ := s.Since(from)
		help, known := e.MayHelp(c, d, changes)
		if got := help == engine.Fits; got != x.want {
			t.Errorf("the departure of %s may help: %v, want %v", x.gone, got, x.want)
		}
		d = known
	}
	if best, ok := e.Best(c); !ok || s.Node(best.Node).Name != "open" {
		t.Errorf("after the foe left the best node is %+v, %v", best, ok)
	}
}

// A rule that did not reject any node first is asked all the same, once the
// rule before it lets the node go.
func TestHintOfARuleThatStoodBehindAnother(t *testing.T) {
	schema := cluster.NewSchema()
	s := cluster.New(schema)
	e := testkit.Must(engine.New(s, plugins.Default(schema, plugins.Options{}), engine.Options{}))
	node := func(name string, cordoned bool) *cluster.NodeInfo {
		b := testkit.Node(name).Alloc("cpu", "4", "memory", "4Gi").Zone("a")
		b.Spec.Unschedulable = cordoned
		return schema.ParseNode(b.Obj(), "")
	}
	s.SetNode(node("foes", true))
	s.SetNode(node("other", true))
	s.Place(schema.ParsePod(testkit.Pod("foe").Label("app", "web").Obj()), "foes")
	c := e.Class(schema.ParsePod(testkit.Pod("p").Apart(v1.LabelTopologyZone, "app", "web").Obj()))
	d := e.Diagnose(c) // both nodes are cordoned, which is what rejects them first
	help := func(change func()) bool {
		from := s.Head()
		change()
		changes, _ := s.Since(from)
		help, known := e.MayHelp(c, d, changes)
		d = known
		return help == engine.Fits
	}
	if help(func() { s.SetNode(node("other", false)) }) {
		t.Error("uncordoning a node helps, though the zone is still barred")
	}
	if !help(func() { s.Remove("pod-foe") }) {
		t.Error("the foe's departure does not help")
	}
}

// A class that only local rules reject isn't woken by what happens elsewhere,
// though a plugin that rejects it scores groups too.
func TestChangesElsewhereDoNotWakeWhatLocalRulesReject(t *testing.T) {
	schema := cluster.NewSchema()
	s := cluster.New(schema)
	e := testkit.Must(engine.New(s, plugins.Default(schema, plugins.Options{}), engine.Options{}))
	s.SetNode(schema.ParseNode(testkit.Node("tainted").Alloc("cpu", "4", "memory", "4Gi").Taint("gpu", "", v1.TaintEffectNoSchedule).Obj(), ""))
	s.SetNode(schema.ParseNode(testkit.Node("preferably-not").Alloc("cpu", "4", "memory", "4Gi").Taint("spot", "", v1.TaintEffectPreferNoSchedule).Obj(), ""))
	c := e.Class(schema.ParsePod(testkit.Pod("p").Req("cpu", "8").Obj()))
	d := e.Diagnose(c)
	from := s.Head()
	s.SetGroup("g", &cluster.NodeGroup{ID: "g", Max: 3, Template: schema.ParseNode(testkit.Node("t").Obj(), "g")})
	s.Place(schema.ParsePod(testkit.Pod("other").Obj()), "tainted")
	changes, _ := s.Since(from)
	if help, _ := e.MayHelp(c, d, changes); help != engine.NoHelp {
		t.Error("a node group and another pod woke a class that is too large and doesn't tolerate a taint")
	}
}

// idle is a plugin without rules: it only takes a position in the profile.
type idle struct{}

func (idle) Name() string { return "Idle" }

func (idle) Sign(*cluster.Pod, *cluster.State, *framework.Signature, *framework.Signature) {}

func (idle) For(*cluster.Pod, *cluster.State) (framework.Rules, *framework.Reason) {
	return framework.Rules{}, nil
}

// The hints of a plugin count wherever in the profile it stands.
func TestHintsCountAtEveryPositionOfTheProfile(t *testing.T) {
	for _, before := range []int{0, 40, 63, 64, 65, 130, 300} {
		t.Run(fmt.Sprint(before, " plugins before"), func(t *testing.T) {
			schema := cluster.NewSchema()
			s := cluster.New(schema)
			profile := plugins.Default(schema, plugins.Options{})
			profile.Plugins = append(slices.Repeat([]framework.Weighted{{Plugin: idle{}}}, before), profile.Plugins...)
			e := testkit.Must(engine.New(s, profile, engine.Options{}))
			s.SetNode(schema.ParseNode(testkit.Node("closed").Alloc("cpu", "4", "memory", "4Gi").Zone("a").Cordon().Obj(), ""))
			s.SetNode(schema.ParseNode(testkit.Node("open").Alloc("cpu", "4", "memory", "4Gi").Zone("a").Obj(), ""))
			s.Place(schema.ParsePod(testkit.Pod("foe").Label("app", "web").Obj()), "closed")
			c := e.Class(schema.ParsePod(testkit.Pod("p").Apart(v1.LabelTopologyZone, "app", "web").Obj()))
			d := e.Diagnose(c)
			from := s.Head()
			s.Remove("pod-foe")
			changes, _ := s.Since(from)
			if got, _ := e.MayHelp(c, d, changes); got != engine.Fits {
				t.Errorf("after the foe's departure MayHelp says %d, want %d: %s", got, engine.Fits, d.Message())
			}
		})
	}
}
