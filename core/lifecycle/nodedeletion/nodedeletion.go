package nodedeletion

// This file holds the machine: what becomes of a deletion as the API shows its node, its pods
// and its taint, and what others ask about it. begin.go begins deletions, takeover.go takes
// over those of another process, advance.go takes a tainted node to the call to the provider,
// and provider.go follows it from there. The states are in states.go, how nodes are marked in
// marking.go, and what must be true of both in invariants.go.

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/lifecycle"
	"github.com/berthproject/berth/core/lifecycle/draining"
	"github.com/berthproject/berth/core/step"
)

// untaintRetry is how long after a failure to take a taint off it is tried again.
const untaintRetry = 5 * time.Second

// bindTime is how long at most a node waits for pods that are being bound to it.
const bindTime = 10 * time.Second

// Config says when nodes are deleted, and how. Names are those of Cluster Autoscaler's
// flags; core.Autoscale has the defaults.
type Config struct {
	MaxDeletions          int           // deletions at a time, beyond which none begins
	MaxDrains             int           // of them, of nodes with pods to be evicted
	DeleteDelayAfterTaint time.Duration // from the taint to the first look
	KeepSchedulable       bool          // nodes aren't made unschedulable with the taint
	EvictDaemonPods       bool          // of empty nodes, unless a pod's annotation says otherwise
	KeepDaemonPods        bool          // of nodes that are drained, likewise
	Drain                 draining.Config
	Rules                 autoscaler.RemovalRules // which pods may go with their node
	DeletionDelayTimeout  time.Duration           // how long annotations keep a node
	DeletionBatchInterval time.Duration           // how long deletions of a group are gathered; 0: not
	// LeaveResumed leaves nodes alone whose deletion another process began: no node is to be
	// removed.
	LeaveResumed bool
}

// Candidates is what node deletions need of the candidates.
type Candidates interface {
	// Forget has a node be needed again, since its deletion has ended.
	Forget(node string)
	// DrainedInVain records that pods of a node may have been evicted and that it stays.
	DrainedInVain(node string, now time.Time)
}

// Homes is what node deletions need of what keeps room for evicted pods' replacements.
type Homes interface {
	// Reserve reserves room for the pods of a removal on their homes. It returns why not, ""
	// when it has all of it; otherwise it has reserved none.
	Reserve(t *lifecycle.Turn, r *autoscaler.Removal) (why string)
	// SuccessorRequested and PodEvicted are called for pods that may have no home.
	draining.Homes
	// ReleaseUnevicted gives up what is kept for the pods of a node that weren't evicted: the node
	// stays, or they have ended.
	ReleaseUnevicted(t *lifecycle.Turn, node string)
}

// Groups is what node deletions need of the node groups.
type Groups interface {
	// Known reports whether the provider has told of its groups yet.
	Known() bool
	// Retarget adds to the number of nodes that a group is assumed to have.
	Retarget(t *lifecycle.Turn, group string, delta int)
	// Lost reports whether a node isn't ready and its instance is gone: the provider's target of
	// its group doesn't include it any more.
	Lost(n *cluster.NodeInfo) bool
	// ScaledDown says that the provider was asked to delete a node of a group.
	ScaledDown(now time.Time, group string)
	// ScaleDownFailed says that a node of a group could not be deleted.
	ScaleDownFailed(now time.Time, group string)
	// ScaleDownDelayed reports whether a group grew, or a node of it could not be
	// deleted, too recently for its nodes to be deleted.
	ScaleDownDelayed(now time.Time, group string) bool
	// InstanceDeletion returns the group of an instance, by its provider ID, and how
	// far the deletion is that was asked for because it had not become a node;
	// NotCalled for any other instance. late says that a call for it had no answer, and
	// may still be carried out, whatever becomes of the next.
	InstanceDeletion(providerID string) (group string, state lifecycle.CallState, late bool)
}

// Interruptions is what node deletions need of the nodes that the cloud is about to take.
type Interruptions interface {
	// AsMarked returns a node that the API shows as the state has it: with a taint if the cloud is about
	// to take it.
	AsMarked(*cluster.NodeInfo) *cluster.NodeInfo
}

