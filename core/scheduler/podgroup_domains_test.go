package scheduler_test

import (
	"fmt"
	"testing"

	v1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/scheduler"
	"github.com/berthproject/berth/internal/test/testkit"
)

// zone is what a random topology domain has, for TestPropertyTheBestDomain.
type zone struct {
	nodes  []*testkit.NodeBuilder
	placed []*testkit.PodBuilder
}

// drawZone draws nodes with pods on them. Whatever is requested has memory as well, so that nothing counts by default.
func drawZone(rt *rapid.T, name string) (z zone) {
	for i := range rapid.IntRange(1, 3).Draw(rt, "nodes") {
		node := fmt.Sprint(name, i)
		cpu := rapid.IntRange(2, 12).Draw(rt, "cpu")
		z.nodes = append(z.nodes, testkit.Node(node).Alloc("cpu", fmt.Sprint(cpu), "memory", "64Gi").Zone(name))
		if used := rapid.IntRange(0, cpu).Draw(rt, "used"); used > 0 {
			z.placed = append(z.placed, testkit.Pod("on-"+node).Req("cpu", fmt.Sprint(used), "memory", "1Gi").On(node))
		}
	}
	return z
}

// scoreOf returns the score of a zone that has so many places for members, by the places alone: what is requested of
// CPU and memory there, of what there is.
func scoreOf(w *world, zone string, holds, most int) int64 {
	var requested, allocatable [2]int64
	w.Nodes(func(n *cluster.Node) {
		if n.Object.Labels[v1.LabelTopologyZone] == zone {
			for i, r := range []v1.ResourceName{v1.ResourceCPU, v1.ResourceMemory} {
				requested[i] += n.Requested.At(cluster.ResourceOf(r))
				allocatable[i] += n.Allocatable.At(cluster.ResourceOf(r))
			}
		}
	})
	fill := (100*requested[0]/allocatable[0] + 100*requested[1]/allocatable[1]) / 2
	return int64(100*holds/most) + fill
}

// TestPropertyTheBestDomain: of the zones in which enough members find places in the order of scheduling, the group goes
// to one with the best of kube-scheduler's scores, as if it had been placed in each and compared. Zones are tried alone
// in clusters of their own.
func TestPropertyTheBestDomain(t *testing.T) {
	compared := 0
	rapid.Check(t, func(rt *rapid.T) {
		zones := map[string]zone{}
		var all zone
		for _, name := range []string{"a", "b", "c", "d"}[:rapid.IntRange(2, 4).Draw(rt, "zones")] {
			z := drawZone(rt, name)
			zones[name] = z
			all.nodes, all.placed = append(all.nodes, z.nodes...), append(all.placed, z.placed...)
		}
		count := rapid.IntRange(1, 6).Draw(rt, "members")
		need := rapid.IntRange(1, count).Draw(rt, "minCount")
		apart := rapid.IntRange(0, 3).Draw(rt, "members keep apart") == 0
		var cpus []string
		for range count {
			cpus = append(cpus, fmt.Sprint(rapid.IntRange(1, 3).Draw(rt, "requests")))
		}
		decide := func(z zone) (*world, scheduler.GroupDecision) {
			w := newWorld(t, z.nodes, z.placed...)
			var members []*testkit.PodBuilder
			for i, cpu := range cpus {
				m := testkit.Pod(fmt.Sprint("m", i)).Req("cpu", cpu, "memory", "1Gi").Label("app", "gang")
				if apart {
					m.Apart(v1.LabelHostname, "app", "gang")
				}
				members = append(members, m)
			}
			r := w.group(need, v1.LabelTopologyZone, members...)
			return w, w.DecideGroup(r)
		}
		holds, alone := map[string]int{}, map[string]*world{}
		most := 0
		for name, z := range zones {
			if w, d := decide(z); d.Search == scheduler.InOrder {
				holds[name], alone[name] = len(d.Places), w
				most = max(most, len(d.Places))
			}
		}
		_, d := decide(all)
		if len(holds) == 0 {
			if d.Search == scheduler.InOrder {
				rt.Fatalf("places were found in order in %s, and in no zone alone", d.Domain)
			}
			return
		}
		if holds[d.Domain] != len(d.Places) || d.Search != scheduler.InOrder {
			rt.Fatalf("%d members have places in %s, found %q; in the zones alone %v", len(d.Places), d.Domain, d.Search, holds)
		}
		got := scoreOf(alone[d.Domain], d.Domain, holds[d.Domain], most)
		for name, w := range alone {
			if score := scoreOf(w, name, holds[name], most); score > got {
				rt.Fatalf("the group went to %s (%d), and %s has %d; members there: %v", d.Domain, got, name, score, holds)
			}
		}
		if len(holds) > 1 {
			compared++
		}
	})
	if compared == 0 {
		t.Error("no group had more than one zone to go to")
	}
}

// TestWorkOfComparedDomains: of a group for which each of many domains holds enough members, and none all, so many
// domains are compared that the work stays bounded.
func TestWorkOfComparedDomains(t *testing.T) {
	const zones, size = 60, 300
	var nodes []*testkit.NodeBuilder
	for i := range zones {
		nodes = append(nodes, testkit.Node(fmt.Sprint("n", i)).Alloc("cpu", "400", "memory", "400Gi", "pods", "1000").Zone(fmt.Sprint("z", i)))
	}
	w := newWorld(t, nodes)
	var members []*testkit.PodBuilder
	for i := range size { // of two kinds, which keep apart: a zone of one node holds one of them
		kind := fmt.Sprint("k", i%2)
		members = append(members, testkit.Pod(fmt.Sprint("m", i)).Req("cpu", "1", "memory", "1Gi").Label("kind", kind).Apart(v1.LabelTopologyZone, "kind", fmt.Sprint("k", 1-i%2)))
	}
	r := w.group(size/2, v1.LabelTopologyZone, members...)
	d := w.DecideGroup(r)
	if len(d.Places) != size/2 {
		t.Fatalf("%d members have places, want %d", len(d.Places), size/2)
	}
	if most := 4096 + 8*size; d.Work > most {
		t.Errorf("the decision has cost %d, want at most %d", d.Work, most)
	}
}
