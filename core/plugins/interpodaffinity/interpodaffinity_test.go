package interpodaffinity_test

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/plugins/interpodaffinity"
	"github.com/berthproject/berth/internal/test/testkit"
	rt "github.com/berthproject/berth/internal/test/testkit/ruletest"
)

const (
	zone     = v1.LabelTopologyZone
	hostname = v1.LabelHostname
	// Every reason of the plugin.
	affinity   = "Final: node(s) didn't match pod affinity rules"
	ownAnti    = "Reject: node(s) didn't match pod anti-affinity rules"
	othersAnti = "Reject: node(s) didn't satisfy existing pods anti-affinity rules"
)

var plugin = with(interpodaffinity.Args{HardPodAffinityWeight: interpodaffinity.DefaultHardPodAffinityWeight})

func with(args interpodaffinity.Args) rt.Make { return rt.Is(interpodaffinity.New(args)) }

// node is in a zone that its name's first letter names.
func node(name string) *testkit.NodeBuilder { return testkit.Node(name).Zone(name[:1]) }

// twoZones has two nodes in each of the zones a and b.
func twoZones() rt.Nodes { return rt.Nodes{node("a1"), node("a2"), node("b1"), node("b2")} }

// web is the pod to place, app=web; db is a placed pod, app=db.
func web() *testkit.PodBuilder { return testkit.Pod("p").Label("app", "web") }
func db(on string) *testkit.PodBuilder {
	return testkit.Pod("db").Label("app", "db").On(on)
}

// meets is a term that pods with the label meet, with changes.
func meets(key, k, v string, changes ...func(*v1.PodAffinityTerm)) v1.PodAffinityTerm {
	t := v1.PodAffinityTerm{TopologyKey: key, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{k: v}}}
	for _, f := range changes {
		f(&t)
	}
	return t
}

func in(namespaces ...string) func(*v1.PodAffinityTerm) {
	return func(t *v1.PodAffinityTerm) { t.Namespaces = namespaces }
}

func inTeam(team string) func(*v1.PodAffinityTerm) {
	return func(t *v1.PodAffinityTerm) {
		t.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"team": team}}
	}
}

func everywhere(t *v1.PodAffinityTerm) { t.NamespaceSelector = &metav1.LabelSelector{} }

func noTeam(t *v1.PodAffinityTerm) {
	t.NamespaceSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "team", Operator: metav1.LabelSelectorOpDoesNotExist}}}
}

func notRed(t *v1.PodAffinityTerm) {
	t.NamespaceSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "team", Operator: metav1.LabelSelectorOpNotIn, Values: []string{"red"}}}}
}

func noSelector(t *v1.PodAffinityTerm) { t.LabelSelector = nil }

func anyPod(t *v1.PodAffinityTerm) { t.LabelSelector = &metav1.LabelSelector{} }

func unreadable(t *v1.PodAffinityTerm) {
	t.LabelSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: "Like"}}}
}

// Answers about twoZones.
var (
	inA     = rt.Want{"a1": rt.OK, "a2": rt.OK, rt.All: affinity}
	notInA  = rt.Want{"a1": ownAnti, "a2": ownAnti, rt.All: rt.OK}
	nowhere = rt.Want{rt.All: affinity}
	free    = rt.Want{rt.All: rt.OK}
	skip    = rt.Want{rt.All: rt.Skip}
)

