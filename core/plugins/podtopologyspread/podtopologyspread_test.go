package podtopologyspread_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berthproject/berth/core/plugins/podtopologyspread"
	"github.com/berthproject/berth/internal/testkit"
	rt "github.com/berthproject/berth/internal/testkit/ruletest"
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

func TestHardConstraints(t *testing.T) {
	rt.Table{Plugin: plugin, Nodes: twoZones(), Cases: []rt.Case{
		{Name: "no constraint", Pod: pod(), Pods: web("a1:5"), Want: rt.Want{rt.All: rt.Skip}},
		{Name: "no pods", Pod: pod().Spread(hard(zone, 1)), Want: rt.Want{rt.All: rt.OK}},
		{Name: "zones of equal count", Pod: pod().Spread(hard(zone, 1)), Pods: web("a1:2 a2:1 b1:3"), Want: rt.Want{rt.All: rt.OK}},
		{Name: "the pod would be one too many in zone a", Pod: pod().Spread(hard(zone, 1)), Pods: web("a1:1"),
			Want: rt.Want{"a1": skew(zone, 2, 1), "a2": skew(zone, 2, 1), "b1": rt.OK, "b2": rt.OK}},
		{Name: "a larger maxSkew lets it in", Pod: pod().Spread(hard(zone, 2)), Pods: web("a1:1"), Want: rt.Want{rt.All: rt.OK}},
		{Name: "over the hostname each node is a domain", Pod: pod().Spread(hard(hostname, 1)), Pods: web("a1:2 a2:1 b2:3"),
			Want: rt.Want{"a1": skew(hostname, 3, 1), "a2": skew(hostname, 2, 1), "b1": rt.OK, "b2": skew(hostname, 4, 1)}},
		{Name: "over the hostname with maxSkew 2", Pod: pod().Spread(hard(hostname, 2)), Pods: web("a1:2 a2:1 b2:3"),
			Want: rt.Want{"a1": skew(hostname, 3, 2), "a2": rt.OK, "b1": rt.OK, "b2": skew(hostname, 4, 2)}},
		{Name: "a pod that doesn't match itself needs less room", Pod: testkit.Pod("p").Spread(hard(hostname, 1)), Pods: web("a1:2 a2:1 b2:3"),
			Want: rt.Want{"a1": skew(hostname, 2, 1), "a2": rt.OK, "b1": rt.OK, "b2": skew(hostname, 3, 1)}},
		{Name: "skew counts from the lowest, not from 0", Pod: pod().Spread(hard(hostname, 1)), Pods: web("a1:3 a2:2 b1:2 b2:2"),
			Want: rt.Want{"a1": skew(hostname, 2, 1), rt.All: rt.OK}},
		{Name: "a soft constraint rejects nothing", Pod: pod().Spread(soft(zone, 1)), Pods: web("a1:5"), Want: rt.Want{rt.All: rt.OnlyScores}},
		{Name: "nor does one beside a hard one", Pod: pod().Spread(soft(hostname, 1)).Spread(hard(zone, 1)), Pods: web("a1:1 b1:1"), Want: rt.Want{rt.All: rt.OK}},
	}}.Filter(t)
}

