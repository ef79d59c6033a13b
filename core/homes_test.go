package core_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/berthproject/berth/core"
	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/autoscaler/nodegroup"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/drive"
	"github.com/berthproject/berth/internal/test/testkit"
)

// drainedWorld is a busy cluster of which a node is emptied: web-1 of a ReplicaSet has to leave
// "old", and its home is on "new", which has room for one such pod. A pod of equal priority and
// size waits for room all the time.
type drainedWorld struct {
	*driven
	now   time.Time
	binds []string // of the last step, as pod>node
}

func webPod(name string) *testkit.PodBuilder {
	return testkit.Pod(name).Req("cpu", "3").Owner("apps/v1", "ReplicaSet", "web")
}

func newDrainedWorld(t *testing.T, change func(*core.Autoscale)) *drainedWorld {
	w := &drainedWorld{now: time.Unix(1000, 0)}
	w.driven = newDriven(t, autoscaling(change), inlinePlans{}, defaults, drive.HookFunc(w.note))
	rs := testkit.ReplicaSet("web", "app", "web")
	rs.Status.Replicas = 1
	w.do(0, step.GroupsSet{Groups: []nodegroup.Group{{ID: "g", Template: testkit.Node("g").Alloc("cpu", "1").Obj()}}},
		step.NodeSet{Node: testkit.Node("old").Alloc("cpu", "4", "memory", "8Gi").Cordon().Obj()},
		step.NodeSet{Node: testkit.Node("new").Alloc("cpu", "4", "memory", "8Gi").Obj()},
		step.WorkloadSet{Workload: cluster.WorkloadOf(rs)}, step.PodSet{Pod: webPod("web-1").On("old").Obj()})
	if why := w.Core().ReserveHomes(&autoscaler.Removal{Node: "old", Homes: []autoscaler.Home{{Pod: "pod-web-1", Node: "new"}}}); why != "" {
		t.Fatal(why)
	}
	w.do(0, step.PodSet{Pod: testkit.Pod("competitor").Req("cpu", "3").Obj()})
	return w
}

func (w *drainedWorld) note(_ time.Time, _ time.Duration, _ []step.Input, r *step.Ready) {
	for _, b := range r.Binds {
		w.binds = append(w.binds, b.Name+">"+b.Node)
	}
}

// do lets time pass, feeds inputs and steps until nothing is left to do at that time.
func (w *drainedWorld) do(after time.Duration, in ...step.Input) {
	w.binds = nil
	w.now = w.now.Add(after)
	for wake := w.step(w.now, in...); !wake.IsZero() && !wake.After(w.now) || len(w.inbox) > 0; {
		wake = w.step(w.now, w.take()...)
	}
}

func (w *drainedWorld) expect(t *testing.T, when, binds string) {
	t.Helper()
	slices.Sort(w.binds)
	if got := strings.Join(w.binds, " "); got != binds {
		t.Errorf("%s: bound are %q, want %q", when, got, binds)
	}
}

func leaving(b *testkit.PodBuilder) *v1.Pod { return b.Terminating().Obj() }

