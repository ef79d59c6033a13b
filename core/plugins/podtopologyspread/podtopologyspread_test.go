package podtopologyspread_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berthproject/berth/core/plugins/podtopologyspread"
	"github.com/berthproject/berth/internal/test/testkit"
	rt "github.com/berthproject/berth/internal/test/testkit/ruletest"
)

const (
	zone     = v1.LabelTopologyZone
	hostname = v1.LabelHostname
	// Every reason of the plugin.
	missingLabel = "Final: node(s) didn't match pod topology spread constraints (missing required label)"
)

// skew is the reason of a node where the pod would make the skew larger than
// maxSkew.
func skew(key string, needs, maxSkew int) string {
	return fmt.Sprintf("Reject: node(s) didn't match pod topology spread constraints (skew over %s: needs %d, has %d)", key, needs, maxSkew)
}

var plugin = rt.Is(podtopologyspread.New(podtopologyspread.Args{}))

// node is in a zone that its name's first letter names.
func node(name string) *testkit.NodeBuilder { return testkit.Node(name).Zone(name[:1]) }

// twoZones has two nodes in each of the zones a and b.
func twoZones() rt.Nodes { return rt.Nodes{node("a1"), node("a2"), node("b1"), node("b2")} }

// pod is the pod to place. It is one of those that constraints select (app=web).
func pod() *testkit.PodBuilder { return testkit.Pod("p").Label("app", "web") }

// web places pods of app=web, given as node:count: "a1:2 b1:1".
func web(counts string) rt.Pods { return placed(testkit.Pod("web").Label("app", "web"), counts) }

func placed(b *testkit.PodBuilder, counts string) (out rt.Pods) {
	for _, part := range strings.Fields(counts) {
		name, count, _ := strings.Cut(part, ":")
		n, err := strconv.Atoi(count)
		if err != nil {
			panic(err)
		}
		on := *b
		out = append(out, rt.Times(n, on.On(name))...)
	}
	return out
}

type constraint = v1.TopologySpreadConstraint

func selects(k, v string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{k: v}}
}

// hard is a DoNotSchedule constraint over app=web, with changes.
func hard(key string, maxSkew int32, with ...func(*constraint)) constraint {
	c := constraint{TopologyKey: key, MaxSkew: maxSkew, WhenUnsatisfiable: v1.DoNotSchedule, LabelSelector: selects("app", "web")}
	for _, f := range with {
		f(&c)
	}
	return c
}

// soft is the same with ScheduleAnyway.
func soft(key string, maxSkew int32, with ...func(*constraint)) constraint {
	c := hard(key, maxSkew, with...)
	c.WhenUnsatisfiable = v1.ScheduleAnyway
	return c
}

// Changes of a constraint.
var (
	noSelector    = func(c *constraint) { c.LabelSelector = nil }
	neitherNor    = func(c *constraint) { c.WhenUnsatisfiable = "" }
	emptySelector = func(c *constraint) { c.LabelSelector = &metav1.LabelSelector{} }
	badSelector   = func(c *constraint) {
		c.LabelSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: "Like"}}}
	}
	overDB         = func(c *constraint) { c.LabelSelector = selects("app", "db") }
	ignoreAffinity = func(c *constraint) { c.NodeAffinityPolicy = policy(v1.NodeInclusionPolicyIgnore) }
	honorAffinity  = func(c *constraint) { c.NodeAffinityPolicy = policy(v1.NodeInclusionPolicyHonor) }
	honorTaints    = func(c *constraint) { c.NodeTaintsPolicy = policy(v1.NodeInclusionPolicyHonor) }
	ignoreTaints   = func(c *constraint) { c.NodeTaintsPolicy = policy(v1.NodeInclusionPolicyIgnore) }
)

func policy(p v1.NodeInclusionPolicy) *v1.NodeInclusionPolicy { return &p }

func minDomains(n int32) func(*constraint) { return func(c *constraint) { c.MinDomains = &n } }

func matchKeys(keys ...string) func(*constraint) {
	return func(c *constraint) { c.MatchLabelKeys = keys }
}

