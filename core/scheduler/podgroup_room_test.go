package scheduler_test

import (
	"fmt"
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/scheduler"
	"github.com/berthproject/berth/internal/test/testkit"
)

// TestPropertyRoomFor draws small clusters that are full of pods that are going to leave in an order, and a
// group. It must hold that
//
//   - where no room is found, the group doesn't fit when all have left;
//   - where it is, the members fit there one after the other when those have left that must go, and nobody
//     else; and none of these may stay;
//   - the group wouldn't fit earlier: the last that must go is the one with which it fits;
//   - the state is as it was.
func TestPropertyRoomFor(t *testing.T) {
	found := 0
	rapid.Check(t, func(rt *rapid.T) {
		w := newWorld(t, nil)
		pick := func(what string, of ...string) string { return rapid.SampledFrom(of).Draw(rt, what) }
		var leaving []*cluster.Pod
		for i := range 1 + testkit.Uniform(rt, 4, "nodes") {
			name := fmt.Sprint("n", i)
			w.node(testkit.Node(name).Alloc("cpu", "4", "memory", "8Gi").Zone(pick("zone", "a", "b")))
			for k := range testkit.Uniform(rt, 4, "pods") {
				p := w.pod(testkit.Pod(fmt.Sprint("p", i, k)).Req("cpu", pick("of a pod", "1", "2")).On(name))
				w.Place(p, name)
				if testkit.Uniform(rt, 5, "stays") > 0 {
					leaving = append(leaving, p)
				}
			}
		}
		leaving = rapid.Permutation(leaving).Draw(rt, "order")
		var members []*testkit.PodBuilder
		for i := range 1 + testkit.Uniform(rt, 4, "members") {
			members = append(members, testkit.Pod(fmt.Sprint("m", i)).Req("cpu", pick("of a member", "1", "2", "4")))
		}
		r := w.group(len(members), pick("topology", "", v1.LabelTopologyZone), members...)
		before := dump(w.State)
		room := w.RoomFor(r, leaving)
		places, mustGo, ok := room.Places, room.MustGo, len(room.Places) > 0
		if room.Cut {
			rt.Fatalf("a search of %d steps is cut short", room.Work)
		}
		if after := since(before, w.State); after != before {
			rt.Fatalf("the state was\n%s and is\n%s", before, after)
		}
		if !ok {
			if w.fitsWithout(r, leaving) {
				rt.Fatalf("no room is found, and the group fits when %d have left:\n%s", len(leaving), before)
			}
			return
		}
		found++
		if !w.placesHold(r, places, mustGo) {
			rt.Fatalf("the members don't fit in their places without %d pods:\n%s", len(mustGo), before)
		}
		last := -1
		for _, p := range mustGo {
			rest := slices.DeleteFunc(slices.Clone(mustGo), func(q *cluster.Pod) bool { return q == p })
			if w.placesHold(r, places, rest) {
				rt.Fatalf("%s must go, and may stay:\n%s", p.Name(), before)
			}
			last = max(last, slices.Index(leaving, p))
		}
		if last > 0 && w.fitsWithout(r, leaving[:last]) && !w.fitsWithout(r, leaving[:last-1]) {
			rt.Fatalf("the group fits when %d have left, and %d were waited for:\n%s", last, last+1, before)
		}
	})
	if found == 0 {
		t.Error("no group has found room")
	}
}

// fitsWithout reports whether a group is placed without some pods.
func (w *world) fitsWithout(r *scheduler.GroupRequest, gone []*cluster.Pod) bool {
	mark := w.Mark()
	defer w.Rollback(mark)
	for _, p := range gone {
		w.Remove(p.UID)
	}
	d := w.WhatIfGroup(r)
	return len(d.Places) > 0
}

// placesHold reports whether members fit in their places one after the other without some pods.
func (w *world) placesHold(r *scheduler.GroupRequest, places []scheduler.Place, gone []*cluster.Pod) bool {
	mark := w.Mark()
	defer w.Rollback(mark)
	for _, p := range gone {
		w.Remove(p.UID)
	}
	for _, at := range places {
		p := r.Members[at.Member].Pod
		if e := w.Engine(p); !e.FitsOn(e.Class(p), w.State.Node(at.Choice.Node)) {
			return false
		}
		w.Place(p, w.State.Node(at.Choice.Node).Name)
	}
	return true
}

// TestWorkOfAGroupThatPreempts: how many pods are taken off their nodes for a group that finds no victims
// is bounded, however many there are.
func TestWorkOfAGroupThatPreempts(t *testing.T) {
	for _, nodes := range []int{1000, 2000, 4000} {
		w := newWorld(t, nil)
		for i := range nodes {
			w.node(testkit.Node(fmt.Sprint("n", i)).Alloc("cpu", "4", "memory", "8Gi"))
			for k := range 4 {
				w.place(running(fmt.Sprint("p", i, "-", k), "1", int32(k), fmt.Sprint("n", i)))
			}
		}
		d := w.DecideGroup(w.group(2, "", testkit.Pod("a").Req("cpu", "1").Priority(9), testkit.Pod("b").Req("cpu", "5").Priority(9)))
		if d.Victims != nil || len(d.Places) > 0 {
			t.Fatalf("it finds %d victims and %d places", len(d.Victims.Pods), len(d.Places))
		}
		if most := 3 << 13; d.TakenOff == 0 || d.TakenOff > most {
			t.Errorf("%d nodes: %d pods were taken off, want some, and at most %d", nodes, d.TakenOff, most)
		}
	}
}

