package scaledown_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/autoscaler/drainability"
	"github.com/berthproject/berth/core/autoscaler/scaledown"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/engine"
	"github.com/berthproject/berth/core/engine/reference"
	"github.com/berthproject/berth/core/framework"
	"github.com/berthproject/berth/core/plugins"
	"github.com/berthproject/berth/internal/test/testkit"
)

// history is a simulator over a cluster with a random history.
type history struct {
	*testkit.World
	t       *rapid.T
	sim     *scaledown.Simulator
	packing *framework.Profile
	req     *autoscaler.Request
	log     []string
	devices bool // the history is about devices, too
	// together counts nodes that were to go with others.
	together int
}

func newHistory(t *rapid.T) *history {
	schema := cluster.NewSchema()
	h := &history{World: testkit.NewWorld(cluster.New(schema), 6), t: t, req: &autoscaler.Request{Now: time.Unix(100000, 0), ServerNow: time.Unix(100000, 0)}}
	h.Group = "g"
	profile := plugins.Default(schema, plugins.Options{})
	h.packing = scaledown.PackingProfile(profile)
	h.sim = testkit.Must(scaledown.New(h.State, []*framework.Profile{profile}, engine.Options{Seed: 7}))
	h.req.ScaleDown = &autoscaler.ScaleDown{Rules: autoscaler.RemovalRules{
		UtilizationThreshold: []float64{0.5, 0.9, 1}[testkit.Uniform(t, 3, "threshold")], GPUUtilizationThreshold: 1,
		SkipSystemPods: rapid.Bool().Draw(t, "skip system pods"), SkipLocalStorage: rapid.Bool().Draw(t, "skip local storage"),
		SkipCustomControllerPods: rapid.Bool().Draw(t, "only known controllers"), MinReplicas: 1,
	}}
	options := &cluster.GroupOptions{ZeroOrMax: testkit.Uniform(t, 10, "atomic") == 0}
	h.State.SetGroup("g", &cluster.NodeGroup{ID: "g", Min: testkit.Uniform(t, 2, "min"), Target: 6, Max: 6, Options: options,
		Template: schema.ParseNode(testkit.Node("t").Alloc("cpu", "4", "memory", "8Gi", "pods", "10").Obj(), "g")})
	h.Furnish(t)
	h.furnishDevices()
	h.owner("web", 3)
	h.owner("db", 3)
	h.podGroup("whole", true)
	h.podGroup("single", false)
	for i, name := range h.Nodes {
		h.roomy(name, i)
		for k := range testkit.Uniform(t, 5, "pods") {
			h.small(fmt.Sprintf("%s-%d", name, k), name)
		}
	}
	return h
}

// roomy sets a node that takes most pods.
func (h *history) roomy(name string, i int) {
	h.log = append(h.log, "make room on "+name)
	h.State.SetNode(h.State.Schema.ParseNode(testkit.Node(name).Zone(string(rune('a'+i%3))).Alloc("cpu", "8", "memory", "16Gi", "pods", "12").Obj(), h.Group))
}

// owner sets how many pods a ReplicaSet wants; below 0 it is gone.
func (h *history) owner(name string, wanted int32) {
	h.log = append(h.log, fmt.Sprintf("ReplicaSet %s wants %d", name, wanted))
	if wanted < 0 {
		h.State.RemoveWorkload(cluster.ReplicaSet, "default", name)
		return
	}
	w := cluster.WorkloadOf(testkit.ReplicaSet(name, "app", name))
	w.Replicas.Wanted = wanted
	h.State.SetWorkload(w)
}

// podGroup sets a pod group whose members go together, or one by one.
func (h *history) podGroup(name string, whole bool) {
	g := testkit.PodGroup(name, 2, "")
	if whole {
		g.Spec.DisruptionMode = &schedulingv1beta1.DisruptionMode{All: &schedulingv1beta1.AllDisruptionMode{}}
	}
	h.log = append(h.log, fmt.Sprintf("the members of pod group %s go together %v", name, whole))
	h.State.SetObject(g)
}