// Which pods a constraint counts.
func TestPodsThatCount(t *testing.T) {
	over := func(with ...func(*constraint)) *testkit.PodBuilder {
		return pod().Label("version", "2").Spread(hard(zone, 1, with...))
	}
	full := rt.Want{"a1": skew(zone, 3, 1), "a2": skew(zone, 3, 1), "b1": rt.OK, "b2": rt.OK}
	free := rt.Want{rt.All: rt.OK}
	two := func(b *testkit.PodBuilder) rt.Pods { return placed(b.Label("app", "web"), "a1:2") }
	rt.Table{Plugin: plugin, Nodes: twoZones(), Cases: []rt.Case{
		{Name: "of the same namespace", Pod: over(), Pods: two(testkit.Pod("x")), Want: full},
		{Name: "not of another namespace", Pod: over(), Pods: two(testkit.Pod("x").Namespaced("other")), Want: free},
		{Name: "not those being deleted", Pod: over(), Pods: two(testkit.Pod("x").Terminating()), Want: free},
		{Name: "not those without the label", Pod: over(overDB), Pods: two(testkit.Pod("x")), Want: free},
		{Name: "none without a selector", Pod: over(noSelector), Pods: two(testkit.Pod("x")), Want: free},
		{Name: "none with an empty selector", Pod: over(emptySelector), Pods: two(testkit.Pod("x")), Want: free},
		{Name: "matchLabelKeys: of the pod's value", Pod: over(matchKeys("version")), Pods: two(testkit.Pod("x").Label("version", "2")), Want: full},
		{Name: "matchLabelKeys: not of another value", Pod: over(matchKeys("version")), Pods: two(testkit.Pod("x").Label("version", "1")), Want: free},
		{Name: "matchLabelKeys: a key that the pod lacks is left out", Pod: over(matchKeys("absent")), Pods: two(testkit.Pod("x")), Want: full},
		{Name: "matchLabelKeys: with an empty selector", Pod: over(emptySelector, matchKeys("version")), Pods: two(testkit.Pod("x").Label("version", "2")), Want: full},
		{Name: "matchLabelKeys: without a selector", Pod: over(noSelector, matchKeys("version")), Pods: two(testkit.Pod("x").Label("version", "2")), Want: free},
		{Name: "a selector that can't be read", Pod: over(badSelector),
			Want: rt.Want{rt.All: rt.Everywhere(`parsing pod: topologySpreadConstraints[0].labelSelector: "Like" is not a valid label selector operator`)}},
		{Name: "the first of two that can't be read", Pod: over().Spread(hard(zone, 1, badSelector)).Spread(soft(zone, 1, badSelector)),
			Want: rt.Want{rt.All: rt.Everywhere(`parsing pod: topologySpreadConstraints[1].labelSelector: "Like" is not a valid label selector operator`)}},
	}}.Filter(t)
}

