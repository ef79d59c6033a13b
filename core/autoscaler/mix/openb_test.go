package mix_test

import (
	"fmt"
	"path/filepath"
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/berthproject/berth/core/autoscaler/mix"
	"github.com/berthproject/berth/internal/test/testkit"
	"github.com/berthproject/berth/sim/trace/openb"
)

// openbResources are the dimensions of the trace's instance, counted in milli.
var openbResources = []v1.ResourceName{v1.ResourceCPU, v1.ResourceMemory, v1.ResourcePods, openb.GPUCount, openb.GPUMilli}

const gpuMilli = 4 // index in openbResources

// gpuPrices are per hour. A core costs 0.03 and a GiB 0.004.
var gpuPrices = map[string]float64{"": 0, "T4": 0.35, "P100": 0.9, "A10": 1.0, "G2": 1.2, "V100M16": 1.8, "V100M32": 2.2, "G3": 2.5}

// openbInstance has all pods of the openb trace pending at once, and a group for each
// shape of its nodes.
func openbInstance(t testing.TB) (classes []mix.Class, groups []mix.Group) {
	t.Helper()
	trace, err := openb.Load(testkit.OpenbTrace(t, filepath.Join("..", "..", "..")))
	if err != nil {
		t.Fatal(err)
	}
	quantities := func(list v1.ResourceList) (out []int64) {
		for _, name := range openbResources {
			q := list[name]
			out = append(out, q.MilliValue())
		}
		return out
	}
	models := map[openb.Node]bool{}
	var takes []int
	for _, n := range trace.Nodes {
		n.Name = ""
		if models[n] {
			continue
		}
		models[n] = true
		takes = append(takes, len(groups))
		groups = append(groups, mix.Group{
			Price:       0.03*float64(n.CPUMilli)/1000 + 0.004*float64(n.MemoryMiB)/1024 + gpuPrices[n.Model]*float64(n.GPU),
			Allocatable: quantities(n.Object().Status.Allocatable), Room: 10_000,
		})
	}
	at := map[string]int{}
	for _, p := range trace.Pods {
		if len(p.GPUSpec) > 0 {
			t.Fatalf("pod %s asks for models, which this instance doesn't know", p.Name)
		}
		request := quantities(p.Object("x").Spec.Containers[0].Resources.Requests)
		request[2] = 1000
		key := fmt.Sprint(request)
		i, ok := at[key]
		if !ok {
			i = len(classes)
			at[key] = i
			classes = append(classes, mix.Class{Request: request, Takes: takes})
		}
		classes[i].Pods++
	}
	return classes, groups
}

// TestOpenbCostsAtMostFivePercentMoreThanTheLowerBound buys nodes for the real list.
func TestOpenbCostsAtMostFivePercentMoreThanTheLowerBound(t *testing.T) {
	classes, groups := openbInstance(t)
	if len(classes) != 151 || len(groups) != 27 {
		t.Fatalf("got %d classes and %d groups, want 151 and 27", len(classes), len(groups))
	}
	s := mix.Solve(classes, groups)
	verify(t, classes, groups, s)
	t.Logf("price %.2f, lower bound %.2f, ratio %.4f", s.Price, s.LowerBound, s.Price/s.LowerBound)
	if s.LowerBound < 8470 || s.LowerBound > 8471 {
		t.Errorf("the lower bound is %.2f, want 8470.50, the optimum of the relaxation", s.LowerBound)
	}
	for _, b := range s.Nodes {
		needed := false
		for _, c := range b.Pods {
			needed = needed || classes[c.Class].Request[gpuMilli] > 0
		}
		if !needed && groups[b.Group].Allocatable[gpuMilli] > 0 {
			t.Errorf("%+v has GPUs that none of its pods needs", b)
		}
	}
	if s.Price > 1.05*s.LowerBound {
		t.Errorf("the price is %.2f, %.4f of the lower bound %.2f, want at most 1.05", s.Price, s.Price/s.LowerBound, s.LowerBound)
	}
}

func BenchmarkOpenb(b *testing.B) {
	classes, groups := openbInstance(b)
	for b.Loop() {
		s := mix.Solve(classes, groups)
		b.ReportMetric(s.Price/s.LowerBound, "×bound")
	}
}
