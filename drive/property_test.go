package drive_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/berthproject/berth/core"
	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/autoscaler/nodegroup"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/drive"
	"github.com/berthproject/berth/internal/testkit"
)

// late are workers over a small API and cloud in memory. Work is done some time
// after it was asked for and its outcome reported some time after that, in any
// order. It may fail, or be done with its answer lost.
type late struct {
	t        *rapid.T
	driver   *drive.Driver
	now      time.Time
	failures int      // so many pieces of work in a hundred fail, and as many lose their answer
	owed     []func() // what is still to happen, in any order
	inputs   []step.Input
	pods     map[types.UID]*v1.Pod
	nodes    map[string]*v1.Node
	groupOf  map[string]string // by node
	groups   []nodegroup.Group
	cancels  map[types.UID]bool
	serial   int
	log      string
}

func newLate(t *rapid.T) *late {
	w := &late{t: t, now: time.Unix(1000, 0), pods: map[types.UID]*v1.Pod{}, nodes: map[string]*v1.Node{}, groupOf: map[string]string{}, cancels: map[types.UID]bool{}}
	for i, cpu := range []string{"2", "6"} {
		w.groups = append(w.groups, nodegroup.Group{ID: fmt.Sprint("g", i), Max: rapid.IntRange(0, 4).Draw(t, "max"),
			Template: testkit.Node("t").Alloc("cpu", cpu, "memory", "32Gi", "pods", "12").Obj()})
	}
	w.driver = newDriver(t, drive.Config{
		Core: autoscaling(func(a *core.Autoscale) {
			a.UnneededTime, a.DelayAfterAdd, a.EvictDaemonPods, a.MaxProvisionTime = 20*time.Second, time.Second, true, time.Minute
		}),
		Workers: w, Inbox: w.put, Hooks: []drive.Hook{drive.HookFunc(w.watch)},
	})
	return w
}

func (w *late) put(in step.Input) { w.inputs = append(w.inputs, in) }

// watch keeps the history, for a person to read when the property fails.
func (w *late) watch(now time.Time, _ time.Duration, in []step.Input, r *step.Ready) {
	for _, x := range in {
		switch x := x.(type) {
		case step.PodSet:
			w.log += fmt.Sprintf("%d pod %s on %q nominated %q\n", now.Unix(), x.Pod.Name, x.Pod.Spec.NodeName, x.Pod.Status.NominatedNodeName)
		case step.NodeSet:
			w.log += fmt.Sprintf("%d node %s taints %v\n", now.Unix(), x.Node.Name, x.Node.Spec.Taints)
		case step.GroupsSet, step.PlanMade:
		default:
			w.log += fmt.Sprintf("%d %T%+v\n", now.Unix(), x, x)
		}
	}
	for i := range r.Decisions {
		w.log += fmt.Sprintf("%d → %s\n", now.Unix(), r.Decisions[i].String())
	}
}

// later has something happen some time.
func (w *late) later(happens func()) { w.owed = append(w.owed, happens) }

// happen has some of what is owed happen, any of it.
func (w *late) happen(n int) {
	for range min(n, len(w.owed)) {
		i := rapid.IntRange(0, len(w.owed)-1).Draw(w.t, "happens")
		next := w.owed[i]
		w.owed = slices.Delete(w.owed, i, i+1)
		next()
	}
}

// call does a piece of work later, and reports its outcome later still.
func (w *late) call(what string, serve func() error, done func(error)) {
	w.later(func() {
		var err error
		switch luck := rapid.IntRange(0, 99).Draw(w.t, what); {
		case luck < w.failures:
			err = errors.New("refused")
		case luck < 2*w.failures:
			_ = serve()
			err = errors.New("the answer was lost")
		default:
			err = serve()
		}
		w.later(func() { done(err) })
	})
}

// showPod has the API show a pod later, as it is then.
func (w *late) showPod(uid types.UID) {
	w.later(func() {
		if p := w.pods[uid]; p != nil {
			w.put(step.PodSet{Pod: p.DeepCopy()})
		} else {
			w.put(step.PodGone{UID: uid})
		}
	})
}