// Which nodes, and with them which domains, a hard constraint counts.
func TestNodesThatCount(t *testing.T) {
	unzoned := func() *testkit.NodeBuilder { return testkit.Node("x") }
	tainted := func(e v1.TaintEffect) rt.Nodes {
		return rt.Nodes{node("a1"), node("b1").Taint("dedicated", "db", e)}
	}
	inZones := func(zones ...string) *testkit.PodBuilder { return pod().RequireIn(zone, zones...) }
	rt.Table{Plugin: plugin, Nodes: twoZones(), Cases: []rt.Case{
		{Name: "a node without the key takes no pod", Pod: pod().Spread(hard(zone, 1)), Nodes: rt.Nodes{node("a1"), unzoned()},
			Want: rt.Want{"a1": rt.OK, "x": missingLabel}},
		{Name: "and its pods don't count", Pod: pod().Spread(hard(zone, 1)), Nodes: rt.Nodes{node("a1"), node("b1"), unzoned()}, Pods: web("a1:1 b1:1 x:4"),
			Want: rt.Want{"a1": rt.OK, "b1": rt.OK, "x": missingLabel}},
		{Name: "no node has the key", Pod: pod().Spread(hard("rack", 1)), Want: rt.Want{rt.All: missingLabel}},
		{Name: "a node without a hostname label", Pod: pod().Spread(hard(hostname, 1)), Nodes: rt.Nodes{node("a1"), node("b1").Unlabel(hostname)}, Pods: web("b1:3"),
			Want: rt.Want{"a1": rt.OK, "b1": missingLabel}},
		{Name: "a node without a hostname label or a zone, which a soft one is over", Pod: pod().Spread(hard(hostname, 1)).Spread(soft(zone, 1)),
			Nodes: rt.Nodes{node("a1"), testkit.Node("x").Unlabel(hostname)}, Want: rt.Want{"a1": rt.OK, "x": missingLabel}},
		{Name: "a node counts for no constraint when it lacks the key of one", Pod: pod().Spread(hard(zone, 1)).Spread(hard("rack", 5)),
			Nodes: rt.Nodes{node("a1").Label("rack", "r1"), node("b1").Label("rack", "r2"), node("c1")}, Pods: web("a1:1 b1:1"),
			Want: rt.Want{"a1": rt.OK, "b1": rt.OK, "c1": missingLabel}},
		{Name: "an empty value is a domain", Pod: pod().Spread(hard(zone, 1)), Nodes: rt.Nodes{node("a1"), testkit.Node("x").Zone("")}, Pods: web("a1:1"),
			Want: rt.Want{"a1": skew(zone, 2, 1), "x": rt.OK}},

		{Name: "nodeAffinityPolicy: Honor is the default", Pod: inZones("a", "b").Spread(hard(zone, 1)), Nodes: append(twoZones(), node("c1")), Pods: web("a1:1 b1:1"),
			Want: rt.Want{rt.All: rt.OK}},
		{Name: "nodeAffinityPolicy: Honor, so the empty zone c isn't the lowest", Pod: inZones("a", "b").Spread(hard(zone, 1, honorAffinity)), Nodes: append(twoZones(), node("c1")), Pods: web("a1:1 b1:1"),
			Want: rt.Want{rt.All: rt.OK}},
		{Name: "nodeAffinityPolicy: Ignore, so the empty zone c is", Pod: inZones("a", "b").Spread(hard(zone, 1, ignoreAffinity)), Nodes: append(twoZones(), node("c1")), Pods: web("a1:1 b1:1"),
			Want: rt.Want{"c1": rt.OK, rt.All: skew(zone, 2, 1)}},
		{Name: "nodeAffinityPolicy: a nodeSelector counts too", Pod: pod().Select(zone, "a").Spread(hard(hostname, 1)), Pods: web("a1:1 a2:1"),
			Want: rt.Want{rt.All: rt.OK}},
		{Name: "nodeAffinityPolicy: pods on nodes left out don't count", Pod: pod().RequireIn(hostname, "a1", "b1", "b2").Spread(hard(zone, 1)), Pods: web("a1:1 a2:3 b1:1"),
			Want: rt.Want{rt.All: rt.OK}},

		{Name: "nodeTaintsPolicy: Ignore is the default", Pod: pod().Spread(hard(zone, 1)), Nodes: tainted(v1.TaintEffectNoSchedule), Pods: web("a1:1"),
			Want: rt.Want{"a1": skew(zone, 2, 1), "b1": rt.OK}},
		{Name: "nodeTaintsPolicy: Ignore", Pod: pod().Spread(hard(zone, 1, ignoreTaints)), Nodes: tainted(v1.TaintEffectNoSchedule), Pods: web("a1:1"),
			Want: rt.Want{"a1": skew(zone, 2, 1), "b1": rt.OK}},
		{Name: "nodeTaintsPolicy: Honor leaves NoSchedule out", Pod: pod().Spread(hard(zone, 1, honorTaints)), Nodes: tainted(v1.TaintEffectNoSchedule), Pods: web("a1:1"),
			Want: rt.Want{rt.All: rt.OK}},
		{Name: "nodeTaintsPolicy: Honor leaves NoExecute out", Pod: pod().Spread(hard(zone, 1, honorTaints)), Nodes: tainted(v1.TaintEffectNoExecute), Pods: web("a1:1"),
			Want: rt.Want{rt.All: rt.OK}},
		{Name: "nodeTaintsPolicy: Honor keeps PreferNoSchedule", Pod: pod().Spread(hard(zone, 1, honorTaints)), Nodes: tainted(v1.TaintEffectPreferNoSchedule), Pods: web("a1:1"),
			Want: rt.Want{"a1": skew(zone, 2, 1), "b1": rt.OK}},
		{Name: "nodeTaintsPolicy: Honor keeps what is tolerated", Pod: pod().Tolerate("dedicated").Spread(hard(zone, 1, honorTaints)), Nodes: tainted(v1.TaintEffectNoSchedule), Pods: web("a1:1"),
			Want: rt.Want{"a1": skew(zone, 2, 1), "b1": rt.OK}},
	}}.Filter(t)
}

// KEP-3022: with fewer domains than minDomains the lowest count is 0.
func TestMinDomains(t *testing.T) {
	atLeast := func(n int32) *testkit.PodBuilder { return pod().Spread(hard(zone, 1, minDomains(n))) }
	missing := rt.Want{rt.All: skew(zone, 2, 1)}
	rt.Table{Plugin: plugin, Nodes: twoZones(), Cases: []rt.Case{
		{Name: "more domains", Pod: atLeast(1), Pods: web("a1:1 b1:1"), Want: rt.Want{rt.All: rt.OK}},
		{Name: "as many domains", Pod: atLeast(2), Pods: web("a1:1 b1:1"), Want: rt.Want{rt.All: rt.OK}},
		{Name: "fewer domains", Pod: atLeast(3), Pods: web("a1:1 b1:1"), Want: missing},
		{Name: "fewer domains, by hostname", Pod: pod().Spread(hard(hostname, 2, minDomains(5))), Pods: web("a1:2 a2:2 b1:2 b2:1"),
			Want: rt.Want{"b2": rt.OK, rt.All: skew(hostname, 3, 2)}},
		{Name: "domains that no node the pod may go to is in don't count", Pod: atLeast(2).RequireIn(zone, "a"), Pods: web("a1:1"),
			Want: rt.Want{rt.All: skew(zone, 2, 1), "b1": rt.OK, "b2": rt.OK}},
	}}.Filter(t)
}

