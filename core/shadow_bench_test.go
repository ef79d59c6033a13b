package core_test

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/berthproject/berth/core"
	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/internal/test/testkit"
)

// BenchmarkShadow is what a shadow computes for one pod at 5,000 nodes with 50,000 pods: the
// decision, and the comparison when another scheduler has placed it. Pods are of 50 Deployments,
// spread over zones and hosts. heap-MB is what both models hold, pods and nodes included.
func BenchmarkShadow(b *testing.B) {
	const nodes, deployments = 5000, 50
	s := newShadow(b, func(*core.Config) {})
	var in []step.Input
	for i := range nodes {
		name := fmt.Sprintf("n%04d", i)
		in = append(in, step.NodeSet{Node: testkit.Node(name).Alloc("cpu", "32", "memory", "128Gi", "pods", "110").Label(v1.LabelHostname, name).Zone(string(rune('a' + i%3))).Obj()})
	}
	pod := func(i int) *testkit.PodBuilder {
		app := fmt.Sprint("app", i%deployments)
		return testkit.Pod(fmt.Sprint("p", i)).Req("cpu", fmt.Sprintf("%dm", 100+i%deployments), "memory", "256Mi").Label("app", app).
			SpreadSoft(v1.LabelTopologyZone, 1, "app", app).SpreadSoft(v1.LabelHostname, 1, "app", app)
	}
	for i := range 10 * nodes {
		in = append(in, step.PodSet{Pod: pod(i).On(fmt.Sprintf("n%04d", i%nodes)).Obj()})
	}
	s.step(s.now, in...)
	at := func(i int) string { return fmt.Sprintf("n%04d", i*7919%nodes) }
	next := 10 * nodes
	for range 2 * deployments { // every class is there
		s.step(s.now, set(pod(next))...)
		s.step(s.now, set(pod(next).On(at(next)))...)
		next++
	}
	b.ResetTimer()
	for range b.N {
		s.now = s.now.Add(3 * time.Millisecond)
		if _, err := s.Step(s.now, set(pod(next))...); err != nil {
			b.Fatal(err)
		}
		if _, err := s.Step(s.now, set(pod(next).On(at(next)))...); err != nil {
			b.Fatal(err)
		}
		next++
	}
	b.StopTimer()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	b.ReportMetric(float64(m.HeapAlloc)/1e6, "heap-MB")
	runtime.KeepAlive(s)
}
