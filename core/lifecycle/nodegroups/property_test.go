package nodegroups_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/autoscaler/nodegroup"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/lifecycle"
	"github.com/berthproject/berth/core/lifecycle/candidates"
	"github.com/berthproject/berth/core/lifecycle/launching"
	"github.com/berthproject/berth/core/lifecycle/nodedeletion"
	"github.com/berthproject/berth/core/lifecycle/nodegroups"
	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/internal/test/lifecycletest"
	"github.com/berthproject/berth/internal/test/testkit"
)

// around is a provider of one group g, and an API, around node groups and node
// deletions. They carry out what they are asked for late, in any order, and sometimes
// not at all or without saying so.
type around struct {
	t         *rapid.T
	groups    *nodegroups.Machine
	deletions *nodedeletion.Machine
	unneeded  *candidates.Machine
	turn      *lifecycle.Turn

	group     nodegroup.Group      // as the provider has it, but for the instances
	names     bool                 // the provider knows the names of its instances' nodes
	instances map[string]*instance // by ID
	api       map[string]*v1.Node
	news      map[string][]*v1.Node // by node, in order; nil for gone
	calls     []func(luck)
	answers   []func()
	serial    int
	passed    int  // listed instances that were known to be nodes from the list before
	deceived  bool // a node was said to be deleted and wasn't: more are there than the machines know
	// overtaken reports that a list told of a deletion before its answer, which the edges rule out
	// (step.GroupsSet): more nodes may be there than the machines know, until the next list.
	overtaken bool
	deleted   int // deletions that were carried out and aren't answered
	history   []string
}

type instance struct {
	registered bool
	failed     string
}

// luck is how a call ends.
type luck int

const (
	succeeds luck = iota
	fails
	answerLost // carried out, and taken for a failure
	deceives   // not carried out, and taken for a success

	// Without an answer: never carried out, carried out, or carried out within two minutes. Only
	// calls to the provider end so.
	lostCall
	lostAnswer
	lateCall
)

func (l luck) err() error {
	switch {
	case l == fails || l == answerLost:
		return errors.New("refused")
	case l.unanswered():
		return context.DeadlineExceeded
	}
	return nil
}

func (l luck) unanswered() bool { return l >= lostCall }

// carriedOut reports whether a call is carried out before it ends.
func (l luck) carriedOut() bool { return l == succeeds || l == answerLost || l == lostAnswer }

func newAround(t *rapid.T) *around {
	w := &around{t: t, instances: map[string]*instance{}, api: map[string]*v1.Node{}, news: map[string][]*v1.Node{},
		turn: &lifecycle.Turn{Now: time.Unix(1000, 0), State: cluster.New(cluster.NewSchema()), Ready: &step.Ready{}},
		group: nodegroup.Group{ID: "g", Min: testkit.Uniform(t, 3, "min"), Max: 6, Template: testkit.Node("t").Obj(),
			Instances: []nodegroup.Instance{}},
		names: rapid.Bool().Draw(t, "the provider knows nodes' names"),
	}
	w.deletions = nodedeletion.New(nodedeletion.Config{MaxDeletions: 3,
		DeleteDelayAfterTaint: 5 * time.Second})
	limits := []launching.Limit{0, 2, launching.Adaptive}
	w.groups = nodegroups.New(nodegroups.Config{DelayAfterAdd: 10 * time.Second, DelayAfterFailure: 20 * time.Second, MaxProvisionTime: 2 * time.Minute,
		ForceDeleteUnregistered: rapid.Bool().Draw(t, "force delete"), InitialBackoff: time.Minute, MaxBackoff: 2 * time.Minute, BackoffReset: time.Hour}, w.deletions,
		launching.New(launching.Config{Cluster: limits[testkit.Uniform(t, 3, "limit")], Group: limits[testkit.Uniform(t, 3, "limit per group")], Patience: 2 * time.Minute}))
	w.unneeded = candidates.New(candidates.Config{UnneededTime: 20 * time.Second, UnreadyTime: 20 * time.Second})
	w.deletions.Connect(w.groups, w.unneeded, noHomes{}, lifecycletest.Uninterrupted{})
	return w
}

