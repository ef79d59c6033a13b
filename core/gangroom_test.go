package core_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"k8s.io/apimachinery/pkg/types"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/door"
	"github.com/berthproject/berth/core/framework"
	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/internal/test/testkit"
)

// This file specifies how room is kept for a gang that has waited for long, who may use it meanwhile, and
// that it is given back whatever happens.

// roomWorld has four nodes of four CPUs, of which each has two pods of two CPUs that end by themselves:
// those of node i after 10 and 20 minutes, at second 1000 plus these. A gang of four members with four
// CPUs each waits. Room is kept after a minute, for half an hour.
func roomWorld(t *testing.T) *groupWorld {
	w := newGroupWorld(t, func(p *framework.Profile) { p.KeepRoom = framework.KeepRoom{After: time.Minute, For: 30 * time.Minute} })
	for i := range 4 {
		for k := range int64(2) {
			w.step(step.PodSet{Pod: running(fmt.Sprintf("small%d%d", i, k), fmt.Sprint("n", i), 600*(k+1), w.now)})
		}
	}
	w.step(gangOf("gang", 4, "4")...)
	return w
}

// running is a pod of two CPUs on a node, with a deadline in seconds, 0 for none.
func running(name, node string, deadline int64, since time.Time) *v1.Pod {
	p := testkit.Pod(name).Req("cpu", "2").On(node).Obj()
	p.Status.StartTime = &metav1.Time{Time: since}
	if deadline > 0 {
		p.Spec.ActiveDeadlineSeconds = &deadline
	}
	return p
}

// gangOf is a PodGroup with so many members, which are all needed.
func gangOf(name string, n int, cpu string) (in []step.Input) {
	in = append(in, step.ObjectSet{Object: testkit.PodGroup(name, n, "")})
	for i := range n {
		in = append(in, step.PodSet{Pod: testkit.Pod(fmt.Sprint(name, i)).Req("cpu", cpu).PodGroup(name).Obj()})
	}
	return in
}

// after passes time and returns what is bound, and what is said of room.
func (w *groupWorld) after(d time.Duration, in ...step.Input) (binds, rooms []string) {
	w.t.Helper()
	w.now = w.now.Add(d)
	for range 3 { // what is decided the queue is asked about in the next Step
		r := w.Step(w.now, door.Must(in...)...)
		in = nil
		for _, b := range r.Binds {
			binds = append(binds, b.Name)
		}
		for _, d := range r.Decisions {
			switch d.Kind {
			case step.RoomKept, step.RoomMissing, step.RoomLost:
				rooms = append(rooms, fmt.Sprintf("%s %s: %s", d.Kind, d.PodGroup, d.Reason))
			}
		}
		if broken := w.Invariants(); broken != nil {
			w.t.Errorf("broken invariants: %q", broken)
		}
	}
	return binds, rooms
}

// kept returns for which groups room is kept, and on how many places.
func (w *groupWorld) kept() (groups []string, places int) {
	for _, h := range w.State().Headrooms() {
		groups = append(groups, h.Group.Key.Name)
	}
	for _, n := range w.State().Nominations() {
		if n.Pod.StandsIn() {
			places++
		}
	}
	return groups, places
}

const roomIsKept = "RoomKept default/gang: on 4 nodes, where 8 pods have to end first; until 1970-01-01T00:47:40Z"

// TestRoomIsKeptForNobodyWhoHasJustCome: a gang of a higher priority that hasn't waited for long doesn't get the room when
// that of another is due, but when its own is.
func TestRoomIsKeptForNobodyWhoHasJustCome(t *testing.T) {
	w := roomWorld(t)
	in := gangOf("late", 4, "4")
	in[0].(step.ObjectSet).Object.(*schedulingv1beta1.PodGroup).Spec.Priority = new(int32(1))
	for _, x := range in[1:] {
		x.(step.PodSet).Pod.Spec.Priority, x.(step.PodSet).Pod.Spec.PreemptionPolicy = new(int32(1)), new(v1.PreemptNever)
	}
	w.after(30*time.Second, in...)
	if _, rooms := w.after(30 * time.Second); !slices.Equal(rooms, []string{roomIsKept}) {
		t.Errorf("it is said %q, want room for the one that has waited for a minute", rooms)
	}
}

// usersOfRoom are pods that come when the last pod that a gang has to wait for ends in 590 seconds, and whether they may use
// the room of the gang, which has priority 0.
var usersOfRoom = []struct {
	name     string
	priority int32
	deadline int64 // in seconds, 0 for none
	binds    bool
}{
	{"forever", 0, 0, false},
	{"long", 0, 700, false},
	{"short", 0, 400, true},
	{"low", -1, 0, true},
	{"high", 1, 0, true},
}

