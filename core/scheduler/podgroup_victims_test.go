package scheduler_test

import (
	"fmt"
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"github.com/berthproject/berth/core/framework"
	"github.com/berthproject/berth/internal/test/testkit"
)

// TestMoreVictimsThanAreTakenOffAtOnce: a gang needs 850 nodes, on each of which ten pods of one priority are. No search
// that takes pods off before it looks may take so many, and one that looks where a member costs the least finds them.
func TestMoreVictimsThanAreTakenOffAtOnce(t *testing.T) {
	const nodes, each = 850, 10
	w := newWorld(t, nil)
	for i := range nodes {
		node := fmt.Sprintf("n%03d", i)
		w.node(testkit.Node(node).Alloc("cpu", "4", "memory", "8Gi"))
		for k := range each {
			w.place(running(fmt.Sprint("low-", k, "-", node), "100m", 1, node))
		}
	}
	var members []*testkit.PodBuilder
	for i := range nodes {
		members = append(members, testkit.Pod(fmt.Sprint("m", i)).Req("cpu", "4").Priority(10))
	}
	r := w.group(nodes, "", members...)
	d := w.DecideGroup(r)
	if d.Victims == nil || len(d.Victims.Pods) != nodes*each {
		t.Fatalf("%+v leave, want %d: %s", d.Victims, nodes*each, d.Message)
	}
	for _, m := range r.Members {
		if w.NominatedTo(m.Pod.UID) == "" {
			t.Fatalf("%s is nominated to no node", m.Pod.Name())
		}
	}
}

// TestAlikeVictims: a gang of ten preempts on a hundred nodes, on each of which ten pods are that no rule can tell apart,
// and a pod that members have to be with. Of ten pods on a node one is asked whether it may stay after all, and all nodes
// are looked at once, not for each member.
func TestAlikeVictims(t *testing.T) {
	const nodes, each, size = 100, 10, 10
	w := newWorld(t, nil)
	for i := range nodes {
		node := fmt.Sprint("n", i)
		w.node(testkit.Node(node).Alloc("cpu", "4", "memory", "8Gi"))
		w.place(testkit.Pod("anchor-"+node).Label("app", "anchor").Req("cpu", "0").Priority(10).On(node))
		for k := range each {
			w.place(running(fmt.Sprint("low-", k, "-", node), "100m", 1, node))
		}
	}
	var members []*testkit.PodBuilder
	for i := range size {
		members = append(members, testkit.Pod(fmt.Sprint("m", i)).Req("cpu", "4").Priority(10).Together(v1.LabelHostname, "app", "anchor"))
	}
	d := w.DecideGroup(w.group(size, "", members...))
	if d.Victims == nil || len(d.Victims.Pods) != size*each {
		t.Fatalf("%+v leave, want %d: %s", d.Victims, size*each, d.Message)
	}
	// All 1,000 leave at first. Then for each of the ten nodes it is tried whether one of the others will do, without a
	// hundred pods.
	if most := nodes*each + 15*size*each; d.TakenOff > most {
		t.Errorf("%d pods were taken off, want %d at most", d.TakenOff, most)
	}
	if most := 12 * nodes; d.Work > most { // questions about who comes back among it
		t.Errorf("the work is %d, want %d at most", d.Work, most)
	}
}

// TestWorkOfVictimsOneByOne: where rules look beyond a node, how many nodes are looked at for the victims of members one
// after the other is bounded, also when there are none for most of them, and in a group's domain that domain's only.
func TestWorkOfVictimsOneByOne(t *testing.T) {
	const nodes = 3000
	const most = 1<<14 + 100_000 + 4*nodes // and an exhaustive search, and the members in order
	for _, c := range []struct {
		name     string
		topology string
		size     int
		member   func(*testkit.PodBuilder) *testkit.PodBuilder
	}{
		{"a third of the nodes has nobody who may leave, and members are spread", "", 200, func(p *testkit.PodBuilder) *testkit.PodBuilder {
			return p.Label("app", "gang").SpreadHard(v1.LabelTopologyZone, 1, "app", "gang")
		}},
		{"a group needs more nodes than its rack has", "rack", 11, func(p *testkit.PodBuilder) *testkit.PodBuilder { return p }},
		{"a group may have the nodes of one rack", "rack", 10, func(p *testkit.PodBuilder) *testkit.PodBuilder { return p }},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, nil)
			for i := range nodes {
				node, priority := fmt.Sprint("n", i), int32(1)
				if i%3 == 2 && c.topology == "" {
					priority = 10
				}
				w.node(testkit.Node(node).Alloc("cpu", "4", "memory", "8Gi").Zone(fmt.Sprint("z", i%3)).Label("rack", fmt.Sprint("r", i/10)))
				w.place(running("low-"+node, "4", priority, node))
			}
			var members []*testkit.PodBuilder
			for i := range c.size {
				members = append(members, c.member(testkit.Pod(fmt.Sprint("m", i)).Req("cpu", "4").Priority(10)))
			}
			d := w.DecideGroup(w.group(c.size, c.topology, members...))
			if found := d.Victims != nil; found != (c.size == 10) || found && len(d.Victims.Pods) != c.size {
				t.Errorf("%+v leave: %s", d.Victims, d.Message)
			}
			if d.Work > most || d.Work == 0 {
				t.Errorf("the work is %d, want %d at most", d.Work, most)
			}
		})
	}
}

// TestPropertyWhoComesBack: those who left for a group come back as if each question were about all members, though most
// questions aren't asked: a node without room for its members ends one, and where all rules look at one node, members
// elsewhere aren't asked about.
func TestPropertyWhoComesBack(t *testing.T) {
	asked, stay := 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		w, r := drawFullCluster(t, rt)
		for i := range r.Members {
			r.Members[i].Class = w.Class(r.Members[i].Pod)
		}
		if r.Topology != "" && w.upstreamVictims(r) == nil {
			return // there may be no domain that anybody could leave
		}
		fast, slow, ok := w.Reprieve(r)
		if !ok {
			return
		}
		asked, stay = asked+1, stay+len(slow)
		if !slices.EqualFunc(fast, slow, func(a, b framework.Unit) bool { return slices.Equal(a.Pods, b.Pods) }) {
			rt.Fatalf("%v can't come back, want %v\n%s", fast, slow, dump(w.State))
		}
	})
	if asked == 0 || stay == 0 {
		t.Errorf("in %d clusters %d units couldn't come back", asked, stay)
	}
}
