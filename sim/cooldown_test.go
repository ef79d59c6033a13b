package sim_test

import (
	"testing"

	"github.com/berthproject/berth/sim"
	"github.com/berthproject/berth/sim/scenario"
)

// playExample plays a scenario of examples, and holds it to what it expects.
func playExample(t *testing.T, name string) *scenario.Summary {
	t.Helper()
	runs, err := scenario.Load([]string{"../examples/" + name + ".yaml"})
	if err != nil {
		t.Fatal(err)
	}
	w, err := sim.New(runs[0], sim.Options{Check: true})
	if err != nil {
		t.Fatal(err)
	}
	out, err := w.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, why := range out.Check(runs[0].Spec.Expect) {
		t.Errorf("%s: %s", name, why)
	}
	if out.Violations > 0 {
		t.Errorf("%s: %d violations", name, out.Violations)
	}
	return out
}

// TestADelayOfTheClusterCostsWhatOtherGroupsCouldSave plays both scenarios of
// examples/scale-down: while one group keeps growing for six hours, the ten empty nodes of
// another go at once by delays of their own group, and stay by those of the cluster. They
// cost 0.40 an hour each.
func TestADelayOfTheClusterCostsWhatOtherGroupsCouldSave(t *testing.T) {
	got := map[string]*scenario.Summary{}
	for _, name := range []string{"cooldown-per-group", "cooldown-cluster"} {
		got[name] = playExample(t, "scale-down/"+name)
	}
	lost := got["cooldown-cluster"].Cost - got["cooldown-per-group"].Cost
	if want := 10 * 0.40 * 5.5; lost < 0.95*want || lost > 1.05*want {
		t.Errorf("delays of the cluster cost %.2f more than those of each group; want %.2f, 5 %% more or less: ten nodes for five and a half hours", lost, want)
	}
}