// TestRoomIsKeptForAGangThatWaits: after its time nobody takes the room of a gang but pods that end before
// the last pod does that it has to wait for, and pods that it may preempt. When the others have ended it starts.
func TestRoomIsKeptForAGangThatWaits(t *testing.T) {
	w := roomWorld(t)
	if _, rooms := w.after(59 * time.Second); rooms != nil {
		t.Errorf("too early: %q", rooms)
	}
	if _, rooms := w.after(time.Second); !slices.Equal(rooms, []string{roomIsKept}) {
		t.Fatalf("after a minute: %q", rooms)
	}
	// At second 1610 the first half of the pods has ended. The gang can't start before second 2200.
	binds, _ := w.after(550*time.Second, step.PodGone{UID: "pod-small00"}, step.PodGone{UID: "pod-small10"}, step.PodGone{UID: "pod-small20"}, step.PodGone{UID: "pod-small30"})
	if binds != nil {
		t.Errorf("bound: %q", binds)
	}
	pod := func(name string, priority int32, deadline int64) step.Input {
		p := testkit.Pod(name).Req("cpu", "2").Priority(priority).Obj()
		if deadline > 0 {
			p.Spec.ActiveDeadlineSeconds = &deadline
		}
		return step.PodSet{Pod: p}
	}
	for _, c := range usersOfRoom {
		binds, _ := w.after(0, pod(c.name, c.priority, c.deadline))
		if bound := slices.Contains(binds, c.name); bound != c.binds {
			t.Errorf("%s is bound: %t, want %t", c.name, bound, c.binds)
		}
	}
	if x, _ := w.View().Explain("default", "forever"); len(x.Reserved) != 1 || x.Reserved[0].For != "pod group default/gang" {
		t.Errorf("explained by %+v", x.Reserved)
	}
	if x, _ := w.View().ExplainPodGroup("default", "gang"); x.Room == nil || x.Room.Members != 4 || x.Room.AllNodes != 4 || x.Room.Until == nil || x.Room.Until.Unix() != 2200 {
		t.Errorf("explained by %+v", x.Room)
	}
	// The others end; the one of low priority is preempted, the one of a higher runs on until it is gone.
	w.after(time.Second, step.PodGone{UID: "pod-high"}, step.PodGone{UID: "pod-short"}, step.PodGone{UID: "pod-low"})
	binds, rooms := w.after(60*time.Second, step.PodGone{UID: "pod-small01"}, step.PodGone{UID: "pod-small11"}, step.PodGone{UID: "pod-small21"}, step.PodGone{UID: "pod-small31"})
	if !slices.Contains(binds, "gang3") || !slices.Equal(rooms, []string{"RoomLost default/gang: its members have nodes"}) {
		t.Errorf("bound: %q, of room: %q", binds, rooms)
	}
	if groups, places := w.kept(); groups != nil || places > 0 {
		t.Errorf("room is kept for %q, on %d places", groups, places)
	}
}

// TestWithoutKeepRoomAGangIsOvertaken: the same without KeepRoom; whoever comes takes the room.
func TestWithoutKeepRoomAGangIsOvertaken(t *testing.T) {
	w := newGroupWorld(t, func(*framework.Profile) {})
	w.step(step.PodSet{Pod: running("small", "n0", 0, w.now)})
	w.step(gangOf("gang", 4, "4")...)
	binds, rooms := w.after(time.Hour, step.PodSet{Pod: testkit.Pod("p").Req("cpu", "2").Obj()})
	if !slices.Equal(binds, []string{"p"}) || rooms != nil {
		t.Errorf("bound: %q, of room: %q", binds, rooms)
	}
}

