package nodegroups

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/autoscaler/nodegroup"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/lifecycle"
	"github.com/berthproject/berth/core/lifecycle/launching"
	"github.com/berthproject/berth/core/step"
)

// Config says how node groups are treated. Names are those of Cluster Autoscaler's
// flags; core.Autoscale has the defaults.
type Config struct {
	DelayAfterAdd     time.Duration // how long after an order a group doesn't shrink
	DelayAfterDelete  time.Duration // how long after the deletion of a node a group doesn't shrink further
	DelayAfterFailure time.Duration // how long after a failed deletion of a node a group doesn't shrink
	ClusterDelays     bool          // these delays concern all groups, not the one
	MaxProvisionTime  time.Duration // how long an instance may take to become a node, where its group has no time of its own
	// ForceDeleteUnregistered deletes instances that are late even from a group at its
	// minimum.
	ForceDeleteUnregistered bool
	// ReadOnly says that another autoscaler resizes the groups: no call to the provider is made and
	// no failure is reported, and a group's target is what the provider lists.
	ReadOnly       bool
	Limits         autoscaler.Limits
	Readiness      autoscaler.Readiness
	InitialBackoff time.Duration // how long a group isn't asked for nodes after a failure
	MaxBackoff     time.Duration // the longest such time, after more failures
	BackoffReset   time.Duration // how long after its last failure a group's backoff starts anew
}

// Deletions is what node groups need of the deletions of nodes.
type Deletions interface {
	// Planned returns how many nodes of a group are on their way out that its assumed
	// target still includes.
	Planned(group string) int
	// Unanswered returns how many nodes of a group its assumed target no longer
	// includes though the outcome of their deletion is open or in doubt.
	Unanswered(group string) int
	// EachOutOfState calls f with each node that the API has shown and that is kept out of
	// the state.
	EachOutOfState(f func(*cluster.NodeInfo))
}

// Launches is what node groups need of launch control.
type Launches interface {
	// Limits reports whether launches are limited.
	Limits() bool
	// Room returns how many more nodes of a group may be ordered.
	Room(now time.Time, group string, coming launching.Coming) int
	NodesOrdered(now time.Time, group string, nodes int)
	OrderRefused(group string, nodes int)
	// InstanceListed records an instance that isn't a node, or is in another group now; InstanceUnlisted
	// that it is no longer listed.
	InstanceListed(now time.Time, group, id, node string)
	InstanceUnlisted(id, node string)
	// ForgetGroup forgets what was learnt of a group that is gone.
	ForgetGroup(id string)
	// InstanceRegistered records that an instance of a group which wasn't a node is one.
	InstanceRegistered(group string)
	// LaunchFailed records that an instance failed or is late, and reports whether its group is to
	// back off.
	LaunchFailed(now time.Time, group, id, node string, coming launching.Coming) (backOff bool)
}

// Machine follows all node groups. Only the core's goroutine may call it.
type Machine struct {
	cfg       Config
	deletions Deletions
	launches  Launches
	known     bool   // the provider has told of its groups
	delays    delays // of all groups, with ClusterDelays
	groups    map[string]*group
	instances followed // not registered, or being deleted
	// coming is read through Coming only, which brings it up to date first.
	coming comingNodes
	// lists are what the provider listed last, by group, as long as the nodes are as they were
	// then, by what nodes has read of the journal.
	lists map[string]instanceList
	nodes cluster.Cursor
	// gone are the nodes whose instance the provider doesn't list, by group and name; a map within
	// isn't changed any more.
	gone map[string]map[string]bool
	// sights are how nodes were first seen, by name.
	sights map[string]sight
	// published are the nodes on which drivers publish devices, or have, with their groups.
	published map[string]string
	// lookedAt is when it was last looked which new nodes lack something (LookAtLaunched), by the API
	// server's time; zero for never.
	lookedAt time.Time
}

// group is what is remembered of a node group, also for a while when the provider doesn't list it.
type group struct {
	unlisted   time.Time // since when the lists don't have it; zero when the last had it
	unanswered int       // nodes ordered without a ScaleUpDone
	doubt      doubt     // orders that had no answer
	orders     []Growth  // these nodes, by order; without pods
	delays     delays    // without ClusterDelays
	// maxOrder is how many nodes one order may have, 0 for any number.
	maxOrder int
	backoffs backoffs
	newest   newest               // what new nodes look like
	devices  groupDevices         // and which devices they have
	missing  missing              // instances fewer than the target, as the provider said last
	listed   []nodegroup.Instance // with that
	asked    *Asked               // LastAsked
	failure  *Failure             // LastFailure
	tooLarge tooLarge             // of which an event was written
}

