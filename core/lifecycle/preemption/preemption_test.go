package preemption_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/engine"
	"github.com/berthproject/berth/core/framework"
	"github.com/berthproject/berth/core/lifecycle"
	"github.com/berthproject/berth/core/lifecycle/preemption"
	"github.com/berthproject/berth/core/queue"
	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/internal/test/lifecycletest"
	"github.com/berthproject/berth/internal/test/testkit"
	"github.com/berthproject/berth/internal/test/testkit/script"
)

var errRefused = errors.New("refused")

// world is a machine with a full node, and other machines as the test says.
type world struct {
	*lifecycletest.Bench
	m       *preemption.Machine
	pods    lifecycletest.Pods[preemption.Pod]
	waiting map[types.UID]bool // pods that wait for permission
	binding map[types.UID]bool // pods whose bind is under way
	states  script.States
	// disrupted and retried are what pod groups were told.
	disrupted, retried []string
}

func newWorld() *world {
	w := &world{Bench: lifecycletest.NewBench(), pods: lifecycletest.Pods[preemption.Pod]{}, waiting: map[types.UID]bool{}, binding: map[types.UID]bool{}}
	w.m = preemption.New(w.Scheduler, w.pods, w, w, w)
	w.Scheduler.Leaving = w.m.Victim
	w.Node(testkit.Node("n").Alloc("cpu", "4", "memory", "8Gi").Obj())
	return w
}

// Preempt implements preemption.Bindings.
func (w *world) Preempt(victim types.UID) bool { return w.waiting[victim] }

// Cancel implements preemption.Bindings.
func (w *world) Cancel(t *lifecycle.Turn, victim types.UID) bool {
	if w.binding[victim] {
		t.Ready.Cancels = append(t.Ready.Cancels, step.Cancel{UID: victim})
	}
	return w.binding[victim]
}

// Disrupted implements preemption.Groups.
func (w *world) Disrupted(_ *lifecycle.Turn, group cluster.PodGroupKey, message string) {
	w.disrupted = append(w.disrupted, group.String()+": "+message)
}

// VictimStays implements preemption.Groups.
func (w *world) VictimStays(_ *lifecycle.Turn, group cluster.PodGroupKey) {
	w.retried = append(w.retried, group.String())
}

// WithdrawFrom implements preemption.Nominations.
func (w *world) WithdrawFrom(t *lifecycle.Turn, item *queue.Item) {
	t.State.Nominate(item.Pod(), "")
	t.Queue.SetNominated(item, false)
}

// run has a pod of priority 0 and one CPU run on the node.
func (w *world) run(name string) {
	w.State.Place(w.State.Schema.ParsePod(testkit.Pod(name).Req("cpu", "1").Obj()), "n")
}

// preempt has a pod of a priority take the place of victims, as the core does.
func (w *world) preempt(name string, priority int32, victims ...string) {
	obj := testkit.Pod(name).Req("cpu", fmt.Sprint(len(victims))).Priority(priority).Obj()
	item := w.Queued(obj)
	p := &preemption.Pod{}
	w.pods[obj.UID] = p
	w.PopOnly(item)
	class := w.Scheduler.Class(item.Pod())
	w.Queue.SetClass(item, class)
	c := &engine.Candidate{Node: w.State.NodeByName("n").Index, Victims: framework.Victims{}}
	for _, v := range victims {
		c.Pods = append(c.Pods, w.State.PodOn(types.UID("pod-"+v)))
	}
	w.State.Nominate(item.Pod(), "n")
	w.m.Preempt(w.Turn, p, item.Pod(), c, nil)
	w.Queue.SetNominated(item, true)
	if d := w.Scheduler.Diagnose(class); p.Asking() {
		w.Queue.Hold(w.Now, item, d)
	} else {
		w.Queue.Reject(w.Now, item, d)
	}
}

// gone has a pod leave the cluster.
func (w *world) gone(uid types.UID) {
	w.m.BeforePodRemoved(w.Turn, uid)
	w.State.Remove(uid)
	if item := w.Queue.Get(uid); item != nil {
		w.State.Nominate(item.Pod(), "")
		w.Queue.Remove(uid)
	}
	w.m.PodRemoved(w.Turn, uid)
	delete(w.pods, uid)
}

// bound has the API show a victim whose bind could not be taken back.
func (w *world) bound(uid types.UID) {
	delete(w.binding, uid)
	w.m.PodBound(w.Turn, w.State.PodOn(uid))
}