func TestSeveralConstraints(t *testing.T) {
	both := pod().Spread(hard(zone, 1)).Spread(hard(hostname, 1))
	rt.Table{Plugin: plugin, Nodes: twoZones(), Cases: []rt.Case{
		{Name: "all have to be met", Pod: both, Pods: web("a1:2 a2:1 b2:3"),
			Want: rt.Want{"a1": skew(hostname, 3, 1), "a2": skew(hostname, 2, 1), "b1": rt.OK, "b2": skew(hostname, 4, 1)}},
		{Name: "the first that isn't speaks", Pod: both, Pods: web("a1:2 a2:1 b2:4"),
			Want: rt.Want{"a1": skew(hostname, 3, 1), "a2": skew(hostname, 2, 1), "b1": skew(zone, 2, 1), "b2": skew(zone, 2, 1)}},
		{Name: "in the pod's order", Pod: pod().Spread(hard(hostname, 1)).Spread(hard(zone, 1)), Pods: web("a1:2 a2:1 b2:4"),
			Want: rt.Want{"a1": skew(hostname, 3, 1), "a2": skew(hostname, 2, 1), "b1": skew(zone, 2, 1), "b2": skew(hostname, 5, 1)}},
		{Name: "a missing label after one that isn't met", Pod: pod().Spread(hard(zone, 1)).Spread(hard("rack", 1)), Pods: web("a1:2"),
			Nodes: rt.Nodes{node("a1").Label("rack", "r"), node("a2"), node("b1").Label("rack", "s")},
			Want:  rt.Want{"a1": skew(zone, 3, 1), "a2": skew(zone, 3, 1), "b1": rt.OK}},
		{Name: "a missing label after one by hostname that isn't met", Pod: pod().Spread(hard(hostname, 1)).Spread(hard("rack", 1)), Pods: web("a1:2"),
			Nodes: rt.Nodes{node("a1").Label("rack", "r"), node("a2"), node("b1").Label("rack", "s")},
			Want:  rt.Want{"a1": skew(hostname, 3, 1), "a2": missingLabel, "b1": rt.OK}},
		{Name: "no hostname after one that isn't met", Pod: pod().Spread(hard(zone, 1)).Spread(hard(hostname, 1)), Pods: web("a1:2"),
			Nodes: rt.Nodes{node("a1"), node("a2").Unlabel(hostname), node("b1")},
			Want:  rt.Want{"a1": skew(zone, 3, 1), "a2": skew(zone, 3, 1), "b1": rt.OK}},
		{Name: "each selects its own pods", Pod: pod().Spread(hard(zone, 1)).Spread(hard(hostname, 1, overDB)),
			Pods: append(web("a1:1"), placed(testkit.Pod("db").Label("app", "db"), "b2:2")...),
			Want: rt.Want{"a1": skew(zone, 2, 1), "a2": skew(zone, 2, 1), "b1": rt.OK, "b2": skew(hostname, 2, 1)}},
		{Name: "two over the hostname", Pod: pod().Spread(hard(hostname, 1)).Spread(hard(hostname, 1, overDB)),
			Pods: append(web("a1:1"), placed(testkit.Pod("db").Label("app", "db"), "b2:2")...),
			Want: rt.Want{"a1": skew(hostname, 2, 1), "b2": skew(hostname, 2, 1), rt.All: rt.OK}},
		{Name: "a soft one over the same pods counts apart", Pod: pod().Spread(soft(zone, 1)).Spread(hard(zone, 1)), Pods: web("a1:2 b1:1"),
			Want: rt.Want{"a1": skew(zone, 2, 1), "a2": skew(zone, 2, 1), "b1": rt.OK, "b2": rt.OK}},
		{Name: "two over one key", Pod: pod().Spread(hard(zone, 3)).Spread(hard(zone, 1, overDB)),
			Pods: append(web("a1:3"), placed(testkit.Pod("db").Label("app", "db"), "b2:2")...),
			Want: rt.Want{"a1": skew(zone, 4, 3), "a2": skew(zone, 4, 3), "b1": skew(zone, 2, 1), "b2": skew(zone, 2, 1)}},
		{Name: "each with its own policy", Pod: pod().RequireIn(zone, "a", "b").Spread(hard(zone, 1)).Spread(hard(hostname, 1, ignoreAffinity)),
			Nodes: append(twoZones(), node("c1")), Pods: web("a1:1 b1:1"),
			Want: rt.Want{"a1": skew(hostname, 2, 1), "b1": skew(hostname, 2, 1), rt.All: rt.OK}},
	}}.Filter(t)
}

