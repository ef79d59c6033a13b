package nodedeletion_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/autoscaler/nodegroup"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/lifecycle"
	"github.com/berthproject/berth/core/lifecycle/candidates"
	"github.com/berthproject/berth/core/lifecycle/draining"
	"github.com/berthproject/berth/core/lifecycle/nodedeletion"
	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/internal/test/lifecycletest"
	"github.com/berthproject/berth/internal/test/testkit"
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
	atomic    bool                // the group goes as a whole
	batch     time.Duration       // for which deletions are gathered
	news      map[string][]*v1.Node
	calls     []func(luck luck)
	answers   []func()
	pods      map[types.UID]*onNode // as the API has them; what it shows of pods isn't late
	made      int                   // pods so far
	lost      map[string]bool       // nodes that pods have left for this process's removal of them, since it began
	joined    map[string]int        // how often a node of a name has joined
	recalls   *int                  // how many there were in all histories
	members   bool                  // some pods are members of a group that get successors together
	surged    int                   // of them, whose Deployments were asked
	taken     map[string]bool       // nodes that the cloud is about to take, of those on their way out; nil for never
	history   []string
}

// onNode is a pod on a node.
type onNode struct {
	*v1.Pod
	daemon bool
}

// nodes is how many names of nodes there are.
const nodes = 5

// What tells nodes apart that were so before Berth came to them.
const (
	foreignTaint = "somebody else's" // value of the taint
	cordonLabel  = "cordoned"
)

func newAround(t *rapid.T) *around {
	w := &around{t: t,
		groups: &fakeGroups{delayed: map[string]bool{}, instances: map[string]fakeInstance{}},
		turn:   &lifecycle.Turn{Now: time.Unix(1000, 0), State: cluster.New(cluster.NewSchema()), Ready: &step.Ready{}},
		api:    map[string]*v1.Node{}, instances: map[string]bool{}, news: map[string][]*v1.Node{}, pods: map[types.UID]*onNode{}, lost: map[string]bool{}, joined: map[string]int{}, recalls: new(int),
		lists: rapid.Bool().Draw(t, "the provider lists instances"), atomic: rapid.Bool().Draw(t, "the group is atomic"),
		batch: time.Duration(rapid.IntRange(0, 1).Draw(t, "batch")) * 10 * time.Second,
	}
	w.begin()
	return w
}

// begin begins a process that knows of nothing.
func (w *around) begin() {
	w.machine = nodedeletion.New(nodedeletion.Config{MaxDeletions: 3, MaxDrains: 2, DeletionBatchInterval: w.batch, DeletionDelayTimeout: time.Minute,
		DeleteDelayAfterTaint: 5 * time.Second, EvictDaemonPods: true, Drain: draining.Config{MaxEviction: time.Minute, MaxGrace: 20 * time.Second, Surge: true,
			Tiers: []autoscaler.DrainTier{{Priority: 0, Grace: 20 * time.Second}, {Priority: 10, Grace: 20 * time.Second}}}})
	w.unneeded = candidates.New(candidates.Config{UnneededTime: 20 * time.Second, UnreadyTime: 20 * time.Second})
	w.machine.Connect(w.groups, w.unneeded, newFakeHomes(), lifecycletest.Uninterrupted{})
}

// crash ends the process; another begins, and is shown what there is. Calls that are under
// way are carried out or not, and answered to nobody.
func (w *around) crash() {
	w.note("a crash")
	calls := w.calls
	w.calls = nil
	for _, call := range calls {
		call([]luck{answerLost, fails}[testkit.Uniform(w.t, 2, "luck")])
	}
	w.answers, w.news, w.groups.known = nil, map[string][]*v1.Node{}, false
	w.groups.instances = map[string]fakeInstance{}
	clear(w.lost)
	clear(w.taken)
	w.turn.State, w.turn.Ready = cluster.New(cluster.NewSchema()), &step.Ready{}
	w.begin()
	for _, name := range slices.Sorted(maps.Keys(w.api)) {
		w.change(name, w.api[name])
		w.tell(name)
	}
	for _, uid := range slices.Sorted(maps.Keys(w.pods)) {
		w.show(w.pods[uid])
	}
}

