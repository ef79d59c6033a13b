package headroom

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berthproject/berth/core/autoscalingapi"
)

// TestAStatusIsAdoptedUntilThisProcessDecides shows a buffer with the status that another process has
// written, and again after this one has decided: then only conditions that Berth doesn't set count.
func TestAStatusIsAdoptedUntilThisProcessDecides(t *testing.T) {
	buffer := func(replicas int32, conditions ...string) *autoscalingapi.CapacityBuffer {
		b := &autoscalingapi.CapacityBuffer{}
		b.Status.Replicas = &replicas
		for _, kind := range conditions {
			b.Status.Conditions = append(b.Status.Conditions, metav1.Condition{Type: kind, Status: metav1.ConditionTrue})
		}
		return b
	}
	var r report
	check := func(when string, replicas int32, conditions ...string) {
		t.Helper()
		if r.status.Replicas == nil || *r.status.Replicas != replicas || r.status.Conditions != nil {
			t.Errorf("%s: the status is %+v, want %d replicas, and conditions apart", when, r.status, replicas)
		}
		ok := len(r.conditions) == len(conditions)
		for _, kind := range conditions {
			ok = ok && r.is(kind)
		}
		if !ok {
			t.Errorf("%s: the conditions are %v, want %v", when, r.conditions, conditions)
		}
	}
	r.adopt(buffer(3, autoscalingapi.ReadyForProvisioning, "Foreign"))
	check("before anything is decided", 3, autoscalingapi.ReadyForProvisioning, "Foreign")
	r.decided = true
	r.adopt(buffer(5, autoscalingapi.Provisioning, "Another"))
	check("afterwards", 3, autoscalingapi.ReadyForProvisioning, "Another")
}