// showNode has the API show a node later, as it is then.
func (w *late) showNode(name string) {
	w.later(func() {
		if n := w.nodes[name]; n != nil {
			w.put(step.NodeSet{Node: n.DeepCopy(), Group: w.groupOf[name]})
		} else {
			w.put(step.NodeGone{Name: name})
		}
	})
}

func (w *late) addNode(n *v1.Node, group string) {
	w.nodes[n.Name], w.groupOf[n.Name] = n, group
	w.showNode(n.Name)
}

func (w *late) removePod(uid types.UID) {
	delete(w.pods, uid)
	w.showPod(uid)
}

// removeNode removes a node, and what is on it.
func (w *late) removeNode(name string) {
	if w.nodes[name] == nil {
		return
	}
	if g := w.group(w.groupOf[name]); g != nil {
		g.Target--
	}
	delete(w.nodes, name)
	w.showNode(name)
	for _, uid := range slices.Sorted(maps.Keys(w.pods)) {
		if w.pods[uid].Spec.NodeName == name {
			w.removePod(uid)
		}
	}
}

func (w *late) group(id string) *nodegroup.Group {
	i := slices.IndexFunc(w.groups, func(g nodegroup.Group) bool { return g.ID == id })
	if i < 0 {
		return nil
	}
	return &w.groups[i]
}

func (w *late) Consult(x step.Consult, _ func(step.Consulted)) {
	w.t.Fatalf("pod %s is to be put to extenders, and there are none", x.UID)
}

func (w *late) Bind(x step.Bind, done func(error)) {
	delete(w.cancels, x.UID)
	w.later(func() {
		if w.cancels[x.UID] {
			done(errors.New("taken back"))
			return
		}
		w.call("bind", func() error {
			p := w.pods[x.UID]
			if p == nil || w.nodes[x.Node] == nil {
				return errors.New("not found")
			}
			p.Spec.NodeName = x.Node
			w.showPod(x.UID)
			return nil
		}, done)
	})
}

func (w *late) Cancel(x step.Cancel) { w.cancels[x.UID] = true }

func (w *late) Preempt(x step.Preemption, done func(error)) {
	w.call("preempt", func() error { w.removePod(x.UID); return nil }, done)
}

func (w *late) Nominate(x step.Nomination, done func(error)) {
	w.call("nominate", func() error {
		p := w.pods[x.UID]
		if p == nil {
			return errors.New("not found")
		}
		p.Status.NominatedNodeName = x.Node
		w.showPod(x.UID)
		return nil
	}, done)
}

func (w *late) Condition(step.Condition) {}
func (w *late) Event(step.Event)         {}

func (w *late) Taint(x step.Taint, done func(error)) {
	w.call("taint", func() error {
		n := w.nodes[x.Node]
		if n == nil {
			if x.Remove {
				return nil
			}
			return errors.New("not found")
		}
		n.Spec.Taints = slices.DeleteFunc(n.Spec.Taints, func(t v1.Taint) bool { return t.Key == x.Taint.Key })
		if !x.Remove {
			n.Spec.Taints = append(n.Spec.Taints, x.Taint)
		}
		w.showNode(x.Node)
		return nil
	}, done)
}

func (w *late) Evict(x step.Eviction, done func(error)) {
	w.call("evict", func() error { w.removePod(x.UID); return nil }, done)
}

func (w *late) ScaleUp(x step.ScaleUp, done func(error)) {
	w.call("scale up", func() error {
		g := w.group(x.Group)
		g.Target += x.Nodes
		for range x.Nodes {
			w.later(func() {
				w.serial++
				n := g.Template.DeepCopy()
				n.Name = fmt.Sprint(g.ID, "-", w.serial)
				n.Labels[v1.LabelHostname] = n.Name
				n.CreationTimestamp.Time = w.now
				w.addNode(n, g.ID)
				if rapid.Bool().Draw(w.t, "daemon") { // has to be evicted before the node goes
					p := testkit.Pod("agent-"+n.Name).Req("cpu", "100m").Owner("apps/v1", "DaemonSet", "agent").On(n.Name).Obj()
					w.pods[p.UID] = p
					w.showPod(p.UID)
				}
			})
		}
		return nil
	}, done)
}

