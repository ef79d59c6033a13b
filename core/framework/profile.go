package framework

import (
	"time"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/weighing"
)

// Weighted is a plugin with the weight of its score.
type Weighted struct {
	Plugin
	Weight int64 // 0 when it doesn't score; how much the weights may add up to is engine.MaxWeights
}

// Profile is the set of rules for one schedulerName. It doesn't change once an engine
// was made with it.
type Profile struct {
	SchedulerName string
	Plugins       []Weighted // in the order in which they filter, which decides whose reason people read
	Gates         []PreEnqueuer
	Preempter     Preempter // nil when no pod may preempt others
	// Weighing says what a pod does that could preempt.
	Weighing weighing.Config
	// KeepRoom says when room is kept for gangs of the profile that wait.
	KeepRoom KeepRoom
	Less     Less // the same in all profiles of a core, which have one queue
	// Reservers, Permitters and PostBinders follow a pod from its node's choice to
	// its binding.
	Reservers   []Reserver
	Permitters  []Permitter
	PostBinders []PostBinder
	// BindTimeout is how long a pod's volumes may take to be bound.
	BindTimeout time.Duration
	// DeviceBindTimeout is how long a pod's devices may take to be ready once they were allocated.
	DeviceBindTimeout time.Duration
	// Extenders have a say in the placement of the pods that they concern.
	Extenders []Extender
}

// KeepRoom says after what time of waiting room is kept for a gang, and for how long. After 0 none is.
type KeepRoom struct{ After, For time.Duration }

// Claimer returns the plugin that takes devices for pods, nil when the profile has none that filters.
func (p *Profile) Claimer() Claimer {
	for i := range p.Plugins {
		if c, ok := p.Plugins[i].Plugin.(Claimer); ok {
			return c
		}
	}
	return nil
}

// NeedsParts returns the parts of nodes that plugins of the profile need.
func (p *Profile) NeedsParts() (all cluster.NodeParts) {
	for _, w := range p.Plugins {
		if needer, ok := w.Plugin.(PartsNeeder); ok {
			all |= needer.NeedsParts()
		}
	}
	return all
}