func (w *around) note(format string, args ...any) {
	w.history = append(w.history, fmt.Sprintf("%s ", w.turn.Now.Sub(time.Unix(1000, 0)))+fmt.Sprintf(format, args...))
}

func (w *around) fatalf(format string, args ...any) {
	w.t.Helper()
	w.t.Fatalf("%s; history:\n%s", fmt.Sprintf(format, args...), strings.Join(w.history, "\n"))
}

// change writes a node to the API, nil to delete it.
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
		w.deletions.NodeGone(w.turn, name)
		return
	}
	w.note("node %s is shown with taints %v", name, next.Spec.Taints)
	if info := w.deletions.NodeSet(w.turn, w.turn.State.Schema.ParseNode(next, "g")); info != nil {
		w.turn.State.SetNode(info)
	}
}

// list has the provider tell of its group.
func (w *around) list() {
	g := w.group
	for _, id := range slices.Sorted(maps.Keys(w.instances)) {
		x := nodegroup.Instance{ID: id, Failed: w.instances[id].failed}
		if w.names {
			x.Node = id
		}
		g.Instances = append(g.Instances, x)
	}
	w.note("the provider's target is %d, its instances %v", g.Target, g.Instances)
	w.overtaken = w.overtaken || w.deleted > 0
	in := step.GroupsSet{Groups: []nodegroup.Group{g}}
	w.deletions.GroupsSet(w.turn, in)
	wrong, passed := w.groups.PassesOver(w.turn.State, &g)
	if w.passed += passed; len(wrong) > 0 {
		w.fatalf("instances %v would be taken for nodes by what is remembered of the last list", wrong)
	}
	w.groups.GroupsSet(w.turn, in)
}

// launch makes an instance that is asked for.
func (w *around) launch() {
	if len(w.instances) < w.group.Target {
		w.serial++
		w.instances[fmt.Sprint("i", w.serial)] = &instance{}
	}
}

// register has an instance become a node, named as the instance.
func (w *around) register(id string) {
	x := w.instances[id]
	if x == nil || x.registered || x.failed != "" {
		return
	}
	x.registered = true
	n := testkit.Node(id).Obj()
	n.Spec.ProviderID = id
	w.change(id, n)
}

// vanish ends an instance and its node; the group's target is lower by it.
func (w *around) vanish(id string) {
	if w.instances[id] == nil {
		return
	}
	delete(w.instances, id)
	w.group.Target--
	if w.api[id] != nil {
		w.change(id, nil)
	}
}