// unplaced has a victim lose its node before it was bound.
func (w *world) unplaced(uid types.UID) {
	w.m.BeforeBindUndone(w.Turn, w.State.PodOn(uid))
	w.State.Remove(uid)
	delete(w.waiting, uid)
	delete(w.binding, uid)
	w.m.PodRemoved(w.Turn, uid)
}

func (w *world) broken() []string { return append(w.m.Invariants(), w.m.InvariantsIn(w.Queue)...) }

// TestVictimsAreThoseOfTheirPreemptor has two pods preempt on one node, and one victim go.
func TestVictimsAreThoseOfTheirPreemptor(t *testing.T) {
	w := newWorld()
	for _, name := range []string{"a", "b", "c"} {
		w.run(name)
	}
	w.preempt("p", 10, "c", "a")
	w.preempt("q", 10, "b")
	check := func(when string, preemptor types.UID, want ...types.UID) {
		if got := w.m.VictimsOf(preemptor); !slices.Equal(got, want) {
			t.Errorf("%s: %s waits for %v, want %v", when, preemptor, got, want)
		}
	}
	check("both have preempted", "pod-p", "pod-a", "pod-c")
	check("both have preempted", "pod-q", "pod-b")
	w.gone("pod-a")
	check("a is gone", "pod-p", "pod-c")
	check("a is gone", "pod-q", "pod-b")
}

// TestPreemptorsSchedulerSpeaksOfVictims: a victim of another scheduler's gets its condition and its
// event in the name of the preemptor's scheduler, also when the preemptor is gone by then.
func TestPreemptorsSchedulerSpeaksOfVictims(t *testing.T) {
	for _, preemptorGone := range []bool{false, true} {
		w := newWorld()
		victim := testkit.Pod("v").Req("cpu", "1").With(func(p *v1.Pod) { p.Spec.SchedulerName, p.Generation = "batch", 3 })
		w.State.Place(w.State.Schema.ParsePod(victim.Obj()), "n")
		w.preempt("p", 10, "v")
		asked := w.Flush()
		if len(asked.Preemptions) != 1 || asked.Preemptions[0].Generation != 3 || asked.Preemptions[0].Message != "default-scheduler: preempting to accommodate a higher priority pod" {
			t.Errorf("victims are asked with %+v", asked.Preemptions)
		}
		if preemptorGone {
			w.gone("pod-p")
		}
		w.m.PreemptionDone(w.Turn, step.PreemptionDone{UID: "pod-v", By: "pod-p"})
		related := step.PodName{UID: "pod-p", Namespace: "default", Name: "p"}
		if r := w.Flush(); len(r.Events) != 1 || r.Events[0].Reporter != v1.DefaultSchedulerName || r.Events[0].Preemptor != related {
			t.Errorf("preemptor gone: %t, events %+v, want one from %s, related to %v", preemptorGone, r.Events, v1.DefaultSchedulerName, related)
		}
	}
}

// TestScripts runs testdata/scripts/*.txt. After each command it prints the work that it
// brings, and what it changed: where preemptors are in the queue, and what isn't settled. The
// commands:
//
//	runs POD [waiting|binding]    a pod of priority 0 is on the node; it waits for permission, or is being bound
//	preempt POD victims=(a, b) [priority=10]
//	done POD by=POD [fails]       the outcome of asking a victim to leave
//	bound POD | unplaced POD      what became of a victim's bind
//	gone POD
//	advance
func TestScripts(t *testing.T) {
	datadriven.Walk(t, "testdata/scripts", func(t *testing.T, path string) {
		w := newWorld()
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string { return w.command(t, d) })
	})
}

func (w *world) command(t *testing.T, d *datadriven.TestData) string {
	args := script.NewArgs(t, d)
	if d.Cmd == "advance" {
		w.m.Advance(w.Turn)
		return w.text()
	}
	name := args.Name()
	uid := types.UID("pod-" + name)
	switch d.Cmd {
	case "runs":
		w.run(name)
		w.waiting[uid], w.binding[uid] = args.Flag("waiting"), args.Flag("binding")
	case "preempt":
		w.preempt(name, int32(args.Int("priority", 10)), args.List("victims")...)
	case "done":
		in := step.PreemptionDone{UID: uid, By: types.UID("pod-" + args.String("by", ""))}
		if args.Flag("fails") {
			in.Err = errRefused
		}
		w.m.PreemptionDone(w.Turn, in)
	case "bound":
		w.bound(uid)
	case "unplaced":
		w.unplaced(uid)
	case "gone":
		w.gone(uid)
	default:
		d.Fatalf(t, "unknown command %q", d.Cmd)
	}
	args.Done()
	return w.text()
}

