package autoscaler_test

import (
	"testing"

	"github.com/berthproject/berth/core/autoscaler"
)

// TestAPurchaseClaimsNoUnknownBound leaves out the lower bound that isn't known.
func TestAPurchaseClaimsNoUnknownBound(t *testing.T) {
	for _, x := range []struct {
		mix  autoscaler.Mix
		want string
	}{
		{autoscaler.Mix{Price: 12, LowerBound: 11.5}, "part of a purchase of $12.00/h, lower bound $11.50/h"},
		{autoscaler.Mix{Price: 12}, "part of a purchase of $12.00/h"},
	} {
		if got := x.mix.String(); got != x.want {
			t.Errorf("%+v: got %q, want %q", x.mix, got, x.want)
		}
	}
}
