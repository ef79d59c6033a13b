package scaledown_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/internal/test/testkit"
)

// priced is a node group of a cluster for consolidations. Each of its nodes has pods, by the
// milli-CPU that they request.
type priced struct {
	id    string
	cpu   int // of a node
	price float64
	max   int
	nodes [][]int
}

// pricedCluster returns a cluster of such groups. Nodes are called GROUP-1, GROUP-2, …, and
// pods GROUP-1-1, ….
func pricedCluster(groups []priced, change func(name string, p *testkit.PodBuilder)) *cluster.State {
	s := cluster.New(cluster.NewSchema())
	node := func(name string, g *priced) *cluster.NodeInfo {
		return s.Schema.ParseNode(testkit.Node(name).Alloc("cpu", fmt.Sprint(g.cpu), "memory", fmt.Sprintf("%dGi", 4*g.cpu), "pods", "110").Obj(), g.id)
	}
	s.SetWorkload(&cluster.Workload{Kind: cluster.ReplicaSet, Namespace: "default", Name: "web", Replicas: cluster.Replicas{Wanted: 100, Existing: 100}})
	for i := range groups {
		g := &groups[i]
		s.SetGroup(g.id, &cluster.NodeGroup{ID: g.id, Target: len(g.nodes), Max: g.max, Price: g.price, Template: node("template", g)})
		for k, pods := range g.nodes {
			name := fmt.Sprintf("%s-%d", g.id, k+1)
			s.SetNode(node(name, g))
			for m, milli := range pods {
				pod := testkit.Pod(fmt.Sprintf("%s-%d", name, m+1)).Owner("apps/v1", "ReplicaSet", "web").Label("app", "web").Req("cpu", fmt.Sprintf("%dm", milli), "memory", fmt.Sprintf("%dMi", milli))
				if change != nil {
					change(pod.Name, pod)
				}
				s.Place(s.Schema.ParsePod(pod.Obj()), name)
				s.SetReady(pod.UID, true)
			}
		}
	}
	return s
}

// consolidates returns a consolidation in one line, "" for none.
func consolidates(c *autoscaler.Consolidation) string {
	if c == nil {
		return ""
	}
	nodes := slices.Clone(c.Nodes)
	slices.Sort(nodes)
	out := strings.Join(nodes, " ") + " ->"
	for _, up := range c.ScaleUps {
		out += fmt.Sprintf(" %d %s", up.Nodes, up.Group)
	}
	return out + fmt.Sprintf(", %.2f -> %.2f, %d pods, score %.2f", c.Before, c.After, c.Pods, c.Score)
}

// TestConsolidations has clusters in which no node could go by itself.
func TestConsolidations(t *testing.T) {
	threeHalfFull := []priced{{"large", 16, 0.9, 5, [][]int{{9000}, {9000}, {9000}}}, {"huge", 32, 1.2, 5, nil}}
	for _, c := range []struct {
		name      string
		groups    []priced
		pod       func(name string, p *testkit.PodBuilder)
		objects   func(s *cluster.State)
		threshold float64
		most      map[string]int
		want      string
	}{
		{name: "three half-full nodes into one that is larger", groups: threeHalfFull, threshold: 0.5,
			want: "large-1 large-2 large-3 -> 1 huge, 2.70 -> 1.20, 3 pods, score 0.56"},
		{name: "not for what that saves", groups: threeHalfFull, threshold: 0.6},
		{name: "an expensive group into a cheap one", groups: []priced{{"dear", 8, 2, 3, [][]int{{6000}, {6000}}}, {"cheap", 8, 0.4, 3, [][]int{{7000}}}}, threshold: 0.5,
			want: "dear-1 dear-2 -> 2 cheap, 4.00 -> 0.80, 2 pods, score 1.09"},
		{name: "as far as the cheap one may grow", groups: []priced{{"dear", 8, 2, 3, [][]int{{6000}, {6000}}}, {"cheap", 8, 0.4, 2, [][]int{{7000}}}}, threshold: 0.5,
			want: "dear-1 -> 1 cheap, 2.00 -> 0.40, 1 pods, score 1.09"},
		{name: "what would be bought costs as much", groups: []priced{{"g", 10, 1, 5, [][]int{{4000, 2500}, {4000, 2500}, {4000, 2500}}}}},
		{name: "what other nodes have free is used first", groups: []priced{{"g", 10, 1, 5, [][]int{{2000, 2000, 2000}, {2000, 2000, 2000}, {2000, 2000, 2000}}}}, threshold: 0.5,
			want: "g-1 ->, 1.00 -> 0.00, 3 pods, score 1.00"},
		{name: "a price that isn't known", groups: []priced{{"dear", 8, 2, 3, [][]int{{6000}}}, {"free", 8, 0, 3, nil}}, threshold: 0},
		{name: "a pod that mustn't be evicted keeps its node", groups: threeHalfFull, threshold: 0.3,
			pod: func(name string, p *testkit.PodBuilder) {
				if name == "large-2-1" {
					p.Annotate(cluster.SafeToEvictAnnotation, "false")
				}
			},
			want: "large-1 large-3 -> 1 huge, 1.80 -> 1.20, 2 pods, score 0.33"},
		{name: "a disruption budget keeps some", groups: threeHalfFull, threshold: 0.3,
			objects: func(s *cluster.State) { s.SetObject(testkit.Budget("web", 2, "app", "web")) },
			want:    "large-1 large-2 -> 1 huge, 1.80 -> 1.20, 2 pods, score 0.33"},
		{name: "a node budget keeps some", groups: threeHalfFull, threshold: 0.3, most: map[string]int{"large": 2},
			want: "large-1 large-2 -> 1 huge, 1.80 -> 1.20, 2 pods, score 0.33"},
		{name: "a node budget keeps all", groups: threeHalfFull, most: map[string]int{"large": 0}},
		{name: "a pod that fits nowhere else is left aside", groups: []priced{{"dear", 8, 2, 3, [][]int{{6000}, {7900}, {6000}}}, {"cheap", 7, 0.4, 3, nil}}, threshold: 0.5,
			want: "dear-1 dear-3 -> 2 cheap, 4.00 -> 0.80, 2 pods, score 0.80"},
	} {
		s := pricedCluster(c.groups, c.pod)
		if c.objects != nil {
			c.objects(s)
		}
		sim, req := newSimulator(t, s)
		req.ScaleDown.Consolidate = &autoscaler.Consolidate{Threshold: c.threshold, Most: c.most}
		plan := pass(sim, req)
		before := dump(sim.World())
		sim.Consolidate(req, 1, &autoscaler.Questions{}, plan)
		if got := consolidates(plan.Consolidation); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.name, got, c.want)
		}
		if dump(sim.World()) != before || len(sim.Broken()) > 0 {
			t.Errorf("%s: the world isn't as it was: %v", c.name, sim.Broken())
		}
	}
}

