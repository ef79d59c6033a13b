package core_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/drive"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/berthproject/berth/core"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/framework"
	"github.com/berthproject/berth/internal/test/testkit"
)

// edge is a core and what stands around it, which answers what the core asks
// for now and then, in any order, with failures. What is owed are the outcomes of
// workers in the driver's inbox, and what the API will show.
type edge struct {
	drive.Unanswered
	t        *rapid.T
	driver   *driven
	c        *core.Core
	now      time.Time
	told     string                // the history so far
	failures int                   // of the work of this Step, so many in a hundred fail
	pods     map[types.UID]*v1.Pod // those that there are
	nodes    map[string]*v1.Node
	version  int
	consults bool // each pod is placed by what an extender says
	// allows is what extenders say about a pod and a node.
	allows func(pod *v1.Pod, node string) bool
	// binding has the pods whose binds have no outcome yet.
	binding map[types.UID]bool
}

// newEdge makes the profile with its schema.
func newEdge(t *rapid.T, profile func(*cluster.Schema) *framework.Profile) *edge {
	e := &edge{t: t, now: time.Unix(1000, 0), pods: map[types.UID]*v1.Pod{}, nodes: map[string]*v1.Node{}, binding: map[types.UID]bool{},
		allows: func(_ *v1.Pod, node string) bool { return strings.ContainsAny(node, "024") }}
	e.driver = newDriven(t, core.DefaultConfig(), slowExtender{e}, profile, drive.HookFunc(e.watch))
	e.c = e.driver.Core()
	return e
}

// step lets time pass and tells the core so much; of what it asks for then, so
// many in a hundred will fail.
func (e *edge) step(wait time.Duration, failures int, in ...step.Input) {
	e.now, e.failures = e.now.Add(wait), failures
	e.driver.step(e.now, in...)
}

// watch is a drive.Hook.
func (e *edge) watch(_ time.Time, _ time.Duration, in []step.Input, r *step.Ready) {
	e.told += tell(in) + "→ " + text(r)
	for _, broken := range slices.Concat(e.c.Invariants(), e.c.StaleClasses()) {
		e.fatalf("broken invariant: %s", broken)
	}
	if n := e.c.Stats().MissedWakeups; n > 0 {
		e.fatalf("%d pods were found schedulable by the leftover sweep", n)
	}
	e.see(in)
	e.watchBinds(in, r)
}

// watchBinds checks that a bind that is under way is cancelled when its pod is gone.
func (e *edge) watchBinds(in []step.Input, r *step.Ready) {
	cancelled := map[types.UID]bool{}
	for _, x := range r.Cancels {
		cancelled[x.UID] = true
	}
	for _, x := range in {
		switch x := x.(type) {
		case step.BindDone:
			delete(e.binding, x.UID)
		case step.PodSet:
			if x.Pod.Spec.NodeName != "" { // it is bound, or somebody else has bound it
				delete(e.binding, x.Pod.UID)
			}
		case step.PodGone:
			if e.binding[x.UID] && !cancelled[x.UID] {
				e.fatalf("pod %s is gone, and its bind goes on", x.UID)
			}
			delete(e.binding, x.UID)
		}
	}
	for _, b := range r.Binds {
		e.binding[b.UID] = true
		if pod := e.pods[b.UID]; e.consults && pod != nil && !e.allows(pod, b.Node) {
			e.fatalf("pod %s is placed on node %s, which the extender doesn't allow it as it is", b.UID, b.Node)
		}
	}
	for uid := range cancelled { // also of this Step
		delete(e.binding, uid)
	}
}

// settle answers everything, lets time pass beyond every backoff and the
// leftover sweep, and demands that nothing is held on to.
func (e *edge) settle() {
	for range 60 {
		e.step(11*time.Second, 0, e.some(len(e.driver.inbox))...)
	}
	for range 3 {
		e.step(6*time.Minute, 0, e.some(len(e.driver.inbox))...)
	}
	for len(e.driver.inbox) > 0 {
		e.step(time.Second, 0, e.some(len(e.driver.inbox))...)
	}
	for _, problem := range e.c.Unsettled() {
		e.fatalf("%s", problem)
	}
}

func (e *edge) fatalf(format string, args ...any) {
	e.t.Helper()
	e.t.Fatalf("%s; history:\n%s", fmt.Sprintf(format, args...), e.told)
}

