package binding_test

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/framework"
	"github.com/berthproject/berth/core/lifecycle"
	"github.com/berthproject/berth/core/lifecycle/binding"
	"github.com/berthproject/berth/core/queue"
	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/internal/test/lifecycletest"
	"github.com/berthproject/berth/internal/test/testkit"
	"github.com/berthproject/berth/internal/test/testkit/script"
)

var errRefused = errors.New("refused")

// plugin is a Reserver, Permitter and PostBinder that does what pods' labels say:
// reserve=no refuses to reserve, permit=no refuses permission, permit=wait has the pod
// wait for 30 s.
type plugin struct {
	name     string
	reserved map[types.UID]string // what is kept, by pod: the node
	waiting  framework.WaitingPods
	log      []string
}

func (p *plugin) Name() string { return p.name }

func (p *plugin) Reserve(pod *cluster.Pod, n *cluster.Node) *framework.Reason {
	if pod.Object.Labels["reserve"] == "no" {
		return &framework.Reason{Plugin: p.name, Messages: []string{"nothing is left"}}
	}
	p.reserved[pod.UID] = n.Name
	return nil
}

func (p *plugin) Unreserve(pod *cluster.Pod, node string, _ framework.WaitingPods) {
	if p.reserved[pod.UID] != node {
		panic(fmt.Sprintf("%s lets go of %s on %s, and has reserved on %q", p.name, pod.UID, node, p.reserved[pod.UID]))
	}
	delete(p.reserved, pod.UID)
	p.log = append(p.log, fmt.Sprintf("let go of %s on %s", pod.UID, node))
}

func (p *plugin) Permit(pod *cluster.Pod, _ *cluster.Node, waiting framework.WaitingPods) framework.Permission {
	p.waiting = waiting
	switch pod.Object.Labels["permit"] {
	case "no":
		return framework.Permission{Reason: &framework.Reason{Plugin: p.name, Messages: []string{"not wanted"}}}
	case "wait":
		return framework.Permission{Wait: 30 * time.Second}
	}
	return framework.Permission{}
}

func (p *plugin) PostBind(pod *cluster.Pod, node string) {
	if p.reserved[pod.UID] != node {
		panic(fmt.Sprintf("%s is told that %s is bound to %s, and has reserved on %q", p.name, pod.UID, node, p.reserved[pod.UID]))
	}
	delete(p.reserved, pod.UID)
	p.log = append(p.log, fmt.Sprintf("is told that %s is bound to %s", pod.UID, node))
}

// foreign is a resource whose pods an extender binds.
const foreign = "example.com/foreign"

// world is a machine with two nodes and some pods.
type world struct {
	*lifecycletest.Bench
	m      *binding.Machine
	pods   lifecycletest.Pods[binding.Pod]
	plugin *plugin
	lost   []string // what others were told
	states script.States
}

func newWorld() *world {
	w := &world{pods: lifecycletest.Pods[binding.Pod]{}, plugin: &plugin{name: "gang", reserved: map[types.UID]string{}}}
	w.Bench = lifecycletest.NewBenchOf(func(p *framework.Profile) {
		p.Reservers, p.Permitters, p.PostBinders = append(p.Reservers, w.plugin), append(p.Permitters, w.plugin), append(p.PostBinders, w.plugin)
		p.Extenders = []framework.Extender{{Managed: []string{foreign}, Binds: true}}
	})
	w.m = binding.New(w.Scheduler, w.pods, w)
	for _, name := range []string{"n1", "n2"} {
		w.Node(testkit.Node(name).Alloc("cpu", "4", "memory", "8Gi").Obj())
	}
	return w
}

// SlowBindBegun implements binding.Others.
func (w *world) SlowBindBegun(_ *lifecycle.Turn, pod *cluster.Pod, node string) {
	w.lost = append(w.lost, fmt.Sprintf("expected: %s on %s", pod.UID, node))
}

// BeforeNodeLost implements binding.Others.
func (w *world) BeforeNodeLost(t *lifecycle.Turn, pod *cluster.Pod) {
	if t.State.PodOn(pod.UID) == nil {
		panic("a pod has left its node before others were told")
	}
}

