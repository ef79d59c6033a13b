package report

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/berthproject/berth/core/explain"
)

// This file writes what berth explain says about node groups: for a pod that waits, and of the
// groups themselves. Times are UTC.

// scaling writes what node groups do for a pod, section by section: what has been ordered, which node
// is on its way, and what each group answers.
func scaling(b *strings.Builder, x *explain.Scaling) {
	for _, section := range []func(*strings.Builder, *explain.Scaling){
		planned,
		coming,
		groupAnswers,
	} {
		section(b, x)
	}
}

// planned writes whether nodes are bought for the pod, and what was.
// "No scale-up for it now" is about the next plan: an earlier order may be on its way nevertheless.
func planned(b *strings.Builder, x *explain.Scaling) {
	b.WriteString("\nNew nodes:\n")
	if x.NotPlanned != "" {
		fmt.Fprintf(b, "  no scale-up for it now: %s\n", x.NotPlanned)
	}
	if x.Ordered != nil {
		fmt.Fprintf(b, "  last scale-up: %s\n", x.Ordered)
	}
	if x.Event != "" {
		fmt.Fprintf(b, "  last event: %s\n", x.Event)
	}
	if x.Weighed != nil {
		fmt.Fprintf(b, "  instead of preempting: %s\n", x.Weighed)
	}
	if x.NextPlan != nil {
		fmt.Fprintf(b, "  next plan: %s\n", clock(x.NextPlan))
	}
}

// coming writes which node the pod waits for. There are three kinds: one whose removal can be
// cancelled, one that is registered but not usable yet, and one that the provider has been asked for.
func coming(b *strings.Builder, x *explain.Scaling) {
	if x.Coming == nil {
		b.WriteString("  no upcoming node has room for it\n")
		return
	}
	if x.Coming.Stays {
		fmt.Fprintf(b, "  upcoming: %s of %s is being removed; the next plan cancels its removal\n", x.Coming.Node, x.Coming.Group)
		return
	}
	node := fmt.Sprintf("%s of %s, registered", x.Coming.Node, x.Coming.Group)
	if x.Coming.Node == "" {
		node = fmt.Sprintf("a node of %s, not registered yet", x.Coming.Group)
	}
	if x.Coming.Reserved {
		node += ", with room reserved for it"
	}
	fmt.Fprintf(b, "  upcoming: %s; %s\n", node, expectation(&x.Coming.Expectation))
}

// groupAnswers writes a line for each group.
func groupAnswers(b *strings.Builder, x *explain.Scaling) {
	if len(x.Groups) == 0 {
		return
	}
	b.WriteString("\nNode groups:\n")
	t := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "  GROUP\tANSWER\tWHY")
	for i := range x.Groups {
		g := &x.Groups[i]
		fmt.Fprintf(t, "  %s\t%s\t%s\n", g.Group, words(g.Answer), why(g))
	}
	_ = t.Flush()
}

// words returns the answer of a group as people read it. An answer that isn't known here is shown
// as it is: berth explain may be older than the Berth that it asks.
func words(answer string) string {
	switch answer {
	case explain.Bought:
		return "scaled up"
	case explain.Limited:
		return "can't be scaled up"
	case explain.Rejects:
		return "doesn't fit"
	case explain.NotChosen:
		return "not chosen"
	case explain.NotNeeded:
		return "not needed"
	case explain.WouldTake:
		return "would fit"
	}
	return answer
}

// why writes the reasons of a group, with what an empty node of it is short of.
// What is missing counts only where it is more than an empty node has.
func why(g *explain.GroupAnswer) string {
	parts := append([]string{}, g.Reasons...)
	if g.Detail != "" { // it is about the first reason, if there is any
		parts = slices.Insert(parts, min(len(parts), 1), g.Detail)
	}
	for _, m := range g.Missing {
		if m.Needed > m.Available {
			parts = append(parts, fmt.Sprintf("needs %s %s, an empty node has %s", amount(m.Resource, m.Needed), m.Resource, amount(m.Resource, m.Available)))
		}
	}
	return strings.Join(parts, "; ")
}

// expectation writes when a node is expected.
// Estimates come from launches of the same group that this process has seen, so that there are none
// after a restart or in a group that is new.
func expectation(e *explain.Expectation) string {
	if e.Ordered == nil {
		return "ordered before this instance became the leader, so its arrival can't be estimated"
	}
	out := "ordered " + clock(e.Ordered)
	if e.Likely == nil {
		out += "; no launch of the node group has been observed, so its arrival can't be estimated"
	} else {
		out += fmt.Sprintf("; expected %s (p50), late after %s (p90 of %d launches)", clock(e.Likely), clock(e.Late), e.Launches)
	}
	return out + "; given up at " + clock(e.GivenUp)
}

// clock writes a time in UTC to the second.
func clock(t *time.Time) string { return t.UTC().Format("2006-01-02 15:04:05") }

