package scaleup_test

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/autoscaler/expander"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/internal/test/testkit"
)

// random sets up groups, nodes, pods, limits and conditions.
func (f *fixture) random(t *rapid.T) {
	pick := func(of ...string) string { return of[testkit.Uniform(t, len(of), "pick")] }
	for i := range 1 + testkit.Uniform(t, 3, "groups") {
		b := testkit.Node(fmt.Sprint("g", i)).Alloc("cpu", pick("2", "4", "16"), "memory", pick("4Gi", "32Gi")).Zone(pick("a", "b"))
		g := &cluster.NodeGroup{ID: b.Name, Price: float64(testkit.Uniform(t, 3, "price")), Max: testkit.Uniform(t, 9, "max"), Template: f.state.Schema.ParseNode(b.Obj(), b.Name)}
		g.Target = testkit.Uniform(t, g.Max+1, "target")
		f.state.SetGroup(g.ID, g)
		nodes := testkit.Uniform(t, g.Target+1, "nodes")
		f.req.Conditions[g.ID] = autoscaler.GroupCondition{BackingOff: testkit.Uniform(t, 6, "backs off") == 0, LongUnregistered: testkit.Uniform(t, g.Target-nodes+1, "late")}
		for n := range nodes {
			node := b.DeepCopy()
			node.Name = fmt.Sprint(g.ID, "-", n)
			node.Labels[v1.LabelHostname] = node.Name
			leaves := testkit.Uniform(t, 4, "leaves")
			if leaves < 2 {
				node.Spec.Taints = []v1.Taint{{Key: autoscaler.ToBeDeletedTaint, Effect: v1.TaintEffectNoSchedule}}
			}
			f.state.SetNode(f.state.Schema.ParseNode(node, g.ID))
			if leaves == 0 {
				f.recallable(node.Name)
			}
		}
	}
	if testkit.Uniform(t, 3, "daemons") == 0 {
		b := testkit.Pod("agent").Req("cpu", "500m").Owner("apps/v1", "DaemonSet", "agent")
		f.state.SetWorkload(&cluster.Workload{Kind: cluster.DaemonSet, Namespace: "default", Name: "agent", Template: f.state.Schema.ParsePod(b.Obj())})
	}
	if testkit.Uniform(t, 2, "cost") == 0 {
		f.packer.Expander = expander.Chain{expander.Cost{}}
	}
	if testkit.Uniform(t, 2, "balance") == 0 {
		f.req.Balancing = autoscaler.Balancing{Mode: autoscaler.BalanceAlways, MemoryDifference: 1, AllocatableDifference: 1, FreeDifference: 1}
	}
	for i := range testkit.Uniform(t, 30, "pods") {
		b := testkit.Pod(fmt.Sprint("p", i)).Req("cpu", pick("100m", "1", "3", "10"), "memory", pick("1Gi", "3Gi")).Label("app", pick("x", "y"))
		switch testkit.Uniform(t, 8, "rule") {
		case 2:
			b.PreferIn(10, v1.LabelTopologyZone, pick("a", "b"))
		case 3:
			b.SpreadSoft(v1.LabelTopologyZone, 1, "app", b.Labels["app"])
		case 4:
			b.PreferTogether(10, v1.LabelTopologyZone, "app", pick("x", "y"))
		case 0:
			b.Apart(pick(v1.LabelHostname, v1.LabelTopologyZone), "app", "x")
		case 1:
			b.Select(v1.LabelTopologyZone, pick("a", "b"))
		}
		f.req.Pending = append(f.req.Pending, f.state.Schema.ParsePod(b.Obj()))
	}
	limit := func(name string) int { return max(testkit.Uniform(t, 20, name)-10, 0) }
	f.req.Limits.MaxNodesTotal, f.req.Limits.MaxNodesPerScaleUp, f.req.Limits.MaxNodesLaunching = limit("total"), limit("per scale-up"), limit("launching")
}

