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

// readsTerms is a scripted plugin whose rules read the terms over one topology key.
type readsTerms struct {
	scripted
	key string
}

func (p *readsTerms) ReadsTerm(_ *cluster.Pod, _ *cluster.State, t *cluster.Term) bool {
	return t.TopologyKey == p.key
}

// When a placed pod brings a term that a plugin reads, the plugin makes its rules again
// at the next question, and gives back what the old ones held. Other plugins aren't asked.
func TestRulesAreMadeAgainForATermThatTheyRead(t *testing.T) {
	s := nodes(testkit.Node("n0").Zone("a"))
	group := func() *groupScript { return &groupScript{state: s, key: v1.LabelTopologyZone} }
	zone := &readsTerms{scripted{name: "Zone", rules: framework.Rules{Group: group()}}, v1.LabelTopologyZone}
	host := &readsTerms{scripted{name: "Host", rules: framework.Rules{Group: group()}}, v1.LabelHostname}
	none := &scripted{name: "None", rules: framework.Rules{Group: group()}}
	e := over(s, zone, host, none)
	c := e.Class(parsed(s, testkit.Pod("p")))
	expect := func(when string, zones, hosts int) {
		t.Helper()
		e.Best(c)
		if zone.made != zones || host.made != hosts || none.made != 1 {
			t.Errorf("%s: rules made %d, %d and %d times, want %d, %d and once", when, zone.made, host.made, none.made, zones, hosts)
		}
		if z, h := zone.rules.Group.(*groupScript).released, host.rules.Group.(*groupScript).released; z != zones-1 || h != hosts-1 {
			t.Errorf("%s: rules released %d and %d times, want %d and %d", when, z, h, zones-1, hosts-1)
		}
	}
	expect("at first", 1, 1)
	s.Place(parsed(s, testkit.Pod("plain")), "n0")
	expect("after a pod without terms", 1, 1)
	s.Place(parsed(s, testkit.Pod("z").Apart(v1.LabelTopologyZone, "app", "web")), "n0")
	expect("after a term over zones", 2, 1)
	s.Remove("pod-z")
	s.Place(parsed(s, testkit.Pod("z2").Apart(v1.LabelTopologyZone, "app", "web")), "n0")
	expect("after the same term again", 2, 1)
	s.Place(parsed(s, testkit.Pod("h").Apart(v1.LabelHostname, "app", "web")), "n0")
	expect("after a term over hostnames", 2, 2)
}

// A class that is swept gives its facts back, and its column goes with the last class
// that uses it.
func TestSweepForgetsClassesFactsAndColumns(t *testing.T) {
	schema := cluster.NewSchema()
	s := cluster.New(schema)
	s.SetNode(schema.ParseNode(testkit.Node("n0").Alloc("cpu", "4", "memory", "4Gi").Zone("a").Obj(), ""))
	local := &localScript{reads: framework.ReadsPods}
	profile := plugins.Default(schema, plugins.Options{})
	profile.Plugins = append(profile.Plugins, weighted(1, &scripted{name: "Counts", rules: framework.Rules{Local: local}}))
	e := testkit.Must(engine.New(s, profile, engine.Options{}))
	pod := func(app string) *cluster.Pod {
		return parsed(s, testkit.Pod(app).Label("app", app).SpreadHard(v1.LabelTopologyZone, 1, "app", app))
	}
	web, db := e.Class(pod("web")), e.Class(pod("db"))
	e.Best(web)
	e.Best(db)
	both := len(s.Facts())
	local.evaluated()

	e.Sweep(func(c *engine.Class) bool { return c == web })
	if one := len(s.Facts()); e.Size().Classes != 1 || one >= both || one == 0 {
		t.Errorf("after the first sweep there are %d classes and %d facts, of 2 and %d", e.Size().Classes, one, both)
	}
	if e.Class(pod("web")) != web || e.Class(pod("db")) == db {
		t.Error("a swept class came back, or one that was to be kept has gone")
	}
	e.Best(e.Class(pod("db")))
	if got := local.evaluated(); got != "" {
		t.Errorf("evaluated %q, want nothing: the column is still in use", got)
	}

	e.Sweep(func(*engine.Class) bool { return false })
	if n := len(s.Facts()); e.Size().Classes != 0 || n != 0 {
		t.Errorf("after the last sweep there are %d classes and %d facts, want none", e.Size().Classes, n)
	}
	e.Best(e.Class(pod("web")))
	if got := local.evaluated(); got != "n0" {
		t.Errorf("evaluated %q, want n0: the column had gone", got)
	}
}
