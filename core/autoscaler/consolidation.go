package autoscaler

// This file is what the core and the planner say to each other of consolidation: replacing
// several nodes, none of which could go by itself, by fewer or cheaper ones.

// Consolidate asks for nodes that could be replaced.
type Consolidate struct {
	// Threshold is how large the savings have to be for what has to be moved
	// (--consolidation-threshold): the share of the cluster's price that is saved is at least
	// so many times the share of its pods that are moved.
	Threshold float64
	// Most is how many nodes of a group may go, by its ID; groups without an entry have no
	// limit.
	Most map[string]int
}

// Consolidation is nodes that could go together once others are there. It doesn't change once
// it is in a plan.
type Consolidation struct {
	// Nodes are those that go, in the order in which their pods find homes.
	Nodes []string
	// ScaleUps are the nodes that are bought first; none when there is room without any. They
	// are for no pods by name.
	ScaleUps []ScaleUp
	// Before and After are the price of Nodes and of what is bought, an hour.
	Before, After float64
	// Pods is how many pods are moved, and Score by how much the shares differ that
	// Consolidate.Threshold compares.
	// Score is a ratio: the share of the price that is saved, divided by the share of the pods that
	// are moved.
	Pods  int
	Score float64
}

// Replacing is a consolidation that is under way, for a pass.
type Replacing struct {
	// Nodes are those that go, in the order in which they are simulated: before all others,
	// and whatever their utilization is.
	Nodes []string
	// Groups are those that nodes were ordered of: until it is over none of their nodes is a
	// candidate, those of Nodes aside. The new ones are empty at first, and are to be homes.
	Groups []string
}
