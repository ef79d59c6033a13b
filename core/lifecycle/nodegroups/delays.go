package nodegroups

import (
	"fmt"
	"time"
)

// This file says for how long groups don't shrink after they grew, shrank, or failed to
// shrink. A delay keeps deletions of nodes from beginning. It stops none that has begun, and
// the time for which a node is unneeded runs on meanwhile: a node may go when both are over.
//
//	delay              from                                            not from
//	DelayAfterAdd      an order of nodes                               an order that launch control or a limit held back, or of a consolidation
//	DelayAfterDelete   the provider was asked to delete a node         instances that never became nodes
//	DelayAfterFailure  a node could not be deleted                     an order that failed: that is a backoff
//
// A delay is the group's own, or, with ClusterDelays, that of all groups: then one group that
// keeps growing keeps all others as large as they are. It ends with the process.

// event is when something last happened, and to which group; the zero value for never.
type event struct {
	// group is for the message of ScaleDownDelay: with ClusterDelays it may be another group than
	// the one that is delayed.
	at    time.Time
	group string
}

// delays has the latest event of each kind: of one group, or of all. An earlier one never matters,
// since all delays of a kind are equally long.
type delays struct{ grew, shrank, failed event }

// delaysOf returns the delays that an event of a group is recorded in, and that hold for it.
func (m *Machine) delaysOf(id string) *delays {
	if m.cfg.ClusterDelays {
		return &m.delays
	}
	return &m.group(id).delays
}

// ScaledDown records that the provider was asked to delete a node of a group.
func (m *Machine) ScaledDown(now time.Time, id string) { m.delaysOf(id).shrank = event{now, id} }

// ScaleDownFailed records that a node of a group could not be deleted.
func (m *Machine) ScaleDownFailed(now time.Time, id string) { m.delaysOf(id).failed = event{now, id} }

// ScaleDownDelayed reports whether a group, or with ClusterDelays any group, grew, shrank or
// failed to shrink too recently for a deletion to begin.
func (m *Machine) ScaleDownDelayed(now time.Time, id string) bool {
	until, _ := m.lastDelay(now, id)
	return !until.IsZero()
}

// ScaleDownDelay returns until when no deletion of a group's nodes begins, and why; of
// several delays the one that ends last. until is zero when none holds.
func (m *Machine) ScaleDownDelay(now time.Time, id string) (until time.Time, why string) {
	until, d := m.lastDelay(now, id)
	if until.IsZero() {
		return until, ""
	}
	return until, fmt.Sprintf("node group %s %s at %s (%s=%s)", d.group, d.what, d.at.UTC().Format(time.TimeOnly), d.flag, d.lasts)
}

// delay is one reason for which deletions are delayed.
type delay struct {
	event
	lasts      time.Duration
	what, flag string
}

// lastDelay returns the delay that ends last, and when; a zero time when none holds.
func (m *Machine) lastDelay(now time.Time, id string) (until time.Time, last delay) {
	of := &m.delays
	if !m.cfg.ClusterDelays {
		g := m.groups[id]
		if g == nil {
			return until, last
		}
		of = &g.delays
	}
	for _, d := range [...]delay{
		{of.grew, m.cfg.DelayAfterAdd, "grew", "--scale-down-delay-after-add"},
		{of.shrank, m.cfg.DelayAfterDelete, "shrank", "--scale-down-delay-after-delete"},
		{of.failed, m.cfg.DelayAfterFailure, "failed to shrink", "--scale-down-delay-after-failure"},
	} {
		if end := d.at.Add(d.lasts); !d.at.IsZero() && end.After(now) && end.After(until) {
			until, last = end, d
		}
	}
	return until, last
}
