package term

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/berthproject/berth/core/autoscaler"
	v1alpha1 "github.com/berthproject/berth/edge/api/v1alpha1"
	"github.com/berthproject/berth/sim/report"
)

// This file writes nodes one by one.

// Share returns how much of a resource of a node is requested; ok is false when the node has none of it.
func Share(n *v1alpha1.Node, resource string) (share float64, ok bool) {
	for _, u := range n.Resources {
		if u.Resource == resource {
			return float64(u.Share), !u.Allocatable.IsZero()
		}
	}
	return 0, false
}

// Devices returns the extended resource that is shown as a node's GPUs: one whose name says so, otherwise none.
func Devices(n *v1alpha1.Node) *v1alpha1.ResourceUse {
	for i := range n.Resources {
		u := &n.Resources[i]
		if strings.Contains(u.Resource, "gpu") && !u.Allocatable.IsZero() {
			return u
		}
	}
	return nil
}

// largest is the larger of a node's shares of CPU and memory.
func largest(n *v1alpha1.Node) float64 {
	cpu, _ := Share(n, "cpu")
	memory, _ := Share(n, "memory")
	return max(cpu, memory)
}

// urgency is the place of a node in lists: on its way out, unready, removable, others.
func urgency(n *v1alpha1.Node) int {
	switch {
	case n.State == v1alpha1.NodeLeaving:
		return 0
	case !n.Ready:
		return 1
	case n.State == v1alpha1.Candidate:
		return 2
	}
	return 3
}

// SortNodes sorts nodes by urgency, then by utilization, the least utilized first.
func SortNodes(list []v1alpha1.Node) {
	slices.SortStableFunc(list, func(a, b v1alpha1.Node) int {
		return cmp.Or(cmp.Compare(urgency(&a), urgency(&b)), cmp.Compare(largest(&a), largest(&b)), strings.Compare(a.Name, b.Name))
	})
}

// WhyNode says in words why a node stays, or how far it is on its way out; "" for nothing.
func WhyNode(n *v1alpha1.Node) string {
	why := report.WhyNode(autoscaler.KeptReason(n.Reason))
	if n.State == v1alpha1.NodeLeaving {
		why, _ = report.HowFar(n.Step)
	}
	if n.Pod != "" {
		why += ": " + n.Pod
	}
	return why
}

// StateOf returns where a node stands in a word or two.
func StateOf(n *v1alpha1.Node) string {
	state, _ := stateAndColour(n)
	return state
}

func stateAndColour(n *v1alpha1.Node) (string, colour) {
	switch {
	case !n.Ready:
		return "not ready", bad
	case n.Unschedulable && n.State != v1alpha1.NodeLeaving:
		return "cordoned", busy
	}
	return stateOfNode(n.State)
}

// NodeTable returns nodes as rows below a heading.
func NodeTable(list []v1alpha1.Node) []line {
	gpus := slices.ContainsFunc(list, func(n v1alpha1.Node) bool { return Devices(&n) != nil })
	rows := []line{{{"NODE", faint}, {"GROUP", faint}, {"CPU", faint}, {"MEMORY", faint}}}
	if gpus {
		rows[0] = append(rows[0], cell{"GPU", faint})
	}
	rows[0] = append(rows[0], line{{"PODS", faint}, {"$/H", faint}, {"STATE", faint}, {"WHY", faint}}...)
	for i := range list {
		n := &list[i]
		cpu, _ := Share(n, "cpu")
		memory, _ := Share(n, "memory")
		row := line{{n.Name, plain}, {orDash(n.Group), faint}, {bar(cpu), loadColour(cpu)}, {bar(memory), loadColour(memory)}}
		if gpus {
			row = append(row, cell{gpusOf(n), plain})
		}
		state, c := stateAndColour(n)
		rows = append(rows, append(row, line{{fmt.Sprint(n.Pods), plain}, {price(float64(n.Price)), plain}, {state, c}, {orDash(WhyNode(n)), plain}}...))
	}
	return rows
}

// gpusOf says how many of a node's GPUs are requested.
func gpusOf(n *v1alpha1.Node) string {
	u := Devices(n)
	if u == nil {
		return "-"
	}
	return u.Requested.String() + "/" + u.Allocatable.String()
}

// loadColour says how well a node is used.
func loadColour(share float64) colour {
	switch {
	case share > 1:
		return bad
	case share >= 0.5:
		return good
	}
	return busy
}
