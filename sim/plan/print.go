package plan

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/berthproject/berth/sim/report"
)

// This file writes purchases and estimates for people.

// Print writes a line for each purchase. All have the same lower bound, which
// depends on no expander; a purchase for fewer pods isn't compared with it.
func Print(out io.Writer, all []*Purchase) error {
	out = report.PrintableWriter(out)
	bound := "prices unknown"
	switch {
	case all[0].LowerBound == 0 && all[0].PricePerHour > 0:
		bound = "lower bound unknown"
	case all[0].LowerBound > 0:
		bound = fmt.Sprintf("lower bound $%.2f/h for %d of them", all[0].LowerBound, all[0].Possible)
	}
	fmt.Fprintf(out, "%s pending; %s\n", report.Count(all[0].Pending, "pod"), bound)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "expander\tnodes\t$/h\t× bound\tpods placed\tpods not helped\ttime\t")
	for _, p := range all {
		ratio := "-"
		if p.LowerBound > 0 && p.Placed >= p.Possible {
			ratio = fmt.Sprintf("%.3f", p.PricePerHour/p.LowerBound)
		}
		took := time.Duration(p.Seconds * float64(time.Second)).Round(10 * time.Millisecond)
		fmt.Fprintf(w, "%s\t%d\t%.2f\t%s\t%d\t%d\t%s\t\n", p.Expander, p.Nodes, p.PricePerHour, ratio, p.Placed, p.NoHelp, took)
	}
	return w.Flush()
}

// PrintJSON writes purchases, with the estimates if they are asked for.
func PrintJSON(out io.Writer, all []*Purchase, estimates bool) error {
	if estimates {
		return report.JSON(out, map[string]any{"purchases": all, "estimates": all[0].Estimates})
	}
	return report.JSON(out, all)
}

// PrintEstimates writes a table for each class.
func PrintEstimates(out io.Writer, list []Estimate) error {
	out = report.PrintableWriter(out)
	for _, e := range list {
		fmt.Fprintf(out, "\n%s like %s\n", report.Count(e.Pods, "pod"), e.Pod)
		w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
		fmt.Fprintln(w, "  group\tnodes\tpods that fit\tunused")
		for i := range e.Groups {
			g := &e.Groups[i]
			var notes []string
			for _, x := range g.shares {
				notes = append(notes, fmt.Sprintf("%s %.0f%%", x.Resource, 100*x.Share()))
			}
			if len(g.With) > 0 {
				notes = append(notes, "some of the nodes from "+strings.Join(g.With, " and "))
			}
			fmt.Fprintf(w, "  %s\t%d\t%d\t%s\n", g.Group, g.Nodes, g.Fits, strings.Join(append(notes, g.Why...), ", "))
		}
		if err := w.Flush(); err != nil {
			return err
		}
	}
	return nil
}
