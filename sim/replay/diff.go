package replay

import (
	"fmt"

	"github.com/berthproject/berth/core/step"
)

// This file compares two lists of decisions. Times and scores don't count, only what became
// of each pod, node group and node.

// Difference is a pod, a node group or a node about which another configuration decides
// otherwise. Recorded and Now are in words, "nothing" where none of the two kinds of decisions was made.
type Difference struct{ What, Recorded, Now string }

// Diff compares, pod by pod, where a pod was placed last; group by group, how many nodes
// were ordered in all; and node by node, whether it was removed. The order is that in which
// the decisions first name each.
func Diff(recorded, now []step.Decision) []Difference {
	before, order := outcomes(recorded, nil)
	after, order := outcomes(now, order)
	var out []Difference
	seen := map[string]bool{}
	for _, what := range order {
		if seen[what] {
			continue
		}
		seen[what] = true
		d := Difference{what, before[what], after[what]}
		if d.Recorded == "" {
			d.Recorded = "nothing"
		}
		if d.Now == "" {
			d.Now = "nothing"
		}
		if d.Recorded != d.Now {
			out = append(out, d)
		}
	}
	return out
}

// outcomes returns what became of each thing, and appends the things to order.
func outcomes(decisions []step.Decision, order []string) (map[string]string, []string) {
	became, ordered := map[string]string{}, map[string]int{}
	for i := range decisions {
		d := &decisions[i]
		var what, outcome string
		switch d.Kind {
		case step.Placed:
			what, outcome = "pod "+d.Pod, d.Node
		case step.ScaledUp:
			ordered[d.Group] += d.Nodes
			what, outcome = "group "+d.Group, fmt.Sprintf("%d nodes ordered", ordered[d.Group])
		case step.NodeRemoved:
			what, outcome = "node "+d.Node, "removed"
		default:
			continue
		}
		became[what] = outcome
		order = append(order, what)
	}
	return became, order
}
