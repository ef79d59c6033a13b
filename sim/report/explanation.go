package report

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/berthproject/berth/core/step"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/berthproject/berth/core/explain"
)

// This file writes an explanation of berth explain and berth simulate --explain as text:
// where the pod is, what it has been through, where it can't go and where it can.

// Explanation writes why a pod is where it is; when says at what time, in the words that
// the first line is to have.
//
// The outcomes are those of explain.Explanation. "" is that of a pod that has been deleted or has
// ended since the question was asked. Sections without content are left out.
func Explanation(w io.Writer, x *explain.Explanation, when string) error {
	var b strings.Builder
	switch x.Outcome {
	case "":
		fmt.Fprintf(&b, "pod %s no longer exists", x.Pod)
	case "Placed":
		fmt.Fprintf(&b, "pod %s is placed on %s", x.Pod, x.Node)
	case "Fits":
		fmt.Fprintf(&b, "pod %s fits and waits for its turn", x.Pod)
	case "Gated":
		fmt.Fprintf(&b, "pod %s is gated: %s", x.Pod, x.Message)
	default:
		fmt.Fprintf(&b, "pod %s is pending", x.Pod)
	}
	fmt.Fprintf(&b, " (%s", when)
	if x.Queue != "" {
		fmt.Fprintf(&b, ", %s", x.Queue)
	}
	if x.Attempts > 0 {
		b.WriteString(", " + Count(x.Attempts, "attempt"))
	}
	b.WriteString(")\n")
	if x.Outcome == "Placed" && x.Message != "" {
		fmt.Fprintf(&b, "%s\n", x.Message)
	}
	if x.Outcome == "Waits" {
		fmt.Fprintf(&b, "%s\n", x.Message)
		if x.Preemption != "" {
			fmt.Fprintf(&b, "preemption: %s\n", x.Preemption)
		}
	}
	waiting(&b, x)
	rejecting(&b, "Nodes that reject it", x.Reasons)
	details(&b, x)
	if len(x.Candidates) > 0 {
		b.WriteString("\nNodes that fit, with what each plugin adds to the score (in parentheses before normalization and weight):\n")
		candidates(&b, x)
		runnerUp(&b, x)
	}
	if x.Scaling != nil {
		scaling(&b, x.Scaling)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// details writes what nodes lack beyond the plugins' reasons, and the devices that the pod has.
func details(b *strings.Builder, x *explain.Explanation) {
	if len(x.Details) > 0 {
		b.WriteString("\nWhat these nodes lack:\n")
		t := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
		fmt.Fprintln(t, "  NODES\tGROUP\tNODE\tDETAIL")
		for _, d := range x.Details {
			fmt.Fprintf(t, "  %d\t%s\t%s\t%s\n", d.Nodes, d.Group, d.Node, d.Text)
		}
		_ = t.Flush()
	}
	if len(x.Devices) > 0 {
		b.WriteString("\nDevices that it has:\n")
		t := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
		fmt.Fprintln(t, "  CLAIM\tREQUEST\tDRIVER\tPOOL\tDEVICE")
		for _, d := range x.Devices {
			fmt.Fprintf(t, "  %s\t%s\t%s\t%s\t%s\n", d.Claim, d.Request, d.Driver, d.Pool, d.Device)
		}
		_ = t.Flush()
	}
}

// waiting writes what a pod without a node has been through and what it waits for.
// Each line is about one thing that can be true by itself: a pod may be in backoff, nominated and
// waiting for a permission at once. An absent line means that it isn't.
func waiting(b *strings.Builder, x *explain.Explanation) {
	line := func(name string, at *time.Time) {
		if at != nil {
			fmt.Fprintf(b, "%s: %s\n", name, at.UTC().Format("2006-01-02 15:04:05.000"))
		}
	}
	if x.PodGroup != "" {
		fmt.Fprintf(b, "waits with the other members of pod group %s\n", x.PodGroup)
	}
	line("queued", x.Queued)
	line("last attempt", x.Tried)
	line("in backoff until", x.Backoff)
	if x.Nominated != "" {
		fmt.Fprintf(b, "nominated to: %s", x.Nominated)
		if len(x.Victims) > 0 {
			fmt.Fprintf(b, ", waiting for %s to terminate", strings.Join(x.Victims, ", "))
		}
		b.WriteString("\n")
	}
	for _, p := range x.Permissions {
		fmt.Fprintf(b, "waiting for permission of plugin %s until %s\n", p.Plugin, p.Until.UTC().Format("2006-01-02 15:04:05.000"))
	}
	for _, c := range x.WaitsFor {
		fmt.Fprintf(b, "retried when %s (%s)\n", c.Change, c.Plugin)
	}
	for _, k := range x.Reserved {
		fmt.Fprintf(b, "would fit on %s into room that is reserved for %s\n", Count(k.Nodes, "node"), k.For)
	}
	for _, r := range x.Relax {
		fmt.Fprintf(b, "without %s alone it would fit on %s\n", r.Plugin, Count(r.Nodes, "node"))
	}
}

// rejecting writes for which reasons nodes are rejected, below a heading.
func rejecting(b *strings.Builder, heading string, reasons []step.Why) {
	if len(reasons) == 0 {
		return
	}
	fmt.Fprintf(b, "\n%s:\n", heading)
	t := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "  NODES\tPLUGIN\tREASON\tNEAREST")
	for _, r := range reasons {
		fmt.Fprintf(t, "  %d\t%s\t%s\t%s\n", r.Nodes, r.Plugin, r.Message, nearest(r.Short))
	}
	_ = t.Flush()
}

// nearest writes the node that lacks least; "" for no node.
func nearest(s *step.Shortfall) string {
	if s == nil {
		return ""
	}
	return fmt.Sprintf("%s: needs %s %s, has %s available", s.Node, amount(s.Resource, s.Needed), s.Resource, amount(s.Resource, s.Available))
}

// amount writes a quantity in the unit that people use for the resource.
// Values are those of explanations: CPU in millicores, memory and storage in bytes, extended
// resources in pieces.
func amount(name string, v int64) string {
	switch name {
	case "cpu":
		return resource.NewMilliQuantity(v, resource.DecimalSI).String()
	case "memory", "ephemeral-storage":
		return resource.NewQuantity(v, resource.BinarySI).String()
	}
	return fmt.Sprint(v)
}

// candidates writes the scores of the nodes that would take the pod, a column for each
// plugin. All candidates have the same plugins, in the same order.
func candidates(b *strings.Builder, x *explain.Explanation) {
	t := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	fmt.Fprint(t, "  NODE\tSCORE")
	for _, s := range x.Candidates[0].Scores {
		fmt.Fprintf(t, "\t%s", s.Plugin)
	}
	fmt.Fprintln(t)
	for _, c := range x.Candidates {
		fmt.Fprintf(t, "  %s\t%d", c.Node, c.Score)
		for _, s := range c.Scores {
			fmt.Fprintf(t, "\t%d (%d)", s.Score, s.Raw)
		}
		fmt.Fprintln(t)
	}
	_ = t.Flush()
}

// runnerUp writes why a placed pod's node is better than the best of the others, or that it isn't any more: plugins
// that score both alike are left out.
func runnerUp(b *strings.Builder, x *explain.Explanation) {
	if x.Outcome != string(step.Placed) {
		return
	}
	own := slices.IndexFunc(x.Candidates, func(c explain.Candidate) bool { return c.Node == x.Node })
	other := slices.IndexFunc(x.Candidates, func(c explain.Candidate) bool { return c.Node != x.Node })
	switch {
	case own < 0:
		fmt.Fprintf(b, "\nIts node, %s, is not among them: as the cluster is now, the pod would go to %s.\n", x.Node, x.Candidates[0].Node)
		return
	case other < 0:
		fmt.Fprintf(b, "\nNo other node fits.\n")
		return
	}
	mine, best := x.Candidates[own], x.Candidates[other]
	fmt.Fprintf(b, "\n%s scores %d, the best other node, %s, %d", mine.Node, mine.Score, best.Node, best.Score)
	sep := ": "
	for i, s := range mine.Scores {
		if by := s.Score - best.Scores[i].Score; by != 0 {
			fmt.Fprintf(b, "%s%s %+d", sep, s.Plugin, by)
			sep = ", "
		}
	}
	b.WriteString(".\n")
}
