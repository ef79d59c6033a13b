package core_test

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/berthproject/berth/core"
	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/autoscaler/nodegroup"
	"github.com/berthproject/berth/core/explain"
	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/drive"
	"github.com/berthproject/berth/internal/test/testkit"
)

// This file specifies what becomes of what was decided about an object when another gets its
// name: nothing of it holds for the other, though both inputs come in one Step.

// TestANodeOfTheSameNameHasNoPast has a node be marked for its deletion, and then go in the
// Step in which another of its name comes.
func TestANodeOfTheSameNameHasNoPast(t *testing.T) {
	d := newDriven(t, autoscaling(func(a *core.Autoscale) { a.UnneededTime, a.DelayAfterAdd = 0, 0 }), inlinePlans{}, defaults)
	node := func(uid types.UID) step.NodeSet {
		n := testkit.Node("n").Alloc("cpu", "4", "memory", "8Gi").Obj()
		n.UID, n.Spec.ProviderID = uid, "instance"
		return step.NodeSet{Node: n, Group: "g"}
	}
	group := nodegroup.Group{ID: "g", Max: 5, Target: 1, Template: node("").Node, Instances: []nodegroup.Instance{{ID: "instance", Node: "n"}}}
	now := time.Unix(1000, 0)
	d.stepOut(now, node("old"), step.GroupsSet{Groups: []nodegroup.Group{group}})
	for range 3 {
		now = now.Add(15 * time.Second)
		d.stepOut(now)
	}
	if x, _ := d.Core().View().ExplainNode("n"); x.State != explain.NodeLeaving {
		t.Fatalf("the node is %s, want it being removed", x.State)
	}
	d.step(now, step.NodeGone{Name: "n"}, node("new"))
	n := d.Core().State().NodeByName("n")
	switch x, ok := d.Core().View().ExplainNode("n"); {
	case n == nil || n.Object.UID != "new":
		t.Fatalf("the state has %v, want the new node", n)
	case ok && (x.State == explain.NodeLeaving || x.State == explain.NodeCandidate):
		t.Errorf("the new node is %s", x.State)
	case n.HasTaint(autoscaler.ToBeDeletedTaint) || n.HasTaint(autoscaler.DeletionCandidateTaint) || n.Object.Spec.Unschedulable:
		t.Errorf("the new node has the marks of the old one: %v", n.Object.Spec)
	}
	// The outcome of what was asked about the old node is of no interest any more.
	d.step(now, step.TaintDone{Node: "n", Key: autoscaler.ToBeDeletedTaint})
	if leaving := d.Core().View().NodesLeaving(); leaving != 0 {
		t.Errorf("%d nodes are on their way out, want none", leaving)
	}
}

// TestAPodOfTheSameNameTakesNothingOver has a StatefulSet's pod go from its node, and the next
// pod of its name come without one, in one Step. What the old one took is free.
func TestAPodOfTheSameNameTakesNothingOver(t *testing.T) {
	var bound []types.UID
	d := newDriven(t, core.DefaultConfig(), drive.Unanswered{}, defaults, drive.HookFunc(func(_ time.Time, _ time.Duration, _ []step.Input, r *step.Ready) {
		for _, b := range r.Binds {
			bound = append(bound, b.UID)
		}
	}))
	pod := func(uid types.UID, node string) step.PodSet {
		p := testkit.Pod("db-0").Req("cpu", "4").HostPort(5432).Obj()
		p.UID, p.Spec.NodeName = uid, node
		return step.PodSet{Pod: p}
	}
	now := time.Unix(1000, 0)
	d.step(now, step.NodeSet{Node: testkit.Node("n").Alloc("cpu", "4", "memory", "8Gi").Obj()}, pod("old", "n"))
	d.step(now, step.PodGone{UID: "old"}, pod("new", ""))
	if len(bound) != 1 || bound[0] != "new" {
		t.Errorf("bound %v, want the new pod", bound)
	}
	if _, holds := d.Core().State().Placed("old"); holds {
		t.Error("the state holds the old pod")
	}
}
