package cluster_test

import (
	"fmt"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/internal/test/testkit"
)

// nominations prints who is to come where, those to no node last, and who each node
// awaits.
func nominations(s *cluster.State) string {
	var out []string
	for _, n := range s.Nominations() {
		at := n.Name
		if n.Node == cluster.NoNode {
			at += "?"
		} else if s.Node(n.Node).Name != n.Name {
			at += " at " + s.Node(n.Node).Name
		}
		out = append(out, n.Pod.Object.Name+" to "+at)
	}
	s.Nodes(func(n *cluster.Node) {
		var names []string
		for _, p := range n.Nominated {
			names = append(names, p.Object.Name)
		}
		if len(names) > 0 {
			out = append(out, fmt.Sprintf("%s awaits %s", n.Name, strings.Join(names, " ")))
		}
	})
	return strings.Join(out, ", ")
}

func TestNominations(t *testing.T) {
	s := newState()
	setNode(s, testkit.Node("n"))
	setNode(s, testkit.Node("m"))
	nominate := func(p *testkit.PodBuilder, node string) func() {
		return func() { s.Nominate(s.Schema.ParsePod(p.Obj()), node) }
	}
	parsed := s.Schema.ParsePod(testkit.Pod("a").Obj())
	for _, c := range []struct {
		name string
		do   func()
		want string
	}{
		{"one", nominate(testkit.Pod("b"), "n"), "b to n, n awaits b"},
		{"another, sorted by UID on the node", func() { s.Nominate(parsed, "n") }, "a to n, b to n, n awaits a b"},
		{"the same again", func() { s.Nominate(parsed, "n") }, "a to n, b to n, n awaits a b"},
		{"a newer version of it", nominate(testkit.Pod("a").Priority(3), "n"), "a to n, b to n, n awaits a b"},
		{"to another node", nominate(testkit.Pod("b"), "m"), "a to n, b to m, n awaits a, m awaits b"},
		{"to a node that isn't known", nominate(testkit.Pod("c"), "later"), "a to n, b to m, c to later?, n awaits a, m awaits b"},
		{"that node comes", func() { setNode(s, testkit.Node("later")) }, "a to n, b to m, c to later, n awaits a, m awaits b, later awaits c"},
		{"a node goes", func() { s.RemoveNode("n") }, "b to m, c to later, a to n?, m awaits b, later awaits c"},
		{"its index is used again", func() { setNode(s, testkit.Node("other")) }, "b to m, c to later, a to n?, m awaits b, later awaits c"},
		{"a node is updated", func() { setNode(s, testkit.Node("m").Cordon()) }, "b to m, c to later, a to n?, m awaits b, later awaits c"},
		{"one ends", nominate(testkit.Pod("b"), ""), "c to later, a to n?, later awaits c"},
		{"none ends", nominate(testkit.Pod("b"), ""), "c to later, a to n?, later awaits c"},
		{"one is placed", func() { place(s, testkit.Pod("c"), "m") }, "a to n?"},
	} {
		before := nominations(s)
		mark := s.Mark()
		c.do()
		if got := nominations(s); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
		s.Rollback(mark)
		if got := nominations(s); got != before {
			t.Errorf("%s, rolled back: %s, want %s", c.name, got, before)
		}
		c.do()
		if broken := s.Broken(); len(broken) > 0 {
			t.Errorf("%s: %s", c.name, strings.Join(broken, "\n"))
		}
	}
	if s.NominatedTo("pod-a") != "n" || s.NominatedTo("pod-b") != "" {
		t.Errorf("a is nominated to %q, b to %q; want n and none", s.NominatedTo("pod-a"), s.NominatedTo("pod-b"))
	}
	if got := s.Nominations()[0].Pod.Priority; got != 3 {
		t.Errorf("the nominated pod has priority %d, want the newer version's 3", got)
	}
}