// KEP-1258: pods without constraints of their own get default ones, over what
// selects them.
func TestDefaultConstraints(t *testing.T) {
	list := func(c ...constraint) rt.Make {
		return rt.Is(podtopologyspread.New(podtopologyspread.Args{List: true, Constraints: c}))
	}
	bare := func(c constraint) constraint { c.LabelSelector = nil; return c }
	full := rt.Want{"a1": skew(zone, 2, 1), "a2": skew(zone, 2, 1), "b1": rt.OK, "b2": rt.OK}
	skip := rt.Want{rt.All: rt.Skip}
	service := testkit.Service("s", "app", "web")
	elsewhere := testkit.Service("s", "app", "web")
	elsewhere.Namespace = "other"
	owned := func(apiVersion, kind string) *testkit.PodBuilder { return pod().Owner(apiVersion, kind, "o") }
	rt.Table{Plugin: list(bare(hard(zone, 1))), Nodes: twoZones(), Cases: []rt.Case{
		{Name: "a Service selects the pod", Pod: pod(), Pods: web("a1:1"), Objects: rt.Objects{service}, Want: full},
		{Name: "two Services select it: pods of both count", Pod: pod().Label("tier", "front"), Pods: web("a1:1"), Objects: rt.Objects{service, testkit.Service("t", "tier", "front")}, Want: rt.Want{rt.All: rt.OK}},
		{Name: "a Service selects others", Pod: pod(), Pods: web("a1:1"), Objects: rt.Objects{testkit.Service("s", "app", "db")}, Want: skip},
		{Name: "a Service of another namespace", Pod: pod(), Pods: web("a1:1"), Objects: rt.Objects{elsewhere}, Want: skip},
		{Name: "nothing selects it", Pod: pod(), Pods: web("a1:1"), Want: skip},
		{Name: "its ReplicaSet", Pod: owned("apps/v1", "ReplicaSet"), Pods: web("a1:1"), Objects: rt.Objects{testkit.ReplicaSet("o", "app", "web")}, Want: full},
		{Name: "its StatefulSet", Pod: owned("apps/v1", "StatefulSet"), Pods: web("a1:1"), Objects: rt.Objects{testkit.StatefulSet("o", "app", "web")}, Want: full},
		{Name: "its ReplicationController", Pod: owned("v1", "ReplicationController"), Pods: web("a1:1"), Objects: rt.Objects{testkit.ReplicationController("o", "app", "web")}, Want: full},
		{Name: "a ReplicationController of another version", Pod: owned("v2", "ReplicationController"), Objects: rt.Objects{testkit.ReplicationController("o", "app", "web")}, Want: skip},
		{Name: "a ReplicaSet of another version", Pod: owned("apps/v2", "ReplicaSet"), Objects: rt.Objects{testkit.ReplicaSet("o", "app", "web")}, Want: skip},
		{Name: "a StatefulSet of another version", Pod: owned("apps/v2", "StatefulSet"), Objects: rt.Objects{testkit.StatefulSet("o", "app", "web")}, Want: skip},
		{Name: "an owner that isn't the controller", Pod: owned("apps/v1", "ReplicaSet").With(func(p *v1.Pod) { p.OwnerReferences[0].Controller = nil }), Objects: rt.Objects{testkit.ReplicaSet("o", "app", "web")}, Want: skip},
		{Name: "a controller that doesn't exist", Pod: owned("apps/v1", "ReplicaSet"), Objects: rt.Objects{testkit.ReplicaSet("another", "app", "web")}, Want: skip},
		{Name: "a ReplicationController that doesn't exist", Pod: owned("v1", "ReplicationController"), Want: skip},
		{Name: "a controller of another kind", Pod: owned("batch/v1", "Job"), Want: skip},
		{Name: "a Service and a ReplicaSet: pods of both count", Pod: owned("apps/v1", "ReplicaSet").Label("version", "2"), Pods: web("a1:1"),
			Objects: rt.Objects{service, testkit.ReplicaSet("o", "version", "2")}, Want: rt.Want{rt.All: rt.OK}},
		{Name: "a Service and a ReplicationController: pods of both count", Pod: owned("v1", "ReplicationController").Label("version", "2"), Pods: web("a1:1"),
			Objects: rt.Objects{service, testkit.ReplicationController("o", "version", "2")}, Want: rt.Want{rt.All: rt.OK}},
		{Name: "constraints of its own come instead", Pod: pod().Spread(soft(hostname, 1)), Pods: web("a1:1"), Objects: rt.Objects{service}, Want: rt.Want{rt.All: rt.OnlyScores}},
		{Name: "an empty list", Plugin: list(), Pod: pod(), Objects: rt.Objects{service}, Want: skip},
		{Name: "a list of soft ones", Plugin: list(bare(soft(zone, 1))), Pod: pod(), Objects: rt.Objects{service}, Want: rt.Want{rt.All: rt.OnlyScores}},
		{Name: "the system defaults are soft", Plugin: plugin, Pod: pod(), Objects: rt.Objects{service}, Want: rt.Want{rt.All: rt.OnlyScores}},
		{Name: "the system defaults, when nothing selects the pod", Plugin: plugin, Pod: pod(), Want: skip},
	}}.Filter(t)
}