// see records which pods and nodes there are.
func (e *edge) see(in []step.Input) {
	for _, x := range in {
		switch x := x.(type) {
		case step.PodSet:
			e.pods[x.Pod.UID] = x.Pod
		case step.PodGone:
			delete(e.pods, x.UID)
		case step.NodeSet:
			e.nodes[x.Node.Name] = x.Node
		case step.NodeGone:
			delete(e.nodes, x.Name)
		}
	}
}

// fails draws whether a piece of work fails.
func (e *edge) fails(what string) error {
	if rapid.IntRange(0, 99).Draw(e.t, what) < e.failures {
		return errors.New("refused")
	}
	return nil
}

// Bind implements drive.Workers: the API shows a pod that was bound, with what was
// written for its volumes and devices.
func (e *edge) Bind(b step.Bind, done func(error)) {
	err := e.fails("bind fails")
	done(err)
	if p := e.pods[b.UID]; err == nil && p != nil {
		bound := p.DeepCopy()
		bound.Spec.NodeName = b.Node
		e.driver.put(step.PodSet{Pod: bound})
		for _, w := range b.Writes {
			e.version++
			o := w.(runtime.Object).DeepCopyObject().(cluster.Object)
			o.SetResourceVersion(fmt.Sprint(1000 + e.version))
			e.driver.put(step.ObjectSet{Object: o})
		}
		for _, c := range b.DeviceClaims {
			e.version++
			c = c.DeepCopy()
			c.ResourceVersion = fmt.Sprint(1000 + e.version)
			if c.UID == "" {
				c.UID = types.UID("claim-" + c.Name)
			}
			e.driver.put(step.ObjectSet{Object: c})
		}
	}
}

// Preempt implements drive.Workers: a victim that was asked to leave does.
func (e *edge) Preempt(x step.Preemption, done func(error)) {
	err := e.fails("telling fails")
	done(err)
	if err == nil {
		e.driver.put(step.PodGone{UID: x.UID})
	}
}

// Nominate implements drive.Workers.
func (e *edge) Nominate(_ step.Nomination, done func(error)) { done(e.fails("nominating fails")) }

// some returns so many of the answers, any of those that are owed. A pod that has
// gone isn't shown any more.
func (e *edge) some(n int) (out []step.Input) {
	gone := map[types.UID]bool{}
	for range min(n, len(e.driver.inbox)) {
		i := rapid.IntRange(0, len(e.driver.inbox)-1).Draw(e.t, "answer")
		answer := e.driver.inbox[i]
		e.driver.inbox = append(e.driver.inbox[:i:i], e.driver.inbox[i+1:]...)
		switch x := answer.(type) {
		case step.PodGone:
			gone[x.UID] = true
		case step.PodSet:
			if gone[x.Pod.UID] || e.pods[x.Pod.UID] == nil {
				continue
			}
		}
		out = append(out, answer)
	}
	return out
}

// TestPropertyOutcomesLeaveNothingBehind answers binds, preemptions and
// nominations late, in any order and with failures. Once all is answered nobody
// waits who could be placed or could preempt, and nothing is held on to.
func TestPropertyOutcomesLeaveNothingBehind(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := newEdge(t, defaults)
		for _, in := range randomHistory(t) {
			e.step(500*time.Millisecond, 20, append(e.some(rapid.IntRange(0, 3).Draw(t, "answers")), in...)...)
		}
		e.settle()
	})
}

