package explain

// This file explains to people where a pod group (KEP-4671) stands: how many members have nodes and
// where, how many wait and for what, and what would be decided about the group now.

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/lifecycle/podgroups"
	"github.com/berthproject/berth/core/queue"
	"github.com/berthproject/berth/core/step"
)

// PodGroupExplanation is where a pod group stands.
type PodGroupExplanation struct {
	PodGroup string `json:"podGroup"` // namespace/name
	// Outcome is step.Placed when no member waits, Fits when enough of those that wait would be given
	// nodes now, step.Waits, or step.Gated when the group can't be tried. "" is that of a group without
	// members.
	Outcome string `json:"outcome"`
	// Message says why the group waits or is gated; "" otherwise.
	Message string `json:"message,omitempty"`
	// Spec is nil when there is no PodGroup of the name, and only its members are known.
	Spec *PodGroupSpec `json:"spec,omitempty"`
	// Condition is PodGroupInitiallyScheduled as the object has it; nil when it has none.
	Condition *PodGroupCondition `json:"condition,omitempty"`
	// Placed members have a node. Of them Permitting wait for others before they are bound, until Until
	// at the latest.
	Placed     int        `json:"placed"`
	Permitting int        `json:"permitting,omitempty"`
	Until      *time.Time `json:"until,omitempty"`
	// Waiting members have no node, and Gated ones are kept out of the queue by a plugin.
	Waiting int `json:"waiting"`
	Gated   int `json:"gated,omitempty"`
	// Nodes are those of the members, the most members first; maxMemberNodes at most. AllNodes is how
	// many there are.
	Nodes    []MemberNode `json:"nodes,omitempty"`
	AllNodes int          `json:"allNodes,omitempty"`
	// Domains are the values of Spec.Topology on these nodes.
	Domains []string `json:"domains,omitempty"`
	// Queue is the stage of the members that wait: active, backoff, unschedulable or gated.
	Queue    string     `json:"queue,omitempty"`
	Attempts int        `json:"attempts,omitempty"` // decisions that found too few nodes, and errors
	Queued   *time.Time `json:"queued,omitempty"`   // the first member
	Tried    *time.Time `json:"tried,omitempty"`    // last
	Backoff  *time.Time `json:"backoff,omitempty"`  // ends then
	// Room is kept for the group, which has waited for long; nil when none is. RoomMissing is why none was
	// found when it was last looked for, "" when it wasn't, or there was some.
	Room        *PodGroupRoom `json:"room,omitempty"`
	RoomMissing string        `json:"roomMissing,omitempty"`
	// Fitting is how many of the members that wait would be given nodes now, and Search how these were
	// found (scheduler.Search).
	Fitting int    `json:"fitting,omitempty"`
	Search  string `json:"search,omitempty"`
	// Why are the reasons for which members wait other than Message, the most members first;
	// maxMemberReasons at most.
	Why []MemberReason `json:"why,omitempty"`
	// Reasons say which rules reject which nodes for the first member that finds none while the places
	// of those before it are taken, the most nodes first.
	Reasons []step.Why `json:"reasons,omitempty"`
}

// PodGroupSpec is what a group asks for.
type PodGroupSpec struct {
	Gang     bool   `json:"gang"`               // with the basic policy any number of members is placed
	MinCount int    `json:"minCount"`           // 1 with the basic policy
	Topology string `json:"topology,omitempty"` // innermost label that all members' nodes share; "" when none is required
	// Preferred are labels that all members' nodes share where that can be had, outermost first, and
	// Required those that they must share beside Topology.
	Preferred []string `json:"preferred,omitempty"`
	Required  []string `json:"required,omitempty"`
	Priority  int32    `json:"priority,omitempty"`
	// WholeDisruption is set when members may only be disrupted all together (disruptionMode: all).
	WholeDisruption bool `json:"wholeDisruption,omitempty"`
}

// PodGroupCondition is a condition of a PodGroup.
type PodGroupCondition struct {
	Status  string    `json:"status"`
	Reason  string    `json:"reason"`
	Message string    `json:"message,omitempty"`
	Since   time.Time `json:"since"`
}