// NodeLost implements binding.Others.
func (w *world) NodeLost(_ *lifecycle.Turn, item *queue.Item, reason, message string) {
	w.lost = append(w.lost, fmt.Sprintf("lost: %s: %s: %s", item.Pod().UID, reason, message))
}

// BindFailed implements binding.Others.
func (*world) BindFailed(*lifecycle.Turn, *queue.Item, string) {}

// PodBackedOff implements binding.Others.
func (w *world) PodBackedOff(t *lifecycle.Turn, pod *cluster.Pod) {
	if got := t.Queue.Get(pod.UID).Stage(); got != queue.Backoff {
		panic(fmt.Sprintf("a pod without its node is %s in the queue", got))
	}
}

// place has a decision place a pod; change changes the pod before.
func (w *world) place(name, node, reserve, permit string, change ...func(*testkit.PodBuilder)) {
	pod := testkit.Pod(name).Req("cpu", "1").Label("reserve", reserve).Label("permit", permit)
	for _, f := range change {
		f(pod)
	}
	item := w.Queued(pod.Obj())
	w.PopOnly(item)
	uid := item.Pod().UID
	if w.pods[uid] == nil {
		w.pods[uid] = &binding.Pod{}
	}
	w.State.Place(item.Pod(), node)
	w.m.PodPlaced(w.Turn, w.pods[uid], item, w.State.NodeByName(node))
}

// forget is what the core does with a pod that is gone or shown on a node.
func (w *world) forget(uid types.UID) {
	w.Queue.Remove(uid)
	delete(w.pods, uid)
}

func (w *world) shown(uid types.UID, node string) {
	if p := w.pods[uid]; p != nil && p.Node() == node {
		w.m.PodShown(w.Turn, p)
	} else if p != nil {
		w.m.Release(w.Turn, p)
	}
	w.forget(uid)
}

func (w *world) gone(uid types.UID) {
	w.State.Remove(uid)
	if p := w.pods[uid]; p != nil {
		w.m.Release(w.Turn, p)
	}
	w.m.PodGone(w.Turn, uid)
	w.forget(uid)
}

func (w *world) broken() []string { return append(w.m.Invariants(), w.m.InvariantsIn(w.State)...) }

// TestScripts runs testdata/scripts/*.txt. After each command it prints the work that it
// brings, what the plugin and others are told, and what it changed: the pods' states, and when
// the machine wants to be woken. The commands:
//
//	place POD node=n [reserve=no] [permit=no|wait] [by=extender|claim]
//	                           a decision has placed the pod; an extender binds it, or it has
//	                           a claim that isn't bound
//	allow POD | reject POD     the plugin says so of a pod that waits; Resolve
//	preempt POD | cancel POD   another takes the pod's place; Resolve
//	done POD | failed POD      the outcome of its bind
//	shown POD node=n           the API has the pod there
//	gone POD
//	node-gone NODE
//	tick DURATION              time passes; Advance
func TestScripts(t *testing.T) {
	datadriven.Walk(t, "testdata/scripts", func(t *testing.T, path string) {
		w := newWorld()
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string { return w.run(t, d) })
	})
}

func (w *world) run(t *testing.T, d *datadriven.TestData) string {
	args := script.NewArgs(t, d)
	name := args.Name()
	uid := types.UID("pod-" + name)
	w.plugin.log, w.lost = nil, nil
	switch d.Cmd {
	case "place":
		slow := func(*testkit.PodBuilder) {}
		switch args.OneOf("by", "", "extender", "claim") {
		case "extender":
			slow = func(p *testkit.PodBuilder) { p.Req(foreign, "1") }
		case "claim":
			slow = func(p *testkit.PodBuilder) { p.Uses(name) }
		}
		w.place(name, args.String("node", ""), args.String("reserve", ""), args.String("permit", ""), slow)
	case "allow":
		w.plugin.waiting.Get(uid).Allow("gang")
		w.m.Resolve(w.Turn)
	case "reject":
		w.plugin.waiting.Get(uid).Reject("gang", "another is missing")
		w.m.Resolve(w.Turn)
	case "preempt":
		w.m.Preempt(uid)
		w.m.Resolve(w.Turn)
	case "cancel":
		w.m.Cancel(w.Turn, uid)
	case "done":
		w.m.BindDone(w.Turn, step.BindDone{UID: uid})
	case "failed":
		w.m.BindDone(w.Turn, step.BindDone{UID: uid, Err: errRefused})
	case "shown":
		w.shown(uid, args.String("node", ""))
	case "gone":
		w.gone(uid)
	case "node-gone":
		w.State.RemoveNode(name)
	case "tick":
		if err := w.Pass(name); err != nil {
			d.Fatalf(t, "%v", err)
		}
		w.m.Advance(w.Turn)
	default:
		d.Fatalf(t, "unknown command %q", d.Cmd)
	}
	args.Done()
	r := w.Flush()
	out := lifecycletest.Text(&r)
	for _, line := range w.plugin.log {
		out += "the plugin " + line + "\n"
	}
	out += strings.Join(append(w.lost, ""), "\n")
	var states []string
	for uid, p := range w.pods.All() {
		states = append(states, strings.TrimSpace(fmt.Sprintf("%s: %s %s", uid, p.State(), p.Node())))
	}
	out += w.states.Text(states, w.Now, w.m.NextWake())
	for _, s := range w.broken() {
		out += "broken: " + s + "\n"
	}
	return cmp.Or(out, "nothing\n")
}

