package scheduler_test

import (
	"fmt"
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berthproject/berth/core/engine"
	"github.com/berthproject/berth/core/framework"
	"github.com/berthproject/berth/internal/test/testkit"
)

// vip is a pod of 2 CPUs and priority 10.
func vip() *testkit.PodBuilder { return testkit.Pod("vip").Req("cpu", "2").Priority(10) }

// TestWhoLeavesForAPod that no node takes.
func TestWhoLeavesForAPod(t *testing.T) {
	never := vip()
	policy := v1.PreemptNever
	never.Spec.PreemptionPolicy = &policy
	for _, c := range []struct {
		name    string
		pod     *testkit.PodBuilder
		profile func(*framework.Profile)
		placed  []*testkit.PodBuilder
		node    string // that it is nominated to then
		want    string
		message string // about preemption
	}{
		{name: "pods of lower priority, where the least has to go", pod: vip(),
			placed: []*testkit.PodBuilder{running("a", "4", 5, "n1"), running("b", "4", 0, "n2")}, node: "n2", want: "[pod-b]"},
		{name: "nobody of equal priority", pod: vip(), placed: []*testkit.PodBuilder{running("a", "4", 10, "n1"), running("b", "4", 10, "n2")},
			want: "[]", message: "0/2 nodes are available: 2 No preemption victims found for incoming pod."},
		{name: "nobody for a pod that mustn't preempt", pod: never, placed: []*testkit.PodBuilder{running("a", "4", 0, "n1"), running("b", "4", 0, "n2")},
			want: "[]", message: "not eligible due to preemptionPolicy=Never."},
		{name: "nobody in a profile without preemption", pod: vip(), profile: func(p *framework.Profile) { p.Preempter = nil },
			placed: []*testkit.PodBuilder{running("a", "4", 0, "n1"), running("b", "4", 0, "n2")}, want: "[]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.profile == nil {
				c.profile = func(*framework.Profile) {}
			}
			w := newWorldWith(t, c.profile, fours("n1", "n2"), c.placed...)
			p := w.pod(c.pod)
			d := w.decide(p)
			w.expect(p, d, "", c.node)
			if got := fmt.Sprint(victims(d)); got != c.want {
				t.Errorf("victims %s, want %s", got, c.want)
			}
			message := "0/2 nodes are available: 2 Insufficient cpu."
			switch {
			case c.message != "":
				message += " preemption: " + c.message
			case c.node != "":
				message += fmt.Sprintf(" preemption: found a potential placement for pod on node %s, preempting 1 victims", c.node)
			}
			if d.Message != message {
				t.Errorf("the message is\n%s, want\n%s", d.Message, message)
			}
			if got, want := d.Diagnosis.Preemption(), (engine.Preemption{RuledOut: c.message != "", Message: c.message}); got != want {
				t.Errorf("for the class it is known that %+v, want %+v", got, want)
			}
		})
	}
}

// TestPreemptionIsLookedIntoOncePerClass as long as nothing changes.
func TestPreemptionIsLookedIntoOncePerClass(t *testing.T) {
	for _, ruledOut := range []bool{true, false} {
		w := newWorld(t, fours("n1"), running("low", "4", 0, "n1"))
		p := w.pod(vip())
		known := w.Diagnose(w.Class(p)).WithPreemption(engine.Preemption{RuledOut: ruledOut})
		w.rejections[w.Class(p)] = known
		d := w.decide(p)
		if got := d.Victims != nil; got == ruledOut {
			t.Errorf("preemption is known not to help: %v, and others have to leave: %v", ruledOut, got)
		}
		if d.Diagnosis != known {
			t.Errorf("the class has another diagnosis, though nothing new is known of it (ruled out: %v)", ruledOut)
		}
	}
}

