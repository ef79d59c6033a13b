package cluster_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/internal/test/testkit"
)

// journal prints the changes from a position on, each with the name of the node
// that it touches.
func journal(s *cluster.State, from cluster.Seq) string {
	changes, ok := s.Since(from)
	if !ok {
		return "out of reach"
	}
	var out []string
	for i := range changes {
		text := changes[i].Op.String()
		switch n := s.Node(changes[i].Node); {
		case n != nil:
			text += " " + n.Name
		case changes[i].Node != cluster.NoNode:
			text += fmt.Sprint(" #", changes[i].Node)
		}
		if p := changes[i].Pod; p != nil {
			text += ":" + p.Object.Name
		}
		out = append(out, text)
	}
	return strings.Join(out, ", ")
}

// podsOf prints the pods of a node in their order.
func podsOf(n *cluster.Node) string {
	var out []string
	for _, p := range n.Pods {
		out = append(out, p.Object.Name)
	}
	return strings.Join(out, " ")
}

// TestJournal has, for each thing that may be done to a state, what is recorded
// of it.
func TestJournal(t *testing.T) {
	group := &cluster.NodeGroup{ID: "g"}
	service := &cluster.Workload{Kind: cluster.Service, Namespace: "default", Name: "s", Set: map[string]string{"app": "web"}}
	for _, c := range []struct {
		name string
		do   func(s *cluster.State)
		want string
	}{
		{"a node comes", func(s *cluster.State) { setNode(s, testkit.Node("m")) }, "NodeAdded m"},
		{"a node changes", func(s *cluster.State) { setNode(s, testkit.Node("n").Cordon()) }, "NodeUpdated n"},
		{"a node goes", func(s *cluster.State) { s.RemoveNode("n") }, "PodRemoved #0:b, OrphanAdded:b, PodRemoved #0:a, OrphanAdded:a, NodeRemoved #0"},
		{"an unknown node goes", func(s *cluster.State) { s.RemoveNode("m") }, ""},
		{"the node of orphans comes", func(s *cluster.State) { setNode(s, testkit.Node("gone")) },
			"NodeAdded gone, OrphanRemoved:o1, PodAdded gone:o1, OrphanRemoved:o2, PodAdded gone:o2"},
		{"a pod is placed", func(s *cluster.State) { place(s, testkit.Pod("c"), "n") }, "PodAdded n:c"},
		{"a pod is placed on an unknown node", func(s *cluster.State) { place(s, testkit.Pod("c"), "m") }, "OrphanAdded:c"},
		{"a pod is placed by index", func(s *cluster.State) { s.PlaceAt(s.Schema.ParsePod(testkit.Pod("c").Obj()), 0) }, "PodAdded n:c"},
		{"a pod moves", func(s *cluster.State) { place(s, testkit.Pod("o1"), "n") }, "OrphanRemoved:o1, PodAdded n:o1"},
		{"a pod moves by index", func(s *cluster.State) { s.PlaceAt(s.Schema.ParsePod(testkit.Pod("o1").Obj()), 0) }, "OrphanRemoved:o1, PodAdded n:o1"},
		{"a nominated pod is placed", func(s *cluster.State) { place(s, testkit.Pod("nominee"), "n") }, "NominationRemoved n:nominee, PodAdded n:nominee"},
		{"a nominated pod is placed by index", func(s *cluster.State) { s.PlaceAt(s.Schema.ParsePod(testkit.Pod("nominee").Obj()), 0) },
			"NominationRemoved n:nominee, PodAdded n:nominee"},
		{"a pod goes", func(s *cluster.State) { s.Remove("pod-a") }, "PodRemoved n:a"},
		{"an orphan goes", func(s *cluster.State) { s.Remove("pod-o2") }, "OrphanRemoved:o2"},
		{"an unknown pod goes", func(s *cluster.State) { s.Remove("pod-c") }, ""},
		{"a group is set", func(s *cluster.State) { s.SetGroup("g", group) }, "GroupSet"},
		{"a workload is set", func(s *cluster.State) { s.SetWorkload(service) }, "WorkloadSet"},
		{"a workload is set twice", func(s *cluster.State) { s.SetWorkload(service); s.SetWorkload(service) }, "WorkloadSet"},
		{"an unknown workload goes", func(s *cluster.State) { s.RemoveWorkload(cluster.Service, "default", "s") }, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newState()
			setNode(s, testkit.Node("n"))
			place(s, testkit.Pod("a"), "n")
			place(s, testkit.Pod("b"), "n")
			place(s, testkit.Pod("o1"), "gone")
			place(s, testkit.Pod("o2"), "gone")
			s.Nominate(s.Schema.ParsePod(testkit.Pod("nominee").Obj()), "n")
			from, before := s.Head(), dump(s)
			mark := s.Mark()
			c.do(s)
			if got := journal(s, from); got != c.want {
				t.Errorf("recorded: %s\nwant: %s", got, c.want)
			}
			if broken := s.Broken(); len(broken) > 0 {
				t.Error(strings.Join(broken, "\n"))
			}
			s.Rollback(mark)
			if got := dump(s); got != before {
				t.Errorf("rolled back:\n%s\nwant:\n%s", got, before)
			}
		})
	}
}

