package sim

import (
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/berthproject/berth/core/framework"
	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/internal/test/testkit"
)

// TestRoomOfAGangIsChecked binds pods into room that is kept for a gang of priority 0 on node a, of which they
// leave too little, and room that is kept for too long.
func TestRoomOfAGangIsChecked(t *testing.T) {
	pod := func(cpu string, priority int32, deadline int64) *testkit.PodBuilder {
		p := testkit.Pod("p").Req("cpu", cpu).Priority(priority)
		if deadline > 0 {
			p.Spec.ActiveDeadlineSeconds = &deadline
		}
		return p
	}
	intruded := "pod default/p was placed on node a in the room of pod group default/gang, and may not end in time"
	for _, c := range []struct {
		name string
		pod  *testkit.PodBuilder
		node string
		was  bool // on the node before
		want []string
	}{
		{"for ever", pod("2", 0, 0), "a", false, []string{intruded}},
		{"for too long", pod("2", 0, 700), "a", false, []string{intruded}},
		{"in time", pod("2", 0, 500), "a", false, nil},
		{"beside the room", pod("1", 0, 0), "a", false, nil},
		{"on another node", pod("2", 0, 0), "b", false, nil},
		{"of a lower priority", pod("2", -1, 0), "a", false, nil},
		{"that was there", pod("2", 0, 0), "a", true, nil},
		{"of the gang", pod("2", 0, 0).PodGroup("gang"), "a", false, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newTestWorld(t, noGroups)
			for _, name := range []string{"a", "b"} {
				w.know(step.NodeSet{Node: testkit.Node(name).Alloc("cpu", "4", "memory", "8Gi").Obj()})
			}
			w.addPod(c.pod.Obj(), nil)
			w.know(step.PodSet{Pod: c.pod.On(c.node).Obj()})
			w.room = &gangRoom{group: "default/gang", until: w.serverTime().Add(10 * time.Minute), kept: map[string]int64{"a": 3000},
				before: map[types.UID]bool{"pod-p": c.was}, longest: time.Hour}
			w.checkRoom(&step.Ready{Binds: []step.Bind{{UID: "pod-p", Node: c.node}}})
			w.wantViolations(t, c.want...)
			w.now += 2 * time.Hour
			w.checkRoom(&step.Ready{})
			w.wantViolations(t, append(c.want, "room is kept for pod group default/gang since 0s")...)
			w.checkRoom(&step.Ready{Decisions: []step.Decision{{Kind: step.RoomLost, PodGroup: "default/gang"}}})
			if w.room != nil {
				t.Error("room is still known that was given back")
			}
		})
	}
}

// TestTurnsOfGangsAreChecked has room kept for a gang, given back, and kept again: within the time of its turn that is the
// same turn, after it another wait has to come first, and a gang that was placed has no turn.
func TestTurnsOfGangsAreChecked(t *testing.T) {
	w := newTestWorld(t, noGroups)
	say := func(after time.Duration, kind step.DecisionKind) {
		w.now += after
		w.checkRoom(&step.Ready{Decisions: []step.Decision{{Kind: kind, PodGroup: "default/gang"}}})
	}
	for i := range w.run.Scheduler.Profiles {
		w.run.Scheduler.Profiles[i].KeepRoom = framework.KeepRoom{After: 10 * time.Minute, For: time.Hour}
	}
	say(0, step.RoomKept)
	say(40*time.Minute, step.RoomLost)
	say(0, step.RoomKept)
	w.wantViolations(t)
	say(21*time.Minute, step.RoomLost)
	w.wantViolations(t)
	say(5*time.Minute, step.RoomKept)
	again := "room is kept for pod group default/gang again, whose turn ended at 1h0m0s"
	w.wantViolations(t, again)
	say(time.Minute, step.RoomLost)
	say(0, step.GroupPlaced)
	say(0, step.RoomKept)
	w.wantViolations(t, again)
	say(61*time.Minute, step.GroupWaits)
	w.wantViolations(t, again, "room is kept for pod group default/gang since 1h7m0s")
}

// TestRoomOfAGangIsNoVictim: a pod that waits can't preempt what keeps room for a gang, which is in no API.
func TestRoomOfAGangIsNoVictim(t *testing.T) {
	w := newTestWorld(t, noGroups)
	n := testkit.Node("n").Alloc("cpu", "4", "memory", "8Gi", "pods", "10").Obj()
	w.addPod(testkit.Pod("p").Req("cpu", "2").Priority(1).Obj(), nil)
	standIn := testkit.Pod("room").Req("cpu", "3").Priority(1).On("n").Obj()
	if w.couldPreempt(w.pods["pod-p"], n, []*v1.Node{n}, []*v1.Pod{standIn}) {
		t.Error("it could")
	}
	standIn.Spec.Priority = ptr.To[int32](0)
	if !w.couldPreempt(w.pods["pod-p"], n, []*v1.Node{n}, []*v1.Pod{standIn}) {
		t.Error("it couldn't, though the room is of a lower priority")
	}
}