// TestPropertyAPlanAccountsForEveryPodWithinItsLimits makes random plans. Every pending pod
// is covered, in one scale-up, or told why not; no limit is exceeded; and the state is
// left as it was.
func TestPropertyAPlanAccountsForEveryPodWithinItsLimits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := newFixture(t)
		f.random(t)
		coming, live := f.launching(), f.state.Live()
		plan, err := f.plan()
		if err != nil {
			t.Fatal(err)
		}
		named := map[types.UID]int{}
		nodes, all := map[string]int{}, 0
		for _, up := range plan.ScaleUps {
			if up.Nodes < 1 || len(up.Pods) == 0 || up.Wasted < 0 || up.Wasted > 2 {
				t.Errorf("%d nodes of %s for %d pods, wasting %f", up.Nodes, up.Group, len(up.Pods), up.Wasted)
			}
			nodes[up.Group] += up.Nodes
			all += up.Nodes
			for _, uid := range up.Pods {
				named[uid]++
			}
		}
		for _, n := range plan.NoHelp {
			for _, uid := range n.Pods {
				named[uid]++
			}
			if len(n.Reasons) == 0 {
				t.Errorf("%v are told no reason", n.Pods)
			}
		}
		if len(named)+plan.Covered != len(f.req.Pending) {
			t.Errorf("%d pods are named and %d covered; %d are pending", len(named), plan.Covered, len(f.req.Pending))
		}
		for uid, n := range named {
			if n > 1 {
				t.Errorf("pod %s is named %d times", uid, n)
			}
		}
		limits := f.req.Limits
		for id, n := range nodes {
			g := f.state.Group(id)
			if g.Target+n > g.Max || f.req.Conditions[id].BackingOff || limits.MaxNodesPerScaleUp > 0 && n > limits.MaxNodesPerScaleUp {
				t.Errorf("%d nodes of %s (%d of %d), %+v, limits %+v", n, id, g.Target, g.Max, f.req.Conditions[id], limits)
			}
		}
		if limits.MaxNodesTotal > 0 && all > 0 && live+coming+all > limits.MaxNodesTotal {
			t.Errorf("%d nodes to %d and %d that come; at most %d", all, live, coming, limits.MaxNodesTotal)
		}
		if limits.MaxNodesLaunching > 0 && all > 0 && coming+all > limits.MaxNodesLaunching {
			t.Errorf("%d nodes with %d that come; at most %d", all, coming, limits.MaxNodesLaunching)
		}
	})
}

// TestPropertyARecalledNodeTakesItsPods makes random plans, and each again without nodes that
// could stay. A node that is to stay has pods which fit on it, no pod has two such nodes or is
// told anything else, and what fits on nodes as they are or joins others is as in the plan
// without.
func TestPropertyARecalledNodeTakesItsPods(t *testing.T) {
	recalled := 0
	rapid.Check(t, func(t *rapid.T) {
		f := newFixture(t)
		f.random(t)
		with := testkit.Must(f.plan())
		recallable := f.req.Recallable
		f.req.Recallable = nil
		without := testkit.Must(f.plan())
		named := map[types.UID]bool{}
		for _, up := range with.ScaleUps {
			for _, uid := range up.Pods {
				named[uid] = true
			}
		}
		for _, n := range with.NoHelp {
			for _, uid := range n.Pods {
				named[uid] = true
			}
		}
		pods := map[types.UID]*cluster.Pod{}
		for _, pod := range f.req.Pending {
			pods[pod.UID] = pod
		}
		for _, r := range with.Recalls {
			at := slices.IndexFunc(recallable, func(n autoscaler.Recallable) bool { return n.Node == r.Node })
			if at < 0 || len(r.Pods) == 0 {
				t.Fatalf("%s is to stay for %v; %d nodes could", r.Node, r.Pods, len(recallable))
			}
			node := f.state.SetNode(recallable[at].Stays())
			recallable = slices.Delete(slices.Clone(recallable), at, at+1)
			for _, uid := range r.Pods {
				e, pod := f.packer.Engine(pods[uid]), pods[uid]
				if d := e.Explain(e.Class(pod), node); named[uid] || d != nil {
					t.Errorf("pod %s is to have room on %s: named: %t, rejected: %+v", uid, r.Node, named[uid], d)
				}
				e.PlaceOn(pod, node)
				named[uid] = true
			}
		}
		if !reflect.DeepEqual(with.Fitting, without.Fitting) || !reflect.DeepEqual(with.Joins, without.Joins) {
			t.Errorf("pods fit on %v and join %v, and without nodes that could stay on %v and %v", with.Fitting, with.Joins, without.Fitting, without.Joins)
		}
		recalled += len(with.Recalls)
	})
	if recalled == 0 {
		t.Error("no node was recalled in any plan")
	}
}