func TestOps(t *testing.T) {
	for op, want := range map[cluster.Op]string{cluster.NodeAdded: "NodeAdded", cluster.ObjectRenewed: "ObjectRenewed", cluster.NominationRemoved: "NominationRemoved", 200: "Op(200)"} {
		if got := op.String(); got != want {
			t.Errorf("%d prints as %s, want %s", uint8(op), got, want)
		}
	}
}

func TestWherePodsAre(t *testing.T) {
	s := newState()
	i := setNode(s, testkit.Node("n"))
	place(s, testkit.Pod("placed"), "n")
	place(s, testkit.Pod("orphan"), "gone")
	place(s, testkit.Pod("other orphan"), "gone")
	for _, c := range []struct {
		uid  types.UID
		at   cluster.NodeIndex
		ok   bool
		name string
		node string
	}{
		{"pod-placed", i, true, "default/placed", "n"},
		{"pod-orphan", cluster.NoNode, true, "default/orphan", ""},
		{"pod-other orphan", cluster.NoNode, true, "default/other orphan", ""},
		{"pod-nowhere", 0, false, "", ""},
	} {
		at, ok := s.Placed(c.uid)
		name, node := "", ""
		if p := s.PodOn(c.uid); p != nil {
			name = p.Name()
		}
		if n := s.NodeOf(c.uid); n != nil {
			node = n.Name
		}
		if at != c.at || ok != c.ok || name != c.name || node != c.node {
			t.Errorf("%s: at %d %v, pod %q on %q; want %d %v %q %q", c.uid, at, ok, name, node, c.at, c.ok, c.name, c.node)
		}
	}
	var all []string
	s.Pods(func(p *cluster.Pod) { all = append(all, p.Object.Name) })
	if got := strings.Join(all, ", "); got != "placed, orphan, other orphan" {
		t.Errorf("the pods are %s", got)
	}
	if !s.Remove("pod-placed") || s.Remove("pod-placed") {
		t.Error("a pod is removed not at all, or twice")
	}
	if s.Node(-1) != nil || s.Node(5) != nil || s.NodeByName("gone") != nil {
		t.Error("there is a node where there is none")
	}
}

// A pod that is removed leaves its place on the node to the last one, and a
// rollback puts each where it was: the order of pods decides between equal
// victims.
func TestOrderOfPodsOnANode(t *testing.T) {
	s := newState()
	n := s.Node(setNode(s, testkit.Node("n")))
	for _, name := range []string{"a", "b", "c", "d"} {
		place(s, testkit.Pod(name).HostPort(80+int32(len(name))), "n")
	}
	mark := s.Mark()
	s.Remove("pod-b")
	if got := podsOf(n); got != "a d c" {
		t.Errorf("without b: %s, want a d c", got)
	}
	s.Remove("pod-c")
	place(s, testkit.Pod("b"), "n")
	if got := podsOf(n); got != "a d b" {
		t.Errorf("b came again: %s, want a d b", got)
	}
	s.Rollback(mark)
	if got := podsOf(n); got != "a b c d" {
		t.Errorf("rolled back: %s, want a b c d", got)
	}
}