// TestAReplacementGetsTheRoomThatWasKept, though another pod waits for it, is bound there in
// the Step in which it is shown, and has the room still when its bind fails; where no room is
// kept, the pod that waited has it.
func TestAReplacementGetsTheRoomThatWasKept(t *testing.T) {
	for _, kept := range []bool{true, false} {
		t.Run(fmt.Sprint("kept ", kept), func(t *testing.T) {
			w := newDrainedWorld(t, func(a *core.Autoscale) { a.NoHomes = !kept })
			want := map[bool]string{false: "competitor>new"}
			w.expect(t, "while web-1 is on its node", want[kept])
			w.Core().PodEvicted("pod-web-1")
			w.do(time.Second, step.PodSet{Pod: leaving(webPod("web-1").On("old"))})
			w.expect(t, "when web-1 leaves", "")
			want = map[bool]string{true: "web-2>new"}
			w.do(time.Second, step.PodSet{Pod: webPod("web-2").Obj()})
			w.expect(t, "when its replacement comes", want[kept])
			if !kept {
				return
			}
			w.do(time.Second, step.BindDone{UID: "pod-web-2", Err: errors.New("refused")})
			w.expect(t, "when its bind fails", "")
			w.do(time.Minute)
			w.expect(t, "after its backoff", "web-2>new")
			w.do(0, step.BindDone{UID: "pod-web-2"}, step.PodSet{Pod: webPod("web-2").On("new").Obj()}, step.PodGone{UID: "pod-web-1"})
			w.do(time.Second, step.PodGone{UID: "pod-web-2"})
			w.expect(t, "when it is gone", "competitor>new")
			w.do(time.Second, step.BindDone{UID: "pod-competitor"}, step.PodSet{Pod: testkit.Pod("competitor").Req("cpu", "3").On("new").Obj()})
			if left := w.Core().Unsettled(); left != nil {
				t.Errorf("left over: %v", left)
			}
		})
	}
}

// TestWhoWaitsGetsTheRoomWhenAHomeEnds, at the time for which the core has asked to be woken.
func TestWhoWaitsGetsTheRoomWhenAHomeEnds(t *testing.T) {
	w := newDrainedWorld(t, func(a *core.Autoscale) { a.HomeTime = 90 * time.Second })
	w.Core().PodEvicted("pod-web-1")
	w.do(0, step.PodGone{UID: "pod-web-1"})
	x, _ := w.Core().View().Explain("default", "competitor")
	if got, want := fmt.Sprint(x.Reserved), "[{the replacement of a pod of ReplicaSet default/web 1}]"; got != want {
		t.Errorf("room is kept for %s, want %s", got, want)
	}
	end := w.now.Add(90 * time.Second)
	for {
		wake, err := w.Step(w.now)
		if err != nil {
			t.Fatal(err)
		}
		w.take()
		if wake.IsZero() || wake.After(end) {
			t.Fatalf("the core wants to be woken at %s, and the home ends at %s", wake, end)
		}
		if w.do(wake.Sub(w.now)); wake.Equal(end) {
			break
		}
		w.expect(t, fmt.Sprint("before its end, at ", wake.Sub(end)), "")
	}
	w.expect(t, "at its end", "competitor>new")
}

// TestAHigherPriorityTakesTheRoomOfAHome: then the replacement waits like any pod.
func TestAHigherPriorityTakesTheRoomOfAHome(t *testing.T) {
	w := newDrainedWorld(t, func(*core.Autoscale) {})
	w.do(time.Second, step.PodSet{Pod: testkit.Pod("urgent").Req("cpu", "3").Priority(10).Obj()})
	w.expect(t, "when a pod of higher priority comes", "urgent>new")
	w.Core().PodEvicted("pod-web-1")
	w.do(time.Second, step.PodGone{UID: "pod-web-1"}, step.PodSet{Pod: webPod("web-2").Obj()})
	w.expect(t, "when the replacement comes", "")
	w.do(time.Minute, step.NodeSet{Node: testkit.Node("newer").Alloc("cpu", "4", "memory", "8Gi").Obj()}, step.PodGone{UID: "pod-competitor"})
	w.expect(t, "when there is another node", "web-2>newer")
}

// TestAGatedReplacementGetsItsHomeWhenTheGateIsLifted, and not before.
func TestAGatedReplacementGetsItsHomeWhenTheGateIsLifted(t *testing.T) {
	w := newDrainedWorld(t, func(*core.Autoscale) {})
	w.Core().PodEvicted("pod-web-1")
	w.do(time.Second, step.PodGone{UID: "pod-web-1"}, step.PodSet{Pod: webPod("web-2").Gate("example.com/wait").Obj()})
	w.expect(t, "with a gate", "")
	w.do(time.Second, step.PodSet{Pod: webPod("web-2").Obj()})
	w.expect(t, "without", "web-2>new")
}
