package explain

// This file says for people where a whole cluster stands, at a glance: which pods have no node
// and what they wait for, which nodes are being bought, which are leaving, and which pods take
// the place of others. Nodes one by one are in node_lines.go.

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/engine"
	"github.com/berthproject/berth/core/lifecycle/nodestatus"
	"github.com/berthproject/berth/core/queue"
	"github.com/berthproject/berth/core/record"
	"github.com/berthproject/berth/core/step"
)

// Overview is where a cluster stands, at a glance.
type Overview struct {
	// Rules is the version of Kubernetes whose scheduling rules are followed, such as 1.37.
	Rules string `json:"rules,omitempty"`
	// Placed is how many pods are on nodes, those that are being bound included: these are in
	// Pending, too, as PendingBinding.
	Placed int `json:"placed"`
	// Pending are the pods without a node by what they wait for, the most pods first.
	Pending []PendingPods `json:"pending"`
	Nodes   NodesOverview `json:"nodes"`
	// Buying are the node groups with nodes that were ordered and aren't usable yet, by name.
	Buying []Buying `json:"buying,omitempty"`
	// Leaving are the nodes on their way out, by name; maxListed at most.
	Leaving []LeavingNode `json:"leaving,omitempty"`
	// Preempting are the pods whose victims are leaving, by name; maxListed at most.
	Preempting []Preempting `json:"preempting,omitempty"`
	// BackingOff are the node groups that aren't asked for nodes since some failed, by name.
	BackingOff []BackingOff `json:"backingOff,omitempty"`
	// CoolingDown are the node groups whose candidates for removal wait for a scale-down delay, by
	// name.
	CoolingDown []CoolingDown `json:"coolingDown,omitempty"`
	// Unpriced are the node groups without a price; nil when all have one, or no flag needs prices.
	Unpriced *Unpriced `json:"unpriced,omitempty"`
	// Resizes are the resizes in place that kubelets have not begun; nil for none, and when Berth only schedules.
	Resizes *PendingResizes `json:"resizes,omitempty"`
}

// Unpriced are node groups without a price where flags need prices: cost and price don't choose by
// them, and their nodes aren't consolidated.
type Unpriced struct {
	NeededBy []string `json:"neededBy"` // flags
	Groups   []string `json:"groups"`   // by name; maxListed at most
	Without  int      `json:"without"`  // number of groups without a price
	Of       int      `json:"of"`       // number of all groups
}

// maxListed is how many nodes on their way out and how many preempting pods an overview lists.
// Only the lists are cut: Nodes.ScaleDown and Pending count all.
const maxListed = 50

// What a pod without a node waits for, or which state it is in.
const (
	PendingBinding    = "Binding"    // it has a node, and the API doesn't show that yet
	PendingGated      = "Gated"      // a plugin keeps it out of the queue
	PendingPreempting = "Preempting" // its victims are leaving
	PendingNominated  = "Nominated"  // it waits for the node that it is nominated to
	PendingNodeComing = "NodeComing" // a node that was ordered for it is coming
	PendingUntried    = "Untried"    // it is about to be tried a first time
	PendingRejected   = "Rejected"   // no node takes it
	PendingUnmanaged  = "Unmanaged"  // it asks for a scheduler that isn't Berth
)

// PendingCause is what a pod without a node waits for.
type PendingCause struct {
	// State is one of the constants above: the first that holds, in the order of pendingCause.
	State string `json:"state"`
	// Reason is why most nodes reject a rejected pod, in kube-scheduler's words, and why a gated pod
	// waits; for a pod for which a node is coming it is the node group. In any other state it may have names of the
	// pod's own objects in it: its claims, its pod group, its gates.
	Reason string `json:"reason,omitempty"`
	Plugin string `json:"plugin,omitempty"` // that rejects most nodes
}

