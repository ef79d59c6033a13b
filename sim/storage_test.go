package sim

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/berthproject/berth/sim/scenario"
)

// slowFlow is a flow of the reference.
type slowFlow struct {
	name                 string
	left, limit, streams float64
}

// slowShare divides a rate by raising everybody's share a little at a time.
func slowShare(flows []*slowFlow, rate, knee, power float64) []float64 {
	writers := 0.0
	for _, f := range flows {
		writers += f.streams
	}
	if knee > 0 && writers > knee {
		rate *= math.Pow(knee/writers, power)
	}
	got := make([]float64, len(flows))
	for left := rate; left > rate*1e-9; {
		hungry := 0.0
		for i, f := range flows {
			if got[i] < f.limit*(1-1e-12) {
				hungry += f.streams
			}
		}
		if hungry == 0 {
			break
		}
		step := left / hungry
		for i, f := range flows {
			if room := f.limit - got[i]; room > 0 {
				step = min(step, room/f.streams)
			}
		}
		for i, f := range flows {
			if got[i] < f.limit*(1-1e-12) {
				got[i] += step * f.streams
				left -= step * f.streams
			}
		}
	}
	return got
}

// TestStorageAgreesWithItsReference writes random flows through the storage and through
// a reference that raises everybody's share a little at a time.
func TestStorageAgreesWithItsReference(t *testing.T) {
	for seed := range uint64(30) {
		r := rand.New(rand.NewPCG(seed, 1))
		rate := resource.MustParse(fmt.Sprint(50 + r.IntN(500)))
		cfg := scenario.Storage{SharedRate: &rate}
		if r.IntN(2) == 0 {
			cfg.Knee, cfg.Collapse = float64(2+r.IntN(6)), 1+r.Float64()
		}
		c := &clock{seed: seed}
		s := newStorage(c, cfg)
		ends := map[string]time.Duration{}
		type start struct {
			at time.Duration
			f  slowFlow
		}
		var starts []start
		for i := range 12 {
			x := start{time.Duration(r.IntN(3000)) * tick, slowFlow{fmt.Sprint(i), float64(100 + r.IntN(5000)), []float64{20, 80, math.Inf(1)}[r.IntN(3)], float64(1 + r.IntN(3))}}
			starts = append(starts, x)
			c.after(x.at, phaseWorld, func() {
				s.write(x.f.left, x.f.limit, x.f.streams, func() { ends[x.f.name] = c.now })
			})
		}
		for c.next(24 * time.Hour) {
		}
		// The reference goes in steps of a tick.
		var on []*slowFlow
		for now, done := time.Duration(0), 0; done < len(starts); now += tick {
			for i := range starts {
				if starts[i].at == now {
					on = append(on, &starts[i].f)
				}
			}
			got := slowShare(on, rate.AsApproximateFloat64(), cfg.Knee, max(cfg.Collapse, 1))
			var still []*slowFlow
			for i, f := range on {
				if f.left -= got[i] * tick.Seconds(); f.left > 0 {
					still = append(still, f)
					continue
				}
				done++
				// The storage itself looks at ticks, so errors of a few add up.
				if d := ends[f.name] - now; ends[f.name] == 0 || d.Abs() > 30*tick {
					t.Errorf("seed %d: flow %s ends at %s, the reference's at %s", seed, f.name, ends[f.name], now)
				}
			}
			on = still
		}
	}
}

// sharedRate returns a storage, with its clock, that all flows share at so many bytes a second.
func sharedRate(bytes int64) (*clock, *storage) {
	c := &clock{seed: 1}
	return c, newStorage(c, scenario.Storage{SharedRate: resource.NewQuantity(bytes, resource.DecimalSI)})
}

// TestAStoppedFlowLeavesItsShareToTheOthers: two flows of 1,000 bytes share 100 bytes a
// second. After 10 s each has written 500; when one stops there, the other has the whole
// rate from then on, and ends 5 s later.
func TestAStoppedFlowLeavesItsShareToTheOthers(t *testing.T) {
	c, s := sharedRate(100)
	var ended []string
	write := func(name string) *flow {
		return s.write(1000, math.Inf(1), 1, func() { ended = append(ended, fmt.Sprint(name, " at ", c.now.Round(time.Second))) })
	}
	stopped := write("stopped")
	stays := write("stays")
	c.after(10*time.Second, phaseWorld, func() { s.stop(stopped) })
	for c.next(time.Hour) {
	}
	for _, f := range []*flow{nil, stopped, stays} { // none of them is being written any more
		s.stop(f)
	}
	if want := []string{"stays at 15s"}; !slices.Equal(ended, want) {
		t.Errorf("the flows that ended are %q, want %q", ended, want)
	}
}

// TestFlowsThatEndTogetherCallBackInTheirOrder: in the order in which they began.
func TestFlowsThatEndTogetherCallBackInTheirOrder(t *testing.T) {
	c, s := sharedRate(100)
	var ended, want []int
	for i := range 9 {
		want = append(want, i)
		s.write(100, math.Inf(1), 1, func() { ended = append(ended, i) })
	}
	for c.next(time.Hour) {
	}
	if !slices.Equal(ended, want) {
		t.Errorf("the flows call back in the order %v, want %v", ended, want)
	}
}
