package scheduler_test

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/scheduler"
	"github.com/berthproject/berth/internal/test/testkit"
)

// TestPropertyGroupsFindTheirPlaces draws small clusters and groups, and looks for places of enough
// members in every order and on every node. It must hold that
//
//   - a decision that places a group has placed enough members, in one domain where one is required;
//   - one that doesn't leaves the state as it was;
//   - of the groups for which there are places at least 99 of 100 are placed. How many are placed in the
//     order of scheduling, as kube-scheduler does, is printed beside it.
func TestPropertyGroupsFindTheirPlaces(t *testing.T) {
	var exist, found, inOrder int
	rapid.Check(t, func(rt *rapid.T) {
		w, r := drawGroup(t, rt)
		before := dump(w.State)
		possible := w.reachable(r)
		if got := since(before, w.State); got != before {
			rt.Fatalf("looking has changed the state from\n%s\nto\n%s", before, got)
		}
		for i := range r.Members { // as the queue has them
			r.Members[i].Class = w.Class(r.Members[i].Pod)
		}
		d := w.DecideGroup(r)
		if len(d.Places) == 0 {
			if got := since(before, w.State); got != before {
				rt.Fatalf("a group that wasn't placed has changed the state from\n%s\nto\n%s", before, got)
			}
			if d.Message == "" || slices.Contains(d.Why, "") {
				rt.Fatalf("a group that wasn't placed says %q, and its members %q", d.Message, d.Why)
			}
		} else {
			w.checkPlaced(rt, r, &d)
		}
		if possible {
			exist++
			if len(d.Places) > 0 {
				found++
			}
			if d.Search == scheduler.InOrder {
				inOrder++
			}
		} else if len(d.Places) > 0 {
			rt.Fatalf("places were found %s that don't exist:\n%s", d.Search, dump(w.State))
		}
	})
	t.Logf("of %d groups for which there are places, %d were placed, %d of them in the order of scheduling", exist, found, inOrder)
	if found*100 < exist*99 {
		t.Errorf("of %d groups for which there are places, only %d were placed", exist, found)
	}
}

// checkPlaced checks where a decision has placed a group.
func (w *world) checkPlaced(t *rapid.T, r *scheduler.GroupRequest, d *scheduler.GroupDecision) {
	if r.Placed+len(d.Places) < r.MinCount {
		t.Fatalf("%d members were placed, and %d had nodes before; want %d", len(d.Places), r.Placed, r.MinCount)
	}
	domains := map[string]bool{}
	for _, p := range d.Places {
		n := w.NodeOf(r.Members[p.Member].Pod.UID)
		if n == nil || n.Index != p.Choice.Node || d.Why[p.Member] != "" {
			t.Fatalf("member %d is on %v, and the decision says %d (%q)", p.Member, n, p.Choice.Node, d.Why[p.Member])
		}
		domains[n.Object.Labels[r.Topology]] = true
	}
	if r.Topology != "" && (len(domains) != 1 || !domains[d.Domain]) {
		t.Fatalf("members were placed in %v, and the decision says %q", slices.Sorted(maps.Keys(domains)), d.Domain)
	}
}

func dump(s *cluster.State) string {
	var b strings.Builder
	s.Dump(&b)
	return b.String()
}

// since writes a state as dump does, but for facts that a state before didn't have: those that a class
// needs stay when it was asked about.
func since(before string, s *cluster.State) string {
	var b strings.Builder
	for line := range strings.Lines(dump(s)) {
		if key := fact.FindString(line); key == "" || strings.Contains(before, key) {
			b.WriteString(line)
		}
	}
	return b.String()
}

var fact = regexp.MustCompile(`^fact "[^"]*"`)

// reachable reports whether enough members of a group can be placed one after the other, in whatever
// order and on whatever nodes. It tries all.
func (w *world) reachable(r *scheduler.GroupRequest) bool {
	rest := make([]*cluster.Pod, len(r.Members))
	for i := range r.Members {
		rest[i] = r.Members[i].Pod
	}
	return w.reach(rest, max(r.MinCount-r.Placed, 1), nil, map[string]bool{})
}

