package explain

// This file explains to people what node groups do for a pod without a node: why each would
// or wouldn't be bought for it, which node it waits for, and when that is expected. Nothing
// here is kept for it but what was ordered last: the rest is a what-if on the state, made
// when somebody asks. It costs about as much as a plan; decisions wait for it.

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/autoscaler/scaleup"
	"github.com/berthproject/berth/core/lifecycle/nodegroups"
	"github.com/berthproject/berth/core/lifecycle/planning"
	"github.com/berthproject/berth/core/record"
	"github.com/berthproject/berth/core/weighing"
)

// Scaling is what node groups do for a pod without a node.
type Scaling struct {
	// NotPlanned says why no nodes are bought for the pod for the time being; "" when plans
	// are made for it.
	NotPlanned string     `json:"notPlanned,omitempty"`
	NextPlan   *time.Time `json:"nextPlan,omitempty"` // when it is due; nil while one is made
	// Event is the message of the last event about a scale-up.
	Event string `json:"event,omitempty"`
	// Ordered is the order of nodes that was last made for the pod among others.
	Ordered *Order `json:"ordered,omitempty"`
	// Coming is the node that the pod has a place on once it is usable.
	// It is nil when no node is coming that would take the pod.
	Coming *ComingNode `json:"coming,omitempty"`
	// Weighed is of a pod that could preempt and waits: for what, and what preempting costs.
	// It is nil for a pod that doesn't wait for a place.
	Weighed *weighing.Result `json:"weighed,omitempty"`
	// Groups has an answer for each node group, by ID; empty until the provider has listed them.
	Groups []GroupAnswer `json:"groups,omitempty"`
}

// ComingNode is a node that is waited for.
type ComingNode struct {
	Group string `json:"group"`
	Node  string `json:"node,omitempty"` // "" while the API doesn't have it
	// Reserved says that the node was ordered for the pod, whose place on it is kept.
	Reserved bool `json:"kept,omitempty"`
	// Stays says that the node is on its way out, and that the next plan has it stay for the pod.
	// Nothing is expected of it.
	Stays bool `json:"stays,omitempty"`
	// The embedded Expectation is empty when it isn't known when the node was ordered.
	Expectation
}

// The answers of node groups.
const (
	Bought    = "Bought"    // nodes of the group were ordered for the pod, and are coming
	Limited   = "Limited"   // the group may not grow
	Rejects   = "Rejects"   // an empty node of the group doesn't take the pod
	NotChosen = "NotChosen" // nodes of another group were bought instead
	NotNeeded = "NotNeeded" // it would take the pod, which has a place on a node that is coming
	WouldTake = "WouldTake" // the next plan may buy its nodes
)

// GroupAnswer is why a node group was or wasn't bought for a pod.
type GroupAnswer struct {
	Group string `json:"group"`
	// Answer is one of the constants above. The first that holds is given, in the order of
	// explainGroups: a group that was ordered for the pod is Bought though it is at its limit now.
	Answer string `json:"answer"`
	// Reasons are why, in Cluster Autoscaler's words for limits, and in kube-scheduler's for
	// rules.
	Reasons []string `json:"reasons,omitempty"`
	Plugin  string   `json:"plugin,omitempty"` // that rejects an empty node
	// Missing is how much such a node has too little of.
	// It is nil when the node is rejected for another reason than a lack of resources.
	Missing []Missing `json:"missing,omitempty"`
	// Detail is for people only and has no fixed form: the order, until when the group backs off, what an
	// empty node lacks, or which option was chosen instead.
	Detail string `json:"detail,omitempty"`
}

// Missing is a resource of which an empty node of a group has too little for a pod, in its
// base unit.
type Missing struct {
	// Resource is a resource name of the API, such as cpu (whose base unit is a thousandth of a
	// core), memory (bytes) or an extended resource.
	Resource  string `json:"resource"`
	Needed    int64  `json:"needed"`
	Available int64  `json:"available"`
}

