package scheduler_test

import (
	"fmt"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/scheduler"
	"github.com/berthproject/berth/internal/test/testkit"
)

const block, rack = "example.com/block", "example.com/rack"

// levels has the group gang, of which so many must have nodes, require and prefer labels.
func (w *world) levels(min int, annotation string, members ...*testkit.PodBuilder) *scheduler.GroupRequest {
	g := testkit.PodGroup("gang", min, "")
	g.Annotations = map[string]string{cluster.TopologyLevelsAnnotation: annotation}
	w.SetObject(g)
	r := &scheduler.GroupRequest{MinCount: min, Topology: cluster.RequiredTopology(g), Levels: testkit.Must(cluster.TopologyLevels(g))}
	for _, m := range members {
		p := w.pod(m.PodGroup("gang"))
		r.Members = append(r.Members, scheduler.Member{Pod: p, Class: w.Class(p)})
	}
	return r
}

// TestMembersThatComeLaterStayInTheDomain: of each level that is required, and of each that is preferred as
// long as there is room; then the innermost is given up first.
func TestMembersThatComeLaterStayInTheDomain(t *testing.T) {
	node := func(name, cpu, b, r string) *testkit.NodeBuilder {
		return testkit.Node(name).Alloc("cpu", cpu, "memory", "8Gi").Label(block, b).Label(rack, r)
	}
	m := func(name string) *testkit.PodBuilder { return testkit.Pod(name).Req("cpu", "1") }
	for _, c := range []struct{ mode, want string }{
		{"required", "xr xs - -"},
		{"preferred", "xr xs yr yr"},
	} {
		w := newWorld(t, []*testkit.NodeBuilder{node("xr", "3", "x", "r"), node("xs", "1", "x", "s"), node("yr", "9", "y", "r")})
		annotation := block + "=" + c.mode + "," + rack + "=preferred"
		d := w.DecideGroup(w.levels(2, annotation, m("a"), m("b")))
		if len(d.Places) != 2 || d.Domain != "x/r" {
			t.Fatalf("the first two are in %q", d.Domain)
		}
		later := w.levels(2, annotation, m("c"), m("d"), m("e"), m("f"))
		later.Placed = 2
		if w.DecideGroup(later); w.where(later) != c.want {
			t.Errorf("%s: the others are on %s, want %s", c.mode, w.where(later), c.want)
		}
	}
}

// TestPropertyTopologyLevels draws small clusters with zones, blocks and racks, of which some names are in several
// outer ones, and a group that requires or prefers each of two or three levels. All ways are tried to place it. It
// must hold that
//
//   - a group is placed exactly if there are places in one domain of each required level;
//   - its members are in one domain of each required level, and of as many preferred ones as can be had, of
//     which the innermost is given up first;
//   - a group that isn't placed leaves the state as it was, and one that is leaves its object as it was.
func TestPropertyTopologyLevels(t *testing.T) {
	preferredHeld, givenUp, three := 0, 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		w := newWorld(t, nil)
		for i := range 1 + testkit.Uniform(rt, 5, "nodes") {
			n := testkit.Node(fmt.Sprint("n", i)).Alloc("cpu", fmt.Sprint(1+testkit.Uniform(rt, 4, "cpu")), "memory", "8Gi")
			if z := testkit.Uniform(rt, 4, "zone"); z > 0 {
				n.Zone(fmt.Sprint("z", 1+z%2))
			}
			if b := testkit.Uniform(rt, 3, "block"); b > 0 {
				n.Label(block, fmt.Sprint("b", b))
			}
			if r := testkit.Uniform(rt, 3, "rack"); r > 0 {
				n.Label(rack, fmt.Sprint("r", r))
			}
			w.node(n)
		}
		mode := func(what string) string { return rapid.SampledFrom([]string{"required", "preferred"}).Draw(rt, what) }
		annotation := block + "=" + mode("block") + "," + rack + "=" + mode("rack")
		if testkit.Uniform(rt, 2, "three levels") == 1 {
			annotation = v1.LabelTopologyZone + "=" + mode("zone") + "," + annotation
		}
		var members []*testkit.PodBuilder
		for i := range 1 + testkit.Uniform(rt, 4, "members") {
			members = append(members, testkit.Pod(fmt.Sprint("m", i)).Req("cpu", fmt.Sprint(1+testkit.Uniform(rt, 2, "of a member"))))
		}
		r := w.levels(len(members), annotation, members...)
		group := w.PodGroup(cluster.PodGroupKey{Namespace: "default", Name: "gang"})
		want := w.mostLevels(r)
		before := dump(w.State)
		at := w.Head()
		d := w.DecideGroup(r)
		if w.PodGroup(cluster.PodGroupKey{Namespace: "default", Name: "gang"}) != group {
			rt.Fatalf("the group's object has changed")
		}
		changes, _ := w.Since(at)
		for i := range changes {
			if changes[i].Op == cluster.ObjectSet {
				rt.Fatalf("%s: a change of the group's object is in the journal: whoever follows it would try the members without a place again", annotation)
			}
		}
		if len(d.Places) == 0 {
			if after := since(before, w.State); after != before || want >= 0 {
				rt.Fatalf("%s: it isn't placed, though it could be with %d preferred levels; the state was\n%s\nand is\n%s", annotation, want, before, after)
			}
			return
		}
		held := w.heldLevels(r, &d)
		if held != want {
			rt.Fatalf("%s: it is placed with %d preferred levels, want %d:\n%s", annotation, held, want, dump(w.State))
		}
		if len(r.Levels) == 3 {
			three++
		}
		if want > 0 {
			preferredHeld++
		} else if strings.Contains(annotation, "preferred") {
			givenUp++
		}
	})
	if preferredHeld == 0 || givenUp == 0 || three == 0 {
		t.Errorf("preferred levels were held %d times, and given up %d times; %d groups with three levels were placed", preferredHeld, givenUp, three)
	}
}

