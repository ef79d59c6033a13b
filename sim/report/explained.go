package report

import (
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/berthproject/berth/sim"
)

// This file writes the explanations that the flags of berth simulate ask for: where a pod, a
// pod group, a node group, a node or all nodes stood at the end of the run.

// Questions are what is to be explained at the end of a run. Any number may be asked at once.
type Questions struct {
	Pod   string // as namespace/name, "" for none; it is also that of sim.Options
	Group string // "" for none
	// PodGroup is namespace/name, "" for none.
	PodGroup string
	Node     string // "" for none
	Nodes    bool   // all nodes are to be summed up
	JSON     bool   // in place of text
}

// Any reports whether there is a question.
func (q *Questions) Any() bool {
	return q.Pod != "" || q.PodGroup != "" || q.Group != "" || q.Node != "" || q.Nodes
}

// Explanations writes the answers, in the order in which help lists the flags. An error names the
// flag whose pod, pod group, group or node isn't found; what was asked before it is written by then.
func (q *Questions) Explanations(out io.Writer, w *sim.World) error {
	for _, x := range []struct {
		flag  string
		asked bool
		print func(io.Writer, *sim.World) error
	}{
		{"--explain", q.Pod != "", q.printPod},
		{"--explain-podgroup", q.PodGroup != "", q.printPodGroup},
		{"--explain-group", q.Group != "", q.printGroup},
		{"--explain-node", q.Node != "", q.printNode},
		{"--explain-nodes", q.Nodes, q.printNodes},
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

// printPod is the only question that is asked during the run already: a pod that has ended has
// left the core by the end, so the world keeps the explanation of the last decision about it.
func (q *Questions) printPod(out io.Writer, w *sim.World) error {
	x := w.Explanation()
	if x == nil {
		return fmt.Errorf("pod %s not found; is it in the file, and is its schedulerName one of the configuration's?", q.Pod)
	}
	return q.print(out, x, x.At, func(when string) error { return Explanation(out, &x.Explanation, when) })
}

func (q *Questions) printPodGroup(out io.Writer, w *sim.World) error {
	x, err := w.ExplainPodGroup(q.PodGroup)
	if err != nil {
		return err
	}
	return q.print(out, x, x.At, func(when string) error { return PodGroup(out, &x.PodGroupExplanation, when) })
}

func (q *Questions) printGroup(out io.Writer, w *sim.World) error {
	x, err := w.ExplainGroup(q.Group)
	if err != nil {
		return err
	}
	return q.print(out, x, x.At, func(when string) error { return Group(out, &x.GroupExplanation, when) })
}

func (q *Questions) printNode(out io.Writer, w *sim.World) error {
	x, err := w.ExplainNode(q.Node)
	if err != nil {
		return err
	}
	return q.print(out, x, x.At, func(when string) error { return Node(out, &x.NodeExplanation, when) })
}

func (q *Questions) printNodes(out io.Writer, w *sim.World) error {
	x, err := w.ExplainNodes()
	if err != nil {
		return err
	}
	return q.print(out, x, x.At, func(when string) error { return Nodes(out, &x.NodesExplanation, when) })
}

// print writes an explanation as JSON, or as text by a function that is given its time in
// words.
func (q *Questions) print(out io.Writer, x any, at time.Duration, text func(when string) error) error {
	if q.JSON {
		enc := json.NewEncoder(out)
		enc.SetIndent("", "  ")
		return enc.Encode(x)
	}
	return text(fmt.Sprintf("virtual time %s", at.Round(time.Millisecond)))
}