// TestRoomIsGivenBack: whatever ends the wait of a gang gives its room back.
func TestRoomIsGivenBack(t *testing.T) {
	group := func(min int) step.Input { return step.ObjectSet{Object: testkit.PodGroup("gang", min, "")} }
	gone := func(name string) step.Input { return step.PodGone{UID: types.UID("pod-" + name)} }
	for _, c := range []struct {
		name string
		wait time.Duration
		in   []step.Input
		want []string
		kept int
	}{
		{"its time is over", 30 * time.Minute, nil, []string{"RoomLost default/gang: the pod group did not start within 30m0s"}, 0},
		{"not yet", 29 * time.Minute, nil, nil, 4},
		{"the PodGroup is gone", 0, []step.Input{step.ObjectGone{Kind: cluster.PodGroupKind, Namespace: "default", Name: "gang"}}, []string{"RoomLost default/gang: the pod group no longer waits"}, 0},
		{"all members are gone", 0, []step.Input{gone("gang0"), gone("gang1"), gone("gang2"), gone("gang3")}, []string{"RoomLost default/gang: the pod group no longer waits"}, 0},
		{"it needs more than there are", 0, []step.Input{group(5)}, []string{"RoomLost default/gang: waiting for minCount pods from a gang to appear in scheduling queue"}, 0},
		{"it needs fewer", 0, []step.Input{group(3), gone("gang3")}, []string{"RoomLost default/gang: other members wait than before", "RoomKept default/gang: on 3 nodes, where 6 pods have to end first; until 1970-01-01T00:47:40Z"}, 3},
		{"a node is gone", 0, []step.Input{step.NodeGone{Name: "n0"}}, []string{"RoomLost default/gang: node n0 is gone, or no longer admits the members",
			"RoomMissing default/gang: the pod group finds no places even when the 6 pods have ended that end by themselves"}, 0},
		{"a node is cordoned, and another comes", 0, []step.Input{step.NodeSet{Node: testkit.Node("n0").Alloc("cpu", "4", "memory", "8Gi").Zone("z0").Cordon().Obj()},
			step.NodeSet{Node: testkit.Node("n9").Alloc("cpu", "4", "memory", "8Gi").Obj()}}, []string{"RoomLost default/gang: node n0 is gone, or no longer admits the members",
			"RoomKept default/gang: on 4 nodes, where 6 pods have to end first; until 1970-01-01T00:47:40Z"}, 4},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := roomWorld(t)
			w.after(time.Minute)
			_, rooms := w.after(c.wait, c.in...)
			if _, places := w.kept(); !slices.Equal(rooms, c.want) || places != c.kept {
				t.Errorf("room is kept on %d places, and it is said\n%q, want %d and\n%q", places, rooms, c.kept, c.want)
			}
		})
	}
}

// TestGangsTakeTurns: the one that waits longest has room kept first. When its time is over the other's comes.
func TestGangsTakeTurns(t *testing.T) {
	w := roomWorld(t)
	w.after(30*time.Second, gangOf("next", 2, "3")...)
	var turns []string
	for range 8 {
		w.after(15 * time.Minute)
		groups, _ := w.kept()
		turns = append(turns, groups...)
	}
	if want := []string{"gang", "gang", "next", "next", "gang", "gang", "next", "next"}; !slices.Equal(turns, want) {
		t.Errorf("room is kept for %q, want %q", turns, want)
	}
}

// TestAGangThatHasBegunUsesTheRoomOfAnother: a member whose bind has failed is placed again where room is kept for another
// gang meanwhile. Otherwise the nodes of the others would be of no use to anybody until that gang had its turn.
func TestAGangThatHasBegunUsesTheRoomOfAnother(t *testing.T) {
	w := emptyGroupWorld(t, func(p *framework.Profile) { p.KeepRoom = framework.KeepRoom{After: time.Minute, For: 30 * time.Minute} })
	w.step(step.NodeSet{Node: testkit.Node("n").Alloc("cpu", "8", "memory", "8Gi", "pods", "20").Obj()})
	w.step(step.PodSet{Pod: running("small", "n", 600, w.now)})
	w.step(append(gangOf("first", 7, "1"), gangOf("second", 7, "1")...)...)
	w.after(2 * time.Minute) // room is kept for the first
	binds, rooms := w.after(time.Minute, step.PodGone{UID: "pod-small"})
	if len(binds) != 7 || len(rooms) != 2 {
		t.Fatalf("bound %q, and it is said %q", binds, rooms)
	}
	var in []step.Input
	for _, name := range binds[1:] {
		in = append(in, step.PodSet{Pod: testkit.Pod(name).Req("cpu", "1").PodGroup("first").On("n").Obj()}, step.BindDone{UID: types.UID("pod-" + name)})
	}
	w.after(time.Second, append(in, step.BindDone{UID: types.UID("pod-" + binds[0]), Err: errors.New("the server did not answer in time")})...)
	if groups, _ := w.kept(); !slices.Equal(groups, []string{"second"}) {
		t.Fatalf("room is kept for %q", groups)
	}
	if again, _ := w.after(time.Minute); !slices.Equal(again, binds[:1]) {
		t.Errorf("bound %q, want %q", again, binds[:1])
	}
}

// TestNoRoomIsKeptForAGangThatNeverFits: neither where its members are too large, nor where pods are in its
// way that a controller replaces. It is looked at once in its time.
func TestNoRoomIsKeptForAGangThatNeverFits(t *testing.T) {
	w := roomWorld(t)
	w.step(step.ObjectGone{Kind: cluster.PodGroupKind, Namespace: "default", Name: "gang"})
	for i := range 2 {
		p := running(fmt.Sprint("web", i), fmt.Sprint("n", i), 0, w.now)
		p.OwnerReferences = []metav1.OwnerReference{{Kind: "ReplicaSet", Name: "web", Controller: new(true)}}
		w.step(step.PodGone{UID: types.UID(fmt.Sprintf("pod-small%d0", i))}, step.PodSet{Pod: p})
	}
	w.step(append(gangOf("large", 1, "5"), gangOf("many", 3, "4")...)...)
	for range 2 {
		_, rooms := w.after(time.Minute)
		_, more := w.after(time.Second)
		if rooms = append(rooms, more...); len(rooms) != 2 {
			t.Errorf("of room: %q", rooms)
		}
	}
	if groups, places := w.kept(); groups != nil || places > 0 {
		t.Errorf("room is kept for %q, on %d places", groups, places)
	}
}

