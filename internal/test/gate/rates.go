package gate

import (
	"fmt"
	"maps"
	"slices"
)

// LeastRate is how many pods a second Berth must place in each case of the dev cluster's benchmark but
// those of slowCases: what "Kubernetes Scheduler 101" wants of every scenario. Berth's rates are twice to
// seven times as high on two cores, so that other work on the machine seldom brings one below.
const LeastRate = 300

// slowCases are the cases that may have a lower rate, and why.
var slowCases = map[string]string{
	"preemption":                   "each pod has three others leave: two calls for each and their watch events, for which API server and etcd have both cores",
	"preemption-volumes":           "the same as preemption",
	"burst":                        "the nodes come within ten seconds of the order",
	"spread-apps":                  "the nodes come within ten seconds of the order",
	"pod-deletes":                  "100 pods a second go, each of which lets one in",
	"pod-updates":                  "100 gates a second are taken away",
	"node-adds":                    "50 nodes a second come, each of which takes one pod",
	"node-updates":                 "50 nodes a second are uncordoned, each of which takes one pod",
	"gang-preemption":              "each pod has ten others leave: two calls for each and their watch events, for which API server and etcd have both cores",
	"gang-preemption-100":          "the same as gang-preemption",
	"gang-preemption-gangs":        "each pod has five others leave, otherwise as gang-preemption",
	"gang-preemption-gangs-100":    "the same as gang-preemption-gangs",
	"gang-preemption-affinity":     "the same as gang-preemption",
	"gang-preemption-affinity-100": "the same as gang-preemption",
	"devices-empty":                "each pod that is bound goes with its claim, and another comes with one: seven calls beside the scheduler's five",
	"devices-half":                 "the same as devices-empty",
	"devices-full":                 "the same as devices-empty",
	"devices-selector":             "the same as devices-empty",
	"devices-match":                "the same as devices-empty",
}

// TooSlow says which cases place fewer pods a second than LeastRate, and which may do so but weren't
// measured. Without any rate it says nothing.
func TooSlow(measured []Figure) (out []string) {
	cases := map[string]bool{}
	for _, f := range measured {
		if f.Kind != Rate {
			continue
		}
		cases[f.Case] = true
		if _, slow := slowCases[f.Case]; !slow && f.Value < LeastRate {
			out = append(out, fmt.Sprintf("the %s is %.4g, under %d: if other work was on the machine, measure again", f, f.Value, LeastRate))
		}
	}
	if len(cases) == 0 {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(slowCases)) {
		if !cases[name] {
			out = append(out, fmt.Sprintf("%q may have less than %d pods a second, and is no case of devcluster bench", name, LeastRate))
		}
	}
	return out
}
