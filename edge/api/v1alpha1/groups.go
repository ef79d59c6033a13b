package v1alpha1

import "time"

// GroupList is all node groups, by name. It has one page.
type GroupList struct {
	List
	Items []Group `json:"items"`
}

// Group is where a node group stands.
type Group struct {
	Name string `json:"name"`
	Min  int    `json:"min"`
	Max  int    `json:"max"`
	// Target is how many nodes it is assumed to have: Ready, Launching, Deleting, and those that aren't
	// ready.
	Target    int `json:"target"`
	Ready     int `json:"ready"`
	Launching int `json:"launching"`
	Deleting  int `json:"deleting"`
	// Removable are candidates for removal.
	Removable int `json:"removable"`
	// Price is of one node, Total of all nodes it has.
	Price Price `json:"price,omitempty"`
	Total Price `json:"total,omitempty"`
	// Capacity is what an empty node has to give.
	Capacity []Amount `json:"capacity,omitempty"`
	// Room is how many nodes a plan might buy of it now; Limit is why that is none, NextLimit what it
	// meets with so many.
	Room          int      `json:"room"`
	Limit         string   `json:"limit,omitempty"`
	NextLimit     string   `json:"nextLimit,omitempty"`
	TemplateError string   `json:"templateError,omitempty"`
	MaxOrder      int      `json:"maxOrder,omitempty"`
	Backoff       *Backoff `json:"backoff,omitempty"`
	// Next is when the oldest node that is launching is expected.
	Next     *Expectation `json:"next,omitempty"`
	Launches *LaunchTimes `json:"launches,omitempty"`
	// LaunchControl is what limits how many nodes launch at a time, in words.
	LaunchControl []string `json:"launchControl,omitempty"`
	// Ordered is the last order, with all options; Failed what failed last.
	Ordered *Order   `json:"ordered,omitempty"`
	Failed  *Failure `json:"failed,omitempty"`
}

// GroupDetail is a node group with its instances and decisions.
type GroupDetail struct {
	At time.Time `json:"at"`
	Group
	// Instances are those that aren't nodes, by ID.
	Instances []Instance `json:"instances,omitempty"`
	// Decisions are the last about the group, the oldest first.
	Decisions []Decision `json:"decisions"`
}

// Instance is a machine of the provider that isn't a node.
type Instance struct {
	ID    string    `json:"id"`
	Node  string    `json:"node,omitempty"`
	State string    `json:"state"` // coming, late, deleting, in doubt, unanswered or deleted
	Since time.Time `json:"since"`
}

// LaunchTimes are how long launches took, from the order to the usable node.
type LaunchTimes struct {
	Launches int      `json:"launches"` // size of the sample
	P50      Duration `json:"p50"`
	P90      Duration `json:"p90"`
}

// Failure is why nodes of a group didn't come.
type Failure struct {
	At    time.Time `json:"at"`
	Nodes int       `json:"nodes,omitempty"`
	Why   string    `json:"why"`
}

// Order is an order of nodes of a group.
type Order struct {
	Group string    `json:"group"`
	At    time.Time `json:"at"`
	// From and To are the targets before and after it, Wanted is how many nodes the plan proposed, and
	// Pods waited for them.
	From   int     `json:"from"`
	To     int     `json:"to"`
	Wanted int     `json:"wanted"`
	Pods   int     `json:"pods"`
	Choice *Choice `json:"choice,omitempty"`
	// Failed is what has failed in the group since.
	Failed string `json:"failed,omitempty"`
}

// Choice is how the group of an order was chosen.
type Choice struct {
	Plan uint64 `json:"plan"`
	// By is the expander that chose, "" where there was one option only.
	By string `json:"by,omitempty"`
	// Options are what there was to choose from.
	Options []Option `json:"options,omitempty"`
	// Unpriced says that the expanders go by prices, and no option had one.
	Unpriced bool `json:"unpriced,omitempty"`
	// Nodes and Price are those of all that was chosen.
	Nodes int   `json:"nodes,omitempty"`
	Price Price `json:"price,omitempty"`
	// Next and Dearest are the cheapest and the dearest alternative: bounds from below.
	Next    *Alternative `json:"next,omitempty"`
	Dearest *Alternative `json:"dearest,omitempty"`
	// LowerBound is proved: any purchase for the same pods costs that at least. Left out where it isn't known, as by
	// other expanders than cost.
	LowerBound Price `json:"lowerBound,omitempty"`
}

// Alternative is what else would have held the same pods.
type Alternative struct {
	Group string `json:"group"`
	Nodes int    `json:"nodes"`
	Price Price  `json:"price"`
}

// Option is what growing one group would bring.
type Option struct {
	Group string   `json:"group"`
	With  []string `json:"with,omitempty"` // groups that grow with it
	Nodes int      `json:"nodes"`
	Pods  int      `json:"pods"`
	// Unused is the share of the nodes' cpu and memory that the pods leave unused.
	Unused Share `json:"unused"`
	Price  Price `json:"price,omitempty"`
	// Chosen says that the order is of this one.
	Chosen bool `json:"chosen,omitempty"`
}