// PendingPods are pods without a node that wait for the same.
type PendingPods struct {
	PendingCause
	Pods int `json:"pods"`
	// Pod is the one of them that has waited longest, as namespace/name, and Since when Berth
	// first saw it without a node; zero for pods of other schedulers.
	Pod   string    `json:"pod"`
	Since time.Time `json:"since,omitzero"`
	// Namespaces are those of the pods, sorted. Whoever may read pods of none of them must not be shown Reason.
	Namespaces []string `json:"-"`
}

// NodesOverview counts nodes.
type NodesOverview struct {
	// Nodes is Ready and NotReady together. A cordoned node is in one of these as well.
	Nodes         int `json:"nodes"`
	Ready         int `json:"ready"`
	NotReady      int `json:"notReady,omitempty"`
	Unschedulable int `json:"unschedulable,omitempty"` // cordoned
	// ScaleDown is where they stand for scale-down, with what they cost; nil when Berth only
	// schedules.
	ScaleDown *NodesExplanation `json:"scaleDown,omitempty"`
}

// Buying is a node group of which nodes are coming.
type Buying struct {
	Group string  `json:"group"`
	Nodes int     `json:"nodes"`           // that are coming
	Price float64 `json:"price,omitempty"` // of all these an hour, 0 when it isn't known
	// Pods may be fewer than the nodes would hold, and 0 for nodes that were ordered to reach the
	// group's minimum.
	Pods int          `json:"pods"`           // that have a place on them
	Next *Expectation `json:"next,omitempty"` // of the oldest
}

// LeavingNode is a node on its way out.
type LeavingNode struct {
	Node  string  `json:"node"`
	Group string  `json:"group,omitempty"`
	Price float64 `json:"price,omitempty"` // an hour
	Leaving
	Pods int `json:"pods"` // that are still on it and have to leave
}

// Preempting is a pod whose victims are leaving.
type Preempting struct {
	Pod string `json:"pod"` // namespace/name
	// Node is the nominated node, where all Victims are; "" when the nomination was lost meanwhile.
	Node    string   `json:"node"`
	Victims []string `json:"victims"` // namespace/name
}

// BackingOff is a node group that isn't asked for nodes.
type BackingOff struct {
	Group string `json:"group"`
	Backoff
}

// CoolingDown is a node group from which no node is removed until a scale-down delay is over.
type CoolingDown struct {
	Group string    `json:"group"`
	Nodes int       `json:"nodes"` // candidates for removal
	Until time.Time `json:"until"`
	Why   string    `json:"why"` // what the delay follows, with its flag
}

// Overview says where the cluster stands, in O(nodes × log nodes + pods without a node).
func (v *View) Overview() Overview {
	o := Overview{Rules: v.State.Schema.Version().String(), Pending: v.pendingPods(), Preempting: v.preempting()}
	v.State.Nodes(func(n *cluster.Node) {
		o.Nodes.Nodes++
		o.Placed += len(n.Pods)
		if n.Ready() {
			o.Nodes.Ready++
		} else {
			o.Nodes.NotReady++
		}
		if n.Object.Spec.Unschedulable {
			o.Nodes.Unschedulable++
		}
	})
	if x, ok := v.ExplainNodes(); ok {
		o.Nodes.ScaleDown = &x
		o.Buying, o.BackingOff = v.buying()
		o.Leaving, o.CoolingDown = v.leavingNodes(), v.coolingDown(x.Groups)
		o.Unpriced, o.Resizes = v.unpriced(), v.pendingResizes()
	}
	return o
}

// unpriced returns the groups without a price, nil for none and when no flag needs prices.
func (v *View) unpriced() *Unpriced {
	if len(v.Autoscaler.NeedPrices) == 0 {
		return nil
	}
	groups := v.State.Groups()
	out := &Unpriced{NeededBy: v.Autoscaler.NeedPrices, Of: len(groups)}
	for _, g := range groups {
		if g.Price > 0 {
			continue
		}
		if out.Without++; len(out.Groups) < maxListed {
			out.Groups = append(out.Groups, g.ID)
		}
	}
	if out.Without == 0 {
		return nil
	}
	return out
}

