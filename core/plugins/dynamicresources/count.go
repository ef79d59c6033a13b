package dynamicresources

import (
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/devices"
	"github.com/berthproject/berth/core/framework"
)

// ownRule is the rule of pods whose claims are their own and have no devices yet. How many of them a
// node takes follows from its devices: each takes of these what the allocator gives it, and leaves the
// next one the rest.
type ownRule struct{ *rule }

var _ framework.ClaimCounter = ownRule{}

// CountsClaims implements framework.ClaimCounter.
func (r ownRule) CountsClaims() bool { return r.state.Devices().NodesOnly() }

// Count implements framework.Counter. It asks the allocator for contents that weren't met before.
func (r ownRule) Count(n *cluster.Node) int {
	if r.stale {
		return 0
	}
	v := r.on(n)
	if v.question == 0 {
		return framework.Unlimited
	}
	left := r.left(n)
	for count := 0; count < framework.Unlimited; count++ {
		next := r.state.Devices().Take(left, v.question, v.claims, r.state.DeviceClasses(), r.how)
		if next == nil {
			return count
		}
		if next == left {
			break
		}
		left = next
	}
	return framework.Unlimited
}

// left returns the devices of a node that are left once its pods have theirs. Those of the state have
// taken them there.
func (r ownRule) left(n *cluster.Node) *devices.Loose {
	inventory := r.state.Devices()
	if n.Index != cluster.NoNode {
		return inventory.LooseAt(int32(n.Index), n.Object)
	}
	out := inventory.LooseOf(n.Object)
	for _, p := range n.Pods {
		if !r.state.ClaimsDevices(p) {
			continue
		}
		d := demandOf(p, r.state)
		if d.problem != "" {
			continue
		}
		claims := d.wanted
		if special := d.special(d.lacks(n)); special != nil && !d.stale {
			claims = append(claims, special)
		}
		if len(claims) == 0 {
			continue
		}
		if next := inventory.Take(out, d.asks(r.state, claims, r.how), claims, r.state.DeviceClasses(), r.how); next != nil {
			out = next
		}
	}
	return out
}
