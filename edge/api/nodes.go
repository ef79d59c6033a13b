package api

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/berthproject/berth/core"
	"github.com/berthproject/berth/core/explain"
	v1alpha1 "github.com/berthproject/berth/edge/api/v1alpha1"
)

// This file answers nodes and nodes/NAME. All lists of nodes are made of one answer of the core, O(nodes), which is
// shared and must not be changed: filters and orders work on pointers into it.
//
// What must hold: the pages of one answer have every node once, whatever the order. In the order of names the key of a page
// is a name, so that this holds while nodes come and go, too; in another it is the place in the order, where nodes that are
// equal are by name.

// nodeRows asks for all nodes, by name; they are shared. Sorting them is left to whoever has asked first: it needs no core.
func (a *API) nodeRows(r *request) ([]explain.NodeRow, time.Time, error) {
	x, at, err := a.questions.preparedPageOf(r, "nodes", func(c *core.Core) (any, error) { return c.View().NodeRows(), nil }, func(x any) any {
		rows := x.([]explain.NodeRow)
		slices.SortFunc(rows, func(a, b explain.NodeRow) int { return strings.Compare(a.Node, b.Node) })
		return rows
	})
	if err != nil {
		return nil, at, err
	}
	return x.([]explain.NodeRow), at, nil
}

// nodeOrders are the values of ?sort=, with how they compare nodes; nodes that are equal are by name.
var nodeOrders = map[string]func(a, b *explain.NodeRow) int{
	// Nodes come sorted by name, and the sort is stable. Those with most money, load or pods come first; names, groups,
	// states and ages ascend.
	"name":   func(_, _ *explain.NodeRow) int { return 0 },
	"group":  func(a, b *explain.NodeRow) int { return strings.Compare(a.Group, b.Group) },
	"price":  func(a, b *explain.NodeRow) int { return cmp.Compare(b.Price, a.Price) },
	"cpu":    func(a, b *explain.NodeRow) int { return cmp.Compare(b.CPU.Share(), a.CPU.Share()) },
	"memory": func(a, b *explain.NodeRow) int { return cmp.Compare(b.Memory.Share(), a.Memory.Share()) },
	"pods":   func(a, b *explain.NodeRow) int { return cmp.Compare(b.Pods, a.Pods) },
	"state":  func(a, b *explain.NodeRow) int { return strings.Compare(a.State, b.State) },
	"age": func(a, b *explain.NodeRow) int {
		return a.Object.CreationTimestamp.Compare(b.Object.CreationTimestamp.Time)
	},
}

// nodes answers nodes: those that match, in an order, a page at a time. Names of nodes are for every viewer; the pods that
// keep them are cut by node.
func (a *API) nodes(r *request) (any, error) {
	rows, at, err := a.nodeRows(r)
	if err != nil {
		return nil, err
	}
	order := nodeOrders[cmp.Or(r.query.Get("sort"), "name")]
	if order == nil {
		return nil, bad("sort is %q; it must be age, cpu, group, memory, name, pods, price or state", r.query.Get("sort"))
	}
	var found []*explain.NodeRow
	for i := range rows {
		if matchesNode(r, &rows[i]) {
			found = append(found, &rows[i])
		}
	}
	// Pages of another order that changes between them may have a node twice or not at all, as lists of Kubernetes may after
	// their snapshot has expired.
	slices.SortStableFunc(found, order)
	out := v1alpha1.NodeList{List: v1alpha1.List{At: at, Total: len(found)}, Items: []v1alpha1.Node{}}
	key := func(row **explain.NodeRow) string { return (*row).Node }
	if cmp.Or(r.query.Get("sort"), "name") != "name" {
		// Names don't sort the list, and its places are the keys.
		place := make(map[*explain.NodeRow]int, len(found))
		for i, row := range found {
			place[row] = i
		}
		key = func(row **explain.NodeRow) string { return fmt.Sprintf("%08d", place[*row]) }
	}
	found, err = page(r.query, found, key, &out.List)
	if err != nil {
		return nil, badRequest{err}
	}
	for _, row := range found {
		out.Items = append(out.Items, node(r.viewer, row))
	}
	return out, nil
}

// matchesNode reports whether a node is one of those that a request is for.
func matchesNode(r *request, row *explain.NodeRow) bool {
	// Values of one parameter are alternatives, and different parameters must all match.
	for name, value := range map[string]string{"group": row.Group, "zone": row.Object.Labels[v1.LabelTopologyZone], "state": row.State, "reason": string(row.Reason)} {
		if wanted := r.query[name]; len(wanted) > 0 && !slices.Contains(wanted, value) {
			return false
		}
	}
	return strings.Contains(row.Node, r.query.Get("q"))
}

// capacityLabels are the labels by which providers tell spot from on-demand.
var capacityLabels = []string{"karpenter.sh/capacity-type", "eks.amazonaws.com/capacityType", "cloud.google.com/gke-provisioning", "kubernetes.azure.com/scalesetpriority", "node.kubernetes.io/capacity-type"}

