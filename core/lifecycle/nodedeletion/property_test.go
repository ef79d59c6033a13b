package nodedeletion_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/autoscaler/nodegroup"
	"github.com/berthproject/berth/core/autoscaler/scaledown"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/lifecycle"
	"github.com/berthproject/berth/core/lifecycle/candidates"
	"github.com/berthproject/berth/core/lifecycle/nodedeletion"
	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/internal/testkit"
)

// around is an API and a provider around a machine. They carry out what the machine
// asks for late, in any order, sometimes not at all, and sometimes without saying so.
type around struct {
	t        *rapid.T
	machine  *nodedeletion.Machine
	unneeded *candidates.Machine
	groups   *fakeGroups
	turn     *lifecycle.Turn

	api       map[string]*v1.Node // as the API server has them
	instances map[string]bool     // that the provider lists
	lists     bool                // the provider lists instances at all
	news      map[string][]*v1.Node
	calls     []func(luck luck)
	answers   []func()
	pods      int
	history   []string
}

// luck is how a call ends.
type luck int

const (
	succeeds luck = iota
	fails
	answerLost // carried out, and taken for a failure
	deceives   // not carried out, and taken for a success
)

func newAround(t *rapid.T) *around {
	w := &around{t: t,
		groups: &fakeGroups{delayed: map[string]bool{}, instances: map[string]fakeInstance{}},
		turn:   &lifecycle.Turn{Now: time.Unix(1000, 0), State: cluster.New(cluster.NewSchema()), Ready: &step.Ready{}},
		api:    map[string]*v1.Node{}, instances: map[string]bool{}, news: map[string][]*v1.Node{},
		lists: rapid.Bool().Draw(t, "the provider lists instances"),
	}
	w.machine = nodedeletion.New(nodedeletion.Config{MaxDeletions: 3,
		DeleteDelayAfterTaint: 5 * time.Second, EvictDaemonPods: true, MaxPodEvictionTime: time.Minute})
	w.unneeded = candidates.New(candidates.Config{UnneededTime: 20 * time.Second, UnreadyTime: 20 * time.Second})
	w.machine.Connect(w.groups, w.unneeded)
	return w
}

func (w *around) note(format string, args ...any) {
	w.history = append(w.history, fmt.Sprintf("%s ", w.turn.Now.Sub(time.Unix(1000, 0)))+fmt.Sprintf(format, args...))
}

func (w *around) fatalf(format string, args ...any) {
	w.t.Helper()
	w.t.Fatalf("%s; history:\n%s", fmt.Sprintf(format, args...), strings.Join(w.history, "\n"))
}

// change writes a node to the API, nil to delete it. What is told of one node keeps its
// order.
func (w *around) change(name string, to *v1.Node) {
	if to == nil {
		delete(w.api, name)
	} else {
		w.api[name] = to
	}
	w.news[name] = append(w.news[name], to)
}

// tell delivers what is next to be told of a node.
func (w *around) tell(name string) {
	next := w.news[name][0]
	if w.news[name] = w.news[name][1:]; len(w.news[name]) == 0 {
		delete(w.news, name)
	}
	if next == nil {
		w.note("node %s is gone", name)
		w.turn.State.RemoveNode(name)
		w.machine.NodeGone(name)
		return
	}
	w.note("node %s is shown with taints %v", name, next.Spec.Taints)
	if info := w.machine.NodeSet(w.turn, w.turn.State.Schema.ParseNode(next, "g")); info != nil {
		w.turn.State.SetNode(info)
	}
}

func (w *around) join(name string) {
	n := testkit.Node(name).Obj()
	n.Spec.ProviderID = name
	w.instances[name] = true
	w.change(name, n)
}

