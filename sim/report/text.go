// Package report shows the outcome of a run to people: as text, as a
// comparison, as figures for the web page.
//
//	text.go          summaries as text, one or several side by side
//	facts.go         figures for the web page
//	explained.go     which explanations berth simulate prints after a run
//	explanation.go   why a pod is where it is
//	scaling.go       node groups: for a pending pod, and for themselves
//	nodes.go         why nodes are not removed
//	shadow.go        what a shadow has compared
//	shadow_nodes.go  its part about nodes
//	printable.go     no control characters of others
//
// berth explain, berth status and berth top write with the same functions as berth simulate, so
// that the same words stand for the same thing wherever they are read.
//
// What must hold:
//   - nothing is decided or measured here: every value comes from the summary, the explanation or
//     the report that is passed in;
//   - the output depends on these alone, so that equal runs give equal files. Times are UTC, and
//     the time of the question comes from the caller, who knows whether it is virtual;
//   - text goes to its writer in one piece or table by table, and the writer's error is returned.
package report

import (
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/berthproject/berth/sim/scenario"
)

// This file writes summaries as text, one alone or several side by side.

// row is one line of the summary: a label, and how its value is written.
// Values are compared as text: a difference that the rounding hides isn't marked.
type row struct {
	label string
	value func(s *scenario.Summary) string
	// of is the value as a number, nil where the row has several.
	of func(s *scenario.Summary) float64
}

// Count returns a number of things in words; the plural of thing ends in s.
func Count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

func number(n int) string { return strconv.Itoa(n) }

// span writes seconds as a duration, the rounder the longer it is.
// A summary has all times in seconds, as JSON has no durations.
func span(seconds float64) string {
	d := time.Duration(seconds * float64(time.Second))
	switch {
	case d < 10*time.Second:
		return d.Round(10 * time.Millisecond).String()
	case d < time.Hour:
		return d.Round(time.Second).String()
	}
	return strings.TrimSuffix(d.Round(time.Minute).String(), "0s")
}

// quantiles writes them in the order that the labels of rows announce.
func quantiles(q scenario.Quantiles) string {
	return fmt.Sprintf("%s / %s / %s / %s", span(q.P50), span(q.P90), span(q.P99), span(q.Max))
}

// percent writes a share from 0 to 1.
func percent(x float64) string { return fmt.Sprintf("%.1f %%", 100*x) }

// bytes writes a number of bytes in decimal units.
func bytes(x float64) string {
	for _, unit := range []string{"B", "kB", "MB"} {
		if x < 1000 {
			return fmt.Sprintf("%.3g %s", x, unit)
		}
		x /= 1000
	}
	return fmt.Sprintf("%.3g GB", x)
}

