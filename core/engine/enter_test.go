package engine

import (
	"fmt"
	"testing"

	v1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/plugins"
	"github.com/berthproject/berth/internal/test/testkit"
)

// TestPropertyFilledColumnsEqualThoseMadeNodeByNode fills a column with all nodes at once, in memory
// that it had before, by one goroutine or several, and compares it with one that has evaluated the
// nodes as if each had been touched: cells, groups and what rules see of these, and the indexes.
func TestPropertyFilledColumnsEqualThoseMadeNodeByNode(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := cluster.New(cluster.NewSchema())
		put := func(i int) { putAnyNode(t, s, fmt.Sprint("n", i)) }
		nodes := rapid.IntRange(0, 100).Draw(t, "nodes")
		for i := range nodes {
			put(i)
		}
		p := s.Schema.ParsePod(rapid.SampledFrom([]*testkit.PodBuilder{
			testkit.Pod("plain").Req("cpu", "1"),
			testkit.Pod("zones").Label("app", "a").Req("cpu", "500m", "memory", "1Gi").SpreadSoft(v1.LabelTopologyZone, 1, "app", "a"),
			testkit.Pod("racks").Label("app", "a").Req("cpu", "500m").SpreadHard("rack", 1, "app", "a").SpreadSoft("zone", 1, "app", "a"),
			testkit.Pod("hosts").Label("app", "a").SpreadSoft(v1.LabelHostname, 1, "app", "a").PreferIn(3, "rack", "r1"),
			testkit.Pod("apart").Label("app", "a").Req("cpu", "2").Apart(v1.LabelHostname, "app", "a"),
		}).Draw(t, "pod").Obj())
		e := testkit.Must(New(s, plugins.Default(s.Schema, plugins.Options{}), Options{Seed: 3, Workers: rapid.IntRange(1, 3).Draw(t, "workers")}))
		c := e.Class(p)
		private := rapid.Bool().Draw(t, "private")
		column := func() *column {
			out := e.newColumn(c)
			out.private = private
			return out
		}
		filled := column()
		for range 3 {
			filled.rebuild()
			byNode := column()
			byNode.reset(len(byNode.topologies), len(byNode.groupRules))
			e.scratch.object.next(s.Len())
			var all []cluster.NodeIndex
			for i := range s.Len() {
				e.scratch.object.set(cluster.NodeIndex(i))
				all = append(all, cluster.NodeIndex(i))
			}
			byNode.evaluate(all)
			if got, want := describeColumn(filled), describeColumn(byNode); got != want {
				t.Fatalf("filled at once:\n%s\nnode by node:\n%s", got, want)
			}
			for _, g := range filled.groups {
				keys := append([]scoreKey{}, g.tree.levels[0]...)
				checkTree(t, &g.tree, keys, func(slot int) bool { return slot%2 == 0 })
			}
			for range rapid.IntRange(0, 30).Draw(t, "changes") {
				switch i := testkit.Uniform(t, nodes+1, "node"); testkit.Uniform(t, 3, "change") {
				case 0:
					put(i)
				case 1:
					s.RemoveNode(fmt.Sprint("n", i))
				case 2:
					q := testkit.Pod(fmt.Sprint("on-", i)).Label("app", "a").Req("cpu", "500m")
					s.Place(s.Schema.ParsePod(q.Obj()), fmt.Sprint("n", i))
				}
			}
		}
	})
}

// putAnyNode adds a node, or replaces it: some are cordoned or tainted, and some lack labels.
func putAnyNode(t *rapid.T, s *cluster.State, name string) {
	n := testkit.Node(name).Alloc("cpu", fmt.Sprint(1+testkit.Uniform(t, 3, "cpus")), "memory", "8Gi", "pods", "20")
	if zone := testkit.Uniform(t, 4, "zone"); zone > 0 {
		n.Zone(fmt.Sprint("z", zone))
	}
	if rack := testkit.Uniform(t, 12, "rack"); rack > 0 {
		n.Label("rack", fmt.Sprint("r", rack))
	}
	switch testkit.Uniform(t, 8, "taint") {
	case 0:
		n.Cordon()
	case 1:
		n.Taint("k", "v", v1.TaintEffectNoSchedule)
	case 2:
		n.Taint("k", "v", v1.TaintEffectPreferNoSchedule)
	case 3:
		delete(n.Labels, v1.LabelHostname)
	}
	s.SetNode(s.Schema.ParseNode(n.Obj(), ""))
}

// describeColumn says all that a column holds of nodes, but for memory.
func describeColumn(c *column) string {
	out := fmt.Sprintln("cells", c.cells, "feasible", c.feasible, "best", c.best, "static", c.static, "domains", c.domains)
	if c.private {
		out += fmt.Sprintln("host", c.host)
	}
	for id, g := range c.groups {
		out += fmt.Sprintln("group", id, g.key, g.nodes, g.tree.n, g.tree.levels, c.byKey[string(c.bytesOf(g.key))])
	}
	return out
}
