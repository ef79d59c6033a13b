package weighing

import (
	"fmt"
	"time"
)

// This file has the formula of Cheapest, and the result of weighing for people:
//
//	preemption = Σ over victims (PerVictim + worth × hours run, MaxLostHours at most)
//	                            × (1 + PriorityWeight × priority/1000)
//	node       = price × NodeHours × share + WaitWeight × worth of the pod × hours of a launch
//
// worth is of what a pod requests, an hour. share is the pod's part of the worth of all pods
// that the node is bought for. A node is bought unless all of its pods could preempt, and
// that costs less in all; what pods that can't preempt need anyway costs the others nothing.

// AssumedLaunch is how long a launch takes of a group of which none has been seen.
const AssumedLaunch = 2 * time.Minute

// Choice is what a pod does that could preempt.
type Choice string

// The choices.
const (
	Asks     Choice = "asks"     // it waits until a plan says what nodes there are for it
	Waits    Choice = "waits"    // for a node that was coming
	Buys     Choice = "buys"     // it waits for a node that is bought for it
	Preempts Choice = "preempts" // others leave a node
)

// Result is what a pod that could preempt does, with what else it could have done.
type Result struct {
	Policy  Policy      `json:"policy"`
	Chosen  Choice      `json:"chosen"`
	Why     string      `json:"why,omitempty"`
	Preempt *Preemption `json:"preempt,omitempty"` // nil when that isn't known
	Node    *Node       `json:"node,omitempty"`    // nil when there is none for it, or no plan has said
}

// Preemption is what it would cost to have others leave a node.
type Preemption struct {
	Node            string  `json:"node"` // "" for a pod group, whose victims may be on several
	Victims         int     `json:"victims"`
	Violations      int     `json:"violations,omitempty"` // of disruption budgets, among the victims
	HighestPriority int32   `json:"highestPriority"`      // of the victims
	LostWork        float64 `json:"lostWork"`             // worth of the hours that the victims have run
	Cost            float64 `json:"cost"`
}

// Add takes one more victim: what an hour of it is worth, how long it has run, and its
// priority.
func (p *Preemption) Add(c *Costs, worth float64, ran time.Duration, priority int32) {
	lost := worth * min(max(ran.Hours(), 0), c.MaxLostHours)
	if p.Victims == 0 || priority > p.HighestPriority {
		p.HighestPriority = priority
	}
	p.Victims++
	p.LostWork += lost
	p.Cost += (c.PerVictim + lost) * (1 + c.PriorityWeight*float64(max(priority, 0))/1000)
}

// Node is what it would cost to wait for a node.
type Node struct {
	Group string `json:"group"` // of several, of which the most nodes are; "" when all are there or coming
	// Nodes is how many nodes are bought for a pod group, which are weighed as one; 0 for a pod.
	Nodes int    `json:"nodes,omitempty"`
	Name  string `json:"name,omitempty"` // "" while it isn't registered
	// Price is that of the node an hour, 0 when it isn't known; of a node that was coming
	// anyway, nothing of it is the pod's.
	Price         float64 `json:"price,omitempty"`
	Share         float64 `json:"share,omitempty"` // of the price that is the pod's: 0 to 1
	LaunchSeconds float64 `json:"launchSeconds"`   // the median of its group; AssumedLaunch when none was seen
	Cost          float64 `json:"cost"`
}

// NewNode returns what it costs a pod to wait for a node of a group, with its share of the
// price; worth is of an hour of the pod, and launch the median of the group's, 0 for none.
func (c *Costs) NewNode(group string, price, share, worth float64, launch time.Duration) *Node {
	if launch <= 0 {
		launch = AssumedLaunch
	}
	return &Node{Group: group, Price: price, Share: share, LaunchSeconds: launch.Seconds(),
		Cost: price*c.NodeHours*share + c.WaitWeight*worth*launch.Hours()}
}

// String writes a result in one line.
func (a *Result) String() string {
	out := fmt.Sprintf("%s by %s", a.Chosen, a.Policy)
	if a.Why != "" {
		out += ": " + a.Why
	}
	if p := a.Preempt; p != nil {
		on := ""
		if p.Node != "" {
			on = " on " + p.Node
		}
		out += fmt.Sprintf("; preempting %d pod(s)%s costs %.4f", p.Victims, on, p.Cost)
	}
	if n := a.Node; n != nil {
		what := "a node of " + n.Group + " costs"
		switch {
		case n.Nodes > 0:
			what = fmt.Sprintf("%d node(s), most of %s, cost", n.Nodes, n.Group)
		case n.Group == "":
			what = "waiting for nodes that are coming costs"
		}
		out += fmt.Sprintf("; %s %.4f, in %s", what, n.Cost, time.Duration(n.LaunchSeconds*float64(time.Second)).Round(time.Second))
		if n.Share > 0 && n.Price == 0 {
			out += ", plus its hourly price, which is unknown"
		}
	}
	return out
}