// Groups writes a table of node groups.
// ROOM is by how many nodes a group could grow now, and LIMIT what keeps it from growing at all.
func Groups(w io.Writer, list []explain.GroupExplanation) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "GROUP\tTARGET\tREADY\tLAUNCHING\tMIN\tMAX\tROOM\tLIMIT\tNEXT NODE\tLAST SCALE-UP")
	for i := range list {
		x := &list[i]
		limit, next, order := x.Limit, "-", "-"
		if x.Backoff != nil {
			limit += " until " + clock(&x.Backoff.Until)
		}
		if limit == "" {
			limit = "-"
		}
		if x.Next != nil && x.Next.Likely != nil {
			next = clock(x.Next.Likely)
		} else if x.Next != nil {
			next = "unknown"
		}
		if o := x.Ordered; o != nil {
			order = fmt.Sprintf("%d->%d at %s", o.From, o.To, clock(&o.At))
		}
		fmt.Fprintf(t, "%s\t%d\t%d\t%d\t%d\t%d\t%d\t%s\t%s\t%s\n", x.Group, x.Target, x.Ready, x.Launching, x.Min, x.Max, x.Room, limit, next, order)
	}
	return t.Flush()
}

// Group writes where one node group stands; when says at what time.
func Group(w io.Writer, x *explain.GroupExplanation, when string) error {
	var b strings.Builder
	fmt.Fprintf(&b, "node group %s: target size %d, min %d, max %d (%s)\n", x.Group, x.Target, x.Min, x.Max, when)
	fmt.Fprintf(&b, "  %d ready, %d launching, %d being removed\n", x.Ready, x.Launching, x.Deleting)
	limits(&b, x)
	launches(&b, x)
	if o := x.Ordered; o != nil {
		fmt.Fprintf(&b, "\nLast scale-up: %s\n", o)
		if o.Choice != nil && len(o.Choice.Options) > 0 {
			options(&b, o)
		}
	}
	if f := x.Failed; f != nil {
		fmt.Fprintf(&b, "\nLast failure: %s: %s", clock(&f.At), f.Why)
		if f.Nodes > 0 {
			fmt.Fprintf(&b, " (a scale-up by %s)", Count(f.Nodes, "node"))
		}
		b.WriteByte('\n')
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// limits writes how far a group may grow, and what keeps it from growing further.
// MaxOrder is set while orders come in parts after a failure; it doubles with each that succeeds.
func limits(b *strings.Builder, x *explain.GroupExplanation) {
	if x.Limit == "" {
		fmt.Fprintf(b, "  can grow by %s, then: %s\n", Count(x.Room, "node"), x.NextLimit)
	} else {
		fmt.Fprintf(b, "  can't grow: %s\n", x.Limit)
	}
	if k := x.Backoff; k != nil {
		fmt.Fprintf(b, "  in backoff until %s after a failure of class %s: %s\n", clock(&k.Until), k.Class, k.Reason)
	}
	if x.MaxOrder > 0 {
		fmt.Fprintf(b, "  a scale-up is limited to %s after a failure\n", Count(x.MaxOrder, "node"))
	}
	for _, line := range x.LaunchControl {
		fmt.Fprintf(b, "  launch control: %s\n", line)
	}
}

// launches writes what is launching, and how long that takes.
func launches(b *strings.Builder, x *explain.GroupExplanation) {
	if x.Next != nil {
		fmt.Fprintf(b, "\nLaunching: the oldest %s\n", expectation(x.Next))
	}
	if l := x.Launches; l != nil {
		fmt.Fprintf(b, "\nLaunch time: p50 %s, p90 %s (last %d launches)\n", seconds(l.MedianSeconds), seconds(l.P90Seconds), l.Launches)
	}
	if len(x.Instances) == 0 {
		return
	}
	b.WriteString("\nInstances that are not registered as nodes:\n")
	t := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "  INSTANCE\tNODE\tSTATE\tSINCE")
	for i := range x.Instances {
		n := &x.Instances[i]
		fmt.Fprintf(t, "  %s\t%s\t%s\t%s\n", n.ID, n.Node, n.State, clock(&n.Since))
	}
	_ = t.Flush()
}

// options writes what there was to choose from.
// Wasted is the sum of the unused shares of CPU and memory, from 0 to 2: half of it is the mean.
func options(b *strings.Builder, order *explain.Order) {
	t := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "  OPTION\tNODES\tPODS\tUNUSED\t$/H")
	for i := range order.Choice.Options {
		o := &order.Choice.Options[i]
		name, price := strings.Join(append([]string{o.Group}, o.With...), ", "), "-"
		if o == order.Choice.Of(order.Group) {
			name += " (chosen)"
		}
		if o.Price > 0 {
			price = fmt.Sprintf("%.2f", o.Price)
		}
		fmt.Fprintf(t, "  %s\t%d\t%d\t%.0f %%\t%s\n", name, o.Nodes, o.Pods, 50*o.Wasted, price)
	}
	_ = t.Flush()
}

// seconds writes a number of seconds as a duration, to tenths.
func seconds(s float64) string {
	return time.Duration(s * float64(time.Second)).Round(100 * time.Millisecond).String()
}
