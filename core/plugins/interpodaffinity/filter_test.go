package interpodaffinity_test

import (
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/berthproject/berth/core/compat"
	"github.com/berthproject/berth/internal/test/testkit"
	rt "github.com/berthproject/berth/internal/test/testkit/ruletest"
)

func TestRequiredAffinity(t *testing.T) {
	near := func(changes ...func(*v1.PodAffinityTerm)) *testkit.PodBuilder {
		return web().AffinityTerm(meets(zone, "app", "db", changes...))
	}
	both := db("b1").Label("tier", "back")
	rt.Table{Plugin: plugin, Nodes: twoZones(), Cases: []rt.Case{
		{Name: "no term", Pod: web(), Pods: rt.Pods{db("a1")}, Want: skip},
		{Name: "in the zone of the other pod", Pod: near(), Pods: rt.Pods{db("a1")}, Want: inA},
		{Name: "on its host", Pod: web().Together(hostname, "app", "db"), Pods: rt.Pods{db("a1")}, Want: rt.Want{"a1": rt.OK, rt.All: affinity}},
		{Name: "nobody meets the term", Pod: near(), Pods: rt.Pods{testkit.Pod("x").Label("app", "cache").On("a1")}, Want: nowhere},
		{Name: "a pod being deleted counts", Pod: near(), Pods: rt.Pods{db("a1").Terminating()}, Want: inA},
		{Name: "no selector selects nobody", Pod: near(noSelector), Pods: rt.Pods{db("a1")}, Want: nowhere},
		{Name: "an empty selector selects everybody", Pod: near(anyPod), Pods: rt.Pods{db("a1")}, Want: inA},
		{Name: "a node without the zone", Pod: near(), Nodes: rt.Nodes{node("a1"), testkit.Node("x")}, Pods: rt.Pods{db("a1"), db("x")},
			Want: rt.Want{"a1": rt.OK, "x": affinity}},
		{Name: "a node without a hostname", Pod: web().Together(hostname, "app", "db"), Nodes: rt.Nodes{node("a1"), node("b1").Unlabel(hostname)}, Pods: rt.Pods{db("a1"), db("b1")},
			Want: rt.Want{"a1": rt.OK, "b1": affinity}},

		{Name: "two terms, met by one pod", Pod: near().Together(zone, "tier", "back"), Pods: rt.Pods{db("a1"), both}, Want: rt.Want{"b1": rt.OK, "b2": rt.OK, rt.All: affinity}},
		{Name: "two terms, met by two pods of the zone", Pod: near().Together(zone, "tier", "back"), Pods: rt.Pods{db("a1"), testkit.Pod("x").Label("tier", "back").On("a1")}, Want: nowhere},
		{Name: "two terms over two keys", Pod: near().Together("rack", "tier", "back"), Pods: rt.Pods{both},
			Nodes: rt.Nodes{node("b1").Label("rack", "r"), node("b2").Label("rack", "s"), node("b3"), node("a1").Label("rack", "r")},
			Want:  rt.Want{"b1": rt.OK, rt.All: affinity}},
		{Name: "two terms over zone and hostname", Pod: near().Together(hostname, "tier", "back"), Pods: rt.Pods{both}, Want: rt.Want{"b1": rt.OK, rt.All: affinity}},

		{Name: "two terms over hostname and zone, on a node without a zone", Pod: web().Together(hostname, "app", "db").Together(zone, "app", "db"), Nodes: rt.Nodes{node("a1"), testkit.Node("x")},
			Pods: rt.Pods{db("a1"), db("x")}, Want: rt.Want{"a1": rt.OK, "x": affinity}},

		{Name: "the first of a kind goes anywhere", Pod: web().Together(zone, "app", "web"), Pods: rt.Pods{db("a1")}, Want: free},
		{Name: "anywhere that has the key", Pod: web().Together(zone, "app", "web"), Nodes: rt.Nodes{node("a1"), testkit.Node("x")}, Want: rt.Want{"a1": rt.OK, "x": affinity}},
		{Name: "anywhere that has a hostname", Pod: web().Together(hostname, "app", "web"), Nodes: rt.Nodes{node("a1"), node("b1").Unlabel(hostname)}, Want: rt.Want{"a1": rt.OK, "b1": affinity}},
		{Name: "the second goes to the first", Pod: web().Together(zone, "app", "web"), Pods: rt.Pods{testkit.Pod("first").Label("app", "web").On("a1")}, Want: inA},
		{Name: "a first on a node without the key is none", Pod: web().Together(zone, "app", "web"), Nodes: rt.Nodes{node("a1"), testkit.Node("x")},
			Pods: rt.Pods{testkit.Pod("first").Label("app", "web").On("x")}, Want: rt.Want{"a1": rt.OK, "x": affinity}},
		{Name: "a pod that meets one of its terms is no first", Pod: web().Together(zone, "app", "web").Together(zone, "app", "db"), Want: nowhere},
		{Name: "a first by two keys", Pod: web().Together(zone, "app", "web").Together(hostname, "app", "web"), Want: free},
		{Name: "the second by two keys", Pod: web().Together(zone, "app", "web").Together(hostname, "app", "web"), Pods: rt.Pods{testkit.Pod("first").Label("app", "web").On("a1")},
			Want: rt.Want{"a1": rt.OK, rt.All: affinity}},

		{Name: "a selector that can't be read", Pod: near(unreadable), Want: rt.Want{rt.All: rt.Everywhere(`parsing pod: requiredAffinityTerms: "Like" is not a valid label selector operator`)}},
	}}.Filter(t)
}

