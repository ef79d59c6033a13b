package sim_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/drive"
	"github.com/berthproject/berth/sim"
	"github.com/berthproject/berth/sim/scenario"
)

// burstPrices are the node groups of the burst: NAME-CPUS-GIB and their hourly price.
var burstPrices = map[string]float64{"m-4-16": 0.192, "m-8-32": 0.384, "m-16-64": 0.768, "c-8-16": 0.34, "c-16-32": 0.68, "r-8-64": 0.504, "r-16-128": 1.008}

// burst returns a scenario of 3,000 pods of 60 apps with ten shapes, which come within a time from the
// fifth second on. The nodes take 40 to 60 s to launch.
func burst(expander, over string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "apiVersion: berth.dev/v1alpha1\nkind: Scenario\nspec:\n  seed: 1\n  policy: {flags: [--expander=%s]}\n  nodeGroups:\n", expander)
	for _, id := range []string{"m-4-16", "m-8-32", "m-16-64", "c-8-16", "c-16-32", "r-8-64", "r-16-128"} {
		var cpu, memory int
		_, _ = fmt.Sscanf(id[2:], "%d-%d", &cpu, &memory)
		fmt.Fprintf(&b, "  - {name: %s, max: 2000, pricePerHour: %v, launchDelay: {min: 40s, max: 60s}, startup: {min: 5s, max: 15s}, template: {allocatable: {cpu: %dm, memory: %dGi, pods: \"110\"}}}\n", id, burstPrices[id], 1000*cpu-200, memory-1)
	}
	b.WriteString("  workload:\n")
	shapes := []string{"250m, memory: 512Mi", "500m, memory: 1Gi", "500m, memory: 3Gi", "1000m, memory: 2Gi", "1000m, memory: 6Gi", "1500m, memory: 2Gi", "2000m, memory: 4Gi", "2000m, memory: 12Gi", "3000m, memory: 6Gi", "700m, memory: 5Gi"}
	for i := range 60 {
		fmt.Fprintf(&b, "  - {name: app%d, count: 50, arrive: {after: 5s, over: %s}, template: {spec: {containers: [{name: c, resources: {requests: {cpu: %s}}}]}}}\n", i, over, shapes[i*i%10])
	}
	return b.String() + "  end: {at: 10m}\n"
}

// bought is what was ordered for a burst.
type bought struct {
	orders, nodes int
	price         float64       // hourly
	first         time.Duration // of the first order, from when the first pods come
	running       float64       // seconds, p50, from a pod's arrival
}

func buyFor(t *testing.T, expander, over string) (out bought) {
	t.Helper()
	run, err := scenario.Parse("burst.yaml", []byte(burst(expander, over)))
	if err != nil {
		t.Fatal(err)
	}
	w, err := sim.New(run, sim.Options{Hooks: []drive.Hook{drive.HookFunc(func(now time.Time, _ time.Duration, _ []step.Input, r *step.Ready) {
		for _, up := range r.ScaleUps {
			if out.orders++; out.orders == 1 {
				out.first = now.Sub(sim.Epoch) - 5*time.Second
			}
			out.nodes += up.Nodes
			out.price += float64(up.Nodes) * burstPrices[up.Group]
		}
	})}})
	if err != nil {
		t.Fatal(err)
	}
	s, err := w.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if s.Pods.Running != 3000 || s.Nodes.Launched != out.nodes {
		t.Errorf("%d pods run, %d nodes were launched of %d ordered", s.Pods.Running, s.Nodes.Launched, out.nodes)
	}
	out.running = s.TimeToRunning.P50
	return out
}

// TestABurstIsBoughtAsItComesForTheSameMoney has 3,000 pods come over ten seconds and at once. Nodes are
// ordered in many plans as the pods come, without a pause in which more may come: the first order is
// placed within a second, and the fleet is at most 3 % dearer (docs/performance.md).
func TestABurstIsBoughtAsItComesForTheSameMoney(t *testing.T) {
	for _, expander := range []string{"least-waste", "cost"} {
		atOnce, comes := buyFor(t, expander, "0s"), buyFor(t, expander, "10s")
		t.Logf("%s: at once %+v, as it comes %+v", expander, atOnce, comes)
		if comes.price > 1.03*atOnce.price {
			t.Errorf("%s: bought as it comes the nodes cost %.2f an hour, bought at once %.2f", expander, comes.price, atOnce.price)
		}
		if comes.first > time.Second || comes.orders <= atOnce.orders {
			t.Errorf("%s: as it comes there are %d orders, the first after %s; at once there are %d", expander, comes.orders, comes.first, atOnce.orders)
		}
	}
}