// show shows a pod as the API has it.
func (w *around) show(p *onNode) {
	if p.Spec.SchedulingGroup != nil {
		w.showGroup(p)
	}
	w.turn.State.Place(w.turn.State.Schema.ParsePod(p.Pod), p.Spec.NodeName)
	w.machine.PodChanged(w.turn, p.Spec.NodeName)
}

// end takes a pod out of the API.
func (w *around) end(p *onNode) {
	w.note("pod %s is gone", p.Name)
	delete(w.pods, p.UID)
	w.turn.State.Remove(p.UID)
	w.machine.PodChanged(w.turn, p.Spec.NodeName)
}

// podsOn returns the pods on a node of which f is true, by UID.
func (w *around) podsOn(node string, f func(*onNode) bool) (out []*onNode) {
	for _, uid := range slices.Sorted(maps.Keys(w.pods)) {
		if p := w.pods[uid]; p.Spec.NodeName == node && f(p) {
			out = append(out, p)
		}
	}
	return out
}

// longTerminating reports whether a pod has been terminating for so long that it keeps no node.
func (w *around) longTerminating(p *onNode) bool {
	return p.DeletionTimestamp != nil && w.turn.Now.Sub(p.DeletionTimestamp.Time) >= 30*time.Second
}

func anyPod(*onNode) bool { return true }

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
		w.machine.NodeGone(w.turn, name)
		for _, p := range w.podsOn(name, anyPod) {
			w.end(p)
		}
		return
	}
	w.note("node %s is shown with taints %v", name, next.Spec.Taints)
	if info := w.machine.NodeSet(w.turn, w.turn.State.Schema.ParseNode(next, "g")); info != nil {
		w.turn.State.SetNode(info)
	}
}

// join adds a node. The first was made unschedulable and the second tainted before Berth came
// to them.
func (w *around) join(name string) {
	n := testkit.Node(name).Obj()
	n.Spec.ProviderID = name
	switch name {
	case "n0":
		n.Spec.Unschedulable = true
		n.Labels[cordonLabel] = ""
	case "n1":
		n.Spec.Taints = []v1.Taint{{Key: autoscaler.ToBeDeletedTaint, Value: foreignTaint, Effect: v1.TaintEffectNoSchedule}}
	}
	w.instances[name] = true
	w.joined[name]++
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
	w.turn.State.SetGroup("g", &cluster.NodeGroup{ID: "g", Max: 20, Target: g.Target - w.machine.Unanswered("g"), Options: &cluster.GroupOptions{ZeroOrMax: w.atomic}})
}

// plan has all nodes removed, with homes for the pods that are on them.
func (w *around) plan() {
	p := &autoscaler.Plan{Now: w.turn.Now}
	w.turn.State.Nodes(func(n *cluster.Node) {
		r := &autoscaler.Removal{Node: n.Name}
		for _, p := range w.podsOn(n.Name, func(p *onNode) bool { return !p.daemon && p.DeletionTimestamp == nil }) {
			r.Homes = append(r.Homes, autoscaler.Home{Pod: p.UID})
		}
		p.Removals = append(p.Removals, r)
	})
	w.together(p)
	w.note("a plan has %d nodes removed", len(p.Removals))
	w.machine.Begin(w.turn, w.unneeded.CommitPlan(w.turn, p))
}

// evict has a pod terminate.
func (w *around) evict(uid types.UID) {
	if p := w.pods[uid]; p != nil && p.DeletionTimestamp == nil {
		p.Pod = p.DeepCopy()
		p.DeletionTimestamp = &metav1.Time{Time: w.turn.Now.Add(30 * time.Second)}
		w.show(p)
	}
}

// lose has a pod terminate for the removal of its node.
func (w *around) lose(node string, uid types.UID) {
	if p := w.pods[uid]; p != nil && p.DeletionTimestamp == nil && !p.daemon && p.Spec.NodeName == node {
		w.lost[node] = true
	}
	w.evict(uid)
}

// recall has a node stay, as a plan may.
func (w *around) recall(name string) {
	w.machine.Recall(w.turn, []autoscaler.Recall{{Node: name}}, func(*autoscaler.Recall) string {
		*w.recalls++
		w.note("node %s is recalled", name)
		if w.lost[name] {
			w.fatalf("node %s is recalled, which pods have left", name)
		}
		return "it is needed"
	})
	for _, n := range w.machine.Recallable(w.turn.State) {
		if n.Node == name {
			w.fatalf("node %s could still be recalled", name)
		}
		w.checkClean(n.Stays().Object, "a plan")
	}
}

