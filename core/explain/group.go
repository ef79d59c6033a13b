package explain

// This file explains to people where a node group stands: its size, what limits it, what is
// launching and when that is expected, what it was last asked for and why.

import (
	"fmt"
	"time"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/autoscaler/scaleup"
	"github.com/berthproject/berth/core/lifecycle/launching"
	"github.com/berthproject/berth/core/lifecycle/nodegroups"
)

// GroupExplanation is where a node group stands.
type GroupExplanation struct {
	Group string `json:"group"`
	// Min and Max bound Target. Orders never exceed Max, but somebody else may have set a target
	// beyond it at the provider.
	Min   int     `json:"min"`
	Max   int     `json:"max"`
	Price float64 `json:"price,omitempty"` // of a node, an hour
	// Target is how many nodes it is assumed to have, orders and deletions that the provider
	// hasn't answered included. Of them Ready are ready, Launching are coming and Deleting
	// are on their way out.
	Target    int `json:"target"`
	Ready     int `json:"ready"`
	Launching int `json:"launching"`
	Deleting  int `json:"deleting"`
	// Room is how many nodes a plan might buy of it now; Limit is why that is none, and
	// NextLimit what it meets with so many, in Cluster Autoscaler's words.
	Room      int    `json:"room"`
	Limit     string `json:"limit,omitempty"`
	NextLimit string `json:"nextLimit,omitempty"`
	// TemplateError is why the provider can't say what its new nodes look like.
	TemplateError string `json:"templateError,omitempty"`
	// MaxOrder is how many nodes one order may have after one that failed, 0 for any number.
	MaxOrder int `json:"maxOrder,omitempty"`
	// Backoff is nil when the group may be asked for nodes.
	Backoff *Backoff `json:"backoff,omitempty"`
	// Next is when the oldest of the nodes that are launching is expected.
	Next *Expectation `json:"next,omitempty"`
	// Launches are how long those that are over took; nil before the first.
	Launches *LaunchTimes `json:"launches,omitempty"`
	// LaunchControl is what launch control says about the cluster and of the group, in words.
	LaunchControl []string `json:"launchControl,omitempty"`
	// Instances are by ID. Ordered and Failed are nil when this process has seen none: neither is
	// taken over from the process before.
	Instances []nodegroups.Instance `json:"instances,omitempty"` // those that aren't nodes
	Ordered   *Order                `json:"ordered,omitempty"`   // last
	Failed    *Failure              `json:"failed,omitempty"`    // last
}

// Backoff is why a group isn't asked for nodes, and until when.
type Backoff struct {
	// Class is the error class of Cluster Autoscaler (InstanceErrorClass): it tells a lack of
	// resources at the provider from every other failure.
	Class string `json:"class"` // as Cluster Autoscaler has it
	// Reason is in the provider's words where there are any.
	Reason string    `json:"reason"`
	Until  time.Time `json:"until"`
}

// Failure is why nodes of a group didn't come.
type Failure struct {
	At    time.Time `json:"at"`
	Nodes int       `json:"nodes,omitempty"` // of the order that was refused; 0 when instances failed
	Why   string    `json:"why"`
}

// Order is an order of nodes of a group, and how it came about.
type Order struct {
	Group string    `json:"group"`
	At    time.Time `json:"at"`
	// From and To are the targets before and after the order. To-From is less than Wanted when a
	// limit, or pods that found a node meanwhile, reduced the order.
	From   int `json:"from"`
	To     int `json:"to"`
	Wanted int `json:"wanted"` // nodes that the plan proposed
	Pods   int `json:"pods"`   // that waited for it
	// Choice has the options that were compared.
	Choice *autoscaler.Choice `json:"choice,omitempty"`
	// Failed is what has failed last in the group since the order; "" for nothing.
	Failed string `json:"failed,omitempty"`
}

func (v *View) orderOf(a *nodegroups.Asked) Order {
	out := Order{Group: a.Group, At: a.At.UTC(), From: a.From, To: a.To, Wanted: a.Wanted, Pods: a.Pods, Choice: a.Choice}
	if f := v.Autoscaler.Groups.LastFailure(a.Group); f != nil && !f.At.Before(a.At) {
		out.Failed = f.Why
	}
	return out
}

// String writes an order in one line, without its options.
func (o Order) String() string {
	out := fmt.Sprintf("%s %d->%d at %s for %d pod(s)", o.Group, o.From, o.To, utc(o.At), o.Pods)
	if o.Wanted > o.To-o.From {
		out += fmt.Sprintf(" (%d node(s) wanted)", o.Wanted)
	}
	if o.Choice != nil {
		out += fmt.Sprintf(", plan %d, %s", o.Choice.Plan, chosenBy(o.Choice))
	}
	if o.Failed != "" {
		out += "; failed since: " + o.Failed
	}
	return out
}

