package live

import (
	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/drive"
)

// shadowWorkers make plans and do nothing else. A shadow's core asks for no work; what is owed an
// outcome is refused.
type shadowWorkers struct {
	drive.Unanswered
	plan func(compute func() *autoscaler.Plan, done func(*autoscaler.Plan))
}

var _ drive.Workers = shadowWorkers{}

// Consult implements drive.Workers.
func (shadowWorkers) Consult(_ step.Consult, answer func(step.Consulted)) {
	answer(step.Consulted{Err: ErrShadow})
}

// Plan implements drive.Workers.
func (w shadowWorkers) Plan(compute func() *autoscaler.Plan, done func(*autoscaler.Plan)) {
	w.plan(compute, done)
}

// Bind implements drive.Workers.
func (shadowWorkers) Bind(_ step.Bind, done func(error)) { done(ErrShadow) }

// Deallocate implements drive.Workers.
func (shadowWorkers) Deallocate(_ step.Deallocation, done func(error)) { done(ErrShadow) }

// Preempt implements drive.Workers.
func (shadowWorkers) Preempt(_ step.Preemption, done func(error)) { done(ErrShadow) }

// Nominate implements drive.Workers.
func (shadowWorkers) Nominate(_ step.Nomination, done func(error)) { done(ErrShadow) }

// WriteStatus implements drive.Workers.
func (shadowWorkers) WriteStatus(_ step.StatusWrite, done func(error)) { done(ErrShadow) }

// Taint implements drive.Workers.
func (shadowWorkers) Taint(_ step.Taint, done func(error)) { done(ErrShadow) }

// Evict implements drive.Workers.
func (shadowWorkers) Evict(_ step.Eviction, done func(error)) { done(ErrShadow) }

// Surge implements drive.Workers.
func (shadowWorkers) Surge(_ step.Surge, done func(error)) { done(ErrShadow) }

// ScaleUp implements drive.Workers.
func (shadowWorkers) ScaleUp(_ step.ScaleUp, done func(error)) { done(ErrShadow) }

// DeleteNodes implements drive.Workers.
func (shadowWorkers) DeleteNodes(deletions []step.NodeDeletion, done func(step.NodeDeletion, error)) {
	for _, d := range deletions {
		done(d, ErrShadow)
	}
}
