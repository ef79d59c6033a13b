package api

import (
	"math"
	"sync"
	"time"

	"github.com/berthproject/berth/core"
	"github.com/berthproject/berth/core/explain"
	v1alpha1 "github.com/berthproject/berth/edge/api/v1alpha1"
)

// This file keeps gauges over time, so that charts need no Prometheus, and answers series.
//
// What must hold: memory is taken once, at the start, and stays under 1 MB (4,176 points × 19 gauges × 8 bytes are 635 kB);
// a sample costs the core what an overview costs it, once in 10 seconds; and a viewer without rights may read all of
// it, since a gauge is a sum that names nothing.

// gauge is one line of the series.
type gauge struct{ name, unit string }

// gauges are what is kept over time, in the order of a sample.
var gauges = [...]gauge{
	{"podsPlaced", "pods"}, {"podsPending", "pods"}, {"podsRejected", "pods"}, {"podsGated", "pods"}, {"podsNodeComing", "pods"}, {"oldestPending", "seconds"},
	{"nodesReady", "nodes"}, {"nodesNotReady", "nodes"}, {"nodesUnschedulable", "nodes"}, {"nodesTarget", "nodes"}, {"nodesLaunching", "nodes"}, {"nodesRemovable", "nodes"}, {"nodesLeaving", "nodes"},
	{"cpu", "share"}, {"memory", "share"}, {"gpu", "share"},
	{"price", "price"}, {"priceRemovable", "price"}, {"priceLaunching", "price"},
}

// GaugeNames returns the names of the gauges, for the documentation and for tests that compare it with them.
func GaugeNames() (out []string) {
	for _, g := range gauges {
		out = append(out, g.name)
	}
	return out
}

// The two grids of the series. A point of the coarse one is the mean of the fine points in its time.
const (
	fineStep, finePoints     = 10 * time.Second, 6 * 60 * 6     // 6 hours
	coarseStep, coarsePoints = 5 * time.Minute, 7 * 24 * 60 / 5 // 7 days
)

// sample is the gauges at one time; NaN for what isn't known.
type sample [len(gauges)]float64

// Series keeps gauges over time in memory, in two rings whose size never changes. Add is for the goroutine that
// owns the core.
type Series struct {
	mu           sync.Mutex
	fine, coarse ring
	// sum adds up the fine points since the last coarse one, and n counts them, for each gauge.
	sum, n sample
}

// ring has a sample for each step of time; that of step i is at i modulo its length.
type ring struct {
	step time.Duration
	// NaN where nothing was measured: a restart, or a time without a leader, is a gap in the chart and not a 0.
	samples []sample
	last    int64 // number of the newest step, 0 before the first
}

// NewSeries returns empty series. Their memory is taken at once.
func NewSeries() *Series {
	return &Series{fine: newRing(fineStep, finePoints), coarse: newRing(coarseStep, coarsePoints)}
}

// newRing returns a ring in which nothing was measured. Its size is final: points × gauges × 8 bytes.
func newRing(step time.Duration, points int) ring {
	r := ring{step: step, samples: make([]sample, points)}
	for i := range r.samples {
		r.samples[i] = unknown()
	}
	return r
}

// unknown returns a sample of a time at which nothing was measured.
func unknown() (s sample) {
	for i := range s {
		s[i] = math.NaN()
	}
	return s
}

// Due reports whether there is no sample of a time yet. It costs a lock and a division.
func (s *Series) Due(now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.fine.number(now) > s.fine.last
}

// Add takes a sample of a core at a time, when one is due. It costs O(nodes × log nodes + pods without a node).
func (s *Series) Add(now time.Time, c *core.Core) {
	if s.Due(now) {
		s.put(now, sampleOf(now, look(c.View())))
	}
}

// put keeps a sample.
func (s *Series) put(now time.Time, x sample) {
	s.mu.Lock()
	defer s.mu.Unlock()
	// A new coarse step begins, so the mean begins anew. Until it is full, its point is the mean of what there is.
	if s.coarse.last != 0 && s.coarse.number(now) > s.coarse.last {
		s.sum, s.n = sample{}, sample{}
	}
	s.fine.put(now, x)
	// A gauge that wasn't known at some of the times has the mean of the others.
	mean := unknown()
	for i, v := range x {
		if !math.IsNaN(v) {
			s.sum[i] += v
			s.n[i]++
		}
		if s.n[i] > 0 {
			mean[i] = s.sum[i] / s.n[i]
		}
	}
	s.coarse.put(now, mean)
}

// number returns the number of the step that a time is in.
func (r *ring) number(at time.Time) int64 { return at.UnixNano() / int64(r.step) }

// put sets the sample of a step. Steps between the newest and this one have none.
func (r *ring) put(at time.Time, x sample) {
	// Clocks may be set back; what was measured stays.
	n := r.number(at)
	if n < r.last {
		return
	}
	// After a long gap at most one round of the ring is cleared.
	for i := max(r.last+1, n-int64(len(r.samples))+1); i < n; i++ {
		r.samples[i%int64(len(r.samples))] = unknown()
	}
	r.samples[n%int64(len(r.samples))] = x
	r.last = n
}

