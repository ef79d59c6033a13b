package plugins_test

import (
	"fmt"
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/engine"
	"github.com/berthproject/berth/core/framework"
	"github.com/berthproject/berth/core/plugins"
	"github.com/berthproject/berth/core/plugins/noderesources"
	"github.com/berthproject/berth/internal/test/testkit"
)

// outcome returns, for a pod and one node with some pods on it, "ok" or the message
// that people read.
func outcome(pod *testkit.PodBuilder, node *testkit.NodeBuilder, on ...*testkit.PodBuilder) string {
	schema := cluster.NewSchema()
	s := cluster.New(schema)
	s.SetNode(schema.ParseNode(node.Obj(), ""))
	for _, p := range on {
		s.Place(schema.ParsePod(p.Obj()), node.Name)
	}
	e := testkit.Must(engine.New(s, plugins.Default(schema, plugins.Options{}), engine.Options{}))
	c := e.Class(schema.ParsePod(pod.Obj()))
	if _, ok := e.Best(c); ok {
		return "ok"
	}
	return e.Diagnose(c).Message()
}

// All plugins together: the messages are kube-scheduler 1.36's, and the first plugin
// that rejects a node speaks. What each says by itself is in its own tests.
func TestFilters(t *testing.T) {
	pod := func() *testkit.PodBuilder { return testkit.Pod("p").Req("cpu", "1", "memory", "1Gi") }
	node := func() *testkit.NodeBuilder { return testkit.Node("n").Alloc("cpu", "2", "memory", "2Gi") }
	big := testkit.Pod("big").Req("cpu", "1500m", "memory", "1Gi")
	term := func(key string, op v1.NodeSelectorOperator, values ...string) *testkit.PodBuilder {
		p := pod().RequireIn("x", "y")
		p.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms[0] = v1.NodeSelectorTerm{
			MatchFields: []v1.NodeSelectorRequirement{{Key: key, Operator: op, Values: values}}}
		return p
	}
	noSchedule, noExecute, prefer := v1.TaintEffectNoSchedule, v1.TaintEffectNoExecute, v1.TaintEffectPreferNoSchedule
	for _, c := range []struct {
		name string
		pod  *testkit.PodBuilder
		node *testkit.NodeBuilder
		on   []*testkit.PodBuilder
		want string
	}{
		{"fits", pod(), node(), nil, "ok"},
		{"fits exactly", pod().Req("cpu", "2", "memory", "2Gi"), node(), nil, "ok"},
		{"cpu", pod(), node(), []*testkit.PodBuilder{big}, "1 Insufficient cpu."},
		{"cpu and memory", pod().Req("cpu", "3", "memory", "3Gi"), node(), nil, "1 Insufficient cpu, 1 Insufficient memory."},
		{"extended", pod().Req("example.com/gpu", "1"), node(), nil, "1 Insufficient example.com/gpu."},
		{"a pod that asks for nothing fits a full node", testkit.Pod("p"), node(), []*testkit.PodBuilder{testkit.Pod("x").Req("cpu", "2", "memory", "2Gi")}, "ok"},
		{"too many pods", pod(), node().Alloc("pods", "1"), []*testkit.PodBuilder{testkit.Pod("x")}, "1 Too many pods."},
		{"cordoned", pod(), node().Cordon(), nil, "1 node(s) were unschedulable."},
		{"cordoned and tolerated", pod().Tolerate(v1.TaintNodeUnschedulable), node().Cordon(), nil, "ok"},
		{"taint", pod(), node().Taint("k", "v", noSchedule), nil, "1 node(s) had untolerated taint(s)."},
		{"taint to go", pod(), node().Taint("k", "v", noExecute), nil, "1 node(s) had untolerated taint(s)."},
		{"taint preferred", pod(), node().Taint("k", "v", prefer), nil, "ok"},
		{"taint tolerated", pod().Tolerate("k"), node().Taint("k", "v", noSchedule), nil, "ok"},
		{"selector", pod().Select("disk", "ssd"), node(), nil, "1 node(s) didn't match Pod's node affinity/selector."},
		{"selector matches", pod().Select("disk", "ssd"), node().Label("disk", "ssd"), nil, "ok"},
		{"affinity", pod().RequireIn("disk", "ssd", "nvme"), node().Label("disk", "hdd"), nil, "1 node(s) didn't match Pod's node affinity/selector."},
		{"affinity terms are alternatives", pod().RequireIn("disk", "ssd").RequireIn("disk", "hdd"), node().Label("disk", "hdd"), nil, "ok"},
		{"by name", term("metadata.name", "In", "n"), node(), nil, "ok"},
		{"by other name", term("metadata.name", "In", "m"), node(), nil, "1 node(s) didn't satisfy plugin(s) [NodeAffinity]."},
		{"by no name", term("metadata.name", "In"), node(), nil, "pod affinity terms conflict."},
		{"node name", pod().On("m"), node(), nil, "1 node(s) didn't satisfy plugin(s) [NodeName]."},
		{"node name, and affinity to another", term("metadata.name", "In", "n").On("m"), node(), nil, "node(s) didn't satisfy plugin(s) [NodeAffinity NodeName] simultaneously."},
		{"port", pod().HostPort(80), node(), []*testkit.PodBuilder{testkit.Pod("x").HostPort(80)}, "1 node(s) didn't have free ports for the requested pod ports."},
		{"other port", pod().HostPort(80), node(), []*testkit.PodBuilder{testkit.Pod("x").HostPort(81)}, "ok"},
		{"own anti-affinity", pod().Apart(v1.LabelHostname, "app", "db"), node(), []*testkit.PodBuilder{testkit.Pod("x").Label("app", "db")}, "1 node(s) didn't match pod anti-affinity rules."},
		{"others' anti-affinity", pod().Label("app", "web"), node(), []*testkit.PodBuilder{testkit.Pod("x").Apart(v1.LabelHostname, "app", "web")}, "1 node(s) didn't satisfy existing pods anti-affinity rules."},
		{"anti-affinity of another namespace", pod().Namespaced("other").Apart(v1.LabelHostname, "app", "db"), node(), []*testkit.PodBuilder{testkit.Pod("x").Label("app", "db")}, "ok"},
		{"the first rule that rejects speaks", pod().Select("a", "b"), node().Cordon().Taint("k", "", noSchedule), nil, "1 node(s) were unschedulable."},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := outcome(c.pod, c.node, c.on...)
			want := c.want
			if want != "ok" {
				want = "0/1 nodes are available: " + want
			}
			if got != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
		})
	}
}

