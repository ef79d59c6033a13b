package scheduler_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berthproject/berth/core/framework"
	"github.com/berthproject/berth/core/scheduler"
	"github.com/berthproject/berth/internal/test/testkit"
)

// group is a request for members of the group gang, of which so many have to find nodes.
func (w *world) group(min int, label string, members ...*testkit.PodBuilder) *scheduler.GroupRequest {
	w.SetObject(testkit.PodGroup("gang", min, label))
	r := &scheduler.GroupRequest{MinCount: min, Topology: label}
	for _, m := range members {
		p := w.pod(m.PodGroup("gang"))
		r.Members = append(r.Members, scheduler.Member{Pod: p, Class: w.Class(p)})
	}
	return r
}

// where returns where a decision has placed the members, in their order; "-" for nowhere.
func (w *world) where(r *scheduler.GroupRequest) string {
	var out []string
	for _, m := range r.Members {
		node := "-"
		if n := w.NodeOf(m.Pod.UID); n != nil {
			node = n.Name
		}
		out = append(out, node)
	}
	return strings.Join(out, " ")
}

// TestWhereAGroupGoes has groups decided on, and by which search their places were found.
func TestWhereAGroupGoes(t *testing.T) {
	small := func(name string) *testkit.PodBuilder { return testkit.Pod(name).Req("cpu", "1") }
	large := func(name string) *testkit.PodBuilder { return testkit.Pod(name).Req("cpu", "4") }
	zoned := func(name, cpu, zone string) *testkit.NodeBuilder {
		return testkit.Node(name).Alloc("cpu", cpu, "memory", "8Gi").Zone(zone)
	}
	racks := []*testkit.NodeBuilder{zoned("a1", "8", "a"), zoned("b1", "4", "b"), zoned("c1", "2", "c")}
	for _, c := range []struct {
		name    string
		nodes   []*testkit.NodeBuilder
		placed  []*testkit.PodBuilder
		min     int
		gang    bool // the policy is gang, whatever min is
		label   string
		members []*testkit.PodBuilder
		want    string // "all": each has a node
		search  scheduler.Search
		message string
	}{
		{name: "on the best nodes, in order", nodes: fours("n1", "n2"), min: 2, members: []*testkit.PodBuilder{small("a"), small("b")}, want: "all", search: scheduler.InOrder},
		{name: "too few fit", nodes: fours("n1"), min: 2, members: []*testkit.PodBuilder{large("a"), large("b")}, want: "- -",
			message: "minCount (2) cannot be satisfied: 1 scheduled, 0 remaining, pod group preemption: No preemption victims found for incoming preemptor"},
		{name: "too few can fit any more", nodes: fours("n1"), min: 3, members: []*testkit.PodBuilder{large("a"), large("b"), large("c")}, want: "- - -",
			message: "minCount (3) cannot be satisfied: 1 scheduled, 1 remaining, pod group preemption: No preemption victims found for incoming preemptor"},
		{name: "enough fit, and the others don't", nodes: fours("n1"), min: 1, members: []*testkit.PodBuilder{large("a"), large("b")}, want: "n1 -", search: scheduler.InOrder},
		{name: "none is needed, and one fits", nodes: fours("n1"), min: 0, gang: true, members: []*testkit.PodBuilder{large("a"), large("b")}, want: "n1 -", search: scheduler.InOrder},
		{name: "none is needed, and none fits", nodes: fours("n1"), placed: []*testkit.PodBuilder{small("x").On("n1")}, min: 0, gang: true, members: []*testkit.PodBuilder{large("a")}, want: "-",
			message: "minCount (0) cannot be satisfied: 0 scheduled, 0 remaining, pod group preemption: No preemption victims found for incoming preemptor"},
		{name: "the large one after the small ones, which took its room", nodes: append(fours("n1"), testkit.Node("n2").Alloc("cpu", "1", "memory", "8Gi")), min: 2,
			members: []*testkit.PodBuilder{small("a"), large("b")}, want: "n2 n1", search: scheduler.RarestFirst},
		{name: "those first that can go nowhere else", nodes: []*testkit.NodeBuilder{zoned("a1", "2", "a"), zoned("b1", "4", "b")}, min: 3,
			members: []*testkit.PodBuilder{small("a"), small("b"), large("c")}, want: "a1 a1 b1", search: scheduler.RarestFirst},
		{name: "nodes that aren't the best", nodes: fours("n1", "n2"), min: 4,
			members: []*testkit.PodBuilder{small("a"), small("b"), testkit.Pod("c").Req("cpu", "2"), large("d")}, want: "n1 n1 n1 n2", search: scheduler.Exhaustive},
		{name: "the fullest domain that has room for all", nodes: racks, min: 3, label: v1.LabelTopologyZone, members: []*testkit.PodBuilder{small("a"), small("b"), small("c")},
			want: "b1 b1 b1", search: scheduler.InOrder},
		{name: "a domain with room for all before a fuller one", nodes: racks, min: 2, label: v1.LabelTopologyZone, members: []*testkit.PodBuilder{small("a"), small("b"), small("c")},
			want: "b1 b1 b1", search: scheduler.InOrder},
		{name: "the domain that is the fullest with them, though it has more room", min: 3, label: v1.LabelTopologyZone, members: []*testkit.PodBuilder{small("a"), small("b"), small("c")},
			nodes: []*testkit.NodeBuilder{zoned("a1", "4", "a"), zoned("b1", "32", "b")}, placed: []*testkit.PodBuilder{testkit.Pod("x").Req("cpu", "26").On("b1")},
			want: "b1 b1 b1", search: scheduler.InOrder},
		{name: "fewer members in a domain that is much fuller", min: 2, label: v1.LabelTopologyZone, members: []*testkit.PodBuilder{small("a"), small("b"), small("c")},
			nodes: []*testkit.NodeBuilder{zoned("a1", "8", "a"), zoned("b1", "16", "b")}, placed: []*testkit.PodBuilder{testkit.Pod("x").Req("cpu", "14", "memory", "8Gi").On("b1")},
			want: "b1 b1 -", search: scheduler.InOrder},
		{name: "no domain has room", nodes: racks, min: 9, label: v1.LabelTopologyZone, want: "- - - - - - - - -",
			members: []*testkit.PodBuilder{small("a"), small("b"), small("c"), small("d"), small("e"), small("f"), small("g"), small("h"), small("i")},
			message: "0/3 placements are available, first placement status: minCount (9) cannot be satisfied: no placement has room for more than 8, pod group preemption: No preemption victims found for incoming preemptor"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, c.nodes, c.placed...)
			r := w.group(c.min, c.label, c.members...)
			if c.gang {
				g := testkit.PodGroup("gang", 1, c.label)
				g.Spec.SchedulingPolicy.Gang.MinCount = int32(c.min)
				w.SetObject(g)
			}
			d := w.DecideGroup(r)
			got := w.where(r)
			if c.want == "all" && !strings.Contains(got, "-") { // which of equal nodes is taken is chance
				got = c.want
			}
			if got != c.want || d.Search != c.search || d.Message != c.message {
				t.Errorf("they are on %q, found %q, %q; want %q, %q, %q", got, d.Search, d.Message, c.want, c.search, c.message)
			}
		})
	}
}

