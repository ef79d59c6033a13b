package deallocation

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	resourcev1 "k8s.io/api/resource/v1"

	"github.com/berthproject/berth/core/cluster"
)

// This file judges for how long devices may take to become ready (KEP-5007). Rules have no clock: that the
// time of a claim is over is told by an annotation that claims have in the state, and nowhere else. So it
// is a change like any other, at the time of a Step, also in a replay and in what-ifs.

// claimKey names a claim.
type claimKey struct{ namespace, name string }

// timeouts follows the claims whose devices have binding conditions.
type timeouts struct {
	// limit is the longest time of any profile's: a claim may be used by pods of several.
	limit time.Duration
	open  map[claimKey]*resourcev1.ResourceClaim // those whose time isn't over, as the API has them
}

// ClaimShown takes how the API has a claim, and returns how the state is to have it.
func (m *Machine) ClaimShown(now time.Time, c *resourcev1.ResourceClaim) *resourcev1.ResourceClaim {
	key := claimKey{c.Namespace, c.Name}
	delete(m.timeouts.open, key)
	deadline, limited := cluster.BindingDeadline(c, m.timeouts.limit)
	late := limited && deadline.Before(now)
	if limited && !late {
		m.timeouts.open[key] = c
	}
	return cluster.MarkBindingTimedOut(c, late)
}

// ClaimGone is called when a claim is gone.
func (m *Machine) ClaimGone(namespace, name string) {
	delete(m.timeouts.open, claimKey{namespace, name})
}

// TimedOut returns the claims whose time is over since the last call, as the state is to have them, by
// namespace and name.
func (m *Machine) TimedOut(now time.Time) (out []*resourcev1.ResourceClaim) {
	for key, c := range m.timeouts.open {
		if deadline, _ := cluster.BindingDeadline(c, m.timeouts.limit); deadline.Before(now) {
			delete(m.timeouts.open, key)
			out = append(out, cluster.MarkBindingTimedOut(c, true))
		}
	}
	slices.SortFunc(out, func(a, b *resourcev1.ResourceClaim) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	})
	return out
}

// next returns when the time of a claim is over, zero for never.
func (x *timeouts) next() (first time.Time) {
	for c := range maps.Values(x.open) { // the earliest, in any order
		deadline, _ := cluster.BindingDeadline(c, x.limit)
		if over := deadline.Add(time.Nanosecond); first.IsZero() || over.Before(first) {
			first = over
		}
	}
	return first
}