// explainScaling returns what node groups do for a pod that waits; nil when Berth only
// schedules. Each section is a function that fills in its own fields.
func (v *View) explainScaling(p *record.Description) *Scaling {
	if v.Autoscaler == nil {
		return nil
	}
	x := &Scaling{Event: p.ScaleUp}
	if v.Places.WaitsFor(p.Parsed.UID) {
		x.Weighed = p.Weighed
	}
	if v.explainPlanning(p, x); !v.Autoscaler.Groups.Known() {
		return x
	}
	req := v.Autoscaler.Plans.Request()
	if !slices.Contains(req.Pending, p.Parsed) {
		req.Pending = append(req.Pending, p.Parsed) // it may use the room that others leave
	}
	answer := v.packer().Explain(*req, p.Parsed)
	for _, section := range []func(*record.Description, *scaleup.Answer, *Scaling){
		v.explainOrdered,
		v.explainComing,
		v.explainGroups,
	} {
		section(p, &answer, x)
	}
	return x
}

// packer returns a packer for what-ifs on the core's own state.
func (v *View) packer() *scaleup.Packer {
	return &scaleup.Packer{State: v.State, Engine: v.Scheduler.Engine}
}

// explainPlanning says whether plans are made for the pod, and when the next is due.
func (v *View) explainPlanning(p *record.Description, x *Scaling) {
	item, a := v.Queue.Get(p.Parsed.UID), v.Autoscaler
	now, from := v.Autoscaler.Plans.Eligible(p.Parsed.UID)
	switch {
	case v.Autoscaler.Planning.State(v.Now()) == planning.Unknown:
		x.NotPlanned = "the provider has not listed its node groups yet"
	case item.Diagnosis() == nil:
		x.NotPlanned = "no attempt to schedule it has been made yet"
	case p.HasNodeToWaitFor(v.State):
		x.NotPlanned = fmt.Sprintf("it is nominated to %s", v.State.NominatedTo(p.Parsed.UID))
	case int(p.Parsed.Priority) < a.PriorityCutoff:
		x.NotPlanned = fmt.Sprintf("its priority %d is below %d (--expendable-pods-priority-cutoff)", p.Parsed.Priority, a.PriorityCutoff)
	case !now && !from.IsZero():
		x.NotPlanned = fmt.Sprintf("it must be pending for %s, until %s (--new-pod-scale-up-delay or its annotation)", from.Sub(p.Seen), utc(from))
	case !now:
		x.NotPlanned = "its scheduler has not marked it unschedulable yet"
	}
	if at := v.Autoscaler.Planning.NextWake(); !at.IsZero() {
		at = at.UTC()
		x.NextPlan = &at
	}
}

func (v *View) explainOrdered(p *record.Description, _ *scaleup.Answer, x *Scaling) {
	if p.Asked != nil {
		order := v.orderOf(p.Asked)
		x.Ordered = &order
	}
}

// explainComing says which node the pod waits for: the one where its place is kept, or else
// one with room that nobody has a place in, which may be on its way out and stay.
func (v *View) explainComing(p *record.Description, answer *scaleup.Answer, x *Scaling) {
	if place, ok := v.Places.Of(p.Parsed.UID); ok {
		x.Coming = &ComingNode{Group: place.Group, Node: place.Node, Reserved: true, Expectation: v.expect(place.Group, place.Since)}
		return
	}
	n := answer.Node
	if n == nil || n.Group == "" {
		return
	}
	x.Coming = &ComingNode{Group: n.Group, Stays: answer.Stays}
	if answer.Stays {
		x.Coming.Node = n.Name
		return
	}
	ordered := time.Time{}
	if answer.Registered {
		x.Coming.Node = n.Name
		for _, l := range v.Autoscaler.Launches.Underway(n.Group) {
			if l.Node == n.Name {
				ordered = l.Ordered
			}
		}
	} else if oldest := v.underway(n.Group); len(oldest) > 0 {
		ordered = oldest[0].Ordered
	}
	x.Coming.Expectation = v.expect(n.Group, ordered)
}