func (w *world) text() string {
	r := w.Flush()
	out := lifecycletest.Text(&r)
	var states []string
	for uid := range w.pods.All() {
		states = append(states, fmt.Sprintf("%s: %s, nominated to %q", uid, w.Queue.Get(uid).Stage(), w.State.NominatedTo(uid)))
	}
	out += w.states.Text(append(states, w.m.Unsettled()...), time.Time{}, time.Time{})
	for _, s := range w.broken() {
		out += s + "\n"
	}
	if out == "" {
		return "nothing\n"
	}
	return out
}

// TestPropertyOutcomesLeaveNothingBehind has pods take the place of others, and all that
// can become of victims and preemptors happen in any order. In the end, nothing waits for
// an outcome and no pod is held.
func TestPropertyOutcomesLeaveNothingBehind(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld()
		owed := []step.PreemptionDone{}
		take := func() {
			r := w.Flush()
			for _, x := range r.Preemptions {
				owed = append(owed, step.PreemptionDone{UID: x.UID, By: x.By})
			}
			if broken := w.broken(); broken != nil {
				t.Fatalf("broken invariants: %q", broken)
			}
		}
		running := func() (out []string) {
			for _, p := range w.State.NodeByName("n").Pods {
				out = append(out, p.Object.Name)
			}
			slices.Sort(out)
			return out
		}
		answer := func(failures bool) {
			i := rapid.IntRange(0, len(owed)-1).Draw(t, "answer")
			in := owed[i]
			owed = slices.Delete(owed, i, i+1)
			if failures && rapid.Bool().Draw(t, "fails") {
				in.Err = errRefused
			}
			w.m.PreemptionDone(w.Turn, in)
			take()
		}
		for k := range rapid.IntRange(1, 30).Draw(t, "events") {
			there := running()
			switch event := rapid.IntRange(0, 6).Draw(t, "event"); {
			case event == 0 || len(there) == 0:
				name := fmt.Sprint("v", k)
				w.run(name)
				uid := types.UID("pod-" + name)
				switch rapid.IntRange(0, 2).Draw(t, "how") {
				case 0:
					w.waiting[uid] = true
				case 1:
					w.binding[uid] = true
				}
			case event <= 2:
				victims := rapid.SliceOfNDistinct(rapid.SampledFrom(there), 1, min(3, len(there)), rapid.ID[string]).Draw(t, "victims")
				w.preempt(fmt.Sprint("p", k), int32(rapid.IntRange(5, 9).Draw(t, "priority")), victims...)
			case event == 3 && len(owed) > 0:
				answer(true)
			case event == 4:
				w.gone(types.UID("pod-" + rapid.SampledFrom(there).Draw(t, "gone")))
			case event == 5 && len(w.pods) > 0:
				w.gone(rapid.SampledFrom(slices.Sorted(maps.Keys(w.pods))).Draw(t, "gone"))
			case event == 6:
				uid := types.UID("pod-" + rapid.SampledFrom(there).Draw(t, "pod"))
				if w.binding[uid] && rapid.Bool().Draw(t, "bound") {
					w.bound(uid)
				} else if w.binding[uid] || w.waiting[uid] {
					w.unplaced(uid)
				}
			}
			take()
			if rapid.Bool().Draw(t, "advance") {
				w.m.Advance(w.Turn)
			}
		}
		for _, name := range running() {
			if uid := types.UID("pod-" + name); w.binding[uid] || w.waiting[uid] {
				w.unplaced(uid)
			}
		}
		for len(owed) > 0 {
			answer(false)
		}
		for _, name := range running() {
			if uid := types.UID("pod-" + name); w.m.Victim(uid) {
				w.gone(uid)
			}
		}
		w.m.Advance(w.Turn)
		if left := append(w.m.Unsettled(), w.broken()...); left != nil {
			t.Errorf("left behind: %q", left)
		}
		for uid := range w.pods.All() {
			if got := w.Queue.Get(uid).Stage(); got == queue.Held {
				t.Errorf("%s is held in the end", uid)
			}
		}
	})
}
