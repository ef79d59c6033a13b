package autoscaler

// Balancing says which node groups are similar. Similar groups, such as the zonal ones of one
// shape, share the nodes that are bought of any of them, so that their sizes stay balanced.
type Balancing struct {
	Mode BalancingMode // --balance-similar-node-groups
	// Labels, when there are any, are all that similar groups have in common: a value of
	// their own for each (--balancing-label). Nothing else is compared then.
	Labels []string
	// IgnoredLabels may differ, in addition to those that always may
	// (--balancing-ignore-label).
	IgnoredLabels []string
	// How far apart similar groups may be, as shares of the larger of two: a node's memory,
	// what of any resource it can allocate, and what its daemon pods leave free
	// (--memory-difference-ratio, --max-allocatable-difference-ratio,
	// --max-free-difference-ratio).
	MemoryDifference, AllocatableDifference, FreeDifference float64
}

// BalancingMode says when similar groups are balanced.
type BalancingMode uint8

// The modes. Nobody has said anything in the first: Cluster Autoscaler's expanders don't
// balance then, and Berth's own does.
const (
	BalanceByExpander BalancingMode = iota
	BalanceAlways
	BalanceNever
)
