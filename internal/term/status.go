package term

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/berthproject/berth/core/explain"
	"github.com/berthproject/berth/edge/observe"
	"github.com/berthproject/berth/sim/report"
)

// This file is the screen of berth status: where a live cluster stands. It is made of sections, which
// berth top shows too.

// PrintStatus writes the screen of berth status; called is what the user has typed to call this
// program.
func PrintStatus(out io.Writer, s *observe.Status, called string) error {
	var b strings.Builder
	p := paletteFor(out)
	for _, l := range statusLines(s, called) {
		fmt.Fprintln(&b, l.text(p, 0))
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// statusLines returns the screen of berth status, section by section, with an empty line between two
// that have something.
func statusLines(s *observe.Status, called string) (out []line) {
	for i, section := range [][]line{headLines(s), priceLines(s), pendingLines(s, maxPendingLines), nowLines(s, maxNowLines), nodeLines(s), decisionLines(s)} {
		if i > 0 && len(section) > 0 {
			out = append(out, nil)
		}
		out = append(out, section...)
	}
	return append(out, nil, say(faint, "To see why: %s explain pod|node|group NAME", called))
}

// What a section of the screen has at most.
const (
	maxPendingLines = 10
	maxNowLines     = 12
	maxReasonLines  = 10
	maxUnpriced     = 5 // groups without a price, on one line
)

// headLines sum up.
func headLines(s *observe.Status) []line {
	pending := 0
	for _, p := range s.Pending {
		pending += p.Pods
	}
	pods := line{{"pods   ", strong}, {fmt.Sprintf("%d on nodes, ", s.Placed), plain}, {fmt.Sprintf("%d pending", pending), colourIf(pending > 0, busy)}}
	n := &s.Nodes
	nodes := line{{"nodes  ", strong}, {fmt.Sprintf("%d ready", n.Ready), plain}}
	if n.NotReady > 0 {
		nodes = append(nodes, cell{fmt.Sprintf(", %d not ready", n.NotReady), bad})
	}
	if n.Unschedulable > 0 {
		nodes = append(nodes, cell{fmt.Sprintf(", %d cordoned", n.Unschedulable), busy})
	}
	if x := n.ScaleDown; x != nil {
		nodes = append(nodes, cell{moneyOf(x), plain})
	}
	return []line{say(strong, "Berth %s%s, %s UTC", s.Version, rulesOf(s), s.At.UTC().Format(time.DateTime)), pods, nodes}
}

// rulesOf says which rules are followed; "" for a Berth from before there were two versions of them.
func rulesOf(s *observe.Status) string {
	if s.Rules == "" {
		return ""
	}
	return " (rules of kube-scheduler " + s.Rules + ")"
}

// moneyOf says what all nodes cost, and what could go of that. "" without prices.
func moneyOf(x *explain.NodesExplanation) string {
	if x.Price == 0 {
		return ""
	}
	out := fmt.Sprintf("; $%.2f/h", x.Price)
	could := explain.NodesSum{}
	for _, g := range x.Groups {
		could.Nodes, could.Price = could.Nodes+g.Candidates.Nodes, could.Price+g.Candidates.Price
	}
	if could.Nodes > 0 {
		out += fmt.Sprintf(", of which %s at $%.2f/h removable", report.Count(could.Nodes, "node"), could.Price)
	}
	return out
}

// priceLines are what people should know of the prices of nodes; none when there is nothing.
func priceLines(s *observe.Status) (out []line) {
	if p := s.NodePrices; p != nil {
		if p.Currency != "USD" {
			out = append(out, say(faint, "$ stands for %s, the currency of --node-prices.", p.Currency))
		}
		if p.Error != "" {
			out = append(out, say(bad, "The file of --node-prices can't be used, and the old prices hold: %s", strings.Join(strings.Fields(p.Error), " ")))
		}
	}
	if x := s.Unpriced; x != nil {
		groups := strings.Join(x.Groups[:min(len(x.Groups), maxUnpriced)], ", ")
		if more := x.Without - maxUnpriced; more > 0 {
			groups += fmt.Sprintf(" and %d more", more)
		}
		out = append(out, say(busy, "No price for %d of %s, needed by %s: %s (docs/prices.md)", x.Without, report.Count(x.Of, "node group"), strings.Join(x.NeededBy, " and "), groups))
	}
	return out
}

// pendingWords are the states of pods without a node as people read them.
var pendingWords = map[string]string{
	explain.PendingBinding: "being bound", explain.PendingGated: "gated", explain.PendingPreempting: "waiting for preemption victims to terminate",
	explain.PendingNominated: "waiting for the node it is nominated to", explain.PendingNodeComing: "waiting for an upcoming node", explain.PendingUntried: "about to be scheduled",
	explain.PendingRejected: "fits no node", explain.PendingUnmanaged: "assigned to another scheduler",
}

// pendingLines are the pods without a node by what they wait for.
func pendingLines(s *observe.Status, limit int) []line {
	if len(s.Pending) == 0 {
		return []line{say(good, "No pending pods.")}
	}
	rows := []line{{{"PODS", faint}, {"REASON", faint}, {"LONGEST", faint}, {"SINCE", faint}}}
	for _, p := range s.Pending[:min(len(s.Pending), limit)] {
		rows = append(rows, line{{fmt.Sprint(p.Pods), strong}, {cut(whyPending(&p), 70), colourIf(p.State == explain.PendingRejected, busy)}, {cut(p.Pod, 45), plain}, {ago(s.At, p.Since), faint}})
	}
	return titled("Pending pods", table(rows), len(s.Pending)-limit)
}

// whyPending returns what pods without a node wait for.
func whyPending(p *explain.PendingPods) string {
	switch {
	case p.State == explain.PendingRejected && p.Plugin != "":
		return p.Reason + " (" + p.Plugin + ")"
	case p.State == explain.PendingRejected:
		return p.Reason
	case p.Reason != "":
		return pendingWords[p.State] + ": " + p.Reason
	}
	return pendingWords[p.State]
}

// nowLines are what is being done.
func nowLines(s *observe.Status, limit int) []line {
	rows := nowRows(s)
	if len(rows) == 0 {
		return []line{say(faint, "No scale-up, node removal or preemption in progress.")}
	}
	return titled("Now", table(rows[:min(len(rows), limit)]), len(rows)-limit)
}

// nowRows are a row for each thing that is being done or held back: a verb, the object, and until
// when.
func nowRows(s *observe.Status) (rows []line) {
	for _, b := range s.Buying {
		what := fmt.Sprintf("%s of %s, for %s", report.Count(b.Nodes, "node"), b.Group, report.Count(b.Pods, "pod"))
		if b.Price > 0 {
			what += fmt.Sprintf(", $%.2f/h", b.Price)
		}
		rows = append(rows, line{{"scaling up", good}, {what, plain}, {expected(b.Next), faint}})
	}
	for _, g := range s.BackingOff {
		rows = append(rows, line{{"backoff", bad}, {fmt.Sprintf("%s: %s", g.Group, cut(g.Reason, 70)), plain}, {"until " + g.Until.UTC().Format(time.TimeOnly), faint}})
	}
	for _, g := range s.CoolingDown {
		rows = append(rows, line{{"cooldown", busy}, {fmt.Sprintf("%s: %s removable; %s", g.Group, report.Count(g.Nodes, "node"), g.Why), plain}, {"until " + g.Until.UTC().Format(time.TimeOnly), faint}})
	}
	for _, n := range s.Leaving {
		how, left := report.HowFar(n.Step)
		if left != "" {
			left = "pods: " + left
		}
		rows = append(rows, line{{"removing", busy}, {fmt.Sprintf("%s: %s", n.Node, how), plain}, {left, faint}})
	}
	for _, p := range s.Preempting {
		rows = append(rows, line{{"preempting", busy}, {fmt.Sprintf("%s preempts %s on %s", p.Pod, strings.Join(p.Victims, ", "), p.Node), plain}})
	}
	return rows
}

// expected says when nodes are expected.
func expected(e *explain.Expectation) string {
	switch {
	case e == nil:
		return ""
	case e.Likely != nil:
		return "expected " + e.Likely.UTC().Format(time.TimeOnly)
	case e.Ordered != nil:
		return "ordered " + e.Ordered.UTC().Format(time.TimeOnly)
	}
	return ""
}

// nodeLines are the nodes by why they stay.
func nodeLines(s *observe.Status) []line {
	x := s.Nodes.ScaleDown
	if x == nil || len(x.Reasons) == 0 {
		return nil
	}
	rows := []line{{{"NODES", faint}, {"$/H", faint}, {"STATE", faint}, {"WHY", faint}, {"EXAMPLE", faint}}}
	for _, r := range x.Reasons[:min(len(x.Reasons), maxReasonLines)] {
		example := cut(r.Node, 32)
		if r.Pod != "" {
			example += " (" + cut(r.Pod, 32) + ")"
		}
		state, c := stateOfNode(r.State)
		rows = append(rows, line{{fmt.Sprint(r.Nodes), strong}, {price(r.Price), plain}, {state, c}, {orDash(report.WhyNode(r.Reason)), plain}, {example, faint}})
	}
	title := fmt.Sprintf("Nodes (scale-down: %s)", x.Status)
	if x.Why != "" {
		title += ": " + x.Why
	}
	return titled(title, table(rows), len(x.Reasons)-maxReasonLines)
}

// stateOfNode returns a node's state for scale-down as people read it.
func stateOfNode(state string) (string, colour) {
	switch state {
	case explain.NodeStays:
		return "stays", plain
	case explain.NodeCandidate:
		return "removable", good
	case explain.NodeLeaving:
		return "being removed", busy
	case explain.NodeUnknown:
		return "not simulated", faint
	}
	return "-", plain
}

// decisionLines are the last decisions.
func decisionLines(s *observe.Status) []line {
	if len(s.Decisions) == 0 {
		return nil
	}
	out := []line{say(strong, "Recent decisions")}
	for i := range s.Decisions {
		d := &s.Decisions[i]
		l := line{{"  " + d.Time.UTC().Format(time.TimeOnly) + "  ", faint}, {cut(d.String(), 110), plain}}
		if d.More > 0 {
			l = append(l, cell{fmt.Sprintf("  and %d more before it", d.More), faint})
		}
		out = append(out, l)
	}
	return out
}

// titled returns a section; more is how many lines it would have besides.
func titled(title string, rows []line, more int) []line {
	out := append([]line{say(strong, "%s", title)}, rows...)
	if more > 0 {
		out = append(out, say(faint, "  … and %d more (-o json lists all)", more))
	}
	return out
}

// colourIf returns a colour where something holds that people should see.
func colourIf(holds bool, c colour) colour {
	if holds {
		return c
	}
	return plain
}

// price writes a price an hour; "-" when the provider has none.
func price(p float64) string {
	if p == 0 {
		return "-"
	}
	return fmt.Sprintf("%.2f", p)
}

// orDash keeps a table's cell from being empty.
func orDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

// ago says for how long something has been, in its largest unit and the next; "-" for a time that isn't
// known. A time in the future, of a clock that is ahead, counts as now.
func ago(now, since time.Time) string {
	if since.IsZero() || since.Unix() <= 0 {
		return "-"
	}
	d := max(now.Sub(since), 0).Round(time.Second)
	switch {
	case d >= 48*time.Hour:
		return fmt.Sprintf("%dd%dh", d/(24*time.Hour), d%(24*time.Hour)/time.Hour)
	case d >= time.Hour:
		return fmt.Sprintf("%dh%dm", d/time.Hour, d%time.Hour/time.Minute)
	}
	return d.String()
}
