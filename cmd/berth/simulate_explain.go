package main

import (
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/berthproject/berth/sim"
	"github.com/berthproject/berth/sim/report"
)

// This file prints the explanations that the flags of berth simulate ask for: where a pod, a
// node group, a node or all nodes stood at the end of the run.

// printExplanations prints what the flags ask for, in the order in which help lists them.
func (f *simulateFlags) printExplanations(out io.Writer, w *sim.World) error {
	for _, x := range []struct {
		flag  string
		asked bool
		print func(io.Writer, *sim.World) error
	}{
		{"--explain", f.explain != "", f.printPod},
		{"--explain-group", f.group != "", f.printGroup},
		{"--explain-node", f.node != "", f.printNode},
		{"--explain-nodes", f.nodes, f.printNodes},
	} {
		if !x.asked {
			continue
		}
		if err := x.print(out, w); err != nil {
			return fmt.Errorf("%s: %w", x.flag, err)
		}
	}
	return nil
}

func (f *simulateFlags) printPod(out io.Writer, w *sim.World) error {
	x := w.Explanation()
	if x == nil {
		return fmt.Errorf("pod %s not found; is it in the file, and is its schedulerName one of the configuration's?", f.explain)
	}
	return printAs(f.output, out, x, x.At, func(when string) error { return report.Explanation(out, &x.Explanation, when) })
}

func (f *simulateFlags) printGroup(out io.Writer, w *sim.World) error {
	x, err := w.ExplainGroup(f.group)
	if err != nil {
		return err
	}
	return printAs(f.output, out, x, x.At, func(when string) error { return report.Group(out, &x.GroupExplanation, when) })
}

func (f *simulateFlags) printNode(out io.Writer, w *sim.World) error {
	x, err := w.ExplainNode(f.node)
	if err != nil {
		return err
	}
	return printAs(f.output, out, x, x.At, func(when string) error { return report.Node(out, &x.NodeExplanation, when) })
}

func (f *simulateFlags) printNodes(out io.Writer, w *sim.World) error {
	x, err := w.ExplainNodes()
	if err != nil {
		return err
	}
	return printAs(f.output, out, x, x.At, func(when string) error { return report.Nodes(out, &x.NodesExplanation, when) })
}

// printAs writes an explanation as JSON, or as text by a function that is given its time in
// words.
func printAs(output string, out io.Writer, x any, at time.Duration, text func(when string) error) error {
	if output == "json" {
		enc := json.NewEncoder(out)
		enc.SetIndent("", "  ")
		return enc.Encode(x)
	}
	return text(fmt.Sprintf("virtual time %s", at.Round(time.Millisecond)))
}
