package podtopologyspread_test

import (
	"math"
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/berthproject/berth/core/plugins/podtopologyspread"
	"github.com/berthproject/berth/internal/test/testkit"
	rt "github.com/berthproject/berth/internal/test/testkit/ruletest"
)

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
		{Name: "any skew", Pod: pod().Spread(hard(hostname, math.MaxInt32)), Pods: web("a1:3 a2:2 b1:2 b2:2"), Want: rt.Want{rt.All: rt.OK}},
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
		{Name: "one that neither rejects nor scores, with a selector that can't be read", Pod: pod().Spread(hard(zone, 1, badSelector, neitherNor)), Want: rt.Want{rt.All: rt.Skip}},
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
