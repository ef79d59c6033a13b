package report

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/explain"
)

// This file writes what berth explain says about nodes: why one stays, or how far it is on its way
// out, and all of them on one screen. Times are UTC.

// stayWords are the reasons for which nodes stay as people read them, in at most some fifty
// letters each: the screen is to stay narrow. A reason without words would print as its name alone
// and, in tables, as "-".
var stayWords = map[autoscaler.KeptReason]string{
	autoscaler.KeptNotAutoscaled:     "not in a node group",
	autoscaler.KeptDisabled:          "scale-down disabled by an annotation",
	autoscaler.KeptRollout:           "node group is rolling out",
	autoscaler.KeptUnready:           "not ready, and unready nodes are not removed",
	autoscaler.KeptStarting:          "starting",
	autoscaler.KeptLeaving:           "being removed",
	autoscaler.KeptInterrupted:       "the cloud is about to take it",
	autoscaler.KeptUtilized:          "utilization above the threshold",
	autoscaler.KeptReplaced:          "being replaced by new nodes",
	autoscaler.KeptReplacement:       "its node group was scaled up to replace nodes",
	autoscaler.KeptMinSize:           "node group at its minimum size",
	autoscaler.KeptMinTotal:          "cluster at its minimum of a resource",
	autoscaler.KeptAwaited:           "a pod is nominated to it",
	autoscaler.KeptDestination:       "pods of removable nodes need its room",
	autoscaler.KeptNoPlace:           "no place to move a pod",
	autoscaler.KeptBlockedByPod:      "a pod must not be evicted",
	autoscaler.KeptAtomic:            "node group is removed as a whole or not at all",
	autoscaler.KeptNotSimulated:      "not simulated yet: plans ran out of time",
	autoscaler.KeptDisplaced:         "no place for pods evicted earlier",
	autoscaler.KeptSick:              "cluster unhealthy",
	autoscaler.KeptNotLongEnough:     "unneeded, but not for long enough",
	autoscaler.KeptNotUnreadyEnough:  "unready, but not for long enough",
	autoscaler.KeptGroupDelayed:      "node group in scale-down cooldown",
	autoscaler.KeptThrottled:         "scale-down parallelism at its limit",
	autoscaler.KeptNodeBudget:        "node disruption budget exhausted",
	autoscaler.KeptOnCompletion:      "a pod must complete first",
	autoscaler.KeptSomebodyElsesTask: "being removed by another controller",
}

// stateWords are the states of nodes as people read them.
var stateWords = map[string]string{
	explain.NodeStays: "stays", explain.NodeCandidate: "removable", explain.NodeLeaving: "being removed", explain.NodeUnknown: "not simulated",
}

// stateSentences end a sentence about a node in each state.
var stateSentences = map[string]string{
	explain.NodeStays: "stays", explain.NodeCandidate: "is removable", explain.NodeLeaving: "is being removed", explain.NodeUnknown: "was not simulated yet",
}

// stepWords say what a node on its way out waits for, by the steps of core/lifecycle/nodedeletion.
// Behind the name of a step that waits for pods come a comma and how many are left.
var stepWords = map[string]string{
	"tainting": "its taint is being written", "tainted": "it is tainted, and is checked once more", "resumed": "its removal was begun by another instance, and is checked",
	"draining": "its pods are being evicted", "delayed": "annotations delay its deletion (delay-deletion.cluster-autoscaler.kubernetes.io/…)", "batched": "it is deleted in a batch with others of its node group",
	"deleting": "the provider was asked to delete it", "in doubt": "the provider reports that it could not delete it; its next list of instances decides", "deleted": "the provider has deleted it",
}

// WhyNode returns in words why a node stays, or what a candidate waits for; "" without a reason.
func WhyNode(reason autoscaler.KeptReason) string { return stayWords[reason] }

// HowFar returns in words what a node on its way out waits for, and how many pods are left, "" of a
// node without any.
// Names of steps that aren't known here give no words.
func HowFar(leavingStep string) (words, pods string) {
	name, pods, _ := strings.Cut(leavingStep, ",")
	return stepWords[name], strings.TrimSpace(pods)
}