// scores returns the total score of each node by name.
func scores(o plugins.Options, pod *testkit.PodBuilder, service bool, nodes map[string][]*testkit.PodBuilder, shape func(*testkit.NodeBuilder)) map[string]int64 {
	schema := cluster.NewSchema()
	s := cluster.New(schema)
	for _, name := range []string{"a", "b", "c"} {
		pods, ok := nodes[name]
		if !ok {
			continue
		}
		n := testkit.Node(name).Alloc("cpu", "4", "memory", "8Gi").Zone("zone-" + name)
		if shape != nil {
			shape(n)
		}
		s.SetNode(schema.ParseNode(n.Obj(), ""))
		for i, p := range pods {
			q := *p
			q.Name = fmt.Sprint(name, i)
			q.UID += "/" + n.UID
			s.Place(schema.ParsePod(q.DeepCopy()), name)
		}
	}
	if service {
		s.SetWorkload(&cluster.Workload{Kind: cluster.Service, Namespace: "default", Name: "web", Set: map[string]string{"app": "web"}})
	}
	e := testkit.Must(engine.New(s, plugins.Default(schema, o), engine.Options{}))
	out := map[string]int64{}
	for _, v := range e.Answers(e.Class(schema.ParsePod(pod.Obj()))) {
		if v.OK {
			out[s.Node(v.Node).Name] = v.Score
		}
	}
	return out
}

