package report

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/berthproject/berth/core"
	"github.com/berthproject/berth/core/autoscaler"
)

// This file writes what berth explain says of nodes: why one stays, or how far it is on its way
// out, and all of them on one screen. Times are UTC.

// stayWords are the reasons for which nodes stay as people read them, in at most some fifty
// letters each: the screen is to stay narrow.
var stayWords = map[autoscaler.KeptReason]string{
	autoscaler.KeptNotAutoscaled:     "in no node group",
	autoscaler.KeptDisabled:          "its annotation says so",
	autoscaler.KeptUnready:           "not ready, and such nodes aren't removed",
	autoscaler.KeptStarting:          "starting",
	autoscaler.KeptLeaving:           "on its way out",
	autoscaler.KeptUtilized:          "used above the threshold",
	autoscaler.KeptReplaced:          "is to be replaced by nodes that are coming",
	autoscaler.KeptReplacement:       "its group has grown to replace other nodes",
	autoscaler.KeptMinSize:           "its group is at its minimum",
	autoscaler.KeptMinTotal:          "the cluster is at a minimum",
	autoscaler.KeptAwaited:           "a pod is to come to it",
	autoscaler.KeptDestination:       "has room for pods of nodes that could go",
	autoscaler.KeptNoPlace:           "a pod has nowhere to go",
	autoscaler.KeptBlockedByPod:      "a pod mustn't be evicted",
	autoscaler.KeptAtomic:            "its group goes as a whole or not at all",
	autoscaler.KeptNotSimulated:      "not looked at yet: plans took too long",
	autoscaler.KeptDisplaced:         "displaced pods have nowhere to go",
	autoscaler.KeptSick:              "the cluster is unhealthy",
	autoscaler.KeptNotLongEnough:     "its time hasn't come",
	autoscaler.KeptNotUnreadyEnough:  "its time hasn't come, as it isn't ready",
	autoscaler.KeptGroupDelayed:      "its group changed, or failed to, too recently",
	autoscaler.KeptThrottled:         "as many nodes are going as may at a time",
	autoscaler.KeptNodeBudget:        "as many nodes of its group are going as a budget allows",
	autoscaler.KeptOnCompletion:      "a pod has to end first",
	autoscaler.KeptSomebodyElsesTask: "somebody else is removing it",
}

// stateWords are the states of nodes as people read them.
var stateWords = map[string]string{
	core.NodeStays: "stays", core.NodeCandidate: "could go", core.NodeLeaving: "is on its way out", core.NodeUnknown: "hasn't been looked at",
}

// stepWords say what a node on its way out waits for.
var stepWords = map[string]string{
	"tainting": "its taint is being written", "tainted": "it is tainted, and looked at once more", "resumed": "its removal was begun by another Berth, and is looked at",
	"draining": "its pods are asked to leave", "delayed": "annotations ask to wait (delay-deletion.cluster-autoscaler.kubernetes.io/…)", "batched": "it is deleted together with others of its group",
	"deleting": "the provider was asked to delete it", "in doubt": "the provider says that it could not delete it; its next list of instances tells", "deleted": "the provider has deleted it",
}

// WhyNode returns in words why a node stays, or what a candidate waits for; "" without a reason.
func WhyNode(reason autoscaler.KeptReason) string { return stayWords[reason] }

// HowFar returns in words what a node on its way out waits for, and how many pods are left, "" of a
// node without any.
func HowFar(leavingStep string) (words, pods string) {
	name, pods, _ := strings.Cut(leavingStep, ",")
	return stepWords[name], strings.TrimSpace(pods)
}

// nodeLeaving writes how far a node is on its way out.
func nodeLeaving(b *strings.Builder, x *core.NodeExplanation) {
	if x.Leaving == nil {
		return
	}
	step, pods, _ := strings.Cut(x.Leaving.Step, ",")
	fmt.Fprintf(b, "  how far: %s (%s)", stepWords[step], step)
	if pods != "" {
		fmt.Fprintf(b, ", pods:%s", pods)
	}
	fmt.Fprintf(b, "\n  it goes since: %s\n", x.Leaving.Why)
	if x.Leaving.Next != nil {
		fmt.Fprintf(b, "  looked at again: %s\n", clock(x.Leaving.Next))
	}
}