func (w *world) reach(rest []*cluster.Pod, need int, places []string, seen map[string]bool) bool {
	if need == 0 {
		return true
	}
	tried := map[string]bool{}
	for i, p := range rest {
		e := w.Engine(p)
		class := e.Class(p)
		shape := p.Object.Labels["shape"]
		if tried[shape] {
			continue
		}
		tried[shape] = true
		for _, node := range e.Feasible(class) {
			now := append(slices.Clone(places), shape+"@"+node)
			slices.Sort(now)
			if key := strings.Join(now, " "); !seen[key] {
				seen[key] = true
				mark := w.Mark()
				w.Place(p, node)
				ok := w.reach(slices.Delete(slices.Clone(rest), i, i+1), need-1, now, seen)
				w.Rollback(mark)
				if ok {
					return true
				}
			}
		}
	}
	return false
}

// drawGroup draws a cluster of a few nodes in up to three zones, with pods on them, and a group.
func drawGroup(t *testing.T, rt *rapid.T) (*world, *scheduler.GroupRequest) {
	var nodes []*testkit.NodeBuilder
	var placed []*testkit.PodBuilder
	for i := range rapid.IntRange(1, 5).Draw(rt, "nodes") {
		name := fmt.Sprint("n", i)
		n := testkit.Node(name).Alloc("cpu", fmt.Sprint(rapid.IntRange(1, 6).Draw(rt, "cpu")), "memory", "8Gi").Label(v1.LabelHostname, name)
		if zone := rapid.IntRange(0, 3).Draw(rt, "zone"); zone > 0 {
			n.Zone(fmt.Sprint("z", zone))
		}
		nodes = append(nodes, n)
		if rapid.IntRange(0, 3).Draw(rt, "is used") == 0 {
			placed = append(placed, testkit.Pod(fmt.Sprint("on", i)).Req("cpu", "1").Label("shape", fmt.Sprint("s", rapid.IntRange(0, 2).Draw(rt, "like"))).On(name))
		}
	}
	w := newWorld(t, nodes, placed...)
	count := rapid.IntRange(1, 6).Draw(rt, "members")
	shapes := rapid.IntRange(1, 3).Draw(rt, "shapes")
	build := make([]func(name string) *testkit.PodBuilder, shapes)
	for k := range build {
		build[k] = drawShape(rt, fmt.Sprint("s", k))
	}
	r := &scheduler.GroupRequest{MinCount: count - max(0, rapid.IntRange(-4, count-1).Draw(rt, "more than minCount"))}
	label := ""
	if rapid.IntRange(0, 3).Draw(rt, "requires a zone") == 0 {
		label = v1.LabelTopologyZone
	}
	g := testkit.PodGroup("gang", r.MinCount, label)
	w.SetObject(g)
	r.Topology = label
	for i := range count {
		p := w.pod(build[rapid.IntRange(0, shapes-1).Draw(rt, "shape")](fmt.Sprint("m", i)).PodGroup("gang"))
		r.Members = append(r.Members, scheduler.Member{Pod: p})
	}
	return w, r
}

// drawShape draws what members of a shape are like.
func drawShape(rt *rapid.T, shape string) func(name string) *testkit.PodBuilder {
	cpu := fmt.Sprint(rapid.IntRange(1, 4).Draw(rt, "requests"))
	rule, other := rapid.IntRange(0, 9).Draw(rt, "rule"), fmt.Sprint("s", rapid.IntRange(0, 2).Draw(rt, "others"))
	topology := rapid.SampledFrom([]string{v1.LabelHostname, v1.LabelTopologyZone}).Draw(rt, "topology")
	return func(name string) *testkit.PodBuilder {
		p := testkit.Pod(name).Req("cpu", cpu, "memory", "1Gi").Label("shape", shape)
		switch rule {
		case 0, 1:
			p.Apart(topology, "shape", other)
		case 2:
			p.Together(topology, "shape", other)
		case 3:
			p.SpreadHard(topology, 1, "shape", shape)
		case 4:
			p.Select(v1.LabelTopologyZone, "z1")
		case 5:
			p.HostPort(80)
		}
		return p
	}
}
