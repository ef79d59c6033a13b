package term

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/berthproject/berth/core/explain"
	"github.com/berthproject/berth/edge/api"
	v1alpha1 "github.com/berthproject/berth/edge/api/v1alpha1"
	"github.com/berthproject/berth/sim/report"
)

// This file prints what the API answers to berth explain.
// Each kind has a function for one and one for all. They read the same endpoints as berth
// top and the page.

// prefixed returns the address of a path of the API.
func prefixed(path string) string { return api.Prefix + path }

// moment writes a time in UTC: people compare it with logs, not with a clock on the wall.
func moment(t time.Time) string { return t.UTC().Format(time.DateTime) }

// explainPod writes an answer about a pod. Like the others here it ignores fields that it doesn't know: a newer
// Berth may have answered.
func explainPod(ctx context.Context, out io.Writer, from Source, path string) error {
	x, err := Read[v1alpha1.PodDetail](ctx, from, path)
	if err != nil {
		return err
	}
	if err := report.Explanation(out, explanationOf(x), moment(x.At)); err != nil {
		return err
	}
	printDecisions(out, x.Decisions)
	return nil
}

// explainPodGroup writes an answer about a pod group as a whole; members are asked about
// one by one.
func explainPodGroup(ctx context.Context, out io.Writer, from Source, path string) error {
	x, err := Read[v1alpha1.PodGroupDetail](ctx, from, path)
	if err != nil {
		return err
	}
	if err := report.PodGroup(out, podGroupOf(x), moment(x.At)); err != nil {
		return err
	}
	printDecisions(out, x.Decisions)
	return nil
}

// explainGroup writes an answer about a node group, with its instances.
func explainGroup(ctx context.Context, out io.Writer, from Source, path string) error {
	x, err := Read[v1alpha1.GroupDetail](ctx, from, path)
	if err != nil {
		return err
	}
	if err := report.Group(out, groupDetailOf(x), moment(x.At)); err != nil {
		return err
	}
	printDecisions(out, x.Decisions)
	return nil
}

// explainGroups writes a line for each node group.
func explainGroups(ctx context.Context, out io.Writer, from Source) error {
	x, err := Read[v1alpha1.GroupList](ctx, from, "groups")
	if err != nil {
		return err
	}
	if len(x.Items) == 0 {
		return errNoGroups
	}
	var list []explain.GroupExplanation
	for i := range x.Items {
		list = append(list, *groupOf(&x.Items[i]))
	}
	return report.Groups(out, list)
}

// explainNode writes why a node stays, or how far its removal has come.
func explainNode(ctx context.Context, out io.Writer, from Source, path string) error {
	x, err := Read[v1alpha1.NodeDetail](ctx, from, path)
	if err != nil {
		return err
	}
	// Nodes have a state where Berth scales down.
	if x.State == "" {
		if len(x.Decisions) == 0 {
			return errOnlySchedules
		}
		fmt.Fprintf(out, "node %s: %v\n", x.Name, errOnlySchedules)
		printDecisions(out, x.Decisions)
		return nil
	}
	if err := report.Node(out, nodeOf(x), moment(x.At)); err != nil {
		return err
	}
	printDecisions(out, x.Decisions)
	return nil
}

// explainNodes sums up why nodes stay and what they cost.
func explainNodes(ctx context.Context, out io.Writer, from Source) error {
	o, err := Read[v1alpha1.Overview](ctx, from, "overview")
	if err != nil {
		return err
	}
	if o.ScaleDown == nil {
		return errOnlySchedules
	}
	// Costs by group are an answer of their own. The two are read one after the other, and
	// the sums may differ by what happened in between.
	m, err := Read[v1alpha1.Money](ctx, from, "money")
	if err != nil {
		return err
	}
	return report.Nodes(out, nodesOf(o, m), moment(o.At))
}

// maxWorkloads is how many workloads of a reason are printed.
const maxWorkloads = 5

// explainPending writes the pending pods by reason, and for each reason the workloads with most pods.
// The API sends a bounded number of workloads by reason, and counts the rest.
func explainPending(ctx context.Context, out io.Writer, from Source) error {
	x, err := Read[v1alpha1.Pending](ctx, from, "pending")
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%s pending (%s)\n", report.Count(x.Pods, "pod"), moment(x.At))
	for i := range x.Reasons {
		r := &x.Reasons[i]
		fmt.Fprintf(out, "\n%s: %s", report.Count(r.Pods, "pod"), whyPending(&r.PendingReason))
		if r.Next != nil && !r.Next.Likely.IsZero() {
			fmt.Fprintf(out, ", next node expected %s", moment(r.Next.Likely))
		}
		fmt.Fprintln(out)
		rows := []line{{{"PODS", faint}, {"WORKLOAD", faint}, {"LONGEST", faint}, {"SINCE", faint}}}
		for _, w := range r.Workloads[:min(len(r.Workloads), maxWorkloads)] {
			workload := w.Namespace
			if w.Owner != nil {
				workload += " " + w.Owner.Kind + "/" + w.Owner.Name
			}
			rows = append(rows, line{{fmt.Sprint(w.Pods), plain}, {workload, plain}, {w.Example, plain}, {ago(x.At, w.Since), plain}})
		}
		if err := printTable(out, rows); err != nil {
			return err
		}
		more := r.OtherPods + r.Hidden
		for _, w := range r.Workloads[min(len(r.Workloads), maxWorkloads):] {
			more += w.Pods
		}
		if more > 0 {
			fmt.Fprintf(out, "  … and %s of other workloads\n", report.Count(more, "pod"))
		}
	}
	return nil
}

