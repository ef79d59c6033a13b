package report

import (
	_ "embed" // the page
	"fmt"
	"html/template"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/berthproject/berth/core"
	"github.com/berthproject/berth/core/engine"
	"github.com/berthproject/berth/core/step"
)

// This file writes the report of a shadow, as text and as a page. Both have the same content,
// which shadowOf puts into words. The page is one file that needs no network, and has no script.

//go:embed assets/shadow.html
var shadowText string

var shadowPage = template.Must(template.Must(shared.Clone()).New("shadow").Parse(shadowText))

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
	writeDifferences(&b, "The largest differences", v.Differences)
	writeDifferences(&b, "The largest differences of nodes, by price", v.NodeDifferences)
	_, err := io.WriteString(w, b.String())
	return err
}

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

// ShadowHTML writes a shadow's report as one self-contained page.
func ShadowHTML(w io.Writer, r *core.ShadowReport, at time.Time) error {
	return shadowPage.Execute(w, shadowOf(r, at))
}

// shadowView is a shadow's report in words.
type shadowView struct {
	Title, Period   string
	Notes           []string
	Facts           []fact
	Tables          []shadowTable
	Differences     []shadowDifference
	NodeDifferences []shadowDifference
}

type shadowTable struct {
	Title string
	Head  []string
	Rows  [][]string
}

type shadowDifference struct {
	At, What string
	Why      []string
}

func shadowOf(r *core.ShadowReport, at time.Time) *shadowView {
	v := &shadowView{Title: "What another scheduler did, and what Berth would have done"}
	if r.Since.IsZero() {
		v.Period = "asked at " + at.UTC().Format(time.DateTime) + " UTC; nothing was compared yet"
	} else {
		v.Period = fmt.Sprintf("pods of %s to %s, asked at %s UTC", r.Since.UTC().Format(time.DateTime), r.Until.UTC().Format(time.DateTime), at.UTC().Format(time.DateTime))
	}
	v.Notes = shadowNotes(r)
	agreed, allowed := noPods, noPods
	if r.Compared > 0 {
		agreed, allowed = percent(r.Agreement()), percent(r.Allowed())
	}
	v.Facts = []fact{
		{"agreement", agreed, fmt.Sprintf("of %d pods", r.Compared), false},
		{"allowed by Berth's rules", allowed, fmt.Sprintf("%d not", r.Verdicts[step.NotAllowed]), r.Verdicts[step.NotAllowed] > 0},
		{"time to place, p50", wait(r.Other.P50), "Berth " + wait(r.Berth.P50), false},
		{"time to place, p99", wait(r.Other.P99), "Berth " + wait(r.Berth.P99), false},
		{"Berth's alone", number(r.Verdicts[step.OnlyBerth]), fmt.Sprintf("%d waiting", r.Waiting), false},
	}
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
		notes = append(notes, fmt.Sprintf("no other scheduler has placed any of %d pods that Berth has a node for: does one run, and do its profiles have the names of Berth's?", only+r.Waiting))
	}
	if r.Verdicts[step.NotAllowed] > 0 {
		notes = append(notes, "a node that isn't allowed may have been when the other scheduler decided: a label, a taint or a pod that it depends on can have changed before the binding was seen")
	}
	if r.Overtaken > 0 {
		notes = append(notes, fmt.Sprintf("%d of the worse nodes may have been good ones when the other scheduler decided: pods or nodes came or went before the binding was seen", r.Overtaken))
	}
	if r.Doubted > 0 {
		notes = append(notes, fmt.Sprintf("%d placements are being judged again: they weren't allowed when they were seen, which may have been before others that they depend on", r.Doubted))
	}
	return notes
}

const worseNode = "a worse one"