// coolingDown returns the groups with candidates for removal whose scale-down is delayed.
func (v *View) coolingDown(groups []NodesOfGroup) (out []CoolingDown) {
	for _, g := range groups {
		until, why := v.Autoscaler.Groups.ScaleDownDelay(v.Now(), g.Group)
		if g.Candidates.Nodes > 0 && !until.IsZero() {
			out = append(out, CoolingDown{Group: g.Group, Nodes: g.Candidates.Nodes, Until: until.UTC(), Why: why})
		}
	}
	slices.SortFunc(out, func(a, b CoolingDown) int { return strings.Compare(a.Group, b.Group) })
	return out
}

// pendingPods returns the pods without a node by what they wait for.
func (v *View) pendingPods() []PendingPods {
	type pods struct {
		PendingPods
		namespaces map[string]bool
	}
	by := map[PendingCause]*pods{}
	add := func(cause PendingCause, obj *v1.Pod, since time.Time) {
		p := by[cause]
		if p == nil {
			p = &pods{PendingPods{PendingCause: cause}, map[string]bool{}}
			by[cause] = p
		}
		p.Pods++
		p.namespaces[obj.Namespace] = true
		name := obj.Namespace + "/" + obj.Name
		if p.Pods == 1 || since.Before(p.Since) || since.Equal(p.Since) && name < p.Pod {
			p.Pod, p.Since = name, since
		}
	}
	facts := v.newPendingFacts()
	for p := range v.Pods.All() { // in any order: they are added up
		if !p.Parsed.StandsIn() {
			add(v.pendingCause(&p, facts), p.Parsed.Object, p.Seen.UTC())
		}
	}
	for obj := range v.Others { // in any order: they are added up
		add(unmanaged(obj), obj, time.Time{})
	}
	out := []PendingPods{}
	for _, p := range by {
		p.Namespaces = slices.Sorted(maps.Keys(p.namespaces))
		out = append(out, p.PendingPods)
	}
	slices.SortFunc(out, func(a, b PendingPods) int {
		return cmp.Or(cmp.Compare(b.Pods, a.Pods), strings.Compare(a.State, b.State), strings.Compare(a.Reason, b.Reason), strings.Compare(a.Plugin, b.Plugin))
	})
	return out
}

// unmanaged returns what a pod of another scheduler waits for.
func unmanaged(obj *v1.Pod) PendingCause {
	return PendingCause{State: PendingUnmanaged, Reason: obj.Spec.SchedulerName}
}

// pendingCause returns what a pod of ours waits for: the first that holds.
func (v *View) pendingCause(p *record.Description, facts *pendingFacts) PendingCause {
	item := v.Queue.Get(p.Parsed.UID)
	place, placed := v.Places.Of(p.Parsed.UID)
	switch {
	case p.Node != "":
		return PendingCause{State: PendingBinding}
	case v.Scheduler.Gate(p.Parsed) != nil:
		return PendingCause{State: PendingGated, Reason: p.Condition}
	case facts.preempts[p.Parsed.UID]:
		return PendingCause{State: PendingPreempting}
	case placed && place.Node == "":
		return PendingCause{State: PendingNodeComing, Reason: place.Group}
	case p.HasNodeToWaitFor(v.State) || placed:
		return PendingCause{State: PendingNominated}
	case item != nil && item.WaitsWithGroup() != nil:
		return pendingMember(item.WaitsWithGroup(), p.Condition)
	case item == nil || item.Diagnosis() == nil:
		return PendingCause{State: PendingUntried}
	}
	d := item.Diagnosis()
	if latest := facts.waiting[item.Class()]; latest != nil && item.Stage() == queue.Unschedulable {
		d = latest
	}
	plugin, reason := facts.mostNodes(d)
	if plugin == "" { // there are no nodes: what matters is whether a node group has room
		reason = cmp.Or(tooLarge(p.Parsed, facts.groups), reason)
	}
	return PendingCause{State: PendingRejected, Plugin: plugin, Reason: reason}
}

