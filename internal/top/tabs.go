package top

import (
	"fmt"
	"math"
	"strings"
	"time"

	v1alpha1 "github.com/berthproject/berth/edge/api/v1alpha1"
	"github.com/berthproject/berth/internal/term"
)

// The tabs, in their order.
const (
	nodesTab = iota
	groupsTab
	podsTab
	tabs
)

// tabNames are what tabs are called.
var tabNames = [tabs]string{"Nodes", "Node groups", "Pending pods"}

// wide is the width of a terminal from which shares have bars.
const wide = 140

// tableOf returns the table of a tab for a terminal of a width.
// Tables are made anew for each screen, of the answers of one snapshot.
func (s *snapshot) tableOf(tab, width int) *table {
	switch tab {
	case groupsTab:
		return s.groupTable()
	case podsTab:
		return s.podTable()
	}
	return s.nodeTable(width)
}

// nodeTable returns the nodes. The columns that matter most come first; from is the width
// of a terminal from which a column is there.
func (s *snapshot) nodeTable(width int) *table {
	t := &table{
		columns: []column{
			{title: "NODE", least: 12, most: 60}, {title: "CPU", right: true}, {title: "MEM", right: true}, {title: "GPU", right: true},
			{title: "PODS", right: true, from: 60}, {title: "$/H", right: true, from: 60}, {title: "STATE", most: 14},
			{title: "GROUP", most: 24, from: 90}, {title: "AGE", right: true, from: 120}, {title: "TYPE", most: 18, from: 150}, {title: "ZONE", most: 16, from: 150}, {title: "WHY", least: 12, from: 100},
		},
		groups: []string{"group", "zone", "type", "state"},
	}
	for i := range s.nodes {
		n := &s.nodes[i]
		state := term.StateOf(n)
		t.rows = append(t.rows, row{
			key: n.Name, kind: "node", name: n.Name, groups: []string{n.Group, n.Zone, n.InstanceType, state},
			cells: []cell{
				text(n.Name), shareCell(n, "cpu", width), shareCell(n, "memory", width), gpuCell(n), numbered(podsOn(n), float64(n.Pods)), priceCell(n.Price),
				toned(state, toneOf(n)), text(dash(n.Group)), ageCell(s.status.At, n.Created), text(dash(n.InstanceType)), text(dash(n.Zone)), text(dash(term.WhyNode(n))),
			},
		})
	}
	return t
}

// toneOf returns the colour of a node's state.
func toneOf(n *v1alpha1.Node) tone {
	switch {
	case !n.Ready:
		return bad
	case n.State == v1alpha1.NodeLeaving, n.Unschedulable:
		return busy
	case n.State == v1alpha1.Candidate:
		return good
	}
	return plain
}

// shareCell is how much of a resource of a node is requested.
// Requests, not use: placement goes by requests. A share above 1 is possible after a
// resize, or where another scheduler placed pods.
func shareCell(n *v1alpha1.Node, resource string, width int) cell {
	share, ok := term.Share(n, resource)
	if !ok {
		// -1 sorts what isn't known before everything that is.
		return numbered("-", -1)
	}
	out := numbered(fmt.Sprintf("%.0f %%", 100*share), share)
	if width >= wide {
		const bar = 8
		full := int(math.Round(min(max(share, 0), 1) * bar))
		out.text = strings.Repeat("█", full) + strings.Repeat("░", bar-full) + fmt.Sprintf(" %3.0f %%", 100*share)
	}
	switch {
	case share > 1:
		out.tone = bad
	case share < 0.5:
		// Nodes that are less than half full are worth a look.
		out.tone = busy
	default:
		out.tone = good
	}
	return out
}

// gpuCell is how many of a node's GPUs are requested.
// GPUs are whole devices, so they are counted instead of given as a share.
func gpuCell(n *v1alpha1.Node) cell {
	u := term.Devices(n)
	if u == nil {
		return numbered("-", -1)
	}
	return numbered(u.Requested.String()+"/"+u.Allocatable.String(), float64(u.Share))
}

// podsOn returns the pods of a node and, where it is known, how many it may have.
func podsOn(n *v1alpha1.Node) string {
	if n.MaxPods == 0 {
		return fmt.Sprint(n.Pods)
	}
	return fmt.Sprintf("%d/%d", n.Pods, n.MaxPods)
}

// priceCell returns a price an hour; 0 means that there is none.
func priceCell(p v1alpha1.Price) cell {
	if p == 0 {
		return numbered("-", 0)
	}
	return numbered(fmt.Sprintf("%.2f", p), float64(p))
}

// ageCell returns for how long something has been; it is sorted by seconds, not by its
// text.
func ageCell(now, since time.Time) cell {
	if since.IsZero() || since.Unix() <= 0 {
		return numbered("-", -1)
	}
	return numbered(term.Ago(now, since), now.Sub(since).Seconds())
}

// groupTable returns the node groups, with what keeps each from growing.
func (s *snapshot) groupTable() *table {
	t := &table{columns: []column{
		{title: "GROUP", least: 12, most: 60}, {title: "MIN", right: true, from: 70}, {title: "TARGET", right: true}, {title: "MAX", right: true}, {title: "READY", right: true}, {title: "LAUNCHING", right: true},
		{title: "REMOVABLE", right: true, from: 70}, {title: "$/H", right: true}, {title: "LIMIT", least: 8, from: 70},
	}, groups: nil}
	n := func(v int) cell { return numbered(fmt.Sprint(v), float64(v)) }
	for i := range s.groups {
		g := &s.groups[i]
		limit := text(dash(g.Limit))
		// A backoff ends by itself, so its end is shown.
		if g.Backoff != nil {
			limit = toned(g.Limit+" until "+g.Backoff.Until.UTC().Format(time.TimeOnly), bad)
		}
		t.rows = append(t.rows, row{key: g.Name, kind: "group", name: g.Name,
			cells: []cell{text(g.Name), n(g.Min), n(g.Target), n(g.Max), n(g.Ready), n(g.Launching), n(g.Removable), priceCell(g.Total), limit}})
	}
	return t
}

// podTable returns the pods without a node. At most maxPending were read; the number in the
// tab's name counts all.
func (s *snapshot) podTable() *table {
	t := &table{columns: []column{
		{title: "POD", least: 16, most: 60}, {title: "WAITING", right: true}, {title: "STATE", most: 12}, {title: "TRIES", right: true, from: 70},
		{title: "GROUP", most: 24, from: 110}, {title: "REASON", least: 12},
	}, groups: []string{"reason", "namespace", "owner", "state"}}
	for i := range s.pods {
		p := &s.pods[i]
		owner := ""
		if p.Owner != nil {
			owner = p.Namespace + " " + p.Owner.Kind + "/" + p.Owner.Name
		}
		state := toned(string(p.State), plain)
		if p.State == v1alpha1.Rejected {
			state.tone = busy
		}
		t.rows = append(t.rows, row{key: p.Namespace + "/" + p.Name, kind: "pod", name: p.Namespace + "/" + p.Name, groups: []string{p.Reason, p.Namespace, owner, string(p.State)},
			cells: []cell{text(p.Namespace + "/" + p.Name), ageCell(s.status.At, p.Since), state, numbered(fmt.Sprint(p.Attempts), float64(p.Attempts)), text(dash(p.Group)), text(dash(p.Reason))}})
	}
	return t
}

// dash keeps a cell from being empty: an empty one looks like a mistake.
func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// count returns how many rows a heading has below it.
func count(n int) string {
	if n == 1 {
		return "1 row"
	}
	return fmt.Sprintf("%d rows", n)
}