// sampleOf returns the gauges of a glance, in the order of gauges: a line is found by its place alone.
func sampleOf(now time.Time, g *glance) sample {
	rejected, gated, coming := 0, 0, 0
	for i := range g.Pending {
		switch p := &g.Pending[i]; p.State {
		case explain.PendingRejected:
			rejected += p.Pods
		case explain.PendingGated:
			gated += p.Pods
		case explain.PendingNodeComing:
			coming += p.Pods
		}
	}
	// 0 when none waits, so that the line goes down when the last of them is placed.
	oldest := 0.0
	if !g.oldest.IsZero() {
		oldest = now.Sub(g.oldest).Seconds()
	}
	nodes := nodeCounts(g)
	share := shares(g.use)
	price := [3]float64{math.NaN(), math.NaN(), math.NaN()}
	if g.Nodes.ScaleDown != nil {
		if m := moneySum(g); m != nil {
			price = [3]float64{float64(m.Price), float64(m.Removable), float64(m.Launching)}
		}
	}
	return sample{
		float64(g.Placed), float64(g.pending), float64(rejected), float64(gated), float64(coming), oldest,
		float64(nodes.Ready), float64(nodes.NotReady), float64(nodes.Unschedulable), float64(nodes.Target), float64(nodes.Launching), float64(nodes.Removable), float64(nodes.Leaving),
		share[0], share[1], share[2],
		price[0], price[1], price[2],
	}
}

// shares returns which share of cpu, memory and GPUs is requested. GPUs are all extended resources that end
// in /gpu; without any it is NaN.
func shares(uses []explain.NamedUse) [3]float64 {
	gpu := explain.Use{}
	out := [3]float64{math.NaN(), math.NaN(), math.NaN()}
	for _, u := range uses {
		switch {
		case u.Name == "cpu":
			out[0] = u.Share()
		case u.Name == "memory":
			out[1] = u.Share()
		case isGPU(string(u.Name)):
			gpu.Requested += u.Requested
			gpu.Allocatable += u.Allocatable
		}
	}
	if gpu.Allocatable > 0 {
		out[2] = gpu.Share()
	}
	return out
}

// isGPU reports whether an extended resource counts whole GPUs, as nvidia.com/gpu and amd.com/gpu do. Parts of them, such
// as nvidia.com/mig-1g.5gb, are of different sizes and can't be added up.
func isGPU(resource string) bool {
	return len(resource) > 4 && resource[len(resource)-4:] == "/gpu"
}

// series answers series: ?step=10s or 5m, and ?from=, a time or a duration before now.
func (a *API) series(r *request) (any, error) {
	ring := &a.opt.Series.fine
	switch r.query.Get("step") {
	case "", "10s":
	case "5m":
		ring = &a.opt.Series.coarse
	default:
		return nil, bad("step is %q; it must be 10s or 5m", r.query.Get("step"))
	}
	var from time.Time
	if text := r.query.Get("from"); text != "" {
		if d, err := time.ParseDuration(text); err == nil && d > 0 {
			from = a.clusterTime(a.opt.Now()).Add(-d)
		} else if from, err = time.Parse(time.RFC3339, text); err != nil {
			return nil, bad("from is %q; it must be a time such as 2026-01-31T12:00:00Z, or how long ago, such as 1h", text)
		}
	}
	out := a.opt.Series.read(ring, from)
	out.At = a.clusterTime(a.opt.Now()).UTC()
	return out, nil
}

// read returns the points of a ring from a time on, at most 2,160 of each gauge; all for the zero time. Points before the
// first that was measured are left out. Writing them takes the lock that Add takes, so a viewer may hold the core up for as
// long as 41,000 numbers are copied.
func (s *Series) read(r *ring, from time.Time) v1alpha1.Series {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := v1alpha1.Series{Step: duration(r.step), Lines: make([]v1alpha1.Line, len(gauges))}
	first := r.last + 1
	if r.last > 0 {
		// Step 0, of 1970, stands for none.
		first = max(r.last-int64(len(r.samples))+1, 1)
	}
	if !from.IsZero() {
		first = min(max(first, r.number(from)), r.last+1)
	}
	for first <= r.last && math.IsNaN(r.samples[first%int64(len(r.samples))][0]) {
		first++
	}
	out.From, out.Points = time.Unix(0, first*int64(r.step)).UTC(), int(r.last+1-first)
	for i, g := range gauges {
		out.Lines[i] = v1alpha1.Line{Name: g.name, Unit: g.unit, Values: make([]*float64, 0, out.Points)}
		for n := first; n <= r.last; n++ {
			out.Lines[i].Values = append(out.Lines[i].Values, point(r.samples[n%int64(len(r.samples))][i]))
		}
	}
	return out
}

// Whole returns the points of a run that took so long and is over, on the finest grid that has all of them.
func (s *Series) Whole(took time.Duration) v1alpha1.Series {
	if took > fineStep*finePoints {
		return s.read(&s.coarse, time.Time{})
	}
	return s.read(&s.fine, time.Time{})
}

// point returns a value, rounded to a ten-thousandth, nil for one that isn't known.
func point(v float64) *float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	v = math.Round(v*1e4) / 1e4
	return &v
}