var _ lifecycle.Machine = (*Machine)(nil)

// New returns a machine that knows of no group yet.
func New(cfg Config, deletions Deletions, launches Launches) *Machine {
	return &Machine{
		cfg: cfg, deletions: deletions, launches: launches,
		groups: map[string]*group{},
		lists:  map[string]instanceList{},
		gone:   map[string]map[string]bool{},
		sights: map[string]sight{}, published: map[string]string{},
	}
}

// group returns what is remembered of a group; it begins to remember an unknown one.
func (m *Machine) group(id string) *group {
	g := m.groups[id]
	if g == nil {
		g = &group{}
		m.groups[id] = g
	}
	return g
}

// Known reports whether the provider has told of its groups yet: before that nothing is
// planned or deleted.
func (m *Machine) Known() bool { return m.known }

// Growth is by how much a group grows with an order.
type Growth struct {
	Group         string
	From, To, Max int
	// Bins are the pods that wait still, by the node that is ordered for them: one for
	// each node, none when the group is to reach its minimum.
	Bins [][]types.UID
	// Without are the proposal's pods for which no node is ordered now: fewer are than were
	// proposed. Nil for none.
	Without map[types.UID]bool
}

// String writes the growth as Cluster Autoscaler does in events.
func (g Growth) String() string {
	return fmt.Sprintf("%s %d->%d (max: %d)", g.Group, g.From, g.To, g.Max)
}

// CommitScaleUp orders what a plan proposes for a group, as far as the pods that it was
// made for still wait and the group may still grow. It returns by how much the group
// grows; ok is false when nothing is ordered.
func (m *Machine) CommitScaleUp(t *lifecycle.Turn, up *autoscaler.ScaleUp, waits func(types.UID) bool) (growth Growth, ok bool) {
	in := t.State.Group(up.Group)
	g := m.group(up.Group)
	if in == nil || g.backoffs.active(t.Now) {
		return Growth{}, false
	}
	nodes, bins := up.Nodes, [][]types.UID(nil)
	if len(up.Pods) > 0 {
		bins = stillWaiting(up.Bins, waits)
		nodes = len(bins)
	}
	if nodes = min(nodes, m.room(t, in, g)); nodes <= 0 {
		return Growth{}, false
	}
	waiting := 0
	for _, uid := range up.Pods {
		if waits(uid) {
			waiting++
		}
	}
	growth = Growth{Group: in.ID, From: in.Target, To: in.Target + nodes, Max: in.Max}
	if bins != nil {
		growth.Bins = bins[:nodes]
		growth.Without = withoutNode(bins[nodes:])
	}
	why := fmt.Sprintf("for %d pending pod(s); %d->%d (max: %d), %.0f %% of cpu and memory unused", waiting, growth.From, growth.To, growth.Max, 50*up.Wasted)
	if up.Replaces > 0 {
		why = fmt.Sprintf("to replace %d node(s); %d->%d (max: %d)", up.Replaces, growth.From, growth.To, growth.Max)
	} else if mix := up.Mix; mix != nil {
		why += "; " + mix.String()
	}
	t.Decide(step.Decision{Kind: step.ScaledUp, Group: in.ID, Nodes: nodes, Reason: why, Choice: up.Choice})
	g.asked = &Asked{Growth: growth, At: t.Now, Pods: waiting, Wanted: up.Nodes, Choice: up.Choice}
	g.unanswered += nodes
	g.orders = append(g.orders, Growth{Group: growth.Group, From: growth.From, To: growth.To, Max: growth.Max})
	if up.Replaces == 0 { // a consolidation's order says nothing of what pods need
		m.delaysOf(in.ID).grew = event{t.Now, in.ID}
	}
	m.launches.NodesOrdered(t.Now, in.ID, nodes)
	m.Retarget(t, in.ID, nodes)
	t.Ready.ScaleUps = append(t.Ready.ScaleUps, step.ScaleUp{Group: in.ID, Nodes: nodes, GPU: gpuOf(t.State, in.ID)})
	t.Emit(step.StatusEvent(in.ID, "ScaledUpGroup", scalingUp, fmt.Sprintf("Scale-up: setting group %s size to %d instead of %d (max: %d)", in.ID, growth.To, growth.From, growth.Max)))
	return growth, true
}

