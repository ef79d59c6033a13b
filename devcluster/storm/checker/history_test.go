package checker

import (
	"fmt"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// This file specifies what a History finds: each case plants one violation, or does almost
// the same and plants none.

const group = "example.com/group"

// world is a History with an API's revisions and a clock.
type world struct {
	*History
	now time.Time
	rev int64
}

func newWorld() *world {
	w := &world{now: time.Unix(1000, 0), rev: 100}
	w.History = New(Config{GroupLabel: group, WholeNode: func(g string) bool { return g == "whole" },
		Gang: func(p *v1.Pod) Gang { return Gang{p.Labels["gang"], 2, p.Labels["topology"]} }, Patience: 30 * time.Second})
	w.Calm(w.now)
	return w
}

// shows has the API show a change, at the next revision, without a gap.
func (w *world) shows(o metav1.Object, deleted bool) {
	w.rev++
	w.Observe(w.now, Change{Object: o, Deleted: deleted, After: w.rev - 1, By: w.rev})
	w.PodsSeen(w.rev)
	w.NodesSeen(w.rev)
}

// racked returns a node in a rack.
func racked(n *v1.Node, rack string) *v1.Node {
	return changed(n, func(n *v1.Node) { n.Labels["rack"] = rack })
}

func (w *world) has(objects ...metav1.Object) {
	for _, o := range objects {
		w.shows(o, false)
	}
}

func (w *world) loses(o metav1.Object) { w.shows(o, true) }

// passes lets time pass, with a check every second.
func (w *world) passes(d time.Duration) {
	for end := w.now.Add(d); w.now.Before(end); {
		w.now = w.now.Add(time.Second)
		w.Check(w.now)
	}
}

func node(name, groupID string) *v1.Node {
	n := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-" + name), Labels: map[string]string{}}}
	if groupID != "" {
		n.Labels[group] = groupID
	}
	n.Status.Allocatable = v1.ResourceList{"cpu": resource.MustParse("2"), "pods": resource.MustParse("10")}
	n.Status.Conditions = []v1.NodeCondition{{Type: v1.NodeReady, Status: v1.ConditionTrue}}
	return n
}

func pod(name, on string) *v1.Pod {
	p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID("uid-" + name)}}
	p.Spec.NodeName = on
	p.Spec.Containers = []v1.Container{{Name: "c", Resources: v1.ResourceRequirements{Requests: v1.ResourceList{"cpu": resource.MustParse("1")}}}}
	return p
}

// changed returns a copy of a pod or node with a change.
func changed[T interface{ DeepCopy() T }](o T, f func(T)) T {
	o = o.DeepCopy()
	f(o)
	return o
}

func member(p *v1.Pod)      { p.Labels = map[string]string{"gang": "g"} }
func inOneRack(p *v1.Pod)   { p.Labels = map[string]string{"gang": "g", "topology": "rack"} }
func terminating(p *v1.Pod) { p.DeletionTimestamp = &metav1.Time{} }
func selects(p *v1.Pod)     { p.Spec.NodeSelector = map[string]string{group: "whole"} }
func doomed(n *v1.Node) {
	n.Spec.Taints = []v1.Taint{{Key: toBeDeleted, Effect: v1.TaintEffectNoSchedule}}
}

func scheduled(p *v1.Pod, on string) *eventsv1.Event {
	return &eventsv1.Event{Reason: "Scheduled", Note: fmt.Sprintf("Successfully assigned %s to %s", name(p), on), Regarding: v1.ObjectReference{UID: p.UID}}
}