// take makes calls of what the machines ask for, and checks the invariants.
func (w *around) take() {
	r := w.turn.Ready
	w.turn.Ready = &step.Ready{}
	for i := range r.Decisions {
		w.note("%s", r.Decisions[i].String())
	}
	for _, x := range r.ScaleUps {
		w.call(func(luck luck) {
			if w.group.Target+x.Nodes > w.group.Max {
				if !w.deceived && !w.overtaken {
					w.fatalf("%d more nodes than %d were asked for, and the group may have %d", x.Nodes, w.group.Target, w.group.Max)
				}
				luck = fails
			}
			w.note("ordering %d ends with %v", x.Nodes, luck)
			if luck.carriedOut() {
				w.group.Target += x.Nodes
			}
			if luck == lateCall {
				w.later(func() {
					w.note("%d are ordered late", x.Nodes)
					if w.group.Target += x.Nodes; w.group.Target > w.group.Max && !w.deceived && !w.overtaken {
						w.fatalf("the target is %d, and the group may have %d", w.group.Target, w.group.Max)
					}
				})
			}
			w.answer(func() {
				w.groups.ScaleUpDone(w.turn, step.ScaleUpDone{Group: "g", Nodes: x.Nodes, Err: luck.err(), Unknown: luck.unanswered()})
			})
		})
	}
	for _, x := range r.TargetDecreases {
		w.call(func(luck) {
			w.note("the target is lowered by %d", x.Nodes)
			if w.group.Target-x.Nodes >= len(w.instances) {
				w.group.Target -= x.Nodes
			}
		})
	}
	for _, x := range r.Taints {
		w.call(func(luck luck) {
			if n := w.api[x.Node]; n != nil && luck != fails {
				n = n.DeepCopy()
				x.Apply(n)
				w.change(x.Node, n)
			}
			w.answer(func() {
				w.deletions.TaintDone(w.turn, step.TaintDone{Node: x.Node, Key: x.Taint.Key, Remove: x.Remove, Err: luck.err()})
			})
		})
	}
	for _, x := range r.NodeDeletions {
		w.call(func(luck luck) {
			w.deceived = w.deceived || luck == deceives
			w.note("deleting instance %s ends with %v", x.Instance, luck)
			if luck.carriedOut() {
				w.vanish(x.Instance)
				w.deleted++
			}
			if luck == lateCall {
				w.later(func() { w.vanish(x.Instance) })
			}
			w.answer(func() { // as the core routes it
				w.note("the deletion of instance %s is answered", x.Instance)
				if luck.carriedOut() {
					w.deleted--
				}
				in := step.NodeDeletionDone{Node: x.Node, Instance: x.Instance, Err: luck.err(), Unknown: luck.unanswered()}
				w.groups.NodeDeletionDone(w.turn, in)
				w.deletions.NodeDeletionDone(w.turn, in)
			})
		})
	}
	broken := append(w.groups.Invariants(), w.deletions.Invariants()...)
	for _, x := range append(broken, w.deletions.InvariantsIn(w.turn.State)...) {
		w.fatalf("broken invariant: %s", x)
	}
	if x := w.groups.ComingDiffers(w.turn); x != "" {
		w.fatalf("%s", x)
	}
}

// later has the provider carry out a call that it hasn't answered within two minutes, or never.
func (w *around) later(f func()) {
	until := w.turn.Now.Add(2 * time.Minute)
	w.call(func(luck) {
		if !w.turn.Now.After(until) {
			f()
		}
	})
}

func (w *around) call(f func(luck)) { w.calls = append(w.calls, f) }
func (w *around) answer(f func())   { w.answers = append(w.answers, f) }

// something happens.
func (w *around) something() {
	t := w.t
	var id string
	if ids := slices.Sorted(maps.Keys(w.instances)); len(ids) > 0 {
		id = ids[testkit.Uniform(t, len(ids), "instance")]
	}
	switch testkit.Uniform(t, 16, "what") {
	case 0, 1:
		if n := len(w.calls); n > 0 {
			i := testkit.Uniform(t, n, "call")
			call := w.calls[i]
			w.calls = slices.Delete(w.calls, i, i+1)
			call(luck(testkit.Uniform(t, 7, "luck")))
		}
	case 2, 3:
		if n := len(w.answers); n > 0 {
			i := testkit.Uniform(t, n, "answer")
			answer := w.answers[i]
			w.answers = slices.Delete(w.answers, i, i+1)
			answer()
		}
	case 4, 5:
		if names := slices.Sorted(maps.Keys(w.news)); len(names) > 0 {
			w.tell(names[testkit.Uniform(t, len(names), "news")])
		}
	case 6:
		w.list()
	case 7:
		if testkit.Uniform(t, 4, "busy") > 0 {
			w.list()
			break
		}
		w.note("the provider is asked while a call is under way")
		in := step.GroupsSet{Busy: []string{"g"}}
		w.deletions.GroupsSet(w.turn, in)
		w.groups.GroupsSet(w.turn, in)
	case 8:
		w.launch()
	case 9:
		w.register(id)
	case 10:
		if x := w.instances[id]; x != nil && !x.registered {
			x.failed = "it is broken"
		}
	case 11:
		if testkit.Uniform(t, 3, "fate") == 0 {
			w.vanish(id)
		}
	case 12, 13:
		if !w.groups.Known() {
			break
		}
		w.serial++
		pods := []types.UID{types.UID(fmt.Sprint("p", w.serial))}
		up := &autoscaler.ScaleUp{Group: "g", Nodes: 1 + testkit.Uniform(t, 3, "nodes"), Pods: pods}
		for range up.Nodes {
			up.Bins = append(up.Bins, pods)
		}
		w.groups.CommitScaleUp(w.turn, up, func(types.UID) bool { return true })
	case 14:
		if !w.groups.Known() {
			break
		}
		p := &autoscaler.Plan{Now: w.turn.Now}
		w.turn.State.Nodes(func(n *cluster.Node) {
			if n.Group != "" && n.Workload == 0 && len(n.Nominated) == 0 {
				p.Removals = append(p.Removals, &autoscaler.Removal{Node: n.Name})
			}
		})
		w.deletions.Begin(w.turn, w.unneeded.CommitPlan(w.turn, p))
	default:
		w.wait(time.Duration(testkit.Uniform(t, 60, "seconds")) * time.Second)
	}
	w.take()
}

