package main

import (
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"github.com/berthproject/berth/core/plugins/dynamicresources"
	"github.com/berthproject/berth/internal/test/openbmix"
	"github.com/berthproject/berth/internal/test/testkit"
	"github.com/berthproject/berth/sim/trace/openb"
)

func load(t *testing.T) *openb.Trace {
	t.Helper()
	trace, err := openb.Load(testkit.OpenbTrace(t, filepath.Join("..", "..")))
	if err != nil {
		t.Fatal(err)
	}
	return trace
}

// TestGPUsAllocated: with the strategy Berth allocates what the paper's policy did, and more than it
// does without.
func TestGPUsAllocated(t *testing.T) {
	trace := load(t)
	if testing.Short() {
		trace.Nodes = everyTenth(trace.Nodes)
	}
	part := func(strategy dynamicresources.Strategy, weight int64) float64 {
		percent, err := fillOnce(policy{fill: fillBerth(strategy, weight)}, trace, 1)
		if err != nil {
			t.Fatal(err)
		}
		return percent
	}
	plain, strategy := part(dynamicresources.AsPublished, 2), part(dynamicresources.LeastFragmentation, strategyWeight)
	t.Logf("%.2f %% of the GPUs are allocated, %.2f %% without the strategy", strategy, plain)
	if strategy < 95.4 || strategy <= plain {
		t.Errorf("%.2f %% of the GPUs are allocated, and %.2f %% without the strategy; want at least 95.4 %%, and more", strategy, plain)
	}
}

// everyTenth returns a smaller cluster.
func everyTenth(nodes []openb.Node) (out []openb.Node) {
	for i := 0; i < len(nodes); i += 10 {
		out = append(out, nodes[i])
	}
	return out
}

// TestArrivals: pods come for so many GPUs, each list in an order of its own.
func TestArrivals(t *testing.T) {
	trace := load(t)
	total := gpus(trace.Nodes)
	for seed := range uint64(3) {
		asked := int64(0)
		for _, p := range arriving(trace, rand.New(rand.NewPCG(seed, 0))) {
			asked += p.NumGPU * p.GPUMilli
		}
		if asked > total*arrivals/100 || asked < total*arrivals/100-8000 {
			t.Errorf("pods with seed %d ask for %d of %d thousandths of GPUs, want %d %%", seed, asked, total, arrivals)
		}
	}
}

// TestVariantsCostAtMostFivePercentMoreThanTheLowerBound buys nodes for one variant of each kind; all of
// them are in the table.
func TestVariantsCostAtMostFivePercentMoreThanTheLowerBound(t *testing.T) {
	trace := load(t)
	for i, kind := range openbmix.Variants {
		b := buy(trace, kind, uint64(i))
		if ratio := b.price / b.bound; b.bound <= 0 || ratio > 1.05 {
			t.Errorf("%s: the price is %.2f, %.4f of the lower bound %.2f, want at most 1.05", kind, b.price, ratio, b.bound)
		}
	}
}

// TestMoneyFailsAboveTheRatio: the table is a check when it is told how much more than the bound a variant
// may cost.
func TestMoneyFailsAboveTheRatio(t *testing.T) {
	trace := load(t)
	trace.Pods = trace.Pods[:200]
	for atMost, want := range map[float64]bool{0: true, 10: true, 0.5: false} {
		var out strings.Builder
		if err := writeMoney(t.Context(), &out, trace, &options{seeds: 1, atMost: atMost}); (err == nil) != want {
			t.Errorf("at most %g: %v\n%s", atMost, err, &out)
		}
	}
}