// PodGroupRoom is room that is kept for a group that waits.
type PodGroupRoom struct {
	Members  int       `json:"members"`
	Nodes    []string  `json:"nodes"` // maxMemberNodes at most
	AllNodes int       `json:"allNodes"`
	Since    time.Time `json:"since"`
	// Until is before when pods must end that use the room meanwhile; nil when none may for that.
	Until *time.Time `json:"until,omitempty"`
	Ends  time.Time  `json:"ends"` // when it is given back at the latest
}

// MemberNode is a node with members on it.
type MemberNode struct {
	Node    string `json:"node"`
	Members int    `json:"members"`
}

// MemberReason is why some members wait.
type MemberReason struct {
	Members int    `json:"members"`
	Pod     string `json:"pod"` // the first of them in the order of scheduling, as namespace/name
	Message string `json:"message"`
}

const (
	maxMemberNodes   = 10
	maxMemberReasons = 5
	// maxWhatIf is how many waiting members a group may have for an explanation to try it again: an
	// answer must not keep the core for long.
	maxWhatIf = 5000
)

// ExplainPodGroup says where a pod group stands, in O(pods + what an attempt costs); ok is false when
// there is neither a PodGroup of the name nor a member of one.
func (v *View) ExplainPodGroup(namespace, name string) (x PodGroupExplanation, ok bool) {
	key := cluster.PodGroupKey{Namespace: namespace, Name: name}
	x.PodGroup = key.String()
	object, waits := v.State.PodGroup(key), v.Queue.Group(key)
	if object != nil {
		x.describe(object)
	}
	v.explainMembersOnNodes(key, &x)
	v.explainPermissions(key, &x)
	if waits != nil {
		v.explainWaiting(waits, &x)
	} else if x.Placed > 0 {
		x.Outcome = string(step.Placed)
	}
	return x, object != nil || waits != nil || x.Placed > 0
}

// PodGroupNames returns the names of all PodGroups, as namespace/name, in no particular order.
func (v *View) PodGroupNames() (names []string) {
	for _, o := range v.State.Objects() {
		if g, ok := o.(*schedulingv1beta1.PodGroup); ok {
			names = append(names, g.Namespace+"/"+g.Name)
		}
	}
	return names
}

// describe notes what the object says.
func (x *PodGroupExplanation) describe(g *schedulingv1beta1.PodGroup) {
	x.Spec = &PodGroupSpec{Gang: g.Spec.SchedulingPolicy.Gang != nil, MinCount: podgroups.MinCount(g), Topology: cluster.RequiredTopology(g)}
	if g.Spec.Priority != nil {
		x.Spec.Priority = *g.Spec.Priority
	}
	x.Spec.WholeDisruption = g.Spec.DisruptionMode != nil && g.Spec.DisruptionMode.All != nil
	levels, _ := cluster.TopologyLevels(g)
	for _, l := range levels {
		switch {
		case !l.Required:
			x.Spec.Preferred = append(x.Spec.Preferred, l.Label)
		case l.Label != x.Spec.Topology:
			x.Spec.Required = append(x.Spec.Required, l.Label)
		}
	}
	if c := meta.FindStatusCondition(g.Status.Conditions, schedulingv1beta1.PodGroupInitiallyScheduled); c != nil {
		x.Condition = conditionOf(c)
	}
}

func conditionOf(c *metav1.Condition) *PodGroupCondition {
	return &PodGroupCondition{Status: string(c.Status), Reason: c.Reason, Message: c.Message, Since: c.LastTransitionTime.UTC()}
}

