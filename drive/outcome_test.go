package drive_test

import (
	"errors"
	appsv1 "k8s.io/api/apps/v1"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/berthproject/berth/core"
	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/autoscaler/nodegroup"
	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/drive"
	"github.com/berthproject/berth/internal/test/testkit"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// withheld are workers that do all work at once and report success, but for one piece:
// its outcome is withheld.
type withheld struct {
	drive.Unanswered
	work     string // the piece of work
	log      []string
	withheld func(error) // reports its outcome; nil before it was handed out
}

// do logs a piece of work and reports its outcome, unless that is withheld. The same work
// may be handed out a second time: then its outcome is reported.
func (w *withheld) do(done func(error), words ...string) {
	text := strings.Join(words, " ")
	w.log = append(w.log, text)
	if text == w.work && w.withheld == nil {
		w.withheld = done
		return
	}
	done(nil)
}

func (w *withheld) Bind(x step.Bind, done func(error))          { w.do(done, "bind", x.Name, x.Node) }
func (w *withheld) Preempt(x step.Preemption, done func(error)) { w.do(done, "preempt", x.Name) }
func (w *withheld) Nominate(x step.Nomination, done func(error)) {
	w.do(done, "nominate", x.Name, x.Node)
}
func (w *withheld) Evict(x step.Eviction, done func(error))  { w.do(done, "evict", x.Name) }
func (w *withheld) ScaleUp(x step.ScaleUp, done func(error)) { w.do(done, "scale up", x.Group) }
func (w *withheld) Taint(x step.Taint, done func(error)) {
	what := "taint"
	if x.Remove {
		what = "untaint"
	}
	if x.Taint.Key == autoscaler.DeletionCandidateTaint {
		what = "softly " + what
	}
	w.do(done, what, x.Node)
}

func (w *withheld) DeleteNodes(list []step.NodeDeletion, done func(step.NodeDeletion, error)) {
	for _, x := range list {
		w.do(func(err error) { done(x, err) }, "delete", x.Node)
	}
}

func (w *withheld) Plan(compute func() *autoscaler.Plan, done func(*autoscaler.Plan)) {
	w.do(func(error) { done(compute()) }, "plan")
}

// outcomeCase is a cluster in which the core asks for some work, and what it asks for next
// when it learns of the outcome.
type outcomeCase struct {
	name    string
	cluster []step.Input
	work    string
	outcome error
	within  time.Duration // after the outcome
	next    string
}

// play has the core decide about the cluster for so long as the case says after the work
// was asked for, and returns whether it asked for what comes next. Steps are a second
// apart; each brings the node groups anew.
func (c *outcomeCase) play(t *testing.T, report bool) bool {
	t.Helper()
	w := &withheld{work: c.work}
	var inputs []step.Input
	d := newDriver(t, drive.Config{
		Core: autoscaling(func(a *core.Autoscale) {
			a.UnneededTime, a.DelayAfterAdd, a.EvictDaemonPods = 5*time.Second, 0, true
		}),
		Workers: w, Inbox: func(in step.Input) { inputs = append(inputs, in) },
	})
	inputs = c.cluster
	group := nodegroup.Group{ID: "g", Max: 5, Template: smallNode("template").Obj()}
	for _, in := range c.cluster {
		if n, ok := in.(step.NodeSet); ok && n.Group == group.ID {
			group.Target++
		}
	}
	var asked time.Time
	for now := time.Unix(1000, 0); ; now = now.Add(time.Second) {
		in := append(inputs, step.GroupsSet{Groups: []nodegroup.Group{group}})
		inputs = nil
		if _, err := d.Step(now, in...); err != nil {
			t.Fatal(err)
		}
		switch {
		case asked.IsZero() && w.withheld == nil:
			if now.Unix() > 1100 {
				t.Fatalf("%q wasn't asked for, but %q", c.work, w.log)
			}
		case asked.IsZero():
			if asked, w.log = now, nil; report {
				w.withheld(c.outcome)
			}
		case slices.Contains(w.log, c.next):
			return true
		case now.Sub(asked) > c.within:
			return false
		}
	}
}

func smallNode(name string) *testkit.NodeBuilder {
	return testkit.Node(name).Alloc("cpu", "4", "memory", "8Gi", "pods", "10")
}

// TestTheCoreActsOnEachOutcome: what the core asks for when it learns of an outcome, it
// doesn't ask for as long as the outcome is withheld. So no outcome may be lost between
// worker and core.
func TestTheCoreActsOnEachOutcome(t *testing.T) {
	refused := errors.New("refused")
	inGroup := step.NodeSet{Node: smallNode("n").Obj(), Group: "g"}
	alone := step.NodeSet{Node: smallNode("n").Obj()}
	fits := step.PodSet{Pod: testkit.Pod("p").Req("cpu", "3").Obj()}
	important := step.PodSet{Pod: testkit.Pod("p").Req("cpu", "3").Priority(10).Obj()}
	victim := step.PodSet{Pod: testkit.Pod("victim").Req("cpu", "3").On("n").Obj()}
	above := step.PodSet{Pod: testkit.Pod("above").Req("cpu", "3").Priority(20).On("n").Obj()}
	set := step.DaemonSetSet{DaemonSet: &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "agent"}}}
	daemon := step.PodSet{Pod: testkit.Pod("agent").Req("cpu", "100m").Owner("apps/v1", "DaemonSet", "agent").On("n").Obj()}
	for _, c := range []outcomeCase{
		{"a bind fails: the pod is tried again after its backoff", []step.Input{alone, fits}, "bind p n", refused, 5 * time.Second, "bind p n"},
		{"a victim can't be deleted: the pod preempts again", []step.Input{alone, victim, important}, "preempt victim", refused, 5 * time.Second, "preempt victim"},
		{"a nomination can't be written: it is written again", []step.Input{alone, victim, important}, "nominate p n", refused, 6 * time.Second, "nominate p n"},
		{"a plan is made: nodes are ordered", []step.Input{alone, above, fits}, "plan", nil, 5 * time.Second, "scale up g"},
		{"an order fails: it is made again after the group's backoff", []step.Input{alone, above, fits}, "scale up g", refused, 6 * time.Minute, "scale up g"},
		{"a node can't be tainted: the taint is taken off", []step.Input{inGroup}, "taint n", refused, time.Second, "untaint n"},
		{"a node is tainted: it is deleted after a delay", []step.Input{inGroup}, "taint n", nil, 10 * time.Second, "delete n"},
		{"a candidate can't be tainted softly: that is tried again", []step.Input{inGroup}, "softly taint n", refused, 6 * time.Second, "softly taint n"},
		{"a daemon pod is evicted: its node is deleted", []step.Input{inGroup, set, daemon}, "evict agent", nil, 2 * time.Second, "delete n"},
		{"a daemon pod can't be evicted: its node is deleted all the same", []step.Input{inGroup, set, daemon}, "evict agent", refused, 2 * time.Second, "delete n"},
		{"a node can't be deleted: it stays, and the taint is taken off", []step.Input{inGroup}, "delete n", refused, 2 * time.Second, "untaint n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if !c.play(t, true) {
				t.Errorf("%s after the outcome of %q, %q isn't asked for", c.within, c.work, c.next)
			}
			if c.play(t, false) {
				t.Errorf("%q is asked for without the outcome of %q: the case shows nothing", c.next, c.work)
			}
		})
	}
}
