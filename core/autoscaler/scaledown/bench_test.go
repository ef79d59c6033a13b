package scaledown_test

import (
	"fmt"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"pgregory.net/rapid"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/autoscaler/scaledown"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/engine"
	"github.com/berthproject/berth/core/framework"
	"github.com/berthproject/berth/core/plugins"
	"github.com/berthproject/berth/internal/testkit"
)

// partFull returns a cluster of nodes with 30 pods each, which request 40 % of them, of so
// many ReplicaSets, each with a disruption budget that allows all of its pods to go.
func partFull(nodes, owners, shapes int) *cluster.State {
	s := cluster.New(cluster.NewSchema())
	s.SetGroup("g", &cluster.NodeGroup{ID: "g", Target: nodes, Max: nodes, Template: s.Schema.ParseNode(benchNode("t").Obj(), "g")})
	for i := range nodes {
		s.SetNode(s.Schema.ParseNode(benchNode(fmt.Sprintf("n%05d", i)).Label("topology.kubernetes.io/zone", string(rune('a'+i%3))).Obj(), "g"))
	}
	for i := range owners {
		app := fmt.Sprintf("app%d", i)
		s.SetWorkload(&cluster.Workload{Kind: cluster.ReplicaSet, Namespace: "default", Name: app, Selector: labels.SelectorFromSet(labels.Set{"app": app}), Replicas: cluster.Replicas{Wanted: int32(30 * nodes / owners), Existing: int32(30 * nodes / owners)}})
		b := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: app}, Spec: policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}}}
		b.Status.DisruptionsAllowed = int32(30 * nodes)
		s.SetObject(b)
	}
	for i := range 30 * nodes {
		p := s.Schema.ParsePod(benchPod(i, owners, shapes))
		s.Place(p, fmt.Sprintf("n%05d", i%nodes))
		s.SetReady(p.UID, true)
	}
	return s
}

func benchNode(name string) *testkit.NodeBuilder {
	return testkit.Node(name).Alloc("cpu", "16", "memory", "64Gi", "pods", "110")
}

// benchPod returns a pod of one of the owners. The pods of each owner are a class of their own,
// by their priority. Of 1 shape, each requests 213 milli-CPU, so that 75 of them fill a node; of
// 107 shapes, 160 to 266.
func benchPod(i, owners, shapes int) *v1.Pod {
	owner := (i * 7919) % owners
	cpu := 213 - shapes/2 + owner%shapes
	p := testkit.Pod(fmt.Sprintf("p%d", i)).Owner("apps/v1", "ReplicaSet", fmt.Sprintf("app%d", owner)).Label("app", fmt.Sprintf("app%d", owner)).
		Req("cpu", fmt.Sprintf("%dm", cpu), "memory", fmt.Sprintf("%dMi", 4*cpu)).Priority(int32(owner)).Obj()
	p.Spec.NodeName = fmt.Sprintf("n%05d", i)
	return p
}

// newSimulator returns one that has followed a cluster, with a request.
func newSimulator(tb rapid.TB, s *cluster.State) (*scaledown.Simulator, *autoscaler.Request) {
	sim, err := scaledown.New(s, []*framework.Profile{plugins.Default(s.Schema, plugins.Options{})}, engine.Options{})
	if err != nil {
		tb.Fatal(err)
	}
	return sim, &autoscaler.Request{Now: time.Unix(100000, 0), ServerNow: time.Unix(100000, 0), ScaleDown: &autoscaler.ScaleDown{Rules: autoscaler.RemovalRules{
		UtilizationThreshold: 0.5, GPUUtilizationThreshold: 0.5, SkipSystemPods: true, SkipLocalStorage: true, SkipCustomControllerPods: true, RecheckAfter: 5 * time.Minute}}}
}

func pass(sim *scaledown.Simulator, req *autoscaler.Request) *autoscaler.Plan {
	plan := autoscaler.NewPlan(req, 0)
	sim.Plan(req, &autoscaler.Questions{}, plan)
	sim.Forget(req.Now)
	return plan
}

// BenchmarkPass is one pass from nothing over nodes with 30 pods each at 40 % utilisation, with
// budgets and owners, after the simulator has followed the cluster; and the next, with 1 % of
// the nodes changed.
func BenchmarkPass(b *testing.B) {
	for _, c := range []struct{ nodes, owners, shapes int }{{1000, 200, 1}, {5000, 200, 1}, {5000, 5000, 1}, {5000, 5000, 107}} {
		name := fmt.Sprintf("%dnodes/%dclasses/%dshapes", c.nodes, c.owners, c.shapes)
		s := partFull(c.nodes, c.owners, c.shapes)
		b.Run(name+"/full", func(b *testing.B) {
			for b.Loop() {
				b.StopTimer()
				sim, req := newSimulator(b, s)
				sim.Follow()
				b.StartTimer()
				b.ReportMetric(float64(len(pass(sim, req).Removals)), "removable")
			}
		})
		b.Run(name+"/next", func(b *testing.B) {
			sim, req := newSimulator(b, s)
			pass(sim, req)
			round := 0
			for b.Loop() {
				b.StopTimer()
				for i := range c.nodes / 100 { // one pod of each is another
					n := (i*97 + round*31) % c.nodes
					k := (n + (round%30)*c.nodes) % (30 * c.nodes)
					s.Remove(s.Schema.ParsePod(benchPod(k, c.owners, c.shapes)).UID)
					s.Place(s.Schema.ParsePod(benchPod(k, c.owners, c.shapes)), fmt.Sprintf("n%05d", n))
				}
				round++
				req.Now = req.Now.Add(10 * time.Second)
				b.StartTimer()
				b.ReportMetric(float64(len(pass(sim, req).Removals)), "removable")
			}
		})
	}
}