// wanted returns the labels that a request requires, and its first preferred ones.
func wanted(r *scheduler.GroupRequest, preferred int) (labels []string) {
	for _, l := range r.Levels {
		if !l.Required {
			preferred--
		}
		if l.Required || preferred >= 0 {
			labels = append(labels, l.Label)
		}
	}
	return labels
}

// mostLevels returns with how many preferred levels a group can be placed, -1 when it can't be.
func (w *world) mostLevels(r *scheduler.GroupRequest) int {
	for preferred := len(r.Levels) - len(wanted(r, 0)); preferred >= 0; preferred-- {
		labels := wanted(r, preferred)
		in := map[string][]*cluster.Node{}
		w.Nodes(func(n *cluster.Node) {
			key := ""
			for _, label := range labels {
				value, has := n.Object.Labels[label]
				if !has {
					return
				}
				key += value + "/"
			}
			in[key] = append(in[key], n)
		})
		for _, nodes := range in {
			if w.packs(r, 0, 0, nodes) {
				return preferred
			}
		}
	}
	return -1
}

// packs reports whether enough members fit on some nodes, the first i of which so many have places.
func (w *world) packs(r *scheduler.GroupRequest, i, placed int, nodes []*cluster.Node) bool {
	if placed >= r.MinCount {
		return true
	}
	if i == len(r.Members) {
		return false
	}
	p := r.Members[i].Pod
	for _, n := range nodes {
		free := n.Object.Status.Allocatable.Cpu().MilliValue() - cpuOf(p)
		for _, other := range n.Pods {
			free -= cpuOf(other)
		}
		if free < 0 {
			continue
		}
		mark := w.Mark()
		w.Place(p, n.Name)
		ok := w.packs(r, i+1, placed+1, nodes)
		w.Rollback(mark)
		if ok {
			return true
		}
	}
	return w.packs(r, i+1, placed, nodes)
}

func cpuOf(p *cluster.Pod) int64 {
	return p.Object.Spec.Containers[0].Resources.Requests.Cpu().MilliValue()
}

// heldLevels returns of how many preferred levels, outermost first, the placed members are in one domain;
// -1 when they aren't of a required one.
func (w *world) heldLevels(r *scheduler.GroupRequest, d *scheduler.GroupDecision) (held int) {
	ended := false
	for _, l := range r.Levels {
		values := map[string]bool{}
		for _, p := range d.Places {
			value, has := w.State.Node(p.Choice.Node).Object.Labels[l.Label]
			values[fmt.Sprint(value, has)] = true
			if !has && l.Required {
				return -1
			}
			ended = ended || !has && !l.Required
		}
		switch {
		case l.Required && len(values) != 1:
			return -1
		case !l.Required && (ended || len(values) != 1):
			ended = true
		case !l.Required:
			held++
		}
	}
	return held
}