// TestFindsWhatIsPlanted has one violation in each case, or none.
func TestFindsWhatIsPlanted(t *testing.T) {
	for _, c := range []struct {
		name string
		want Kind // "" for none
		play func(*world)
	}{
		{"all well", "", func(w *world) {
			w.has(node("n", ""), pod("p", ""), pod("p", "n"), scheduled(pod("p", "n"), "n"))
			w.passes(time.Minute)
		}},
		{"a pod changes its node", BoundTwice, func(w *world) { w.has(node("n", ""), node("m", ""), pod("p", "n"), pod("p", "m")) }},
		{"an event names another node", BoundTwice, func(w *world) {
			w.has(node("n", ""), node("m", ""), pod("p", "n"), scheduled(pod("p", "n"), "m"))
		}},
		{"another pod of the name gets another node", "", func(w *world) {
			w.has(node("n", ""), node("m", ""), pod("p", "n"))
			w.loses(pod("p", "n"))
			w.has(changed(pod("p", "m"), func(p *v1.Pod) { p.UID = "another" }))
			w.passes(time.Minute)
		}},
		{"a node has too many pods", Misplaced, func(w *world) {
			w.has(node("n", ""), pod("a", "n"), pod("b", "n"), pod("c", "n"))
			w.passes(time.Second)
		}},
		{"the third pod comes when the first has gone", "", func(w *world) {
			w.has(node("n", ""), pod("a", "n"), pod("b", "n"))
			w.loses(pod("a", "n"))
			w.has(pod("c", "n"))
			w.passes(time.Second)
		}},
		{"two nodes for one pod", BoughtTwice, func(w *world) {
			w.has(changed(pod("p", ""), selects), node("n", "whole"), node("m", "whole"))
			w.passes(time.Second)
		}},
		{"a node for a pod that has gone with its node", BoughtTwice, func(w *world) {
			p := changed(pod("p", "n"), selects)
			w.has(p, node("n", "whole"))
			w.loses(p)
			w.loses(node("n", "whole"))
			w.passes(time.Second)
			w.has(node("m", "whole"))
			w.passes(time.Second)
		}},
		{"the node is seen before its pod, after a gap", "", func(w *world) {
			from := w.rev
			w.rev += 50
			w.Observe(w.now, Change{Object: node("n", "whole"), After: from, By: w.rev})
			w.passes(time.Second)
			w.Observe(w.now, Change{Object: changed(pod("p", ""), selects), After: from, By: from + 10})
			w.PodsSeen(w.rev)
			w.passes(time.Second)
		}},
		{"a node for each pod, wave after wave", "", func(w *world) {
			for i := range 3 {
				n, p := node(fmt.Sprint("n", i), "whole"), changed(pod(fmt.Sprint("p", i), fmt.Sprint("n", i)), selects)
				w.has(p, n)
				w.loses(p)
				w.loses(n)
				w.passes(2 * time.Second)
			}
		}},
		{"other groups may have empty nodes", "", func(w *world) { w.has(node("n", "other"), node("m", "other")) }},
		{"a pod waits that fits", Unscheduled, func(w *world) {
			w.has(node("n", ""), pod("p", ""))
			w.passes(time.Minute)
		}},
		{"a pod waits that doesn't fit", "", func(w *world) {
			w.has(node("n", ""), pod("a", "n"), pod("b", "n"), pod("p", ""))
			w.passes(time.Minute)
		}},
		{"a pod waits that could preempt", Unscheduled, func(w *world) {
			w.has(node("n", ""), pod("a", "n"), pod("b", "n"), changed(pod("p", ""), func(p *v1.Pod) { p.Spec.Priority = new(int32(10)) }))
			w.passes(time.Minute)
		}},
		{"a gang stays placed in part", GangInPart, func(w *world) {
			w.has(node("n", ""), pod("x", "n"), changed(pod("a", "n"), member), changed(pod("b", ""), member))
			w.passes(time.Minute)
		}},
		{"a gang in two racks", GangApart, func(w *world) {
			w.has(racked(node("n", ""), "r1"), racked(node("m", ""), "r2"), changed(pod("a", "n"), inOneRack), changed(pod("b", "m"), inOneRack))
			w.passes(time.Second)
		}},
		{"a gang on two nodes of one rack", "", func(w *world) {
			w.has(racked(node("n", ""), "r1"), racked(node("m", ""), "r1"), changed(pod("a", "n"), inOneRack), changed(pod("b", "m"), inOneRack))
			w.passes(time.Minute)
		}},
		{"a gang that comes to another rack when its first members have ended", "", func(w *world) {
			w.has(racked(node("n", ""), "r1"), racked(node("m", ""), "r2"), changed(pod("a", "n"), inOneRack))
			w.loses(changed(pod("a", "n"), inOneRack))
			w.has(changed(pod("b", "m"), inOneRack), changed(pod("c", "m"), inOneRack))
			w.passes(time.Minute)
		}},
		{"a gang is completed", "", func(w *world) {
			w.has(node("n", ""), node("m", ""), changed(pod("a", "n"), member), changed(pod("b", ""), member))
			w.passes(20 * time.Second)
			w.has(changed(pod("b", "m"), member))
			w.passes(time.Minute)
		}},
		{"a gang loses a member, which nobody replaces", "", func(w *world) {
			w.has(node("n", ""), node("m", ""), changed(pod("a", "n"), member), changed(pod("b", "m"), member))
			w.loses(changed(pod("b", "m"), member))
			w.passes(time.Minute)
		}},
		{"a gang lacks a member and waits", "", func(w *world) {
			w.has(node("n", ""), changed(pod("a", ""), member))
			w.passes(time.Minute)
		}},
		{"a gang waits that fits", Unscheduled, func(w *world) {
			w.has(node("n", ""), pod("x", "n"), node("m", ""), pod("y", "m"), changed(pod("a", ""), member), changed(pod("b", ""), func(p *v1.Pod) { member(p); p.Spec.NodeSelector = map[string]string{"a": "b"} }))
			w.passes(time.Minute)
		}},
		{"a pod waits in bad times", "", func(w *world) {
			w.Disturb()
			w.has(node("n", ""), pod("p", ""))
			w.passes(time.Minute)
		}},
		{"a pod waits for a node that isn't ready", "", func(w *world) {
			w.has(changed(node("n", ""), func(n *v1.Node) { n.Status.Conditions = nil }), pod("p", ""))
			w.passes(time.Minute)
		}},
		{"a gated pod waits", "", func(w *world) {
			w.has(node("n", ""), changed(pod("p", ""), func(p *v1.Pod) { p.Spec.SchedulingGates = []v1.PodSchedulingGate{{Name: "g"}} }))
			w.passes(time.Minute)
		}},
		{"the room is kept for a nominated pod", "", func(w *world) {
			high := changed(pod("h", ""), func(p *v1.Pod) {
				p.Spec.Priority, p.Status.NominatedNodeName = new(int32(10)), "n"
				p.Spec.SchedulingGates = []v1.PodSchedulingGate{{Name: "so that it isn't itself lost"}}
			})
			w.has(node("n", ""), pod("a", "n"), high, pod("p", ""))
			w.passes(time.Minute)
		}},
		{"a taint stays", TaintedForEver, func(w *world) {
			w.has(changed(node("n", "general"), doomed))
			w.passes(time.Minute)
		}},
		{"a taint goes", "", func(w *world) {
			w.has(changed(node("n", "general"), doomed))
			w.passes(20 * time.Second)
			w.has(node("n", "general"))
			w.passes(time.Minute)
		}},
		{"a cordon stays", TaintedForEver, func(w *world) {
			w.has(changed(node("n", "general"), func(n *v1.Node) { n.Spec.Unschedulable = true }))
			w.passes(time.Minute)
		}},
		{"a node goes with a running pod", NotEvicted, func(w *world) {
			w.has(node("n", "general"), pod("p", "n"))
			w.loses(node("n", "general"))
			w.has(pod("other", ""))
			w.passes(time.Second)
		}},
		{"a node goes with a running pod, which the garbage collector ends", NotEvicted, func(w *world) {
			w.has(node("n", "general"), pod("p", "n"))
			w.loses(node("n", "general"))
			w.has(changed(pod("p", "n"), terminating))
			w.loses(pod("p", "n"))
			w.passes(time.Second)
		}},
		{"a pod is bound to a node that has gone", NotEvicted, func(w *world) {
			w.has(node("n", "general"), pod("p", ""))
			w.loses(node("n", "general"))
			w.has(pod("p", "n"))
			w.passes(time.Second)
		}},
		{"a node goes when its pods have been told", "", func(w *world) {
			w.has(node("n", "general"), pod("p", "n"), changed(pod("p", "n"), terminating))
			w.loses(node("n", "general"))
			w.has(pod("other", ""))
			w.passes(time.Second)
		}},
		{"somebody else deletes a node", "", func(w *world) {
			w.has(node("n", "general"), pod("p", "n"))
			w.Forgive(node("n", "").UID)
			w.loses(node("n", "general"))
			w.passes(time.Minute)
		}},
		{"a gap hides whether the pod or the node went first", "", func(w *world) {
			w.has(node("n", "general"), pod("p", "n"))
			from := w.rev
			w.rev += 50
			w.Observe(w.now, Change{Object: node("n", "general"), Deleted: true, After: from, By: w.rev})
			w.Observe(w.now, Change{Object: pod("p", "n"), Deleted: true, After: from, By: w.rev})
			w.PodsSeen(w.rev)
			w.passes(time.Minute)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld()
			c.play(w)
			got := w.Violations()
			switch {
			case c.want == "" && len(got) > 0:
				t.Errorf("got %v, want nothing", got)
			case c.want != "" && (len(got) != 1 || got[0].Kind != c.want):
				t.Errorf("got %v, want %q once", got, c.want)
			}
		})
	}
}

