package scheduler_test

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/engine"
	"github.com/berthproject/berth/core/framework"
	"github.com/berthproject/berth/core/plugins"
	"github.com/berthproject/berth/core/scheduler"
	"github.com/berthproject/berth/internal/test/testkit"
)

// world is a cluster with a scheduler. Its rejections are what the queue would know.
type world struct {
	t *testing.T
	*cluster.State
	*scheduler.Scheduler
	rejections map[*engine.Class]*engine.Diagnosis
}

// StillRejected implements scheduler.Rejections.
func (w *world) StillRejected(c *engine.Class) *engine.Diagnosis { return w.rejections[c] }

// newWorld returns a cluster of these nodes and placed pods under the default profile.
// Nodes and pods are written in the order in which they are.
func newWorld(t *testing.T, nodes []*testkit.NodeBuilder, placed ...*testkit.PodBuilder) *world {
	t.Helper()
	return newWorldWith(t, func(*framework.Profile) {}, nodes, placed...)
}

// newWorldWith is newWorld with a profile that is changed before.
func newWorldWith(t *testing.T, change func(*framework.Profile), nodes []*testkit.NodeBuilder, placed ...*testkit.PodBuilder) *world {
	t.Helper()
	schema := cluster.NewSchema()
	profile := plugins.Default(schema, plugins.Options{})
	change(profile)
	w := &world{t: t, State: cluster.New(schema), rejections: map[*engine.Class]*engine.Diagnosis{}}
	w.Scheduler = testkit.Must(scheduler.New(w.State, []*framework.Profile{profile}, engine.Options{Seed: 1}))
	for _, n := range nodes {
		w.node(n)
	}
	for _, p := range placed {
		w.place(p)
	}
	return w
}

// decide decides on a pod as it is signed now.
func (w *world) decide(p *cluster.Pod) scheduler.Decision { return w.Decide(p, nil, w) }

func (w *world) node(b *testkit.NodeBuilder) { w.SetNode(w.Schema.ParseNode(b.Obj(), "")) }

func (w *world) place(b *testkit.PodBuilder) { w.Place(w.pod(b), b.Spec.NodeName) }

func (w *world) pod(b *testkit.PodBuilder) *cluster.Pod { return w.Schema.ParsePod(b.Obj()) }

// nominate nominates a pod, and returns it.
func (w *world) nominate(b *testkit.PodBuilder, node string) *cluster.Pod {
	p := w.pod(b)
	w.Nominate(p, node)
	return p
}

// expect checks where a decision leaves a pod: on a node, or nominated to one.
func (w *world) expect(p *cluster.Pod, d scheduler.Decision, node, nominated string) {
	w.t.Helper()
	got := ""
	if n := w.NodeOf(p.UID); n != nil {
		got = n.Name
	}
	if got != node || (d.Node != nil) != (node != "") || d.Node != nil && d.Node.Name != node {
		w.t.Errorf("the pod is on %q and the decision says %v, want %q", got, d.Node, node)
	}
	if got := w.NominatedTo(p.UID); got != nominated {
		w.t.Errorf("the pod is nominated to %q, want %q", got, nominated)
	}
	if d.Class != w.Class(p) {
		w.t.Errorf("the decision is for class %d, want the pod's, %d", d.Class.ID, w.Class(p).ID)
	}
}

// four is a node of 4 CPUs.
func four(name string) *testkit.NodeBuilder {
	return testkit.Node(name).Alloc("cpu", "4", "memory", "4Gi")
}

func fours(names ...string) (out []*testkit.NodeBuilder) {
	for _, name := range names {
		out = append(out, four(name))
	}
	return out
}

// running is a pod on a node.
func running(name, cpu string, priority int32, node string) *testkit.PodBuilder {
	return testkit.Pod(name).Req("cpu", cpu).Priority(priority).On(node)
}

// terminating is a running pod that was preempted, and has yet to go.
func terminating(name, cpu string, priority int32, node string) *testkit.PodBuilder {
	return deleted(running(name, cpu, priority, node), v1.ConditionTrue, v1.PodReasonPreemptionByScheduler)
}

// deleted has a pod be deleted, for a reason unless that is "".
func deleted(b *testkit.PodBuilder, status v1.ConditionStatus, reason string) *testkit.PodBuilder {
	b.DeletionTimestamp = &metav1.Time{}
	b.Status.Conditions = []v1.PodCondition{{Type: v1.PodScheduled, Status: v1.ConditionTrue, Reason: v1.PodReasonPreemptionByScheduler}}
	if reason != "" {
		b.Status.Conditions = append(b.Status.Conditions, v1.PodCondition{Type: v1.DisruptionTarget, Status: status, Reason: reason})
	}
	return b
}

func victims(d scheduler.Decision) (out []types.UID) {
	if d.Victims != nil {
		for _, p := range d.Victims.Pods {
			out = append(out, p.UID)
		}
	}
	return out
}