// Which namespaces a term is about. The pod to place is in "default", which has
// no labels.
func TestNamespacesOfTerms(t *testing.T) {
	near := func(changes ...func(*v1.PodAffinityTerm)) *testkit.PodBuilder {
		return web().AffinityTerm(meets(zone, "app", "db", changes...))
	}
	red := func() rt.Pods { return rt.Pods{db("a1").Namespaced("red")} }
	rt.Table{Plugin: plugin, Nodes: twoZones(), Objects: rt.Objects{testkit.Namespace("red", "team", "red"), testkit.Namespace("plain")}, Cases: []rt.Case{
		{Name: "the pod's own", Pod: near(), Pods: red(), Want: nowhere},
		{Name: "those listed", Pod: near(in("blue", "red")), Pods: red(), Want: inA},
		{Name: "and then not the pod's own", Pod: near(in("red")), Pods: rt.Pods{db("a1")}, Want: nowhere},
		{Name: "those selected by labels", Pod: near(inTeam("red")), Pods: red(), Want: inA},
		{Name: "and then not the pod's own either", Pod: near(inTeam("red")), Pods: rt.Pods{db("a1")}, Want: nowhere},
		{Name: "of another label", Pod: near(inTeam("blue")), Pods: red(), Want: nowhere},
		{Name: "listed and selected", Pod: near(in("plain"), inTeam("red")), Pods: rt.Pods{db("a1").Namespaced("plain"), db("a1").Namespaced("red")}, Want: inA},
		{Name: "listed or selected", Pod: near(in("plain"), inTeam("red")), Pods: rt.Pods{db("a1").Namespaced("plain")}, Want: inA},
		{Name: "an empty selector selects all", Pod: near(everywhere), Pods: rt.Pods{db("a1").Namespaced("unknown")}, Want: inA},
		{Name: "a namespace that isn't known has no labels", Pod: near(inTeam("red")), Pods: rt.Pods{db("a1").Namespaced("unknown")}, Want: nowhere},
		// Facts are shared by text: that of one term must not run into that of another.
		{Name: "namespaces and a label that read like others", Pod: web().AffinityTerm(meets(zone, "ydb", "1", in("x"))).AntiAffinityTerm(meets(zone, "db", "1", in("xy"))),
			Pods: rt.Pods{testkit.Pod("x").Label("ydb", "1").Namespaced("x").On("a1")}, Want: inA},
		{Name: "a key and namespaces that read like others", Pod: web().AffinityTerm(meets("rack", "db", "1", in("xy"))).AntiAffinityTerm(meets("rackx", "db", "1", in("y"))),
			Nodes: rt.Nodes{node("a1").Label("rack", "r").Label("rackx", "r")}, Pods: rt.Pods{testkit.Pod("x").Label("db", "1").Namespaced("xy").On("a1")}, Want: free},
		{Name: "a first of a kind in another namespace", Pod: web().AffinityTerm(meets(zone, "app", "web", in("red"))), Want: nowhere},

		{Name: "anti-affinity: the pod's own", Pod: web().Apart(zone, "app", "db"), Pods: red(), Want: free},
		{Name: "anti-affinity: selected", Pod: web().AntiAffinityTerm(meets(zone, "app", "db", inTeam("red"))), Pods: red(), Want: notInA},
		{Name: "others' anti-affinity: the owner's", Pod: web(), Pods: rt.Pods{db("a1").Apart(zone, "app", "web").Namespaced("red")}, Want: skip},
		{Name: "others' anti-affinity: listed", Pod: web(), Pods: rt.Pods{db("a1").AntiAffinityTerm(meets(zone, "app", "web", in("default"))).Namespaced("red")},
			Want: rt.Want{"a1": othersAnti, "a2": othersAnti, rt.All: rt.OK}},
		{Name: "others' anti-affinity: selected", Pod: web().Namespaced("red"), Pods: rt.Pods{db("a1").AntiAffinityTerm(meets(zone, "app", "web", inTeam("red")))},
			Want: rt.Want{"a1": othersAnti, "a2": othersAnti, rt.All: rt.OK}},
		{Name: "others' anti-affinity: of another label", Pod: web(), Pods: rt.Pods{db("a1").AntiAffinityTerm(meets(zone, "app", "web", inTeam("red")))}, Want: skip},
	}}.Filter(t)
}