// room returns how many more nodes may be ordered of a group that doesn't back off.
func (m *Machine) room(t *lifecycle.Turn, in *cluster.NodeGroup, g *group) int {
	// A deletion may fail: until its outcome is known the node counts as there.
	nodes := in.Max - in.Target - m.deletions.Unanswered(in.ID) - g.doubt.mayCome()
	if m.launches.Limits() {
		nodes = min(nodes, m.launches.Room(t.Now, in.ID, m.Coming(t)))
	}
	if g.maxOrder > 0 {
		nodes = min(nodes, g.maxOrder)
	}
	return nodes
}

// HasRoom reports whether all that is proposed can be ordered in full.
func (m *Machine) HasRoom(t *lifecycle.Turn, ups []autoscaler.ScaleUp) bool {
	nodes := map[string]int{}
	for i := range ups {
		nodes[ups[i].Group] += ups[i].Nodes
		in, g := t.State.Group(ups[i].Group), m.group(ups[i].Group)
		if in == nil || g.backoffs.active(t.Now) || m.room(t, in, g) < nodes[in.ID] {
			return false
		}
	}
	return true
}

// ScaleUpDone takes the outcome of an order. An order that the provider has refused for want
// of resources is taken back, and ScaleUpDone returns outOfStock: other groups may have what
// its pods need. Any other failure leaves open whether nodes come: the target includes them
// until the provider's next list, or nodes would be bought twice, and beyond the maximum. An order
// that had no answer is settled by that list.
func (m *Machine) ScaleUpDone(t *lifecycle.Turn, in step.ScaleUpDone) (outOfStock bool) {
	g := m.group(in.Group)
	g.unanswered -= in.Nodes
	order, _ := g.answered(in.Nodes)
	switch {
	case in.Unknown:
		g.doubt.add(unansweredOrder{Growth: order, nodes: in.Nodes, why: in.Err.Error()})
		if t.State.Group(in.Group) == nil {
			g.doubt.groupGone(t.Now)
		}
		return false
	case in.Err == nil:
		m.orderTaken(t, in.Group, order, in.Nodes)
		return false
	}
	m.orderFailed(t, in.Group, in.Nodes, in.Class, in.Err.Error())
	outOfStock = in.Class == nodegroup.OutOfResources
	if outOfStock {
		m.Retarget(t, in.Group, -in.Nodes)
	}
	return outOfStock
}

// orderTaken records that the provider took an order, which is the zero Growth when this process
// doesn't know it.
func (m *Machine) orderTaken(t *lifecycle.Turn, id string, order Growth, nodes int) {
	g := m.group(id)
	g.doubt.inRow = 0
	if order.Group != "" {
		t.Emit(step.StatusEvent(id, "ScaledUpGroup", scalingUp, fmt.Sprintf("Scale-up: group %s size set to %d instead of %d (max: %d)", id, order.To, order.From, order.Max)))
	}
	switch {
	case g.maxOrder > nodes:
		g.maxOrder = 0 // the order was as large as it was wanted, and came through
	case g.maxOrder > 0:
		g.maxOrder *= 2
	}
}

// orderFailed records that an order failed, and lets its group back off.
func (m *Machine) orderFailed(t *lifecycle.Turn, id string, nodes int, class nodegroup.ErrorClass, why string) {
	g := m.group(id)
	m.launches.OrderRefused(id, nodes)
	g.maxOrder = max(nodes/2, 1)
	t.Decide(step.Decision{Kind: step.ScaleUpFailed, Group: id, Nodes: nodes, Reason: why})
	g.failure = &Failure{At: t.Now, Nodes: nodes, Why: why}
	m.backOff(t, id, class, nodegroup.CodeRefused, why)
	failed(t, id, nodes, nodegroup.CodeRefused, why)
	t.Emit(step.StatusEvent(id, "FailedToScaleUpGroup", scalingUp, fmt.Sprintf("Scale-up failed for group %s: %s", id, why)).AsWarning())
}

