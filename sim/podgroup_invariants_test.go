package sim

import (
	"fmt"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/internal/test/testkit"
)

// gangWorld has nodes a and b in a zone each, and a gang of three that keeps to one.
func gangWorld(t *testing.T) *World {
	t.Helper()
	w := newTestWorld(t, noGroups)
	w.opt.Check = true
	for _, name := range []string{"a", "b"} {
		w.addNode(testkit.Node(name).Alloc("cpu", "4", "memory", "8Gi", "pods", "10").Zone(name).Obj(), nil)
	}
	w.create(testkit.PodGroup("gang", 3, v1.LabelTopologyZone))
	return w
}

// addMembers adds members with so many CPUs each.
func (w *World) addMembers(n int, cpu string) {
	for i := range n {
		w.addPod(testkit.Pod(fmt.Sprint("m", i)).Req("cpu", cpu).PodGroup("gang").Obj(), nil)
	}
}

// TestAGangMustBeWholeInTime binds two members of three, and then what should be no fault, or is one.
func TestAGangMustBeWholeInTime(t *testing.T) {
	violated := []string{"only 2 of 3 members of pod group default/gang are bound, the last one 10m0s ago"}
	for _, c := range []struct {
		name string
		then func(w *World)
		want []string
	}{
		{"nothing", func(*World) {}, violated},
		{"the third is bound", func(w *World) { _ = w.bind("pod-m2", "a") }, nil},
		{"the third is bound late", func(w *World) { w.pass(9 * time.Minute); _ = w.bind("pod-m2", "a") }, nil},
		{"a node is cordoned", func(w *World) { w.changeNode(w.nodes["b"], func(o *v1.Node) { o.Spec.Unschedulable = true }) }, nil},
		{"a node's label changes", func(w *World) { w.changeNode(w.nodes["b"], func(*v1.Node) {}) }, violated},
		{"a node is gone", func(w *World) { w.removeNode(w.nodes["b"], false) }, nil},
		{"a member is gone", func(w *World) { w.removePod(w.pods["pod-m2"]) }, nil},
		{"a pod of a higher priority comes", func(w *World) {
			w.addPod(testkit.Pod("high").Priority(1).Obj(), nil)
			_ = w.bind("pod-high", "b")
		}, nil},
		{"Berth was down", func(w *World) { w.pass(5 * time.Minute); w.gangsWait(time.Minute); w.pass(9 * time.Minute) }, nil},
		{"the group is gone", func(w *World) { w.remove(testkit.PodGroup("gang", 3, "")) }, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := gangWorld(t)
			w.addMembers(3, "1")
			for _, uid := range []types.UID{"pod-m0", "pod-m1"} {
				if err := w.bind(uid, "a"); err != nil {
					t.Fatal(err)
				}
			}
			c.then(w)
			if c.name != "Berth was down" {
				w.pass(11 * time.Minute)
			}
			w.wantViolations(t, c.want...)
		})
	}
}

// TestNoGroupWaitsThatFits has members wait where enough of them would fit, and where they wouldn't.
func TestNoGroupWaitsThatFits(t *testing.T) {
	for _, c := range []struct {
		name string
		n    int
		cpu  string
		do   func(w *World)
		want []string
	}{
		{"three in one zone", 3, "1", func(*World) {}, []string{"pod group default/gang waits, though 3 of its members would fit"}},
		{"three in two zones", 3, "2", func(*World) {}, nil},
		{"too few", 2, "1", func(*World) {}, nil},
		{"one more of three", 4, "1", func(w *World) {
			for i := range 3 {
				_ = w.bind(types.UID(fmt.Sprint("pod-m", i)), "a")
			}
		}, []string{"pod group default/gang waits, though 1 of its members would fit"}},
		{"one more of three, whose zone is full", 5, "2", func(w *World) {
			for i := range 2 {
				_ = w.bind(types.UID(fmt.Sprint("pod-m", i)), "a")
			}
		}, nil},
		{"a gate", 3, "1", func(w *World) {
			w.changePod(w.pods["pod-m0"], func(o *v1.Pod) { o.Spec.SchedulingGates = []v1.PodSchedulingGate{{Name: "g"}} })
		}, nil},
		{"no PodGroup", 3, "1", func(w *World) { w.remove(testkit.PodGroup("gang", 3, "")) }, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := gangWorld(t)
			w.addMembers(c.n, c.cpu)
			c.do(w)
			var nodes []*v1.Node
			for _, n := range w.sortedNodes() {
				nodes = append(nodes, n.obj)
			}
			w.checkPending(nodes)
			w.wantViolations(t, c.want...)
		})
	}
}

