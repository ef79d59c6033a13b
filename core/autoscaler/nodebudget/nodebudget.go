// Package nodebudget bounds how many nodes of a node group may be on their way out at a time,
// for which reasons, and when: what Karpenter calls the disruption budgets of a NodePool. (A
// disruption budget in Berth is a PodDisruptionBudget, which is about pods.)
package nodebudget

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// This file holds a budget: what it says, when it is active, and how it is written.

// Reason is why Berth gives up a node.
type Reason string

// The reasons.
const (
	Empty         Reason = "empty"         // nothing has to be evicted
	Underutilized Reason = "underutilized" // its pods have room on nodes that stay
	Consolidation Reason = "consolidation" // it is replaced, together with others, by cheaper nodes
)

var reasons = []Reason{Empty, Underutilized, Consolidation}

// Budget is how many nodes of each group may be on their way out. The zero value has none go,
// for whatever reason, at any time.
type Budget struct {
	// Nodes is a number of nodes, or with Percent a percentage of the group's, rounded up.
	Nodes   int
	Percent bool
	// Reasons are those that the budget is for; none for all.
	Reasons []Reason
	// Schedule says when the budget becomes active, and Duration for how long it stays so; nil
	// for always.
	Schedule *Schedule
	Duration time.Duration
}

// Active reports whether the budget counts at a time: the schedule has had a time of its own no
// longer ago than Duration.
func (b *Budget) Active(now time.Time) bool {
	if b.Schedule == nil {
		return true
	}
	next := b.Schedule.Next(now.Add(-b.Duration))
	return !next.IsZero() && !next.After(now)
}

// Limit returns how many of a group's nodes may be on their way out.
func (b *Budget) Limit(nodes int) int {
	if !b.Percent {
		return b.Nodes
	}
	return (nodes*b.Nodes + 99) / 100
}

// concerns reports whether the budget is for a reason.
func (b *Budget) concerns(r Reason) bool {
	return len(b.Reasons) == 0 || slices.Contains(b.Reasons, r)
}

// Parse reads a budget such as
//
//	nodes=10%;reasons=underutilized,consolidation;schedule=0 9 * * 1-5;duration=8h
//
// nodes has to be there. An error names the part that is wrong, and what would be accepted.
func Parse(text string) (Budget, error) {
	var b Budget
	given := map[string]bool{}
	for part := range strings.SplitSeq(text, ";") {
		key, value, _ := strings.Cut(strings.TrimSpace(part), "=")
		key, value = strings.TrimSpace(key), strings.TrimSpace(value)
		if given[key] {
			return Budget{}, fmt.Errorf("%s is given twice; give it once", key)
		}
		given[key] = true
		if err := b.set(key, value); err != nil {
			return Budget{}, err
		}
	}
	if !given["nodes"] {
		return Budget{}, fmt.Errorf("the number of nodes is missing; add nodes=5 or nodes=10%%")
	}
	if given["schedule"] != given["duration"] {
		return Budget{}, fmt.Errorf("schedule and duration go together; give both, or neither for a budget that is always active")
	}
	return b, nil
}

// set sets one part.
func (b *Budget) set(key, value string) error {
	var err error
	switch key {
	case "nodes":
		number, percent := strings.CutSuffix(value, "%")
		b.Percent = percent
		if b.Nodes, err = strconv.Atoi(number); err != nil || b.Nodes < 0 || percent && b.Nodes > 100 {
			return fmt.Errorf("nodes is %q; it must be a number of nodes of at least 0, or a whole percentage from 0%% to 100%%", value)
		}
	case "reasons":
		for word := range strings.SplitSeq(value, ",") {
			r := Reason(strings.ToLower(strings.TrimSpace(word)))
			if !slices.Contains(reasons, r) {
				return fmt.Errorf("unknown reason %q; reasons must be one or more of empty, underutilized and consolidation, separated by commas, or left out for all", word)
			}
			b.Reasons = append(b.Reasons, r)
		}
	case "schedule":
		if b.Schedule, err = ParseSchedule(value); err != nil {
			return fmt.Errorf("schedule is %q; %w", value, err)
		}
	case "duration":
		if b.Duration, err = time.ParseDuration(value); err != nil || b.Duration < time.Minute {
			return fmt.Errorf("duration is %q; it must be at least a minute, such as 8h or 1h30m", value)
		}
	default:
		return fmt.Errorf("unknown key %q; the keys are nodes, reasons, schedule and duration, as in nodes=10%%, separated by semicolons", key)
	}
	return nil
}

// String writes the budget as Parse reads it.
func (b Budget) String() string {
	var out strings.Builder
	fmt.Fprintf(&out, "nodes=%d", b.Nodes)
	if b.Percent {
		out.WriteString("%")
	}
	for i, r := range b.Reasons {
		out.WriteString([...]string{";reasons=", ","}[min(i, 1)] + string(r))
	}
	if b.Schedule != nil {
		fmt.Fprintf(&out, ";schedule=%s;duration=%s", b.Schedule, b.Duration)
	}
	return out.String()
}

// MarshalText has recordings hold budgets as people write them.
func (b Budget) MarshalText() ([]byte, error) { return []byte(b.String()), nil }

// UnmarshalText reads what MarshalText writes.
func (b *Budget) UnmarshalText(text []byte) (err error) {
	*b, err = Parse(string(text))
	return err
}