func TestSignature(t *testing.T) {
	base := func() *testkit.PodBuilder {
		return pod().Label("version", "2").Spread(hard(zone, 1, minDomains(2))).Spread(soft(hostname, 1, matchKeys("version")))
	}
	first := func(change func(*constraint)) func(*testkit.PodBuilder) {
		return func(p *testkit.PodBuilder) { change(&p.Spec.TopologySpreadConstraints[0]) }
	}
	second := func(change func(*constraint)) func(*testkit.PodBuilder) {
		return func(p *testkit.PodBuilder) { change(&p.Spec.TopologySpreadConstraints[1]) }
	}
	rt.Signatures{Plugin: plugin, Pod: base, Cases: []rt.Change{
		rt.Differs("name", func(p *testkit.PodBuilder) { p.Name = "q" }, rt.Same),
		rt.Differs("request", func(p *testkit.PodBuilder) { p.Req("cpu", "1") }, rt.Same),
		rt.Differs("a label that nothing reads", func(p *testkit.PodBuilder) { p.Label("index", "1") }, rt.Same),
		rt.Differs("preferred node affinity", func(p *testkit.PodBuilder) { p.PreferIn(1, zone, "a") }, rt.Same),
		rt.Differs("namespace", func(p *testkit.PodBuilder) { p.Namespaced("other") }, rt.Group),
		rt.Differs("whether it matches itself", func(p *testkit.PodBuilder) { p.Label("app", "db") }, rt.Group),
		rt.Differs("value of a key in matchLabelKeys", func(p *testkit.PodBuilder) { p.Label("version", "1") }, rt.Group),
		rt.Differs("nodeSelector", func(p *testkit.PodBuilder) { p.Select("disk", "ssd") }, rt.Group),
		rt.Differs("required node affinity", func(p *testkit.PodBuilder) { p.RequireIn(zone, "a") }, rt.Group),
		rt.Differs("tolerations", func(p *testkit.PodBuilder) { p.Tolerate("k") }, rt.Group),
		rt.Differs("hard: key", first(func(c *constraint) { c.TopologyKey = "rack" }), rt.Local),
		rt.Differs("hard: maxSkew", first(func(c *constraint) { c.MaxSkew = 2 }), rt.Group),
		rt.Differs("hard: minDomains", first(minDomains(3)), rt.Group),
		rt.Differs("hard: selector", first(overDB), rt.Group),
		rt.Differs("hard: nodeAffinityPolicy", first(ignoreAffinity), rt.Group),
		rt.Differs("hard: nodeAffinityPolicy spelt out", first(honorAffinity), rt.Same),
		rt.Differs("hard: nodeTaintsPolicy", first(honorTaints), rt.Group),
		rt.Differs("hard: nodeTaintsPolicy spelt out", first(ignoreTaints), rt.Same),
		rt.Differs("hard becomes soft", first(func(c *constraint) { c.WhenUnsatisfiable = v1.ScheduleAnyway }), rt.Both),
		rt.Differs("hard: a selector that can't be read", first(badSelector), rt.Group),
		rt.Differs("soft: key", second(func(c *constraint) { c.TopologyKey = "rack" }), rt.Local),
		rt.Differs("soft: maxSkew", second(func(c *constraint) { c.MaxSkew = 2 }), rt.Group),
		rt.Differs("soft: minDomains", second(minDomains(3)), rt.Same),
		rt.Differs("soft: selector", second(overDB), rt.Group),
		rt.Differs("soft: nodeAffinityPolicy", second(ignoreAffinity), rt.Group),
		rt.Differs("soft: nodeTaintsPolicy", second(honorTaints), rt.Group),
		rt.Differs("one more", func(p *testkit.PodBuilder) { p.Spread(soft("rack", 1)) }, rt.Both),
		rt.Differs("none", func(p *testkit.PodBuilder) { p.Spec.TopologySpreadConstraints = nil }, rt.Both),
	}}.Run(t)

	// A selector that can't be read selects nothing, but the pod is rejected.
	rt.Signatures{Plugin: plugin, Pod: func() *testkit.PodBuilder { return pod().Spread(hard(zone, 1, noSelector)) }, Cases: []rt.Change{
		rt.Differs("hard: no selector, and one that can't be read", first(badSelector), rt.Group),
	}}.Run(t)

	// Without constraints nothing is signed but that.
	rt.Signatures{Plugin: plugin, Pod: pod, Objects: rt.Objects{testkit.Service("s", "app", "db")}, Cases: []rt.Change{
		rt.Differs("none: namespace", func(p *testkit.PodBuilder) { p.Namespaced("other") }, rt.Same),
		rt.Differs("none: tolerations", func(p *testkit.PodBuilder) { p.Tolerate("k") }, rt.Same),
		rt.Differs("none: a Service selects it", func(p *testkit.PodBuilder) { p.Label("app", "db") }, rt.Both),
		// All keys are required of nodes, unless they are the system's.
		rt.Differs("none: the system's as its own", func(p *testkit.PodBuilder) { p.Label("app", "db").Spread(soft(hostname, 3)).Spread(soft(zone, 5)) }, rt.Both),
	}}.Run(t)
}