// TestMembersKeepApartFromOneAnother, where nothing before has read the label by which they do.
func TestMembersKeepApartFromOneAnother(t *testing.T) {
	w := newWorld(t, []*testkit.NodeBuilder{testkit.Node("n1").Alloc("cpu", "16", "memory", "32Gi"), four("n2")})
	leader := testkit.Pod("leader").Req("cpu", "1").Label("role", "leader").Apart(v1.LabelHostname, "role", "worker")
	worker := testkit.Pod("worker").Req("cpu", "1").Label("role", "worker").Apart(v1.LabelHostname, "role", "worker")
	r := w.group(2, "", leader, worker)
	w.DecideGroup(r)
	if got := w.where(r); got != "n1 n2" {
		t.Errorf("the leader and the worker are on %s, want n1 n2", got)
	}
}

// TestNominatedMembers: what is kept for a member is no obstacle to it, and it goes there if it can. If it
// can't and the group is placed, it stays nominated; if the group isn't, nobody does, but where victims or
// coming nodes are waited for.
func TestNominatedMembers(t *testing.T) {
	for _, c := range []struct {
		min      int
		reserved bool
		want     string
	}{{1, false, "n1 -; , n2"}, {2, false, "- -; , "}, {2, true, "- -; n1, n2"}} {
		min := c.min
		w := newWorld(t, fours("n1", "n2"), running("full", "4", 0, "n2"))
		r := w.group(min, "", testkit.Pod("a").Req("cpu", "3"), testkit.Pod("b").Req("cpu", "3"))
		w.Nominate(r.Members[0].Pod, "n1")
		w.Nominate(r.Members[1].Pod, "n2")
		w.Reserved = func(types.UID) bool { return c.reserved }
		w.DecideGroup(r)
		got := fmt.Sprint(w.where(r), "; ", w.NominatedTo("pod-a"), ", ", w.NominatedTo("pod-b"))
		if got != c.want {
			t.Errorf("of which %d are needed, places are kept %v: %s, want %s", min, c.reserved, got, c.want)
		}
	}
}

