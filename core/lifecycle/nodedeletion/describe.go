package nodedeletion

import (
	"time"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/step"
)

// This file describes how far nodes on their way out are, and why they go.

// Description is how far a node is on its way out at one moment, for people.
type Description struct {
	State string // as doc.go has them, of a draining node with how many pods are left
	Why   string // why it goes
	// Drains says that pods had to be evicted for it.
	Drains bool
	// Stays says that it was given up and stays: its taint is being taken off.
	Stays bool
	// Next is when it is looked at though nothing happens; zero for never.
	Next time.Time
}

// Describe returns how far a node is on its way out; ok is false when it isn't on it.
func (m *Machine) Describe(node string) (x Description, ok bool) {
	d := m.deletions[node]
	if d == nil {
		return Description{}, false
	}
	x = Description{State: d.state.String(), Why: d.why, Drains: d.drains(), Next: d.due(&m.cfg)}
	switch d.state.(type) {
	case untainting, untaintFailed:
		x.Stays = true
	}
	return x, true
}

// Counts returns how many nodes are on their way out, and how many of them with pods that had to
// be evicted: what MaxDeletions and MaxDrains bound. Nodes that the provider has deleted aren't
// among them.
func (m *Machine) Counts() (all, draining int) { return m.counts() }

// reason returns why a node goes, as Cluster Autoscaler counts it: being unready comes first.
func (d *deletion) reason(n *cluster.NodeInfo) step.RemovalReason {
	switch {
	case !n.Ready():
		return step.RemovedUnready
	case d.drains():
		return step.RemovedUnderutilized
	}
	return step.RemovedEmpty
}
