package report

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/berthproject/berth/core/explain"
	"github.com/berthproject/berth/core/step"
)

// This file writes an explanation of berth explain podgroup and berth simulate --explain-podgroup as
// text.

// PodGroup writes where a pod group stands; when says at what time, in the words that the first line
// is to have. Sections without content are left out.
// All texts are for people; -o json has the fields.
func PodGroup(w io.Writer, x *explain.PodGroupExplanation, when string) error {
	var b strings.Builder
	fmt.Fprintf(&b, "pod group %s %s (%s", x.PodGroup, groupStands(x), when)
	if x.Queue != "" {
		fmt.Fprintf(&b, ", %s", x.Queue)
	}
	if x.Attempts > 0 {
		b.WriteString(", " + Count(x.Attempts, "attempt"))
	}
	b.WriteString(")\n")
	if x.Message != "" {
		fmt.Fprintf(&b, "%s\n", x.Message)
	}
	groupAsks(&b, x)
	groupMembers(&b, x)
	// Times that don't apply are nil.
	for _, at := range []struct {
		name string
		at   *time.Time
	}{{"queued", x.Queued}, {"last attempt", x.Tried}, {"in backoff until", x.Backoff}} {
		if at.at != nil {
			fmt.Fprintf(&b, "%s: %s\n", at.name, at.at.UTC().Format("2006-01-02 15:04:05.000"))
		}
	}
	groupRoom(&b, x)
	if len(x.Why) > 0 {
		b.WriteString("\nMembers that wait for reasons of their own:\n")
		t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
		fmt.Fprintln(t, "  MEMBERS\tFIRST\tREASON")
		for _, r := range x.Why {
			fmt.Fprintf(t, "  %d\t%s\t%s\n", r.Members, r.Pod, r.Message)
		}
		_ = t.Flush()
	}
	rejecting(&b, "Nodes that reject the first member without a place, while the places of the others are taken", x.Reasons)
	if len(x.Nodes) > 0 {
		b.WriteString("\nNodes of its members:\n")
		t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
		fmt.Fprintln(t, "  NODE\tMEMBERS")
		for _, n := range x.Nodes {
			fmt.Fprintf(t, "  %s\t%d\n", n.Node, n.Members)
		}
		if more := x.AllNodes - len(x.Nodes); more > 0 {
			fmt.Fprintf(t, "  (%s more)\n", Count(more, "node"))
		}
		_ = t.Flush()
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// groupRoom writes what room is kept for a group, or why none is.
// Pods that end in time may use kept room, which is why its time is shown.
func groupRoom(b *strings.Builder, x *explain.PodGroupExplanation) {
	r := x.Room
	if r == nil {
		if x.RoomMissing != "" {
			fmt.Fprintf(b, "no room is kept: %s\n", x.RoomMissing)
		}
		return
	}
	fmt.Fprintf(b, "room is kept for %s on %s (%s", Count(r.Members, "member"), Count(r.AllNodes, "node"), strings.Join(r.Nodes, ", "))
	if more := r.AllNodes - len(r.Nodes); more > 0 {
		fmt.Fprintf(b, " and %d more", more)
	}
	fmt.Fprintf(b, ") since %s, until %s at the latest", r.Since.Format(time.DateTime), r.Ends.Format(time.DateTime))
	if r.Until != nil {
		fmt.Fprintf(b, "; pods that end before %s may use it", r.Until.Format(time.DateTime))
	}
	b.WriteString("\n")
}

// groupStands says in a few words where a group stands.
func groupStands(x *explain.PodGroupExplanation) string {
	switch {
	case x.Outcome == string(step.Placed) && x.Permitting > 0:
		return "is placed, and its members wait for one another"
	case x.Outcome == string(step.Placed):
		return "is placed"
	case x.Outcome == "Fits":
		return "fits and waits for its turn"
	case x.Outcome == string(step.Gated):
		return "is gated"
	case x.Outcome == "":
		return "has no members"
	case x.Placed > 0:
		return "is placed in part"
	}
	return "is pending"
}

// groupAsks writes what a group asks for, and its condition.
func groupAsks(b *strings.Builder, x *explain.PodGroupExplanation) {
	// Pods may name a group that nobody has created.
	if s := x.Spec; s == nil {
		b.WriteString("there is no PodGroup of this name\n")
	} else {
		b.WriteString("policy: ")
		if s.Gang {
			fmt.Fprintf(b, "gang, minCount %d", s.MinCount)
		} else {
			b.WriteString("basic")
		}
		if s.Topology != "" {
			fmt.Fprintf(b, "; all members on nodes with one value of %s", strings.Join(append(s.Required, s.Topology), " and of "))
		}
		if len(s.Preferred) > 0 {
			fmt.Fprintf(b, "; preferably on nodes with one value of %s", strings.Join(s.Preferred, " and of "))
		}
		if s.Priority != 0 {
			fmt.Fprintf(b, "; priority %d", s.Priority)
		}
		if s.WholeDisruption {
			b.WriteString("; disrupted only as a whole")
		}
		b.WriteString("\n")
	}
	if c := x.Condition; c != nil {
		fmt.Fprintf(b, "PodGroupInitiallyScheduled: %s, %s since %s", c.Status, c.Reason, c.Since.UTC().Format(time.DateTime))
		// The condition's message is often the one that was printed above.
		if c.Message != "" && c.Message != x.Message {
			fmt.Fprintf(b, ": %s", c.Message)
		}
		b.WriteString("\n")
	}
}

// groupMembers writes how many members there are, and where.
// Members with a node count those that wait for permission, too.
func groupMembers(b *strings.Builder, x *explain.PodGroupExplanation) {
	fmt.Fprintf(b, "members: %d with a node", x.Placed)
	if len(x.Domains) > 0 {
		fmt.Fprintf(b, " in %s", strings.Join(x.Domains, ", "))
	}
	if x.Permitting > 0 {
		fmt.Fprintf(b, ", of which %d wait for others until %s", x.Permitting, x.Until.UTC().Format("15:04:05"))
	}
	fmt.Fprintf(b, ", %d without", x.Waiting)
	if x.Fitting > 0 {
		fmt.Fprintf(b, ", of which %d would fit now", x.Fitting)
	}
	if x.Gated > 0 {
		fmt.Fprintf(b, ", %d gated", x.Gated)
	}
	b.WriteString("\n")
}
