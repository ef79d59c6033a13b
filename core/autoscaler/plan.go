// Package autoscaler has what the core and the planner say to each other: the request of
// a plan, and the plan. Planning runs on a follower of the state, so that it delays no
// placement; the core checks each action of a plan against what has changed since.
package autoscaler

import (
	"fmt"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/devices"
)

// ToBeDeletedTaint marks a node that is being removed. Its value is the unix
// time in seconds at which that began.
const ToBeDeletedTaint = "ToBeDeletedByClusterAutoscaler"

// Request is what a plan is made for. The core makes it at the end of a Step; whatever of
// it isn't in the cluster's state is as of then.
type Request struct {
	// Number tells requests of one core apart; the first is 1.
	Number uint64
	// Now is the core's time. Terms that a process began itself are measured by it.
	Now time.Time
	// ServerNow is the API server's time, by which objects are created, as far as it is
	// known (lifecycle.Turn).
	ServerNow time.Time
	Pending   []*cluster.Pod // pods that were tried and found no node, in order
	// Whole are further pods, for all of which nodes are to be bought, or for none.
	Whole []*cluster.Pod
	// Limits, Readiness and Balancing are from the flags, and the same in every request but for
	// Limits.MaxNodesLaunching.
	Limits    Limits
	Readiness Readiness
	Balancing Balancing
	// Gangs are the pod groups that were tried and found too few nodes, in the order of scheduling.
	// Their members aren't in Pending.
	Gangs []Gang
	// Places are the ordered nodes by the pods that they are for and that wait still, those
	// ordered first in front. Each of these pods is pending, or a member of a gang.
	Places []Place
	// Spare is how many nodes of each group were ordered for pods that need them no more,
	// and aren't registered; groups without any have no entry.
	Spare map[string]int
	// NotFor are pending pods for which no node is bought, though they may have room on one
	// that is coming: if they haven't, others leave a node for them.
	NotFor map[types.UID]bool
	// Recallable are nodes on their way out that could stay, those that are rather to stay in
	// front.
	Recallable []Recallable
	// ScaleDown asks for nodes that could be removed; nil when none is to be.
	ScaleDown *ScaleDown
	// Conditions are by the ID of the node group; a group without an entry is as the
	// cluster's state has it.
	Conditions map[string]GroupCondition
}

// GroupCondition is what the autoscaler knows of a node group at one moment beside what
// the provider says. It isn't in the cluster's state, since it changes with time alone.
type GroupCondition struct {
	// BackingOff says that a scale-up failed lately, so none is tried.
	BackingOff bool
	// Newest is the node of the group, as it was last usable, that was created last, also
	// when it is gone, without taints that are its own: what new nodes look like. Nil while
	// none was usable.
	Newest *cluster.NodeInfo
	// LongUnregistered is how many instances that the target includes have had their
	// time to become nodes and are kept by the group's minimum: nobody waits for them.
	LongUnregistered int
	// Deleting is how many instances that the target includes, and that aren't nodes, are
	// being deleted: nobody waits for these either.
	Deleting int
	// Gone are nodes of the group, by name, whose instance the provider doesn't list, though it
	// lists the group's instances; nil for none. Nobody changes the map.
	Gone map[string]bool
	// MaxLaunching is how many nodes of the group may be coming at a time; 0 for no limit.
	MaxLaunching int
	// Devices are those that nodes of the group have shown, by driver; nil for none. Nobody changes
	// the list.
	Devices []SeenDevices
}

// SeenDevices is what a driver has published on the newest ready node of a group that it has published
// anything on.
type SeenDevices struct {
	*devices.Published
	// Live reports that some node of the group has it published now.
	Live bool
}

// Lost reports whether a node of the group isn't ready and its instance is gone: another replaces it,
// and it counts nowhere. A node that is ready has an instance, whatever the list says.
func (c GroupCondition) Lost(n *cluster.NodeInfo) bool { return c.Gone[n.Name] && !n.Ready() }

