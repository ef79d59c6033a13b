package nodedeletion

// This file holds the machine: what begins a deletion, what becomes of it as the API shows
// its node and its taint, and what others ask about it. lastlook.go decides whether a
// tainted node goes, and provider.go follows it from the call to the provider on. The
// states are in states.go, and what must be true of them in invariants.go.

import (
	"fmt"
	"maps"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/autoscaler/scaledown"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/lifecycle"
	"github.com/berthproject/berth/core/lifecycle/candidates"
	"github.com/berthproject/berth/core/step"
)

// untaintRetry is how long after a failure to take a taint off it is tried again.
const untaintRetry = 5 * time.Second

// Config says when nodes are deleted, and how. Names are those of Cluster Autoscaler's
// flags; core.Autoscale has the defaults.
type Config struct {
	MaxDeletions          int           // deletions at a time, beyond which none begins
	DeleteDelayAfterTaint time.Duration // from the taint to the last look
	EvictDaemonPods       bool          // unless a pod's annotation says otherwise
	MaxPodEvictionTime    time.Duration // how long evictions are waited for
}

// Candidates is what node deletions need of the candidates.
type Candidates interface {
	// Forget has a node be needed again, since its deletion has ended.
	Forget(node string)
}

// Groups is what node deletions need of the node groups.
type Groups interface {
	// Known tells whether the provider has told of its groups yet.
	Known() bool
	// Retarget adds to the number of nodes that a group is assumed to have.
	Retarget(t *lifecycle.Turn, group string, delta int)
	// ScaledDown says that the provider was asked to delete a node of a group.
	ScaledDown(now time.Time, group string)
	// ScaleDownFailed says that a node of a group could not be deleted.
	ScaleDownFailed(now time.Time, group string)
	// ScaleDownDelayed tells whether a group grew, or a node of it could not be
	// deleted, too recently for its nodes to be deleted.
	ScaleDownDelayed(now time.Time, group string) bool
	// InstanceDeletion says of which group an instance is, by its provider ID, and how
	// far the deletion is that was asked for because it had not become a node;
	// NotCalled for any other instance.
	InstanceDeletion(providerID string) (group string, state lifecycle.CallState)
}

// Machine follows all nodes on their way out. Only the core's goroutine may call it.
type Machine struct {
	cfg        Config
	groups     Groups
	candidates Candidates
	deletions  map[string]*deletion // by node name
}

var _ lifecycle.Machine = (*Machine)(nil)

// New returns a machine that follows no node yet. Connect must be called before any
// other method.
func New(cfg Config) *Machine {
	return &Machine{cfg: cfg, deletions: map[string]*deletion{}}
}

// Connect sets the node groups, which in turn need this machine, and the candidates.
func (m *Machine) Connect(groups Groups, candidates Candidates) {
	m.groups, m.candidates = groups, candidates
}

// Begin begins to delete those candidates whose time has come that are still empty and
// whose group may shrink, as many as may be under deletion at a time.
func (m *Machine) Begin(t *lifecycle.Turn, due []candidates.Due) {
	for i := range due {
		name, why := due[i].Node, due[i].Why
		n := t.State.NodeByName(name)
		if n == nil || m.deletions[name] != nil || len(m.deletions) >= m.cfg.MaxDeletions {
			continue
		}
		g := t.State.Group(n.Group)
		if g == nil || !scaledown.Removable(n) || g.Target-m.Planned(g.ID)-1 < g.Min || m.groups.ScaleDownDelayed(t.Now, g.ID) {
			continue
		}
		t.Decide(step.Decision{Kind: step.NodeTainted, Node: name, Group: n.Group, Reason: fmt.Sprintf("%s for %s", why, due[i].For)})
		d := &deletion{group: n.Group, taint: deletionTaint(t.Now), why: why, state: tainting{}}
		m.deletions[name] = d
		t.Ready.Taints = append(t.Ready.Taints, step.Taint{Node: name, Taint: d.taint})
		t.State.SetNode(n.NodeInfo.WithTaint(d.taint))
	}
}

func deletionTaint(now time.Time) v1.Taint {
	return v1.Taint{Key: autoscaler.ToBeDeletedTaint, Value: fmt.Sprint(now.Unix()), Effect: v1.TaintEffectNoSchedule}
}