// Machine follows all nodes on their way out. Only the core's goroutine may call it.
type Machine struct {
	cfg        Config
	groups     Groups
	candidates Candidates
	homes      Homes
	// interruptions says how a node comes back into the state that was out of it.
	interruptions Interruptions
	// deletions are by node name; those whose node's name another node has got since are by
	// aside.
	deletions map[string]*deletion
	planned   map[string]int  // of deletions, by group (entries.go)
	gathering map[string]bool // groups of which nodes were batched in this Advance
	// others are nodes with the taint that are left alone, with their group if Berth marked
	// them.
	others map[string]string
	// homeless are the nodes that the last Begin left, since no room is kept for their pods,
	// with why; nil for none.
	homeless map[string]string
}

var _ lifecycle.Machine = (*Machine)(nil)

// New returns a machine that follows no node yet. Connect must be called before any
// other method.
func New(cfg Config) *Machine {
	return &Machine{cfg: cfg, deletions: map[string]*deletion{}, planned: map[string]int{}, gathering: map[string]bool{}, others: map[string]string{}}
}

// Connect sets the node groups, which in turn need this machine, the candidates, what keeps homes,
// and the nodes that the cloud is about to take.
func (m *Machine) Connect(groups Groups, candidates Candidates, homes Homes, interruptions Interruptions) {
	m.groups, m.candidates, m.homes, m.interruptions = groups, candidates, homes, interruptions
}

// NodeSet takes what the API shows of a node and returns how the state is to have it,
// nil for not at all: what was decided about a node holds until the API shows it.
func (m *Machine) NodeSet(t *lifecycle.Turn, info *cluster.NodeInfo) *cluster.NodeInfo {
	d := m.deletions[info.Name]
	if d != nil && d.ofAnotherInstance(info) {
		m.setAside(info.Name, d)
		d = nil
	}
	if d == nil {
		return m.firstSeen(t, info)
	}
	switch s := d.state.(type) {
	case deleting:
		s.node, s.gone = info, false
		d.state = s
		return nil
	case inDoubt:
		s.node, s.gone = info, false
		d.state = s
		return nil
	case unanswered:
		s.node, s.gone = info, false
		d.state = s
		return nil
	case deleted:
		s.shown = info
		d.state = s
		return nil
	case untainting, untaintFailed:
		return d.off(info)
	case resumed:
		if taintOf(info.Object) < 0 {
			m.drop(info.Name) // what was shown before was late
			return info
		}
	}
	d.changed = t.Now
	return d.on(info)
}

// firstSeen is NodeSet for a node that has no entry. It gets one if its instance is
// being deleted, or was, or if it carries the taint. A node that is in the state already
// has turned out to be alive, whatever was asked of the provider before.
func (m *Machine) firstSeen(t *lifecycle.Turn, info *cluster.NodeInfo) *cluster.NodeInfo {
	if t.State.NodeByName(info.Name) != nil {
		m.Resume(t, info)
		return info
	}
	var s state
	group, call, late := m.groups.InstanceDeletion(info.Object.Spec.ProviderID)
	c := called{node: info}
	if late {
		c.unanswered = 1
	}
	switch call {
	case lifecycle.NotCalled:
		m.Resume(t, info)
		return info
	case lifecycle.Called:
		s = deleting{c}
	case lifecycle.InDoubt:
		s = inDoubt{c}
	case lifecycle.Unanswered:
		s = unanswered{c, t.Now}
	case lifecycle.Done:
		s = deleted{since: t.Now, shown: info}
	}
	m.enter(info.Name, &deletion{group: group, marking: marking{taint: deletionTaint(t.Now)}, why: "its instance was removed",
		instance: info.Object.Spec.ProviderID, state: s})
	return nil
}

// NodeGone records that the API no longer shows a node.
func (m *Machine) NodeGone(t *lifecycle.Turn, name string) {
	delete(m.others, name)
	d := m.deletions[name]
	if d == nil {
		return
	}
	if !d.waitsWithoutNode() {
		m.drop(name)
		m.homes.ReleaseUnevicted(t, name)
		m.gather(t, d.group) // others of an atomic group wait for it no more
	}
}

// waitsWithoutNode records that the node is gone, and reports whether the deletion waits for the
// provider all the same: for its answer, or for what it lists.
func (d *deletion) waitsWithoutNode() bool {
	switch s := d.state.(type) {
	case deleting:
		s.gone = true
		d.state = s
	case inDoubt:
		s.gone = true
		d.state = s
	case unanswered:
		s.gone = true
		d.state = s
	default:
		return false
	}
	return true
}

