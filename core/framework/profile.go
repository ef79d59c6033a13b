package framework

import "time"

// Weighted is a plugin with the weight of its score.
type Weighted struct {
	Plugin
	Weight int64
}

// Profile is the set of rules for one schedulerName, in the order in which
// they filter.
type Profile struct {
	SchedulerName string
	Plugins       []Weighted
	Gates         []PreEnqueuer
	Preempter     Preempter // nil when no pod may take the place of others
	Less          Less
	// Reservers, Permitters and PostBinders follow a pod from its node's choice to
	// its binding.
	Reservers   []Reserver
	Permitters  []Permitter
	PostBinders []PostBinder
	// BindTimeout is how long a pod's volumes may take to be bound.
	BindTimeout time.Duration
	// Extenders have a say in the placement of the pods that they concern.
	Extenders []Extender
}
