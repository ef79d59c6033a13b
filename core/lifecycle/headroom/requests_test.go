package headroom

import (
	"testing"
	"time"

	"github.com/berthproject/berth/core/autoscalingapi"
)

// TestForHowLongARequestIsTried: a time that can't be read, or is longer than requests are kept,
// counts as the latter.
func TestForHowLongARequestIsTried(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"0": 0, "90": 90 * time.Second,
		"": expiresAfter, "-1": expiresAfter, "1h": expiresAfter, "999999999": expiresAfter,
		"9223372037": expiresAfter, "9223372036854775807": expiresAfter, "99999999999999999999": expiresAfter,
	} {
		o := &autoscalingapi.ProvisioningRequest{Spec: autoscalingapi.ProvisioningRequestSpec{ProvisioningClassName: autoscalingapi.BestEffortAtomic,
			Parameters: map[string]string{autoscalingapi.ValidUntilSeconds: text}}}
		if got := validFor(o); got != want {
			t.Errorf("%q: for %s, want %s", text, got, want)
		}
	}
}
