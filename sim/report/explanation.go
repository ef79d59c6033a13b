package report

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/berthproject/berth/core"
	"github.com/berthproject/berth/sim"
)

// Explanation writes why a pod is where it is, for people.
func Explanation(w io.Writer, x *sim.Explained) error {
	var b strings.Builder
	switch x.Outcome {
	case "Placed":
		fmt.Fprintf(&b, "pod %s is placed on %s", x.Pod, x.Node)
	case "Fits":
		fmt.Fprintf(&b, "pod %s fits and waits for its turn", x.Pod)
	case "Gated":
		fmt.Fprintf(&b, "pod %s is held: %s", x.Pod, x.Message)
	default:
		fmt.Fprintf(&b, "pod %s waits", x.Pod)
	}
	fmt.Fprintf(&b, " (virtual time %s", x.At.Round(time.Millisecond))
	if x.Attempts > 0 {
		fmt.Fprintf(&b, ", %d attempts", x.Attempts)
	}
	b.WriteString(")\n")
	if x.Outcome == "Waits" {
		fmt.Fprintf(&b, "%s\n", x.Message)
	}
	if len(x.Reasons) > 0 {
		b.WriteString("\nWhere it can't go:\n")
		t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
		fmt.Fprintln(t, "  NODES\tRULE\tREASON\tNEAREST")
		for _, r := range x.Reasons {
			fmt.Fprintf(t, "  %d\t%s\t%s\t%s\n", r.Nodes, r.Plugin, r.Message, nearest(r.Short))
		}
		_ = t.Flush()
	}
	if len(x.Candidates) > 0 {
		b.WriteString("\nWhere it can, with what each rule adds to the score (before normalising and weight):\n")
		candidates(&b, x)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func nearest(s *core.Shortfall) string {
	if s == nil {
		return ""
	}
	return fmt.Sprintf("%s needs %s of %s, %s is there", s.Node, amount(s.Resource, s.Needed), s.Resource, amount(s.Resource, s.Available))
}

// amount writes a quantity in the unit that people use for the resource.
func amount(name string, v int64) string {
	switch name {
	case "cpu":
		return resource.NewMilliQuantity(v, resource.DecimalSI).String()
	case "memory", "ephemeral-storage":
		return resource.NewQuantity(v, resource.BinarySI).String()
	}
	return fmt.Sprint(v)
}

func candidates(b *strings.Builder, x *sim.Explained) {
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
