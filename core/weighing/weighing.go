// Package weighing has the policies by which a pod that could have others leave a node
// preempts at once, waits for a node that is coming, or has one bought; and what it costs.
//
// This file has what an operator sets. result.go has the costs, and how they are written
// down. Nothing here knows of pods or nodes: core/weigh.go asks.
package weighing

import "time"

// Policy says what a pod does that could preempt.
type Policy string

// The policies.
const (
	// PreemptFirst preempts unless a node that is coming takes the pod.
	PreemptFirst Policy = "preempt-first"
	// BuyFirst preempts when no node group would help, or a bought node takes too long.
	BuyFirst Policy = "buy-first"
	// Cheapest compares the price of a node with what preemption costs.
	Cheapest Policy = "cheapest"
)

// Policies are all policies, the default first.
func Policies() []Policy { return []Policy{PreemptFirst, BuyFirst, Cheapest} }

// Config is what a profile says about its pods that could preempt. Zero is a value: start from
// Default.
type Config struct {
	Policy Policy
	// MaxWait is how long such a pod waits at most for a node, from when it first could have
	// preempted. PreemptFirst doesn't read it.
	MaxWait time.Duration
	// LaunchTimes shortens the wait for an ordered node to so many times the median of the
	// observed launches of its group, from the order. Without such a launch MaxWait holds.
	LaunchTimes float64
	Costs       Costs
}

// Costs are the weights by which Cheapest compares. Money is in the unit of the node groups'
// prices; what a pod is worth an hour is as the price expander has it.
type Costs struct {
	// PerVictim is what it costs that a pod is preempted, whatever it did.
	PerVictim float64
	// MaxLostHours bounds the work that a victim loses: it has run for so long at most.
	MaxLostHours float64
	// PriorityWeight makes a victim's cost 1 + PriorityWeight × priority/1000 times as high;
	// a priority below 0 counts as 0.
	PriorityWeight float64
	// NodeHours is for how long a bought node is paid.
	NodeHours float64
	// WaitWeight is what an hour of waiting costs, in the worth of an hour of the pod.
	WaitWeight float64
}

// Default returns the defaults of a profile.
func Default() Config {
	return Config{
		Policy: PreemptFirst, MaxWait: 5 * time.Minute, LaunchTimes: 2,
		Costs: Costs{PerVictim: 0.01, MaxLostHours: 24, NodeHours: 1, WaitWeight: 1},
	}
}

// Until returns until when a pod waits that asked at one time, and for which a node was
// ordered, or found among those that are coming, at another; launch is the median of its
// group's launches, 0 when there is none.
func (c *Config) Until(asked, ordered time.Time, launch time.Duration) time.Time {
	until := asked.Add(c.MaxWait)
	if launch > 0 {
		if sooner := ordered.Add(time.Duration(c.LaunchTimes * float64(launch))); sooner.Before(until) {
			return sooner
		}
	}
	return until
}
