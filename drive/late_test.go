package drive_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
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
	"github.com/berthproject/berth/internal/test/testkit"
)

// This file is workers that are late. A call is served some time after it was handed out,
// and its outcome reported some time after that; the API shows changes later still; and
// all of that in any order. A call may fail, or be served and report a failure. What must
// hold: each callback is called exactly once, as drive.Workers owes it.

// late are workers over an API and a cloud in memory.
type late struct {
	t        *rapid.T
	driver   *drive.Driver
	now      time.Time
	failures int      // percent of the calls that fail, and as many that are served but report a failure
	pending  []func() // what is still to happen, in any order
	inputs   []step.Input
	// What the API and the cloud have.
	pods    map[types.UID]*v1.Pod
	nodes   map[string]*v1.Node
	groupOf map[string]string // by node
	groups  []nodegroup.Group
	wishes  map[wish]cluster.Object

	cancels map[types.UID]bool
	// nominating has the pods of which a nomination is being written, with what writes
	// the latest that came since, nil for none.
	nominating map[types.UID]func()

	serial int    // of the last name
	log    string // inputs and decisions, for a person to read when the property fails
}

func newLate(t *rapid.T) *late {
	w := &late{t: t, now: time.Unix(1000, 0), pods: map[types.UID]*v1.Pod{}, nodes: map[string]*v1.Node{}, groupOf: map[string]string{}, cancels: map[types.UID]bool{}, nominating: map[types.UID]func(){}, wishes: map[wish]cluster.Object{}}
	for i, cpu := range []string{"2", "6"} {
		w.groups = append(w.groups, nodegroup.Group{ID: fmt.Sprint("g", i), Max: rapid.IntRange(0, 4).Draw(t, "max"),
			Template: testkit.Node("t").Alloc("cpu", cpu, "memory", "32Gi", "pods", "12").Obj()})
	}
	w.driver = newDriver(t, drive.Config{
		Core: autoscaling(func(a *core.Autoscale) {
			a.UnneededTime, a.DelayAfterAdd, a.EvictDaemonPods, a.MaxProvisionTime = 20*time.Second, time.Second, true, time.Minute
			// Only outcomes end evictions: the limit lies behind the end of the history.
			a.MaxPodEvictionTime = 1000 * time.Hour
		}),
		Workers: w, Inbox: w.put, Hooks: []drive.Hook{drive.HookFunc(w.watch)},
	})
	return w
}

func (w *late) put(in step.Input) { w.inputs = append(w.inputs, in) }

// watch writes the log.
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

// later has something happen at a later time, which happen chooses.
func (w *late) later(happens func()) { w.pending = append(w.pending, happens) }

// happen has n of the pending things happen, drawn at random.
func (w *late) happen(n int) {
	for range min(n, len(w.pending)) {
		i := rapid.IntRange(0, len(w.pending)-1).Draw(w.t, "happens")
		next := w.pending[i]
		w.pending = slices.Delete(w.pending, i, i+1)
		next()
	}
}

// call serves a call later, and reports its outcome later still.
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

// addNode creates a node, of a group or of none.
func (w *late) addNode(n *v1.Node, group string) {
	w.nodes[n.Name], w.groupOf[n.Name] = n, group
	w.showNode(n.Name)
}

// removePod deletes a pod, whether it exists or not.
func (w *late) removePod(uid types.UID) {
	delete(w.pods, uid)
	w.showPod(uid)
}

// removeNode removes a node with its instance, and the pods on it.
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

// group returns a node group, nil if there is none of that ID.
func (w *late) group(id string) *nodegroup.Group {
	i := slices.IndexFunc(w.groups, func(g nodegroup.Group) bool { return g.ID == id })
	if i < 0 {
		return nil
	}
	return &w.groups[i]
}

func (w *late) Consult(x step.Consult, _ func(step.Consulted)) {
	w.t.Fatalf("extenders are to be asked about pod %s, and there are none", x.UID)
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

func (w *late) Deallocate(_ step.Deallocation, done func(error)) {
	w.call("deallocate", func() error { return errors.New("not found") }, done)
}

func (w *late) Preempt(x step.Preemption, done func(error)) {
	w.call("preempt", func() error { w.removePod(x.UID); return nil }, done)
}

// Nominate keeps the order of a pod's nominations: one is written at a time, and of those
// that wait only the latest, as drive.Workers allows.
func (w *late) Nominate(x step.Nomination, done func(error)) {
	begin := func() {
		w.nominating[x.UID] = nil
		w.call("nominate", func() error { return w.nominate(x) }, func(err error) {
			done(err)
			next := w.nominating[x.UID]
			delete(w.nominating, x.UID)
			if next != nil {
				next()
			}
		})
	}
	if _, busy := w.nominating[x.UID]; busy {
		w.nominating[x.UID] = begin
		return
	}
	begin()
}

func (w *late) nominate(x step.Nomination) error {
	p := w.pods[x.UID]
	if p == nil {
		return errors.New("not found")
	}
	p.Status.NominatedNodeName = x.Node
	w.showPod(x.UID)
	return nil
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
		x.Apply(n)
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
				if rapid.Bool().Draw(w.t, "daemon") { // is evicted before the node is deleted
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

// Surge fails: there are no Deployments, and --surge isn't given.
func (w *late) Surge(step.Surge, func(error)) { w.t.Fatal("a surge, without --surge") }

// DecreaseTarget does nothing: every node that was ordered comes in the end.
func (w *late) DecreaseTarget(step.TargetDecrease) {}

func (w *late) Plan(compute func() *autoscaler.Plan, done func(*autoscaler.Plan)) {
	w.later(func() { done(compute()) })
}

// step lets time pass, has some of the pending things happen, and takes a Step with the
// inputs that came of them. The groups are read after that, so they are never older than
// the outcome of the last scale-up. The core's invariants must hold after the Step.
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

// rest has everything that is pending happen without failures, and lets time pass until
// the core can be at rest: longer than any of its timers but MaxPodEvictionTime.
func (w *late) rest() {
	w.failures = 0
	for i := 0; i < 60 || len(w.pending) > 1; i++ { // one may be the next plan
		w.step(11*time.Second, len(w.pending))
	}
	w.endRequests() // or they would be tried, and booked, for a week
	for range 3 {
		w.step(6*time.Minute, len(w.pending))
	}
	for range 30 { // what the last steps began comes to its end
		w.step(11*time.Second, len(w.pending))
	}
}

// podsOnNodes returns each bound pod's node as the API has it, and each placed pod's node
// as the core has it.
func (w *late) podsOnNodes() (api, state map[types.UID]string) {
	api, state = map[types.UID]string{}, map[types.UID]string{}
	for uid, p := range w.pods {
		if p.Spec.NodeName != "" {
			api[uid] = p.Spec.NodeName
		}
	}
	w.driver.Core().State().Nodes(func(n *cluster.Node) {
		for _, p := range n.Pods {
			state[p.UID] = n.Name
		}
	})
	return api, state
}

// nominations returns the nominations of the pods without a node, as the API and as the
// core has them.
func (w *late) nominations() (api, state map[types.UID]string) {
	api, state = map[types.UID]string{}, map[types.UID]string{}
	for uid, p := range w.pods {
		if p.Spec.NodeName == "" {
			api[uid], state[uid] = p.Status.NominatedNodeName, w.driver.Core().State().NominatedTo(uid)
		}
	}
	return api, state
}