// TestWhoLeavesForAGroup that finds too few places.
func TestWhoLeavesForAGroup(t *testing.T) {
	member := func(name, cpu string) *testkit.PodBuilder {
		return testkit.Pod(name).Req("cpu", cpu).Priority(10)
	}
	zoned := func(name, zone string) *testkit.NodeBuilder {
		return testkit.Node(name).Alloc("cpu", "4", "memory", "8Gi").Zone(zone)
	}
	for _, c := range []struct {
		name    string
		nodes   []*testkit.NodeBuilder
		placed  []*testkit.PodBuilder
		min     int
		label   string
		members []*testkit.PodBuilder
		want    string // who leaves; and where the members are nominated
	}{
		{name: "the lowest priority", nodes: fours("n1", "n2"), placed: []*testkit.PodBuilder{running("a", "4", 1, "n1"), running("b", "4", 2, "n2")},
			min: 2, members: []*testkit.PodBuilder{member("x", "2"), member("y", "2")}, want: "a; n1 n1"},
		{name: "one instead of one on each node, where members would be best", nodes: fours("n1", "n2"),
			placed: []*testkit.PodBuilder{running("a", "3", 1, "n1"), running("b", "3", 1, "n2"), running("c", "1", 20, "n2")},
			min:    2, members: []*testkit.PodBuilder{member("x", "2"), member("y", "2")}, want: "a; n1 n1"},
		{name: "nobody for a group that doesn't fit then", nodes: fours("n1", "n2"), placed: []*testkit.PodBuilder{running("a", "4", 1, "n1"), running("b", "4", 20, "n2")},
			min: 2, members: []*testkit.PodBuilder{member("x", "3"), member("y", "3")}, want: "; - -"},
		{name: "in the domain where it costs the least", nodes: []*testkit.NodeBuilder{zoned("a1", "a"), zoned("a2", "a"), zoned("b1", "b"), zoned("b2", "b")},
			placed: []*testkit.PodBuilder{running("a", "4", 1, "a1"), running("b", "4", 3, "a2"), running("c", "4", 2, "b1"), running("d", "4", 2, "b2")},
			min:    2, label: v1.LabelTopologyZone, members: []*testkit.PodBuilder{member("x", "3"), member("y", "3")}, want: "c d; b1 b2"},
		{name: "who would have to leave only where members are at first", nodes: []*testkit.NodeBuilder{four("n1"), four("n2"), four("n3")},
			placed: []*testkit.PodBuilder{running("a", "1", 5, "n1"), running("b", "4", 1, "n2"), running("c", "4", 20, "n3")},
			min:    2, members: []*testkit.PodBuilder{member("x", "3"), member("y", "4")}, want: "b; n1 n2"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, c.nodes, c.placed...)
			r := w.group(c.min, c.label, c.members...)
			d := w.DecideGroup(r)
			var leave, at []string
			if d.Victims != nil {
				for _, p := range d.Victims.Pods {
					leave = append(leave, p.Object.Name)
				}
			}
			slices.Sort(leave)
			for i := range r.Members {
				at = append(at, cmp.Or(w.NominatedTo(r.Members[i].Pod.UID), "-"))
			}
			slices.Sort(at)
			if got := strings.Join(leave, " ") + "; " + strings.Join(at, " "); got != c.want {
				t.Errorf("%s, want %s (%s)", got, c.want, d.Message)
			}
		})
	}
}

