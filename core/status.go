package core

import (
	"fmt"
	"maps"
	"slices"
)

// Unsettled says what the core still waits for, or holds on to: in a world at
// rest it must be nothing.
func (c *Core) Unsettled() (out []string) {
	for _, m := range c.machines.all() {
		out = append(out, m.Unsettled()...)
	}
	for _, m := range c.scale.machines() {
		out = append(out, m.Unsettled()...)
	}
	return out
}

// Invariants says, a line each, what must be true of the core's own records and isn't:
// each is a defect of Berth's. Tests call it after every Step.
func (c *Core) Invariants() []string {
	out := c.queue.Invariants()
	for _, m := range c.machines.all() {
		out = append(out, m.Invariants()...)
	}
	out = append(out, c.consulting.InvariantsIn(c.queue)...)
	out = append(out, c.binding.InvariantsIn(c.state)...)
	out = append(out, c.preemption.InvariantsIn(c.queue)...)
	out = append(out, c.nomination.InvariantsIn(c.state)...)
	out = append(out, c.reporting.InvariantsIn(c.state)...)
	out = append(out, c.headroom.InvariantsIn(c.state)...)
	out = append(out, c.podGroups.InvariantsIn(c.state)...)
	for _, n := range c.state.Nominations() {
		if homes := c.scale.homes; n.Pod.StandsIn() && !c.headroom.Knows(c.state, n.Pod) && c.podGroups.Named(n.Pod) == "" && (homes == nil || !homes.Knows(n.Pod)) {
			out = append(out, fmt.Sprintf("stand-in %s is nominated to %s, and nobody asks for it", n.Pod.UID, n.Name))
		}
	}
	for _, m := range c.scale.machines() {
		out = append(out, m.Invariants()...)
	}
	if c.scale.deletions != nil {
		out = append(out, c.scale.candidates.InvariantsIn(c.state)...)
		out = append(out, c.scale.deletions.InvariantsIn(c.state)...)
		out = append(out, c.scale.homes.InvariantsIn(c.state)...)
		out = append(out, c.scale.interruptions.InvariantsIn(c.state)...)
	}
	for _, uid := range slices.Sorted(maps.Keys(c.pods)) {
		if c.queue.Get(uid) == nil {
			out = append(out, fmt.Sprintf("pod %s has a record and no item in the queue", uid))
		}
	}
	return out
}

// StaleClasses says, a line each, which pods would be tried as of a class that they aren't signed
// with any more: each is a defect of Berth's. It signs all pods that wait, and decides nothing.
func (c *Core) StaleClasses() (out []string) {
	for _, uid := range slices.Sorted(maps.Keys(c.pods)) {
		item := c.queue.Get(uid)
		if class := c.classOf(item); class != nil && class != c.sched.Class(item.Pod()) {
			out = append(out, fmt.Sprintf("pod %s, %s, would be tried as of a class that it isn't signed with any more", uid, item.Stage()))
		}
	}
	return out
}