func TestSignature(t *testing.T) {
	terms := func(p *testkit.PodBuilder) *v1.Affinity { return p.Spec.Affinity }
	base := func() *testkit.PodBuilder {
		return web().Together(zone, "app", "web").PreferApart(5, hostname, "app", "db")
	}
	rt.Signatures{Plugin: plugin, Nodes: twoZones(), Pod: base, Cases: []rt.Change{
		rt.Differs("name", func(p *testkit.PodBuilder) { p.Name = "q" }, rt.Same),
		rt.Differs("request", func(p *testkit.PodBuilder) { p.Req("cpu", "1") }, rt.Same),
		rt.Differs("a label that no term reads", func(p *testkit.PodBuilder) { p.Label("index", "1") }, rt.Same),
		rt.Differs("whether it meets its own affinity", func(p *testkit.PodBuilder) { p.Label("app", "db") }, rt.Group),
		rt.Differs("weight", func(p *testkit.PodBuilder) {
			terms(p).PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution[0].Weight = 6
		}, rt.Group),
		rt.Differs("topology key", func(p *testkit.PodBuilder) {
			terms(p).PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution[0].TopologyKey = "rack"
		}, rt.Group),
		rt.Differs("hostname in place of zone", func(p *testkit.PodBuilder) {
			terms(p).PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution[0].TopologyKey = hostname
		}, rt.Both),
		rt.Differs("required becomes preferred", func(p *testkit.PodBuilder) {
			terms(p).PodAffinity = nil
			p.PreferTogether(0, zone, "app", "web")
		}, rt.Group),
		rt.Differs("affinity becomes anti-affinity", func(p *testkit.PodBuilder) {
			terms(p).PodAffinity = nil
			p.Apart(zone, "app", "web")
		}, rt.Group),
		rt.Differs("namespaces", func(p *testkit.PodBuilder) {
			p.Spec.Affinity = nil
			p.AffinityTerm(meets(zone, "app", "web", in("default", "other"))).PreferApart(5, hostname, "app", "db")
		}, rt.Group),
		rt.Differs("the same spelt out", func(p *testkit.PodBuilder) {
			p.Spec.Affinity = nil
			p.AffinityTerm(meets(zone, "app", "web", in("default"))).PreferApart(5, hostname, "app", "db")
		}, rt.Same),
		rt.Differs("one more", func(p *testkit.PodBuilder) { p.PreferApart(5, hostname, "app", "db") }, rt.Group),
		rt.Differs("namespace, in which its terms are", func(p *testkit.PodBuilder) { p.Namespaced("other") }, rt.Group),
	}}.Run(t)

	// One that can't be read selects nothing, and one that selects nothing.
	rt.Signatures{Plugin: plugin, Nodes: twoZones(), Pod: func() *testkit.PodBuilder { return web().AffinityTerm(meets(zone, "", "", noSelector)) }, Cases: []rt.Change{
		rt.Differs("a selector that can't be read", func(p *testkit.PodBuilder) {
			unreadable(&terms(p).PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution[0])
		}, rt.Group),
	}}.Run(t)
}

// What a pod without terms is signed with follows from the terms of placed pods.
func TestSignatureByOthersTerms(t *testing.T) {
	changes := func(labels, namespace, namespaceLabels rt.Part) []rt.Change {
		return []rt.Change{
			rt.Differs("label app", func(p *testkit.PodBuilder) { p.Label("app", "cache") }, labels),
			rt.Differs("label app gone", func(p *testkit.PodBuilder) { delete(p.Labels, "app") }, labels),
			rt.Differs("label app empty", func(p *testkit.PodBuilder) { p.Label("app", "") }, labels),
			rt.Differs("label index", func(p *testkit.PodBuilder) { p.Label("index", "1") }, rt.Same),
			rt.Differs("namespace", func(p *testkit.PodBuilder) { p.Namespaced("plain") }, namespace),
			rt.Differs("namespace with a label", func(p *testkit.PodBuilder) { p.Namespaced("red") }, namespaceLabels),
		}
	}
	objects := rt.Objects{testkit.Namespace("red", "team", "red"), testkit.Namespace("plain")}
	for name, x := range map[string]struct {
		placed *testkit.PodBuilder
		want   []rt.Change
	}{
		"no terms":                   {db("a1"), changes(rt.Same, rt.Same, rt.Same)},
		"a term that reads app":      {db("a1").Apart(zone, "app", "x"), changes(rt.Group, rt.Group, rt.Group)},
		"a term that reads no label": {db("a1").AntiAffinityTerm(meets(zone, "", "", anyPod)), changes(rt.Same, rt.Group, rt.Group)},
	} {
		t.Run(name, func(t *testing.T) {
			rt.Signatures{Plugin: plugin, Nodes: twoZones(), Objects: objects, Pods: rt.Pods{x.placed}, Pod: web, Cases: x.want}.Run(t)
		})
	}
}

// Namespaces are signed by what terms read of them.
func TestSignatureByNamespaces(t *testing.T) {
	sees := func(changes ...func(*v1.PodAffinityTerm)) rt.Pods {
		return rt.Pods{web().AffinityTerm(meets(zone, "app", "db", changes...))}
	}
	red := func(c *rt.Cluster) { c.Set(testkit.Namespace("new", "team", "red")) }
	for _, x := range []struct {
		name    string
		waiting rt.Pods
		placed  rt.Pods
		change  func(*rt.Cluster)
		want    bool
	}{
		{"a namespace that a term selects", sees(inTeam("red")), nil, red, true},
		{"a namespace that no term selects", sees(inTeam("blue")), nil, red, false},
		{"a namespace, where terms name theirs", sees(in("new")), nil, red, false},
		{"a namespace, where a term selects all", sees(everywhere), nil, red, false},
		{"labels of the pod's own, which others read", rt.Pods{web()}, rt.Pods{db("a1").AntiAffinityTerm(meets(zone, "", "", anyPod, inTeam("red")))},
			func(c *rt.Cluster) { c.Set(testkit.Namespace("default", "team", "red")) }, true},
		{"labels of the pod's own, which nobody reads", rt.Pods{web()}, rt.Pods{db("a1").Apart(zone, "app", "web")},
			func(c *rt.Cluster) { c.Set(testkit.Namespace("default", "team", "red")) }, false},
		{"another key with the same value in the pod's own", rt.Pods{web()}, rt.Pods{db("a1").AntiAffinityTerm(meets(zone, "", "", anyPod, inTeam("red")))},
			func(c *rt.Cluster) { c.Set(testkit.Namespace("default", "team", "prod")) }, true},
		{"a label of the pod's own that no selector reads", rt.Pods{web()}, rt.Pods{db("a1").AntiAffinityTerm(meets(zone, "", "", anyPod, inTeam("red")))},
			func(c *rt.Cluster) { c.Set(testkit.Namespace("default", "env", "test")) }, false},
	} {
		t.Run(x.name, func(t *testing.T) {
			if got := rt.SignsAgain(t, plugin, twoZones(), rt.Objects{testkit.Namespace("default", "env", "prod")}, x.placed, x.waiting[0], x.change); got != x.want {
				t.Errorf("another signature: %v, want %v", got, x.want)
			}
		})
	}
}

