package scheduler_test

import (
	"cmp"
	"fmt"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/berthproject/berth/internal/test/testkit"
)

// guarded is a world of one node of 8 CPUs for each zone. The first zones are half full, with a pod that pods of the
// kind b keep away from: they have the best scores, since they are the fullest.
func guarded(t *testing.T, zones, first int) *world {
	w := newWorld(t, nil)
	for i := range zones {
		node := fmt.Sprintf("n%03d", i)
		w.node(testkit.Node(node).Alloc("cpu", "8", "memory", "32Gi").Zone(fmt.Sprintf("z%03d", i)))
		if i < first {
			w.place(testkit.Pod("on-"+node).Req("cpu", "4", "memory", "1Gi").Label("owner", "other").On(node))
		}
	}
	return w
}

// ofKinds are members, each of one CPU, by the letters of kinds; a's have no rules, and b's keep away from the pods
// of others in their zone.
func ofKinds(kinds string) (out []*testkit.PodBuilder) {
	for i, kind := range kinds {
		m := testkit.Pod(fmt.Sprint("m", i)).Req("cpu", "1", "memory", "1Gi")
		if kind == 'b' {
			m.Apart(v1.LabelTopologyZone, "owner", "other")
		}
		out = append(out, m)
	}
	return out
}

// TestDomainsThatRefuseMembers: of 500 zones, 470 would hold a group by what its members request and have the best
// scores, but pods are there that its members keep away from. It goes to one of the other 30 at the first attempt. How
// much work that is doesn't depend on how many zones refuse.
func TestDomainsThatRefuseMembers(t *testing.T) {
	const zones, refused = 500, 470
	for _, c := range []struct {
		name, kinds string
		most        int // work
	}{
		{"any member", "bbbb", 4 * zones},
		{"the second member", "abaa", 6 * zones},
		{"the last member", "aaab", 6 * zones},
		{"members of a group of which some may be left out", "bbbbbaa", 6 * zones},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := guarded(t, zones, refused)
			r := w.group(4, v1.LabelTopologyZone, ofKinds(c.kinds)...)
			d := w.DecideGroup(r)
			if len(d.Places) < 4 || d.Domain < fmt.Sprintf("z%03d", refused) {
				t.Errorf("%d members have places in zone %q: %s", len(d.Places), d.Domain, d.Message)
			}
			if d.Work > c.most {
				t.Errorf("the decision has cost %d, want at most %d", d.Work, c.most)
			}
		})
	}
}

// TestDomainsTakeTurns: in each of 300 zones 99 of 100 members find places, and in one of them all. The last member
// wants to be on a node with a pod of its owner. The others are such pods, but can't be on the nodes that it can be on;
// rules don't say that at once, so that each zone has to be tried. No attempt can try all. Each says how many it leaves
// to later ones, and one of the next ones finds the zone.
func TestDomainsTakeTurns(t *testing.T) {
	const zones, attempts = 300, 10
	for _, free := range []int{0, 40, 150, 299} {
		w := newWorld(t, nil)
		for i := range zones {
			zone := fmt.Sprintf("z%03d", i)
			w.node(testkit.Node("a-"+zone).Alloc("cpu", "128", "memory", "256Gi").Zone(zone).Label("for", "a").Label(v1.LabelHostname, "a-"+zone))
			w.node(testkit.Node("b-"+zone).Alloc("cpu", "2", "memory", "8Gi").Zone(zone).Label("for", "b").Label(v1.LabelHostname, "b-"+zone))
			owner := "other"
			if i == free {
				owner = "mine"
			}
			w.place(testkit.Pod("on-"+zone).Req("cpu", "1", "memory", "1Gi").Label("owner", owner).On("b-" + zone))
		}
		members := make([]*testkit.PodBuilder, 100)
		for i := range members {
			members[i] = testkit.Pod(fmt.Sprint("m", i)).Req("cpu", "1", "memory", "1Gi").Label("owner", "mine").Select("for", "a")
		}
		members[99] = testkit.Pod("last").Req("cpu", "1", "memory", "1Gi").Together(v1.LabelHostname, "owner", "mine").Select("for", "b")
		r := w.group(100, v1.LabelTopologyZone, members...)
		found := false
		for r.Attempt = 0; r.Attempt < attempts && !found; r.Attempt++ {
			d := w.DecideGroup(r)
			found = len(d.Places) == 100 && d.Domain == fmt.Sprintf("z%03d", free)
			if !found && (len(d.Places) > 0 || !strings.Contains(d.Message, "0/300 placements are available (2")) {
				t.Fatalf("attempt %d: %d members have places in zone %q: %s", r.Attempt, len(d.Places), d.Domain, d.Message)
			}
			if most := 130_000; d.Work > most {
				t.Errorf("attempt %d has cost %d, want at most %d", r.Attempt, d.Work, most)
			}
		}
		if !found {
			t.Errorf("the group that would fit in zone %d has no places after %d attempts", free, attempts)
		}
	}
}

