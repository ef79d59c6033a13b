package scheduler_test

import (
	"fmt"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/engine"
	"github.com/berthproject/berth/core/framework"
	"github.com/berthproject/berth/core/plugins/extender"
	"github.com/berthproject/berth/core/scheduler"
	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/internal/test/testkit"
)

// TestWhereAPodGoes has one pod of 2 CPUs decided on.
func TestWhereAPodGoes(t *testing.T) {
	for _, c := range []struct {
		name      string
		nodes     []*testkit.NodeBuilder
		placed    []*testkit.PodBuilder
		nominated string
		want      string
	}{
		{"to the best node", fours("busy", "free"), []*testkit.PodBuilder{running("a", "2", 0, "busy")}, "", "free"},
		{"to the node that it is nominated to, though another is better", fours("busy", "free"), []*testkit.PodBuilder{running("a", "2", 0, "busy")}, "busy", "busy"},
		{"elsewhere, when that doesn't take it", fours("full", "free"), []*testkit.PodBuilder{running("a", "3", 0, "full")}, "full", "free"},
		{"elsewhere, when that is gone", fours("free"), nil, "gone", "free"},
		{"nowhere", fours("full"), []*testkit.PodBuilder{running("a", "3", 0, "full")}, "", ""},
		{"nowhere, and isn't nominated any more", fours("full"), []*testkit.PodBuilder{running("a", "3", 0, "full")}, "full", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, c.nodes, c.placed...)
			p := w.nominate(testkit.Pod("p").Req("cpu", "2"), c.nominated)
			d := w.decide(p)
			w.expect(p, d, c.want, "")
			if (d.Diagnosis != nil) != (c.want == "") || (d.Message != "") != (c.want == "") {
				t.Errorf("the diagnosis is %v and the message %q", d.Diagnosis, d.Message)
			}
		})
	}
}

// TestAnAccountSaysHowTheNodeWasChosen and there is none to give for the node that a pod
// was nominated to.
func TestAnAccountSaysHowTheNodeWasChosen(t *testing.T) {
	w := newWorld(t, fours("busy", "free"), running("a", "2", 0, "busy"))
	p := w.pod(testkit.Pod("p").Req("cpu", "1"))
	d := w.decide(p)
	if n := w.Node(d.Breakdown.RunnerUp); n == nil || n.Name != "busy" || d.Breakdown.RunnerUpScore >= d.Score || d.Breakdown.Scores == nil {
		t.Errorf("the score is %d and the breakdown %+v, want the other node as the runner-up, with less", d.Score, d.Breakdown)
	}
	w.Remove(p.UID)
	w.Nominate(p, "busy")
	if d := w.decide(p); d.Score != 0 || d.Breakdown.RunnerUp != cluster.NoNode || d.Breakdown.Scores != nil {
		t.Errorf("nominated to its node the pod's score is %d and the breakdown %+v, want none", d.Score, d.Breakdown)
	}
}

// TestANominationIsNoObstacleToItsOwnPod but it is to others of equal and lower priority.
func TestANominationIsNoObstacleToItsOwnPod(t *testing.T) {
	for _, c := range []struct {
		name     string
		priority int32
		want     string
	}{{"lower", -1, ""}, {"equal", 0, ""}, {"higher", 1, "n1"}} {
		w := newWorld(t, fours("n1"))
		w.nominate(testkit.Pod("nominated").Req("cpu", "3"), "n1")
		p := w.pod(testkit.Pod("p").Req("cpu", "3").Priority(c.priority))
		t.Run(c.name, func(t *testing.T) { w.t = t; w.expect(p, w.decide(p), c.want, "") })
	}
}

// TestAWaitingClassIsNotEvaluatedAgain when one more of its pods is tried.
func TestAWaitingClassIsNotEvaluatedAgain(t *testing.T) {
	w := newWorld(t, fours("n1"))
	p := w.pod(testkit.Pod("p").Req("cpu", "2")) // it would fit: that shows that nobody looks
	known := w.Diagnose(w.Class(w.pod(testkit.Pod("large").Req("cpu", "8")))).WithPreemption(engine.Preemption{RuledOut: true, Message: "no."})
	w.rejections[w.Class(p)] = known
	d := w.decide(p)
	w.expect(p, d, "", "")
	if d.Diagnosis != known || d.Message != "0/1 nodes are available: 1 Insufficient cpu. preemption: no." {
		t.Errorf("the message is %q, and the diagnosis the known one: %v", d.Message, d.Diagnosis == known)
	}
	// The message says how many nodes there are. It is refreshed when that changes.
	w.node(four("n2").Cordon())
	d = w.decide(p)
	if want := "0/2 nodes are available: 1 node(s) were unschedulable. preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling."; d.Message != want {
		t.Errorf("after a node came the message is\n%s, want\n%s", d.Message, want)
	}
	if known.Nodes() != 1 {
		t.Error("the diagnosis that the queue has was changed")
	}
	// The node that a pod is nominated to is looked at all the same.
	w.Nominate(p, "n1")
	w.expect(p, w.decide(p), "n1", "")
}