// TestReclassifies has namespaces change while pods wait, and a placed pod's term read the
// label team. ruletest checks that no pod is missing whose signature has changed.
func TestReclassifies(t *testing.T) {
	sees := func(name string, change func(*v1.PodAffinityTerm)) *testkit.PodBuilder {
		return testkit.Pod(name).AffinityTerm(meets(zone, "app", "db", change))
	}
	set := func(name string, pairs ...string) func(*rt.Cluster) {
		return func(c *rt.Cluster) { c.Set(testkit.Namespace(name, pairs...)) }
	}
	rt.Reclassifies{
		Plugin: plugin, Nodes: twoZones(),
		Objects: rt.Objects{testkit.Namespace("default", "env", "prod"), testkit.Namespace("other", "team", "blue")},
		Pods:    rt.Pods{db("a1").AntiAffinityTerm(meets(zone, "", "", anyPod, inTeam("red")))},
		Waiting: rt.Pods{
			testkit.Pod("plain"), testkit.Pod("elsewhere").Namespaced("other"),
			sees("red", inTeam("red")), sees("blue", inTeam("blue")), sees("named", in("other")),
		},
		Cases: []rt.Event[string]{
			rt.Reclassified("an annotation of a namespace", func(c *rt.Cluster) {
				n := testkit.Namespace("default", "env", "prod")
				n.Annotations = map[string]string{"note": "new"}
				c.Set(n)
			}, ""),
			rt.Reclassified("a label that no selector reads", set("default", "env", "test"), ""),
			rt.Reclassified("a label of the own namespace that placed pods' terms read", set("default", "env", "prod", "team", "green"), "plain red blue named"),
			rt.Reclassified("a namespace comes to be selected", set("default", "env", "prod", "team", "red"), "plain red blue named"),
			rt.Reclassified("a namespace is selected no more", set("other"), "elsewhere blue"),
			rt.Reclassified("a namespace that terms select comes", set("new", "team", "blue"), "blue"),
			rt.Reclassified("one that none selects comes", set("new", "env", "test"), ""),
			rt.Reclassified("a namespace goes", func(c *rt.Cluster) { c.RemoveObject(cluster.NamespaceKind, "", "other") }, "elsewhere blue"),
			rt.Reclassified("a pod comes", func(c *rt.Cluster) { c.Place(testkit.Pod("x").On("a1")) }, ""),
			rt.Reclassified("another object comes", func(c *rt.Cluster) { c.Set(testkit.Class("fast", "csi.example").Obj()) }, ""),
		},
	}.Run(t)
}

