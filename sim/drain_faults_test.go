package sim

import (
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/internal/test/testkit"
	"github.com/berthproject/berth/sim/scenario"
)

// drainWorld has three nodes in group g and two in none, and ReplicaSets a and b, each with
// a pod on g-0001 and one on n. One event comes after an hour.
func drainWorld(t *testing.T, event string) *World {
	t.Helper()
	w := newTestWorld(t, `  nodeGroups: [{name: g, max: 9, initial: 3, template: {allocatable: {cpu: "4", memory: 8Gi, pods: "10"}}}]
  faults: [{`+event+`, at: [1h]}]
`)
	w.addNodes("n", "n2")
	for _, name := range []string{"a", "b"} {
		r := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Spec: appsv1.ReplicaSetSpec{Replicas: new(int32(2)), Template: template()}}
		r.Spec.Template.Labels = map[string]string{"app": name}
		w.create(r)
	}
	w.pass(soon)
	on := map[string]string{}
	for _, p := range w.sortedPods() {
		node := "g-0001"
		if on[p.controller.key.name] != "" {
			node = "n"
		}
		on[p.controller.key.name] = node
		if err := w.bind(p.obj.UID, node); err != nil {
			t.Fatal(err)
		}
	}
	w.pass(time.Hour - tick - w.now)
	return w
}

// drain puts the taint of a node on its way out on a node.
func (w *World) drain(t *testing.T, node string) {
	t.Helper()
	if err := w.taint(step.Taint{Node: node, Taint: v1.Taint{Key: autoscaler.ToBeDeletedTaint, Effect: v1.TaintEffectNoSchedule}}); err != nil {
		t.Fatal(err)
	}
}

// forbidden returns the names of the controllers of which no pod can be evicted now.
func (w *World) forbidden() string {
	var out []string
	for _, p := range w.sortedPods() {
		if name := p.controller.key.name; !w.disruptable(p) && !strings.Contains(strings.Join(out, " "), name) {
			out = append(out, name)
		}
	}
	return strings.Join(out, " ")
}

// TestBudgetsAppearInMidDrain: evictions of the pods of one controller are refused for a
// while; of one that has pods on a node which is being drained, if there is such.
func TestBudgetsAppearInMidDrain(t *testing.T) {
	takeBOffTheGroup := func(t *testing.T, w *World) {
		for _, p := range w.sortedPods() {
			if p.controller.key.name == "b" && p.node.group == "g" {
				w.removePod(p)
			}
		}
	}
	drainNodeOfA := func(t *testing.T, w *World) {
		takeBOffTheGroup(t, w)
		w.drain(t, "g-0001")
	}
	for _, c := range []struct {
		name, event string
		plant       func(t *testing.T, w *World)
		want        string // whose pods may not be evicted, "?" for those of either
		lasts       time.Duration
	}{
		{"no node is being drained", "kind: ForbidEvictions", nil, "?", 10 * time.Minute},
		{"for a while", "kind: ForbidEvictions, for: 1m", nil, "?", time.Minute},
		{"a node is being drained", "kind: ForbidEvictions", drainNodeOfA, "a", 10 * time.Minute},
		{"of its group", "kind: ForbidEvictions, group: g", takeBOffTheGroup, "a", 10 * time.Minute},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := drainWorld(t, c.event)
			if c.plant != nil {
				c.plant(t, w)
			}
			if got := w.forbidden(); got != "" {
				t.Errorf("before the event no pod of %q can be evicted", got)
			}
			w.pass(tick)
			if got := w.forbidden(); got != c.want && (c.want != "?" || got != "a" && got != "b") {
				t.Errorf("no pod of %q can be evicted, want %q", got, c.want)
			}
			w.pass(c.lasts - tick)
			if w.forbidden() == "" {
				t.Error("the budget has gone too soon")
			}
			w.pass(tick)
			if got := w.forbidden(); got != "" || len(w.budgets) > 0 {
				t.Errorf("after %s still no pod of %q can be evicted", c.lasts, got)
			}
		})
	}
}

