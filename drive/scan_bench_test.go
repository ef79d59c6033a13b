package drive_test

// This file measures what a scan costs in a cluster where little or nothing happens: a list of
// the provider's, and a plan with the Steps that ask for it and take it in.

import (
	"fmt"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/berthproject/berth/core"
	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/autoscaler/nodegroup"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/drive"
	"github.com/berthproject/berth/internal/test/testkit"
)

// scanned is a loop around a driver whose plans are made inline.
type scanned struct {
	drive.Unanswered
	d     *drive.Driver
	inbox []step.Input
	now   time.Time
	plans int
	plan  *autoscaler.Plan // the last
}

// Plan implements drive.Workers.
func (s *scanned) Plan(compute func() *autoscaler.Plan, done func(*autoscaler.Plan)) {
	s.plan = compute()
	s.plans++
	done(s.plan)
}

// scan lets time pass until the next plan, which is made and committed.
func (s *scanned) scan(b *testing.B, in ...step.Input) {
	s.now = s.now.Add(10 * time.Second)
	for s.inbox = append(s.inbox, in...); ; {
		in := s.inbox
		s.inbox = nil
		wake, err := s.d.Step(s.now, in...)
		if err != nil {
			b.Fatal(err)
		}
		if len(s.inbox) == 0 && (wake.IsZero() || wake.After(s.now)) {
			return
		}
	}
}

// BenchmarkScan is one scan of 2,500 nodes with 100 extended resources and ten pods each, after
// so many nodes have lost a pod and got another. A tenth of the nodes is used little, and stays
// since their pods, one each, have to be on nodes of their own.
func BenchmarkScan(b *testing.B) {
	const nodes, resources, perNode = 2500, 100, 10
	node := func(name string) *testkit.NodeBuilder {
		n := testkit.Node(name).Alloc("cpu", "16", "memory", "64Gi", "pods", "110")
		for i := range resources {
			n.Alloc(fmt.Sprintf("example.com/device-%d", i), "8")
		}
		return n
	}
	pod := func(name string, at int) *v1.Pod {
		p := testkit.Pod(name).Owner("apps/v1", "ReplicaSet", "web").Label("app", "web").Req("cpu", "1").On(fmt.Sprintf("n%d", at))
		if at%10 == 0 {
			p.Req("cpu", "300m").Label("app", "apart").Apart(v1.LabelHostname, "app", "apart").Select("pool", "apart")
		}
		return p.Obj()
	}
	for _, changed := range []int{0, 1, 25} {
		b.Run(fmt.Sprint(changed, "changed"), func(b *testing.B) {
			s := &scanned{now: time.Unix(1000, 0)}
			s.d = newDriver(b, drive.Config{Workers: s, Inbox: func(in step.Input) { s.inbox = append(s.inbox, in) }, Core: autoscaling(func(a *core.Autoscale) { a.Limits.Totals = nil })})
			listed := nodegroup.Group{ID: "g", Max: nodes, Target: nodes, Template: node("template").Obj()}
			in := []step.Input{step.WorkloadSet{Workload: cluster.WorkloadOf(testkit.ReplicaSet("web", "app", "web"))}}
			for i := range nodes {
				n := node(fmt.Sprintf("n%d", i)).Obj()
				n.Spec.ProviderID = "cloud://" + n.Name
				pods := perNode
				if i%10 == 0 {
					n.Labels["pool"], pods = "apart", 1
				}
				in = append(in, step.NodeSet{Node: n, Group: "g"})
				listed.Instances = append(listed.Instances, nodegroup.Instance{ID: n.Spec.ProviderID, Node: n.Name})
				for k := range pods {
					in = append(in, step.PodSet{Pod: pod(fmt.Sprintf("p%d-%d", i, k), i)})
				}
			}
			list := step.GroupsSet{Groups: []nodegroup.Group{listed}}
			s.scan(b, append(in, list)...)
			for range 40 { // until nodes are simulated again that were stuck
				s.scan(b, list)
			}
			if len(s.plan.Removals) > 0 || len(s.plan.Kept) != nodes {
				b.Fatalf("the plan removes %d nodes and keeps %d; nothing is to be removed of %d", len(s.plan.Removals), len(s.plan.Kept), nodes)
			}
			round, before := 0, s.plans
			b.ReportAllocs()
			for b.Loop() {
				b.StopTimer()
				in := []step.Input{list}
				for i := range changed {
					at := (round*changed + i) * 7 % nodes
					old := pod(fmt.Sprintf("p%d-0", at), at)
					in = append(in, step.PodGone{UID: old.UID}, step.PodSet{Pod: old})
				}
				round++
				b.StartTimer()
				s.scan(b, in...)
			}
			if s.plans-before < b.N {
				b.Fatalf("%d plans in %d scans", s.plans-before, b.N)
			}
		})
	}
}
