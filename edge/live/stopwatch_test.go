package live

import (
	"testing"
	"time"

	"github.com/berthproject/berth/core"
	"github.com/berthproject/berth/core/autoscaler"
)

// TestStopwatchBoundsThePlanAndEachGroup walks through one plan that packs two groups.
func TestStopwatchBoundsThePlanAndEachGroup(t *testing.T) {
	now := time.Unix(1000, 0)
	s := newStopwatch(&core.Autoscale{MaxBinpackingTime: 25 * time.Second, MaxNodeGroupBinpackingDuration: 10 * time.Second}, func() time.Time { return now })
	s.Start(autoscaler.WholePlan)
	s.Start(autoscaler.OneGroup)
	for _, x := range []struct {
		wait        time.Duration
		plan, group bool
	}{{9 * time.Second, false, false}, {time.Second, false, true}} {
		now = now.Add(x.wait)
		if plan, group := s.Over(autoscaler.WholePlan), s.Over(autoscaler.OneGroup); plan != x.plan || group != x.group {
			t.Errorf("at %s the plan is over: %t, the group: %t, want %t and %t", now, plan, group, x.plan, x.group)
		}
	}
	now = now.Add(10 * time.Second)
	s.Start(autoscaler.OneGroup)
	now = now.Add(5 * time.Second)
	if plan, group := s.Over(autoscaler.WholePlan), s.Over(autoscaler.OneGroup); !plan || !group {
		t.Errorf("after 25 s the plan is over: %t, its second group: %t, want both", plan, group)
	}
}

// TestNoBoundIsNeverMet has no bound for groups, or none at all.
func TestNoBoundIsNeverMet(t *testing.T) {
	now := time.Unix(1000, 0)
	s := newStopwatch(&core.Autoscale{MaxBinpackingTime: time.Hour}, func() time.Time { return now })
	s.Start(autoscaler.WholePlan)
	s.Start(autoscaler.OneGroup)
	now = now.Add(59 * time.Minute)
	if s.Over(autoscaler.OneGroup) {
		t.Error("a group is over that has no bound, before its plan is")
	}
	if s := newStopwatch(nil, time.Now); s != nil {
		t.Errorf("a core that makes no plans has the stopwatch %v", s)
	}
}
