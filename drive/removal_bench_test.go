package drive_test

import (
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/berthproject/berth/core"
	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/autoscaler/nodegroup"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/drive"
	"github.com/berthproject/berth/internal/test/testkit"
)

// willing does at once what removing nodes takes: pods that are evicted are gone, and so are
// nodes that are deleted.
type willing struct {
	drive.Unanswered
	in      []step.Input
	evicted int
	deleted int
	decided time.Time // when the plan was there that removes nodes
	last    time.Time // of the last call of the provider
}

func (w *willing) Taint(_ step.Taint, done func(error)) { done(nil) }

func (w *willing) Evict(e step.Eviction, done func(error)) {
	w.evicted++
	done(nil)
	w.in = append(w.in, step.PodGone{UID: e.UID})
}

func (w *willing) DeleteNodes(all []step.NodeDeletion, done func(step.NodeDeletion, error)) {
	for _, d := range all {
		w.deleted++
		w.last = time.Now()
		done(d, nil)
		w.in = append(w.in, step.NodeGone{Name: d.Node})
	}
}

func (w *willing) Plan(compute func() *autoscaler.Plan, done func(*autoscaler.Plan)) {
	plan := compute()
	if w.decided.IsZero() && len(plan.Removals) > 0 {
		w.decided = time.Now()
	}
	done(plan)
}

// BenchmarkRemoval removes 60 % of 2,000 nodes with 40 pods each, while an API and a provider do
// at once what they are asked. An operation is all of it, from the request of the plan on;
// decision-s is the time from the plan to the last call of the provider.
func BenchmarkRemoval(b *testing.B) {
	const nodes, perNode = 2000, 40
	for b.Loop() {
		b.StopTimer()
		w := &willing{}
		d := newDriver(b, drive.Config{Workers: w, Inbox: func(in step.Input) { w.in = append(w.in, in) }, Core: autoscaling(func(a *core.Autoscale) {
			a.UnneededTime, a.DelayAfterAdd, a.DeleteDelayAfterTaint = 0, 0, 0
			a.MaxScaleDown, a.MaxDrain = nodes, nodes
			a.Limits.Totals = nil
		})})
		var inputs []step.Input
		rs := testkit.ReplicaSet("r", "app", "r")
		rs.Spec.Replicas = new(int32)
		*rs.Spec.Replicas = nodes * perNode
		rs.Status.Replicas = nodes * perNode
		inputs = append(inputs, step.WorkloadSet{Workload: cluster.WorkloadOf(rs)})
		for i, name := range testkit.Names("n", nodes) {
			inputs = append(inputs, step.NodeSet{Node: testkit.Node(name).Alloc("cpu", "20", "memory", "80Gi", "pods", "110").Zone(string(rune('a' + i%3))).Obj(), Group: "g"})
			for k := range perNode {
				p := testkit.Pod(fmt.Sprintf("p%d-%d", i, k)).Owner("apps/v1", "ReplicaSet", "r").Label("app", "r").Req("cpu", "200m", "memory", "400Mi").On(name).Obj()
				p.UID = types.UID(p.Name)
				inputs = append(inputs, step.PodSet{Pod: p})
			}
		}
		now := time.Unix(100000, 0)
		if _, err := d.Step(now, inputs...); err != nil {
			b.Fatal(err)
		}
		w.in = append(w.in, step.GroupsSet{Groups: []nodegroup.Group{{ID: "g", Max: nodes, Target: nodes, Template: testkit.Node("t").Alloc("cpu", "20", "memory", "80Gi", "pods", "110").Obj()}}})
		b.StartTimer()
		for last := -1; w.deleted > last || w.deleted == 0 || len(w.in) > 0; {
			last = w.deleted
			in := w.in
			w.in = nil
			wake, err := d.Step(now, in...)
			if err != nil {
				b.Fatal(err)
			}
			if len(w.in) == 0 && wake.After(now) && wake.Sub(now) < time.Second {
				now = wake
			}
		}
		b.StopTimer()
		b.ReportMetric(w.last.Sub(w.decided).Seconds(), "decision-s")
		b.ReportMetric(float64(w.deleted), "nodes")
		b.ReportMetric(float64(w.evicted), "pods")
		b.StartTimer()
	}
}
