package scaleup_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/autoscaler/scaleup"
	"github.com/berthproject/berth/core/cluster"
)

// This file writes what the scripts' goldens compare: plans, choices, estimates and answers
// to who asks about a pod, and the state, which a plan must leave as it was.

// dump writes the state, of facts those that are in known, or count something when that is "".
// Classes that are new make facts.
func (f *fixture) dump(known string) string {
	var b bytes.Buffer
	f.state.Dump(&b)
	lines := strings.Split(b.String(), "\n")
	return strings.Join(slices.DeleteFunc(lines, func(l string) bool {
		name := l[:strings.LastIndex(l, `"`)+1]
		return strings.HasPrefix(l, "fact ") && (known != "" && !strings.Contains(known, name) ||
			strings.HasSuffix(l, "\" ") || strings.Contains(l, "|lowest\"  lowest 0 of "))
	}), "\n")
}

// explain writes what there is to say about a pending pod and each group.
func (f *fixture) explain(name string) string {
	var out strings.Builder
	at := slices.IndexFunc(f.req.Pending, func(p *cluster.Pod) bool { return string(p.UID) == name })
	answer := f.packer.Explain(f.req, f.req.Pending[at])
	if answer.Node != nil {
		fmt.Fprintf(&out, "a place on %s of %s, registered: %t\n", answer.Node.Name, answer.Node.Group, answer.Registered)
	}
	for _, g := range answer.Groups {
		fmt.Fprintf(&out, "%s: room for %d", g.Group, g.Room)
		if g.Limit != "" {
			fmt.Fprintf(&out, ", %s", g.Limit)
		} else {
			fmt.Fprintf(&out, " until %s", g.Next)
		}
		if g.Reason != nil {
			fmt.Fprintf(&out, "; %s: %s %v", g.Reason.Plugin, strings.Join(g.Reason.Messages, ", "), g.Reason.Deficits)
			if g.Detail != "" {
				fmt.Fprintf(&out, " (%s)", g.Detail)
			}
		}
		out.WriteByte('\n')
	}
	return out.String()
}

func describe(plan *autoscaler.Plan) string {
	var out strings.Builder
	if plan.Covered > 0 {
		fmt.Fprintf(&out, "%d pods need nothing\n", plan.Covered)
	}
	for _, g := range plan.Gangs {
		fmt.Fprintf(&out, "%s: %d of %d members have places, %d nodes are bought", strings.TrimPrefix(g.Gang, "default/"), g.Placed, g.Members, g.Nodes)
		if g.Domain != "" {
			fmt.Fprintf(&out, " in %s", g.Domain)
		}
		if g.Price > 0 {
			fmt.Fprintf(&out, " at %.2f", g.Price)
		}
		if g.Anew {
			out.WriteString(", planned anew")
		}
		for _, o := range g.Tried {
			fmt.Fprintf(&out, "; tried %q: %d fit", o.Domain, o.Fits)
		}
		out.WriteByte('\n')
	}
	for _, fit := range plan.Fitting {
		if fit.Pod.Group != nil {
			fmt.Fprintf(&out, "%s fits on %s\n", fit.Pod.UID, fit.Node)
		}
	}
	for _, j := range plan.Joins {
		fmt.Fprintf(&out, "%v on the node %q of %s, beside %q\n", j.Pods, j.Node, j.Group, j.With)
	}
	for _, r := range plan.Recalls {
		fmt.Fprintf(&out, "%s stays for %v\n", r.Node, r.Pods)
	}
	for _, up := range plan.ScaleUps {
		fmt.Fprintf(&out, "%d of %s for %v, wasting %.2f", up.Nodes, up.Group, up.Pods, up.Wasted)
		if up.Gang != "" {
			fmt.Fprintf(&out, ", for %s as a whole: %v", strings.TrimPrefix(up.Gang, "default/"), up.Bins)
		}
		if up.Mix != nil {
			fmt.Fprintf(&out, ", in a mix of %.2f, at least %.2f", up.Mix.Price, up.Mix.LowerBound)
		}
		out.WriteByte('\n')
	}
	if plan.Unplanned > 0 {
		fmt.Fprintf(&out, "%d pods are left to the next plan\n", plan.Unplanned)
	}
	for _, n := range plan.NoHelp {
		fmt.Fprintf(&out, "nothing for %v: %s\n", n.Pods, strings.Join(n.Reasons, ", "))
	}
	for _, u := range plan.Unneeded {
		fmt.Fprintf(&out, "nobody needs %d of %s\n", u.Nodes, u.Group)
	}
	if out.Len() == 0 {
		return "nothing\n"
	}
	return out.String()
}

// describeChoices writes how the groups of a plan were chosen.
func describeChoices(plan *autoscaler.Plan) string {
	var out strings.Builder
	for _, up := range plan.ScaleUps {
		fmt.Fprintf(&out, "%s by %q", up.Group, up.Choice.By)
		if up.Choice.Unpriced {
			out.WriteString(", no option has a price")
		}
		out.WriteString("\n")
		for _, o := range up.Choice.Options {
			fmt.Fprintf(&out, "  %s with %v: %d nodes for %d pods, wasting %.2f, at %.2f\n", o.Group, o.With, o.Nodes, o.Pods, o.Wasted, o.Price)
		}
		if next, dearest := up.Choice.Next, up.Choice.Dearest; next != nil {
			fmt.Fprintf(&out, "  %d nodes at %.2f; next %d of %s at %.2f, dearest %d of %s at %.2f\n", up.Choice.Nodes, up.Choice.Price, next.Nodes, next.Group, next.Price, dearest.Nodes, dearest.Group, dearest.Price)
		}
	}
	return out.String()
}

func describeEstimates(list []scaleup.Estimate) string {
	var out strings.Builder
	for _, e := range list {
		fmt.Fprintf(&out, "%d like %s:\n", len(e.Pods), e.Pods[0].Name())
		for _, g := range e.Groups {
			fmt.Fprintf(&out, "  %s: ", g.Group)
			switch {
			case g.Limit != "":
				fmt.Fprintln(&out, g.Limit)
				continue
			case g.Reason != nil && g.Fits == 0:
				fmt.Fprintln(&out, strings.Join(g.Reason.Messages, ", "))
				continue
			}
			fmt.Fprintf(&out, "%d fit on %d nodes", g.Fits, g.Nodes)
			if len(g.With) > 0 {
				fmt.Fprintf(&out, " with %v", g.With)
			}
			for _, w := range g.Waste {
				fmt.Fprintf(&out, ", %s %.2f", w.Resource, w.Share())
			}
			out.WriteByte('\n')
		}
	}
	if out.Len() == 0 {
		return "nothing\n"
	}
	return out.String()
}
