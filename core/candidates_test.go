package core_test

import (
	"errors"
	"strconv"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/berthproject/berth/core"
	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/autoscaler/nodegroup"
	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/drive"
	"github.com/berthproject/berth/internal/test/testkit"
)

// TestALeaderGoesOnWithTheTimesOfTheLast: a core that stands by sees a candidate's soft taint
// come, and becomes the leader 20 s later. The node goes 30 s after the taint's time, not
// after that at which the core became the leader.
func TestALeaderGoesOnWithTheTimesOfTheLast(t *testing.T) {
	var tainted []string
	d := newDriven(t, autoscaling(func(a *core.Autoscale) { a.UnneededTime, a.DelayAfterAdd = 30*time.Second, 0 }), inlinePlans{}, defaults,
		drive.HookFunc(func(now time.Time, _ time.Duration, _ []step.Input, r *step.Ready) {
			for _, x := range r.Taints {
				if x.Taint.Key == autoscaler.ToBeDeletedTaint {
					tainted = append(tainted, x.Node+" ("+string(x.UID)+") at "+strconv.FormatInt(now.Unix(), 10))
				}
			}
		}))
	node := func() *testkit.NodeBuilder { return testkit.Node("n").Alloc("cpu", "4", "memory", "8Gi") }
	group := nodegroup.Group{ID: "g", Max: 5, Target: 1, Template: node().Obj()}
	since := time.Unix(1000, 0)
	plain, soft := node().Obj(), node().Taint(autoscaler.DeletionCandidateTaint, "1000", v1.TaintEffectPreferNoSchedule).Obj()
	plain.UID, soft.UID = "uid-n", "uid-n"
	if err := d.StandBy(since, step.NodeSet{Node: plain, Group: "g"}, step.GroupsSet{Groups: []nodegroup.Group{group}}); err != nil {
		t.Fatal(err)
	}
	if err := d.StandBy(since.Add(time.Second), step.NodeSet{Node: soft, Group: "g"}); err != nil {
		t.Fatal(err)
	}
	d.BecomeLeader(since.Add(20 * time.Second))
	for at := 20; at <= 40; at++ {
		d.stepOut(since.Add(time.Duration(at) * time.Second))
	}
	if len(tainted) != 1 || tainted[0] != "n (uid-n) at 1030" {
		t.Errorf("removals began: %v, want that of n (uid-n) at 1030: 30 s after 1000", tainted)
	}
}

// TestASoftTaintThatFailsWakesTheCore: a soft taint that could not be written is tried again
// after five seconds, before the next plan is due.
func TestASoftTaintThatFailsWakesTheCore(t *testing.T) {
	d := newDriven(t, autoscaling(func(*core.Autoscale) {}), inlinePlans{}, defaults)
	node := testkit.Node("n").Alloc("cpu", "4", "memory", "8Gi").Obj()
	now := time.Unix(1000, 0)
	d.stepOut(now, step.NodeSet{Node: node, Group: "g"}, step.GroupsSet{Groups: []nodegroup.Group{{ID: "g", Max: 5, Target: 1, Template: node}}})
	got := d.step(now.Add(time.Second), step.TaintDone{Node: "n", Key: autoscaler.DeletionCandidateTaint, Err: errors.New("refused")})
	if want := now.Add(6 * time.Second); !got.Equal(want) {
		t.Errorf("the core wakes at %s, want %s: 5 s after the failure", got, want)
	}
}

// TestANewLeaderSeesInterruptions stands by while a node gets the mark of a termination handler, and
// becomes the leader: from then on no pod is placed there, though the mark itself keeps none away.
func TestANewLeaderSeesInterruptions(t *testing.T) {
	var binds int
	d := newDriven(t, autoscaling(func(*core.Autoscale) {}), inlinePlans{}, defaults,
		drive.HookFunc(func(_ time.Time, _ time.Duration, _ []step.Input, r *step.Ready) { binds += len(r.Binds) }))
	node := testkit.Node("n").Alloc("cpu", "4", "memory", "8Gi").Taint("aws-node-termination-handler/spot-itn", "", v1.TaintEffectPreferNoSchedule).Obj()
	now := time.Unix(1000, 0)
	if err := d.StandBy(now, step.NodeSet{Node: node, Group: "g"}, step.GroupsSet{Groups: []nodegroup.Group{{ID: "g", Max: 5, Target: 1, Template: testkit.Node("n").Alloc("cpu", "4", "memory", "8Gi").Obj()}}}); err != nil {
		t.Fatal(err)
	}
	d.BecomeLeader(now.Add(time.Second))
	d.stepOut(now.Add(2*time.Second), step.PodSet{Pod: testkit.Pod("web").Req("cpu", "1").Obj()})
	if said := d.Core().Invariants(); binds > 0 || len(said) > 0 {
		t.Errorf("%d pods are placed on a node that the cloud is about to take, and of the state: %v", binds, said)
	}
}