// small places a pod that may go most anywhere, but for what others there are.
func (h *history) small(name, node string) {
	app := []string{"web", "db"}[testkit.Uniform(h.t, 2, "app")]
	p := testkit.Pod(name).Owner("apps/v1", "ReplicaSet", app).Label("app", app).Req("cpu", fmt.Sprintf("%dm", 200+300*testkit.Uniform(h.t, 6, "cpu")), "memory", "500Mi")
	p.Label("index", fmt.Sprint(testkit.Uniform(h.t, 3, "index")))
	switch testkit.Uniform(h.t, 10, "rule") {
	case 0:
		p.Apart(v1.LabelHostname, "app", app)
	case 1:
		p.SpreadHard(v1.LabelTopologyZone, 1, "app", app)
	case 2:
		p.Together(v1.LabelTopologyZone, "app", app)
	case 3:
		p.Apart(v1.LabelTopologyZone, "app", app)
	case 4:
		p.Apart(v1.LabelHostname, "index", "1")
	case 5:
		p.PodGroup("whole")
	case 6:
		p.PodGroup("single")
	}
	h.claims(p)
	h.log = append(h.log, fmt.Sprintf("place small %s with claims %v on %s", name, p.Spec.ResourceClaims, node))
	pod := h.State.Schema.ParsePod(p.Obj())
	h.State.Place(pod, node)
	h.State.SetReady(pod.UID, testkit.Uniform(h.t, 4, "ready") > 0)
	h.allocate(pod, node)
}

func (h *history) fail(format string, args ...any) {
	h.t.Fatalf(format+"\nhistory:\n%s", append(args, strings.Join(h.log, "\n"))...)
}

// change takes the cluster on; some pods are displaced then.
func (h *history) change() {
	t := h.t
	for i := range testkit.Uniform(t, 8, "changes") {
		name := h.Nodes[testkit.Uniform(t, len(h.Nodes), "which")]
		switch testkit.Uniform(t, 9, "kind") {
		case 8:
			h.podGroup([]string{"whole", "single"}[testkit.Uniform(t, 2, "group")], testkit.Uniform(t, 2, "together") == 0)
		case 4:
			if n := h.State.NodeByName(name); n != nil && len(n.Pods) > 0 {
				uid := n.Pods[testkit.Uniform(t, len(n.Pods), "whose")].UID
				h.log = append(h.log, fmt.Sprintf("pod %s changes its readiness", uid))
				h.State.SetReady(uid, !h.State.Ready(uid))
			}
		case 3:
			h.owner([]string{"web", "db"}[testkit.Uniform(t, 2, "of")], int32(testkit.Uniform(t, 4, "wanted"))-1)
		case 2:
			app := []string{"web", "db"}[testkit.Uniform(t, 2, "of")]
			b := testkit.Budget(app, int32(testkit.Uniform(t, 6, "allowed")), "app", app)
			b.Status.DesiredHealthy = 2
			b.Status.CurrentHealthy = int32(1 + testkit.Uniform(t, 2, "healthy"))
			h.log = append(h.log, fmt.Sprintf("budget %s allows %d", app, b.Status.DisruptionsAllowed))
			h.State.SetObject(b)
		case 0:
			h.roomy(name, testkit.Uniform(t, 3, "zone"))
		case 1:
			h.small(fmt.Sprintf("small%d-%d", len(h.log), i), name)
		case 5:
			if h.devices {
				h.changeDevices(name)
				continue
			}
			fallthrough
		default:
			h.log = append(h.log, h.Change(t))
		}
	}
	h.req.Now = h.req.Now.Add(time.Duration(testkit.Uniform(t, 400, "seconds")) * time.Second)
	h.req.ScaleDown.Displaced = nil
	for i := range max(testkit.Uniform(t, 9, "displaced")-6, 0) {
		p := h.State.Schema.ParsePod(h.Pod(t, fmt.Sprintf("displaced%d", i)))
		p.Object.Spec.NodeName = ""
		h.req.ScaleDown.Displaced = append(h.req.ScaleDown.Displaced, p)
	}
	h.State.Nodes(func(n *cluster.Node) { // candidates get their soft taints, and others lose theirs
		if testkit.Uniform(t, 4, "taint") == 0 {
			h.State.SetNode(n.NodeInfo.WithTaint(v1.Taint{Key: autoscaler.DeletionCandidateTaint, Value: fmt.Sprint(len(h.log)), Effect: v1.TaintEffectPreferNoSchedule}))
		}
	})
	h.req.ScaleDown.Replacing = nil
	if testkit.Uniform(t, 3, "replacing") == 0 {
		h.req.ScaleDown.Replacing = &autoscaler.Replacing{Nodes: h.Nodes[:testkit.Uniform(t, 4, "replaced")], Groups: []string{"h", "g"}[:1+testkit.Uniform(t, 2, "grown")]}
	}
	h.log = append(h.log, fmt.Sprintf("a pass with %d pods displaced, replacing %+v", len(h.req.ScaleDown.Displaced), h.req.ScaleDown.Replacing))
}