// Cancel gives up nodes of a group that are coming and that nobody needs, as far as that
// can be done: those first for which there is no instance yet, then the instances that came
// last and aren't nodes. It returns how many. While the outcome of an order is open nothing
// is given up, and never what the group's minimum wants.
func (m *Machine) Cancel(t *lifecycle.Turn, id string, nodes int) int {
	in, g := t.State.Group(id), m.group(id)
	if in == nil || g.unanswered != 0 || g.doubt.nodes() != 0 {
		return 0
	}
	nodes = min(nodes, m.aboveMinimum(in))
	const why = "no pod needs them any longer"
	target := max(min(nodes, g.missing.nodes()), 0)
	if target > 0 {
		g.missing.forget(target)
		t.Decide(step.Decision{Kind: step.OrderCancelled, Group: id, Nodes: target, Reason: why})
		t.Ready.TargetDecreases = append(t.Ready.TargetDecreases, step.TargetDecrease{Group: id, Nodes: target})
		m.Retarget(t, id, -target)
	}
	cancelled := target
	for _, i := range m.comingLast(t.State, id) {
		if cancelled >= nodes || in.KeepNodes != "" { // as in watchInstance
			break
		}
		cancelled++
		x := m.instances.get(i)
		m.instances.become(x, deleting)
		x.reason = step.InstanceCancelled
		t.Decide(step.Decision{Kind: step.OrderCancelled, Node: x.node, Group: id, Nodes: 1, Reason: i + ": " + why})
		t.Ready.NodeDeletions = append(t.Ready.NodeDeletions, step.NodeDeletion{Group: id, Node: x.node, Instance: i, Reason: step.InstanceCancelled})
	}
	return cancelled
}

// fail lets a group back off because of its instances, unless it does already for failures
// of the class.
func (m *Machine) fail(t *lifecycle.Turn, id string, class nodegroup.ErrorClass, code, why string) {
	if m.group(id).backoffs[class].active(t.Now) {
		return
	}
	t.Decide(step.Decision{Kind: step.ScaleUpFailed, Group: id, Reason: why})
	m.group(id).failure = &Failure{At: t.Now, Why: why}
	m.backOff(t, id, class, code, why)
}

func (m *Machine) backOff(t *lifecycle.Turn, id string, class nodegroup.ErrorClass, code, why string) {
	m.group(id).backoffs[class].fail(&m.cfg, t.Now, code, why)
}

// stillWaiting returns the bins with the pods that wait still, without those that have none.
func stillWaiting(bins [][]types.UID, waits func(types.UID) bool) [][]types.UID {
	var out [][]types.UID
	for _, bin := range bins {
		bin = slices.DeleteFunc(slices.Clone(bin), func(uid types.UID) bool { return !waits(uid) })
		if len(bin) > 0 {
			out = append(out, bin)
		}
	}
	return out
}

// Conditions returns, by group, what a plan needs to know beside the state: which groups
// back off now, and how many of their instances nobody waits for.
func (m *Machine) Conditions(now time.Time) map[string]autoscaler.GroupCondition {
	out := map[string]autoscaler.GroupCondition{}
	for id := range m.groups {
		out[id] = m.condition(now, id)
	}
	return out
}

// condition returns what Conditions does, of one group.
func (m *Machine) condition(now time.Time, id string) autoscaler.GroupCondition {
	out := autoscaler.GroupCondition{
		LongUnregistered: m.instances.count(id, late),
		Deleting:         m.instances.count(id, deleting, inDoubt, unanswered),
		Gone:             m.gone[id],
	}
	if g := m.groups[id]; g != nil {
		out.BackingOff, out.Newest, out.Devices = g.backoffs.active(now), g.newest.model, g.devices.listed
	}
	return out
}

// Advance does nothing: node groups change with inputs only. That a backoff or a delay
// is over is noticed by who asks.
func (m *Machine) Advance(*lifecycle.Turn) {}

// NextWake returns zero.
func (m *Machine) NextWake() time.Time { return time.Time{} }

// Unsettled names the groups with an order that has no outcome.
func (m *Machine) Unsettled() []string {
	var out []string
	for _, id := range slices.Sorted(maps.Keys(m.groups)) {
		if n := m.groups[id].unanswered; n != 0 {
			out = append(out, fmt.Sprintf("%d nodes of group %s are ordered without an outcome", n, id))
		}
		if n := m.groups[id].doubt.nodes(); n != 0 {
			out = append(out, fmt.Sprintf("%d nodes of group %s are ordered without an answer", n, id))
		}
	}
	return out
}

// Invariants checks the numbers of groups and orders.
func (m *Machine) Invariants() []string {
	out := m.instances.invariants()
	for _, id := range slices.Sorted(maps.Keys(m.groups)) {
		if g := m.groups[id]; g.unanswered < 0 || g.maxOrder < 0 {
			out = append(out, fmt.Sprintf("node group %s: %d nodes are ordered without an outcome, and an order may have %d; neither can be negative", id, g.unanswered, g.maxOrder))
		}
	}
	return out
}