// Nominating the same version of a pod to the same node again is no change.
func TestNominatingAgainLeavesNoTrace(t *testing.T) {
	s := newState()
	p := s.Schema.ParsePod(testkit.Pod("p").Obj())
	s.Nominate(p, "n")
	from := s.Head()
	s.Nominate(p, "n")
	if s.Head() != from {
		t.Errorf("recorded: %s", journal(s, from))
	}
	s.Nominate(s.Schema.ParsePod(testkit.Pod("p").Obj()), "n")
	if got := journal(s, from); got != "NominationRemoved:p, NominationAdded:p" {
		t.Errorf("a newer version: recorded %s", got)
	}
}

// Claims of pods that are placed, and of pods that are to come.
func TestClaimsInUse(t *testing.T) {
	s := newState()
	setNode(s, testkit.Node("n"))
	using := func(name, claim string) *testkit.PodBuilder {
		p := testkit.Pod(name)
		p.Spec.Volumes = append(p.Spec.Volumes, claimVolume(claim))
		return p
	}
	ephemeral := testkit.Pod("e")
	ephemeral.Spec.Volumes = []v1.Volume{{Name: "scratch", VolumeSource: v1.VolumeSource{Ephemeral: &v1.EphemeralVolumeSource{}}}}

	place(s, using("a", "shared"), "n")
	place(s, using("b", "shared"), "n")
	place(s, using("orphan", "far"), "gone")
	place(s, ephemeral, "n")
	s.Nominate(s.Schema.ParsePod(using("c", "awaited").Obj()), "n")
	other := testkit.Pod("f")
	other.Spec.Volumes = ephemeral.Spec.Volumes
	s.Nominate(s.Schema.ParsePod(other.Obj()), "gone")
	check := func(when string, want map[string]string) {
		t.Helper()
		for name, w := range want {
			key := cluster.ClaimKey{Namespace: "default", Name: name}
			if got := fmt.Sprintf("%d users, awaited %v, in use %v", s.ClaimUsers(key), s.ClaimAwaited(key), s.ClaimInUse(key)); got != w {
				t.Errorf("%s: %s has %s; want %s", when, name, got, w)
			}
		}
	}
	check("at first", map[string]string{
		"shared":    "2 users, awaited false, in use true",
		"awaited":   "0 users, awaited true, in use true",
		"e-scratch": "0 users, awaited false, in use true", // made for the pod, which doesn't name it
		"f-scratch": "0 users, awaited false, in use true",
		"far":       "0 users, awaited false, in use false",
		"nobody's":  "0 users, awaited false, in use false",
	})
	s.Remove("pod-a")
	s.Remove("pod-e")
	s.Nominate(s.Schema.ParsePod(using("c", "awaited").Obj()), "")
	s.Nominate(s.Schema.ParsePod(other.Obj()), "")
	check("after some have left", map[string]string{
		"shared":    "1 users, awaited false, in use true",
		"awaited":   "0 users, awaited false, in use false",
		"e-scratch": "0 users, awaited false, in use false",
		"f-scratch": "0 users, awaited false, in use false",
	})
	s.Remove("pod-b")
	check("after all have left", map[string]string{"shared": "0 users, awaited false, in use false"})
}