func (w *late) DeleteNodes(list []step.NodeDeletion, done func(step.NodeDeletion, error)) {
	for _, x := range list {
		w.call("delete", func() error { w.removeNode(x.Node); return nil }, func(err error) { done(x, err) })
	}
}

// DecreaseTarget refuses: every node that was ordered comes in the end.
func (w *late) DecreaseTarget(step.TargetDecrease) {}

func (w *late) Plan(compute func() *autoscaler.Plan, done func(*autoscaler.Plan)) {
	w.later(func() { done(compute()) })
}

// step lets time pass, some of what is owed happen, and the core know of it. The
// groups are read when everything else has happened: they are never older than the
// last scale-up's outcome.
func (w *late) step(wait time.Duration, happens int) {
	w.now = w.now.Add(wait)
	w.happen(happens)
	in := append(w.inputs, step.GroupsSet{Groups: slices.Clone(w.groups)})
	w.inputs = nil
	if _, err := w.driver.Step(w.now, in...); err != nil {
		w.t.Fatal(err)
	}
	for _, broken := range w.driver.Core().Invariants() {
		w.t.Fatalf("broken invariant: %s; history:\n%s", broken, w.log)
	}
}

// TestPropertyOutcomesLateAndInAnyOrderLeaveNothingUnsettled drives random worlds,
// in which pods and nodes come and go while work is under way. When all is answered
// and time has passed, the core waits for nothing, and has each pod where the API
// has it.
func TestPropertyOutcomesLateAndInAnyOrderLeaveNothingUnsettled(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newLate(t)
		w.failures = 15
		for range rapid.IntRange(5, 40).Draw(t, "steps") {
			switch rapid.IntRange(0, 9).Draw(t, "what") {
			case 0:
				w.serial++
				w.addNode(testkit.Node(fmt.Sprint("n", w.serial)).Alloc("cpu", "4", "memory", "16Gi", "pods", "12").Obj(), "")
			case 1:
				if names := slices.Sorted(maps.Keys(w.nodes)); len(names) > 0 {
					w.removeNode(rapid.SampledFrom(names).Draw(t, "node"))
				}
			case 2, 3:
				if uids := slices.Sorted(maps.Keys(w.pods)); len(uids) > 0 {
					w.removePod(rapid.SampledFrom(uids).Draw(t, "pod"))
				}
			case 4, 5, 6, 7:
				w.serial++
				p := testkit.Pod(fmt.Sprint("p", w.serial)).Req("cpu", rapid.SampledFrom([]string{"500m", "1500m", "3", "5"}).Draw(t, "cpu"), "memory", "1Gi").
					Priority(rapid.Int32Range(0, 2).Draw(t, "priority")).Obj()
				w.pods[p.UID] = p
				w.showPod(p.UID)
			}
			wait := rapid.SampledFrom([]time.Duration{0, time.Second, 10 * time.Second, time.Minute}).Draw(t, "wait")
			w.step(wait, rapid.IntRange(0, 6).Draw(t, "happens"))
		}
		w.failures = 0
		for i := 0; i < 60 || len(w.owed) > 1; i++ { // one may be the next plan
			w.step(11*time.Second, len(w.owed))
		}
		for range 3 {
			w.step(6*time.Minute, len(w.owed))
		}
		for _, problem := range w.driver.Core().Unsettled() {
			t.Errorf("unsettled: %s", problem)
		}
		want, got := map[types.UID]string{}, map[types.UID]string{}
		for uid, p := range w.pods {
			if p.Spec.NodeName != "" {
				want[uid] = p.Spec.NodeName
			}
		}
		w.driver.Core().State().Nodes(func(n *cluster.Node) {
			for _, p := range n.Pods {
				got[p.UID] = n.Name
			}
		})
		if !maps.Equal(got, want) {
			t.Errorf("the core has pods on %v, the API on %v", got, want)
		}
		if t.Failed() {
			t.Fatalf("history:\n%s", w.log)
		}
	})
}
