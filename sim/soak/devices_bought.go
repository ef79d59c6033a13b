package soak

import (
	"fmt"
	"math/rand/v2"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berthproject/berth/sim/scenario"
)

// This file draws worlds in which nodes are bought for devices and removed again: groups that may be empty, of which
// the cloud tells the devices or doesn't, whose drivers are late or vanish, and claims that somebody edits.

// boughtFaults are the kinds of faults that these worlds have beside those of other worlds with devices.
var boughtFaults = []string{
	scenario.StockOut, scenario.LaunchFails, scenario.NeverReady, scenario.CloudError, scenario.CloudLost,
	scenario.ClaimEdited, scenario.ClaimEdited, scenario.DevicesWithdrawn, scenario.DevicesLate, scenario.SpotReclaim, scenario.NoTemplate,
}

// GenerateBoughtDevices draws a world like GenerateDevices does, in which groups grow and shrink. The number beside the
// seed makes its draws differ from theirs of the same seed.
func GenerateBoughtDevices(seed uint64) *scenario.Scenario {
	s := GenerateDevices(seed)
	s.Metadata.Name = fmt.Sprintf("bought-devices-%d", seed)
	d := dice{rand.New(rand.NewPCG(seed, 0x626f75676874))}
	sp := &s.Spec
	for i := range sp.NodeGroups {
		g := &sp.NodeGroups[i]
		g.Min, g.Max = d.IntN(2), d.from(2, 6)
		g.Initial = min(d.IntN(3), g.Max)
		g.DevicesTold = d.maybe(70)
	}
	for range d.from(1, 4) {
		sp.Faults = append(sp.Faults, d.boughtFault())
	}
	sp.Policy.Flags = append(sp.Policy.Flags, "--expander="+one(d, "least-waste", "random", "price", "cost"), "--scale-down-utilization-threshold="+one(d, "0.5", "1"))
	if d.maybe(25) {
		sp.Policy.Flags = append(sp.Policy.Flags, "--consolidation")
	}
	return s
}

// boughtFault draws a fault that ends within an hour. A driver that vanishes may be away for longer than a new node
// may take to publish its devices.
func (d dice) boughtFault() scenario.Fault {
	f := scenario.Fault{Kind: one(d, boughtFaults...), From: d.dur(0, 10*time.Minute)}
	f.Until = metav1.Duration{Duration: f.From.Duration + d.dur(time.Minute, 30*time.Minute).Duration}
	switch f.Kind {
	case scenario.StockOut, scenario.NoTemplate:
		return f
	case scenario.DevicesWithdrawn, scenario.DevicesLate:
		f.For = d.dur(time.Minute, 40*time.Minute)
	}
	if scenario.IsEvent(f.Kind) {
		f.PerHour = one(d, 20.0, 60, 200)
	} else {
		f.Rate = one(d, 0.05, 0.3, 0.6)
	}
	return f
}
