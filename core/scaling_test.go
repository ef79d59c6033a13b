package core_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/berthproject/berth/core/step"

	v1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"github.com/berthproject/berth/core"
	"github.com/berthproject/berth/core/autoscaler/nodegroup"
	"github.com/berthproject/berth/internal/test/testkit"
	"github.com/berthproject/berth/sim/checker"
)

// cloud is a provider and an API in memory: what the core orders comes when
// the test lets it, everything else succeeds at once.
type cloud struct {
	prompt
	t      *rapid.T
	driver *driven
	now    time.Time
	groups []nodegroup.Group
	nodes  map[string]*v1.Node
	pods   map[string]*v1.Pod
	byUID  map[string]*v1.Pod
	serial int
	orders int
}

func newCloud(t *rapid.T) *cloud {
	w := &cloud{t: t, now: time.Unix(1000, 0), nodes: map[string]*v1.Node{}, pods: map[string]*v1.Pod{}, byUID: map[string]*v1.Pod{}}
	w.driver = newDriven(t, autoscaling(func(a *core.Autoscale) { a.UnneededTime, a.DelayAfterAdd = 20*time.Second, time.Second }), w, defaults)
	for i, cpu := range []string{"4", "16"} {
		w.groups = append(w.groups, nodegroup.Group{ID: fmt.Sprint("g", i), Max: rapid.IntRange(1, 8).Draw(t, "max"),
			Template: testkit.Node("t").Alloc("cpu", cpu, "memory", "32Gi", "pods", "12").Zone("a").Obj()})
	}
	return w
}

// step runs one Step and everything that follows from it at once.
func (w *cloud) step(after time.Duration, in ...step.Input) {
	w.now = w.now.Add(after)
	for {
		wake := w.driver.step(w.now, in...)
		in = w.driver.take()
		if len(in) == 0 && (wake.IsZero() || wake.After(w.now)) {
			return
		}
	}
}

// Bind puts a pod on its node; the API doesn't show it.
func (w *cloud) Bind(b step.Bind, done func(error)) {
	w.byUID[string(b.UID)].Spec.NodeName = b.Node
	done(nil)
}

// ScaleUp raises a target, which must stay within the group's limits.
func (w *cloud) ScaleUp(s step.ScaleUp, done func(error)) {
	g := w.group(s.Group)
	if g.Target += s.Nodes; g.Target > g.Max {
		w.t.Fatalf("group %s is asked for %d nodes, its max is %d", g.ID, g.Target, g.Max)
	}
	w.orders += s.Nodes
	done(nil)
}

// DeleteNodes removes nodes, which must be empty and beyond the group's minimum.
func (w *cloud) DeleteNodes(list []step.NodeDeletion, done func(step.NodeDeletion, error)) {
	for _, d := range list {
		for _, p := range w.pods {
			if p.Spec.NodeName == d.Node {
				w.t.Fatalf("node %s is removed under pod %s", d.Node, p.Name)
			}
		}
		g := w.group(d.Group)
		if g.Target--; g.Target < g.Min {
			w.t.Fatalf("group %s falls to %d, its min is %d", g.ID, g.Target, g.Min)
		}
		delete(w.nodes, d.Node)
		done(d, nil)
		w.driver.put(step.NodeGone{Name: d.Node})
	}
}

func (w *cloud) group(id string) *nodegroup.Group {
	for i := range w.groups {
		if w.groups[i].ID == id {
			return &w.groups[i]
		}
	}
	w.t.Fatalf("there is no group %s", id)
	return nil
}

func (w *cloud) refresh() step.Input {
	return step.GroupsSet{Groups: append([]nodegroup.Group(nil), w.groups...)}
}

// deliver makes all ordered nodes ready.
func (w *cloud) deliver() (in []step.Input) {
	for i := range w.groups {
		g := &w.groups[i]
		have := 0
		for _, n := range w.nodes {
			if n.Labels["group"] == g.ID {
				have++
			}
		}
		for ; have < g.Target; have++ {
			w.serial++
			n := g.Template.DeepCopy()
			n.Name = fmt.Sprintf("%s-%d", g.ID, w.serial)
			n.Labels[v1.LabelHostname], n.Labels["group"] = n.Name, g.ID
			w.nodes[n.Name] = n
			in = append(in, step.NodeSet{Node: n, Group: g.ID})
		}
	}
	return in
}

func (w *cloud) submit(n int) (in []step.Input) {
	for range n {
		w.serial++
		b := testkit.Pod(fmt.Sprint("p", w.serial)).Label("app", "x").
			Req("cpu", rapid.SampledFrom([]string{"100m", "1", "3", "10", "40"}).Draw(w.t, "cpu"), "memory", "1Gi")
		if rapid.IntRange(0, 3).Draw(w.t, "apart") == 0 {
			b.Apart(v1.LabelHostname, "app", "x")
		}
		p := b.Obj()
		w.pods[p.Name], w.byUID[string(p.UID)] = p, p
		in = append(in, step.PodSet{Pod: p.DeepCopy()})
	}
	return in
}

func (w *cloud) check() {
	var nodes []*v1.Node
	var pods []*v1.Pod
	for _, n := range w.nodes {
		nodes = append(nodes, n)
	}
	for _, p := range w.pods {
		pods = append(pods, p)
	}
	if found := checker.Check(nodes, pods, nil); len(found) > 0 {
		w.t.Fatalf("the checker found %v", found)
	}
}

// TestPropertyScaling grows from nothing for random pods, and shrinks back to
// nothing when they are gone.
func TestPropertyScaling(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newCloud(t)
		w.step(0, w.refresh())
		w.step(time.Second, w.submit(rapid.IntRange(1, 30).Draw(t, "pods"))...)
		w.step(10 * time.Second)
		bought := w.orders
		for range 3 { // nothing is bought twice while the nodes are coming
			w.step(10*time.Second, w.refresh())
		}
		if w.orders != bought {
			t.Fatalf("%d nodes were ordered for the same pods, then %d more", bought, w.orders-bought)
		}
		for range 12 { // what packing in another order left over is bought for again
			w.step(10*time.Second, append(w.deliver(), w.refresh())...)
		}
		w.check()
		full := true
		for _, g := range w.groups {
			full = full && g.Target == g.Max
		}
		for _, p := range w.pods {
			cpu := p.Spec.Containers[0].Resources.Requests.Cpu().Value()
			if p.Spec.NodeName == "" && cpu <= 4 && !full && w.groups[0].Target < w.groups[0].Max {
				t.Fatalf("pod %s waits, though group g0 could grow for it", p.Name)
			}
			if p.Spec.NodeName != "" && cpu > 16 {
				t.Fatalf("pod %s of %d CPUs was placed", p.Name, cpu)
			}
		}
		var gone []step.Input
		for name, p := range w.pods {
			gone = append(gone, step.PodGone{UID: p.UID})
			delete(w.pods, name)
		}
		w.step(time.Second, gone...)
		for range 12 {
			w.step(10*time.Second, append(w.deliver(), w.refresh())...)
		}
		if len(w.nodes) > 0 {
			t.Fatalf("%d nodes are left when the work is done", len(w.nodes))
		}
	})
}