// TestSelectorsThatNoLabelsMatch select every namespace in 1.36, where kube-scheduler asks a selector again
// without labels, and those that they match in 1.37. Of "default", in which the pod to place is, and
// of "unknown" there is no object. Terms of placed pods never had the fault.
func TestSelectorsThatNoLabelsMatch(t *testing.T) {
	near := func(change func(*v1.PodAffinityTerm)) *testkit.PodBuilder {
		return web().AffinityTerm(meets(zone, "app", "db", change))
	}
	apart := web().AntiAffinityTerm(meets(zone, "app", "db", noTeam))
	preferring := web().PreferTogether(5, zone, "app", "db")
	noTeam(&preferring.Spec.Affinity.PodAffinity.PreferredDuringSchedulingIgnoredDuringExecution[0].PodAffinityTerm)
	at := func(namespace string) rt.Pods { return rt.Pods{db("a1").Namespaced(namespace)} }
	others := rt.Pods{db("a1").AntiAffinityTerm(meets(zone, "app", "web", noTeam))}
	rejected := rt.Want{"a1": othersAnti, "a2": othersAnti, rt.All: rt.OK}
	scored, unscored := rt.Want{"a1": "100 raw 5", "a2": "100 raw 5", rt.All: "0 raw 0"}, rt.Want{rt.All: "0 raw 0"}
	for _, c := range []struct {
		name   string
		pod    *testkit.PodBuilder
		placed rt.Pods
		score  bool
		in36   rt.Want
		in37   rt.Want
	}{
		{"one that it matches", near(noTeam), at("plain"), false, inA, inA},
		{"one with the label", near(noTeam), at("red"), false, inA, nowhere},
		{"one that isn't known", near(noTeam), at("unknown"), false, inA, nowhere},
		{"one of the team that NotIn excludes", near(notRed), at("red"), false, inA, nowhere},
		{"one of another team", near(notRed), at("blue"), false, inA, inA},
		{"a first of its kind", web().AffinityTerm(meets(zone, "app", "web", noTeam)), nil, false, free, nowhere},
		{"a first of its kind, in a namespace that it matches", web().Namespaced("plain").AffinityTerm(meets(zone, "app", "web", noTeam)), nil, false, free, free},
		{"anti-affinity: one that it matches", apart, at("plain"), false, notInA, notInA},
		{"anti-affinity: one with the label", apart, at("red"), false, notInA, free},
		{"anti-affinity: one that isn't known", apart, at("unknown"), false, notInA, free},
		{"others' anti-affinity: one that it matches", web().Namespaced("plain"), others, false, rejected, rejected},
		{"others' anti-affinity: one with the label", web().Namespaced("red"), others, false, skip, skip},
		{"others' anti-affinity: one that isn't known", web().Namespaced("unknown"), others, false, rejected, rejected},
		{"score: one that it matches", preferring, at("plain"), true, scored, scored},
		{"score: one with the label", preferring, at("red"), true, scored, unscored},
	} {
		for v, want := range map[compat.Version]rt.Want{compat.V36: c.in36, compat.V37: c.in37} {
			table := rt.Table{Version: v, Plugin: plugin, Nodes: twoZones(), Objects: rt.Objects{testkit.Namespace("red", "team", "red"), testkit.Namespace("blue", "team", "blue"), testkit.Namespace("plain")},
				Cases: []rt.Case{{Name: c.name + " in " + v.String(), Pod: c.pod, Pods: c.placed, Want: want}}}
			if c.score {
				table.Score(t)
			} else {
				table.Filter(t)
			}
		}
	}
}