// pendingMember returns what a member of a pod group waits for, whose condition is given.
func pendingMember(g *queue.Group, condition string) PendingCause {
	switch why := g.Held(); {
	case why != "":
		return PendingCause{State: PendingGated, Reason: why}
	case condition == "":
		return PendingCause{State: PendingUntried}
	}
	return PendingCause{State: PendingRejected, Reason: condition}
}

// amount writes a quantity of a resource in its base unit for people.
func amount(name v1.ResourceName, v int64) string {
	switch name {
	case v1.ResourceCPU:
		return strconv.FormatFloat(float64(v)/1000, 'f', -1, 64)
	case v1.ResourceMemory, v1.ResourceEphemeralStorage:
		return resource.NewQuantity(v, resource.BinarySI).String()
	}
	return strconv.FormatInt(v, 10)
}

// mostNodes returns for what most nodes reject a pod, and the plugin that says so.
func mostNodes(d *engine.Diagnosis) (plugin, reason string) {
	reasons := step.WhyRejected(d)
	if len(reasons) == 0 {
		return "", d.Message()
	}
	most := slices.MinFunc(reasons, func(a, b step.Why) int {
		return cmp.Or(cmp.Compare(b.Nodes, a.Nodes), strings.Compare(a.Message, b.Message))
	})
	return most.Plugin, most.Message
}

// buying returns the node groups with nodes that are coming, and those that back off.
func (v *View) buying() (buying []Buying, backingOff []BackingOff) {
	if !v.Autoscaler.Groups.Known() {
		return nil, nil
	}
	pods := map[string]int{}
	for _, p := range v.Places.Places() {
		pods[p.Group] += len(p.Pods)
	}
	for _, g := range v.State.Groups() {
		d, _ := v.Autoscaler.Groups.Describe(g.ID)
		if d.Coming > 0 {
			b := Buying{Group: g.ID, Nodes: d.Coming, Price: g.Price * float64(d.Coming), Pods: pods[g.ID]}
			if list := v.underway(g.ID); len(list) > 0 {
				e := v.expect(g.ID, list[0].Ordered)
				b.Next = &e
			}
			buying = append(buying, b)
		}
		if b := d.Backoff; b != nil {
			backingOff = append(backingOff, BackingOff{g.ID, Backoff{Class: b.Class.String(), Reason: b.Reason, Until: b.Until.UTC()}})
		}
	}
	return buying, backingOff
}

// leavingNodes returns the nodes on their way out.
func (v *View) leavingNodes() []LeavingNode {
	var out []LeavingNode
	add := func(n *cluster.Node) {
		at := v.Autoscaler.Nodes.Of(v.Now(), n, nil)
		if at.State != nodestatus.Leaving {
			return
		}
		x := LeavingNode{Node: n.Name, Group: n.Group, Price: v.price(n.Group), Leaving: leavingOf(&at), Pods: n.Workload}
		out = append(out, x)
	}
	if v.NodesLeaving() > 0 {
		v.State.Nodes(add)
	}
	v.Autoscaler.Deletions.EachOutOfState(func(info *cluster.NodeInfo) { add(cluster.DetachedNode(info)) })
	slices.SortFunc(out, func(a, b LeavingNode) int { return strings.Compare(a.Node, b.Node) })
	return out[:min(len(out), maxListed)]
}

// preempting returns the pods whose victims are leaving.
func (v *View) preempting() []Preempting {
	by := map[types.UID]*Preempting{}
	v.Victims.EachVictim(func(victim, preemptor types.UID) {
		p, ok := v.Pods.Describe(preemptor)
		going := v.State.PodOn(victim)
		if !ok || going == nil {
			return
		}
		x := by[preemptor]
		if x == nil {
			x = &Preempting{Pod: p.Parsed.Name(), Node: v.State.NominatedTo(preemptor)}
			by[preemptor] = x
		}
		x.Victims = append(x.Victims, going.Name())
	})
	var out []Preempting
	for _, x := range slices.SortedFunc(maps.Values(by), func(a, b *Preempting) int { return strings.Compare(a.Pod, b.Pod) }) {
		slices.Sort(x.Victims)
		out = append(out, *x)
	}
	return out[:min(len(out), maxListed)]
}
