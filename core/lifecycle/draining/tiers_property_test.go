package draining

import (
	"math"
	"math/big"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/internal/test/testkit"
)

// TestPropertyGracePeriodsAreWithinTheirTier draws what pods say about their grace period, small and large
// numbers, and compares the grace period of a tier with one of unbounded integers: not below 0, not
// above the tier's, and otherwise the pod's own.
func TestPropertyGracePeriodsAreWithinTheirTier(t *testing.T) {
	schema := cluster.NewSchema()
	rapid.Check(t, func(t *rapid.T) {
		seconds := rapid.OneOf(rapid.Int64(), rapid.Int64Range(-10, 2000), rapid.Int64Range(math.MaxInt64-10, math.MaxInt64)).Draw(t, "grace period in seconds")
		tier := autoscaler.DrainTier{Grace: time.Duration(rapid.Int64Range(0, 3600).Draw(t, "the tier's")) * time.Second}
		pod := testkit.Pod("p").Obj()
		pod.Spec.TerminationGracePeriodSeconds = &seconds
		got, less := grace(tier, schema.ParsePod(pod))

		own := new(big.Int).Mul(big.NewInt(max(seconds, 0)), big.NewInt(int64(time.Second)))
		bounded := tier.Grace > 0 && own.Cmp(big.NewInt(int64(tier.Grace))) > 0
		switch {
		case less != bounded:
			t.Fatalf("a grace period of %d s is less than the pod's own in a tier of %s: %v", seconds, tier.Grace, less)
		case bounded && got != tier.Grace:
			t.Fatalf("a grace period of %d s is %s in a tier of %s", seconds, got, tier.Grace)
		case !bounded && seconds <= 100_000_000 && int64(got) != own.Int64():
			t.Fatalf("a grace period of %d s is %s in a tier of %s", seconds, got, tier.Grace)
		case got < 0:
			t.Fatalf("a grace period of %d s is %s", seconds, got)
		}
	})
}