// TestRest has, for each case, what isn't at rest.
func TestRest(t *testing.T) {
	for _, c := range []struct {
		name string
		want Kind // "" for none
		play func(*world)
	}{
		{"all placed", "", func(w *world) { w.has(node("n", "general"), pod("p", "n")) }},
		{"a pod fits", Unscheduled, func(w *world) { w.has(node("n", ""), pod("p", "")) }},
		{"a pod fits nowhere", "", func(w *world) { w.has(pod("p", "")) }},
		{"a pod fits nowhere, and its group could grow", Unscheduled, func(w *world) { w.has(changed(pod("p", ""), selects)) }},
		{"a gang waits that fits on no node that is there", Unscheduled, func(w *world) {
			w.has(changed(pod("a", ""), member), changed(pod("b", ""), member))
		}},
		{"a gang lacks a member", "", func(w *world) { w.has(changed(pod("a", ""), member)) }},
		{"a node is being removed", TaintedForEver, func(w *world) { w.has(changed(node("n", "general"), doomed)) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld()
			c.play(w)
			if got := w.Unrest(w.now); (got == "") != (c.want == "") {
				t.Errorf("unrest is %q, want of kind %q", got, c.want)
			}
			if len(w.Violations()) > 0 {
				t.Error("asking for unrest has noted a violation")
			}
			w.Rest(w.now)
			if got := w.Violations(); len(got) > 1 || (len(got) == 1) != (c.want != "") || len(got) == 1 && got[0].Kind != c.want {
				t.Errorf("got %v, want %q", got, c.want)
			}
		})
	}
}

