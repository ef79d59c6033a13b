package core_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/berthproject/berth/core"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/door"
	"github.com/berthproject/berth/core/plugins"
	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/internal/test/testkit"
)

// preempting are a core whose nodes are full, and its disruption budgets.
type preempting struct {
	core    *core.Core
	now     time.Time
	budgets []*policyv1.PodDisruptionBudget
}

func newPreempting(t *rapid.T, full []step.Input, budgets []*policyv1.PodDisruptionBudget) *preempting {
	schema := cluster.NewSchema()
	c, err := core.New(schema, core.DefaultConfig(plugins.Default(schema, plugins.Options{})))
	if err != nil {
		t.Fatal(err)
	}
	w := &preempting{core: c, now: time.Unix(5000, 0)}
	w.step(full...)
	for _, b := range budgets {
		w.budgets = append(w.budgets, b.DeepCopy())
		w.step(step.ObjectSet{Object: b})
	}
	return w
}

func (w *preempting) step(in ...step.Input) []step.Preemption {
	w.now = w.now.Add(time.Second)
	r := w.core.Step(w.now, door.Must(in...)...)
	return r.Preemptions
}

// evict has the budgets' status say at once that a victim is on its way out.
func (w *preempting) evict(victim *cluster.Pod) {
	for i, b := range w.budgets {
		if b.Name != victim.Object.Labels["app"] {
			continue
		}
		b = b.DeepCopy()
		b.Status.DisruptionsAllowed = max(0, b.Status.DisruptionsAllowed-1)
		if b.Status.DisruptedPods == nil {
			b.Status.DisruptedPods = map[string]metav1.Time{}
		}
		b.Status.DisruptedPods[victim.Object.Name] = metav1.Time{}
		w.budgets[i] = b
		w.step(step.ObjectSet{Object: b})
	}
}

// TestPropertyPreemptionsAtOnceKeepBudgets decides about the same pods in one Step and one by one,
// where each budget's status counts a victim before the next pod comes. The victims are the same.
func TestPropertyPreemptionsAtOnceKeepBudgets(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		apps := []string{"a", "b", "c"}
		var full, urgent []step.Input
		for i, node := range testkit.Names("n", 1+testkit.Uniform(t, 6, "nodes")) {
			full = append(full, step.NodeSet{Node: testkit.Node(node).Alloc("cpu", "2", "memory", "8Gi").Obj()})
			for k := range 2 {
				p := testkit.Pod(fmt.Sprint("low", i, "-", k)).Req("cpu", "1").Label("app", apps[testkit.Uniform(t, 3, "app")]).
					Started(int64(testkit.Uniform(t, 1000, "started"))).On(node)
				obj := p.Obj()
				obj.Status.Conditions = []v1.PodCondition{{Type: v1.PodReady, Status: v1.ConditionTrue}} // others draw nothing
				full = append(full, step.PodSet{Pod: obj})
			}
		}
		var budgets []*policyv1.PodDisruptionBudget
		for _, app := range apps[:testkit.Uniform(t, 4, "budgets")] {
			budgets = append(budgets, testkit.Budget(app, int32(testkit.Uniform(t, 4, "allowed")), "app", app))
		}
		for i := range 1 + testkit.Uniform(t, 6, "urgent") {
			urgent = append(urgent, step.PodSet{Pod: testkit.Pod(fmt.Sprint("urgent", i)).Req("cpu", "1").Priority(10).Obj()})
		}
		at := map[string]string{}
		for _, x := range newPreempting(t, full, budgets).step(urgent...) {
			at[string(x.By)] = x.Name
		}
		oneByOne, want := newPreempting(t, full, budgets), map[string]string{}
		for _, in := range urgent {
			for _, x := range oneByOne.step(in) {
				want[string(x.By)] = x.Name
				oneByOne.evict(oneByOne.core.State().PodOn(x.UID))
			}
		}
		if !maps.Equal(at, want) {
			t.Fatalf("at once %v, one by one %v", slices.Sorted(maps.Values(at)), slices.Sorted(maps.Values(want)))
		}
	})
}