// TestPropertyNothingIsOrderedTwice orders what a random plan proposes, and plans again for
// the same pods while the nodes come: those that nodes were ordered for are covered.
func TestPropertyNothingIsOrderedTwice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := newFixture(t)
		f.random(t)
		first, err := f.plan()
		if err != nil {
			t.Fatal(err)
		}
		ordered := map[types.UID]bool{}
		for _, up := range first.ScaleUps {
			g := *f.state.Group(up.Group)
			g.Target += up.Nodes
			f.state.SetGroup(g.ID, &g)
			for _, bin := range up.Bins {
				f.req.Places = append(f.req.Places, autoscaler.Place{Group: up.Group, Pods: bin})
			}
			for _, uid := range up.Pods {
				ordered[uid] = true
			}
		}
		second, err := f.plan()
		if err != nil {
			t.Fatal(err)
		}
		for _, up := range second.ScaleUps {
			for _, uid := range up.Pods {
				if ordered[uid] {
					t.Errorf("first %sthen %sfor pod %s again", describe(first), describe(second), uid)
				}
			}
		}
	})
}

// TestPropertyEachNodeTakesThePodsThatItIsFor makes random plans, has the nodes that they
// propose stand in the state as their groups have them, and places the pods of their bins.
func TestPropertyEachNodeTakesThePodsThatItIsFor(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := newFixture(t)
		f.random(t)
		plan, err := f.plan()
		if err != nil {
			t.Fatal(err)
		}
		pods := map[types.UID]*cluster.Pod{}
		for _, p := range f.req.Pending {
			pods[p.UID] = p
		}
		for k, up := range plan.ScaleUps {
			if len(up.Bins) != up.Nodes {
				t.Errorf("%d bins for %d nodes of %s", len(up.Bins), up.Nodes, up.Group)
			}
			for i, bin := range up.Bins {
				n := f.state.SetNode(f.state.Group(up.Group).Template.Renamed(fmt.Sprint(up.Group, "-bought-", k, "-", i)))
				for _, uid := range bin {
					e := f.packer.Engine(pods[uid])
					if reason := e.Explain(e.Class(pods[uid]), n); reason != nil {
						t.Errorf("%sgives %s a node of %s, which it isn't let on: %v", describe(plan), uid, up.Group, reason.Messages)
					}
					e.PlaceOn(pods[uid], n)
				}
			}
		}
	})
}

// TestPropertyNodesGoToTheSmallestSimilarGroup plans for pods that take a node each, with
// zonal groups of one shape and random sizes. The slow way hands out one node after the other
// to the smallest group that may have one; the groups' sizes are the same, in any order.
func TestPropertyNodesGoToTheSmallestSimilarGroup(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := newFixture(t)
		f.req.Balancing.Mode, f.req.Limits.OKTotalUnready = autoscaler.BalanceAlways, 1000
		apart := testkit.Uniform(t, 2, "apart") == 0
		size, limit := map[string]int{}, map[string]int{}
		for i := range 2 + testkit.Uniform(t, 3, "groups") {
			b := testkit.Node(fmt.Sprint("g", i)).Alloc("cpu", "4", "memory", "8Gi").Zone(fmt.Sprint("z", i))
			size[b.Name] = testkit.Uniform(t, 6, "size")
			limit[b.Name] = size[b.Name] + testkit.Uniform(t, 8, "room")
			f.state.SetGroup(b.Name, &cluster.NodeGroup{ID: b.Name, Target: size[b.Name], Max: limit[b.Name], Template: f.state.Schema.ParseNode(b.Obj(), b.Name)})
			f.req.Conditions[b.Name] = autoscaler.GroupCondition{LongUnregistered: size[b.Name]} // none of them comes
		}
		for i := range testkit.Uniform(t, 20, "pods") {
			b := testkit.Pod(fmt.Sprint("p", i)).Req("cpu", "3")
			if apart {
				b.Label("app", "x").Apart(v1.LabelHostname, "app", "x")
			}
			f.req.Pending = append(f.req.Pending, f.state.Schema.ParsePod(b.Obj()))
		}
		plan, err := f.plan()
		if err != nil {
			t.Fatal(err)
		}
		got := maps.Clone(size)
		for _, up := range plan.ScaleUps {
			got[up.Group] += up.Nodes
		}
		want := maps.Clone(size)
		for range f.req.Pending {
			smallest := ""
			for id := range want {
				if want[id] < limit[id] && (smallest == "" || want[id] < want[smallest]) {
					smallest = id
				}
			}
			if smallest != "" {
				want[smallest]++
			}
		}
		if g, w := slices.Sorted(maps.Values(got)), slices.Sorted(maps.Values(want)); !slices.Equal(g, w) {
			t.Errorf("sizes %v grow to %v within %v, want %v in any order", size, got, limit, want)
		}
	})
}

// ignoring is least-waste as something that the packer doesn't know: preferences don't count.
type ignoring struct{ expander.LeastWaste }

