package scaledown_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/autoscaler/drainability"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/internal/test/testkit"
)

// TestUtilization measures a node of 4 cores and 8 GiB.
func TestUtilization(t *testing.T) {
	terminating := func(ago time.Duration) *testkit.PodBuilder {
		return testkit.Pod("t").Req("cpu", "1").With(func(p *v1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: now.Add(-ago)} })
	}
	gpus := func() *testkit.NodeBuilder { return aNode("n").Alloc("amd.com/gpu", "4") }
	ignoreDaemons := func(r *autoscaler.RemovalRules) { r.IgnoreDaemonPods = true }
	ignoreMirrors := func(r *autoscaler.RemovalRules) { r.IgnoreMirrorPods = true }
	byGroup := func(v bool) *cluster.GroupOptions { return &cluster.GroupOptions{IgnoreDaemonSetsUtilization: &v} }
	for _, x := range []struct {
		name    string
		node    *testkit.NodeBuilder // nil for one without GPUs
		pods    []*testkit.PodBuilder
		flags   func(*autoscaler.RemovalRules)
		options *cluster.GroupOptions
		gpus    string // of the group's template
		want    string
	}{
		{name: "no pods", want: "memory 0"},
		{name: "more of its CPU", pods: pods(testkit.Pod("p").Req("cpu", "1", "memory", "1Gi")), want: "cpu 0.25"},
		{name: "more of its memory", pods: pods(testkit.Pod("p").Req("cpu", "1", "memory", "4Gi")), want: "memory 0.5"},
		{name: "more than all", pods: pods(testkit.Pod("p").Req("cpu", "5")), want: "cpu 1.25"},
		{name: "a daemon counts", pods: pods(testkit.Pod("p").Req("cpu", "1"), daemon("d").Req("cpu", "1")), want: "cpu 0.5"},
		{name: "a daemon left out of both sides", pods: pods(testkit.Pod("p").Req("cpu", "1"), daemon("d").Req("cpu", "1")), flags: ignoreDaemons, want: fmt.Sprint("cpu ", 1.0/3)},
		{name: "as its group says", pods: pods(testkit.Pod("p").Req("cpu", "1"), daemon("d").Req("cpu", "1")), options: byGroup(true), want: fmt.Sprint("cpu ", 1.0/3)},
		{name: "against the flag", pods: pods(daemon("d").Req("cpu", "1")), flags: ignoreDaemons, options: byGroup(false), want: "cpu 0.25"},
		{name: "a mirror pod counts", pods: pods(mirror().Req("cpu", "1")), flags: ignoreDaemons, want: "cpu 0.25"},
		{name: "a mirror pod left out", pods: pods(testkit.Pod("p").Req("cpu", "1"), mirror().Req("cpu", "2")), flags: ignoreMirrors, want: "cpu 0.5"},
		{name: "daemons have it all", pods: pods(daemon("d").Req("cpu", "4")), flags: ignoreDaemons, want: "memory 0"},
		{name: "a terminating pod counts", pods: pods(terminating(60 * time.Second)), want: "cpu 0.25"},
		{name: "a long terminating one doesn't", pods: pods(terminating(61 * time.Second)), want: "memory 0"},
		{name: "nothing is allocatable", node: testkit.Node("n"), want: "memory 0"},
		{name: "GPUs alone", node: gpus(), pods: pods(testkit.Pod("p").Req("cpu", "4", "amd.com/gpu", "1")), want: "amd.com/gpu 0.25"},
		{name: "GPUs that aren't requested", node: gpus(), pods: pods(testkit.Pod("p").Req("cpu", "4")), want: "amd.com/gpu 0"},
		{name: "GPUs that aren't there yet", pods: pods(testkit.Pod("p").Req("cpu", "4")), gpus: "nvidia.com/gpu", want: "nvidia.com/gpu 0"},
		{name: "another extended resource", node: aNode("n").Alloc("example.com/gpu", "1"), pods: pods(testkit.Pod("p").Req("cpu", "1", "example.com/gpu", "1")), want: "cpu 0.25"},
	} {
		s := withGroup()
		g := cluster.NodeGroup{ID: "g", Options: x.options}
		if x.gpus != "" {
			g.Template = s.Schema.ParseNode(testkit.Node("t").Alloc(x.gpus, "8").Obj(), "g")
		}
		s.SetGroup("g", &g)
		if x.node == nil {
			x.node = aNode("n")
		}
		i := s.SetNode(s.Schema.ParseNode(x.node.Obj(), "g"))
		for _, p := range x.pods {
			s.Place(s.Schema.ParsePod(p.Obj()), "n")
		}
		c := newCheck(s)
		if x.flags != nil {
			x.flags(c.Rules)
		}
		share, resource := c.Utilization(s.Node(i))
		if got := fmt.Sprint(resource, " ", share); got != x.want {
			t.Errorf("%s: %s, want %s", x.name, got, x.want)
		}
	}
}

func pods(list ...*testkit.PodBuilder) []*testkit.PodBuilder { return list }

