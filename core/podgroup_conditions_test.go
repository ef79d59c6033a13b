package core_test

import (
	"errors"
	"testing"
	"time"

	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/door"
	"github.com/berthproject/berth/core/framework"
	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/internal/test/testkit"
)

// conditions runs a Step, and returns the conditions of pod groups to be written.
func (w *groupWorld) conditions(in ...step.Input) (out []step.StatusWrite) {
	w.t.Helper()
	r := w.Step(w.now, door.Must(in...)...)
	for _, x := range r.StatusWrites {
		if x.PodGroup != nil {
			out = append(out, x)
		}
	}
	if broken := w.Invariants(); broken != nil {
		w.t.Errorf("broken invariants: %q", broken)
	}
	return out
}

// wantScheduled fails the test unless one condition is to be written: the group is placed.
func (w *groupWorld) wantScheduled(when string, got []step.StatusWrite) step.StatusWrite {
	w.t.Helper()
	if len(got) != 1 || got[0].PodGroup.Type != schedulingv1beta1.PodGroupInitiallyScheduled || got[0].PodGroup.Status != metav1.ConditionTrue {
		w.t.Fatalf("%s %+v are written, want PodGroupInitiallyScheduled=True", when, got)
	}
	return got[0]
}

// TestAConditionThatIsNotWrittenIsRepeated: the members of a gang are placed, and nothing decides on it
// again. The condition is written until that succeeds, or until the API shows that it has.
func TestAConditionThatIsNotWrittenIsRepeated(t *testing.T) {
	for _, shown := range []bool{false, true} {
		w := newGroupWorld(t, func(*framework.Profile) {})
		group := testkit.PodGroup("gang", 2, "")
		written := w.wantScheduled("once placed", w.conditions(append(members("a", "b"), step.ObjectSet{Object: group})...))
		for range 3 {
			if got := w.conditions(step.StatusWritten{UID: written.UID, Err: errors.New("connection refused")}); len(got) > 0 {
				t.Errorf("at once after the failure %+v are written", got)
			}
			at := w.Step(w.now).NextWake
			if at.IsZero() || at.After(w.now.Add(time.Minute)) {
				t.Fatalf("after the failure at %s the next wake is %s", w.now, at)
			}
			w.now = at
			if shown {
				group = group.DeepCopy()
				group.Status.Conditions = []metav1.Condition{*written.PodGroup}
				if got := w.conditions(step.ObjectSet{Object: group}); len(got) > 0 {
					t.Errorf("the condition is shown, and %+v are written", got)
				}
				break
			}
			written = w.wantScheduled("after a failure", w.conditions())
		}
		w.conditions(step.StatusWritten{UID: written.UID})
		w.now = w.now.Add(time.Minute)
		if got := w.conditions(); len(got) > 0 {
			t.Errorf("shown %t: at the end %+v are written", shown, got)
		}
	}
}

// TestAConditionThatIsNotWrittenGivesWay to what is said later of the group, and ends with it.
func TestAConditionThatIsNotWrittenGivesWay(t *testing.T) {
	w := newGroupWorld(t, func(*framework.Profile) {})
	in := append(members("a", "b", "c"), step.ObjectSet{Object: testkit.PodGroup("gang", 3, "")})
	for _, node := range []string{"n1", "n2", "n3"} {
		w.step(step.NodeGone{Name: node})
	}
	w.step(step.NodeSet{Node: testkit.Node("n0").Alloc("cpu", "2", "memory", "8Gi").Obj()})
	got := w.conditions(in...)
	if len(got) != 1 || got[0].PodGroup.Status != metav1.ConditionFalse {
		t.Fatalf("without room %+v are written, want False", got)
	}
	w.conditions(step.StatusWritten{UID: got[0].UID, Err: errors.New("connection refused")})
	w.now = w.now.Add(2 * time.Second) // past the backoff
	first := w.conditions(step.NodeSet{Node: testkit.Node("n1").Alloc("cpu", "4", "memory", "8Gi").Obj()})
	w.now = w.now.Add(20 * time.Second)
	written := w.wantScheduled("with room", append(first, w.conditions()...))
	w.conditions(step.StatusWritten{UID: written.UID, Err: errors.New("connection refused")})
	w.step(step.ObjectGone{Kind: cluster.PodGroupKind, Namespace: "default", Name: "gang"})
	w.now = w.now.Add(20 * time.Second)
	if got := w.conditions(); len(got) > 0 {
		t.Errorf("the group is gone, and %+v are written", got)
	}
}

// TestTheConditionIsWrittenFromWhatIsShown: the process that led before has bound the members, or some of
// them, and no condition is there. The next writes it once enough members are shown, of its own groups only.
func TestTheConditionIsWrittenFromWhatIsShown(t *testing.T) {
	bound := func(name string) step.Input {
		return step.PodSet{Pod: testkit.Pod(name).Req("cpu", "1").PodGroup("gang").On("n0").Obj()}
	}
	group := step.ObjectSet{Object: testkit.PodGroup("gang", 2, "")}

	w := newGroupWorld(t, func(*framework.Profile) {})
	if got := w.conditions(group, bound("a")); len(got) > 0 {
		t.Errorf("with too few members %+v are written", got)
	}
	w.wantScheduled("once the other is shown", w.conditions(bound("b")))
	if got := w.conditions(bound("c")); len(got) > 0 {
		t.Errorf("when it is said already %+v are written", got)
	}

	w = newGroupWorld(t, func(*framework.Profile) {})
	w.conditions(bound("a"), bound("b"))
	w.wantScheduled("when the group comes last", w.conditions(group))

	w = newGroupWorld(t, func(*framework.Profile) {})
	in := []step.Input{group}
	for _, name := range []string{"a", "b"} {
		p := testkit.Pod(name).Req("cpu", "1").PodGroup("gang").On("n0").Obj()
		p.Spec.SchedulerName = "another"
		in = append(in, step.PodSet{Pod: p})
	}
	if got := w.conditions(in...); len(got) > 0 {
		t.Errorf("of another scheduler's group %+v are written", got)
	}
}

// TestTheConditionIsWrittenAfterATakeover: a standby has seen the members of a group bound, and no condition.
func TestTheConditionIsWrittenAfterATakeover(t *testing.T) {
	w := emptyGroupWorld(t, func(*framework.Profile) {})
	w.StandBy(w.now, 0, door.Must(
		step.NodeSet{Node: testkit.Node("n0").Alloc("cpu", "4", "memory", "8Gi").Obj()},
		step.ObjectSet{Object: testkit.PodGroup("gang", 2, "")},
		step.PodSet{Pod: testkit.Pod("a").Req("cpu", "1").PodGroup("gang").On("n0").Obj()},
		step.PodSet{Pod: testkit.Pod("b").Req("cpu", "1").PodGroup("gang").On("n0").Obj()})...)
	w.BecomeLeader(w.now)
	w.wantScheduled("after the takeover", w.conditions())
}
