package scaleup

import (
	"time"

	storagev1 "k8s.io/api/storage/v1"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/devices"
)

// This file says what new nodes are promised to have or to lose, and which nodes aren't there yet. A
// node may be ready before all of that is kept:
//
//	promised to a new node               by                                              kept when
//	startup taints go                    --startup-taint, prefixes of their keys         the node has none
//	an extended resource                 the template of its group                       the node's allocatable has some
//	a CSI driver that is demanded        other nodes of its group, or the template       its CSINode names the driver
//	(drivers.go; Readiness.Parts)
//	devices                              other nodes of its group, those before, or     the driver has published whole pools
//	(devices.go; Readiness.Parts)        what is declared
//
// Pods that need what is promised are planned on the node as it will be. It counts as coming
// (Coming.Starting) for the start-up time of its group, and nothing is bought in its place. After that
// it counts as a launch that has failed (Launched) unless pods use it as it is, and its group backs off:
// otherwise a node that will lack the same would be bought after each start-up time.

// promises are what new nodes of each group will have besides what is in the template's Node object.
type promises struct {
	state     *cluster.State
	readiness *autoscaler.Readiness
	serverNow time.Time
	drivers   map[string][]storagev1.CSINodeDriver // by the group's ID; nil when none is demanded
	devices   map[string][]*devices.Published      // by the group's ID, and then by driver; nil when no pod may get any
}

// newPromises finds what is promised, in O(groups + new nodes + nodes that aren't ready).
func newPromises(s *cluster.State, conditions map[string]autoscaler.GroupCondition, readiness *autoscaler.Readiness, serverNow time.Time) promises {
	p := promises{state: s, readiness: readiness, serverNow: serverNow}
	if readiness.Parts.Has(cluster.CSIDrivers) {
		p.drivers = p.promisedDrivers(s.DemandedDrivers())
	}
	if readiness.Parts.Has(cluster.Devices) && s.AnyDeviceClass() {
		p.devices = p.promisedDevices(conditions)
	}
	return p
}

// lack returns the promise that isn't kept on a node, for people, "" when all are.
func (p *promises) lack(n *cluster.Node) string {
	if why := p.readiness.Lack(n.NodeInfo, p.state.Template(n.Group)); why != "" {
		return why
	}
	return p.lackingPart(n)
}

// lackingPart returns which part a node lacks that it is promised beside its Node object, for people, ""
// when it has all.
func (p *promises) lackingPart(n *cluster.Node) string {
	if why := p.lackingDriver(n); why != "" {
		return why
	}
	return p.lackingDevices(n)
}

// late reports whether nobody waits for a node any more.
func (p *promises) late(n *cluster.Node) bool {
	return p.readiness.Late(n.NodeInfo, p.state.Group(n.Group), p.serverNow)
}

// starting reports whether a node is registered and waited for: it isn't usable yet, or lacks what it is
// promised.
func (p *promises) starting(n *cluster.Node) bool {
	return p.readiness.Starting(n.NodeInfo, p.state.Group(n.Group), p.serverNow) ||
		p.lackingPart(n) != "" && !n.HasTaint(autoscaler.ToBeDeletedTaint) && !p.late(n)
}

// Launches are what has become of the nodes of a group that were created lately.
type Launches struct {
	// Failed are the nodes that have become late since the last look, are ready, lack what they are
	// promised, and have no pod but those of DaemonSets, by index. A node with other pods is of use.
	Failed []FailedLaunch
	// Lacking is how many nodes lack something that are late, and Complete how many don't lack anything,
	// of those that were created in the two start-up times before the last look, or since.
	Lacking, Complete int
}

// FailedLaunch is a node that lacks what it is promised, and what that is.
type FailedLaunch struct {
	Node *cluster.Node
	Lack string
}

// Launched returns what has become of new nodes, by group, since the time of the last look: what was
// promised then counts, since the first late node of a group may show that it doesn't get a driver. Nodes
// that aren't ready, or are on their way out, don't count. It costs O(groups + new nodes + nodes that
// aren't ready).
func Launched(s *cluster.State, conditions map[string]autoscaler.GroupCondition, readiness *autoscaler.Readiness, last, serverNow time.Time) map[string]*Launches {
	var out map[string]*Launches // mostly none: this is asked in every scan
	before := newPromises(s, conditions, readiness, last)
	s.CreatedSince(last.Add(-2*longestStartup(s, readiness)), func(n *cluster.Node) {
		g := s.Group(n.Group)
		length, _ := readiness.StartupOf(g)
		if g == nil || !n.Ready() || n.HasTaint(autoscaler.ToBeDeletedTaint) || last.Sub(n.Object.CreationTimestamp.Time) > 2*length {
			return
		}
		of := out[g.ID]
		if of == nil {
			of = &Launches{}
			if out == nil {
				out = map[string]*Launches{}
			}
			out[g.ID] = of
		}
		switch lack := before.lack(n); {
		case lack == "":
			of.Complete++
		case readiness.Late(n.NodeInfo, g, serverNow):
			of.Lacking++
			if !before.late(n) && n.Workload == 0 {
				of.Failed = append(of.Failed, FailedLaunch{n, lack})
			}
		}
	})
	return out
}

// longestStartup returns the longest start-up time of any group.
func longestStartup(s *cluster.State, readiness *autoscaler.Readiness) time.Duration {
	longest := readiness.StartupTime
	s.EachGroup(func(g *cluster.NodeGroup) {
		length, _ := readiness.StartupOf(g)
		longest = max(longest, length)
	})
	return longest
}