// Node writes where one node stands; when says at what time.
func Node(w io.Writer, x *core.NodeExplanation, when string) error {
	var b strings.Builder
	fmt.Fprintf(&b, "node %s %s (%s)\n", x.Node, stateWords[x.State], when)
	nodeReason(&b, x)
	nodeLeaving(&b, x)
	nodeTimes(&b, x)
	nodeFacts(&b, x)
	if len(x.Changes) > 0 {
		b.WriteString("\nWhat would have it go:\n")
		for _, line := range x.Changes {
			fmt.Fprintf(&b, "  %s\n", line)
		}
	}
	nodeBlocks(&b, x)
	nodePods(&b, x)
	_, err := io.WriteString(w, b.String())
	return err
}

// maxBlocks is how many pods that keep a node are printed.
const maxBlocks = 10

// nodeBlocks writes the pods that keep a node, with what would let each go.
func nodeBlocks(b *strings.Builder, x *core.NodeExplanation) {
	if len(x.Blocks) == 0 {
		return
	}
	b.WriteString("\nPods that keep it:\n")
	for _, p := range x.Blocks[:min(len(x.Blocks), maxBlocks)] {
		fmt.Fprintf(b, "  %s %s (%s)\n    would change it: %s\n", p.Pod, p.Why, p.Rule, p.Change)
	}
	if more := len(x.Blocks) - maxBlocks; more > 0 {
		fmt.Fprintf(b, "  … and %d more (-o json has them all)\n", more)
	}
}

// nodePods writes where the pods of a node would go.
func nodePods(b *strings.Builder, x *core.NodeExplanation) {
	if len(x.Pods) == 0 {
		return
	}
	title := map[string]string{
		core.NodeStays: "Where its pods would go if it alone were removed now:", core.NodeCandidate: "Where its pods would go:",
		core.NodeLeaving: "Pods that are still on it, and where room is kept for their replacements:",
	}[x.State]
	fmt.Fprintf(b, "\n%s\n", title)
	t := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "  POD\tNODE")
	for _, p := range x.Pods {
		where := p.Home
		switch {
		case where == "" && x.State == core.NodeLeaving:
			where = "-"
		case where == "":
			where = "nowhere: " + p.Why
		}
		fmt.Fprintf(t, "  %s\t%s\n", p.Pod, where)
	}
	_ = t.Flush()
}

// nodeReason writes why a node stays, or what one that could go waits for.
func nodeReason(b *strings.Builder, x *core.NodeExplanation) {
	why := stayWords[x.Reason]
	if x.Reason != "" {
		why += fmt.Sprintf(" (%s)", x.Reason)
	}
	if x.Pod != "" {
		why += ", " + x.Pod
	}
	if x.Detail != "" {
		if why != "" {
			why += ": "
		}
		why += x.Detail
	}
	name := "why"
	if x.State == core.NodeCandidate {
		name = "waits"
	}
	if why != "" {
		fmt.Fprintf(b, "  %s: %s\n", name, why)
	}
}

func nodeTimes(b *strings.Builder, x *core.NodeExplanation) {
	for _, line := range []struct {
		name string
		at   *time.Time
	}{{"since", x.Since}, {"its time comes", x.Due}, {"last simulated", x.Looked}, {"last plan", x.Planned}} {
		if line.at != nil {
			fmt.Fprintf(b, "  %s: %s\n", line.name, clock(line.at))
		}
	}
}

func nodeFacts(b *strings.Builder, x *core.NodeExplanation) {
	group := "in no group"
	if x.Group != "" {
		group = "of group " + x.Group
	}
	fmt.Fprintf(b, "  node: %s", group)
	if !x.Ready {
		b.WriteString(", not ready")
	}
	if x.Price > 0 {
		fmt.Fprintf(b, ", %.2f an hour", x.Price)
	}
	if x.Utilization != nil {
		fmt.Fprintf(b, ", utilization %.2f", *x.Utilization)
	}
	b.WriteByte('\n')
	if len(x.WaitsFor) > 0 {
		fmt.Fprintf(b, "  have to end first: %s\n", strings.Join(x.WaitsFor, ", "))
	}
	if len(x.Awaits) > 0 {
		fmt.Fprintf(b, "  are to come to it: %s\n", strings.Join(x.Awaits, ", "))
	}
}

