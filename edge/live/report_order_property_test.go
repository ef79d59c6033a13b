package live

import (
	"net/http"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
)

// TestPropertyNothingIsReportedOfAPodAfterItsBinding draws how an API server answers reports, how late,
// and when the bind of the pod is handed out: no report is carried out after the bind, which
// waits for no more than the request of a report that is under way.
func TestPropertyNothingIsReportedOfAPodAfterItsBinding(t *testing.T) {
	codes := []int{http.StatusOK, http.StatusTooManyRequests, http.StatusInternalServerError, http.StatusServiceUnavailable, http.StatusGatewayTimeout, http.StatusConflict}
	rapid.Check(t, func(rt *rapid.T) {
		api := &reportAPI{
			takes:      time.Duration(rapid.IntRange(0, 12000).Draw(rt, "milliseconds to answer")) * time.Millisecond >> rapid.IntRange(0, 12).Draw(rt, "half of it, and again"),
			code:       rapid.SampledFrom(codes).Draw(rt, "code"),
			retryAfter: rapid.SampledFrom([]string{"", "", "1", "5"}).Draw(rt, "Retry-After"),
		}
		nominates := rapid.Bool().Draw(rt, "a nomination")
		later := time.Duration(rapid.IntRange(0, 5000).Draw(rt, "milliseconds until the bind")) * time.Millisecond
		var bound time.Duration
		synctest.Test(t, func(t *testing.T) { _ = reportThenBind(t, api, nominates, later, &bound) })
		calls := slices.DeleteFunc(api.carried, func(call string) bool { return call == "event" })
		if at := slices.Index(calls, "bind"); at != len(calls)-1 {
			rt.Fatalf("the API server carried out %v, want the bind at the end", calls)
		}
		if most := later + min(api.takes, longestAfter); bound < later || bound > most+100*time.Millisecond {
			rt.Fatalf("a bind that is handed out after %s has its outcome after %s, want %s at most: it waits for one request", later, bound, most)
		}
	})
}