// TestReadsTerm has the terms of placed pods that make the rules of a pod's class
// out of date.
func TestReadsTerm(t *testing.T) {
	apart, near := meets(zone, "app", "web"), meets(hostname, "app", "web")
	owner := map[string]*testkit.PodBuilder{
		"required anti-affinity":  db("a1").AntiAffinityTerm(apart),
		"required affinity":       db("a1").AffinityTerm(near),
		"preferred affinity":      db("a1").PreferredAffinityTerm(5, near),
		"preferred anti-affinity": db("a1").PreferredAntiAffinityTerm(5, apart),
	}
	for _, c := range []struct {
		name string
		args interpodaffinity.Args
		pod  *testkit.PodBuilder
		want map[string]bool
	}{
		{"by default all", interpodaffinity.Args{HardPodAffinityWeight: 1}, web(),
			map[string]bool{"required anti-affinity": true, "required affinity": true, "preferred affinity": true, "preferred anti-affinity": true}},
		{"those that it meets", interpodaffinity.Args{HardPodAffinityWeight: 1}, testkit.Pod("p").Label("app", "cache"), nil},
		{"of its namespace", interpodaffinity.Args{HardPodAffinityWeight: 1}, web().Namespaced("other"), nil},
		{"hardPodAffinityWeight 0", interpodaffinity.Args{}, web(),
			map[string]bool{"required anti-affinity": true, "preferred affinity": true, "preferred anti-affinity": true}},
		{"ignorePreferredTermsOfExistingPods", interpodaffinity.Args{HardPodAffinityWeight: 1, IgnorePreferredTermsOfExistingPods: true}, web(),
			map[string]bool{"required anti-affinity": true}},
		{"ignorePreferredTermsOfExistingPods, with preferences", interpodaffinity.Args{HardPodAffinityWeight: 1, IgnorePreferredTermsOfExistingPods: true}, web().PreferApart(1, zone, "app", "x"),
			map[string]bool{"required anti-affinity": true, "required affinity": true, "preferred affinity": true, "preferred anti-affinity": true}},
	} {
		for kind, b := range owner {
			t.Run(c.name+"/"+kind, func(t *testing.T) {
				world := rt.NewCluster(t, twoZones(), nil, rt.Pods{b})
				if got := interpodaffinity.New(c.args).ReadsTerm(world.Parse(c.pod), world.State, world.Terms()[0]); got != c.want[kind] {
					t.Errorf("reads the term: %v, want %v", got, c.want[kind])
				}
			})
		}
	}
}

func TestHints(t *testing.T) {
	come := func(p *testkit.PodBuilder) func(*rt.Cluster) {
		return func(c *rt.Cluster) { p.Name = "new"; p.UID = "pod-new"; c.Place(p) }
	}
	leave := func(name string) func(*rt.Cluster) { return func(c *rt.Cluster) { c.Delete(name) } }
	change := func(n *testkit.NodeBuilder) func(*rt.Cluster) { return func(c *rt.Cluster) { c.Node(n) } }
	shy := testkit.Pod("shy").Apart(hostname, "app", "web").On("b1")
	world := rt.Case{Plugin: plugin, Nodes: twoZones(), Pods: rt.Pods{db("a1"), shy, testkit.Pod("cache").Label("app", "cache").On("a1")}}

	world.Pod = web().Apart(zone, "app", "db").PreferTogether(5, "rack", "app", "cache")
	rt.Hints{Case: world, Cases: []rt.Event[bool]{
		rt.Hint("anti-affinity: a pod that meets it leaves", leave("db"), true),
		rt.Hint("anti-affinity: a pod that meets it comes", come(db("b2")), true),
		rt.Hint("others' anti-affinity: an owner leaves", leave("shy"), true),
		rt.Hint("others' anti-affinity: an owner comes", come(testkit.Pod("").Apart(hostname, "app", "web").On("a2")), true),
		rt.Hint("a pod that only a preference reads leaves", leave("cache"), false),
		rt.Hint("a pod of another namespace comes", come(db("b2").Namespaced("other")), false),
		rt.Hint("a node comes", change(node("c1")), false), // it is touched itself
		rt.Hint("a node moves to another zone", change(testkit.Node("a1").Zone("b")), true),
		rt.Hint("a node loses its zone", change(testkit.Node("a1")), true),
		rt.Hint("a node's zone becomes empty", change(testkit.Node("a1").Zone("")), true),
		rt.Hint("a node gets another hostname", change(node("a1").Label(hostname, "x")), true),
		rt.Hint("a node gets a label that a preference reads", change(node("a1").Label("rack", "r")), false),
		rt.Hint("a node with such a pod goes", func(c *rt.Cluster) { c.RemoveNode("a1") }, true),
		rt.Hint("an empty node goes", func(c *rt.Cluster) { c.RemoveNode("b2") }, false),
		rt.Hint("a namespace comes", func(c *rt.Cluster) { c.Set(testkit.Namespace("new")) }, false),
	}}.Run(t)

	world.Pod = testkit.Pod("p").Together(zone, "app", "front")
	rt.Hints{Case: world, Cases: []rt.Event[bool]{
		rt.Hint("affinity: a pod that meets it comes", come(testkit.Pod("").Label("app", "front").On("a1")), true),
		rt.Hint("affinity: another comes", come(db("a1")), false),
		rt.Hint("affinity: a node gets a zone that was empty", change(testkit.Node("a1").Zone("")), true),
	}}.Run(t)

	world.Nodes = rt.Nodes{testkit.Node("a1"), node("b1")}
	rt.Hints{Case: world, Cases: []rt.Event[bool]{
		rt.Hint("affinity: a node without a zone gets an empty one", change(testkit.Node("a1").Zone("")), true),
		rt.Hint("affinity: a node without a zone gets another label", change(testkit.Node("a1").Label("disk", "ssd")), false),
	}}.Run(t)
}
