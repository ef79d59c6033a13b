package explain

// This file sums up where the autoscaler stands, with the counts and the conditions that
// Cluster Autoscaler has in its status ConfigMap and its metrics.

import (
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/autoscaler/scaleup"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/lifecycle/launching"
	"github.com/berthproject/berth/core/lifecycle/nodegroups"
)

// LaunchWindows are how many nodes of the cluster, or of a group, may be launching and pulling at a
// time.
type LaunchWindows = launching.Windows

// ScalingStatus is where the autoscaler stands.
type ScalingStatus struct {
	Known bool // the provider has told of its groups
	// Limits are the flags', for people who compare Cores, Memory and Nodes with them.
	Limits autoscaler.Limits
	// Sick says why the size of the cluster isn't changed, "" when it may be.
	Sick   string
	Nodes  NodeCounts // of the whole cluster, nodes of no group included
	Groups []GroupStatus
	// Candidates is how many nodes could be removed, by the plan of the time Planned; zero
	// before the first.
	Candidates int
	Planned    time.Time
	// Cores and Memory are the capacity of all nodes except those on their way out, in whole
	// cores and in bytes. Cluster Autoscaler compares the same sums with --cores-total and
	// --memory-total.
	Cores, Memory int64
	// Taints counts the taints of all nodes by type (Readiness.TaintType), as the metric
	// node_taints_count does.
	Taints map[string]int
	// Launches are how many nodes may be launching at a time: of the cluster first, then of
	// each group; those without a limit are left out.
	Launches []LaunchWindows
	// Unschedulable are the pods that were tried and found no node, Untried those that are still
	// to be tried a first time.
	Unschedulable, Untried int
}

// GroupStatus is how a node group stands.
type GroupStatus struct {
	// The embedded NodeGroup is a copy: its sizes are those that the core assumes, orders and
	// deletions without an answer included.
	cluster.NodeGroup
	NodeCounts
	Candidates int // nodes that could be removed
	Coming     int // nodes that were ordered and aren't usable
	// Healthy says that no more nodes are missing or unready, beside those that are coming,
	// than --ok-total-unready-count and --max-total-unready-percentage allow.
	Healthy bool
	Backoff *nodegroups.Backoff // nil when the group may be asked for nodes
}

// NodeCounts are nodes by where they stand, as Cluster Autoscaler counts them. Ready, NotStarted,
// Unready, Suspended and Deleted make up Registered.
type NodeCounts struct {
	// Registered includes nodes on their way out, until the API no longer shows them.
	Registered int // shown by the API
	Ready      int // take pods as their template says
	NotStarted int // aren't ready, and are younger than --max-node-startup-time
	Unready    int // aren't ready, and are older
	// ResourceUnready are those of Unready that are ready but for a resource of their template.
	ResourceUnready int
	Suspended       int // have the condition Suspended
	Deleted         int // the provider was asked to delete them
	// Unregistered are nodes that were ordered and that the API doesn't show;
	// LongUnregistered are instances that nobody waits for any more.
	Unregistered, LongUnregistered int

	// Leaving are the registered nodes on their way out, from the taint on, and LeavingReady
	// those of Ready among them. Cluster Autoscaler doesn't count these.
	Leaving, LeavingReady int
}

// suspended is the condition of a node whose instance is suspended, in Cluster Autoscaler's words.
const suspended v1.NodeConditionType = "Suspended"

// Groups returns how the node groups stand, by ID.
func (v *View) Groups() []GroupStatus { return v.ScalingStatus().Groups }