// TestAPodIsSignedAnewForAnAttempt since the cluster may have changed what it reads.
func TestAPodIsSignedAnewForAnAttempt(t *testing.T) {
	w := newWorld(t, fours("n1"))
	p := w.pod(testkit.Pod("p").Req("cpu", "2").Label("app", "web"))
	before := w.Class(p)
	w.place(testkit.Pod("other").Apart("kubernetes.io/hostname", "app", "web").On("n1")) // now the label is read
	d := w.decide(p)
	if d.Class == before {
		t.Error("the decision is for the class that the pod had before its label was read")
	}
	w.expect(p, d, "", "")
}

// consulting adds an extender to the profile.
func consulting(x framework.Extender) func(*framework.Profile) {
	return func(p *framework.Profile) {
		p.Extenders = []framework.Extender{x}
		p.Plugins = append(p.Plugins, framework.Weighted{Plugin: extender.Plugin{Extenders: p.Extenders}})
	}
}

// TestExtendersAreAskedFirst about the nodes that would do.
func TestExtendersAreAskedFirst(t *testing.T) {
	w := newWorldWith(t, consulting(framework.Extender{Filters: true}), fours("n1", "n2", "full"), running("a", "3", 0, "full"))
	p := w.nominate(testkit.Pod("p").Req("cpu", "2"), "n2")
	d := w.decide(p)
	if !slices.Equal(d.Consult, []string{"n1", "n2"}) || d.Diagnosis != nil {
		t.Errorf("asked about %v, and the diagnosis is %v; want n1 and n2, and none", d.Consult, d.Diagnosis)
	}
	w.expect(p, d, "", "n2") // nothing is decided, the nomination stands
	large := w.pod(testkit.Pod("large").Req("cpu", "8"))
	if d := w.decide(large); d.Consult != nil || d.Diagnosis == nil {
		t.Errorf("of a pod that no node takes they are asked about %v", d.Consult)
	}
}

// TestAmongWhatExtendersAllow the best node is taken, by its score with their bonus.
func TestAmongWhatExtendersAllow(t *testing.T) {
	for _, c := range []struct {
		name    string
		allowed map[string]int64
		want    string
	}{
		{"the best", map[string]int64{"busy": 0, "free": 0}, "free"},
		{"the only one", map[string]int64{"busy": 0}, "busy"},
		{"one with a bonus", map[string]int64{"busy": 1000, "free": 0}, "busy"},
		{"not one that has become full since", map[string]int64{"full": 1000, "busy": 0}, "busy"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorldWith(t, consulting(framework.Extender{Filters: true}), fours("busy", "free", "full"), running("a", "2", 0, "busy"), running("b", "4", 0, "full"))
			p := w.nominate(testkit.Pod("p").Req("cpu", "2"), "free")
			w.expect(p, w.DecideAmong(p, c.allowed, nil), c.want, "")
		})
	}
}

// TestWhenExtendersAllowNoNode their reasons are told, and any change may help.
func TestWhenExtendersAllowNoNode(t *testing.T) {
	w := newWorldWith(t, consulting(framework.Extender{Filters: true}), fours("n1", "n2", "full"), running("a", "4", 0, "full"))
	p := w.pod(testkit.Pod("p").Req("cpu", "2"))
	d := w.DecideAmong(p, nil, []string{"node is odd", "node is odd"})
	w.expect(p, d, "", "")
	want := "0/3 nodes are available: 1 Insufficient cpu, 2 node is odd. preemption: 0/3 nodes are available: 1 No preemption victims found for incoming pod, 2 Preemption is not helpful for scheduling."
	if d.Message != want || !d.Diagnosis.Outside() {
		t.Errorf("the message is\n%s, want\n%s; outside: %v", d.Message, want, d.Diagnosis.Outside())
	}
	if p := d.Diagnosis.Counts()[1].Plugin; p != extender.Name {
		t.Errorf("the reason is %s's, want %s's", p, extender.Name)
	}
}

// TestExtendersAreAskedAboutVictims before any is told to leave.
func TestExtendersAreAskedAboutVictims(t *testing.T) {
	w := newWorldWith(t, consulting(framework.Extender{Preempts: true}), fours("n1", "n2"), running("a", "4", 0, "n1"), running("b", "4", 0, "n2"))
	p := w.nominate(testkit.Pod("p").Req("cpu", "2").Priority(10), "n1")
	d := w.decide(p)
	if len(d.Candidates) != 2 || d.Victims != nil || d.Diagnosis != nil {
		t.Errorf("asked about %v, victims %v, diagnosis %v; want two candidates alone", d.Candidates, d.Victims, d.Diagnosis)
	}
	w.expect(p, d, "", "n1")
	same := w.pod(testkit.Pod("same").Req("cpu", "2"))
	if d := w.decide(same); d.Candidates != nil || d.Diagnosis == nil || !d.Diagnosis.Preemption().RuledOut {
		t.Errorf("of a pod that can preempt nobody they are asked about %v", d.Candidates)
	}
}