// TestTheBestOfManyDomains: whichever domains an attempt begins with, the group goes to the one with the best score of
// those that take it.
func TestTheBestOfManyDomains(t *testing.T) {
	const zones, refused = 120, 40
	for attempt := range 4 {
		w := guarded(t, zones, refused)
		for i := refused; i < zones; i++ { // the later by name, the fuller, and less so than those that refuse
			node := fmt.Sprintf("n%03d", i)
			w.place(testkit.Pod("on-"+node).Req("cpu", fmt.Sprint(i*25, "m"), "memory", "1Gi").On(node))
		}
		r := w.group(4, v1.LabelTopologyZone, ofKinds("bbbb")...)
		r.Attempt = attempt
		if d := w.DecideGroup(r); d.Domain != "z119" {
			t.Errorf("attempt %d: the group is in zone %q, want z119: %s", attempt, d.Domain, d.Message)
		}
	}
}

// TestVictimsInAnyDomain: of 500 zones, pods could leave the last one by name for a group. Nobody could leave the
// others, which have room and pods that the members keep away from, or too few could.
func TestVictimsInAnyDomain(t *testing.T) {
	const zones = 500
	for _, c := range []struct {
		name   string
		others func(w *world, node string)
	}{
		{"nobody could leave the others", func(w *world, node string) {
			w.place(running(node+"-stays", "1", 20, node).Label("owner", "other"))
		}},
		{"too few could leave the others", func(w *world, node string) {
			w.place(running(node+"-stays", "3", 20, node))
			w.place(running(node+"-low", "1", 1, node))
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, nil)
			for i := range zones {
				node := fmt.Sprintf("n%03d", i)
				w.node(testkit.Node(node).Alloc("cpu", "4", "memory", "8Gi").Zone(fmt.Sprintf("z%03d", i)))
				if i < zones-1 {
					c.others(w, node)
				} else {
					w.place(running("low", "4", 1, node))
				}
			}
			members := ofKinds("bb")
			for _, m := range members {
				m.Priority(10)
			}
			d := w.DecideGroup(w.group(2, v1.LabelTopologyZone, members...))
			if d.Victims == nil {
				t.Fatalf("nobody leaves: %s", d.Message)
			}
			if len(d.Victims.Pods) != 1 || d.Victims.Pods[0].Object.Name != "low" {
				t.Errorf("%d pods leave, %s among them; want low", len(d.Victims.Pods), d.Victims.Pods[0].Object.Name)
			}
		})
	}
}

// TestVictimsTakeTurns: in each of 200 zones somebody could leave, and enough could to make room, but what stays keeps
// members away; in all but one. One of the first attempts finds it.
func TestVictimsTakeTurns(t *testing.T) {
	const zones, attempts = 200, 8
	w := newWorld(t, nil)
	for i := range zones {
		node := fmt.Sprintf("n%03d", i)
		w.node(testkit.Node(node).Alloc("cpu", "4", "memory", "8Gi").Zone(fmt.Sprintf("z%03d", i)))
		w.place(running("low-"+node, "4", 1, node))
		if i != 150 {
			w.place(running("stays-"+node, "0", 20, node).Label("owner", "other"))
		}
	}
	members := ofKinds("bb")
	for _, m := range members {
		m.Priority(10)
	}
	r := w.group(2, v1.LabelTopologyZone, members...)
	for r.Attempt = range attempts {
		d := w.DecideGroup(r)
		if d.Victims != nil {
			if got := d.Victims.Pods[0].Object.Name; got != "low-n150" {
				t.Errorf("%s leaves, want low-n150", got)
			}
			return
		}
		if !strings.Contains(d.Message, "pod group preemption: 0/200 placements are available") {
			t.Errorf("attempt %d: %s", r.Attempt, d.Message)
		}
	}
	t.Errorf("nobody has left after %d attempts", attempts)
}

// TestNoNodeHasTheLabel: the reason names the labels that no node has.
func TestNoNodeHasTheLabel(t *testing.T) {
	w := newWorld(t, fours("n1"))
	r := w.group(1, "example.com/rack", testkit.Pod("a").Req("cpu", "1"))
	want := "0/0 placements are available: no node has the label example.com/rack"
	if d := w.DecideGroup(r); !strings.HasPrefix(d.Message, want) || !strings.HasPrefix(cmp.Or(d.Why...), want) {
		t.Errorf("the group waits for %q, and its member for %q; want %q", d.Message, d.Why, want)
	}
}
