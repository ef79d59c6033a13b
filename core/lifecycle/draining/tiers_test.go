package draining

import (
	"math"
	"testing"
	"time"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/internal/test/testkit"
)

// TestNoGracePeriodIsBeyondItsTier: what a pod says about its grace period may be any number of
// seconds, more than a time.Duration holds, and less than none.
func TestNoGracePeriodIsBeyondItsTier(t *testing.T) {
	schema := cluster.NewSchema()
	tier := autoscaler.DrainTier{Grace: 10 * time.Minute}
	for _, x := range []struct {
		seconds *int64
		want    time.Duration
		less    bool
	}{
		{nil, 30 * time.Second, false},
		{new(int64(5)), 5 * time.Second, false},
		{new(int64(601)), 10 * time.Minute, true},
		{new(int64(9223372037)), 10 * time.Minute, true},
		{new(int64(math.MaxInt64)), 10 * time.Minute, true},
		{new(int64(-1)), 0, false},
	} {
		pod := testkit.Pod("p").Obj()
		pod.Spec.TerminationGracePeriodSeconds = x.seconds
		if got, less := grace(tier, schema.ParsePod(pod)); got != x.want || less != x.less {
			t.Errorf("a grace period of %v s: got %s, less than the pod's own: %t; want %s, %t", x.seconds, got, less, x.want, x.less)
		}
	}
}
