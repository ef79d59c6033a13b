package deallocation

import (
	"testing"
	"time"

	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berthproject/berth/core/cluster"
)

// TestAClaimIsShownToTheStateAsItsTimeIs: a claim whose time is over when the API shows it is late in the
// state at once, and isn't waited for; any other is late once its time is over, and only once. Rules see a
// claim between it is shown and the next call of TimedOut.
func TestAClaimIsShownToTheStateAsItsTimeIs(t *testing.T) {
	const limit = 7 * time.Minute
	allocated := time.Unix(1000, 0)
	claim := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a"}}
	claim.Status.Allocation = &resourcev1.AllocationResult{AllocationTimestamp: &metav1.Time{Time: allocated}}
	claim.Status.Allocation.Devices.Results = []resourcev1.DeviceRequestAllocationResult{{BindingConditions: []string{"Attached"}}}
	for _, x := range []struct {
		name  string
		shown time.Duration // after the allocation
		late  bool
	}{
		{"before its time is over", limit - time.Second, false},
		{"when its time is over", limit, false},
		{"after its time is over", limit + 1, true},
	} {
		m := New(nil, limit)
		is := func(c *resourcev1.ResourceClaim) bool { return c.Annotations[cluster.AnnBindingTimedOut] == "true" }
		if got := is(m.ClaimShown(allocated.Add(x.shown), claim)); got != x.late {
			t.Errorf("%s: the state has a claim that is late: %t, want %t", x.name, got, x.late)
		}
		if next := m.timeouts.next(); next.IsZero() != x.late {
			t.Errorf("%s: the time of the claim is over at %v, want to be woken: %t", x.name, next, !x.late)
		}
		after := m.TimedOut(allocated.Add(limit + 1))
		if len(after) == 1 == x.late || !x.late && !is(after[0]) {
			t.Errorf("%s: once its time is over, these are late: %v, want the claim: %t", x.name, after, !x.late)
		}
		if again := m.TimedOut(allocated.Add(2 * limit)); again != nil {
			t.Errorf("%s: late a second time: %v", x.name, again)
		}
	}
}