// check makes a pass and checks what must be true of its plan by means of a fresh look at the
// cluster.
func (h *history) check() *autoscaler.Plan {
	plan := pass(h.sim, h.req)
	for _, broken := range h.sim.Broken() {
		h.fail("%s", broken)
	}
	h.eachNodeOnce(plan)
	h.homesTakeTheirPods(plan)
	h.withinBudgets(plan)
	h.wholeGroupsGoTogether(plan)
	h.devicesTakenOnce()
	return plan
}

// wholeGroupsGoTogether checks that with a node go all others where pods are that leave together with its
// own, and that the plan says so.
func (h *history) wholeGroupsGoTogether(plan *autoscaler.Plan) {
	with := map[string][]string{}
	for _, r := range plan.Removals {
		with[r.Node] = r.With
	}
	for _, r := range plan.Removals {
		for _, p := range h.State.NodeByName(r.Node).Pods {
			key, whole := h.State.GoesWhole(p)
			if !whole {
				continue
			}
			h.State.EachPlacedMember(key, func(m *cluster.Pod) {
				at := h.State.NodeOf(m.UID).Name
				if _, goes := with[at]; !goes {
					h.fail("node %s would go with a member of %s, and node %s with another stays", r.Node, key, at)
				} else if at != r.Node && !slices.Contains(r.With, at) {
					h.fail("node %s is to go with %v, and a member of %s is on node %s", r.Node, r.With, key, at)
				}
			})
		}
		for _, other := range r.With {
			if !slices.Equal(with[other], r.With) {
				h.fail("node %s is to go with %v, and node %s with %v", r.Node, r.With, other, with[other])
			}
		}
		if len(r.With) > 0 {
			h.together++
		}
	}
}

// eachNodeOnce checks that a node is removed or kept.
func (h *history) eachNodeOnce(plan *autoscaler.Plan) {
	seen := map[string]int{}
	for _, r := range plan.Removals {
		seen[r.Node]++
	}
	for _, k := range plan.Kept {
		seen[k.Node]++
	}
	h.State.Nodes(func(n *cluster.Node) {
		if seen[n.Name] != 1 {
			h.fail("node %s is %d times in the plan %+v", n.Name, seen[n.Name], plan)
		}
		delete(seen, n.Name)
	})
	if len(seen) > 0 {
		h.fail("the plan names nodes that aren't there: %v", seen)
	}
	if g := h.State.Group("g"); len(plan.Removals) > g.Target-g.Min {
		h.fail("%d of %d nodes would go, and %d have to stay", len(plan.Removals), g.Target, g.Min)
	}
}

// homesTakeTheirPods checks that every pod that would move could go to its home when all
// others are where they would be, by the rules evaluated from nothing.
func (h *history) homesTakeTheirPods(plan *autoscaler.Plan) {
	world, going := h.sim.World(), map[string]bool{}
	for _, r := range plan.Removals {
		going[r.Node] = true
	}
	for _, r := range plan.Removals {
		homes := map[types.UID]string{}
		for _, x := range r.Homes {
			homes[x.Pod] = x.Node
			if going[x.Node] {
				h.fail("pod %s of node %s would go to node %s, which would go itself", x.Pod, r.Node, x.Node)
			}
			if n := world.NodeOf(x.Pod); n == nil || n.Name != x.Node {
				h.fail("the plan has pod %s on %s, the world on %v", x.Pod, x.Node, n)
			}
			pod := world.PodOn(x.Pod)
			mark := world.Mark()
			world.Remove(x.Pod)
			reference.EndPods(world, []*cluster.Pod{pod})
			answer := reference.Answers(world, h.packing, pod)[x.Node]
			world.Rollback(mark)
			if !answer.OK {
				h.fail("pod %s of node %s has its home on %s, and %s rejects it there", x.Pod, r.Node, x.Node, answer.Plugin)
			}
		}
		judge := drainability.Context{Rules: &h.req.ScaleDown.Rules, State: h.State, Now: h.req.ServerNow}
		for _, p := range h.State.NodeByName(r.Node).Pods {
			switch v := judge.Judge(p); {
			case v.Outcome == drainability.Evict && homes[p.UID] == "":
				h.fail("node %s would go, and its pod %s has no home", r.Node, p.Name())
			case v.Outcome == drainability.Block:
				h.fail("node %s would go, and its pod %s %s", r.Node, p.Name(), v.Why)
			}
		}
	}
}

