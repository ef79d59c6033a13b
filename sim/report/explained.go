package report

import (
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
}

// Any reports whether there is a question.
func (q *Questions) Any() bool {
	return q.Pod != "" || q.PodGroup != "" || q.Group != "" || q.Node != "" || q.Nodes
}

// Question is what one of the flags asks: what the arguments of berth explain would.
type Question struct {
	Flag string
	Args []string
}

// Asked returns the questions, in the order in which help lists the flags.
func (q *Questions) Asked() (out []Question) {
	for _, x := range []Question{
		{"--explain", []string{"pod", q.Pod}}, {"--explain-podgroup", []string{"podgroup", q.PodGroup}}, {"--explain-group", []string{"group", q.Group}},
		{"--explain-node", []string{"node", q.Node}},
	} {
		if x.Args[1] != "" {
			out = append(out, x)
		}
	}
	if q.Nodes {
		out = append(out, Question{"--explain-nodes", []string{"nodes"}})
	}
	return out
}

// Explanations writes the answers as text, in the order in which help lists the flags. An error names the
// flag whose pod, pod group, group or node isn't found; what was asked before it is written by then.
func (q *Questions) Explanations(out io.Writer, w *sim.World) error {
	out = PrintableWriter(out)
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
	return Explanation(out, &x.Explanation, virtual(x.At))
}

func (q *Questions) printPodGroup(out io.Writer, w *sim.World) error {
	x, err := w.ExplainPodGroup(q.PodGroup)
	if err != nil {
		return err
	}
	return PodGroup(out, &x.PodGroupExplanation, virtual(x.At))
}

func (q *Questions) printGroup(out io.Writer, w *sim.World) error {
	x, err := w.ExplainGroup(q.Group)
	if err != nil {
		return err
	}
	return Group(out, &x.GroupExplanation, virtual(x.At))
}

func (q *Questions) printNode(out io.Writer, w *sim.World) error {
	x, err := w.ExplainNode(q.Node)
	if err != nil {
		return err
	}
	return Node(out, &x.NodeExplanation, virtual(x.At))
}

func (q *Questions) printNodes(out io.Writer, w *sim.World) error {
	x, err := w.ExplainNodes()
	if err != nil {
		return err
	}
	return Nodes(out, &x.NodesExplanation, virtual(x.At))
}

// virtual returns a time of a run in words.
func virtual(at time.Duration) string {
	return fmt.Sprintf("virtual time %s", at.Round(time.Millisecond))
}