// node returns a row for a viewer.
func node(v *viewer, row *explain.NodeRow) v1alpha1.Node {
	labels := row.Object.Labels
	n := v1alpha1.Node{
		Name: row.Node, Group: row.Group, InstanceType: labels[v1.LabelInstanceTypeStable], Zone: labels[v1.LabelTopologyZone], Arch: labels[v1.LabelArchStable],
		Created: row.Object.CreationTimestamp.UTC(), Ready: row.Ready, Unschedulable: row.Unschedulable, Price: v1alpha1.Price(row.Price),
		State: v1alpha1.NodeState(row.State), Reason: string(row.Reason), Pod: v.pod(row.Pod), Step: row.Step, Pods: row.Pods, MaxPods: int(row.MaxPods),
		Resources: append([]v1alpha1.ResourceUse{use(v1.ResourceCPU, row.CPU), use(v1.ResourceMemory, row.Memory)}, uses(row.Extended)...),
	}
	// The first label that is there counts; providers spell the same word differently: SPOT, Spot, spot.
	for _, key := range capacityLabels {
		n.CapacityType = cmp.Or(n.CapacityType, strings.ToLower(labels[key]))
	}
	return n
}

// node answers nodes/NAME. The core is asked once, for all there is about the node; and for all nodes, an answer that all viewers
// share, only where there is no such node and similar names are suggested.
func (a *API) node(r *request) (any, error) {
	type found struct {
		row  explain.NodeRow
		ok   bool
		x    explain.NodeExplanation // empty when Berth only schedules
		pods []explain.PodLine
	}
	// One question a node and tick: who follows a node in its drawer asks the core no more often than an overview does.
	// A viewer from whom something is hidden may still have it explained: what names pods is left out.
	x, at, err := a.questions.of(r.Context(), "node/"+r.object, func(c *core.Core) (any, error) {
		v, f := c.View(), &found{}
		if f.row, f.ok = v.NodeRow(r.object); f.ok {
			f.x, _ = v.ExplainNode(r.object)
			f.pods = v.LinesOn(r.object)
			slices.SortFunc(f.pods, func(a, b explain.PodLine) int { return comparePods(&a, &b) })
		}
		return f, nil
	})
	if err != nil {
		return nil, err
	}
	f := x.(*found)
	if !f.ok {
		rows, _, err := a.nodeRows(r)
		if err != nil {
			return nil, err
		}
		names := make([]string, len(rows))
		for i := range rows {
			names[i] = rows[i].Node
		}
		return nil, noSuch("node", r.object, names)
	}
	out := nodeDetail(r.viewer, &f.row, &f.x)
	out.At = at
	for i := range f.pods {
		if p := &f.pods[i]; r.viewer.sees(p.Object.Namespace) {
			out.OnNode = append(out.OnNode, pod(p))
		} else {
			out.Hidden++
		}
	}
	for _, d := range a.opt.Ledger.OfNode(r.object) {
		out.Decisions = append(out.Decisions, decision(r.viewer, &d, brief))
	}
	return out, nil
}

// nodeDetail returns what there is to say about a node, but for the pods on it and its decisions. x is empty where nothing
// is removed: then the node's object and its use are all there is.
func nodeDetail(v *viewer, row *explain.NodeRow, x *explain.NodeExplanation) *v1alpha1.NodeDetail {
	out := &v1alpha1.NodeDetail{
		Node: node(v, row), Labels: row.Object.Labels, Detail: v.text(x.Detail),
		Since: timeOf(x.Since), Looked: timeOf(x.Looked), Due: timeOf(x.Due), Planned: timeOf(x.Planned),
		OnNode: []v1alpha1.Pod{}, Decisions: []v1alpha1.Decision{},
	}
	// These sentences name pods in their middle, and no list says which.
	if v.all {
		out.Changes = x.Changes
	}
	// A share of 0 is one that was measured; nil says that scale-down hasn't looked at the node.
	if x.Utilization != nil {
		share := v1alpha1.Share(*x.Utilization)
		out.Utilization = &share
	}
	if x.Leaving != nil {
		l := leaving(v, x.Leaving)
		out.Leaving = &l
	}
	// All taints, those of Berth among them: they are what the API shows, and what other schedulers heed.
	for _, t := range row.Object.Spec.Taints {
		out.Taints = append(out.Taints, v1alpha1.Taint{Key: t.Key, Value: t.Value, Effect: string(t.Effect)})
	}
	// What is left out here isn't counted: hidden counts the pods on the node, which these are among.
	for _, b := range x.Blocks {
		if v.pod(b.Pod) != "" {
			out.Blocks = append(out.Blocks, v1alpha1.Block(b))
		}
	}
	for _, p := range x.Pods {
		if v.pod(p.Pod) != "" {
			out.Moves = append(out.Moves, v1alpha1.Move{Pod: p.Pod, Node: p.Home, Why: p.Why})
		}
	}
	// How many are left out isn't said either: waiting for a hidden pod shows in the step that the removal is at.
	out.WaitsFor, _ = v.pods(x.WaitsFor)
	out.Awaits, _ = v.pods(x.Awaits)
	return out
}
