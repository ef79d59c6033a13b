package weighing_test

import (
	"math"
	"testing"
	"time"

	"github.com/berthproject/berth/core/weighing"
)

// TestCosts holds the formula to examples that a person can check.
func TestCosts(t *testing.T) {
	c := weighing.Costs{PerVictim: 0.01, MaxLostHours: 10, PriorityWeight: 0.5, NodeHours: 2, WaitWeight: 3}
	for _, x := range []struct {
		name string
		got  float64
		want float64
	}{
		{"a victim that has run for an hour", preempting(&c, 0.2, time.Hour, 0), 0.01 + 0.2},
		{"one that has run for longer than counts", preempting(&c, 0.2, 100*time.Hour, 0), 0.01 + 0.2*10},
		{"one whose clock is ahead", preempting(&c, 0.2, -time.Hour, 0), 0.01},
		{"one of priority 2000", preempting(&c, 0.2, time.Hour, 2000), (0.01 + 0.2) * 2},
		{"one of a negative priority", preempting(&c, 0.2, time.Hour, -2000), 0.01 + 0.2},
		{"a quarter of a node", c.NewNode("g", 1, 0.25, 0.1, time.Hour).Cost, 1*2*0.25 + 3*0.1},
		{"a coming node", c.NewNode("g", 0, 0, 0.1, time.Hour).Cost, 3 * 0.1},
		{"a node of which no launch was seen", c.NewNode("g", 0, 0, 0.3, 0).Cost, 3 * 0.3 * 2 / 60},
	} {
		if math.Abs(x.got-x.want) > 1e-12 {
			t.Errorf("%s costs %v, want %v", x.name, x.got, x.want)
		}
	}
}

func preempting(c *weighing.Costs, worth float64, ran time.Duration, priority int32) float64 {
	var p weighing.Preemption
	p.Add(c, worth, ran, priority)
	return p.Cost
}

// TestUntil looks until when pods wait for a node.
func TestUntil(t *testing.T) {
	c := weighing.Config{MaxWait: 5 * time.Minute, LaunchTimes: 2}
	asked := time.Unix(1000, 0)
	for _, x := range []struct {
		name    string
		ordered time.Duration // after it asked
		launch  time.Duration
		want    time.Duration
	}{
		{"no launch was seen", 0, 0, 5 * time.Minute},
		{"launches are short", 10 * time.Second, time.Minute, 130 * time.Second},
		{"launches are long", 10 * time.Second, time.Hour, 5 * time.Minute},
	} {
		if got := c.Until(asked, asked.Add(x.ordered), x.launch).Sub(asked); got != x.want {
			t.Errorf("%s: a pod waits for %s, want %s", x.name, got, x.want)
		}
	}
}