// control has the node controller's taint be on a node that is unschedulable, and on no other.
func (w *around) control(name string) {
	n := w.api[name]
	if n == nil || n.Spec.Unschedulable == slices.ContainsFunc(n.Spec.Taints, isControllers) {
		return
	}
	w.note("the node controller sees that %s is unschedulable: %t", name, n.Spec.Unschedulable)
	n = n.DeepCopy()
	if n.Spec.Unschedulable {
		n.Spec.Taints = append(n.Spec.Taints, v1.Taint{Key: v1.TaintNodeUnschedulable, Effect: v1.TaintEffectNoSchedule})
	} else {
		n.Spec.Taints = slices.DeleteFunc(n.Spec.Taints, isControllers)
	}
	w.change(name, n)
}

func isControllers(t v1.Taint) bool { return t.Key == v1.TaintNodeUnschedulable }

// taint writes a taint with what goes with it.
func (w *around) taint(x step.Taint) {
	n := w.api[x.Node].DeepCopy()
	x.Apply(n)
	w.change(x.Node, n)
}

func isForeign(n *v1.Node) bool {
	return len(n.Spec.Taints) > 0 && n.Spec.Taints[0].Value == foreignTaint
}

// something happens.
func (w *around) something() {
	t := w.t
	name := fmt.Sprint("n", testkit.Uniform(t, nodes, "node"))
	switch testkit.Uniform(t, 16, "what") {
	case 0, 1:
		w.oneCall(luck(testkit.Uniform(t, 7, "luck")))
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
		if n := w.turn.State.NodeByName(name); n != nil {
			pod := fmt.Sprint("p", w.made+1)
			if w.members && testkit.Uniform(t, 2, "of a group") == 0 {
				w.comes(name, w.member(pod, name), false)
				break
			}
			switch testkit.Uniform(t, 6, "of") {
			case 0, 1:
				w.comes(name, testkit.Pod(pod).On(name).Owner("apps/v1", "DaemonSet", "agent").Obj(), true)
			case 2:
				w.comes(name, testkit.Pod(pod).On(name).Owner("apps/v1", "ReplicaSet", pod+"-1").Label("pod-template-hash", "1").Annotate(cluster.SurgeAnnotation, "true").Obj(), false)
			default:
				w.comes(name, testkit.Pod(pod).On(name).Obj(), false)
			}
		}
	case 14:
		if could := w.machine.Recallable(w.turn.State); len(could) > 0 {
			w.recall(could[testkit.Uniform(t, len(could), "recalled")].Node)
		} else {
			w.recall(name)
		}
	case 15:
		w.control(name)
		if w.taken != nil && testkit.Uniform(t, 4, "interrupted") == 0 {
			w.interrupt(name)
		}
	case 8, 11:
		for _, p := range w.podsOn(name, func(p *onNode) bool { return p.DeletionTimestamp != nil || testkit.Uniform(t, 4, "fate") == 0 }) {
			w.end(p)
		}
	case 12:
		if testkit.Uniform(t, 4, "fate") == 0 {
			w.crash()
		}
	default:
		w.wait(time.Duration(testkit.Uniform(t, 60, "seconds")) * time.Second)
	}
	w.take()
}

// comes has a pod come to a node.
func (w *around) comes(node string, pod *v1.Pod, daemon bool) {
	w.made++
	w.note("pod %s comes to %s", pod.Name, node)
	p := &onNode{Pod: pod, daemon: daemon}
	w.pods[p.UID] = p
	w.show(p)
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
			calls := w.calls
			w.calls = nil
			for _, call := range calls {
				call(succeeds)
			}
			for _, answer := range w.answers {
				answer()
			}
			w.answers = nil
			w.take()
			for _, uid := range slices.Sorted(maps.Keys(w.pods)) {
				if p := w.pods[uid]; p.DeletionTimestamp != nil {
					w.end(p)
				}
			}
		}
		for _, name := range slices.Sorted(maps.Keys(w.api)) {
			w.change(name, w.api[name]) // a heartbeat
			w.control(name)
		}
		w.list()
		w.take()
		w.wait(2 * time.Minute)
		w.take()
	}
}