// The index of a node that is gone is used again, the last one first.
func TestIndicesAreUsedAgain(t *testing.T) {
	s := newState()
	for i, name := range []string{"a", "b", "c"} {
		if got := setNode(s, testkit.Node(name)); int(got) != i {
			t.Errorf("%s is at %d, want %d", name, got, i)
		}
	}
	if !s.RemoveNode("a") || !s.RemoveNode("b") || s.RemoveNode("b") {
		t.Error("a node is removed not at all, or twice")
	}
	if s.Len() != 3 || s.Live() != 1 || s.Node(0) != nil {
		t.Errorf("%d indices, %d nodes; want 3, 1", s.Len(), s.Live())
	}
	mark := s.Mark()
	for i, name := range []string{"d", "e", "f"} {
		if got := setNode(s, testkit.Node(name)); got != []cluster.NodeIndex{1, 0, 3}[i] {
			t.Errorf("%s is at %d, want %d", name, got, []int{1, 0, 3}[i])
		}
	}
	var order []string
	s.Nodes(func(n *cluster.Node) { order = append(order, n.Name) })
	if got := strings.Join(order, " "); got != "e d c f" {
		t.Errorf("by index the nodes are %s, want e d c f", got)
	}
	s.Rollback(mark)
	if got := setNode(s, testkit.Node("d")); got != 1 || s.Len() != 3 {
		t.Errorf("after a rollback d is at %d of %d, want 1 of 3", got, s.Len())
	}
}

// Pods of a node that isn't known wait for it as orphans.
func TestOrphans(t *testing.T) {
	s := newState()
	setNode(s, testkit.Node("n").Alloc("cpu", "4"))
	place(s, testkit.Pod("a").Req("cpu", "1"), "n")
	place(s, testkit.Pod("b").Req("cpu", "2"), "n")
	s.RemoveNode("n")
	if at, ok := s.Placed("pod-a"); at != cluster.NoNode || !ok {
		t.Errorf("the pod of a node that is gone is at %d, %v", at, ok)
	}
	if !s.Remove("pod-a") || s.Remove("pod-a") || s.Remove("nobody") {
		t.Error("an orphan is held until it is removed, and nobody never")
	}
	n := s.Node(setNode(s, testkit.Node("n").Alloc("cpu", "8")))
	if podsOf(n) != "b" || n.Requested.At(cluster.CPU) != 2000 || n.Allocatable.At(cluster.CPU) != 8000 {
		t.Errorf("the node that came again has %s, which request %v of %v", podsOf(n), n.Requested, n.Allocatable)
	}
}

func TestHasLowerPriority(t *testing.T) {
	s := newState()
	setNode(s, testkit.Node("n"))
	check := func(when string, want map[int32]bool) {
		t.Helper()
		for priority, w := range want {
			if got := s.HasLowerPriority(priority); got != w {
				t.Errorf("%s: somebody below %d is %v, want %v", when, priority, got, w)
			}
		}
	}
	check("nobody is there", map[int32]bool{1 << 30: false})
	place(s, testkit.Pod("a").Priority(5), "n")
	place(s, testkit.Pod("b").Priority(5), "n")
	place(s, testkit.Pod("orphan").Priority(-5), "gone")
	check("two of 5", map[int32]bool{5: false, 6: true})
	s.Remove("pod-a")
	check("one of 5", map[int32]bool{5: false, 6: true})
	s.Remove("pod-b")
	check("none", map[int32]bool{6: false})
}

// TestLabelsOfARunningPodChange: what counts the pod follows its labels.
func TestLabelsOfARunningPodChange(t *testing.T) {
	s := newState()
	i := setNode(s, testkit.Node("n").Zone("a"))
	web := factOf(t, s, cluster.PerNode, "app=web")
	database := factOf(t, s, cluster.PerNode, "app=db")
	unlabelled := factOf(t, s, cluster.PerNode, "!app")
	counts := func() [3]int32 { return [3]int32{web.CountAt(i), database.CountAt(i), unlabelled.CountAt(i)} }
	var got [][3]int32
	for _, p := range []*testkit.PodBuilder{testkit.Pod("p").Label("app", "web"), testkit.Pod("p").Label("app", "db"), testkit.Pod("p"),
		testkit.Pod("p").Label("app", "web").Label("tier", "front")} {
		place(s, p, "n")
		got = append(got, counts())
	}
	if want := [][3]int32{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}, {1, 0, 0}}; !slices.Equal(got, want) {
		t.Errorf("counts of web, db and neither are %v, want %v", got, want)
	}
	if broken := s.Broken(); len(broken) > 0 {
		t.Error(strings.Join(broken, "\n"))
	}
}

// factOf counts the pods that a selector selects.
func factOf(t *testing.T, s *cluster.State, topology, selector string) *cluster.Fact {
	t.Helper()
	parsed, err := labels.Parse(selector)
	if err != nil {
		t.Fatal(err)
	}
	return s.Fact(cluster.FactSpec{Key: topology + " " + selector, Topology: topology, Match: []cluster.PodMatch{{Selector: parsed}}})
}