// TestPropertyAConsolidationIsFoundAgainOnceItsNodesAreThere makes clusters of random groups and
// pods. What is proposed is carried out: its nodes come. Then a pass gives up all nodes that
// were to go, though nothing is lost of what it gave up before, and the price falls by what was
// said. Ties among equally full nodes go by the nodes' names, which the search can't know: for
// one in some thousands a pass packs otherwise and gives up fewer. Such a consolidation ends as
// given up (core/lifecycle/consolidation); more than one in 20 would be a defect.
func TestPropertyAConsolidationIsFoundAgainOnceItsNodesAreThere(t *testing.T) {
	found, missed, miss := 0, 0, ""
	rapid.Check(t, func(t *rapid.T) {
		var groups []priced
		for i := range 1 + testkit.Uniform(t, 3, "groups") {
			g := priced{id: string(rune('a' + i)), cpu: []int{4, 8, 16}[testkit.Uniform(t, 3, "cpu")], max: 12}
			g.price = float64(g.cpu) * []float64{0.05, 0.08, 0.15}[testkit.Uniform(t, 3, "price")]
			for range testkit.Uniform(t, 5, "nodes") {
				var pods []int
				for left := 1000 * g.cpu; ; {
					milli := 300 + 100*testkit.Uniform(t, 30, "milli")
					if left -= milli; left < 0 || testkit.Uniform(t, 8, "enough") == 0 {
						break
					}
					pods = append(pods, milli)
				}
				g.nodes = append(g.nodes, pods)
			}
			groups = append(groups, g)
		}
		s := pricedCluster(groups, func(_ string, p *testkit.PodBuilder) {
			switch testkit.Uniform(t, 12, "rule") {
			case 0:
				p.Annotate(cluster.SafeToEvictAnnotation, "false")
			case 1:
				p.Label("app", "apart").Apart("kubernetes.io/hostname", "app", "apart")
			}
		})
		sim, req := newSimulator(t, s)
		req.ScaleDown.Consolidate = &autoscaler.Consolidate{Threshold: 0.1}
		plan := pass(sim, req)
		sim.Consolidate(req, 1, &autoscaler.Questions{}, plan)
		c := plan.Consolidation
		if c == nil {
			return
		}
		found++
		before := price(s)
		req.ScaleDown.Replacing, req.ScaleDown.Consolidate = &autoscaler.Replacing{Nodes: c.Nodes}, nil
		for _, up := range c.ScaleUps {
			g := *s.Group(up.Group)
			g.Target += up.Nodes
			s.SetGroup(up.Group, &g)
			req.ScaleDown.Replacing.Groups = append(req.ScaleDown.Replacing.Groups, up.Group)
			for i := range up.Nodes {
				s.SetNode(g.Template.Renamed(fmt.Sprintf("new-%s-%d", up.Group, g.Target-i)))
			}
		}
		if up := price(s) - before; up-c.After > 1e-9 || c.After-up > 1e-9 {
			t.Fatalf("%s: what was bought costs %.2f", consolidates(c), up)
		}
		after := pass(sim, req)
		gone := 0.0
		for _, r := range after.Removals {
			if slices.Contains(c.Nodes, r.Node) {
				gone += s.Group(s.NodeByName(r.Node).Group).Price
			}
		}
		if d := gone - c.Before; d > 1e-9 || d < -1e-9 {
			missed++
			miss = fmt.Sprintf("%s: once that is bought nodes of %.2f could go; removals %v, kept %v", consolidates(c), gone, removed(after), after.Kept)
		}
	})
	if missed > 1+found/20 {
		t.Errorf("%d of %d consolidations aren't found again, the last: %s", missed, found, miss)
	}
	if found == 0 {
		t.Error("no cluster had a consolidation")
	}
}

// price is what the nodes of a cluster cost an hour.
func price(s *cluster.State) (sum float64) {
	s.Nodes(func(n *cluster.Node) { sum += s.Group(n.Group).Price })
	return sum
}

func removed(plan *autoscaler.Plan) (out []string) {
	for _, r := range plan.Removals {
		out = append(out, r.Node)
	}
	return out
}