func (v *View) explainGroups(p *record.Description, answer *scaleup.Answer, x *Scaling) {
	for _, g := range answer.Groups {
		a := GroupAnswer{Group: g.Group}
		if r := g.Reason; r != nil {
			a.Plugin = r.Plugin
			for _, d := range r.Deficits {
				a.Missing = append(a.Missing, Missing(d))
			}
		}
		switch coming := x.Coming != nil && x.Coming.Group == g.Group; {
		case coming && !x.Coming.Stays && p.Asked != nil && p.Asked.Group == g.Group:
			a.Answer, a.Detail = Bought, v.orderOf(p.Asked).String()
		case g.Limit != "":
			a.Answer, a.Detail = Limited, v.limitDetail(&g)
			a.Reasons = append(a.Reasons, g.Limit)
			if g.Reason != nil { // the limit isn't all
				a.Reasons = append(a.Reasons, g.Reason.Messages...)
			}
		case g.Reason != nil:
			a.Answer, a.Reasons, a.Detail = Rejects, g.Reason.Messages, g.Detail
		case p.Asked != nil && p.Asked.Group != g.Group && x.Coming != nil && x.Coming.Group == p.Asked.Group:
			a.Answer, a.Detail = NotChosen, notChosen(p.Asked, g.Group)
		case x.Coming != nil:
			a.Answer = NotNeeded
		default:
			a.Answer = WouldTake
		}
		x.Groups = append(x.Groups, a)
	}
}

// limitDetail returns what there is to say about a group at a limit but its reasons: until when it backs off, and
// why, or why the provider can't say what its nodes look like; and what an empty node lacks, which stays so
// when the limit is gone. It is "" for nothing.
func (v *View) limitDetail(g *scaleup.GroupAnswer) string {
	var parts []string
	d, _ := v.Autoscaler.Groups.Describe(g.Group)
	switch {
	case g.Limit == scaleup.InBackoff && d.Backoff != nil:
		parts = append(parts, fmt.Sprintf("until %s: %s", utc(d.Backoff.Until), d.Backoff.Reason))
	case g.Limit == scaleup.NoTemplate:
		parts = append(parts, d.TemplateError)
	}
	if g.Detail != "" {
		parts = append(parts, "an empty node: "+g.Detail)
	}
	return strings.Join(parts, "; ")
}

// notChosen says why an order was of another group than one that would take the pod.
func notChosen(asked *nodegroups.Asked, group string) string {
	choice := asked.Choice
	if choice == nil {
		return ""
	}
	chosen, other := choice.Of(asked.Group), choice.Of(group)
	switch {
	case chosen == nil || other == nil:
		return fmt.Sprintf("it was not an option when %s was chosen", asked.Group)
	case chosen == other:
		return fmt.Sprintf("it is scaled up together with %s", asked.Group)
	}
	return fmt.Sprintf("%s: %s instead of %s", chosenBy(choice), describeOption(chosen), describeOption(other))
}

// chosenBy returns which expander made a choice; in other words where there was nothing to choose.
func chosenBy(choice *autoscaler.Choice) string {
	switch choice.By {
	case "":
		return "the only option"
	case autoscaler.ByMinimum:
		return "to reach the minimum size"
	}
	if choice.Unpriced {
		return fmt.Sprintf("chosen by %s, no option has a price", choice.By)
	}
	return fmt.Sprintf("chosen by %s", choice.By)
}

func describeOption(o *autoscaler.Option) string {
	if o.Nodes == 0 {
		return fmt.Sprintf("none of %s", o.Group)
	}
	out := fmt.Sprintf("%d of %s for %d pod(s) (%.0f %% of cpu and memory unused", o.Nodes, strings.Join(append([]string{o.Group}, o.With...), ", "), o.Pods, 50*o.Wasted)
	if o.Price > 0 {
		out += fmt.Sprintf(", $%.2f/h", o.Price)
	}
	return out + ")"
}

// utc writes a time for people.
func utc(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05") }