// What one screen holds: so many groups, and names of so many letters.
const (
	maxGroupRows  = 8
	maxNameLength = 32
)

// Nodes writes where all nodes stand, on one screen of some 120 columns; when says at what
// time.
func Nodes(w io.Writer, x *core.NodesExplanation, when string) error {
	var b strings.Builder
	fmt.Fprintf(&b, "scale-down: %s (%s", x.Status, when)
	if x.Planned != nil {
		fmt.Fprintf(&b, ", plan of %s", clock(x.Planned))
	}
	b.WriteString(")\n")
	if x.Why != "" {
		fmt.Fprintf(&b, "  %s\n", x.Why)
	}
	candidates, leaving := core.NodesSum{}, core.NodesSum{}
	for _, g := range x.Groups {
		candidates.Nodes, candidates.Price = candidates.Nodes+g.Candidates.Nodes, candidates.Price+g.Candidates.Price
		leaving.Nodes, leaving.Price = leaving.Nodes+g.Leaving.Nodes, leaving.Price+g.Leaving.Price
	}
	fmt.Fprintf(&b, "  %s; %d could go%s, %d on their way out%s\n", nodesAndMoney(&x.NodesSum), candidates.Nodes, saves(&candidates), leaving.Nodes, saves(&leaving))
	if len(x.Reasons) > 0 {
		nodeReasons(&b, x)
		nodeGroups(&b, x)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func nodesAndMoney(s *core.NodesSum) string {
	if s.Price == 0 {
		return fmt.Sprintf("%d nodes, prices not known", s.Nodes)
	}
	return fmt.Sprintf("%d nodes cost %.2f an hour", s.Nodes, s.Price)
}

func saves(s *core.NodesSum) string {
	if s.Price == 0 {
		return ""
	}
	return fmt.Sprintf(" (%.2f an hour)", s.Price)
}

// nodeReasons writes a line for each state and reason.
func nodeReasons(b *strings.Builder, x *core.NodesExplanation) {
	b.WriteByte('\n')
	t := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "NODES\tAN HOUR\tSTATE\tWHY\tSUCH AS")
	for _, r := range x.Reasons {
		why := stayWords[r.Reason]
		if why == "" {
			why = "-"
		}
		example := short(r.Node)
		if r.Pod != "" {
			example += " (" + short(r.Pod) + ")"
		}
		fmt.Fprintf(t, "%d\t%s\t%s\t%s\t%s\n", r.Nodes, money(r.Price), stateWords[r.State], why, example)
	}
	_ = t.Flush()
}

// nodeGroups writes a line for each of the groups that cost most.
func nodeGroups(b *strings.Builder, x *core.NodesExplanation) {
	b.WriteByte('\n')
	t := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "GROUP\tNODES\tAN HOUR\tCOULD GO\tSAVES\tON THEIR WAY OUT")
	for _, g := range x.Groups[:min(len(x.Groups), maxGroupRows)] {
		name := short(g.Group)
		if name == "" {
			name = "(none)"
		}
		fmt.Fprintf(t, "%s\t%d\t%s\t%d\t%s\t%d\n", name, g.Nodes, money(g.Price), g.Candidates.Nodes, money(g.Candidates.Price), g.Leaving.Nodes)
	}
	_ = t.Flush()
	if more := len(x.Groups) - maxGroupRows; more > 0 {
		fmt.Fprintf(b, "… and %d more groups (-o json has them all)\n", more)
	}
}

func money(price float64) string {
	if price == 0 {
		return "-"
	}
	return fmt.Sprintf("%.2f", price)
}

// short returns a name that fits into a column.
func short(name string) string {
	if len(name) <= maxNameLength {
		return name
	}
	return name[:maxNameLength-1] + "…"
}
