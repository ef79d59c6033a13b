package live

import (
	"time"

	"github.com/berthproject/berth/core"
	"github.com/berthproject/berth/core/autoscaler"
)

// stopwatch bounds plans by the time that they take. Only the goroutine of the plan that is
// made calls it.
type stopwatch struct {
	now     func() time.Time
	max     [autoscaler.Spans]time.Duration // by span; 0 for no bound
	started [autoscaler.Spans]time.Time     // by span
}

var _ autoscaler.Stopwatch = (*stopwatch)(nil)

// newStopwatch returns one with the bounds of a configuration; nil for a core that only
// schedules.
func newStopwatch(a *core.Autoscale, now func() time.Time) *stopwatch {
	if a == nil {
		return nil
	}
	return &stopwatch{now: now, max: [autoscaler.Spans]time.Duration{
		autoscaler.WholePlan: a.MaxBinpackingTime, autoscaler.OneGroup: a.MaxNodeGroupBinpackingDuration, autoscaler.Drains: a.SimulationTimeout}}
}

// Start implements autoscaler.Stopwatch.
func (s *stopwatch) Start(span autoscaler.Span) { s.started[span] = s.now() }

// Over implements autoscaler.Stopwatch.
func (s *stopwatch) Over(span autoscaler.Span) bool {
	now := s.now()
	return s.over(span, now) || span == autoscaler.OneGroup && s.over(autoscaler.WholePlan, now)
}

func (s *stopwatch) over(span autoscaler.Span, now time.Time) bool {
	return s.max[span] > 0 && now.Sub(s.started[span]) >= s.max[span]
}

// orNil returns the stopwatch as a planner takes it.
func (s *stopwatch) orNil() autoscaler.Stopwatch {
	if s == nil {
		return nil
	}
	return s
}

// took returns how long the plan that has just been made has looked for groups to grow, and for
// nodes to remove.
func (s *stopwatch) took() (scaleUp, findUnneeded time.Duration) {
	end := s.now()
	if drains := s.started[autoscaler.Drains]; drains.After(s.started[autoscaler.WholePlan]) {
		findUnneeded, end = end.Sub(drains), drains
	}
	return end.Sub(s.started[autoscaler.WholePlan]), findUnneeded
}