// list has the provider tell of its group.
func (w *around) list() {
	g := nodegroup.Group{ID: "g", Max: 20, Target: len(w.instances)}
	if w.lists {
		g.Instances = []nodegroup.Instance{}
		for _, id := range slices.Sorted(maps.Keys(w.instances)) {
			g.Instances = append(g.Instances, nodegroup.Instance{ID: id})
		}
	}
	w.note("the provider lists %v", g.Instances)
	w.groups.known = true
	w.machine.GroupsSet(w.turn, step.GroupsSet{Groups: []nodegroup.Group{g}})
	w.turn.State.SetGroup("g", &cluster.NodeGroup{ID: "g", Max: 20, Target: g.Target - w.machine.Unanswered("g")})
}

// plan names some of the empty nodes.
func (w *around) plan() {
	p := &autoscaler.Plan{Now: w.turn.Now}
	w.turn.State.Nodes(func(n *cluster.Node) {
		if scaledown.Removable(n) {
			w.note("a plan finds %s empty", n.Name)
			p.Removals = append(p.Removals, &autoscaler.Removal{Node: n.Name})
		}
	})
	w.machine.Begin(w.turn, w.unneeded.CommitPlan(w.turn, p))
}

// take makes of what the machine asks for calls whose outcome is owed, and checks the
// invariants.
func (w *around) take() {
	r := w.turn.Ready
	w.turn.Ready = &step.Ready{}
	for i := range r.Decisions {
		w.note("%s", r.Decisions[i].String())
	}
	for _, x := range r.Taints {
		w.calls = append(w.calls, func(luck luck) {
			w.note("tainting %s (remove: %t) ends with %v", x.Node, x.Remove, luck)
			if n := w.api[x.Node]; n != nil && luck != fails { // a taint that was written is there
				info := w.turn.State.Schema.ParseNode(n, "g")
				if x.Remove {
					info = info.WithoutTaint(x.Taint.Key)
				} else {
					info = info.WithTaint(x.Taint)
				}
				w.change(x.Node, info.Object)
			}
			w.answer(func() { w.machine.TaintDone(w.turn, step.TaintDone{Node: x.Node, Err: luck.err()}) })
		})
	}
	for _, x := range r.Evictions {
		w.calls = append(w.calls, func(luck luck) {
			w.note("evicting %s ends with %v", x.Name, luck)
			w.answer(func() { w.machine.EvictionDone(step.EvictionDone{UID: x.UID, Node: x.Node, Err: luck.err()}) })
		})
	}
	for _, x := range r.NodeDeletions {
		w.calls = append(w.calls, func(luck luck) {
			w.note("deleting %s ends with %v", x.Node, luck)
			if luck == succeeds || luck == answerLost {
				w.vanish(x.Node)
			}
			w.answer(func() {
				w.note("the deletion of %s is answered", x.Node)
				w.machine.NodeDeletionDone(w.turn, step.NodeDeletionDone{Node: x.Node, Instance: x.Instance, Err: luck.err()})
			})
		})
	}
	for _, broken := range append(w.machine.Invariants(), w.machine.InvariantsIn(w.turn.State)...) {
		w.fatalf("broken invariant: %s", broken)
	}
}

// answer keeps the outcome of a call until it is told.
func (w *around) answer(tell func()) { w.answers = append(w.answers, tell) }

func (l luck) err() error {
	if l == fails || l == answerLost {
		return errors.New("refused")
	}
	return nil
}

// vanish ends an instance and its node.
func (w *around) vanish(name string) {
	delete(w.instances, name)
	if w.api[name] != nil {
		w.change(name, nil)
	}
}

