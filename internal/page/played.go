package page

import (
	"maps"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/berthproject/berth/core"
	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/edge/api"
	v1alpha1 "github.com/berthproject/berth/edge/api/v1alpha1"
	"github.com/berthproject/berth/edge/observe"
	"github.com/berthproject/berth/sim"
	"github.com/berthproject/berth/sim/report"
	"github.com/berthproject/berth/sim/scenario"
)

// This file is what is seen of a run while it is played, and what came of it.

const (
	// keptDecisions is how many decisions of a run are kept.
	keptDecisions = 1 << 16
	// maxSamples is how many points a chart of a run has at most, and maxLane how many parts a lane of decisions.
	maxSamples, maxLane = 1500, 400
)

// Played is a run that is being played, or was. It is a drive.Hook of the run's world.
type Played struct {
	world   *sim.World // nil of a recording
	core    *core.Core
	history *observe.History
	series  *api.Series
	lanes   lanes
	// from and now are the times of the first Step and the last.
	from, now time.Time
	outcome   v1alpha1.Outcome
}

// NewPlayed returns a run that hasn't begun.
func NewPlayed() *Played {
	return &Played{history: observe.NewHistory(keptDecisions), series: api.NewSeries(), lanes: newLanes()}
}

// In tells whose Steps are seen from now on.
func (p *Played) In(w *sim.World) { p.world = w }

// Step implements drive.Hook.
func (p *Played) Step(now time.Time, _ time.Duration, _ []step.Input, ready *step.Ready) {
	var c *core.Core
	if p.world != nil { // the first Steps may come before the world is there
		c = p.world.Core()
	}
	p.watch(c, now, ready)
}

// watch keeps what a Step has decided, and the gauges after it. The core is nil when it isn't known yet.
func (p *Played) watch(c *core.Core, now time.Time, ready *step.Ready) {
	p.history.Step(now, 0, nil, ready)
	if p.now = now; p.from.IsZero() {
		p.from = now
	}
	for i := range ready.Decisions {
		p.lanes.add(string(ready.Decisions[i].Kind), now.Sub(p.from).Seconds())
	}
	if c != nil {
		p.core = c
		p.series.Add(now, c)
	}
}

// Simulated sets what came of a simulation that is over.
func (p *Played) Simulated(run *scenario.Run, s *scenario.Summary) {
	p.core = p.world.Core()
	if p.from = sim.Epoch; p.now.IsZero() {
		p.now = p.from
	}
	o := &p.outcome
	*o = v1alpha1.Outcome{Name: s.Name, Description: run.Description, Seed: s.Seed, Digest: s.Digest, From: p.from, Until: p.now, Facts: facts(report.Facts(s)), Rows: facts(report.Rows(s)), Lanes: p.lanes.all()}
	o.Times, o.Lines = lines(p.world.Stats().Samples, s.PeakWriteRate > 0)
}

// replayed sets what came of a recording that was played.
func (p *Played) replayed(name, digest string) {
	o := &p.outcome
	*o = v1alpha1.Outcome{Name: name, Digest: digest, From: p.from.UTC(), Until: p.now.UTC(), Facts: []v1alpha1.Fact{}, Rows: []v1alpha1.Fact{}, Lanes: p.lanes.all()}
	for _, lane := range o.Lanes {
		o.Rows = append(o.Rows, v1alpha1.Fact{Label: "decisions " + lane.Kind, Value: strconv.Itoa(lane.Count)})
	}
	s := p.series.Whole(p.now.Sub(p.from))
	for i := range s.Points {
		o.Times = append(o.Times, max(0, s.From.Add(time.Duration(i)*s.Step.Duration).Sub(p.from).Seconds()))
	}
	o.Lines = s.Lines
	if o.Times == nil {
		o.Times = []float64{}
	}
}

func facts(in []report.Fact) []v1alpha1.Fact {
	out := make([]v1alpha1.Fact, len(in))
	for i, f := range in {
		out[i] = v1alpha1.Fact(f)
	}
	return out
}

// lines returns every so many-th sample, and the last, as lines: the charts end where the run does.
func lines(samples []sim.Sample, writes bool) (times []float64, out []v1alpha1.Line) {
	kinds := []struct {
		name, unit string
		of         func(*sim.Sample) float64
	}{
		{"podsPending", "pods", func(s *sim.Sample) float64 { return float64(s.Pending) }},
		{"podsBound", "pods", func(s *sim.Sample) float64 { return float64(s.Bound) }},
		{"podsRunning", "pods", func(s *sim.Sample) float64 { return float64(s.Running) }},
		{"nodesLaunching", "nodes", func(s *sim.Sample) float64 { return float64(s.Launching) }},
		{"nodesStarting", "nodes", func(s *sim.Sample) float64 { return float64(s.Starting) }},
		{"nodesReady", "nodes", func(s *sim.Sample) float64 { return float64(s.Ready) }},
		{"nodesDraining", "nodes", func(s *sim.Sample) float64 { return float64(s.Draining) }},
		{"cpu", "share", func(s *sim.Sample) float64 { return s.CPU }},
		{"memory", "share", func(s *sim.Sample) float64 { return s.Memory }},
		{"cost", "cost", func(s *sim.Sample) float64 { return s.Cost }},
		{"price", "price", func(s *sim.Sample) float64 { return s.Price }},
		{"diskWrites", "bytesPerSecond", func(s *sim.Sample) float64 { return s.WriteRate }},
	}
	if !writes {
		kinds = kinds[:len(kinds)-1]
	}
	every := max((len(samples)+maxSamples-1)/maxSamples, 1)
	times, out = []float64{}, make([]v1alpha1.Line, len(kinds))
	for k := range kinds {
		out[k] = v1alpha1.Line{Name: kinds[k].name, Unit: kinds[k].unit, Values: []*float64{}}
	}
	for i := range samples {
		if i%every != 0 && i != len(samples)-1 {
			continue
		}
		times = append(times, samples[i].At.Seconds())
		for k := range kinds {
			v := math.Round(kinds[k].of(&samples[i])*1e4) / 1e4
			out[k].Values = append(out[k].Values, &v)
		}
	}
	return times, out
}

// lanes count decisions over time by kind, in parts of equal length. How long a run takes isn't known at its
// beginning: when there are too many parts, each two become one.
type lanes struct {
	step float64 // seconds
	of   map[string]map[int]int
}

func newLanes() lanes { return lanes{step: 1, of: map[string]map[int]int{}} }

// add counts a decision so many seconds after the beginning.
func (l *lanes) add(kind string, at float64) {
	for at/l.step >= maxLane {
		l.step *= 2
		for _, parts := range l.of {
			for _, i := range slices.Sorted(maps.Keys(parts)) { // a part's half comes after it
				n := parts[i]
				delete(parts, i)
				parts[i/2] += n
			}
		}
	}
	if l.of[kind] == nil {
		l.of[kind] = map[int]int{}
	}
	l.of[kind][int(at/l.step)]++
}

// all returns the lanes by kind.
func (l *lanes) all() []v1alpha1.Lane {
	out := []v1alpha1.Lane{}
	for _, kind := range slices.Sorted(maps.Keys(l.of)) {
		lane := v1alpha1.Lane{Kind: kind, Step: l.step}
		for _, i := range slices.Sorted(maps.Keys(l.of[kind])) {
			lane.At, lane.Counts = append(lane.At, float64(i)*l.step), append(lane.Counts, l.of[kind][i])
			lane.Count += l.of[kind][i]
		}
		out = append(out, lane)
	}
	return out
}