// TestAPodWaitsForItsVictims on the node that it is nominated to, and doesn't preempt
// again meanwhile (DefaultPreemption's PodEligibleToPreemptOthers).
func TestAPodWaitsForItsVictims(t *testing.T) {
	for _, c := range []struct {
		name      string
		nodes     []*testkit.NodeBuilder
		placed    []*testkit.PodBuilder
		leaving   types.UID // was told to leave, and the API doesn't show it yet
		nominated string
		waits     bool
	}{
		{name: "a victim is terminating", nodes: fours("n1"), placed: []*testkit.PodBuilder{terminating("low", "4", 0, "n1")}, nominated: "n1", waits: true},
		{name: "a victim was told to leave", nodes: fours("n1"), placed: []*testkit.PodBuilder{running("low", "4", 0, "n1")}, leaving: "pod-low", nominated: "n1", waits: true},
		{name: "nobody leaves", nodes: fours("n1"), placed: []*testkit.PodBuilder{running("low", "4", 0, "n1")}, nominated: "n1"},
		{name: "it isn't nominated", nodes: fours("n1"), placed: []*testkit.PodBuilder{terminating("low", "4", 0, "n1")}},
		{name: "a pod of equal priority is terminating", nodes: fours("n1"),
			placed: []*testkit.PodBuilder{terminating("equal", "1", 10, "n1"), running("low", "3", 0, "n1")}, nominated: "n1"},
		{name: "a pod is deleted without a reason", nodes: fours("n1"), nominated: "n1",
			placed: []*testkit.PodBuilder{deleted(running("low", "4", 0, "n1"), "", "")}},
		{name: "a pod is deleted for another reason", nodes: fours("n1"), nominated: "n1",
			placed: []*testkit.PodBuilder{deleted(running("low", "4", 0, "n1"), v1.ConditionTrue, "DeletionByTaintManager")}},
		{name: "the condition isn't true", nodes: fours("n1"), nominated: "n1",
			placed: []*testkit.PodBuilder{deleted(running("low", "4", 0, "n1"), v1.ConditionFalse, v1.PodReasonPreemptionByScheduler)}},
		{name: "the node doesn't take it whoever leaves", nodes: []*testkit.NodeBuilder{four("n1").Cordon(), four("n2")}, nominated: "n1",
			placed: []*testkit.PodBuilder{terminating("low", "4", 0, "n1"), running("other", "4", 0, "n2")}},
		{name: "the victim is on another node", nodes: fours("n1", "n2"), nominated: "n2",
			placed: []*testkit.PodBuilder{terminating("low", "4", 0, "n1"), running("other", "4", 10, "n2")}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, c.nodes, c.placed...)
			w.Leaving = func(uid types.UID) bool { return uid == c.leaving }
			p := w.nominate(vip(), c.nominated)
			class := w.Class(p)
			if got := w.WaitsInVain(p, class); got == c.waits {
				t.Errorf("the pod waits in vain: %v, want %v", got, !c.waits)
			}
			d := w.decide(p)
			if !c.waits {
				if d.Victims == nil {
					t.Errorf("nobody has to leave for the pod: %s", d.Message)
				}
				return
			}
			w.expect(p, d, "", c.nominated)
			if want := "0/1 nodes are available: 1 Insufficient cpu. preemption: not eligible due to a terminating pod on the nominated node."; d.Message != want || d.Victims != nil {
				t.Errorf("the message is\n%s, want\n%s; victims %v", d.Message, want, d.Victims)
			}
			if d.Diagnosis.Preemption() != (engine.Preemption{}) {
				t.Errorf("that the pod waits says of its class %+v", d.Diagnosis.Preemption())
			}
		})
	}
}

// TestPodsOfAPlaceDontWaitForEachOther: of two on a node that takes one of them now, the one
// that is tried gets on, unless the other has no place there, or a higher priority.
func TestPodsOfAPlaceDontWaitForEachOther(t *testing.T) {
	web := func(name string) *testkit.PodBuilder {
		return testkit.Pod(name).Label("app", "web").SpreadHard(v1.LabelTopologyZone, 1, "app", "web")
	}
	for _, c := range []struct {
		name     string
		reserved []types.UID
		other    *testkit.PodBuilder
		fits     bool
	}{
		{"both have a place there", []types.UID{"pod-p", "pod-other"}, web("other"), true},
		{"the other has a higher priority", []types.UID{"pod-p", "pod-other"}, web("other").Priority(1), false},
		{"the other was nominated there without a place", []types.UID{"pod-p"}, web("other"), false},
		{"the pod itself has none", []types.UID{"pod-other"}, web("other"), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, []*testkit.NodeBuilder{four("n1").Label(v1.LabelTopologyZone, "a"), four("n2").Label(v1.LabelTopologyZone, "b")},
				running("full", "4", 10, "n2"))
			w.Reserved = func(uid types.UID) bool { return slices.Contains(c.reserved, uid) }
			w.nominate(c.other, "n1")
			p := w.nominate(web("p").Req("cpu", "1"), "n1")
			if got := w.FitsNominated(p, w.Class(p)); got != c.fits {
				t.Errorf("its node takes it: %v, want %v", got, c.fits)
			}
			node, nominated := "", ""
			if c.fits {
				node = "n1"
			} else if slices.Contains(c.reserved, p.UID) {
				nominated = "n1"
			}
			w.expect(p, w.decide(p), node, nominated)
		})
	}
}

// TestWhereAWaitingPodFits now: on the node that it is nominated to, or anywhere.
func TestWhereAWaitingPodFits(t *testing.T) {
	for _, c := range []struct {
		name              string
		nodes             []*testkit.NodeBuilder
		placed            []*testkit.PodBuilder
		nominated         string
		onNominated, fits bool
	}{
		{"its node takes it", fours("n1", "n2"), []*testkit.PodBuilder{running("a", "4", 0, "n2")}, "n1", true, true},
		{"another node takes it", fours("n1", "n2"), []*testkit.PodBuilder{running("a", "4", 0, "n1")}, "n1", false, true},
		{"no node takes it", fours("n1"), []*testkit.PodBuilder{running("a", "4", 0, "n1")}, "n1", false, false},
		{"its node is gone", fours("n1"), []*testkit.PodBuilder{running("a", "4", 0, "n1")}, "gone", false, false},
		{"it isn't nominated", fours("n1"), nil, "", false, true},
		// Its own nomination is no obstacle: the node has room for one such pod.
		{"its node has room for it alone", fours("n1"), []*testkit.PodBuilder{running("a", "1", 0, "n1")}, "n1", true, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, c.nodes, c.placed...)
			p := w.nominate(vip(), c.nominated)
			if got := w.FitsNominated(p, w.Class(p)); got != c.onNominated {
				t.Errorf("its node takes it: %v, want %v", got, c.onNominated)
			}
			if got := w.Fits(p, w.Class(p)); got != c.fits {
				t.Errorf("it fits: %v, want %v", got, c.fits)
			}
			if got := w.NominatedTo(p.UID); got != c.nominated {
				t.Errorf("asking has changed the nomination from %q to %q", c.nominated, got)
			}
		})
	}
}