// rows are the lines of a summary in their order: pods, then times, nodes and money, then what
// must be 0 in a correct run, and the effort of the run itself. The digest is last: equal digests
// mean that two runs made the same decisions, whatever the wall time was.
var rows = []row{
	{"pods", func(s *scenario.Summary) string {
		pods := fmt.Sprintf("%d: %d bound, %d completed, %d running, %d pending", s.Pods.Total, s.Pods.Bound, s.Pods.Completed, s.Pods.Running, s.Pods.Pending)
		if more := later(s); more != "" {
			pods += "; " + more
		}
		return pods
	}, nil},
	{"evicted, preempted, lost", func(s *scenario.Summary) string {
		return fmt.Sprintf("%d, %d, %d", s.Pods.Evicted, s.Pods.Preempted, s.Pods.Lost)
	}, nil},
	{"arrival to bound (p50/p90/p99/max)", func(s *scenario.Summary) string { return quantiles(s.TimeToBound) }, nil},
	{"arrival to running (p50/p90/p99/max)", func(s *scenario.Summary) string { return quantiles(s.TimeToRunning) }, nil},
	{"arrival to end (p50/p90/p99/max)", func(s *scenario.Summary) string { return quantiles(s.TimeToEnd) }, nil},
	{"nodes", func(s *scenario.Summary) string {
		return fmt.Sprintf("%d at the peak, %d at the end", s.Nodes.Peak, s.Nodes.Final)
	}, nil},
	{"launched, failed, cancelled, removed", func(s *scenario.Summary) string {
		return fmt.Sprintf("%d, %d, %d, %d", s.Nodes.Launched, s.Nodes.FailedLaunches, s.Nodes.CancelledLaunches, s.Nodes.Removed)
	}, nil},
	{"added in vain", func(s *scenario.Summary) string { return Count(s.Nodes.InVain, "node") + " never used" }, func(s *scenario.Summary) float64 { return float64(s.Nodes.InVain) }},
	{"churn", func(s *scenario.Summary) string { return Count(s.Churn, "node") + " removed within 15 min" }, func(s *scenario.Summary) float64 { return float64(s.Churn) }},
	{"added back", func(s *scenario.Summary) string { return Count(s.BoughtBack, "node") + " within 30 min" }, func(s *scenario.Summary) float64 { return float64(s.BoughtBack) }},
	{"drained", func(s *scenario.Summary) string {
		return fmt.Sprintf("%s in %s, %s: %d without a new node for 30s, unavailable for %s in total", Count(s.Drain.Nodes, "node"), span(s.Drain.Duration), Count(s.Drain.Pods, "pod"), s.Drain.Homeless, span(s.Drain.GapSeconds))
	}, nil},
	{"node hours", func(s *scenario.Summary) string { return fmt.Sprintf("%.1f", s.NodeHours) }, func(s *scenario.Summary) float64 { return s.NodeHours }},
	{"GPU hours", func(s *scenario.Summary) string {
		return fmt.Sprintf("%.1f used, %.1f idle", s.GPUHours.Used, s.GPUHours.Idle)
	}, nil},
	{"cost", func(s *scenario.Summary) string { return fmt.Sprintf("%.2f", s.Cost) }, func(s *scenario.Summary) float64 { return s.Cost }},
	{"utilization", func(s *scenario.Summary) string {
		return "cpu " + percent(s.Utilization.CPU) + ", memory " + percent(s.Utilization.Memory)
	}, nil},
	{"peak write rate", func(s *scenario.Summary) string { return bytes(s.PeakWriteRate) + "/s" }, nil},
	{"budget violations", func(s *scenario.Summary) string { return number(s.PDBViolations) }, func(s *scenario.Summary) float64 { return float64(s.PDBViolations) }},
	{"other violations", func(s *scenario.Summary) string { return number(s.Violations) }, func(s *scenario.Summary) float64 { return float64(s.Violations) }},
	{"virtual time until the last change", func(s *scenario.Summary) string { return span(s.VirtualSeconds) }, nil},
	{"wall time", func(s *scenario.Summary) string { return span(s.WallSeconds) }, nil},
	{"digest", func(s *scenario.Summary) string { return s.Digest[:min(len(s.Digest), 16)] }, nil},
}

// Compare writes summaries side by side, or one alone. The last column says by how much the second of two differs from
// the first, and marks a row of other values that differ with ≠. Rows for decisions follow, by the name of their kind:
// one for each kind that any of the runs has.
func Compare(out io.Writer, list ...*scenario.Summary) error {
	t := tabwriter.NewWriter(PrintableWriter(out), 0, 0, 3, ' ', 0)
	line := func(r row) {
		fmt.Fprint(t, r.label)
		for i, s := range list {
			fmt.Fprint(t, "\t", r.value(s))
			if i == len(list)-1 && len(list) > 1 {
				fmt.Fprint(t, "\t", difference(r, list))
			}
		}
		fmt.Fprintln(t)
	}
	line(row{label: "scenario", value: func(s *scenario.Summary) string { return fmt.Sprintf("%s (seed %d)", s.Name, s.Seed) }})
	for _, r := range rows {
		line(r)
	}
	kinds := map[string]bool{}
	for _, s := range list {
		for k := range s.Decisions {
			kinds[k] = true
		}
	}
	for _, k := range slices.Sorted(maps.Keys(kinds)) {
		line(row{"decisions " + k, func(s *scenario.Summary) string { return number(s.Decisions[k]) }, func(s *scenario.Summary) float64 { return float64(s.Decisions[k]) }})
	}
	return t.Flush()
}

// difference returns the last cell of a row: by how much the second run differs from the first, "" for equal ones.
func difference(r row, list []*scenario.Summary) string {
	first := list[0]
	switch {
	case r.label == "scenario" && len(list) == 2:
		return "Δ"
	case r.label == "scenario" || !slices.ContainsFunc(list, func(s *scenario.Summary) bool { return r.value(s) != r.value(first) }):
		return ""
	case r.of == nil || len(list) > 2:
		return "≠"
	}
	from, by := r.of(first), r.of(list[1])-r.of(first)
	out := strconv.FormatFloat(math.Round(by*100)/100, 'f', -1, 64)
	if by > 0 {
		out = "+" + out
	}
	if from != 0 {
		out += fmt.Sprintf(" (%+.1f %%)", 100*by/from)
	}
	return out
}