// nodeLeaving writes how far a node is on its way out.
// The name of the step is printed beside the words: it is what logs and metrics have.
func nodeLeaving(b *strings.Builder, x *explain.NodeExplanation) {
	if x.Leaving == nil {
		return
	}
	step, pods, _ := strings.Cut(x.Leaving.Step, ",")
	fmt.Fprintf(b, "  progress: %s (%s)", stepWords[step], step)
	if pods != "" {
		fmt.Fprintf(b, ", pods:%s", pods)
	}
	fmt.Fprintf(b, "\n  reason: %s\n", x.Leaving.Why)
	if x.Leaving.Next != nil {
		fmt.Fprintf(b, "  next check: %s\n", clock(x.Leaving.Next))
	}
}

// Node writes where one node stands; when says at what time.
// What matters most comes first: the state, why, and since when.
func Node(w io.Writer, x *explain.NodeExplanation, when string) error {
	var b strings.Builder
	fmt.Fprintf(&b, "node %s %s (%s)\n", x.Node, stateSentences[x.State], when)
	nodeReason(&b, x)
	nodeLeaving(&b, x)
	nodeTimes(&b, x)
	nodeFacts(&b, x)
	if len(x.Changes) > 0 {
		b.WriteString("\nWhat would make it removable:\n")
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
// The list is cut here and not in the explanation: JSON always has all of them.
func nodeBlocks(b *strings.Builder, x *explain.NodeExplanation) {
	if len(x.Blocks) == 0 {
		return
	}
	b.WriteString("\nPods that block its removal:\n")
	for _, p := range x.Blocks[:min(len(x.Blocks), maxBlocks)] {
		fmt.Fprintf(b, "  %s %s (%s)\n    to unblock: %s\n", p.Pod, p.Why, p.Rule, p.Change)
	}
	if more := len(x.Blocks) - maxBlocks; more > 0 {
		fmt.Fprintf(b, "  … and %d more (-o json lists all)\n", more)
	}
}

// nodePods writes where the pods of a node would go.
// A pod without a home says why none of the other nodes takes it; on a node that is being removed "-" is
// one for which no room is reserved.
// The homes of a node that stays are what the last plan would have done with it alone.
func nodePods(b *strings.Builder, x *explain.NodeExplanation) {
	if len(x.Pods) == 0 {
		return
	}
	title := map[string]string{
		explain.NodeStays: "Where its pods would go if it alone were removed now:", explain.NodeCandidate: "Where its pods would go:",
		explain.NodeLeaving: "Pods that are still on it, and where room is reserved for their replacements:",
	}[x.State]
	if x.Reason == autoscaler.KeptInterrupted {
		title = "Pods that are still on it, and where room is reserved for their replacements:"
	}
	fmt.Fprintf(b, "\n%s\n", title)
	t := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "  POD\tNODE")
	for _, p := range x.Pods {
		where := p.Home
		switch {
		case where == "" && (x.State == explain.NodeLeaving || x.Reason == autoscaler.KeptInterrupted):
			where = cmp.Or(p.Why, "-")
		case where == "":
			where = "nowhere: " + p.Why
		}
		fmt.Fprintf(t, "  %s\t%s\n", p.Pod, where)
	}
	_ = t.Flush()
}

// nodeReason writes why a node stays, or what one that could go waits for.
// Its parts are independent: a reason may come without a pod or a detail, and a detail without a
// reason.
// The reason's name is printed for searching the documentation.
func nodeReason(b *strings.Builder, x *explain.NodeExplanation) {
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
	if x.State == explain.NodeCandidate {
		name = "waits"
	}
	if why != "" {
		fmt.Fprintf(b, "  %s: %s\n", name, why)
	}
}

// nodeTimes writes the times that the explanation has. Which these are depends on the node's state.
func nodeTimes(b *strings.Builder, x *explain.NodeExplanation) {
	for _, line := range []struct {
		name string
		at   *time.Time
	}{{"since", x.Since}, {"due", x.Due}, {"last simulated", x.Looked}, {"last plan", x.Planned}} {
		if line.at != nil {
			fmt.Fprintf(b, "  %s: %s\n", line.name, clock(line.at))
		}
	}
}

// nodeFacts writes what is true of the node in any state. A price of 0 means that the provider has
// none; a utilization that is missing means that the last plan didn't compute it.
func nodeFacts(b *strings.Builder, x *explain.NodeExplanation) {
	group := "not in a node group"
	if x.Group != "" {
		group = "node group " + x.Group
	}
	fmt.Fprintf(b, "  node: %s", group)
	if !x.Ready {
		b.WriteString(", not ready")
	}
	if x.Price > 0 {
		fmt.Fprintf(b, ", $%.2f/h", x.Price)
	}
	if x.Utilization != nil {
		fmt.Fprintf(b, ", utilization %.4g %%", 100**x.Utilization)
	}
	b.WriteByte('\n')
	if len(x.WaitsFor) > 0 {
		fmt.Fprintf(b, "  must complete first: %s\n", strings.Join(x.WaitsFor, ", "))
	}
	if len(x.Awaits) > 0 {
		fmt.Fprintf(b, "  nominated to it: %s\n", strings.Join(x.Awaits, ", "))
	}
}

// What one screen holds: so many groups, and names of so many letters.
const (
	maxGroupRows  = 8
	maxNameLength = 32
)

// Nodes writes where all nodes stand, on one screen of some 120 columns; when says at what
// time.
// The reasons and groups are in the order of the explanation, the most money first: what is cut off
// at the end is what matters least.
func Nodes(w io.Writer, x *explain.NodesExplanation, when string) error {
	var b strings.Builder
	fmt.Fprintf(&b, "scale-down: %s (%s", x.Status, when)
	if x.Planned != nil {
		fmt.Fprintf(&b, ", last plan %s", clock(x.Planned))
	}
	b.WriteString(")\n")
	if x.Why != "" {
		fmt.Fprintf(&b, "  %s\n", x.Why)
	}
	candidates, leaving := explain.NodesSum{}, explain.NodesSum{}
	for _, g := range x.Groups {
		candidates.Nodes, candidates.Price = candidates.Nodes+g.Candidates.Nodes, candidates.Price+g.Candidates.Price
		leaving.Nodes, leaving.Price = leaving.Nodes+g.Leaving.Nodes, leaving.Price+g.Leaving.Price
	}
	fmt.Fprintf(&b, "  %s; %d removable%s, %d being removed%s\n", nodesAndMoney(&x.NodesSum), candidates.Nodes, saves(&candidates), leaving.Nodes, saves(&leaving))
	if len(x.Reasons) > 0 {
		nodeReasons(&b, x)
		nodeGroups(&b, x)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// nodesAndMoney writes how many nodes there are, and their price an hour where it is known.
func nodesAndMoney(s *explain.NodesSum) string {
	if s.Price == 0 {
		return fmt.Sprintf("%s, prices unknown", Count(s.Nodes, "node"))
	}
	return fmt.Sprintf("%s, $%.2f/h", Count(s.Nodes, "node"), s.Price)
}

// saves writes what goes away with the nodes, an hour; "" without prices.
func saves(s *explain.NodesSum) string {
	if s.Price == 0 {
		return ""
	}
	return fmt.Sprintf(" ($%.2f/h)", s.Price)
}

// nodeReasons writes a line for each state and reason.
func nodeReasons(b *strings.Builder, x *explain.NodesExplanation) {
	b.WriteByte('\n')
	t := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "NODES\t$/H\tSTATE\tWHY\tEXAMPLE")
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
func nodeGroups(b *strings.Builder, x *explain.NodesExplanation) {
	b.WriteByte('\n')
	t := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "GROUP\tNODES\t$/H\tREMOVABLE\tSAVES $/H\tBEING REMOVED")
	for _, g := range x.Groups[:min(len(x.Groups), maxGroupRows)] {
		name := short(g.Group)
		if name == "" {
			name = "(none)"
		}
		fmt.Fprintf(t, "%s\t%d\t%s\t%d\t%s\t%d\n", name, g.Nodes, money(g.Price), g.Candidates.Nodes, money(g.Candidates.Price), g.Leaving.Nodes)
	}
	_ = t.Flush()
	if more := len(x.Groups) - maxGroupRows; more > 0 {
		fmt.Fprintf(b, "… and %d more groups (-o json lists all)\n", more)
	}
}

// money writes a price an hour; "-" when the provider has none.
func money(price float64) string {
	if price == 0 {
		return "-"
	}
	return fmt.Sprintf("%.2f", price)
}

// short returns a name that fits into a column. It counts bytes, which are letters in the names of
// Kubernetes objects.
func short(name string) string {
	if len(name) <= maxNameLength {
		return name
	}
	return name[:maxNameLength-1] + "…"
}