func agreementTable(r *core.ShadowReport) shadowTable {
	t := shadowTable{Title: "Where pods were put, by the scores of their profile in the cluster as it was when the binding was seen", Head: []string{"node", "pods", "share"}}
	for _, x := range []struct {
		what string
		v    step.Verdict
	}{{"the one that Berth chooses, or had chosen", step.SameNode}, {"another that is as good", step.EquallyGood}, {"a better one", step.Better}, {worseNode, step.Worse}, {"one that a rule rejects", step.NotAllowed}} {
		n := r.Verdicts[x.v]
		share := noPods
		if r.Compared > 0 {
			share = percent(float64(n) / float64(r.Compared))
		}
		t.Rows = append(t.Rows, []string{x.what, number(n), share})
	}
	worse := slices.IndexFunc(t.Rows, func(row []string) bool { return row[0] == worseNode })
	t.Rows = slices.Insert(t.Rows, worse+1, []string{"  of them after pods or nodes came or went before the binding was seen", number(r.Overtaken), ""})
	t.Rows = append(t.Rows, []string{"Berth's alone: not placed by the other", number(r.Verdicts[step.OnlyBerth]), ""})
	return t
}

func allowedTable(r *core.ShadowReport) shadowTable {
	t := shadowTable{Title: "In sum"}
	if r.Compared == 0 {
		t.Rows = [][]string{{"pods that both have placed", "0"}}
		return t
	}
	t.Rows = [][]string{
		{"agreement: the same node or one as good", percent(r.Agreement())},
		{"placements that Berth's rules allow", percent(r.Allowed())},
		{"of them found to be allowed when others were seen", number(r.JudgedAgain)},
		{"points that worse nodes are short of Berth's choice, a pod", fmt.Sprintf("%.1f", float64(r.Short)/float64(r.Compared))},
	}
	return t
}

func timesTable(r *core.ShadowReport) shadowTable {
	row := func(who string, q core.ShadowQuantiles) []string {
		if q.Pods == 0 {
			return []string{who, "0", noPods, noPods, noPods, noPods}
		}
		return []string{who, number(q.Pods), wait(q.P50), wait(q.P90), wait(q.P99), wait(q.Max)}
	}
	return shadowTable{Title: "Time to place, from when the pod was first seen (Berth's is until its decision: nobody binds it)",
		Head: []string{"by", "pods", "p50", "p90", "p99", "max"}, Rows: [][]string{row("the other, bound", r.Other), row("Berth, decided", r.Berth)}}
}

func earlierTable(r *core.ShadowReport) shadowTable {
	e := &r.Earlier
	return shadowTable{Title: "Who was sooner, and what became of Berth's own decisions, which it made as if its earlier ones had come true", Head: []string{"when the binding was seen", "pods"}, Rows: [][]string{
		{"Berth had a node", number(e.Decided)},
		{"  the same node", number(e.Same)},
		{"  as good as the other's by then", number(e.Equal)},
		{"  worse than the other's by then", number(e.Better)},
		{"  better than the other's by then", number(e.Worse)},
		{"  with no room any more: the other had used it", number(e.NoMore)},
		{"Berth had found no node: in its model they were taken", number(e.NoNode)},
		{"Berth hadn't tried yet: the other was sooner", number(e.NotYet)},
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
		d.What = fmt.Sprintf("%s was put on %s, which isn't allowed; %s", c.Pod, c.Node, choice)
		why := c.Reason
		if c.Plugin != "" {
			why = c.Plugin + ": " + why
		}
		d.Why = append(d.Why, why)
	case step.OnlyBerth:
		d.What = fmt.Sprintf("%s is Berth's alone, on %s", c.Pod, c.BerthNode)
		d.Why = append(d.Why, c.Reason)
	default:
		d.What = fmt.Sprintf("%s was put on %s (%d); %s", c.Pod, c.Node, c.Score, choice)
		d.Why = append(d.Why, scoresApart(c)...)
	}
	if e := c.Earlier; e != nil && c.Verdict != step.OnlyBerth {
		switch {
		case e.Node == "":
			d.Why = append(d.Why, fmt.Sprintf("Berth had found no node after %s: %s", wait(e.Took), e.Why))
		case e.Fits:
			d.Why = append(d.Why, fmt.Sprintf("Berth had decided for %s after %s, the other's binding was seen after %s", e.Node, wait(e.Took), wait(c.Took)))
		default:
			d.Why = append(d.Why, fmt.Sprintf("Berth had decided for %s after %s, which had no room when the other's binding was seen after %s", e.Node, wait(e.Took), wait(c.Took)))
		}
	}
	return d
}

// scoresApart says which plugins' scores differ.
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