// TestPropertyOutcomesLeaveNothingBehind places pods and has all that can happen to them
// happen in any order. When each was shown, deleted or lost its node, no plugin keeps
// anything, nobody waits, and the state has the pods that are bound.
func TestPropertyOutcomesLeaveNothingBehind(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld()
		bound := map[types.UID]string{}
		for k := range rapid.IntRange(1, 40).Draw(t, "events") {
			var uid types.UID
			if known := slices.Sorted(maps.Keys(w.pods)); len(known) > 0 {
				uid = rapid.SampledFrom(known).Draw(t, "pod")
			}
			event := rapid.IntRange(0, 9).Draw(t, "event")
			switch {
			case event < 3 || uid == "":
				w.place(fmt.Sprint("p", k), rapid.SampledFrom([]string{"n1", "n2"}).Draw(t, "node"),
					rapid.SampledFrom([]string{"", "", "no"}).Draw(t, "reserve"), rapid.SampledFrom([]string{"", "wait", "wait", "no"}).Draw(t, "permit"))
			case event == 3:
				w.m.BindDone(w.Turn, step.BindDone{UID: uid})
			case event == 4 && w.pods[uid].State() == binding.Binding:
				w.m.BindDone(w.Turn, step.BindDone{UID: uid, Err: errRefused})
			case event == 5 && w.pods[uid].Node() != "":
				bound[uid] = w.pods[uid].Node()
				w.shown(uid, bound[uid])
			case event == 6:
				w.gone(uid)
			case event == 7 && w.pods[uid].State() == binding.Waiting:
				if rapid.Bool().Draw(t, "allows") {
					w.plugin.waiting.Get(uid).Allow("gang")
				} else {
					w.plugin.waiting.Get(uid).Reject("gang", "no")
				}
			case event == 8:
				w.m.Preempt(uid)
				w.m.Resolve(w.Turn)
			case event == 9:
				w.Now = w.Now.Add(10 * time.Second)
			}
			w.m.Advance(w.Turn)
			if broken := w.broken(); broken != nil {
				t.Fatalf("broken invariants: %q", broken)
			}
		}
		w.Now = w.Now.Add(time.Minute)
		w.m.Advance(w.Turn)
		for uid, p := range w.pods.All() {
			switch p.State() {
			case binding.Waiting:
				t.Errorf("%s waits for permission after its time", uid)
			case binding.Binding:
				w.m.BindDone(w.Turn, step.BindDone{UID: uid, Err: errRefused})
			case binding.Bound:
				bound[uid] = p.Node()
				w.shown(uid, p.Node())
			}
		}
		if len(w.plugin.reserved) > 0 {
			t.Errorf("the plugin keeps %v", w.plugin.reserved)
		}
		if left := append(w.m.Unsettled(), w.broken()...); left != nil {
			t.Errorf("left behind: %q", left)
		}
		got := map[types.UID]string{}
		w.State.Nodes(func(n *cluster.Node) {
			for _, p := range n.Pods {
				got[p.UID] = n.Name
			}
		})
		if !maps.Equal(got, bound) {
			t.Errorf("the state has pods %v, and bound are %v", got, bound)
		}
	})
}
