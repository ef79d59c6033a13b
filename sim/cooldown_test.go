package sim_test

import (
	"testing"

	"github.com/berthproject/berth/sim/scenario"
)

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