// TestNominatedNodesBut passes over nodes that await only stand-ins of some headrooms, and looks at
// none of them: what it returns is all that its callers look at.
func TestNominatedNodesBut(t *testing.T) {
	s := newState()
	for i := range 100 {
		name := fmt.Sprintf("n%02d", i)
		setNode(s, testkit.Node(name))
		standIn := s.Schema.ParsePod(testkit.Pod("large-" + name).Obj())
		standIn.StandIn = "large"
		s.Nominate(standIn, name)
	}
	await := func(node string, in cluster.HeadroomID) {
		p := s.Schema.ParsePod(testkit.Pod("of-" + string(in) + "-" + node).Obj())
		p.StandIn = in
		s.Nominate(p, node)
	}
	var buf []cluster.NodeIndex
	for _, c := range []struct {
		name string
		do   func()
		but  []cluster.HeadroomID
		want string // the nodes, or how many
	}{
		{"of another headroom", func() {}, []cluster.HeadroomID{"small"}, "100"},
		{"of no headroom", func() {}, nil, "100"},
		{"all are of it", func() {}, []cluster.HeadroomID{"large"}, "[]"},
		{"pods beside them", func() { await("n07", ""); await("n03", "") }, []cluster.HeadroomID{"large"}, "[3 7]"},
		{"and others' stand-ins", func() { await("n05", "small"); await("n03", "small") }, []cluster.HeadroomID{"large"}, "[3 5 7]"},
		{"which are admitted, too", func() {}, []cluster.HeadroomID{"large", "small"}, "[3 7]"},
		{"only these are admitted", func() {}, []cluster.HeadroomID{"small"}, "100"},
		{"a node goes", func() { s.RemoveNode("n03") }, []cluster.HeadroomID{"large"}, "[5 7]"},
		{"it comes again", func() { setNode(s, testkit.Node("n03")) }, []cluster.HeadroomID{"large"}, "[3 5 7]"},
		{"a pod comes", func() { s.Nominate(s.Node(7).Nominated[1], "") }, []cluster.HeadroomID{"large"}, "[3 5]"},
	} {
		c.do()
		list := s.NominatedNodesBut(c.but, &buf)
		got := fmt.Sprint(list)
		if len(list) > 10 {
			got = fmt.Sprint(len(list))
		}
		if got != c.want {
			t.Errorf("%s: got %s, want %s", c.name, got, c.want)
		}
	}
}

// TestNominationsHaveTurns nominates pods in an order that isn't that of their UIDs, to a node that is there and to one
// that isn't: the dump tells states apart in which they have other turns.
func TestNominationsHaveTurns(t *testing.T) {
	for _, node := range []string{"n", "later"} {
		turns := func(do func(s *cluster.State, a, b, c *cluster.Pod)) string {
			s := newState()
			setNode(s, testkit.Node("n"))
			var pods []*cluster.Pod
			for _, name := range []string{"a", "b", "c"} {
				pods = append(pods, s.Schema.ParsePod(testkit.Pod(name).Obj()))
			}
			do(s, pods[0], pods[1], pods[2])
			var dump strings.Builder
			s.Dump(&dump)
			_, line, _ := strings.Cut(dump.String(), "node "+node+" in turn: ")
			line, _, _ = strings.Cut(line, "\n")
			return line
		}
		for _, c := range []struct {
			name, want string
			do         func(s *cluster.State, a, b, c *cluster.Pod)
		}{
			{"in order", "pod-a pod-b", func(s *cluster.State, a, b, _ *cluster.Pod) { s.Nominate(a, node); s.Nominate(b, node) }},
			{"backwards", "pod-b pod-a", func(s *cluster.State, a, b, _ *cluster.Pod) { s.Nominate(b, node); s.Nominate(a, node) }},
			{"in place of one that ends", "pod-c pod-b", func(s *cluster.State, a, b, c *cluster.Pod) {
				s.Nominate(a, node)
				was := s.NominationOf(a.UID)
				s.Nominate(b, node)
				s.Nominate(a, "")
				s.NominateInTurn(c, node, was)
			}},
			{"in place of one elsewhere", "pod-b pod-c", func(s *cluster.State, a, b, c *cluster.Pod) {
				s.Nominate(a, "elsewhere")
				was := s.NominationOf(a.UID)
				s.Nominate(b, node)
				s.NominateInTurn(c, node, was)
			}},
			{"in place of none", "pod-b pod-c", func(s *cluster.State, _, b, c *cluster.Pod) {
				s.Nominate(b, node)
				s.NominateInTurn(c, node, nil)
			}},
			{"by a number of before", "pod-c pod-b", func(s *cluster.State, _, b, c *cluster.Pod) {
				turn := s.NextTurn()
				s.KeepPlace(b, node)
				s.Renominate(c, &cluster.Nomination{Name: node, Begun: turn})
			}},
		} {
			if got := turns(c.do); got != c.want {
				t.Errorf("%s, to %s: %q in turn, want %q", c.name, node, got, c.want)
			}
		}
	}
}
