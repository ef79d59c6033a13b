package report

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/berthproject/berth/core"
	"github.com/berthproject/berth/core/engine"
	"github.com/berthproject/berth/core/step"
)

// This file writes the report of a shadow as text; shadowOf puts it into words. The web page has the same
// (ui/src/pages/shadow.tsx): what is added to one is added to the other.

// Shadow writes a shadow's report as text; at is when it was asked for.
func Shadow(w io.Writer, r *core.ShadowReport, at time.Time) error {
	v := shadowOf(r, at)
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n%s\n", v.Title, v.Period)
	for _, n := range v.Notes {
		fmt.Fprintf(&b, "note: %s\n", n)
	}
	for _, t := range v.Tables {
		fmt.Fprintf(&b, "\n%s\n", t.Title)
		tw := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
		if len(t.Head) > 0 {
			fmt.Fprintf(tw, "  %s\n", strings.ToUpper(strings.Join(t.Head, "\t")))
		}
		for _, row := range t.Rows {
			fmt.Fprintf(tw, "  %s\n", strings.Join(row, "\t"))
		}
		_ = tw.Flush()
	}
	writeDifferences(&b, "Largest differences", v.Differences)
	writeDifferences(&b, "Largest node differences by price", v.NodeDifferences)
	_, err := io.WriteString(w, b.String())
	return err
}

// writeDifferences numbers the differences from 1, the largest first, and leaves the title out when
// there are none.
func writeDifferences(b *strings.Builder, title string, list []shadowDifference) {
	if len(list) > 0 {
		fmt.Fprintf(b, "\n%s\n", title)
	}
	for i, d := range list {
		fmt.Fprintf(b, "%2d. %s  %s\n", i+1, d.At, d.What)
		for _, line := range d.Why {
			fmt.Fprintf(b, "    %s\n", line)
		}
	}
}

// shadowView is a shadow's report in words.
type shadowView struct {
	Title, Period string
	// Notes come before any figure: each is a reason to read a figure with care.
	Notes       []string
	Tables      []shadowTable
	Differences []shadowDifference
	// NodeDifferences is empty for a shadow without a provider.
	NodeDifferences []shadowDifference
}

// shadowTable is a table whose Head is empty when its rows explain themselves; otherwise each row
// has as many cells as the head, or the last of them are missing.
type shadowTable struct {
	Title string
	Head  []string
	Rows  [][]string
}

// shadowDifference is one difference: what happened on one line, and the reasons below it.
type shadowDifference struct {
	At, What string
	Why      []string
}

// shadowOf puts a report into words. Shares of no pods are a dash, not 0 % or 100 %.
func shadowOf(r *core.ShadowReport, at time.Time) *shadowView {
	v := &shadowView{Title: "Shadow report: another scheduler's placements compared with Berth's"}
	if r.Since.IsZero() {
		v.Period = "as of " + at.UTC().Format(time.DateTime) + " UTC; nothing compared yet"
	} else {
		v.Period = fmt.Sprintf("pods from %s to %s, as of %s UTC", r.Since.UTC().Format(time.DateTime), r.Until.UTC().Format(time.DateTime), at.UTC().Format(time.DateTime))
	}
	v.Notes = shadowNotes(r)
	v.Tables = []shadowTable{agreementTable(r), allowedTable(r), timesTable(r), earlierTable(r)}
	for i := range r.Differences {
		v.Differences = append(v.Differences, differenceOf(&r.Differences[i]))
	}
	if r.Nodes != nil {
		v.addNodes(r.Nodes)
	}
	return v
}

// noPods stands for a share of no pods.
const noPods = "–"

// shadowNotes says what a reader has to know before the figures.
func shadowNotes(r *core.ShadowReport) (notes []string) {
	if only := r.Verdicts[step.OnlyBerth]; r.Compared == 0 && only+r.Waiting > 0 {
		notes = append(notes, fmt.Sprintf("no other scheduler has placed any of the %d pod(s) for which Berth has a node: is one running, and do its profiles have the same names as Berth's?", only+r.Waiting))
	}
	if r.Verdicts[step.NotAllowed] > 0 {
		notes = append(notes, "a node that is not allowed may have been allowed when the other scheduler decided: a label, a taint or a pod that this depends on may have changed before the binding was observed")
	}
	if r.Overtaken > 0 {
		notes = append(notes, fmt.Sprintf("%d of the worse nodes may have been good choices when the other scheduler decided: pods or nodes were added or removed before the binding was observed", r.Overtaken))
	}
	if r.Doubted > 0 {
		notes = append(notes, fmt.Sprintf("%s being judged again: not allowed when observed, possibly before others that it depends on", Count(r.Doubted, "placement")))
	}
	return notes
}

const worseNode = "a worse node"

// agreementTable counts the verdicts. "Placed only by Berth" isn't a placement by the other
// scheduler, so it has no share and stands last.
func agreementTable(r *core.ShadowReport) shadowTable {
	t := shadowTable{Title: "Placements by the other scheduler, judged by the scores of the pod's profile at the time when the binding was observed", Head: []string{"node", "pods", "share"}}
	for _, x := range []struct {
		what string
		v    step.Verdict
	}{{"the node that Berth chooses, or had chosen", step.SameNode}, {"another, equally good node", step.EquallyGood}, {"a better node", step.Better}, {worseNode, step.Worse}, {"a node that a plugin rejects", step.NotAllowed}} {
		n := r.Verdicts[x.v]
		share := noPods
		if r.Compared > 0 {
			share = percent(float64(n) / float64(r.Compared))
		}
		t.Rows = append(t.Rows, []string{x.what, number(n), share})
	}
	worse := slices.IndexFunc(t.Rows, func(row []string) bool { return row[0] == worseNode })
	t.Rows = slices.Insert(t.Rows, worse+1, []string{"  of these, with pods or nodes added or removed before the binding was observed", number(r.Overtaken), ""})
	t.Rows = append(t.Rows, []string{"placed only by Berth", number(r.Verdicts[step.OnlyBerth]), ""})
	return t
}

