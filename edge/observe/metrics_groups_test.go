package observe

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/berthproject/berth/core/step"
)

// TestPodGroupsAreCounted: the time of a Step is divided by pods, and a group's is that of its members.
func TestPodGroupsAreCounted(t *testing.T) {
	m := NewMetrics()
	m.Step(time.Unix(1000, 0), 80*time.Millisecond, nil, &step.Ready{Decisions: []step.Decision{
		{Kind: step.GroupPlaced, Profile: "p", Members: 2}, {Kind: step.Placed, Profile: "p"}, {Kind: step.Placed, Profile: "p"},
		{Kind: step.GroupWaits, Profile: "p", Members: 5}, {Kind: step.Waits, Profile: "p"},
	}})
	want := `
		# HELP scheduler_podgroup_schedule_attempts_total Number of attempts to schedule pod groups, by result: scheduled when enough members got nodes, or unschedulable.
		# TYPE scheduler_podgroup_schedule_attempts_total counter
		scheduler_podgroup_schedule_attempts_total{profile="p",result="scheduled"} 1
		scheduler_podgroup_schedule_attempts_total{profile="p",result="unschedulable"} 1
	`
	if err := testutil.GatherAndCompare(m.Registry, strings.NewReader(want), "scheduler_podgroup_schedule_attempts_total"); err != nil {
		t.Error(err)
	}
	families, err := m.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == "scheduler_podgroup_scheduling_algorithm_duration_seconds" {
			if got := f.Metric[0].Histogram.GetSampleSum(); got < 0.0699 || got > 0.0701 {
				t.Errorf("the groups took %f s, want 70 ms: 7 of 8 pods' shares", got)
			}
			return
		}
	}
	t.Error("the time that groups took isn't served")
}