// Expectation is when a node that was ordered is expected, after the group's latest launches.
type Expectation struct {
	Ordered *time.Time `json:"ordered,omitempty"` // nil when it isn't known
	// Likely and Late are when half and nine tenths of the launches that were seen would
	// have been over; nil without any.
	Likely *time.Time `json:"likely,omitempty"`
	Late   *time.Time `json:"late,omitempty"`
	// Launches is how many launches these two are after.
	Launches int `json:"launches,omitempty"`
	// GivenUp is when the node is no longer waited for (--max-node-provision-time).
	GivenUp *time.Time `json:"givenUp,omitempty"`
}

// LaunchTimes are how long launches of a group took, from the order to the usable node.
type LaunchTimes struct {
	// Launches is the size of the sample: only the latest launches of the group are kept.
	Launches int `json:"launches"`
	// MedianSeconds and P90Seconds are p50 and p90 of the sample.
	MedianSeconds float64 `json:"medianSeconds"`
	P90Seconds    float64 `json:"p90Seconds"`
}

// ExplainGroup says where a node group stands, in O(nodes + pending pods); ok is false when
// the provider doesn't list it.
func (v *View) ExplainGroup(name string) (x GroupExplanation, ok bool) {
	for _, x := range v.ExplainGroups() {
		if x.Group == name {
			return x, true
		}
	}
	return GroupExplanation{}, false
}

// ExplainGroups says where each node group stands, by name; none when Berth only schedules
// or the provider hasn't told of its groups.
func (v *View) ExplainGroups() []GroupExplanation {
	if v.Autoscaler == nil || !v.Autoscaler.Groups.Known() {
		return nil
	}
	status := v.Groups()
	req := v.Autoscaler.Plans.Request()
	var out []GroupExplanation
	for i, room := range v.packer().Rooms(*req) {
		out = append(out, v.explainGroup(&status[i], room))
	}
	return out
}

func (v *View) explainGroup(g *GroupStatus, room scaleup.GroupAnswer) GroupExplanation {
	d, _ := v.Autoscaler.Groups.Describe(g.ID)
	x := GroupExplanation{
		Group: g.ID, Min: g.Min, Max: g.Max, Price: g.Price,
		Target: g.Target, Ready: g.Ready - g.LeavingReady, Launching: d.Coming, Deleting: g.Leaving,
		Room: room.Room, Limit: room.Limit, NextLimit: room.Next, TemplateError: d.TemplateError, MaxOrder: d.MaxOrder,
		LaunchControl: v.Autoscaler.Launches.DescribeControl(g.ID), Instances: d.Instances,
	}
	for i := range x.Instances {
		x.Instances[i].Since = x.Instances[i].Since.UTC()
	}
	if b := d.Backoff; b != nil {
		x.Backoff = &Backoff{Class: b.Class.String(), Reason: b.Reason, Until: b.Until.UTC()}
	}
	if t := v.Autoscaler.Launches.Times(g.ID); t.Launches > 0 {
		x.Launches = &LaunchTimes{t.Launches, t.Median.Seconds(), t.P90.Seconds()}
	}
	if list := v.underway(g.ID); len(list) > 0 {
		e := v.expect(g.ID, list[0].Ordered)
		x.Next = &e
	}
	if a := v.Autoscaler.Groups.LastAsked(g.ID); a != nil {
		o := v.orderOf(a)
		x.Ordered = &o
	}
	if f := v.Autoscaler.Groups.LastFailure(g.ID); f != nil {
		x.Failed = &Failure{f.At.UTC(), f.Nodes, f.Why}
	}
	return x
}

// underway returns the launches of a group of which it is known when they were ordered, the
// oldest first: no more than there are nodes coming, since some may have been given up.
func (v *View) underway(group string) []launching.Launch {
	d, _ := v.Autoscaler.Groups.Describe(group)
	list := v.Autoscaler.Launches.Underway(group)
	coming := 0
	for i := len(list) - 1; i >= 0; i-- {
		if coming >= d.Coming || list[i].Ordered.IsZero() {
			return list[i+1:]
		}
		coming += list[i].Nodes
	}
	return list
}

// expect returns when a node of a group is expected that was ordered at a time, zero when it
// isn't known.
func (v *View) expect(group string, ordered time.Time) Expectation {
	if ordered.IsZero() {
		return Expectation{}
	}
	ordered = ordered.UTC()
	after := func(d time.Duration) *time.Time { at := ordered.Add(d); return &at }
	e := Expectation{Ordered: &ordered, GivenUp: after(v.Autoscaler.Groups.ProvisionTime(v.State.Group(group)))}
	if t := v.Autoscaler.Launches.Times(group); t.Launches > 0 {
		e.Likely, e.Late, e.Launches = after(t.Median), after(t.P90), t.Launches
	}
	return e
}