// TestPropertyPreferencesBuyNoNodeMore makes random plans with and without soft preferences.
func TestPropertyPreferencesBuyNoNodeMore(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := newFixture(t)
		f.random(t)
		total := func(chain expander.Chain) (nodes, left int, plan *autoscaler.Plan) {
			f.packer.Expander = chain
			plan, err := f.plan()
			if err != nil {
				t.Fatal(err)
			}
			for _, up := range plan.ScaleUps {
				nodes += up.Nodes
			}
			for _, n := range plan.NoHelp {
				left += len(n.Pods)
			}
			return nodes, left, plan
		}
		nodes, left, with := total(expander.Chain{expander.LeastWaste{}})
		atMost, without, plain := total(expander.Chain{ignoring{}})
		if nodes > atMost || left > without {
			t.Errorf("with preferences %swithout %s", describe(with), describe(plain))
		}
	})
}

// TestPropertyPodsAreBoughtNodesOfGroupsThatTheyPrefer plans for pods that take a node each
// and prefer labels by random weights. The slow way adds up what a group's labels weigh: none
// weighs more than those of the group that was bought.
func TestPropertyPodsAreBoughtNodesOfGroupsThatTheyPrefer(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := newFixture(t)
		labels := map[string]map[string]string{} // by group
		for i := range 2 + testkit.Uniform(t, 3, "groups") {
			b := testkit.Node(fmt.Sprint("g", i)).Alloc("cpu", fmt.Sprint(4+i), "memory", "8Gi")
			for _, key := range []string{"x", "y"} {
				b.Label(key, fmt.Sprint(testkit.Uniform(t, 2, "label")))
			}
			labels[b.Name] = b.Labels
			f.state.SetGroup(b.Name, &cluster.NodeGroup{ID: b.Name, Max: 100, Template: f.state.Schema.ParseNode(b.Obj(), b.Name)})
		}
		weights := map[types.UID]map[string]int{} // of label=1, by pod
		for i := range 1 + testkit.Uniform(t, 8, "pods") {
			b := testkit.Pod(fmt.Sprint("p", i)).Req("cpu", "4")
			weights[b.UID] = map[string]int{}
			for _, key := range []string{"x", "y"} {
				if w := testkit.Uniform(t, 3, "weight"); w > 0 {
					b.PreferIn(int32(w), key, "1")
					weights[b.UID][key] = w
				}
			}
			f.req.Pending = append(f.req.Pending, f.state.Schema.ParsePod(b.Obj()))
		}
		plan, err := f.plan()
		if err != nil {
			t.Fatal(err)
		}
		weight := func(uid types.UID, group string) (sum int) {
			for key, w := range weights[uid] {
				if labels[group][key] == "1" {
					sum += w
				}
			}
			return sum
		}
		for _, up := range plan.ScaleUps {
			for _, uid := range up.Pods {
				for other := range labels {
					if weight(uid, other) > weight(uid, up.Group) {
						t.Errorf("%sgives %s a node of %s; it would rather have one of %s", describe(plan), uid, up.Group, other)
					}
				}
			}
		}
	})
}

// TestPropertyAnEstimateIsThePlanForOneClassAndGroup estimates for random pods of one shape,
// and has the slow way make a plan for each group in which all others back off.
func TestPropertyAnEstimateIsThePlanForOneClassAndGroup(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := newFixture(t)
		f.random(t)
		if len(f.req.Pending) == 0 {
			return
		}
		f.packer.Expander, f.req.Balancing.Mode = nil, autoscaler.BalanceNever
		for i, p := range f.req.Pending {
			object := *f.req.Pending[0].Object
			object.Name, object.UID = p.Object.Name, p.UID
			f.req.Pending[i] = f.state.Schema.ParsePod(&object)
		}
		conditions := f.req.Conditions
		for _, e := range f.packer.Estimate(f.req) {
			for _, g := range e.Groups {
				f.req.Conditions = map[string]autoscaler.GroupCondition{}
				for id, c := range conditions {
					c.BackingOff = c.BackingOff || id != g.Group
					f.req.Conditions[id] = c
				}
				plan, err := f.plan()
				if err != nil {
					t.Fatal(err)
				}
				if len(g.With) > 0 {
					continue // others grow as well
				}
				nodes, pods := 0, 0
				for _, up := range plan.ScaleUps {
					nodes += up.Nodes
					pods += len(up.Pods)
				}
				if g.Nodes != nodes || g.Fits != pods {
					t.Errorf("the estimate has %d pods on %d nodes of %s, the plan is %s", g.Fits, g.Nodes, g.Group, describe(plan))
				}
			}
		}
	})
}