// TestNoGroupWaitsThatFitsInOneDomainOfAllLevels has three nodes, of which those of one rack's name are in two zones.
func TestNoGroupWaitsThatFitsInOneDomainOfAllLevels(t *testing.T) {
	const rack = "example.com/rack"
	for _, c := range []struct {
		name, cpu string // of a node
		bound     bool   // a member is on the first node
		want      []string
	}{
		{"no domain has room", "2", false, nil},
		{"a domain has room", "3", false, []string{"pod group default/gang waits, though 3 of its members would fit"}},
		{"the members' domain has room", "3", true, []string{"pod group default/gang waits, though 2 of its members would fit"}},
		{"another domain has room", "1", true, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newTestWorld(t, noGroups)
			w.opt.Check = true
			var nodes []*v1.Node
			for i, zone := range []string{"a", "b", "b"} {
				cpu := c.cpu
				if c.bound && i > 0 {
					cpu = "2"
				}
				n := testkit.Node(fmt.Sprint("n", i)).Alloc("cpu", cpu, "memory", "8Gi", "pods", "10").Zone(zone).Label(rack, fmt.Sprint("r", i%2)).Obj()
				w.addNode(n, nil)
				nodes = append(nodes, n)
			}
			g := testkit.PodGroup("gang", 3, rack)
			g.Annotations = map[string]string{cluster.TopologyLevelsAnnotation: v1.LabelTopologyZone + "=required," + rack + "=required"}
			w.create(g)
			w.addMembers(3, "1")
			if c.bound {
				if err := w.bind("pod-m0", "n0"); err != nil {
					t.Fatal(err)
				}
			}
			w.checkPending(nodes)
			w.wantViolations(t, c.want...)
		})
	}
}

// TestMembersAreBoundWithEnoughOthers has a Step bind members that Berth knows to be alone, or apart.
func TestMembersAreBoundWithEnoughOthers(t *testing.T) {
	for _, c := range []struct {
		name string
		on   []string
		want []string
	}{
		{"all in one zone", []string{"a", "a", "a"}, nil},
		{"two of three", []string{"a", "a"}, []string{"a member of pod group default/gang is to be bound, and only 2 of 3 have nodes"}},
		{"in two zones", []string{"a", "a", "b"}, []string{`members of pod group default/gang are to be bound in the domains ["a" "b"]`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := gangWorld(t)
			w.pass(time.Minute)
			w.know(step.NodeSet{Node: w.nodes["a"].obj}, step.NodeSet{Node: w.nodes["b"].obj}, step.ObjectSet{Object: testkit.PodGroup("gang", 3, v1.LabelTopologyZone)})
			r := step.Ready{}
			state := w.berth.core().State()
			for i, node := range c.on {
				p := state.Schema.ParsePod(testkit.Pod(fmt.Sprint("m", i)).PodGroup("gang").Obj())
				state.Place(p, node)
				r.Binds = append(r.Binds, step.Bind{UID: p.UID, Namespace: "default", Name: p.Object.Name, Node: node})
			}
			w.checkMembersBound(&r)
			w.wantViolations(t, c.want...)
		})
	}
}