// ScalingStatus returns where the autoscaler stands, in O(nodes); nearly nothing when Berth only
// schedules.
func (v *View) ScalingStatus() ScalingStatus {
	if v.Autoscaler == nil {
		return ScalingStatus{}
	}
	s := ScalingStatus{Known: v.Autoscaler.Groups.Known(), Limits: v.Autoscaler.Limits, Taints: map[string]int{}}
	s.Planned, _ = v.NodesPlanned()
	conditions := v.Autoscaler.Groups.Conditions(v.Now())
	coming := scaleup.Survey(v.State, conditions, &v.Autoscaler.Readiness, v.ServerNow())
	s.Sick = scaleup.Sick(v.State, &autoscaler.Request{Limits: v.Autoscaler.Limits, Readiness: v.Autoscaler.Readiness, Conditions: conditions, ServerNow: v.ServerNow()})
	at := map[string]int{}
	var ids []string
	for i, g := range v.State.Groups() {
		at[g.ID], ids = i, append(ids, g.ID)
		of, in := conditions[g.ID], coming[g.ID]
		counts := NodeCounts{Unregistered: in.Unregistered, LongUnregistered: of.LongUnregistered + of.Deleting}
		s.Groups = append(s.Groups, GroupStatus{NodeGroup: *g, NodeCounts: counts, Coming: in.Nodes(), Backoff: v.Autoscaler.Groups.BackingOff(v.Now(), g.ID)})
		s.Nodes.Unregistered += counts.Unregistered
		s.Nodes.LongUnregistered += counts.LongUnregistered
	}
	v.Autoscaler.Deletions.EachAsked(func(group string) {
		s.Nodes.deleted()
		if i, ok := at[group]; ok {
			s.Groups[i].deleted()
		}
	})
	v.State.Nodes(func(n *cluster.Node) {
		s.addResources(n, &v.Autoscaler.Readiness)
		s.Nodes.add(v, n)
		if i, ok := at[n.Group]; ok {
			s.Groups[i].add(v, n)
		}
	})
	v.countCandidates(&s, at)
	s.Launches = v.Autoscaler.Launches.Windows(ids)
	s.Unschedulable, s.Untried = v.Queue.Pending(func(p *cluster.Pod) bool { return !p.StandsIn() })
	for i := range s.Groups {
		s.Groups[i].Healthy = s.Groups[i].healthy(&v.Autoscaler.Limits)
	}
	return s
}

// deleted counts a node that is out of the state and that the API shows still.
func (x *NodeCounts) deleted() {
	x.Registered++
	x.Deleted++
	x.Leaving++
}

// add counts a node of the state. A node that is tainted for its removal is counted by its
// readiness like any other: the group's target still includes it.
func (x *NodeCounts) add(v *View, n *cluster.Node) {
	readiness, leaving := &v.Autoscaler.Readiness, n.HasTaint(autoscaler.ToBeDeletedTaint)
	x.Registered++
	if leaving {
		x.Leaving++
	}
	switch {
	case isSuspended(n.Object):
		x.Suspended++
	case readiness.Usable(n.NodeInfo, v.State.Template(n.Group)):
		x.Ready++
		if leaving {
			x.LeavingReady++
		}
	case !readiness.Late(n.NodeInfo, v.State.Group(n.Group), v.ServerNow()):
		x.NotStarted++
	default:
		x.Unready++
		if n.Ready() && readiness.Usable(n.NodeInfo, nil) {
			x.ResourceUnready++
		}
	}
}

func isSuspended(n *v1.Node) bool {
	return slices.ContainsFunc(n.Status.Conditions, func(c v1.NodeCondition) bool { return c.Type == suspended && c.Status == v1.ConditionTrue })
}

// addResources adds what a node has, and counts its taints.
func (s *ScalingStatus) addResources(n *cluster.Node, readiness *autoscaler.Readiness) {
	for _, t := range n.Object.Spec.Taints {
		s.Taints[readiness.TaintType(t)]++
	}
	if !n.HasTaint(autoscaler.ToBeDeletedTaint) {
		s.Cores += n.Object.Status.Capacity.Cpu().Value()
		s.Memory += n.Object.Status.Capacity.Memory().Value()
	}
}

// countCandidates counts the nodes that could be removed and aren't on their way out.
func (v *View) countCandidates(s *ScalingStatus, at map[string]int) {
	v.Autoscaler.Candidates.Each(func(node string) {
		n := v.State.NodeByName(node)
		if n == nil || n.HasTaint(autoscaler.ToBeDeletedTaint) {
			return
		}
		s.Candidates++
		if i, ok := at[n.Group]; ok {
			s.Groups[i].Candidates++
		}
	})
}

// healthy reports whether few enough nodes of a group are missing or unready, as Cluster
// Autoscaler's IsNodeGroupHealthy (clusterstate). Neither coming nodes nor long unregistered
// instances count as missing. An unready node does, as it does there.
func (g *GroupStatus) healthy(limits *autoscaler.Limits) bool {
	missing := g.Target - g.LongUnregistered - g.Coming - g.Ready - g.Suspended
	all := g.Ready + g.Unready + g.NotStarted + g.Suspended
	return missing <= limits.OKTotalUnready || float64(missing) <= limits.MaxTotalUnready/100*float64(all)
}