// TestWorkOfAGangThatIsOnePlaceShort: each member of the largest gangs is tried once, and the nodes aren't looked at for
// each; in one domain, too, and where members have to be on nodes with other pods, or apart from them.
func TestWorkOfAGangThatIsOnePlaceShort(t *testing.T) {
	const nodes = 100
	plain := func(p *testkit.PodBuilder) *testkit.PodBuilder { return p }
	for _, c := range []struct {
		size   int
		label  string
		member func(*testkit.PodBuilder) *testkit.PodBuilder
	}{
		{1_000, "", plain}, {10_000, "", plain}, {100_000, "", plain},
		{1_000, v1.LabelTopologyZone, plain}, {10_000, v1.LabelTopologyZone, plain}, {100_000, v1.LabelTopologyZone, plain},
		{1_000, "", func(p *testkit.PodBuilder) *testkit.PodBuilder { return p.Together(v1.LabelHostname, "app", "anchor") }},
		{1_000, "", func(p *testkit.PodBuilder) *testkit.PodBuilder { return p.Apart(v1.LabelHostname, "app", "bully") }},
	} {
		size, label := c.size, c.label
		w := newWorld(t, nil)
		for i := range nodes {
			name := fmt.Sprint("n", i)
			w.node(testkit.Node(name).Alloc("cpu", fmt.Sprint(size/nodes), "memory", "8Ti", "pods", "2000").Zone("z"))
			w.place(testkit.Pod("anchor"+name).Label("app", "anchor").Req("cpu", "0").On(name))
		}
		w.place(running("one", "1", 0, "n7"))
		members := make([]*testkit.PodBuilder, size)
		for i := range members {
			members[i] = c.member(testkit.Pod(fmt.Sprint("m", i)).Req("cpu", "1"))
		}
		d := w.DecideGroup(w.group(size, label, members...))
		if most := size + 3*nodes; len(d.Places) > 0 || d.Work > most || d.Work == 0 {
			t.Errorf("%d members, required %q: %d have places for the work of %d; want none, and at most %d", size, label, len(d.Places), d.Work, most)
		}
	}
}

// TestWorkOfASearchForRoom: how much is tried to find room for a group is bounded, and how many pods are
// taken off their nodes for it, however large the cluster and the group are. With too little work the
// search says so; what it has found holds.
func TestWorkOfASearchForRoom(t *testing.T) {
	const half = 1<<18 + 100_000 // with one more exhaustive search
	// By the second term they keep away from nobody; but what it rejects a node for isn't on that node.
	spread := func(p *testkit.PodBuilder) *testkit.PodBuilder {
		return p.Label("app", "gang").Apart(v1.LabelHostname, "app", "gang").Apart(v1.LabelTopologyZone, "app", "nobody")
	}
	for _, c := range []struct {
		name         string
		zones, nodes int  // of each zone
		small        int  // pods of each node that leave
		apart        bool // they are small, and have the label that members keep away from
		members      func() []*testkit.PodBuilder
		found        bool
		most         int // steps
	}{
		{"no order finds places in any of many zones", 60, 10, 1, false, func() (out []*testkit.PodBuilder) {
			for i := range 9 {
				out = append(out, testkit.Pod(fmt.Sprint("m", i)).Req("cpu", "3", "memory", fmt.Sprint(1+i%3, "Gi")))
			}
			return append(out, testkit.Pod("l1").Req("cpu", "4", "memory", "1Gi"), testkit.Pod("l2").Req("cpu", "4", "memory", "2Gi"))
		}, false, 2 * half},
		{"members keep away from one another and from all pods, which must go", 1, 1500, 2, true, func() (out []*testkit.PodBuilder) {
			for i := range 1500 {
				out = append(out, spread(testkit.Pod(fmt.Sprint("m", i)).Req("cpu", "3")))
			}
			return out
		}, true, 2 * half},
		{"each of many attempts looks for places that there aren't", 1, 11, 40, false, func() (out []*testkit.PodBuilder) {
			for i := range 11 { // a node each
				out = append(out, testkit.Pod(fmt.Sprint("m", i)).Req("cpu", fmt.Sprint(3+i%2), "memory", fmt.Sprint(1+i/2, "Gi")))
			}
			return out
		}, true, half + 1<<15}, // what may stay is soon found
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, nil)
			var leaving []*cluster.Pod
			for i := range c.zones * c.nodes {
				node := fmt.Sprint("n", i)
				w.node(testkit.Node(node).Alloc("cpu", "4", "memory", "8Gi", "pods", "110").Zone(fmt.Sprint("z", i%c.zones)))
				for k := range c.small {
					b := testkit.Pod(fmt.Sprint("p", i, "-", k)).Req("cpu", fmt.Sprint(4000/max(c.small, 2), "m"))
					if c.apart {
						b = b.Req("cpu", "100m").Label("app", "gang")
					}
					p := w.pod(b.On(node))
					w.Place(p, node)
					leaving = append(leaving, p)
				}
			}
			members := c.members()
			topology := ""
			if c.zones > 1 {
				topology = v1.LabelTopologyZone
			}
			r := w.group(len(members), topology, members...)
			room := w.RoomFor(r, leaving)
			t.Logf("%d places, %d must go, %d steps, %d taken off", len(room.Places), len(room.MustGo), room.Work, room.TakenOff)
			if !room.Cut || room.Work > c.most || room.TakenOff > 1<<18 {
				t.Errorf("cut short: %t, after %d steps, want %d at most; %d pods were taken off", room.Cut, room.Work, c.most, room.TakenOff)
			}
			if found := len(room.Places) > 0; found != c.found || found && !w.placesHold(r, room.Places, room.MustGo) {
				t.Errorf("%d places are found, and hold without %d pods: want some: %t", len(room.Places), len(room.MustGo), c.found)
			}
		})
	}
}