// allowedTable has the two figures by which a shadow is judged, and the mean loss of score.
func allowedTable(r *core.ShadowReport) shadowTable {
	t := shadowTable{Title: "Summary"}
	if r.Compared == 0 {
		t.Rows = [][]string{{"pods placed by both", "0"}}
		return t
	}
	t.Rows = [][]string{
		{"agreement: same or equally good node", percent(r.Agreement())},
		{"placements allowed by Berth's rules", percent(r.Allowed())},
		{"  of these, found to be allowed after others were observed", number(r.JudgedAgain)},
		{"mean score points below Berth's choice, per pod", fmt.Sprintf("%.1f", float64(r.Short)/float64(r.Compared))},
	}
	return t
}

// timesTable compares times to place. The two aren't measured alike: the other scheduler's end with a
// binding that was observed, Berth's with a decision.
func timesTable(r *core.ShadowReport) shadowTable {
	row := func(who string, q core.ShadowQuantiles) []string {
		if q.Pods == 0 {
			return []string{who, "0", noPods, noPods, noPods, noPods}
		}
		return []string{who, number(q.Pods), wait(q.P50), wait(q.P90), wait(q.P99), wait(q.Max)}
	}
	return shadowTable{Title: "Time to place, from when the pod was first seen (for Berth until its decision, which is not bound)",
		Head: []string{"by", "pods", "p50", "p90", "p99", "max"}, Rows: [][]string{row("other scheduler (bound)", r.Other), row("Berth (decided)", r.Berth)}}
}

// earlierTable shows how Berth's own decisions turned out. The rows that are indented divide the
// first one up.
func earlierTable(r *core.ShadowReport) shadowTable {
	e := &r.Earlier
	return shadowTable{Title: "Which was faster, and how Berth's own decisions turned out (each made as if its earlier ones had been carried out)", Head: []string{"when the binding was observed", "pods"}, Rows: [][]string{
		{"Berth had decided", number(e.Decided)},
		{"  on the same node", number(e.Same)},
		{"  on a node as good as the other's by then", number(e.Equal)},
		{"  on a node worse than the other's by then", number(e.Better)},
		{"  on a node better than the other's by then", number(e.Worse)},
		{"  on a node without room by then: the other scheduler had used it", number(e.NoMore)},
		{"Berth had found no node: in its model all were taken", number(e.NoNode)},
		{"Berth had not tried yet: the other scheduler was faster", number(e.NotYet)},
	}}
}

// differenceOf puts a difference into words.
func differenceOf(c *step.Comparison) shadowDifference {
	d := shadowDifference{At: c.Time.UTC().Format("15:04:05.000")}
	choice := "Berth finds no node"
	if c.BerthNode != "" {
		choice = fmt.Sprintf("Berth chooses %s (%d)", c.BerthNode, c.BerthScore)
	}
	switch c.Verdict {
	case step.NotAllowed:
		d.What = fmt.Sprintf("%s was placed on %s, which is not allowed; %s", c.Pod, c.Node, choice)
		why := c.Reason
		if c.Plugin != "" {
			why = c.Plugin + ": " + why
		}
		d.Why = append(d.Why, why)
	case step.OnlyBerth:
		d.What = fmt.Sprintf("%s was placed only by Berth, on %s", c.Pod, c.BerthNode)
		d.Why = append(d.Why, c.Reason)
	default:
		d.What = fmt.Sprintf("%s was placed on %s (%d); %s", c.Pod, c.Node, c.Score, choice)
		d.Why = append(d.Why, scoresApart(c)...)
	}
	if e := c.Earlier; e != nil && c.Verdict != step.OnlyBerth {
		switch {
		case e.Node == "":
			d.Why = append(d.Why, fmt.Sprintf("Berth had found no node after %s: %s", wait(e.Took), e.Why))
		case e.Fits:
			d.Why = append(d.Why, fmt.Sprintf("Berth had chosen %s after %s; the other scheduler's binding was observed after %s", e.Node, wait(e.Took), wait(c.Took)))
		default:
			d.Why = append(d.Why, fmt.Sprintf("Berth had chosen %s after %s, which had no room when the other scheduler's binding was observed after %s", e.Node, wait(e.Took), wait(c.Took)))
		}
	}
	return d
}

// scoresApart returns, plugin by plugin, where the scores of the two nodes differ. It returns nothing
// for differences that are not among the largest: only these come with scores.
func scoresApart(c *step.Comparison) (out []string) {
	berth := map[string]engine.PluginScore{}
	for _, s := range c.BerthScores {
		berth[s.Plugin] = s
	}
	for _, s := range c.Scores {
		if b := berth[s.Plugin]; b.Score != s.Score {
			out = append(out, fmt.Sprintf("%s gives %s %d and %s %d", s.Plugin, c.Node, s.Score, c.BerthNode, b.Score))
		}
	}
	return out
}

// wait writes how long something took. Times are those of Steps, which take less than a
// millisecond themselves.
func wait(d time.Duration) string {
	switch {
	case d < time.Millisecond:
		return "<1ms"
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	}
	return d.Round(10 * time.Millisecond).String()
}