// explainPodGroups writes a line for each pod group. Its list is read page by page: there
// may be many thousands.
func explainPodGroups(ctx context.Context, out io.Writer, from Source) error {
	all, err := ReadAll(ctx, from, "podgroups")
	if err != nil {
		return err
	}
	list, err := itemsOf[v1alpha1.PodGroup](all)
	if err != nil {
		return err
	}
	if len(list) == 0 {
		_, err := fmt.Fprintln(out, "No pod groups.")
		return err
	}
	rows := []line{{{"POD GROUP", faint}, {"POLICY", faint}, {"MIN", faint}, {"PLACED", faint}, {"PENDING", faint}, {"QUEUE", faint}, {"WHY", faint}}}
	for _, g := range list {
		rows = append(rows, line{{g.Namespace + "/" + g.Name, plain}, {orDash(g.Policy), plain}, {fmt.Sprint(g.MinCount), plain}, {fmt.Sprint(g.Placed), plain}, {fmt.Sprint(g.Pending), colourIf(g.Pending > 0, busy)}, {orDash(g.Queue), plain}, {orDash(cut(g.Message, 80)), plain}})
	}
	return printTable(out, rows)
}

// itemsOf returns the items of a list.
// Lists are read as generic objects, so that -o json prints fields that this program
// doesn't know; here they are decoded again.
func itemsOf[T any](all map[string]any) (out []T, err error) {
	raw, err := json.Marshal(all["items"])
	if err != nil {
		return nil, err
	}
	if err := Decode(raw, &out); err != nil {
		return nil, fmt.Errorf("reading the response of Berth: %w", err)
	}
	return out, nil
}

// podRows writes pods, a line each.
// The answer is a list of pods as -o wide prints it.
func podRows(out io.Writer, all map[string]any) error {
	list, err := itemsOf[v1alpha1.Pod](all)
	if err != nil {
		return err
	}
	rows := []line{{{"POD", faint}, {"STATE", faint}, {"REASON", faint}, {"PLUGIN", faint}, {"GROUP", faint}, {"FIRST SEEN", faint}, {"ATTEMPTS", faint}, {"REQUESTS", faint}}}
	for i := range list {
		p := &list[i]
		var requests []string
		for _, r := range p.Requests {
			requests = append(requests, r.Resource+"="+r.Quantity.String())
		}
		since := "-"
		if !p.Since.IsZero() {
			since = moment(p.Since)
		}
		rows = append(rows, line{{p.Namespace + "/" + p.Name, plain}, {string(p.State), plain}, {orDash(p.Reason), plain}, {orDash(p.Plugin), plain}, {orDash(p.Group), plain}, {since, plain}, {fmt.Sprint(p.Attempts), plain}, {orDash(strings.Join(requests, ",")), plain}})
	}
	return printTable(out, rows)
}

// nodeRows writes nodes, a line each.
// They are those of berth top.
func nodeRows(out io.Writer, all map[string]any) error {
	list, err := itemsOf[v1alpha1.Node](all)
	if err != nil {
		return err
	}
	return printTable(out, NodeTable(list))
}

// printTable writes rows with their columns lined up.
func printTable(out io.Writer, rows []line) error {
	p := paletteFor(out)
	for _, l := range table(rows) {
		if _, err := fmt.Fprintln(out, l.text(p, 0)); err != nil {
			return err
		}
	}
	return nil
}

// printDecisions lists what the ledger has about a pod, a pod group, a node group or a node, with the scores
// of choices.
func printDecisions(out io.Writer, decisions []v1alpha1.Decision) {
	if len(decisions) > 0 {
		fmt.Fprintln(out, "\nDecisions:")
	}
	for i := range decisions {
		d := &decisions[i]
		fmt.Fprintf(out, "  %s  #%d %s\n", d.Time.UTC().Format("2006-01-02 15:04:05.000"), d.Seq, textOf(d))
		if len(d.Scores) > 0 {
			fmt.Fprintf(out, "      score %d:", d.Score)
			for _, s := range d.Scores {
				fmt.Fprintf(out, " %s %d", s.Plugin, s.Score)
			}
			if d.RunnerUp != nil {
				fmt.Fprintf(out, "; runner-up %s with %d", d.RunnerUp.Node, d.RunnerUp.Score)
			}
			fmt.Fprintln(out)
		}
	}
}

// textOf returns a decision in one line; its kind alone when what it is about is hidden.
func textOf(d *v1alpha1.Decision) string {
	if d.Text == "" {
		return d.Kind
	}
	return d.Text
}
