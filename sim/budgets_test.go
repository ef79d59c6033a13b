package sim

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/internal/test/testkit"
)

// budgetFor returns a budget for the pods with the label app=w: "min 2", "max 25%", or
// "" for one that says neither.
func budgetFor(name, spec string) *policyv1.PodDisruptionBudget {
	b := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
	b.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "w"}}
	bound, value, _ := strings.Cut(spec, " ")
	n := intstr.Parse(value)
	switch bound {
	case "min":
		b.Spec.MinAvailable = &n
	case "max":
		b.Spec.MaxUnavailable = &n
	}
	return b
}

// addPods adds a pod with the label app=w for each state, and of a controller or none.
func (w *World) addPods(c *controller, states ...string) (pods []*pod) {
	for i, state := range states {
		b := testkit.Pod(fmt.Sprint("p", i)).Label("app", "w")
		switch state {
		case "other namespace":
			b.Namespace = "other"
		case "other label":
			b.Label("app", "x")
		case "terminating":
			b.Terminating()
		}
		p := w.addPod(b.Obj(), c)
		p.ready = state != "not ready"
		p.ended = state == "ended"
		p.lost = state == "node gone"
		pods = append(pods, p)
	}
	return pods
}

// TestBudgetStatus: what the disruption controller writes of budgets, for pods in several
// states. Pods without a controller are expected each; of a controller, its replicas.
func TestBudgetStatus(t *testing.T) {
	ready := func(n int) []string { return slices.Repeat([]string{"ready"}, n) }
	for _, c := range []struct {
		name     string
		budget   string
		replicas int // of the pods' controller, 0 for none
		pods     []string
		want     string // healthy, desired, expected, allowed
	}{
		{"no pods", "min 1", 0, nil, "0 healthy of 0, 1 desired: 0 allowed"},
		{"as many as must be available", "min 2", 0, ready(2), "2 healthy of 2, 2 desired: 0 allowed"},
		{"one more than must be available", "min 2", 0, ready(3), "3 healthy of 3, 2 desired: 1 allowed"},
		{"a percentage that must be available is rounded up", "min 50%", 0, ready(3), "3 healthy of 3, 2 desired: 1 allowed"},
		{"one may be away", "max 1", 0, ready(3), "3 healthy of 3, 2 desired: 1 allowed"},
		{"one may be away and is", "max 1", 0, []string{"ready", "ready", "not ready"}, "2 healthy of 3, 2 desired: 0 allowed"},
		{"more are away than may be", "max 1", 0, []string{"ready", "not ready", "not ready"}, "1 healthy of 3, 2 desired: 0 allowed"},
		{"a percentage that may be away is rounded up", "max 10%", 0, ready(3), "3 healthy of 3, 2 desired: 1 allowed"},
		{"more may be away than there are", "max 5", 0, ready(3), "3 healthy of 3, 0 desired: 3 allowed"},
		{"neither is said", "", 0, ready(2), "2 healthy of 2, 0 desired: 2 allowed"},
		{"replicas that don't exist are away", "max 1", 4, ready(3), "3 healthy of 4, 3 desired: 0 allowed"},
		{"all replicas exist", "max 1", 3, ready(3), "3 healthy of 3, 2 desired: 1 allowed"},
		{"a terminating pod isn't healthy", "max 1", 0, []string{"ready", "terminating"}, "1 healthy of 2, 1 desired: 0 allowed"},
		{"a pod whose node is gone isn't healthy", "max 1", 0, []string{"ready", "node gone"}, "1 healthy of 2, 1 desired: 0 allowed"},
		{"a pod that has ended doesn't count", "max 1", 0, []string{"ready", "ended"}, "1 healthy of 1, 0 desired: 1 allowed"},
		{"a pod of another namespace doesn't count", "max 1", 0, []string{"ready", "other namespace"}, "1 healthy of 1, 0 desired: 1 allowed"},
		{"a pod that isn't selected doesn't count", "max 1", 0, []string{"ready", "other label"}, "1 healthy of 1, 0 desired: 1 allowed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newTestWorld(t, "  end: {at: 1h}\n")
			var owner *controller
			if c.replicas > 0 {
				owner = &controller{key: controllerKey{"ReplicaSet", "default", "w"}, replicas: c.replicas}
			}
			w.addPods(owner, c.pods...)
			w.create(budgetFor("b", c.budget))
			s := w.budgets[0].obj.Status
			if got := fmt.Sprintf("%d healthy of %d, %d desired: %d allowed", s.CurrentHealthy, s.ExpectedPods, s.DesiredHealthy, s.DisruptionsAllowed); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

// TestEviction asks for the eviction of the first pod, under budgets of now: what Berth
// has read of them doesn't matter.
func TestEviction(t *testing.T) {
	for _, c := range []struct {
		name    string
		budgets []string
		pods    []string
		want    bool
	}{
		{"no budget", nil, []string{"ready"}, true},
		{"one may be away", []string{"max 1"}, []string{"ready", "ready"}, true},
		{"one may be away and is", []string{"max 1"}, []string{"ready", "not ready"}, false},
		{"all budgets have to allow it", []string{"max 1", "min 2"}, []string{"ready", "ready"}, false},
		{"a budget that doesn't select it says nothing", []string{"min 2"}, []string{"other label"}, true},
		{"a pod that isn't ready takes nothing from the budget", []string{"max 0"}, []string{"not ready"}, true},
		{"a terminating pod has left", []string{"max 0"}, []string{"terminating"}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newTestWorld(t, "  end: {at: 1h}\n")
			pods := w.addPods(nil, c.pods...)
			for i, spec := range c.budgets {
				b := budgetFor(fmt.Sprint("b", i), spec)
				w.create(b)
				w.budgets[i].obj.Status.DisruptionsAllowed = 99 // of no account
			}
			counted := c.want && c.pods[0] != "terminating"
			if got := w.evict(pods[0], nil); got != c.want {
				t.Errorf("evicted: got %v, want %v", got, c.want)
			}
			if gone := pods[0].gone || pods[0].terminating(); gone != c.want {
				t.Errorf("the pod is terminating or gone: got %v, want %v", gone, c.want)
			}
			if got := w.stats.Evicted == 1; got != counted {
				t.Errorf("the eviction is counted: got %v, want %v", got, counted)
			}
		})
	}
}

// TestAnEvictedPodHasAsLongAsTheEvictionSays: its kubelet stops it within that time, and
// within the pod's own where the eviction says nothing.
func TestAnEvictedPodHasAsLongAsTheEvictionSays(t *testing.T) {
	for _, c := range []struct {
		name  string
		grace *time.Duration
		want  time.Duration
	}{{"its own", nil, 4 * time.Second}, {"shorter", ptr.To(time.Second), time.Second}, {"none", ptr.To(time.Duration(0)), 0}} {
		w := newTestWorld(t, "  end: {at: 1h}\n  kubelet: {stop: {min: 1h, max: 1h}}\n")
		w.addNodes("n")
		p := w.addPods(nil, "ready")[0]
		p.obj.Spec.TerminationGracePeriodSeconds = ptr.To[int64](4)
		if err := w.bind(p.obj.UID, "n"); err != nil {
			t.Fatal(err)
		}
		begin := w.now
		w.evict(p, c.grace)
		for !p.gone && w.now-begin < time.Minute {
			w.pass(100 * time.Millisecond)
		}
		if got := (w.now - begin).Truncate(time.Second); got != c.want {
			t.Errorf("%s: gone after %s, want %s", c.name, got, c.want)
		}
	}
}

// TestBudgetsAreRecountedALittleLater: several changes within 200 ms bring one write of
// a status, and none if it allows as much as before. A removed budget is shown as gone.
func TestBudgetsAreRecountedALittleLater(t *testing.T) {
	w := newTestWorld(t, "  api: {watchLatency: {min: 0s, max: 0s}}\n")
	shown := func() (out []string) {
		for _, in := range w.berth.inbox {
			switch x := in.(type) {
			case step.ObjectSet:
				if b, ok := x.Object.(*policyv1.PodDisruptionBudget); ok {
					out = append(out, fmt.Sprintf("%s allows %d", b.Name, b.Status.DisruptionsAllowed))
				}
			case step.ObjectGone:
				if x.Kind == cluster.BudgetKind {
					out = append(out, x.Name+" is gone")
				}
			}
		}
		w.berth.inbox = nil
		return out
	}
	w.addNodes("n")
	pods := w.addPods(nil, "ready", "ready", "ready")
	b := budgetFor("b", "max 2")
	for _, s := range []struct {
		name   string
		change func()
		wait   time.Duration
		want   []string
	}{
		{"it is created", func() { w.create(b) }, 0, []string{"b allows 2"}},
		{"two pods are no longer ready", func() {
			pods[0].ready, pods[1].ready = false, false
			w.recountBudgets(pods[0])
			w.recountBudgets(pods[1])
		}, 190 * time.Millisecond, nil},
		{"200 ms have passed", func() {}, 10 * time.Millisecond, []string{"b allows 0"}},
		{"nothing has changed", func() { w.recountBudgets(pods[0]) }, time.Second, nil},
		{"one of them is ready again", func() { pods[0].ready = true; w.recountBudgets(pods[0]) }, 200 * time.Millisecond, []string{"b allows 1"}},
		{"it is deleted", func() { w.remove(b) }, 0, []string{"b is gone"}},
		{"there is no budget any more", func() { w.recountBudgets(pods[0]) }, time.Second, nil},
	} {
		s.change()
		w.pass(s.wait)
		if got := shown(); !slices.Equal(got, s.want) {
			t.Errorf("%s: Berth is shown %q, want %q", s.name, got, s.want)
		}
	}
	if left := w.storedInputs(); len(left) > 0 {
		t.Errorf("the API still has %v", left)
	}
}
