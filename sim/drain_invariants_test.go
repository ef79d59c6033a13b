package sim

import (
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/internal/test/testkit"
)

// This file plants in small worlds what Berth must not do to nodes that it deletes, and to
// the pods on them.

// TestEvictionsAreChecked has Berth evict one of two pods. The budget is one that the API
// has miscounted, so that it grants what it must not.
func TestEvictionsAreChecked(t *testing.T) {
	for _, c := range []struct {
		name, budget string
		state        string // of the pod that is evicted
		want         []string
	}{
		{"one may go", "min 1", "ready", nil},
		{"one too many goes", "min 2", "ready", []string{"pod default/p0 was evicted, which leaves budget b 1 of 2 healthy pods"}},
		{"a pod goes that no budget needs", "min 2", "not ready", nil},
	} {
		w := newTestWorld(t, noGroups)
		w.opt.Check = true
		pods := w.addPods(nil, c.state, "ready")
		w.create(budgetFor("b", c.budget))
		w.budgets[0].counts.healthy += 5
		if err := w.evictForBerth(step.Eviction{UID: pods[0].obj.UID}); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		w.wantViolations(t, c.want...)
	}
}

// TestTaintsAreChecked has Berth write or take away a taint of the node n.
func TestTaintsAreChecked(t *testing.T) {
	const foreign = "node n has the taint of a removal that isn't Berth's, and Berth writes it"
	theirs := func() *testkit.NodeBuilder {
		return testkit.Node("n").Taint(autoscaler.ToBeDeletedTaint, "", v1.TaintEffectNoSchedule)
	}
	put := step.Taint{Taint: v1.Taint{Key: autoscaler.ToBeDeletedTaint}, Cordon: true, Note: "why"}
	off := put
	off.Remove = true
	soft := step.Taint{Taint: v1.Taint{Key: autoscaler.DeletionCandidateTaint}}
	own := theirs().Obj()
	own.Annotations = map[string]string{autoscaler.RemovalNote: "empty"}
	lies := testkit.Node("n").Cordon().Obj() // that Berth has cordoned it
	lies.Annotations = map[string]string{autoscaler.RemovalNote: "cordoned; empty"}
	for _, c := range []struct {
		name   string
		node   *v1.Node
		writes []step.Taint
		want   []string
	}{
		{"a removal that is given up", testkit.Node("n").Obj(), []step.Taint{put, off}, nil},
		{"a candidate", testkit.Node("n").Obj(), []step.Taint{soft}, nil},
		{"somebody else's kind of taint", testkit.Node("n").Obj(), []step.Taint{{Taint: v1.Taint{Key: "special"}, Remove: true}},
			[]string{"the taint special of node n isn't one of Berth's"}},
		{"somebody else's removal is given up", theirs().Obj(), []step.Taint{off}, []string{foreign}},
		{"somebody else's removal is taken over", theirs().Obj(), []step.Taint{put}, []string{foreign}},
		{"its own from before", own, []step.Taint{off}, nil},
		{"somebody else's cordon is left", testkit.Node("n").Cordon().Obj(), []step.Taint{put, off}, nil},
		{"somebody else's cordon is ended", lies, []step.Taint{off},
			[]string{"node n was cordoned by somebody else, and Berth ends that"}},
		{"its own cordon is ended after a second write", testkit.Node("n").Obj(), []step.Taint{put, put, off}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newTestWorld(t, noGroups)
			w.addNode(c.node, nil)
			for _, x := range c.writes {
				x.Node = "n"
				if err := w.taint(x); err != nil {
					t.Fatal(err)
				}
			}
			w.wantViolations(t, c.want...)
		})
	}
}

// TestNodesAreNotRemovedUnderPods: Berth deletes the node of one pod, in several states.
func TestNodesAreNotRemovedUnderPods(t *testing.T) {
	for _, c := range []struct {
		name  string
		with  func(p *v1.Pod)
		plant func(w *World, p *pod)
		want  []string
	}{
		{"it was to stay", func(*v1.Pod) {}, func(*World, *pod) {}, []string{"node g-0001 was removed under pod default/p"}},
		{"it is a mirror of a file of the node", func(p *v1.Pod) { p.Annotations = map[string]string{v1.MirrorPodAnnotationKey: "x"} }, func(*World, *pod) {}, nil},
		{"it has ended", func(*v1.Pod) {}, func(w *World, p *pod) { w.endPod(p, v1.PodSucceeded) }, nil},
		{"it has half a minute left", func(*v1.Pod) {}, func(w *World, p *pod) { w.deletePod(p) },
			[]string{"node g-0001 was removed under pod default/p, 2"}},
		{"it should have gone long ago", func(*v1.Pod) {}, func(w *World, p *pod) { w.deletePod(p); w.pass(time.Minute) }, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newTestWorld(t, oneGroup+"  faults: [{kind: SlowStop, rate: 1, for: 1h}]\n")
			p := w.addPod(testkit.Pod("p").With(c.with).Obj(), nil)
			w.bindAll(t, "g-0001")
			c.plant(w, p)
			w.terminate(w.groups[0].instances[0], true)
			w.pass(5 * time.Second)
			w.wantViolations(t, c.want...)
		})
	}
}

// TestRemovalsLeaveNothingOver plants what a removal that was given up, or one that has
// succeeded, must not leave behind.
func TestRemovalsLeaveNothingOver(t *testing.T) {
	// evicted has a pod of a ReplicaSet evicted, and its replacement wait for a node: the
	// cluster has none.
	evicted := func(t *testing.T, w *World) {
		w.addNodes("n")
		w.create(replicaSet(1))
		w.pass(soon)
		w.bindAll(t, "n")
		if err := w.evictForBerth(step.Eviction{UID: w.sortedPods()[0].obj.UID}); err != nil {
			t.Fatal(err)
		}
		w.removeNode(w.nodes["n"], false)
		w.pass(time.Minute)
	}
	const homeless = "pod default/w-00002 was evicted, and pod default/w-00005 in its place has no home"
	for _, c := range []struct {
		name  string
		spec  string
		plant func(t *testing.T, w *World)
		want  []string
	}{
		{"a cordon", noGroups, func(t *testing.T, w *World) {
			w.addNodes("n")
			if err := w.taint(step.Taint{Node: "n", Taint: v1.Taint{Key: autoscaler.DeletionCandidateTaint}, Cordon: true, Note: "why"}); err != nil {
				t.Fatal(err)
			}
		}, []string{"node n has stayed cordoned"}},
		{"a cordon that somebody else made", noGroups, func(_ *testing.T, w *World) {
			w.addNode(testkit.Node("n").Cordon().Obj(), nil)
		}, nil},
		{"somebody else's removal", noGroups, func(_ *testing.T, w *World) {
			w.addNode(testkit.Node("n").Taint(autoscaler.ToBeDeletedTaint, "", v1.TaintEffectNoSchedule).Obj(), nil)
		}, nil},
		{"a pod without a home", noGroups, evicted, []string{homeless}},
		{"a pod whose room others may have taken", noGroups, func(t *testing.T, w *World) { evicted(t, w); w.roomTaken = true }, nil},
		{"a pod whose room the cloud may have taken", noGroups + "  faults: [{kind: SpotReclaim, at: [1s]}]\n", evicted, nil},
		{"a pod whose room didn't come", noGroups, func(t *testing.T, w *World) { evicted(t, w); w.stats.FailedLaunches++ }, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newTestWorld(t, c.spec)
			c.plant(t, w)
			w.checkDrained()
			w.wantViolations(t, c.want...)
		})
	}
}
