package term

import (
	"fmt"
	"io"
	"time"

	"github.com/berthproject/berth/sim"
	"github.com/berthproject/berth/sim/report"
)

// This file has the lines that a simulation prints beside its results.

// Progress returns a sim.Options.Progress that writes a line at most once a second of
// wall time: a long run shows that it moves, a short one is silent.
func Progress(notices io.Writer, name string, start time.Time) func(time.Duration, *sim.Stats) {
	lastLine := start
	return func(at time.Duration, s *sim.Stats) {
		if now := time.Now(); now.Sub(lastLine) >= time.Second {
			lastLine = now
			fmt.Fprintf(notices, "%s: virtual %s; pods %d pending, %d bound, %d running, %d completed; nodes %d launching, %d ready\n",
				name, at.Round(time.Second), s.Pending, s.Bound, s.Running, s.Pods.Completed, s.Launching, s.Ready)
		}
	}
}

// Notes writes what is to be known of a scenario before it runs.
func Notes(notices io.Writer, name string, notes []string) {
	for _, n := range notes {
		fmt.Fprintf(report.PrintableWriter(notices), "%s: %s\n", name, n)
	}
}

// maxViolations is how many violations of one run are listed.
const maxViolations = 20

// Violations lists the first violations of a run, and says how many more there are.
func Violations(notices io.Writer, name string, violations []string) {
	notices = report.PrintableWriter(notices)
	for i, v := range violations {
		if i == maxViolations {
			fmt.Fprintf(notices, "%s: … and %d more violations\n", name, len(violations)-maxViolations)
			break
		}
		fmt.Fprintf(notices, "%s: violation %s\n", name, v)
	}
}
