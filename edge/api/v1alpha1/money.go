package v1alpha1

import "time"

// MoneySum is what all nodes cost an hour. Nodes without a price count as 0: it is a lower bound.
type MoneySum struct {
	Price Price `json:"price"`
	// Removable is that of nodes that could go, and Leaving that of those on their way out.
	Removable Price `json:"removable"`
	Leaving   Price `json:"leaving"`
	// Launching is that of nodes that are coming, on top of Price.
	Launching Price `json:"launching"`
	// Unpriced are the nodes whose price isn't known.
	Unpriced int `json:"unpriced,omitempty"`
}

// Money is what nodes cost, and why they stay.
type Money struct {
	At time.Time `json:"at"`
	MoneySum
	// Groups are by falling price, "" for nodes that are in none.
	Groups []MoneyOfGroup `json:"groups"`
	// Reasons are why nodes stay or how far they are on their way out, the most money first.
	Reasons []NodesOfReason `json:"reasons"`
	// Blockers are the pods that keep nodes which could otherwise go, by falling price; 100 at most.
	Blockers []Blocker `json:"blockers"`
	// HiddenBlockers are those whose pods the viewer may not read.
	HiddenBlockers int `json:"hiddenBlockers,omitempty"`
	// Bought are the scale-ups that the ledger still has, beside what else would have held the same
	// pods, and what they would have cost at least; nil where neither is known of any scale-up.
	Bought *Bought `json:"bought,omitempty"`
}

// MoneyOfGroup is what the nodes of a group cost.
type MoneyOfGroup struct {
	Group string `json:"group"`
	Nodes int    `json:"nodes"`
	// Price is of all its nodes an hour, NodePrice of one.
	Price     Price `json:"price"`
	NodePrice Price `json:"nodePrice,omitempty"`
	Removable Price `json:"removable,omitempty"`
	Leaving   Price `json:"leaving,omitempty"`
	// RemovableNodes and LeavingNodes are how many of its nodes these are.
	RemovableNodes int `json:"removableNodes,omitempty"`
	LeavingNodes   int `json:"leavingNodes,omitempty"`
}

// Blocker is a pod that keeps a node.
type Blocker struct {
	Pod    string `json:"pod"` // namespace/name
	Node   string `json:"node"`
	Group  string `json:"group,omitempty"`
	Reason string `json:"reason"`
	Price  Price  `json:"price,omitempty"`
}

// Bought adds scale-ups up: an hour's prices of what was ordered, and of alternatives for the same pods.
// The alternatives are bounds from below. Orders whose choice had neither an alternative nor a lower bound aren't
// among them.
type Bought struct {
	Since   time.Time `json:"since"`
	Orders  int       `json:"orders"`
	Chosen  Price     `json:"chosen"`
	Next    Price     `json:"next"`    // cheapest alternative
	Dearest Price     `json:"dearest"` // dearest alternative
	// Bounded are the orders of which it is proved what any purchase for the same pods costs at least, by the expander
	// cost: BoundedChosen is what these cost, and LowerBound what they cost at least.
	Bounded       int   `json:"bounded,omitempty"`
	BoundedChosen Price `json:"boundedChosen,omitempty"`
	LowerBound    Price `json:"lowerBound,omitempty"`
}
