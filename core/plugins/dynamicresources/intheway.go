package dynamicresources

import (
	resourcev1 "k8s.io/api/resource/v1"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/devices"
)

// InTheWay implements framework.Claimer: it returns the first claim that has failed devices, or devices
// that some node can't use (PostFilter of kube-scheduler takes one at random). A claim for extended
// resources is left of an earlier attempt to bind the pod.
func (Plugin) InTheWay(pod *cluster.Pod, state *cluster.State) (claim *resourcev1.ResourceClaim, stale bool) {
	d := demandOf(pod, state)
	if d.problem != "" {
		return nil, false
	}
	if d.stale {
		return state.ExtendedResourceClaim(pod), true
	}
	r := newRule(d, state, devices.How{}, nil)
	for i, c := range d.had {
		if n := len(c.Status.ReservedFor); n > 1 || n == 1 && c.Status.ReservedFor[0].UID != pod.UID {
			continue
		}
		if r.places[i].rejectsSome(state) {
			return c, false
		}
	}
	return nil, false
}

// rejectsSome reports whether there is a node that can't use the devices.
func (p *place) rejectsSome(state *cluster.State) bool {
	some := p.unready || p.broken
	if !some && p.selector != nil {
		state.Nodes(func(n *cluster.Node) { some = some || p.rejects(n.Object) })
	}
	return some
}