// Totals worked out by hand from upstream's formulas. Without taints, affinity
// and spread a node gets 3·100 for taints.
func TestScores(t *testing.T) {
	pod := testkit.Pod("p").Req("cpu", "1", "memory", "2Gi").Label("app", "web")
	half := testkit.Pod("h").Req("cpu", "2", "memory", "4Gi")
	for _, c := range []struct {
		name    string
		o       plugins.Options
		pod     *testkit.PodBuilder
		service bool
		nodes   map[string][]*testkit.PodBuilder
		shape   func(*testkit.NodeBuilder)
		want    map[string]int64
	}{
		// Least allocated: (75+75)/2 = 75 and (25+25)/2 = 25; balance unchanged: 75.
		{"least allocated", plugins.Options{}, pod, false, map[string][]*testkit.PodBuilder{"a": nil, "b": {half}}, nil, map[string]int64{"a": 300 + 75 + 75, "b": 300 + 25 + 75}},
		{"most allocated", plugins.Options{Fit: noderesources.FitArgs{Strategy: noderesources.MostAllocated}}, pod, false, map[string][]*testkit.PodBuilder{"a": nil, "b": {half}}, nil, map[string]int64{"a": 300 + 25 + 75, "b": 300 + 75 + 75}},
		// At 25 % the line says 100−25·… : 10→0 over 0..100 gives 75 of 100; at 75 %, 25.
		{"ratio", plugins.Options{Fit: noderesources.FitArgs{Strategy: noderesources.RequestedToCapacityRatio, Shape: []framework.ShapePoint{{Utilization: 0, Score: 10}, {Utilization: 100, Score: 0}}}},
			pod, false, map[string][]*testkit.PodBuilder{"a": nil, "b": {half}}, nil, map[string]int64{"a": 300 + 75 + 75, "b": 300 + 25 + 75}},
		// A pod without requests counts 100m and 200Mi for fit (97 each) and isn't balanced.
		{"best effort", plugins.Options{}, testkit.Pod("p"), false, map[string][]*testkit.PodBuilder{"a": nil}, nil, map[string]int64{"a": 300 + 97}},
		// One PreferNoSchedule taint where others have none: 0 instead of 300.
		{"preferred taint", plugins.Options{}, pod, false, map[string][]*testkit.PodBuilder{"a": nil, "b": nil}, func(n *testkit.NodeBuilder) {
			if n.Name == "b" {
				n.Taint("spot", "", v1.TaintEffectPreferNoSchedule)
			}
		}, map[string]int64{"a": 300 + 150, "b": 150}},
		// Weights 30 and 60 of 60: 2·50 and 2·100.
		{"preferred affinity", plugins.Options{}, testkit.Pod("p").Req("cpu", "1", "memory", "2Gi").PreferIn(30, v1.LabelTopologyZone, "zone-a", "zone-b").PreferIn(30, v1.LabelTopologyZone, "zone-b"), false,
			map[string][]*testkit.PodBuilder{"a": nil, "b": nil, "c": nil}, nil, map[string]int64{"a": 450 + 100, "b": 450 + 200, "c": 450}},
		// System defaults over hostname (skew 3) and zone (skew 5), three nodes in
		// as many zones: raw scores are 6, and with one pod 6 + 2·ln 5 = 9.2 → 9.
		// Normalised: 100·(9+6−6)/9 = 100 and 100·(9+6−9)/9 = 66; weight 2.
		{"default spread", plugins.Options{}, pod, true, map[string][]*testkit.PodBuilder{"a": nil, "b": {testkit.Pod("w").Label("app", "web")}, "c": nil}, nil,
			map[string]int64{"a": 450 + 200, "b": 300 + (72+72)/2 + 75 + 132, "c": 450 + 200}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := scores(c.o, c.pod, c.service, c.nodes, c.shape); fmt.Sprint(got) != fmt.Sprint(c.want) {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

// TestPodsApartAreCountableWhileHostnamesAreNodes has two nodes of one hostname come and
// go: pods that keep apart by hostname can be counted onto a node only while a hostname
// says which node it is.
func TestPodsApartAreCountableWhileHostnamesAreNodes(t *testing.T) {
	schema := cluster.NewSchema()
	s := cluster.New(schema)
	e := testkit.Must(engine.New(s, plugins.Default(schema, plugins.Options{}), engine.Options{}))
	c := e.Class(schema.ParsePod(testkit.Pod("p").Label("app", "db").Apart(v1.LabelHostname, "app", "db").Obj()))
	s.SetNode(schema.ParseNode(testkit.Node("n").Obj(), ""))
	for _, step := range []struct {
		hostname string // of the second node, "" for no such node
		want     bool
	}{{"", true}, {"m", true}, {"n", false}, {"", true}} {
		s.RemoveNode("m")
		if step.hostname != "" {
			s.SetNode(schema.ParseNode(testkit.Node("m").Label(v1.LabelHostname, step.hostname).Obj(), ""))
		}
		if got := e.Countable(c); got != step.want {
			t.Errorf("with the hostnames n and %q the class is countable: %v, want %v", step.hostname, got, step.want)
		}
	}
}

// TestRejectedAlike compares the nodes a1 and a2 of one zone with b1 of another: what is
// elsewhere can only tell nodes apart by what a class's rules look at.
func TestRejectedAlike(t *testing.T) {
	zone, host := v1.LabelTopologyZone, v1.LabelHostname
	pod := func() *testkit.PodBuilder { return testkit.Pod("p").Label("app", "db") }
	for _, c := range []struct {
		name           string
		pod            *testkit.PodBuilder
		inZone, across bool // a1 and a2; a1 and b1
	}{
		{"no rule about other pods", pod(), true, true},
		{"spread hard over zones", pod().SpreadHard(zone, 1, "app", "db"), true, false},
		{"spread softly over zones", pod().SpreadSoft(zone, 1, "app", "db"), true, true},
		{"spread hard over hosts", pod().SpreadHard(host, 1, "app", "db"), false, false},
		{"apart over zones", pod().Apart(zone, "app", "db"), true, false},
		{"apart over hosts", pod().Apart(host, "app", "db"), false, false},
		{"together in a zone", pod().Together(zone, "app", "db"), true, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			schema := cluster.NewSchema()
			s := cluster.New(schema)
			e := testkit.Must(engine.New(s, plugins.Default(schema, plugins.Options{}), engine.Options{}))
			node := func(name string) *cluster.NodeInfo {
				return schema.ParseNode(testkit.Node(name).Zone(name[:1]).Obj(), "")
			}
			class := e.Class(schema.ParsePod(c.pod.Obj()))
			inZone, across := e.RejectedAlike(class, node("a1"), node("a2")), e.RejectedAlike(class, node("a1"), node("b1"))
			if inZone != c.inZone || across != c.across {
				t.Errorf("alike in a zone %v, across zones %v; want %v, %v", inZone, across, c.inZone, c.across)
			}
		})
	}
}