// explainMembersOnNodes counts the members that have nodes, by node.
func (v *View) explainMembersOnNodes(key cluster.PodGroupKey, x *PodGroupExplanation) {
	x.Placed = v.State.PlacedMembers(key)
	on := map[string]int{}
	v.State.EachPlacedMember(key, func(p *cluster.Pod) { on[v.State.NodeNameOf(p)]++ })
	for _, node := range slices.Sorted(maps.Keys(on)) {
		x.Nodes = append(x.Nodes, MemberNode{node, on[node]})
	}
	slices.SortStableFunc(x.Nodes, func(a, b MemberNode) int { return cmp.Compare(b.Members, a.Members) })
	x.AllNodes = len(x.Nodes)
	x.Nodes = x.Nodes[:min(len(x.Nodes), maxMemberNodes)]
	if x.Spec != nil && x.Spec.Topology != "" {
		x.Domains = v.State.MemberDomains(key, x.Spec.Topology)
	}
}

// explainPermissions counts the members that have nodes and wait for others before they are bound.
func (v *View) explainPermissions(key cluster.PodGroupKey, x *PodGroupExplanation) {
	for p := range v.Pods.All() { // in any order: they are counted
		if p.Parsed.Group == nil || *p.Parsed.Group != key {
			continue
		}
		for _, w := range p.Permissions {
			if w.Plugin != podgroups.PluginName {
				continue
			}
			if x.Permitting++; x.Until == nil || w.Until.Before(*x.Until) {
				x.Until = &w.Until
			}
		}
	}
}

// explainWaiting explains the members without a node.
func (v *View) explainWaiting(g *queue.Group, x *PodGroupExplanation) {
	item := g.Item()
	x.Waiting, x.Gated, x.Queue, x.Attempts = len(g.Members()), g.Gated(), item.Stage().String(), item.Attempts()
	if x.Waiting > 0 {
		queued := g.Members()[0].Queued()
		x.Queued = &queued
	}
	if tried := item.Tried(); !tried.IsZero() {
		x.Tried = &tried
	}
	if until := item.BackoffEnd(); until.After(v.Now()) {
		x.Backoff = &until
	}
	x.RoomMissing = v.PodGroups.RoomMissing(g.Key())
	if r := v.PodGroups.RoomOf(g.Key()); r != nil {
		x.Room = &PodGroupRoom{Members: r.Members, Nodes: r.Nodes[:min(len(r.Nodes), maxMemberNodes)], AllNodes: len(r.Nodes), Since: r.Since.UTC(), Ends: r.Ends.UTC()}
		if r.Until.After(r.Since) {
			until := r.Until.UTC()
			x.Room.Until = &until
		}
	}
	switch {
	case g.Held() != "":
		x.Outcome, x.Message = string(step.Gated), g.Held()
	case x.Waiting > maxWhatIf:
		x.Outcome = string(step.Waits)
	default:
		v.explainAttempt(g, x)
	}
}

// explainAttempt says what would be decided about the members that wait.
func (v *View) explainAttempt(g *queue.Group, x *PodGroupExplanation) {
	x.Outcome = string(step.Waits)
	d, ok := v.PodGroups.WhatIf(g)
	if !ok {
		return
	}
	if x.Placed < x.Spec.MinCount { // those that have nodes keep them whatever becomes of the others
		x.Message = d.Message
	}
	if d.Places > 0 {
		x.Outcome, x.Fitting, x.Search = "Fits", d.Places, d.Search
	}
	if d.Diagnosis != nil {
		x.Reasons = step.WhyRejected(d.Diagnosis)
		slices.SortStableFunc(x.Reasons, func(a, b step.Why) int { return cmp.Compare(b.Nodes, a.Nodes) })
	}
	x.Why = reasonsOf(d.Why, x.Message, func(i int) string { return g.Members()[i].Pod().Name() })
}

// reasonsOf counts why members wait, by message; "" is that of one that doesn't, and what is said of
// the whole group isn't said again.
func reasonsOf(why []string, ofGroup string, name func(int) string) (out []MemberReason) {
	at := map[string]int{}
	for i, message := range why {
		if message == "" || message == ofGroup {
			continue
		}
		k, known := at[message]
		if !known {
			k = len(out)
			at[message] = k
			out = append(out, MemberReason{Pod: name(i), Message: message})
		}
		out[k].Members++
	}
	slices.SortStableFunc(out, func(a, b MemberReason) int { return cmp.Compare(b.Members, a.Members) })
	return out[:min(len(out), maxMemberReasons)]
}
