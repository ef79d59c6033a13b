package engine

import (
	"slices"

	"github.com/berthproject/berth/core/cluster"
)

// What nominated pods have kept for them of what others take, devices above all (cluster.State.KeepsDevices), or,
// where plugins yield, what they preempted others for. It must hold that
//
//   - nominated pods take theirs in the order in which they were nominated, whoever asks: each was found to fit
//     after those before it, and devices aren't alike;
//   - a pod that is placed on a node takes what these leave, if it has to leave room for them and that does.

// Keeps reports whether a nominated pod is to have the devices that it claims.
func (e *Engine) Keeps(p *cluster.Pod) bool {
	return e.state.KeepsDevices(p) || e.yields && e.state.ClaimsDevices(p)
}

// PlaceNominated places a nominated pod on a node in a what-if, with what it keeps.
func (e *Engine) PlaceNominated(p *cluster.Pod, n cluster.NodeIndex) {
	keeps := e.Keeps(p)
	e.state.PlaceAt(p, n)
	if keeps {
		e.assume(p, n)
	}
}

// assumedBeside returns the changes of objects with which a pod is placed on a node when nominated pods have what
// they keep there. It returns nil when there are no such pods, when they leave the pod no devices, and when they
// have the same claim.
func (e *Engine) assumedBeside(p *cluster.Pod, n cluster.NodeIndex) []cluster.ObjectChange {
	if !e.state.ClaimsDevices(p) {
		return nil
	}
	keepers := e.keepersBeside(p, n)
	if keepers == nil {
		return nil
	}
	mark := e.state.Mark()
	for _, x := range keepers {
		e.PlaceNominated(x, n)
	}
	e.state.PlaceAt(p, n)
	changes := e.assume(p, n)
	e.state.Rollback(mark)
	devices := false
	for i := range changes {
		c := &changes[i]
		if c.New == nil || c.Old != e.state.Object(c.Kind(), c.New.GetNamespace(), c.New.GetName()) {
			return nil
		}
		devices = devices || c.Kind() == cluster.ResourceClaimKind
	}
	if !devices {
		return nil
	}
	return changes
}

// keepersBeside returns the nominated pods of a node that keep what a pod has to leave them, in the order in which
// they were nominated.
func (e *Engine) keepersBeside(p *cluster.Pod, n cluster.NodeIndex) (out []*cluster.Pod) {
	var admitting []cluster.HeadroomID
	for _, x := range e.state.Node(n).Nominated {
		if x.UID == p.UID || x.Priority < p.Priority || !e.Keeps(x) {
			continue
		}
		if x.StandsIn() {
			if admitting = e.state.Admitting(admitting[:0], p); slices.Contains(admitting, x.StandIn) {
				continue
			}
		}
		out = append(out, x)
	}
	e.state.SortNominated(out)
	return out
}
