package term

import (
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/edge/observe"
	"github.com/berthproject/berth/sim/report"
)

// This file prints what a running Berth answers to berth explain, given as JSON.

// PrintPod writes an answer about a pod. Like the others here it takes the JSON of Berth's answer, ignores
// fields that it doesn't know, and returns an error for what isn't such JSON.
func PrintPod(out io.Writer, raw []byte) error {
	x := observe.Explained{}
	if err := json.Unmarshal(raw, &x); err != nil {
		return err
	}
	if err := report.Explanation(out, &x.Explanation, x.At.UTC().Format(time.DateTime)); err != nil {
		return err
	}
	printDecisions(out, x.Decisions)
	return nil
}

// PrintPodGroup writes an answer about a pod group.
func PrintPodGroup(out io.Writer, raw []byte) error {
	x := observe.ExplainedPodGroup{}
	if err := json.Unmarshal(raw, &x); err != nil {
		return err
	}
	if err := report.PodGroup(out, &x.PodGroupExplanation, x.At.UTC().Format(time.DateTime)); err != nil {
		return err
	}
	printDecisions(out, x.Decisions)
	return nil
}

// PrintGroup writes an answer about a node group.
func PrintGroup(out io.Writer, raw []byte) error {
	x := observe.ExplainedGroup{}
	if err := json.Unmarshal(raw, &x); err != nil {
		return err
	}
	if err := report.Group(out, &x.GroupExplanation, x.At.UTC().Format(time.DateTime)); err != nil {
		return err
	}
	printDecisions(out, x.Decisions)
	return nil
}

// PrintGroups writes an answer about all node groups, a line for each.
func PrintGroups(out io.Writer, raw []byte) error {
	x := observe.ExplainedGroups{}
	if err := json.Unmarshal(raw, &x); err != nil {
		return err
	}
	return report.Groups(out, x.Groups)
}

// PrintNode writes an answer about a node.
func PrintNode(out io.Writer, raw []byte) error {
	x := observe.ExplainedNode{}
	if err := json.Unmarshal(raw, &x); err != nil {
		return err
	}
	if err := report.Node(out, &x.NodeExplanation, x.At.UTC().Format(time.DateTime)); err != nil {
		return err
	}
	printDecisions(out, x.Decisions)
	return nil
}

// PrintNodes writes an answer about all nodes.
func PrintNodes(out io.Writer, raw []byte) error {
	x := observe.ExplainedNodes{}
	if err := json.Unmarshal(raw, &x); err != nil {
		return err
	}
	return report.Nodes(out, &x.NodesExplanation, x.At.UTC().Format(time.DateTime))
}

// printDecisions lists what the ledger has about a pod, a pod group, a node group or a node, with the scores
// of choices.
func printDecisions(out io.Writer, decisions []step.Decision) {
	if len(decisions) > 0 {
		fmt.Fprintln(out, "\nDecisions:")
	}
	for i := range decisions {
		d := &decisions[i]
		fmt.Fprintf(out, "  %s  #%d %s\n", d.Time.UTC().Format("2006-01-02 15:04:05.000"), d.Seq, d)
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