// TestThresholds has a node of which 60 % is requested stay or go by the threshold.
func TestThresholds(t *testing.T) {
	for _, x := range []struct {
		name, gpus   string
		flag, gpu    float64
		own, ownGPUs *float64
		want         string // what keeps the node
	}{
		{name: "the flag", flag: 0.5, gpu: 0.9, want: "cpu utilization 60 % > 50 % (--scale-down-utilization-threshold)"},
		{name: "a larger flag", flag: 0.6, gpu: 0.1},
		{name: "its group's", flag: 0.9, gpu: 0.9, own: new(0.5), want: "cpu utilization 60 % > 50 % (an option of its node group)"},
		{name: "a larger one of its group", flag: 0.1, own: new(0.6)},
		{name: "the GPUs' flag", gpus: "5", flag: 0.9, gpu: 0.5, own: new(0.9), want: "nvidia.com/gpu utilization 60 % > 50 % (--scale-down-gpu-utilization-threshold)"},
		{name: "its group's for GPUs", gpus: "5", flag: 0.9, gpu: 0.9, ownGPUs: new(0.5), want: "nvidia.com/gpu utilization 60 % > 50 % (an option of its node group)"},
		{name: "nothing may be requested", flag: 0, want: "cpu utilization 60 % > 0 % (--scale-down-utilization-threshold)"},
	} {
		s := withGroup()
		s.SetGroup("g", &cluster.NodeGroup{ID: "g", Options: &cluster.GroupOptions{UtilizationThreshold: x.own, GPUUtilizationThreshold: x.ownGPUs}})
		n, p := aNode("n"), testkit.Pod("p").Req("cpu", "2400m")
		if x.gpus != "" {
			n.Alloc("nvidia.com/gpu", x.gpus)
			p.Req("nvidia.com/gpu", "3")
		}
		i := s.SetNode(s.Schema.ParseNode(n.Obj(), "g"))
		s.Place(s.Schema.ParsePod(p.Obj()), "n")
		c := newCheck(s)
		c.Rules.UtilizationThreshold, c.Rules.GPUUtilizationThreshold = x.flag, x.gpu
		got := ""
		if k := c.Ineligible(s.Node(i)); k != nil {
			got = k.Detail
		}
		if got != x.want {
			t.Errorf("%s: %q, want %q", x.name, got, x.want)
		}
	}
}

// TestPropertyUtilizationIsTheSumOverPods compares what is counted down from the node's total
// with what is counted up from its pods.
func TestPropertyUtilizationIsTheSumOverPods(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := withGroup()
		i := s.SetNode(s.Schema.ParseNode(aNode("n").Obj(), "g"))
		for k := range rapid.IntRange(0, 8).Draw(t, "pods") {
			p := testkit.Pod(fmt.Sprint(k)).Req("cpu", fmt.Sprint(rapid.IntRange(0, 1500).Draw(t, "cpu"), "m"), "memory", fmt.Sprint(rapid.IntRange(0, 3000).Draw(t, "memory"), "Mi"))
			switch rapid.IntRange(0, 3).Draw(t, "kind") {
			case 0:
				p.Owner("apps/v1", "DaemonSet", "d")
			case 1:
				p.Annotate(v1.MirrorPodAnnotationKey, "")
			case 2:
				p.Terminating()
			}
			s.Place(s.Schema.ParsePod(p.Obj()), "n")
		}
		c := newCheck(s)
		c.Rules.IgnoreDaemonPods, c.Rules.IgnoreMirrorPods = rapid.Bool().Draw(t, "daemons"), rapid.Bool().Draw(t, "mirrors")
		n := s.Node(i)
		want := 0.0
		for _, id := range []cluster.ResourceID{cluster.CPU, cluster.Memory} {
			var used int64
			of := n.Allocatable.At(id)
			for _, p := range n.Pods {
				switch {
				case c.Rules.IgnoreDaemonPods && p.Daemon(), c.Rules.IgnoreMirrorPods && p.Mirror():
					of -= p.Request.At(id)
				case !drainability.LongTerminating(p, now):
					used += p.Request.At(id)
				}
			}
			want = math.Max(want, float64(used)/float64(max(of, 1)))
		}
		if got, resource := c.Utilization(n); got != want {
			t.Fatalf("utilization %v of %s, want %v", got, resource, want)
		}
	})
}

// BenchmarkIneligible checks 5,000 nodes with 30 pods each.
func BenchmarkIneligible(b *testing.B) {
	s := withGroup()
	for i := range 5000 {
		name := fmt.Sprint("n", i)
		s.SetNode(s.Schema.ParseNode(aNode(name).Obj(), "g"))
		for k := range 30 {
			s.Place(s.Schema.ParsePod(testkit.Pod(fmt.Sprint(name, "-", k)).Req("cpu", "50m", "memory", "100Mi").Obj()), name)
		}
	}
	c := newCheck(s)
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		s.Nodes(func(n *cluster.Node) {
			if k := c.Ineligible(n); k != nil {
				b.Fatal(k.Detail)
			}
		})
	}
}

func mirror() *testkit.PodBuilder {
	b := testkit.Pod("m")
	b.Annotations = map[string]string{v1.MirrorPodAnnotationKey: "x"}
	return b
}