// TestPropertyOddIntake gives a core what a bad day gives it: pods that change
// while their bind or preemption is under way, nodes that flap, everything told
// twice, relists in another order with other contents, answers that come late,
// twice or not before hours have passed, and even a clock that is set back, which
// the live one isn't. In the end it knows exactly the pods that there are where they
// are, nobody who fits waits, and nothing is held on to.
func TestPropertyOddIntake(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := newEdge(t, defaults)
		// What is told of one object keeps its order.
		var in []step.Input
		twice := false
		say := func(list ...step.Input) {
			for _, x := range list {
				in = append(in, x)
				if twice {
					in = append(in, x)
				}
			}
			e.see(list)
		}
		chance := func(percent int, what string) bool { return rapid.IntRange(0, 99).Draw(t, what) < percent }
		pods := func() []types.UID { return slices.Sorted(maps.Keys(e.pods)) }
		nodes := func() []string { return slices.Sorted(maps.Keys(e.nodes)) }
		mutated := func(uid types.UID) step.Input {
			old := e.pods[uid]
			p := old.DeepCopy()
			testkit.Perturb(t, p)
			p.UID, p.Name, p.Namespace, p.Spec.NodeName = old.UID, old.Name, old.Namespace, old.Spec.NodeName
			return step.PodSet{Pod: p}
		}
		for _, news := range randomHistory(t) {
			in, twice = nil, chance(20, "twice")
			say(e.some(rapid.IntRange(0, 3).Draw(t, "answers"))...)
			say(news...)
			for _, uid := range pods() {
				if chance(10, "mutated") {
					say(mutated(uid))
				}
			}
			for _, name := range nodes() {
				if n := e.nodes[name]; chance(10, "flaps") {
					say(step.NodeGone{Name: name}, step.NodeSet{Node: n})
				}
			}
			if chance(10, "relist") {
				for _, uid := range rapid.Permutation(pods()).Draw(t, "order") {
					if chance(30, "changed") {
						say(mutated(uid))
					} else {
						say(step.PodSet{Pod: e.pods[uid].DeepCopy()})
					}
				}
				for _, name := range nodes() {
					say(step.NodeSet{Node: e.nodes[name].DeepCopy()})
				}
			}
			wait := []time.Duration{0, time.Millisecond, 500 * time.Millisecond, 3 * time.Hour, -time.Minute}[rapid.IntRange(0, 4).Draw(t, "wait")]
			e.step(wait, 20, in...)
		}
		e.settle()
		want, got := map[types.UID]string{}, map[types.UID]string{}
		for uid, p := range e.pods {
			over := p.Status.Phase == v1.PodSucceeded || p.Status.Phase == v1.PodFailed
			if e.nodes[p.Spec.NodeName] != nil && !over {
				want[uid] = p.Spec.NodeName
			}
		}
		e.c.State().Nodes(func(n *cluster.Node) {
			for _, p := range n.Pods {
				got[p.UID] = n.Name
			}
		})
		if !maps.Equal(got, want) {
			e.fatalf("the core has pods on %v, the API on %v", fmt.Sprint(got), fmt.Sprint(want))
		}
		e.sameCounts(want)
	})
}

// sameCounts compares what the core's state counts with a state that has been told nothing but
// how the API has the nodes and the pods on them: a state whose pods are at the right places,
// but as they were, counts with old labels and requests.
func (e *edge) sameCounts(placed map[types.UID]string) {
	state := e.c.State()
	fresh := cluster.New(state.Schema)
	for _, name := range slices.Sorted(maps.Keys(e.nodes)) {
		fresh.SetNode(fresh.Schema.ParseNode(e.nodes[name], ""))
	}
	for _, uid := range slices.Sorted(maps.Keys(placed)) {
		fresh.Place(fresh.Schema.ParsePod(e.pods[uid]), placed[uid])
	}
	resources := []cluster.ResourceID{cluster.CPU, cluster.Memory, cluster.EphemeralStorage, cluster.ResourceOf("example.com/gpu")}
	fresh.Nodes(func(want *cluster.Node) {
		n := state.NodeByName(want.Name)
		for _, r := range resources {
			if n.Requested.At(r) != want.Requested.At(r) || n.NonZero != want.NonZero {
				e.fatalf("on %s is requested %v, by the API %v", want.Name, n.Requested, want.Requested)
			}
		}
	})
	for _, f := range state.Facts() {
		want := fresh.CountAfresh(f.Spec())
		fresh.Nodes(func(n *cluster.Node) {
			if got, want := f.CountAt(state.NodeByName(n.Name).Index), want.CountAt(n.Index); got != want {
				e.fatalf("fact %q counts %d where %s is, by the API %d", f.Key(), got, n.Name, want)
			}
		})
		gotLow, gotDomains := f.Lowest()
		if low, domains := want.Lowest(); gotLow != low || gotDomains != domains {
			e.fatalf("the lowest count of fact %q is %d of %d domains, by the API %d of %d", f.Key(), gotLow, gotDomains, low, domains)
		}
	}
}
