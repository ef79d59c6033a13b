package sim_test

import (
	"path/filepath"
	"testing"

	"github.com/berthproject/berth/sim/scenario"
)

// TestAPriceFileMakesCostChoose plays examples/prices, whose provider tells no prices, with the price file
// and without: with it spot nodes are bought, which waste more and cost a third less.
func TestAPriceFileMakesCostChoose(t *testing.T) {
	with := playExample(t, "prices/batch")
	without := playExample(t, "prices/batch", "    nodePrices: prices.yaml\n", "")
	if with.Nodes.Peak != 27 || without.Nodes.Peak != 20 {
		t.Errorf("%d nodes with the price file and %d without, want 27 and 20", with.Nodes.Peak, without.Nodes.Peak)
	}
	if with.Cost > without.Cost*0.7 {
		t.Errorf("%.2f with the price file and %.2f without, want at most 0.7 of that", with.Cost, without.Cost)
	}
}

// TestPricesOfAPolicy has groups that a price file matches or doesn't, and whose provider tells a price or
// not.
func TestPricesOfAPolicy(t *testing.T) {
	runs, err := scenario.Load([]string{"../examples/prices/batch.yaml"})
	if err != nil {
		t.Fatal(err)
	}
	run := runs[0]
	groups := map[string]*scenario.NodeGroup{}
	for i := range run.Spec.NodeGroups {
		groups[run.Spec.NodeGroups[i].Name] = &run.Spec.NodeGroups[i]
	}
	other := *groups["memory"]
	other.Template.Labels = nil
	told := other
	told.PriceHidden = false
	for name, x := range map[string]struct {
		group *scenario.NodeGroup
		want  float64
	}{
		"spot": {groups["spot"], 0.22}, "on-demand": {groups["on-demand"], 0.68}, "discounted": {groups["memory"], 0.45},
		"hidden": {&other, 0}, "told": {&told, 0.45},
	} {
		if got := run.PriceTold(x.group); got != x.want {
			t.Errorf("%s: Berth is told %v, want %v", name, got, x.want)
		}
	}
}

// TestBothPoliciesOfTheExample are the flags of its scenario, with its price file and without.
func TestBothPoliciesOfTheExample(t *testing.T) {
	folder := "../examples/prices"
	runs, err := scenario.Load([]string{filepath.Join(folder, "batch.yaml"), filepath.Join(folder, "with-prices.yaml"), filepath.Join(folder, "without-prices.yaml")})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []int{3, 0} {
		if got := runs[i].Prices; (want > 0) != (got != nil) || got != nil && got.Rules() != want {
			t.Errorf("run %s has prices %v, want %d rules", runs[i].Name, got, want)
		}
	}
}
