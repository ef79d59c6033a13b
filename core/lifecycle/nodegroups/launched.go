package nodegroups

import (
	"fmt"
	"maps"
	"slices"

	"github.com/berthproject/berth/core/autoscaler/nodegroup"
	"github.com/berthproject/berth/core/autoscaler/scaleup"
	"github.com/berthproject/berth/core/lifecycle"
	"github.com/berthproject/berth/core/lifecycle/launching"
	"github.com/berthproject/berth/core/step"
)

// This file lets groups back off whose new nodes are ready and never get what pods were planned on
// them for, such as a CSI driver (scaleup's promises): the next node would be bought for the same pods,
// and lack the same.

// LookAtLaunched looks at the nodes that have become late since it last did. It is called before a plan is
// requested, which would buy the next such node. It costs O(groups + new nodes + nodes that aren't ready).
func (m *Machine) LookAtLaunched(t *lifecycle.Turn) {
	last, now := m.lookedAt, t.ServerNow()
	if m.lookedAt = now; last.IsZero() {
		return // nodes that were late before aren't this process's to judge
	}
	launched := scaleup.Launched(t.State, m.Conditions(t.Now), &m.cfg.Readiness, last, now)
	if len(launched) == 0 {
		return
	}
	for _, id := range slices.Sorted(maps.Keys(launched)) {
		of := launched[id]
		for i := range of.Failed {
			m.launchFailed(t, id, &of.Failed[i], launching.Failing(float64(of.Lacking), float64(of.Complete)))
		}
	}
}

// launchFailed records that a node lacks what it was promised, and lets its group back off unless that
// happens by chance.
func (m *Machine) launchFailed(t *lifecycle.Turn, id string, f *scaleup.FailedLaunch, backOff bool) {
	length, by := m.cfg.Readiness.StartupOf(t.State.Group(id))
	why := fmt.Sprintf("node %s is ready, but %s %s after its creation (%s)", f.Node.Name, f.Lack, length, by)
	failed(t, id, 1, nodegroup.CodeTimeout, why)
	if !m.cfg.ReadOnly {
		t.Emit(step.StatusEvent(id, "ScaleUpTimedOut", scalingUp, fmt.Sprintf("Node added to group %s is not usable: %s", id, why)).AsWarning())
	}
	if backOff {
		m.fail(t, id, nodegroup.OtherError, nodegroup.CodeTimeout, why)
	}
}