// The same constraints over the same keys, but all keys are required of nodes
// only where they are the pod's own.
func TestSignatureOfDefaultsAndOwn(t *testing.T) {
	rt.Signatures{Plugin: plugin, Pod: pod, Objects: rt.Objects{testkit.Service("s", "app", "web")}, Cases: []rt.Change{
		rt.Differs("own", func(p *testkit.PodBuilder) { p.Spread(soft(hostname, 3)).Spread(soft(zone, 5)) }, rt.Local),
	}}.Run(t)
}

func TestHints(t *testing.T) {
	other := func(k, v string) *testkit.PodBuilder { return testkit.Pod("new").Label(k, v).On("a2") }
	hints := []rt.Event[bool]{
		rt.Hint("a matching pod comes", func(c *rt.Cluster) { c.Place(other("app", "web")) }, true),
		rt.Hint("a matching pod leaves", func(c *rt.Cluster) { c.Delete("web") }, true),
		rt.Hint("another pod comes", func(c *rt.Cluster) { c.Place(other("app", "db")) }, false),
		rt.Hint("another pod leaves", func(c *rt.Cluster) { c.Delete("db") }, false),
		rt.Hint("a matching pod of another namespace comes", func(c *rt.Cluster) { c.Place(other("app", "web").Namespaced("other")) }, false),
		rt.Hint("a node comes", func(c *rt.Cluster) { c.Node(node("c1")) }, true),
		rt.Hint("a node is changed", func(c *rt.Cluster) { c.Node(node("b1").Label("disk", "ssd")) }, true),
		rt.Hint("a node goes", func(c *rt.Cluster) { c.RemoveNode("b2") }, true),
		rt.Hint("a claim comes", func(c *rt.Cluster) { c.Set(testkit.Claim("c", "fast").Obj()) }, false),
		rt.Hint("a Service comes", func(c *rt.Cluster) { c.Set(testkit.Service("s", "app", "web")) }, false),
	}
	world := rt.Case{Plugin: plugin, Nodes: twoZones(), Pods: append(web("a1:1"), placed(testkit.Pod("db").Label("app", "db"), "a1:1")...)}
	world.Pod = pod().Spread(hard(zone, 1))
	rt.Hints{Case: world, Cases: hints}.Run(t)
	// Pods that only a soft constraint counts let nobody in.
	world.Pod = pod().Spread(soft(zone, 1)).Spread(hard(zone, 1, overDB))
	rt.Hints{Case: world, Cases: []rt.Event[bool]{
		rt.Hint("soft: a matching pod leaves", func(c *rt.Cluster) { c.Delete("web") }, false),
		rt.Hint("soft: a pod of the hard one leaves", func(c *rt.Cluster) { c.Delete("db") }, true),
	}}.Run(t)
}

func TestReclassifies(t *testing.T) {
	list := func(c ...constraint) rt.Make {
		return rt.Is(podtopologyspread.New(podtopologyspread.Args{List: true, Constraints: c}))
	}
	waiting := rt.Pods{pod(), testkit.Pod("own").Label("app", "web").Spread(hard(zone, 1))}
	rt.Reclassifies{Plugin: list(soft(hostname, 1, noSelector), hard(zone, 1, noSelector)), Nodes: twoZones(), Waiting: waiting, Cases: []rt.Event[string]{
		rt.Reclassified("a Service comes", func(c *rt.Cluster) { c.Set(testkit.Service("s", "app", "web")) }, "p"),
		rt.Reclassified("a pod comes", func(c *rt.Cluster) { c.Place(testkit.Pod("x").On("a1")) }, ""),
		rt.Reclassified("a node comes", func(c *rt.Cluster) { c.Node(node("c1")) }, ""),
	}}.Run(t)
	// Default constraints that are soft keep no pod waiting.
	for name, make := range map[string]rt.Make{"a soft list": list(soft(hostname, 1, noSelector)), "the system defaults": plugin} {
		world := rt.NewCluster(t, twoZones(), nil, nil)
		p := make(world.Schema).(podtopologyspread.Plugin)
		for _, c := range world.Changes(func(c *rt.Cluster) { c.Set(testkit.Service("s", "app", "web")) }) {
			if p.Reclassifies(&c, world.State) != nil {
				t.Errorf("%s: a Service reclassifies pods that wait, for what only scores", name)
			}
		}
	}
}
