package term

import (
	"fmt"
	"strings"

	"github.com/berthproject/berth/core/autoscaler"
	v1alpha1 "github.com/berthproject/berth/edge/api/v1alpha1"
	"github.com/berthproject/berth/sim/report"
)

// This file is berth status --brief: what pods and nodes wait for in one line, in the words of the
// whole screen.

// What the line has at most: so many reasons of pods, and of nodes.
const (
	briefPending = 2
	briefReasons = 3
)

// Brief returns the line. Nodes that are being removed are counted by how far they are, since
// hundreds may be; the nodes that stay come last. It is never empty, so that a script can tell an idle
// cluster from no answer.
func Brief(s *Status) string {
	var out []string
	for _, p := range s.Pending[:min(len(s.Pending), briefPending)] {
		out = append(out, fmt.Sprintf("%s pending: %s", report.Count(p.Pods, "pod"), whyPending(&p)))
	}
	rest := *s
	rest.Draining = nil
	for _, row := range nowRows(&rest) {
		out = append(out, inWords(row))
	}
	out = append(out, leaving(s.Draining)...)
	out = append(out, staying(s.ScaleDown)...)
	if len(out) == 0 {
		return "nothing is pending, and nothing is being done"
	}
	return strings.Join(out, "; ")
}

// inWords returns a row of the screen as a phrase.
func inWords(row line) string {
	out := row[0].text + " " + row[1].text
	if len(row) > 2 && row[2].text != "" {
		out += ", " + row[2].text
	}
	return out
}

// leaving returns how many nodes on their way out wait for the same, in the order of their names.
func leaving(nodes []v1alpha1.Draining) (out []string) {
	var order []string
	by := map[string]int{}
	for _, n := range nodes {
		how, _ := report.HowFar(n.Step)
		if by[how]++; by[how] == 1 {
			order = append(order, how)
		}
	}
	for _, how := range order {
		out = append(out, fmt.Sprintf("removing %s: %s", report.Count(by[how], "node"), how))
	}
	return out
}

// staying returns why most of the other nodes stay, and when no node is looked at, why.
func staying(x *v1alpha1.ScaleDown) (out []string) {
	if x == nil {
		return nil
	}
	if x.Why != "" {
		out = append(out, fmt.Sprintf("scale-down %s: %s", x.Status, x.Why))
	}
	for _, r := range x.Reasons {
		if why := report.WhyNode(autoscaler.KeptReason(r.Reason)); r.State != v1alpha1.NodeLeaving && why != "" && len(out) < briefReasons {
			out = append(out, fmt.Sprintf("%s %s: %s", report.Count(r.Nodes, "node"), nodesDo(r.State, r.Nodes), why))
		}
	}
	return out
}

// nodesDo returns what nodes of a state do or are, as a phrase goes on after their number.
func nodesDo(state v1alpha1.NodeState, nodes int) string {
	if state == v1alpha1.Stays && nodes > 1 {
		return "stay"
	}
	word, _ := stateOfNode(state)
	return word
}
