package testkit

import (
	"fmt"

	v1 "k8s.io/api/core/v1"

	"github.com/berthproject/berth/core/cluster"
)

// This file has the workloads of docs/performance.md, for benchmarks of single placements.
// Berth's engine and kube-scheduler's algorithm are given the same nodes and pods.

// PlacementCase is one workload: nodes in zones, and classes of pods that arrive in turn. Names are those of
// docs/performance.md and of the gate's history: a case that is renamed loses its floor.
type PlacementCase struct {
	Name    string
	Goal    int // microseconds for a placement on 5,000 nodes
	Zones   int
	Classes int
	Service bool                           // a Service selects each class
	Pod     func(p *PodBuilder, class int) // adds the rules of a class
}

// shapes are eight pairs of requests, cpu and memory, that differ in size and in balance.
var shapes = [8][2]string{
	{"100m", "128Mi"}, {"100m", "500Mi"}, {"250m", "256Mi"}, {"200m", "1Gi"},
	{"500m", "512Mi"}, {"150m", "2Gi"}, {"1", "1Gi"}, {"300m", "768Mi"},
}

func app(class int) string { return fmt.Sprint("app", class) }

// mixed are the rules that the classes of one case have in turn.
var mixed = []func(p *PodBuilder, class int){
	func(*PodBuilder, int) {},
	func(p *PodBuilder, class int) { p.SpreadHard(v1.LabelTopologyZone, 1, "app", app(class)) },
	func(p *PodBuilder, class int) { p.Apart(v1.LabelHostname, "app", app(class)) },
	func(p *PodBuilder, class int) { p.PreferTogether(20, v1.LabelTopologyZone, "app", app(class)) },
	func(p *PodBuilder, class int) { p.SpreadSoft(v1.LabelTopologyZone, 1, "app", app(class)) },
	func(p *PodBuilder, class int) { p.PreferApart(50, v1.LabelHostname, "app", app(class)) },
	func(p *PodBuilder, _ int) { p.PreferIn(5, "disk", "ssd") },
}

// PlacementCases returns the cases of docs/performance.md.
func PlacementCases() []PlacementCase {
	plain := func(*PodBuilder, int) {}
	spread := func(p *PodBuilder, class int) { p.SpreadHard(v1.LabelTopologyZone, 1, "app", app(class)) }
	preferred := func(p *PodBuilder, class int) {
		p.PreferTogether(20, v1.LabelTopologyZone, "app", app(class)).PreferApart(50, v1.LabelTopologyZone, "app", "neighbour")
	}
	return []PlacementCase{
		{"plain", 3, 3, 1, false, plain},
		{"service", 5, 3, 1, true, plain},
		{"hostname anti-affinity", 5, 3, 1, false, func(p *PodBuilder, class int) { p.Apart(v1.LabelHostname, "app", app(class)) }},
		{"hard zone spread, 3 zones", 4, 3, 1, false, spread},
		{"hard zone spread, 1000 zones", 8, 1000, 1, false, spread},
		{"preferred affinity, 3 zones", 5, 3, 1, false, preferred},
		{"preferred affinity, 1000 zones", 30, 1000, 1, false, preferred},
		{"500 classes of 8 shapes", 20, 3, 500, false, func(p *PodBuilder, class int) { mixed[class%len(mixed)](p, class) }},
		{"500 classes of 500 shapes", 150, 3, 500, false, func(p *PodBuilder, class int) {
			p.Req("cpu", fmt.Sprint(100+class%50, "m"), "memory", fmt.Sprint(128+class, "Mi"))
			mixed[class%len(mixed)](p, class)
		}},
	}
}

// State returns the case's nodes with its neighbours and Services. Nodes have what alloc names
// besides, or instead.
func (c *PlacementCase) State(nodes int, alloc ...string) *cluster.State {
	schema := cluster.NewSchema()
	state := cluster.New(schema)
	for i := range nodes {
		state.SetNode(schema.ParseNode(c.CaseNode(i).Alloc(alloc...).Obj(), ""))
	}
	for _, p := range c.Neighbours() {
		state.Place(schema.ParsePod(p.Obj()), p.Spec.NodeName)
	}
	for k := range c.Classes {
		if c.Service {
			state.SetWorkload(&cluster.Workload{Kind: cluster.Service, Namespace: "default", Name: fmt.Sprint("s", k), Set: CaseSelector(k)})
		}
	}
	return state
}

// CaseNode returns the i-th node of a case.
func (c *PlacementCase) CaseNode(i int) *NodeBuilder {
	n := Node(fmt.Sprint("node-", i)).Alloc("cpu", "4", "memory", "32Gi").Zone(fmt.Sprint("z", i%c.Zones))
	if i%4 == 0 {
		n.Label("disk", "ssd")
	}
	return n
}

// CasePod returns a pod of a class.
func (c *PlacementCase) CasePod(class int) *PodBuilder {
	s := shapes[class%len(shapes)]
	p := Pod(app(class)).Req("cpu", s[0], "memory", s[1]).Label("app", app(class))
	c.Pod(p, class)
	return p
}

// Neighbours returns pods that are placed before, three in each of the first ten zones: the
// preferred anti-affinity of some cases is against them.
func (c *PlacementCase) Neighbours() []*PodBuilder {
	var out []*PodBuilder
	for i := range 30 {
		out = append(out, Pod(fmt.Sprint("neighbour-", i)).Req("cpu", "100m", "memory", "100Mi").Label("app", "neighbour").On(fmt.Sprint("node-", i%min(10, c.Zones)+c.Zones*(i/10))))
	}
	return out
}

// CaseSelector returns what the class's Service selects by.
func CaseSelector(class int) map[string]string { return map[string]string{"app": app(class)} }
