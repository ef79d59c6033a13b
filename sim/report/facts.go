package report

import (
	"fmt"
	"maps"
	"slices"

	"github.com/berthproject/berth/sim/scenario"
)

// This file puts a summary into figures for the web page, whose page of a run has the same as the text.

// Fact is one figure of a summary.
type Fact struct {
	Label, Value, Note string
	Bad                bool // a reason to look closer
}

// Facts returns the figures of a summary that matter most.
func Facts(s *scenario.Summary) []Fact {
	return []Fact{
		{"pods completed", number(s.Pods.Completed), fmt.Sprintf("of %d", s.Pods.Total), false},
		{"pods pending at the end", number(s.Pods.Pending), later(s), s.Pods.Pending+s.Pods.ToCome > 0},
		{"arrival to bound, p50", span(s.TimeToBound.P50), "p99 " + span(s.TimeToBound.P99), false},
		{"arrival to running, p50", span(s.TimeToRunning.P50), "p99 " + span(s.TimeToRunning.P99), false},
		{"last pod running after", span(s.TimeToRunning.Max), "", false},
		{"nodes at the peak", number(s.Nodes.Peak), "", false},
		{"launched", number(s.Nodes.Launched), fmt.Sprintf("%d failed, %d cancelled", s.Nodes.FailedLaunches, s.Nodes.CancelledLaunches), s.Nodes.FailedLaunches > 0},
		{"churn", number(s.Churn), "nodes removed within 15 min", false},
		{"node hours", fmt.Sprintf("%.1f", s.NodeHours), untilLastChange(s), false},
		{"cost", fmt.Sprintf("%.2f", s.Cost), untilLastChange(s), false},
		{"utilization, cpu", percent(s.Utilization.CPU), "memory " + percent(s.Utilization.Memory), false},
		{"evicted", number(s.Pods.Evicted), fmt.Sprintf("%d budget violations", s.PDBViolations), s.PDBViolations > 0},
	}
}

// Rows returns all figures of a summary, as the text has them.
func Rows(s *scenario.Summary) []Fact {
	out := make([]Fact, 0, len(rows)+len(s.Decisions))
	for _, r := range rows {
		out = append(out, Fact{Label: r.label, Value: r.value(s)})
	}
	for _, kind := range slices.Sorted(maps.Keys(s.Decisions)) {
		out = append(out, Fact{Label: "decisions " + kind, Value: number(s.Decisions[kind])})
	}
	return out
}

// later says how many pods the run ended before; "" for none.
func later(s *scenario.Summary) string {
	if s.Pods.ToCome == 0 {
		return ""
	}
	return fmt.Sprintf("%d still to come", s.Pods.ToCome)
}

// untilLastChange says up to when the sums over time go. A run goes on for a while after its last change, to see that
// nothing more comes, and its nodes cost more meanwhile.
func untilLastChange(s *scenario.Summary) string {
	return "until the last change, after " + span(s.VirtualSeconds)
}