// TestPodsMayRefuseToDie: a pod takes its whole grace period to terminate, and the fault's
// time longer, if a fault of its node's group hits it.
func TestPodsMayRefuseToDie(t *testing.T) {
	for _, c := range []struct {
		name, fault string
		low, high   time.Duration // when the pod is gone
	}{
		{"no fault", "", 0, 5 * time.Second},
		{"the whole grace period", "{kind: SlowStop, rate: 1}", 20 * time.Second, 20 * time.Second},
		{"ten minutes longer", "{kind: SlowStop, rate: 1, for: 10m}", 10*time.Minute + 20*time.Second, 10*time.Minute + 20*time.Second},
		{"in another group", "{kind: SlowStop, rate: 1, group: h}", 0, 5 * time.Second},
	} {
		w := newTestWorld(t, `  nodeGroups:
  - {name: g, max: 1, initial: 1, template: {allocatable: {cpu: "4", memory: 8Gi, pods: "10"}}}
  - {name: h, max: 1, template: {allocatable: {cpu: "4", memory: 8Gi, pods: "10"}}}
  faults: [`+c.fault+"]\n")
		p := w.addPod(testkit.Pod("p").With(func(p *v1.Pod) { p.Spec.TerminationGracePeriodSeconds = new(int64(20)) }).Obj(), nil)
		w.bindAll(t, "g-0001")
		asked := w.now
		w.deletePod(p)
		for !p.gone && w.next(time.Hour) {
		}
		if took := w.now - asked; !p.gone || took < c.low || took > c.high {
			t.Errorf("%s: the pod is gone: %v, after %s; want %s to %s", c.name, p.gone, took, c.low, c.high)
		}
	}
}

// TestOwnersMayNotRecreate: a controller that stalls makes no pods, and makes all that are
// missing when the fault is over.
func TestOwnersMayNotRecreate(t *testing.T) {
	w := newTestWorld(t, "  faults: [{kind: ControllerStalls, rate: 1, from: 1h, until: 2h}]\n")
	w.addNodes("n")
	w.create(replicaSet(3))
	w.pass(soon)
	w.bindAll(t, "n")
	for _, s := range []struct {
		at     time.Duration
		delete bool // a pod, before the look
		want   int
	}{
		{59 * time.Minute, true, 2}, {59*time.Minute + soon, false, 3},
		{time.Hour, true, 2}, {2*time.Hour - tick, false, 2}, {2*time.Hour + soon, false, 3},
	} {
		w.pass(s.at - w.now)
		if s.delete {
			w.deletePod(w.sortedPods()[0])
		}
		if got := w.activePods(); got != s.want {
			t.Errorf("at %s: got %d pods, want %d", s.at, got, s.want)
		}
	}
}

// TestDeletionsMayFailInHalf: of calls that fail some have deleted their instance, and
// others haven't.
func TestDeletionsMayFailInHalf(t *testing.T) {
	w := newTestWorld(t, `  nodeGroups: [{name: g, max: 40, initial: 40, template: {allocatable: {cpu: "4", memory: 8Gi, pods: "10"}}}]
  faults: [{kind: DeletionFails, rate: 0.5}]
`)
	outcomes := map[string]int{}
	for i := range 40 {
		name := fmt.Sprintf("g-%04d", i+1)
		w.callDeleteInstance(step.NodeDeletion{Group: "g", Node: name}, func(err error) {
			gone := w.nodes[name] == nil || w.nodes[name].dead
			outcomes[fmt.Sprintf("failed %v, gone %v", err != nil, gone)]++
		})
	}
	w.pass(time.Hour)
	if outcomes["failed true, gone true"] < 4 || outcomes["failed true, gone false"] < 4 || outcomes["failed false, gone true"] < 10 || outcomes["failed false, gone false"] > 0 {
		t.Errorf("got outcomes %v", outcomes)
	}
	if got, want := w.groups[0].target, outcomes["failed true, gone false"]; got != want || len(w.groups[0].instances) != want {
		t.Errorf("got %d instances of %d in the end, want %d", len(w.groups[0].instances), got, want)
	}
}

// TestNodesMayGoByThemselvesInMidDrain: the cloud takes back the one instance whose node is
// being drained, and none when there is no such node.
func TestNodesMayGoByThemselvesInMidDrain(t *testing.T) {
	for _, drained := range []string{"", "g-0002"} {
		w := drainWorld(t, "kind: "+scenario.ReclaimDraining)
		if drained != "" {
			w.drain(t, drained)
		}
		w.pass(time.Minute)
		for _, name := range []string{"g-0001", "g-0002", "g-0003"} {
			if got, want := w.nodes[name] == nil, name == drained; got != want {
				t.Errorf("node %q is being drained: node %s has gone: %v, want %v", drained, name, got, want)
			}
		}
	}
}