// Place is an ordered node by the pods that it is for: they have its room before others.
type Place struct {
	// Group has the node, or will. Pods is never empty: a place without pods ends.
	Group string
	Node  string // "" while the node isn't registered
	Pods  []types.UID
}

// Join is room on a coming node for pods that it wasn't ordered for.
type Join struct {
	Group string
	Node  string    // "" while the node isn't registered
	With  types.UID // a pod for which a place on the node is kept already; "" when none is
	// Pods are in the order in which they were placed on the node.
	Pods []types.UID
	// Gang is the pod group that the pods are members of, if they join for a GangPlan.
	Gang string
}

// Limits bound what plans may propose.
type Limits struct {
	MaxNodesTotal      int // of the cluster, with those that are coming; 0 for no limit
	MaxNodesPerScaleUp int // per group and plan; 0 for no limit
	MaxNodesLaunching  int // of the cluster, coming at a time, as of the request; 0 for no limit
	// Totals bound what all nodes of the cluster have together, those that are coming
	// included (--cores-total, --memory-total, --gpu-total). At most one per resource.
	Totals []Total
	// MaxTotalUnready and OKTotalUnready say when a cluster is too sick to be resized:
	// when more than OKTotalUnready nodes, and more than this percentage of all, aren't
	// ready (--max-total-unready-percentage, --ok-total-unready-count).
	MaxTotalUnready float64
	// Both must be exceeded. That is Cluster Autoscaler's rule (clusterstate.IsClusterHealthy).
	OKTotalUnready int
	// EnforceMinSize has groups grow to their minimum, whether or not pods need it
	// (--enforce-node-group-min-size).
	EnforceMinSize bool
}

// Total bounds one resource of the whole cluster.
type Total struct {
	// Resource is cpu, memory, or the resource of a GPU.
	Resource v1.ResourceName
	Min, Max int64 // in cores, bytes, or units
}

// Plan is what the planner proposes. By the time that it comes back the cluster has
// changed: the core checks each action against the state as it then is.
type Plan struct {
	Request uint64    // number of the request that it answers
	Now     time.Time // of the request
	// At is the position of the follower that planned. It needs no epoch: a follower
	// never reads past an open mark, so no rollback takes back what it has read.
	At cluster.Seq
	// Recalls are nodes of Request.Recallable that pending pods need: otherwise nodes would be bought
	// for these.
	Recalls []Recall
	// ScaleUps are in the order in which they were chosen. Each assumes that those before it are
	// ordered.
	ScaleUps []ScaleUp
	// NoHelp has the pending pods that no purchase helps, by class, except for the unplanned ones.
	NoHelp []NoHelp
	// Removals are the nodes that could be removed, all of them together, in the order in
	// which they were found. Kept are the others, by name.
	Removals []*Removal
	Kept     []Kept
	// Consolidation are nodes that could go together once others are bought; nil for none.
	Consolidation *Consolidation
	// Answers are those of expanders that read more than the state: Round.Answers. They
	// are for replays.
	Answers [][]string
	// Sick says why the size of the cluster isn't changed at all, "" when it may be.
	Sick string
	// Covered is how many pending pods fit on nodes that exist or are coming, recalled ones
	// included.
	Covered int
	// Fitting are those of them that fit on nodes as they are: they will be there soon, so their
	// room isn't given up.
	Fitting []Fitting
	// Joins are the coming nodes with those of these pods that are on them and have no place
	// there yet, by group; the starting nodes of a group before those that aren't registered.
	Joins []Join
	// Gangs are what the plan has for each of Request.Gangs that it has come to, in the order in which
	// they were tried.
	Gangs []GangPlan
	// Unneeded are groups of Request.Spare, or with places of gangs that were planned anew, sorted,
	// with the number of nodes that are coming, aren't registered, and are of no use to any pending
	// pod: no more than there are of these.
	Unneeded []GroupNodes
	// Whole says that the plan has a place for all of Request.Whole. When it is false, none
	// of them is in the plan.
	Whole bool
	// Unplanned is how many pending pods the plan hasn't come to since it had taken long
	// enough, 0 for a plan that is complete.
	Unplanned int
	// Packed are the groups that pending pods were packed on, in order, again for each node
	// group that was chosen. They are for metrics.
	Packed []Packing
	// Cuts are the questions to the stopwatch that were answered with yes. They are for
	// replays.
	Cuts []int
}