// A raw score is pods × ln(domains + 2) + maxSkew − 1, summed over the soft
// constraints and rounded; normalised it is
// 100 × (highest + lowest − raw) / highest. ln 3 = 1.10, ln 4 = 1.39, ln 5 = 1.61,
// ln 6 = 1.79.
func TestSoftConstraints(t *testing.T) {
	all := func(answer string) rt.Want { return rt.Want{rt.All: answer} }
	over := func(c ...constraint) *testkit.PodBuilder {
		p := pod()
		for i := range c {
			p.Spread(c[i])
		}
		return p
	}
	rt.Table{Plugin: plugin, Nodes: twoZones(), Cases: []rt.Case{
		{Name: "no pods", Pod: over(soft(hostname, 1)), Want: all("100 raw 0")},
		{Name: "no pods, and a raw score from maxSkew", Pod: over(soft(hostname, 4)), Want: all("100 raw 3")},
		{Name: "one node", Pod: over(soft(hostname, 1)), Nodes: rt.Nodes{node("a1")}, Pods: web("a1:3"), Want: all("100 raw 3")},
		{Name: "the same number everywhere", Pod: over(soft(hostname, 1)), Pods: web("a1:1 a2:1 b1:1 b2:1"), Want: all("100 raw 2")},
		{Name: "nodes of 2, 1, 0 and 3", Pod: over(soft(hostname, 1)), Pods: web("a1:2 a2:1 b2:3"),
			Want: rt.Want{"a1": "20 raw 4", "a2": "60 raw 2", "b1": "100 raw 0", "b2": "0 raw 5"}},
		{Name: "a larger maxSkew evens out", Pod: over(soft(hostname, 2)), Pods: web("a1:2 a2:1 b2:3"),
			Want: rt.Want{"a1": "33 raw 5", "a2": "66 raw 3", "b1": "100 raw 1", "b2": "16 raw 6"}},
		{Name: "zones of 3 and 1", Pod: over(soft(zone, 1)), Pods: web("a1:2 a2:1 b1:1"),
			Want: rt.Want{"a1": "25 raw 4", "a2": "25 raw 4", "b1": "100 raw 1", "b2": "100 raw 1"}},
		{Name: "zone and hostname add up", Pod: over(soft(zone, 1), soft(hostname, 1)), Pods: web("a1:2 a2:1 b1:1"),
			// 3·1.39 + 2·1.79 = 7.7; 3·1.39 + 1.79 = 5.9; 1.39 + 1.79 = 3.2; 1.39.
			Want: rt.Want{"a1": "12 raw 8", "a2": "37 raw 6", "b1": "75 raw 3", "b2": "100 raw 1"}},
		{Name: "zone and rack add up", Pod: over(soft(zone, 1), soft("rack", 1)), Pods: web("a1:2 a2:1 b1:1"),
			Nodes: rt.Nodes{node("a1").Label("rack", "r"), node("a2").Label("rack", "s"), node("b1").Label("rack", "r"), node("b2").Label("rack", "t")},
			// Zones a: 3, b: 1; racks r: 3, s: 1, t: 0. 3·1.39 + 3·1.61 = 9; 3·1.39 + 1.61 = 5.8; 1.39 + 3·1.61 = 6.2; 1.39.
			Want: rt.Want{"a1": "11 raw 9", "a2": "44 raw 6", "b1": "44 raw 6", "b2": "100 raw 1"}},
		{Name: "with selectors of their own", Pod: over(soft(zone, 1), soft(hostname, 1, overDB)),
			Pods: append(web("a1:1"), placed(testkit.Pod("db").Label("app", "db"), "b2:2")...),
			Want: rt.Want{"a1": "75 raw 1", "a2": "75 raw 1", "b1": "100 raw 0", "b2": "0 raw 4"}},
		{Name: "a hard one over the hostname counts apart", Pod: over(hard(hostname, 9, overDB), soft(hostname, 1)),
			Pods: append(web("a1:1"), placed(testkit.Pod("db").Label("app", "db"), "a1:1 b2:2")...),
			Want: rt.Want{"a1": "0 raw 2", rt.All: "100 raw 0"}},
		{Name: "a hard constraint isn't scored", Pod: over(hard(zone, 9), soft(hostname, 1)), Pods: web("a1:3"),
			Want: rt.Want{"a1": "0 raw 5", rt.All: "100 raw 0"}},
		{Name: "hard constraints only", Pod: over(hard(zone, 9)), Pods: web("a1:3"), Want: all("0 raw 0")},

		{Name: "domains of nodes that can't take the pod don't weigh", Pod: over(soft(hostname, 1)), Pods: web("a1:1 a2:2"), Elsewhere: []string{"b1", "b2"},
			Want: rt.Want{"a1": "100 raw 1", "a2": "33 raw 3"}}, // 1.39 and 2.8
		{Name: "nor do their zones", Pod: over(soft(zone, 1)), Pods: web("a1:2 b1:4"), Elsewhere: []string{"b1", "b2"},
			Want: all("100 raw 2")}, // 2·1.10
		{Name: "but pods there count for their zone", Pod: over(soft(zone, 1)), Pods: web("a1:1 a2:3 b1:2"), Elsewhere: []string{"a2"},
			Want: rt.Want{"a1": "50 raw 6", rt.All: "100 raw 3"}},
		{Name: "their count doesn't normalise", Pod: over(soft(hostname, 1)), Pods: web("a1:1 a2:2 b1:9"), Elsewhere: []string{"b1", "b2"},
			Want: rt.Want{"a1": "100 raw 1", "a2": "33 raw 3"}},

		{Name: "a node without the key scores 0", Pod: over(soft(zone, 1)), Nodes: rt.Nodes{node("a1"), node("b1"), testkit.Node("x")}, Pods: web("a1:1 x:5"),
			Want: rt.Want{"a1": "0 raw 1", "b1": "100 raw 0", "x": "0 raw 0"}},
		{Name: "and is no domain", Pod: over(soft(zone, 1), soft(hostname, 1)), Nodes: rt.Nodes{node("a1"), node("b1"), testkit.Node("x")}, Pods: web("a1:2 b1:1 x:5"),
			Want: rt.Want{"a1": "50 raw 6", "b1": "100 raw 3", "x": "0 raw 0"}}, // 2·(1.39 + 1.39), of two zones and two nodes
		{Name: "a node without a hostname", Pod: over(soft(hostname, 1)), Nodes: rt.Nodes{node("a1"), node("b1").Unlabel(hostname)}, Pods: web("a1:1 b1:2"),
			Want: rt.Want{"a1": "100 raw 1", "b1": "0 raw 0"}},
		{Name: "hostname and zone on different nodes", Pod: over(soft(hostname, 1), soft(zone, 1)), Nodes: rt.Nodes{node("a1").Unlabel(hostname), testkit.Node("x"), node("b1")}, Pods: web("b1:1"),
			Want: rt.Want{"a1": "0 raw 0", "x": "0 raw 0", "b1": "100 raw 2"}}, // 1.10 + 1.10
		{Name: "a hard constraint's hostname is missing from no soft score", Pod: over(soft(zone, 1), hard(hostname, 9)), Pods: web("a1:1"),
			Want: rt.Want{"a1": "0 raw 1", "a2": "0 raw 1", rt.All: "100 raw 0"}},

		{Name: "nodeAffinityPolicy: pods on nodes left out don't count", Pod: over(soft(zone, 1)).RequireIn(hostname, "a1", "b1"), Pods: web("a1:1 a2:2 b1:2"), Elsewhere: []string{"a2", "b2"},
			Want: rt.Want{"a1": "100 raw 1", "b1": "33 raw 3"}},
		{Name: "nodeAffinityPolicy: Ignore", Pod: over(soft(zone, 1, ignoreAffinity)).RequireIn(hostname, "a1", "b1"), Pods: web("a1:1 a2:2 b1:2"), Elsewhere: []string{"a2", "b2"},
			Want: rt.Want{"a1": "75 raw 4", "b1": "100 raw 3"}},
		{Name: "nodeTaintsPolicy: Honor", Pod: over(soft(zone, 1, honorTaints)), Nodes: rt.Nodes{node("a1"), node("a2").Taint("k", "", v1.TaintEffectNoSchedule), node("b1")},
			Pods: web("a2:3 b1:1"), Elsewhere: []string{"a2"}, Want: rt.Want{"a1": "100 raw 0", "b1": "0 raw 1"}},
		{Name: "policies say nothing of the node's own pods", Pod: over(soft(hostname, 1, honorAffinity)).RequireIn(zone, "b"), Pods: web("a1:1"),
			Want: rt.Want{"a1": "0 raw 2", rt.All: "100 raw 0"}},
		{Name: "pods being deleted don't count", Pod: over(soft(hostname, 1)), Pods: placed(testkit.Pod("x").Label("app", "web").Terminating(), "a1:3"), Want: all("100 raw 0")},
		{Name: "more constraints than are kept off the heap", Pod: over(soft(zone, 1), soft(zone, 2), soft(zone, 3), soft(zone, 4), soft(zone, 5), soft(zone, 6), soft(zone, 7), soft(zone, 8), soft(zone, 9)),
			Pods: web("a1:1"), Want: rt.Want{"a1": "75 raw 48", "a2": "75 raw 48", rt.All: "100 raw 36"}}, // 0+…+8, and 9·1.39
	}}.Score(t)
}