// something happens.
func (w *around) something() {
	t := w.t
	name := fmt.Sprint("n", testkit.Uniform(t, 4, "node"))
	switch testkit.Uniform(t, 11, "what") {
	case 0, 1:
		if n := len(w.calls); n > 0 {
			i := testkit.Uniform(t, n, "call")
			call := w.calls[i]
			w.calls = slices.Delete(w.calls, i, i+1)
			call(luck(testkit.Uniform(t, 4, "luck")))
		}
	case 10:
		if n := len(w.answers); n > 0 {
			i := testkit.Uniform(t, n, "answer")
			answer := w.answers[i]
			w.answers = slices.Delete(w.answers, i, i+1)
			answer()
		}
	case 2, 3:
		if len(w.news[name]) > 0 {
			w.tell(name)
		}
	case 4:
		w.list()
	case 5:
		if w.groups.known {
			w.plan()
		}
	case 6:
		switch {
		case w.api[name] == nil && len(w.news[name]) == 0:
			w.join(name)
		case testkit.Uniform(t, 4, "fate") == 0:
			w.vanish(name)
		case w.api[name] != nil:
			w.change(name, w.api[name]) // a heartbeat
		}
	case 7:
		if n := w.turn.State.NodeByName(name); n != nil && len(n.Pods) > 0 {
			w.turn.State.Remove(n.Pods[0].UID)
		} else if n != nil {
			w.pods++
			pod := testkit.Pod(fmt.Sprint("p", w.pods))
			if rapid.Bool().Draw(t, "daemon") {
				pod.Owner("apps/v1", "DaemonSet", "agent")
			}
			w.note("pod %s comes to %s", pod.Name, name)
			w.turn.State.Place(w.turn.State.Schema.ParsePod(pod.Obj()), name)
		}
	default:
		w.wait(time.Duration(testkit.Uniform(t, 60, "seconds")) * time.Second)
	}
	w.take()
}

func (w *around) wait(d time.Duration) {
	w.turn.Now = w.turn.Now.Add(d)
	w.machine.Advance(w.turn)
}

// settle has everything succeed, everything told, and time pass.
func (w *around) settle() {
	for range 8 {
		for len(w.calls)+len(w.answers)+len(w.news) > 0 {
			for _, name := range slices.Sorted(maps.Keys(w.news)) {
				w.tell(name)
				w.take()
			}
			for _, call := range w.calls {
				call(succeeds)
			}
			w.calls = nil
			for _, answer := range w.answers {
				answer()
			}
			w.answers = nil
			w.take()
		}
		for _, name := range slices.Sorted(maps.Keys(w.api)) {
			w.change(name, w.api[name]) // a heartbeat
		}
		w.list()
		w.take()
		w.wait(2 * time.Minute)
		w.take()
	}
}

// TestPropertyOutcomesInAnyOrderLeaveNothingBehind has taints, evictions and deletions
// answered late, in any order, wrongly or not at all, while nodes come and go and pods
// come to them. Once all is answered no node is on its way out, none has the taint, and
// the state has the nodes that the API has.
func TestPropertyOutcomesInAnyOrderLeaveNothingBehind(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newAround(t)
		w.list()
		for i := range 4 {
			w.join(fmt.Sprint("n", i))
		}
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			w.something()
		}
		w.settle()
		for _, line := range w.machine.Unsettled() {
			w.fatalf("%s", line)
		}
		if n, m := w.machine.Planned("g"), w.machine.Unanswered("g"); n != 0 || m != 0 {
			w.fatalf("%d deletions are planned and %d unanswered, want none", n, m)
		}
		state := map[string]bool{}
		w.turn.State.Nodes(func(n *cluster.Node) {
			state[n.Name] = true
			if n.HasTaint(autoscaler.ToBeDeletedTaint) {
				w.fatalf("node %s has kept the taint in the state", n.Name)
			}
		})
		for name, n := range w.api {
			if !state[name] {
				w.fatalf("node %s is in the API, and not in the state", name)
			}
			if w.turn.State.Schema.ParseNode(n, "g").HasTaint(autoscaler.ToBeDeletedTaint) {
				w.fatalf("node %s has kept the taint in the API", name)
			}
		}
		if len(state) != len(w.api) {
			w.fatalf("the state has nodes %v, the API has %d", state, len(w.api))
		}
	})
}