// Packing is one packing of pending pods on nodes of a group.
type Packing struct {
	Group      string
	Classes    int // of the pods
	Namespaces int // of the pods
}

// Fitting is a pending pod that fits on a node as it is.
type Fitting struct {
	Pod *cluster.Pod
	// Node is a name and no index: the core's state may have another node at that index by now.
	Node string
}

// Recallable is a node on its way out that could stay.
type Recallable struct {
	Node string
	// Stays makes the node as it is when it stays. Any goroutine may call it, at any time.
	Stays func() *cluster.NodeInfo `json:"-"`
}

// Recall is a node on its way out that is to stay, with the pending pods that fit on it then.
type Recall struct {
	// Node is one of Request.Recallable. No pod of Pods is in another recall.
	Node string
	Pods []types.UID
}

// NewPlan returns a plan that answers a request with nothing to do.
func NewPlan(req *Request, at cluster.Seq) *Plan {
	return &Plan{Request: req.Number, Now: req.Now, At: at}
}

// GroupNodes is a number of nodes of a group.
type GroupNodes struct {
	Group string
	Nodes int
}

// ScaleUp proposes more nodes of a group.
type ScaleUp struct {
	Group string
	// Nodes is how many nodes are added, not the new target. The core may order fewer, when limits
	// or pods have changed since the request.
	Nodes int
	// Wasted is the share of the nodes' CPU plus that of their memory which the pods
	// leave unused: 0 to 2.
	Wasted float64
	// Mix is what the nodes were chosen in, by the cost expander; nil by any other.
	Mix *Mix
	// Choice is how the group was chosen.
	Choice *Choice
	// Pods are those that need nothing else once there are the nodes; none when the group
	// is to reach its minimum.
	Pods []types.UID
	// Bins has for each of the nodes the pods that it is for. Pods that are in no bin have
	// a place on other nodes when the pods in bins have theirs.
	Bins [][]types.UID
	// Replaces is how many nodes go once these are there, of a consolidation; otherwise 0.
	Replaces int
	// Gang is the pod group that the nodes are bought for, as namespace/name: all of its scale-ups
	// are ordered in full, or none is. "" for nodes that are of use one by one.
	Gang string
}

// Mix is a purchase of nodes of several groups together, and how good it is.
type Mix struct {
	Price      float64 // an hour, of all its nodes
	LowerBound float64 // proved: what any purchase for these pods costs at least, an hour; 0 if that isn't known
}

// String describes the purchase that a group's nodes are a part of.
func (m *Mix) String() string {
	s := fmt.Sprintf("part of a purchase of $%.2f/h", m.Price)
	if m.LowerBound > 0 {
		s += fmt.Sprintf(", lower bound $%.2f/h", m.LowerBound)
	}
	return s
}

// NoHelp says why no group would help pods of one class.
type NoHelp struct {
	// Pods are in the order of Request.Pending.
	Pods    []types.UID
	Reasons []string // "COUNT reason": how many groups give it; sorted
	// Later says that the next plan may help: a group takes such pods which may not grow in this plan, since
	// nodes are launching or one scale-up has as many as it may; or it tries domains that this one didn't.
	Later bool
}

// CountReasons returns what NoHelp.Reasons is of the reasons that groups give, by how many
// give each.
func CountReasons(counts map[string]int) []string {
	out := make([]string, 0, len(counts))
	for reason, n := range counts {
		out = append(out, fmt.Sprintf("%d %s", n, reason))
	}
	slices.Sort(out)
	return out
}
