package core_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/berthproject/berth/core"
	"github.com/berthproject/berth/core/autoscaler/nodegroup"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/framework"
	"github.com/berthproject/berth/core/plugins"
	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/core/weighing"
	"github.com/berthproject/berth/internal/test/testkit"
	"github.com/berthproject/berth/sim/checker"
)

// rivals is a cloud in which pods of several priorities want the same nodes, orders fail,
// and nodes that were ordered don't come.
type rivals struct {
	*cloud
	failures int // so many orders in a hundred fail
}

func newRivals(t *rapid.T) *rivals {
	w := &rivals{cloud: &cloud{t: t, now: time.Unix(1000, 0), nodes: map[string]*v1.Node{}, pods: map[string]*v1.Pod{}, byUID: map[string]*v1.Pod{}}}
	weigh := weighing.Default()
	weigh.Policy = rapid.SampledFrom(weighing.Policies()).Draw(t, "policy")
	weigh.MaxWait = time.Minute
	profile := func(schema *cluster.Schema) *framework.Profile {
		return plugins.Default(schema, plugins.Options{Weighing: &weigh})
	}
	w.driver = newDriven(t, autoscaling(func(a *core.Autoscale) {
		a.DisableScaleDown, a.InitialBackoff, a.MaxBackoff = true, 20*time.Second, 20*time.Second
	}), w, profile)
	for i, cpu := range []string{"2", "4"} {
		w.groups = append(w.groups, nodegroup.Group{ID: fmt.Sprint("g", i), Max: rapid.IntRange(0, 2).Draw(t, "max"),
			Price:    []float64{0, 0.1, 10}[rapid.IntRange(0, 2).Draw(t, "price")],
			Template: testkit.Node("t").Alloc("cpu", cpu, "memory", "32Gi", "pods", "12").Obj()})
	}
	return w
}

// ScaleUp implements drive.Workers.
func (w *rivals) ScaleUp(s step.ScaleUp, done func(error)) {
	if rapid.IntRange(0, 99).Draw(w.t, "fails") < w.failures {
		done(errors.New("refused"))
		return
	}
	w.cloud.ScaleUp(s, done)
}

// Preempt implements drive.Workers: the victim leaves.
func (w *rivals) Preempt(x step.Preemption, done func(error)) {
	done(nil)
	if p := w.byUID[string(x.UID)]; p != nil {
		delete(w.pods, p.Name)
		w.driver.put(step.PodGone{UID: x.UID})
	}
}

// Bind implements drive.Workers: the API shows the pod, which has begun at once.
func (w *rivals) Bind(b step.Bind, done func(error)) {
	w.cloud.Bind(b, done)
	p := w.byUID[string(b.UID)].DeepCopy()
	p.Status.StartTime = &metav1.Time{Time: w.now}
	w.driver.put(step.PodSet{Pod: p})
}

// step is that of the cloud, and checks the core's invariants.
func (w *rivals) step(after time.Duration, in ...step.Input) {
	w.cloud.step(after, in...)
	for _, broken := range w.driver.Core().Invariants() {
		w.t.Fatalf("broken invariant: %s", broken)
	}
	if n := w.driver.Core().Stats().MissedWakeups; n > 0 {
		w.t.Fatalf("%d pods were found schedulable by the leftover sweep only", n)
	}
}

// arrive submits pods of random priorities.
func (w *rivals) arrive() (in []step.Input) {
	for range rapid.IntRange(1, 3).Draw(w.t, "pods") {
		w.serial++
		p := testkit.Pod(fmt.Sprint("p", w.serial)).Req("cpu", fmt.Sprint(rapid.IntRange(1, 4).Draw(w.t, "cpu")), "memory", "1Gi").
			Priority(int32(rapid.IntRange(0, 3).Draw(w.t, "priority"))).Obj()
		w.pods[p.Name], w.byUID[string(p.UID)] = p, p
		in = append(in, step.PodSet{Pod: p.DeepCopy()})
	}
	return in
}

// something happens to the world.
func (w *rivals) something() []step.Input {
	switch rapid.IntRange(0, 5).Draw(w.t, "what") {
	case 0, 1:
		return w.arrive()
	case 2:
		return append(w.deliver(), w.refresh())
	case 3: // what hasn't come will never
		for i := range w.groups {
			w.groups[i].Target = w.registered(w.groups[i].ID)
		}
		return []step.Input{w.refresh()}
	case 4:
		names := slices.Sorted(maps.Keys(w.pods))
		if len(names) == 0 {
			return nil
		}
		name := rapid.SampledFrom(names).Draw(w.t, "gone")
		uid := w.pods[name].UID
		delete(w.pods, name)
		return []step.Input{step.PodGone{UID: uid}}
	}
	return nil
}

func (w *rivals) registered(group string) (n int) {
	for _, x := range w.nodes {
		if x.Labels["group"] == group {
			n++
		}
	}
	return n
}

// couldPreempt returns a node on which a pod would fit without the pods of lower priority.
func (w *rivals) couldPreempt(p *v1.Pod, nodes []*v1.Node) string {
	for _, n := range nodes {
		var others []*v1.Pod
		lower := false
		for _, q := range w.pods {
			switch {
			case q.Spec.NodeName == n.Name && *q.Spec.Priority < *p.Spec.Priority:
				lower = true
			case q.Spec.NodeName != "":
				others = append(others, q)
			}
		}
		if lower && checker.Fits(p, n, nodes, others) {
			return n.Name
		}
	}
	return ""
}

// TestPropertyNobodyWaitsWhoCouldPreempt has pods of all policies wait for nodes that come,
// that are lost, or that can't be ordered: in the end nobody waits who could preempt, and
// nothing is held on to.
func TestPropertyNobodyWaitsWhoCouldPreempt(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newRivals(t)
		in := []step.Input{w.refresh()}
		for i := range rapid.IntRange(1, 2).Draw(t, "nodes") {
			n := testkit.Node(fmt.Sprint("fixed", i)).Alloc("cpu", "4", "memory", "32Gi", "pods", "12").Obj()
			w.nodes[n.Name] = n
			in = append(in, step.NodeSet{Node: n})
		}
		w.failures = 30
		w.step(0, in...)
		for range rapid.IntRange(1, 20).Draw(t, "steps") {
			w.step(time.Duration(rapid.IntRange(0, 15).Draw(t, "seconds"))*time.Second, w.something()...)
		}
		w.failures = 0
		for range 30 {
			w.step(11*time.Second, append(w.deliver(), w.refresh())...)
		}
		w.check()
		if left := w.driver.Core().Unsettled(); left != nil {
			t.Fatalf("left over are %v", left)
		}
		nodes := slices.Collect(maps.Values(w.nodes))
		for name, p := range w.pods {
			if at := w.couldPreempt(p, nodes); p.Spec.NodeName == "" && at != "" {
				t.Fatalf("pod %s waits, though it could take the place of others on node %s", name, at)
			}
		}
	})
}