// withinBudgets checks that a budget allows a disruption for each node whose pods it covers,
// after those of all pods on the nodes before.
func (h *history) withinBudgets(plan *autoscaler.Plan) {
	used := map[*cluster.Budget]int32{}
	for _, r := range plan.Removals {
		ready := map[*cluster.Budget]int32{}
		for _, x := range r.Homes {
			p := h.State.PodOn(x.Pod)
			for _, b := range h.State.Budgets(p.Object.Namespace) {
				if b.Covers(p) {
					ready[b] += 0
					if h.State.Ready(x.Pod) {
						ready[b]++
					}
				}
			}
		}
		for b, n := range ready {
			if used[b] >= b.Status.DisruptionsAllowed && !(n == 0 && b.LetsUnreadyGo()) {
				h.fail("budget %s allows %d disruptions, and node %s would need one after %d others", b.Name, b.Status.DisruptionsAllowed, r.Node, used[b])
			}
			used[b] += n
		}
	}
}

// TestPropertyCandidatesAreRemovableTogether makes passes over clusters with random
// histories: what a pass finds could all be done, by the rules evaluated from nothing, and
// without its moves the simulator's world is the cluster.
func TestPropertyCandidatesAreRemovableTogether(t *testing.T) {
	together := 0
	rapid.Check(t, func(t *rapid.T) {
		h := newHistory(t)
		defer func() { together += h.together }()
		for range rapid.IntRange(1, 6).Draw(t, "passes") {
			h.change()
			h.check()
			if testkit.Uniform(t, 4, "undo") == 0 {
				h.sim.UndoAll()
				if got, want := dump(h.sim.World()), dump(h.State); got != want {
					h.fail("without moves the world is\n%s\nthe cluster\n%s", got, want)
				}
			}
		}
	})
	if together == 0 && testkit.Checks() > testkit.UsualChecks {
		t.Error("no nodes were to go together since pods on them do")
	}
}

// dump returns a state slot by slot, without its facts.
func dump(s *cluster.State) string {
	var b, out strings.Builder
	s.Dump(&b)
	for line := range strings.Lines(b.String()) {
		if !strings.HasPrefix(line, "fact ") {
			out.WriteString(line)
		}
	}
	return out.String()
}

// always is a stopwatch that is over whenever it is asked.
type always struct{}

func (always) Start(autoscaler.Span)     {}
func (always) Over(autoscaler.Span) bool { return true }

// TestPropertyNoCandidateStarves gives passes no time: each looks at the least number of
// nodes, and as many passes as that takes have looked at all, whatever happens meanwhile to
// some of them.
func TestPropertyNoCandidateStarves(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		nodes := rapid.IntRange(1, 4*scaledown.LeastPerPass).Draw(t, "nodes")
		s := cluster.New(cluster.NewSchema())
		s.SetGroup("g", &cluster.NodeGroup{ID: "g", Target: nodes, Max: nodes, Template: s.Schema.ParseNode(testkit.PartFullNode("t").Obj(), "g")})
		for i, name := range testkit.Names("n", nodes) {
			s.SetNode(s.Schema.ParseNode(testkit.Node(name).Alloc("cpu", "4", "memory", "8Gi", "pods", "10").Obj(), "g"))
			// A pod that fits nowhere else keeps its node: no home makes a node no candidate.
			s.Place(s.Schema.ParsePod(testkit.Pod(fmt.Sprint("p", i)).Owner("apps/v1", "ReplicaSet", "r").Req("cpu", fmt.Sprintf("%dm", 1+testkit.Uniform(t, 3, "request"))).
				RequireIn(v1.LabelHostname, name).Obj()), name)
		}
		s.SetWorkload(cluster.WorkloadOf(testkit.ReplicaSet("r", "app", "r")))
		sim, req := newSimulator(t, s)
		looked := map[string]bool{}
		for round := 0; len(looked) < nodes; round++ {
			if round*scaledown.LeastPerPass >= nodes {
				t.Fatalf("%d passes have looked at %d of %d nodes", round, len(looked), nodes)
			}
			plan := autoscaler.NewPlan(req, 0)
			sim.Plan(req, &autoscaler.Questions{Watch: always{}}, plan)
			for _, k := range plan.Kept {
				if k.Reason == autoscaler.KeptNoPlace {
					looked[k.Node] = true
				}
			}
			for range testkit.Uniform(t, 5, "changed nodes") { // looked at or not, they are looked at again
				name := fmt.Sprint("n", testkit.Uniform(t, nodes, "node"))
				s.SetNode(s.Schema.ParseNode(testkit.Node(name).Label("round", fmt.Sprint(round)).Alloc("cpu", "4", "memory", "8Gi", "pods", "10").Obj(), "g"))
			}
			req.Now = req.Now.Add(10 * time.Second)
		}
	})
}