// NodeSet takes what the API shows of a node and returns how the state is to have it,
// nil for not at all: what was decided about a node holds until the API shows it.
func (m *Machine) NodeSet(t *lifecycle.Turn, info *cluster.NodeInfo) *cluster.NodeInfo {
	d := m.deletions[info.Name]
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
	case deleted:
		s.shown = info
		d.state = s
		return nil
	case untainting, untaintFailed:
		return info.WithoutTaint(d.taint.Key)
	}
	return info.WithTaint(d.taint)
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
	group, call := m.groups.InstanceDeletion(info.Object.Spec.ProviderID)
	switch call {
	case lifecycle.NotCalled:
		m.Resume(t, info)
		return info
	case lifecycle.Called:
		s = deleting{called{node: info}}
	case lifecycle.InDoubt:
		s = inDoubt{called{node: info}}
	case lifecycle.Done:
		s = deleted{since: t.Now, shown: info}
	}
	m.deletions[info.Name] = &deletion{group: group, taint: deletionTaint(t.Now), why: "its instance was removed", state: s}
	return nil
}

// Resume takes over a node that carries the taint although this process has not
// written it: another process began to delete the node, and ended. The node gets its
// last look, and is deleted or untainted.
func (m *Machine) Resume(t *lifecycle.Turn, info *cluster.NodeInfo) {
	for _, taint := range info.Object.Spec.Taints {
		if taint.Key == autoscaler.ToBeDeletedTaint {
			m.deletions[info.Name] = &deletion{group: info.Group, taint: taint, why: "its removal had begun", state: tainted{t.Now}}
		}
	}
}

// NodeGone takes note that the API no longer shows a node.
func (m *Machine) NodeGone(name string) {
	d := m.deletions[name]
	if d == nil {
		return
	}
	switch s := d.state.(type) {
	case deleting:
		s.gone = true
		d.state = s
	case inDoubt:
		s.gone = true
		d.state = s
	default:
		delete(m.deletions, name)
	}
}

// TaintDone takes the outcome of putting a taint on, or of taking it off.
func (m *Machine) TaintDone(t *lifecycle.Turn, in step.TaintDone) {
	d := m.deletions[in.Node]
	if d == nil {
		return
	}
	switch d.state.(type) {
	case tainting:
		if in.Err != nil {
			m.keep(t, in.Node, d, fmt.Sprintf("the node could not be tainted: %v", in.Err))
			return
		}
		d.state = tainted{t.Now}
	case untainting, untaintFailed:
		if in.Err != nil {
			d.state = untaintFailed{t.Now}
			return
		}
		delete(m.deletions, in.Node)
	}
}

// Advance takes deletions further whose time has come.
func (m *Machine) Advance(t *lifecycle.Turn) {
	for _, name := range slices.Sorted(maps.Keys(m.deletions)) {
		d := m.deletions[name]
		if at := d.state.due(&m.cfg); at.IsZero() || t.Now.Before(at) {
			continue
		}
		switch s := d.state.(type) {
		case tainted, evicting:
			m.lastLook(t, name, d)
		case deleted:
			m.linger(t, d, s)
		case untaintFailed:
			d.state = untainting{}
			t.Ready.Taints = append(t.Ready.Taints, step.Taint{Node: name, Taint: d.taint, Remove: true})
		}
	}
}

// Planned returns how many nodes of a group are on their way out that its assumed target
// still includes.
func (m *Machine) Planned(group string) (n int) {
	for _, d := range m.deletions {
		switch d.state.(type) {
		case tainting, tainted, evicting:
			if d.group == group {
				n++
			}
		}
	}
	return n
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

// Asked calls f with the group of each node that the provider was asked to delete,
// with the outcome open or in doubt.
func (m *Machine) Asked(f func(group string)) {
	for _, d := range m.deletions {
		if _, ok := d.asked(); ok {
			f(d.group)
		}
	}
}

// OutOfState calls f with each node that the API has shown and that is kept out of the
// state, in no particular order.
func (m *Machine) OutOfState(f func(*cluster.NodeInfo)) {
	for _, d := range m.deletions {
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
		next = lifecycle.Earliest(next, d.state.due(&m.cfg))
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