// PodChanged records that a pod of a node has come, has changed or is gone.
func (m *Machine) PodChanged(t *lifecycle.Turn, node string) {
	if d := m.deletions[node]; d != nil {
		d.changed = t.Now
	}
}

// EvictionDone takes the outcome of an eviction.
func (m *Machine) EvictionDone(t *lifecycle.Turn, in step.EvictionDone) {
	if d := m.deletions[in.Node]; d != nil {
		if s, ok := d.state.(drainingPods); ok {
			s.EvictionDone(t, in)
			d.changed = t.Now
		}
	}
}

// SurgeDone takes the outcome of a surge.
func (m *Machine) SurgeDone(t *lifecycle.Turn, in step.SurgeDone) {
	if d := m.deletions[in.Node]; d != nil {
		if s, ok := d.state.(drainingPods); ok {
			s.SurgeDone(in)
			d.changed = t.Now
		}
	}
}

// TaintDone takes the outcome of putting a taint on, or of taking it off; of another taint it
// is of no interest, nor of one that is being taken off since.
func (m *Machine) TaintDone(t *lifecycle.Turn, in step.TaintDone) {
	d := m.deletions[in.Node]
	if d == nil || in.Key != autoscaler.ToBeDeletedTaint {
		return
	}
	switch _, puts := d.state.(tainting); {
	case puts && !in.Remove:
		if in.Err != nil {
			m.cancel(t, in.Node, d, fmt.Sprintf("the node could not be tainted: %v", in.Err))
			return
		}
		m.set(d, tainted{t.Now})
		t.Emit(step.NodeEvent(t.State.NodeByName(in.Node).Object, "ScaleDown", "ScalingDown", "marked the node as toBeDeleted/unschedulable"))
	case d.stays() && in.Remove:
		if in.Err != nil {
			m.set(d, untaintFailed{t.Now})
			return
		}
		m.drop(in.Node)
	}
}

// Advance takes deletions further whose time has come, or of whose nodes something has
// changed.
func (m *Machine) Advance(t *lifecycle.Turn) {
	for _, name := range m.names(func(d *deletion) bool {
		at := d.due(&m.cfg)
		return !at.IsZero() && !t.Now.Before(at)
	}) {
		m.advance(t, name, m.deletions[name])
	}
	m.surgeTogether(t)
	m.gatherAll(t)
	m.deleteBatches(t)
}

// names returns the names of the nodes of which f is true, sorted.
func (m *Machine) names(f func(*deletion) bool) []string {
	var out []string
	for name, d := range m.deletions { // in any order
		if f(d) {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// Unanswered returns how many nodes of a group its assumed target no longer includes
// though the outcome of their deletion is open or in doubt.
func (m *Machine) Unanswered(group string) (n int) {
	for _, d := range m.deletions {
		if s, ok := d.asked(); ok && s.lowered && d.group == group {
			n++
		}
	}
	return n
}

// EachAsked calls f with the group of each node that the provider was asked to delete,
// with the outcome open or in doubt.
func (m *Machine) EachAsked(f func(group string)) {
	for _, d := range m.deletions {
		if _, ok := d.asked(); ok {
			f(d.group)
		}
	}
}

// EachOutOfState calls f with each node that the API has shown and that is kept out of the
// state, in no particular order.
func (m *Machine) EachOutOfState(f func(*cluster.NodeInfo)) {
	for _, d := range m.deletions {
		if last := d.outOfState(); last != nil {
			f(last)
		}
	}
}

// EachUnfinished calls f with each of these nodes whose instance may still exist, in no particular
// order: it leaves out those that the provider has deleted, though the API still has the Node
// object.
func (m *Machine) EachUnfinished(f func(*cluster.NodeInfo)) {
	for _, d := range m.deletions {
		if s, done := d.state.(deleted); done && !s.listed {
			continue
		}
		if last := d.outOfState(); last != nil {
			f(last)
		}
	}
}

// NextWake returns when a deletion goes on by itself.
func (m *Machine) NextWake() time.Time {
	var next time.Time
	if !m.groups.Known() {
		return next // no deletion goes on before the provider has told of its groups
	}
	for _, d := range m.deletions {
		next = lifecycle.Earliest(next, d.due(&m.cfg))
	}
	return next
}

// Unsettled names the nodes on their way out.
func (m *Machine) Unsettled() []string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(m.deletions)) {
		out = append(out, fmt.Sprintf("the deletion of node %s is under way: %s", name, m.deletions[name].state))
	}
	return out
}