// TestPlacesStayWhereAGroupMayNotPreempt: members keep their places on nodes that are coming when an attempt fails, and
// nothing of it is in the journal, whatever keeps the group from preempting.
func TestPlacesStayWhereAGroupMayNotPreempt(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*framework.Profile)
		policy v1.PreemptionPolicy
	}{
		{"by its policy", func(*framework.Profile) {}, v1.PreemptNever},
		{"nobody preempts", func(p *framework.Profile) { p.Preempter = nil }, v1.PreemptLowerPriority},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorldWith(t, c.change, fours("n1"))
			var members []*testkit.PodBuilder
			for _, name := range []string{"a", "b"} {
				m := testkit.Pod(name).Req("cpu", "3")
				m.Spec.PreemptionPolicy = &c.policy
				members = append(members, m)
			}
			r := w.group(2, "", members...)
			w.Reserved = func(uid types.UID) bool { return uid == r.Members[1].Pod.UID }
			w.Nominate(r.Members[1].Pod, "n1")
			at := w.Head()
			if d := w.DecideGroup(r); len(d.Places) > 0 {
				t.Fatalf("members have places: %v", w.where(r))
			}
			if changes, known := w.Since(at); !known || len(changes) > 0 || w.NominatedTo(r.Members[1].Pod.UID) != "n1" {
				t.Errorf("%d changes, and the member is nominated to %q", len(changes), w.NominatedTo(r.Members[1].Pod.UID))
			}
			w.Reserved = func(types.UID) bool { return false }
			if w.DecideGroup(r); w.NominatedTo(r.Members[1].Pod.UID) != "" {
				t.Error("a member for which no place is kept stays nominated")
			}
		})
	}
}

// TestReasonsOfManyKindsOfMembers: of a group whose members all differ each has a reason, and that takes a look at all
// nodes for so many of them. Some of the members may have places.
func TestReasonsOfManyKindsOfMembers(t *testing.T) {
	const kinds, told = 300, 256
	for _, placed := range []int{0, 1} {
		w := newWorld(t, fours("n1"))
		var members []*testkit.PodBuilder
		for i := range kinds {
			cpu := fmt.Sprint(4001+i, "m")
			if i < placed {
				cpu = "1"
			}
			members = append(members, testkit.Pod(fmt.Sprint("m", i)).Req("cpu", cpu))
		}
		d := w.DecideGroup(w.group(1, "", members...))
		counts := map[string]int{}
		for _, why := range d.Why {
			counts[why]++
		}
		short, _, _ := strings.Cut(d.Why[kinds-1], ":")
		if len(d.Places) != placed || counts[""] != placed || counts[d.Why[placed]] != told || short != "no node takes it" || counts[d.Why[kinds-1]] != kinds-told-placed {
			t.Errorf("%d places, and reasons %v", len(d.Places), counts)
		}
	}
}