// TestRoomOnACordonedNode: room is kept on a node that is cordoned when the members tolerate that, and stays
// there; when they don't, it doesn't come there again.
func TestRoomOnACordonedNode(t *testing.T) {
	cordoned := func(i int) step.Input {
		return step.NodeSet{Node: testkit.Node(fmt.Sprint("n", i)).Alloc("cpu", "4", "memory", "8Gi").Zone(fmt.Sprint("z", i)).Cordon().Obj()}
	}
	for _, tolerates := range []bool{true, false} {
		w := roomWorld(t)
		w.step(step.ObjectGone{Kind: cluster.PodGroupKind, Namespace: "default", Name: "gang"})
		in := []step.Input{cordoned(0), step.ObjectSet{Object: testkit.PodGroup("odd", 4, "")}}
		for i := range 4 {
			p := testkit.Pod(fmt.Sprint("odd", i)).Req("cpu", "4").PodGroup("odd")
			if tolerates {
				p.Tolerate(v1.TaintNodeUnschedulable)
			}
			in = append(in, step.PodSet{Pod: p.Obj()})
		}
		w.step(in...)
		_, rooms := w.after(time.Minute)
		for i := range 3 {
			_, more := w.after(time.Second, cordoned(i))
			rooms = append(rooms, more...)
		}
		want := []string{"RoomMissing default/odd: the pod group finds no places even when the 8 pods have ended that end by themselves"}
		if tolerates {
			want = []string{"RoomKept default/odd: on 4 nodes, where 8 pods have to end first; until 1970-01-01T00:47:40Z"}
		}
		if !slices.Equal(rooms, want) {
			t.Errorf("members that tolerate it %t: it is said\n%q, want\n%q", tolerates, rooms, want)
		}
	}
}

// TestAHoldMakesNoWaitOld: a gang whose turn is over waits anew. That it can't be tried for a moment changes
// nothing about it, nor that its members are replaced.
func TestAHoldMakesNoWaitOld(t *testing.T) {
	group := func(min int) step.Input {
		g := testkit.PodGroup("gang", min, "")
		g.Status.Conditions = []metav1.Condition{{Type: "PodGroupInitiallyScheduled", Status: metav1.ConditionFalse, Reason: "Unschedulable", LastTransitionTime: metav1.NewTime(time.Unix(1000, 0))}}
		return step.ObjectSet{Object: g}
	}
	var gone []step.Input
	for i := range 4 {
		gone = append(gone, step.PodGone{UID: types.UID(fmt.Sprint("pod-gang", i))})
	}
	for name, change := range map[string][2][]step.Input{
		"it is held":               {{group(5)}, {group(4)}},
		"its members are replaced": {gone, gangOf("gang", 4, "4")[1:]},
	} {
		t.Run(name, func(t *testing.T) {
			w := roomWorld(t)
			w.step(group(4))
			w.after(time.Minute)
			w.after(30 * time.Minute)
			w.after(time.Second, change[0]...)
			_, rooms := w.after(time.Second, change[1]...)
			_, later := w.after(57 * time.Second)
			if rooms = append(rooms, later...); rooms != nil {
				t.Errorf("before its time it is said %q", rooms)
			}
			if _, rooms = w.after(time.Second); len(rooms) != 1 || rooms[0][:8] != "RoomKept" {
				t.Errorf("after a minute it is said %q", rooms)
			}
		})
	}
}

// TestATurnPassesWhileAGangIsHeld: room is kept again for the rest of a gang's turn when it can be tried again,
// and not after it.
func TestATurnPassesWhileAGangIsHeld(t *testing.T) {
	group := func(min int) step.Input { return step.ObjectSet{Object: testkit.PodGroup("gang", min, "")} }
	w := roomWorld(t)
	w.after(time.Minute)
	w.after(time.Minute, group(5))
	if _, rooms := w.after(time.Minute, group(4)); !slices.Equal(rooms, []string{roomIsKept}) {
		t.Errorf("within its turn it is said %q", rooms)
	}
	w.after(time.Minute, group(5))
	if _, rooms := w.after(30*time.Minute, group(4)); len(rooms) != 1 || rooms[0] == roomIsKept {
		t.Errorf("after its turn it is said %q", rooms)
	}
}