// TestVictimsThatExtendersAgreedTo leave a node if they are still there.
func TestVictimsThatExtendersAgreedTo(t *testing.T) {
	agreed := func(node string, violations int, pods ...string) step.Agreed {
		a := step.Agreed{Node: node, Violations: violations}
		for _, p := range pods {
			a.Pods = append(a.Pods, types.UID("pod-"+p))
		}
		return a
	}
	for _, c := range []struct {
		name   string
		agreed []step.Agreed
		node   string
		want   string
	}{
		{"on the only node", []step.Agreed{agreed("n1", 0, "a")}, "n1", "[pod-a]"},
		{"on the node where the least has to go", []step.Agreed{agreed("n1", 1, "a"), agreed("n2", 0, "b")}, "n2", "[pod-b]"},
		{"not on a node that is gone", []step.Agreed{agreed("gone", 0, "a"), agreed("n1", 1, "a")}, "n1", "[pod-a]"},
		{"those that are still there", []step.Agreed{agreed("n1", 0, "a", "gone")}, "n1", "[pod-a]"},
		{"not one whose priority is equal by now", []step.Agreed{agreed("n2", 0, "equal", "b")}, "n2", "[pod-b]"},
		{"nobody", []step.Agreed{agreed("n1", 0, "gone")}, "", "[]"},
		{"nobody, since they agreed to nothing", nil, "", "[]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorldWith(t, consulting(framework.Extender{Preempts: true}), fours("n1", "n2"),
				running("a", "4", 0, "n1"), running("b", "3", 0, "n2"), running("equal", "1", 10, "n2"))
			p := w.nominate(testkit.Pod("p").Req("cpu", "2").Priority(10), "n1")
			d := w.DecideVictims(p, c.agreed)
			w.expect(p, d, "", c.node)
			if got := fmt.Sprint(victims(d)); got != c.want {
				t.Errorf("victims %s, want %s", got, c.want)
			}
			message := "0/2 nodes are available: 2 Insufficient cpu."
			if c.node == "" {
				message += " preemption: no candidate node for preemption"
			} else {
				message += fmt.Sprintf(" preemption: found a potential placement for pod on node %s, preempting 1 victims", c.node)
			}
			if d.Message != message || d.Diagnosis.Outside() != (c.node == "") || d.Diagnosis.Preemption().RuledOut != (c.node == "") {
				t.Errorf("the message is %q, want %q; outside %v, preemption %+v", d.Message, message, d.Diagnosis.Outside(), d.Diagnosis.Preemption())
			}
		})
	}
}

// TestEvaluationsAreCountedPerAttempt by plugin: those that filter for each pod, those
// that score for pods that find a node.
func TestEvaluationsAreCountedPerAttempt(t *testing.T) {
	w := newWorld(t, fours("n1"))
	for _, cpu := range []string{"1", "8", "1"} {
		p := w.pod(testkit.Pod("p"+cpu).Req("cpu", cpu))
		w.decide(p)
		w.Remove(p.UID)
	}
	got := map[string]uint64{}
	w.Evaluations(func(profile string, x engine.Evaluations) {
		if profile != "default-scheduler" {
			t.Errorf("evaluations of profile %q", profile)
		}
		got[x.Plugin+" "+x.Point] = x.Pods
	})
	if got["NodeResourcesFit Filter"] != 3 || got["NodeResourcesFit Score"] != 2 || got["NodeUnschedulable Filter"] != 3 {
		t.Errorf("evaluations %v, want 3 pods filtered and 2 scored", got)
	}
}

var _ scheduler.Rejections = (*world)(nil)

// TestPlacesOutliveQuestionsToExtenders asks extenders about the nodes for a pod that has a place, and about its
// victims: what it claims is kept on its node all the same, and its turn stays.
func TestPlacesOutliveQuestionsToExtenders(t *testing.T) {
	for _, c := range []struct {
		name     string
		extender framework.Extender
		cpu      string
	}{
		{"about nodes", framework.Extender{Filters: true}, "1"},
		{"about victims", framework.Extender{Preempts: true}, "3"},
	} {
		w := newWorldWith(t, consulting(c.extender), fours("n1", "n2"), running("a", "2", 0, "n1"), running("b", "2", 0, "n2"))
		p := w.pod(testkit.Pod("p").Req("cpu", c.cpu).Priority(10))
		w.KeepPlace(p, "n1")
		before := *w.NominationOf(p.UID)
		w.nominate(testkit.Pod("later"), "n1")
		if d := w.decide(p); d.Consult == nil && d.Candidates == nil {
			t.Errorf("%s: nothing was asked", c.name)
		}
		if now := w.NominationOf(p.UID); now == nil || *now != before {
			t.Errorf("%s: the pod is nominated as %+v, want %+v", c.name, now, before)
		}
	}
}