// The system defaults: hostname with maxSkew 3, and zone with maxSkew 5. Nodes
// without a zone are in a zone of their own, and score for the hostname only.
func TestSystemDefaults(t *testing.T) {
	unzoned := rt.Nodes{testkit.Node("x"), testkit.Node("y")}
	listed := rt.Is(podtopologyspread.New(podtopologyspread.Args{List: true, Constraints: []constraint{soft(hostname, 3, noSelector), soft(zone, 5, noSelector)}}))
	rt.Table{Plugin: plugin, Nodes: twoZones(), Objects: rt.Objects{testkit.Service("s", "app", "web")}, Cases: []rt.Case{
		{Name: "no pods", Pod: pod(), Want: rt.Want{rt.All: "100 raw 6"}}, // 2 + 4
		{Name: "a pod in zone a", Pod: pod(), Pods: web("a1:1"),
			// 1.79 + 2 + 1.39 + 4 = 9.2; 2 + 1.39 + 4 = 7.4; 6.
			Want: rt.Want{"a1": "66 raw 9", "a2": "88 raw 7", "b1": "100 raw 6", "b2": "100 raw 6"}},
		{Name: "no node has a zone", Pod: pod(), Nodes: unzoned, Pods: web("x:1"),
			Want: rt.Want{"x": "66 raw 3", "y": "100 raw 2"}}, // 1.39 + 2; 2
		{Name: "some have", Pod: pod(), Nodes: append(unzoned, node("a1")), Pods: web("a1:1"),
			// Two zones, three nodes: 1.61 + 2 + 1.39 + 4 = 9; 2.
			Want: rt.Want{"a1": "22 raw 9", "x": "100 raw 2", "y": "100 raw 2"}},
		{Name: "pods on nodes without a zone count for a zone with an empty name", Pod: pod(), Nodes: append(unzoned, testkit.Node("z").Zone("")), Pods: web("x:2"),
			// One zone: x has 2·1.61 + 2, z has 2 + 2·1.10 + 4.
			Want: rt.Want{"x": "62 raw 5", "y": "100 raw 2", "z": "25 raw 8"}},
		{Name: "a node without a hostname still counts for its zone", Pod: pod(), Nodes: rt.Nodes{node("a1").Unlabel(hostname), node("b1")}, Pods: web("a1:1 b1:1"),
			// Two nodes, two zones: 1.39 + 4 without the hostname's part; 1.39 + 2 + 1.39 + 4.
			Want: rt.Want{"a1": "100 raw 5", "b1": "55 raw 9"}},
		{Name: "the same as a list: nodes without a zone score 0", Plugin: listed, Pod: pod(), Nodes: append(unzoned, node("a1")), Pods: web("a1:1"),
			Want: rt.Want{"a1": "100 raw 8", "x": "0 raw 0", "y": "0 raw 0"}}, // 1.10 + 2 + 1.10 + 4
		{Name: "constraints of its own: nodes without a zone score 0", Pod: pod().Spread(soft(zone, 1)), Nodes: append(unzoned, node("a1")),
			Want: rt.Want{"a1": "100 raw 0", "x": "0 raw 0", "y": "0 raw 0"}},
	}}.Score(t)
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
