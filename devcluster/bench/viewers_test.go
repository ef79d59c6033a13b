package bench

import (
	"bytes"
	"strings"
	"testing"
	"time"
)

// TestViewingKinds: p99 is compared round by round with the windows without viewers, and memory over all samples.
func TestViewingKinds(t *testing.T) {
	latencies := func(most int) (out []time.Duration) {
		for i := most; i > 0; i-- {
			out = append(out, time.Duration(i)*time.Millisecond)
		}
		return out
	}
	// The second round was on a busy machine: both of its windows are slow.
	without := []window{{latencies: latencies(100), decided: latencies(10)}, {latencies: latencies(1000), decided: latencies(50)}, {latencies: latencies(100), decided: latencies(10)}}
	k := ViewingKind{Name: "3 viewers", windows: []window{
		{latencies: latencies(101), decided: latencies(11), memory: []int64{10 << 20, 20 << 20}, cpu: time.Second, took: 2 * time.Second},
		{latencies: latencies(1010), decided: latencies(53), memory: []int64{60 << 20}, took: time.Second},
		{latencies: latencies(102), decided: latencies(10), took: time.Second},
	}}
	k.sum(without)
	if k.Pods != 1213 || k.Max != 1010 || k.P99More != 2 || k.Decided != 53 || k.DecidedMore != 1 || k.Memory != 30<<20 || k.PeakMemory != 60<<20 || k.CPU != 0.25 {
		t.Errorf("%+v", k)
	}
	var out bytes.Buffer
	if err := PrintViewing(&out, []ViewingKind{k}); err != nil || !strings.Contains(out.String(), "+2.00") {
		t.Errorf("%v: %s", err, out.String())
	}
}
