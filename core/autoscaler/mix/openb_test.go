package mix_test

import (
	"path/filepath"
	"testing"

	"github.com/berthproject/berth/core/autoscaler/mix"
	"github.com/berthproject/berth/internal/test/openbmix"
	"github.com/berthproject/berth/internal/test/testkit"
	"github.com/berthproject/berth/sim/trace/openb"
)

const gpuMilli = 4 // index in openbmix.Resources

// openbInstance has all pods of the openb trace pending at once, and a group for each
// shape of its nodes.
func openbInstance(t testing.TB) (classes []mix.Class, groups []mix.Group) {
	t.Helper()
	trace, err := openb.Load(testkit.OpenbTrace(t, filepath.Join("..", "..", "..")))
	if err != nil {
		t.Fatal(err)
	}
	return openbmix.Instance(trace.Nodes, trace.Pods)
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
	if s.LowerBound < 8470.5 {
		t.Errorf("the lower bound is %.2f, want at least 8470.50, the optimum of the relaxation", s.LowerBound)
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