// TestEmptyFindsNodesWithoutPods has a node with a pod, one without, and one of no group.
func TestEmptyFindsNodesWithoutPods(t *testing.T) {
	w := newWorld()
	w.has(node("used", "general"), node("unused", "general"), node("fixed", ""), pod("p", "used"))
	w.Empty(w.now)
	if got := w.Violations(); len(got) != 1 || got[0].Kind != NodeLeft || w.Left() != 1 {
		t.Errorf("got %v and %d left, want the node unused", got, w.Left())
	}
}

// TestViolationsAreNotedOnce checks the same violation for a minute.
func TestViolationsAreNotedOnce(t *testing.T) {
	w := newWorld()
	w.has(node("n", ""), pod("a", "n"), pod("b", "n"), pod("c", "n"))
	w.passes(time.Minute)
	if got := w.Violations(); len(got) != 1 {
		t.Errorf("got %v, want one violation", got)
	}
}

// TestSilence has binds 1, 4 and 2 seconds apart, the last a second ago.
func TestSilence(t *testing.T) {
	w := newWorld()
	begin := w.now
	for i, d := range []time.Duration{1, 4, 2} {
		w.passes(d * time.Second)
		w.has(pod(fmt.Sprint("p", i), "n"))
	}
	w.passes(time.Second)
	for _, c := range []struct{ from, want time.Duration }{{0, 4}, {2, 3}, {5, 2}, {7, 1}} {
		if got, last := w.Silence(begin.Add(c.from*time.Second), w.now); got != c.want*time.Second || w.now.Sub(last) != time.Second {
			t.Errorf("from %d s on the silence was %s, the last bind %s ago; want %d s and 1 s", c.from, got, w.now.Sub(last), c.want)
		}
	}
	w.passes(9 * time.Second)
	if got, _ := w.Silence(begin, w.now); got != 10*time.Second {
		t.Errorf("the silence is %s, want 10s", got)
	}
}

// TestFitting counts a pod that waits though it fits, and not one that doesn't.
func TestFitting(t *testing.T) {
	w := newWorld()
	w.has(node("n", ""), pod("p", ""), changed(pod("q", ""), func(p *v1.Pod) { p.Spec.NodeSelector = map[string]string{"a": "b"} }))
	w.passes(6 * time.Second)
	if got, before := w.Fitting(w.now, 4*time.Second), w.Fitting(w.now, 10*time.Second); got != 1 || before != 0 {
		t.Errorf("got %d for more than 4 s and %d for more than 10 s, want 1 and 0", got, before)
	}
}

// TestForgetsWhatIsOver has a thousand pods come and go on nodes that go with them, and a
// thousand on one that stays.
func TestForgetsWhatIsOver(t *testing.T) {
	w := newWorld()
	w.has(node("stays", ""))
	for i := range 1000 {
		n, p, q := node(fmt.Sprint("n", i), "general"), pod(fmt.Sprint("p", i), fmt.Sprint("n", i)), pod(fmt.Sprint("q", i), "stays")
		w.has(n, p, q)
		w.loses(q)
		w.loses(p)
		w.loses(n)
	}
	w.passes(2 * time.Minute)
	if len(w.pods) > 0 || len(w.nodes) != 1 {
		t.Errorf("%d pods and %d nodes are remembered", len(w.pods), len(w.nodes))
	}
}
