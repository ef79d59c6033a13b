package term

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/berthproject/berth/core/autoscaler"
	v1alpha1 "github.com/berthproject/berth/edge/api/v1alpha1"
	"github.com/berthproject/berth/sim/report"
)

// This file is the screen of berth status: where a cluster stands. It is made of sections, which
// berth top shows too.

// Status is where a cluster stands, and who says so.
// The two answers may be a Step apart.
type Status struct {
	v1alpha1.Overview
	Meta v1alpha1.Meta
}

// ReadStatus asks for it.
func ReadStatus(ctx context.Context, from Source) (*Status, error) {
	o, err := Read[v1alpha1.Overview](ctx, from, "overview")
	if err != nil {
		return nil, err
	}
	m, err := Read[v1alpha1.Meta](ctx, from, "meta")
	if err != nil {
		return nil, err
	}
	return &Status{*o, *m}, nil
}

// now returns the time of the cluster: of a file it isn't when it was asked.
// A screen of a file would otherwise grow older each time it is shown: its times would be
// measured against today's clock.
func (s *Status) now() time.Time {
	if s.Meta.Capabilities.Replay {
		return s.Meta.Now
	}
	return s.At
}

// PrintStatus writes the screen of berth status; called is what the user has typed to call this
// program. Nodes are listed one by one where there are some.
// Lines are collected first, so that there is one write that can fail.
func PrintStatus(out io.Writer, s *Status, nodes []v1alpha1.Node, called string) error {
	var b strings.Builder
	p := paletteFor(out)
	lines := statusLines(s, called)
	if nodes != nil {
		// The last line says where to go on; the nodes stand before it.
		lines = append(append(lines[:len(lines)-1], table(NodeTable(nodes))...), nil, lines[len(lines)-1])
	}
	for _, l := range lines {
		fmt.Fprintln(&b, l.text(p, 0))
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// AllNodes returns all nodes: those on their way out first, then unready ones, then removable ones, then the
// others by utilization, the least utilized first.
// The list is read page by page; at is when the core was asked for the first of them.
func AllNodes(ctx context.Context, from Source) (list []v1alpha1.Node, at time.Time, err error) {
	all, err := ReadAll(ctx, from, nodeKind.list)
	if err != nil {
		return nil, at, err
	}
	if list, err = itemsOf[v1alpha1.Node](all); err != nil {
		return nil, at, err
	}
	SortNodes(list)
	text, _ := all["at"].(string)
	at, _ = time.Parse(time.RFC3339, text) // zero when an older Berth doesn't say
	return list, at, nil
}

// statusLines returns the screen of berth status, section by section, with an empty line between two
// that have something.
func statusLines(s *Status, called string) (out []line) {
	for i, section := range [][]line{headLines(s), priceLines(s), pendingLines(s, maxPendingLines), nowLines(s, maxNowLines), nodeLines(s), decisionLines(s)} {
		if i > 0 && len(section) > 0 {
			out = append(out, nil)
		}
		out = append(out, section...)
	}
	return append(out, nil, say(faint, "To see why: %s explain pod|node|group NAME", called))
}

// What a section of the screen has at most.
// What was left out is counted in a last line, and -o json lists all.
const (
	maxPendingLines = 10
	maxNowLines     = 12
	maxReasonLines  = 10
	maxUnpriced     = 5 // groups without a price, on one line
)

// headLines sum up.
// headLines returns the lines that sum a cluster up: who answers, pods, nodes and use.
func headLines(s *Status) []line {
	pods := line{{"pods   ", strong}, {fmt.Sprintf("%d on nodes, ", s.Pods.Placed), plain}, {fmt.Sprintf("%d pending", s.Pods.Pending), colourIf(s.Pods.Pending > 0, busy)}}
	n := &s.Nodes
	nodes := line{{"nodes  ", strong}, {fmt.Sprintf("%d ready", n.Ready), plain}}
	if n.NotReady > 0 {
		// Parts that are zero are left out, since zero is what one expects of them.
		nodes = append(nodes, cell{fmt.Sprintf(", %d not ready", n.NotReady), bad})
	}
	if n.Unschedulable > 0 {
		nodes = append(nodes, cell{fmt.Sprintf(", %d cordoned", n.Unschedulable), busy})
	}
	if s.Money != nil && s.Money.Price > 0 {
		nodes = append(nodes, cell{moneyOf(s), plain})
	}
	out := []line{say(strong, "%s, %s UTC", whoAnswers(&s.Meta, s.now()), s.now().UTC().Format(time.DateTime)), pods, nodes}
	if use := useLine(s); use != nil {
		out = append(out, use)
	}
	if resizes := resizeLine(s); resizes != nil {
		out = append(out, resizes)
	}
	return out
}

// resizeLine counts the resizes in place that kubelets have not begun; nil for none.
func resizeLine(s *Status) line {
	x := s.Resizes
	if x == nil {
		return nil
	}
	var parts []string
	for _, part := range []struct {
		pods int
		how  string
	}{{x.Deferred, "deferred"}, {x.Infeasible, "infeasible"}} {
		if part.pods > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", part.pods, part.how))
		}
	}
	out := line{{"resize ", strong}, {strings.Join(parts, ", "), busy}}
	if x.Moving > 0 {
		out = append(out, cell{fmt.Sprintf("; %s being moved", report.Count(x.Moving, "pod")), plain})
	}
	return out
}

// resizeRows are a row for each pod whose resize is pending: what its node lacks, and what happens to it.
func resizeRows(x *v1alpha1.PendingResizes) (rows []line) {
	if x == nil {
		return nil
	}
	for _, p := range x.Pods {
		verb := cell{"resize " + p.Reason, bad}
		if p.Moves {
			verb = cell{"moving", busy}
		}
		what := fmt.Sprintf("%s: %s", p.Pod, p.Lack)
		if p.Why != "" {
			what += "; " + p.Why
		}
		rows = append(rows, line{verb, {what, plain}, {"since " + p.Since.UTC().Format(time.TimeOnly), faint}})
	}
	return rows
}

// whoAnswers says which Berth a screen is of, and what it does: a shadow's screen would look like a live one's
// otherwise.
func whoAnswers(m *v1alpha1.Meta, now time.Time) string {
	out := "Berth " + m.Version
	if m.Rules != "" {
		out += " (rules of kube-scheduler " + m.Rules + ")"
	}
	switch m.Mode {
	case "":
	case v1alpha1.ModeOffline:
		return out + ", " + m.FileKind + " " + m.File
	default:
		out += ", " + string(m.Mode)
	}
	if m.Identity != "" {
		// An identity is the pod's name and a random suffix.
		leader, _, _ := strings.Cut(m.Identity, "_")
		out += ", leader " + leader
	}
	if !m.Since.IsZero() {
		out += ", up " + ago(now, m.Since)
	}
	return out
}

// useLine says how much of the nodes' resources is requested; nil without nodes. Extended resources that no node has
// are left out.
func useLine(s *Status) line {
	var parts []string
	for _, u := range s.Utilization {
		if !u.Allocatable.IsZero() {
			parts = append(parts, fmt.Sprintf("%s %.0f %%", u.Resource, 100*u.Share))
		}
	}
	if len(parts) == 0 {
		return nil
	}
	return line{{"use    ", strong}, {strings.Join(parts, ", "), plain}}
}

// moneyOf says what all nodes cost, and what could go of that.
func moneyOf(s *Status) string {
	out := fmt.Sprintf("; $%.2f/h", s.Money.Price)
	if n := s.Nodes.Removable; n > 0 {
		out += fmt.Sprintf(", of which %s at $%.2f/h removable", report.Count(n, "node"), s.Money.Removable)
	}
	return out
}

// priceLines are what people should know of the prices of nodes; none when there is nothing.
func priceLines(s *Status) (out []line) {
	// Columns have $ whatever the currency, so a line says what it stands for.
	if c := s.Meta.Currency; c != "" && c != "USD" {
		out = append(out, say(faint, "$ stands for %s, the currency of --node-prices.", c))
	}
	for _, a := range s.Attention {
		if a.Kind == "PriceFile" {
			out = append(out, say(bad, "%s", strings.Join(strings.Fields(a.Message), " ")))
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
var pendingWords = map[v1alpha1.PendingState]string{
	v1alpha1.Binding: "being bound", v1alpha1.Gated: "gated", v1alpha1.PodPreempt: "waiting for preemption victims to terminate",
	v1alpha1.Nominated: "waiting for the node it is nominated to", v1alpha1.NodeComing: "waiting for an upcoming node", v1alpha1.Untried: "about to be scheduled",
	v1alpha1.Rejected: "fits no node", v1alpha1.Unmanaged: "assigned to another scheduler",
}

// pendingLines are the pods without a node by what they wait for.
func pendingLines(s *Status, limit int) []line {
	if len(s.Pending) == 0 {
		return []line{say(good, "No pending pods.")}
	}
	rows := []line{{{"PODS", faint}, {"REASON", faint}, {"LONGEST", faint}, {"SINCE", faint}}}
	for _, p := range s.Pending[:min(len(s.Pending), limit)] {
		rows = append(rows, line{{fmt.Sprint(p.Pods), strong}, {cut(whyPending(&p), 70), colourIf(p.State == v1alpha1.Rejected, busy)}, {cut(orDash(p.Example), 45), plain}, {ago(s.now(), p.Since), faint}})
	}
	return titled("Pending pods", table(rows), len(s.Pending)-limit)
}

// whyPending returns what pods without a node wait for.
// For rejected pods the reason is the plugin's own message; others have one only if there
// is more to say.
func whyPending(p *v1alpha1.PendingReason) string {
	rejected := cmp.Or(p.Reason, pendingWords[p.State]) // a viewer who may read none of the pods isn't told the reason
	switch {
	case p.State == v1alpha1.Rejected && p.Plugin != "":
		return rejected + " (" + p.Plugin + ")"
	case p.State == v1alpha1.Rejected:
		return rejected
	case p.Reason != "":
		return pendingWords[p.State] + ": " + p.Reason
	}
	return pendingWords[p.State]
}

// nowLines are what is being done.
func nowLines(s *Status, limit int) []line {
	rows := nowRows(s)
	if len(rows) == 0 {
		return []line{say(faint, "No scale-up, node removal or preemption in progress.")}
	}
	return titled("Now", table(rows[:min(len(rows), limit)]), len(rows)-limit)
}

// nowRows are a row for each thing that is being done or held back: a verb, the object, and until
// when.
func nowRows(s *Status) (rows []line) {
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
	for _, n := range s.Draining {
		how, left := report.HowFar(n.Step)
		if left != "" {
			left = "pods: " + left
		}
		rows = append(rows, line{{"removing", busy}, {fmt.Sprintf("%s: %s", n.Node, how), plain}, {left, faint}})
	}
	for _, p := range s.Preempting {
		victims := strings.Join(p.Victims, ", ")
		if more := p.Count - len(p.Victims); more > 0 {
			victims += fmt.Sprintf(" and %d more", more)
		}
		rows = append(rows, line{{"preempting", busy}, {fmt.Sprintf("%s preempts %s on %s", p.Pod, victims, p.Node), plain}})
	}
	return append(rows, resizeRows(s.Resizes)...)
}

// expected says when nodes are expected.
// Groups that have launched nodes before have an estimate; others have only the time of the
// order.
func expected(e *v1alpha1.Expectation) string {
	switch {
	case e == nil:
		return ""
	case !e.Likely.IsZero():
		return "expected " + e.Likely.UTC().Format(time.TimeOnly)
	case !e.Ordered.IsZero():
		return "ordered " + e.Ordered.UTC().Format(time.TimeOnly)
	}
	return ""
}

// nodeLines are the nodes by why they stay.
func nodeLines(s *Status) []line {
	x := s.ScaleDown
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
		rows = append(rows, line{{fmt.Sprint(r.Nodes), strong}, {price(float64(r.Price)), plain}, {state, c}, {orDash(report.WhyNode(autoscaler.KeptReason(r.Reason))), plain}, {example, faint}})
	}
	title := fmt.Sprintf("Nodes (scale-down: %s)", x.Status)
	if x.Why != "" {
		title += ": " + x.Why
	}
	return titled(title, table(rows), len(x.Reasons)-maxReasonLines)
}

// stateOfNode returns a node's state for scale-down as people read it.
// A state of a newer Berth is a dash.
func stateOfNode(state v1alpha1.NodeState) (string, colour) {
	switch state {
	case v1alpha1.Stays:
		return "stays", plain
	case v1alpha1.Candidate:
		return "removable", good
	case v1alpha1.NodeLeaving:
		return "being removed", busy
	case v1alpha1.Unknown:
		return "not simulated", faint
	}
	return "-", plain
}

// maxRuns is how many runs of decisions the screen has.
// A run is decisions of one kind, one after the other, of which the last is shown.
const maxRuns = 12

// decisionLines are the last decisions.
func decisionLines(s *Status) []line {
	if len(s.Activity) == 0 {
		return nil
	}
	out := []line{say(strong, "Recent decisions")}
	for i := max(len(s.Activity)-maxRuns, 0); i < len(s.Activity); i++ {
		d := &s.Activity[i]
		l := line{{"  " + d.Time.UTC().Format(time.TimeOnly) + "  ", faint}, {cut(textOf(&d.Decision), 110), plain}}
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
	// A zero Unix time is one that was never set and went through JSON.
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

// Ago says for how long something has been, in its largest unit and the next.
func Ago(now, since time.Time) string { return ago(now, since) }

// HeadLines returns the lines that sum a status up, without colours.
func HeadLines(s *Status) (out []string) {
	for _, l := range headLines(s) {
		out = append(out, l.text(palette{}, 0))
	}
	return out
}

// What the upper sections of berth top have at most.
const (
	topPendingLines = 5
	topNowLines     = 6
)

// PrintTop writes what berth top shows without a terminal: the head of the status, and all nodes.
// It is for pipes and files: once, and without control sequences.
func PrintTop(out io.Writer, s *Status, nodes []v1alpha1.Node) error {
	p := paletteFor(out)
	lines := headLines(s)
	for _, section := range [][]line{pendingLines(s, topPendingLines), nowLines(s, topNowLines), table(NodeTable(nodes))} {
		lines = append(append(lines, nil), section...)
	}
	for _, l := range lines {
		if _, err := fmt.Fprintln(out, l.text(p, 0)); err != nil {
			return err
		}
	}
	return nil
}