func TestRequiredAntiAffinity(t *testing.T) {
	others := rt.Want{"a1": othersAnti, "a2": othersAnti, rt.All: rt.OK}
	shy := func(on string) *testkit.PodBuilder { return db(on).Apart(zone, "app", "web") }
	rt.Table{Plugin: plugin, Nodes: twoZones(), Cases: []rt.Case{
		{Name: "not in the zone of the other pod", Pod: web().Apart(zone, "app", "db"), Pods: rt.Pods{db("a1")}, Want: notInA},
		{Name: "not on its host", Pod: web().Apart(hostname, "app", "db"), Pods: rt.Pods{db("a1")}, Want: rt.Want{"a1": ownAnti, rt.All: rt.OK}},
		{Name: "nobody meets the term", Pod: web().Apart(zone, "app", "cache"), Pods: rt.Pods{db("a1")}, Want: free},
		{Name: "a node without the key is free", Pod: web().Apart(zone, "app", "db"), Nodes: rt.Nodes{node("a1"), testkit.Node("x")}, Pods: rt.Pods{db("a1"), db("x")},
			Want: rt.Want{"a1": ownAnti, "x": rt.OK}},
		{Name: "one of two terms is enough", Pod: web().Apart(zone, "app", "cache").Apart(zone, "app", "db"), Pods: rt.Pods{db("a1")}, Want: notInA},
		{Name: "by zone and by host", Pod: web().Apart(zone, "app", "cache").Apart(hostname, "app", "db"), Pods: rt.Pods{db("a1"), testkit.Pod("x").Label("app", "cache").On("b2")},
			Want: rt.Want{"a1": ownAnti, "a2": rt.OK, rt.All: ownAnti}},

		{Name: "the other pod's term", Pod: web(), Pods: rt.Pods{shy("a1")}, Want: others},
		{Name: "the other pod's term, by host", Pod: web(), Pods: rt.Pods{db("a1").Apart(hostname, "app", "web")}, Want: rt.Want{"a1": othersAnti, rt.All: rt.OK}},
		{Name: "the other pod's term is about others", Pod: web(), Pods: rt.Pods{db("a1").Apart(zone, "app", "cache")}, Want: skip},
		{Name: "two pods own it", Pod: web(), Pods: rt.Pods{shy("a1"), shy("b1")}, Want: rt.Want{rt.All: othersAnti}},
		{Name: "its node has no such key", Pod: web(), Nodes: rt.Nodes{node("a1"), testkit.Node("x")}, Pods: rt.Pods{shy("x")}, Want: free},

		{Name: "its own speaks before others'", Pod: web().Apart(zone, "app", "db"), Pods: rt.Pods{shy("a1")}, Want: notInA},
		{Name: "its own by zone before others' by host", Pod: web().Apart(zone, "app", "db"), Pods: rt.Pods{db("a1").Apart(hostname, "app", "web")}, Want: notInA},
		{Name: "its own by host before others' by zone", Pod: web().Apart(hostname, "app", "db"), Pods: rt.Pods{shy("a1")}, Want: rt.Want{"a1": ownAnti, "a2": othersAnti, rt.All: rt.OK}},
		{Name: "affinity speaks before both", Pod: web().Together(zone, "app", "cache").Apart(zone, "app", "db"), Pods: rt.Pods{shy("a1")}, Want: nowhere},
		{Name: "near one and apart from another", Pod: web().Together(zone, "app", "db").Apart(hostname, "app", "db"), Pods: rt.Pods{db("a1")},
			Want: rt.Want{"a1": ownAnti, "a2": rt.OK, rt.All: affinity}},
		{Name: "on its host and not there", Pod: web().Together(hostname, "app", "db").Apart(zone, "app", "db"), Pods: rt.Pods{db("a1")},
			Want: rt.Want{"a1": ownAnti, rt.All: affinity}},
		{Name: "on its host and not on its host", Pod: web().Together(hostname, "app", "db").Apart(hostname, "app", "db").PreferTogether(5, hostname, "app", "db"), Pods: rt.Pods{db("a1")},
			Want: rt.Want{"a1": ownAnti, rt.All: affinity}},
		{Name: "preferences reject nothing", Pod: web().PreferApart(5, zone, "app", "db").PreferTogether(5, hostname, "app", "db"), Pods: rt.Pods{db("a1")}, Want: rt.Want{rt.All: rt.OnlyScores}},
		{Name: "nor do others' preferences", Pod: web(), Pods: rt.Pods{db("a1").PreferApart(5, zone, "app", "web")}, Want: rt.Want{rt.All: rt.OnlyScores}},
		{Name: "nor others' required affinity", Pod: web(), Pods: rt.Pods{db("a1").Together(zone, "app", "web")}, Want: rt.Want{rt.All: rt.OnlyScores}},
		{Name: "a selector that can't be read", Pod: web().AntiAffinityTerm(meets(zone, "", "", unreadable)),
			Want: rt.Want{rt.All: rt.Everywhere(`parsing pod: requiredAntiAffinityTerms: "Like" is not a valid label selector operator`)}},
	}}.Filter(t)
}