func (w *around) wait(d time.Duration) {
	w.turn.Now = w.turn.Now.Add(d)
	w.groups.Advance(w.turn)
	w.deletions.Advance(w.turn)
}

// settle has everything succeed, everything told, and hours pass.
func (w *around) settle() {
	for i := range 40 {
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
		for len(w.instances) < w.group.Target {
			w.launch()
		}
		for _, id := range slices.Sorted(maps.Keys(w.instances)) {
			w.register(id)
		}
		for _, name := range slices.Sorted(maps.Keys(w.api)) {
			w.change(name, w.api[name]) // a heartbeat
		}
		for _, name := range slices.Sorted(maps.Keys(w.news)) {
			w.tell(name)
			w.take()
		}
		w.list()
		w.take()
		w.wait(time.Duration(1+i) * time.Minute)
		w.take()
	}
}

// TestPropertyOutcomesInAnyOrderLeaveNothingBehind has orders and deletions answered
// late, in any order, wrongly or not at all, while instances come, fail, become nodes
// and go. Once all is answered no order is open, no
// instance is followed, every instance is a node in the state, and the target in the state is the provider's.
func TestPropertyOutcomesInAnyOrderLeaveNothingBehind(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newAround(t)
		w.group.Target = w.group.Min + testkit.Uniform(t, 3, "target")
		w.list()
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			w.something()
		}
		w.settle()
		for _, line := range append(w.groups.Unsettled(), w.deletions.Unsettled()...) {
			w.fatalf("%s", line)
		}
		if left := strings.Join(w.groups.Remembers(), "\n"); strings.Contains(left, "instance") {
			w.fatalf("it is remembered that %s", left)
		}
		if got := w.turn.State.Group("g").Target; got != w.group.Target {
			w.fatalf("the target in the state is %d, the provider's %d", got, w.group.Target)
		}
		for id := range w.instances {
			if n := w.turn.State.NodeByName(id); n == nil || n.HasTaint(autoscaler.ToBeDeletedTaint) {
				w.fatalf("instance %s is not a node in the state without the taint", id)
			}
		}
		if w.list(); len(w.instances) > 0 && w.passed == 0 {
			w.fatalf("no instance was ever known to be a node from the list before")
		}
	})
}

// noHomes is for nodes without pods.
type noHomes struct{}

func (noHomes) Reserve(*lifecycle.Turn, *autoscaler.Removal) string { return "" }
func (noHomes) SuccessorRequested(*lifecycle.Turn, *cluster.Pod)    {}
func (noHomes) PodEvicted(*lifecycle.Turn, *cluster.Pod)            {}
func (noHomes) ReleaseUnevicted(*lifecycle.Turn, string)            {}
