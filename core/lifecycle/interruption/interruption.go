package interruption

// This file holds the machine. What must be true in it: a node has an entry exactly while the API
// shows a mark on it, and InterruptedTaint in the state exactly while it has one.

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/autoscaler/drainability"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/lifecycle"
	"github.com/berthproject/berth/core/lifecycle/homes"
	"github.com/berthproject/berth/core/step"
)

const (
	// retryAfter is how long after a drain could not begin it is tried again, if nothing changes.
	retryAfter = 10 * time.Second
	// retryDrain is how long after its first failure a drain is begun again, as for any other node; after
	// each further failure in a row it is twice as long. Where the time is known when the cloud takes the
	// node, it is retryAfter that doubles: there is little time left.
	retryDrain = time.Minute
)

// Config says which nodes are about to be taken, and what is done about them.
type Config struct {
	Marks []autoscaler.InterruptionMark // none: the machine does nothing
	Rules autoscaler.RemovalRules       // which pods may be evicted
	// NoDrain has no node drained: homes are kept only.
	NoDrain bool
	// DelayAfterTaint is how long after its taint a node is drained (--node-delete-delay-after-taint).
	DelayAfterTaint time.Duration
	// MaxGrace bounds how long pods may take to stop (--max-graceful-termination-sec); 0 for no bound.
	MaxGrace time.Duration
	// Hold is how long a node of which it isn't known when it is taken waits for pods that can't have
	// homes, before they are evicted all the same (--evicted-pod-home-time).
	Hold time.Duration
	// Patience is how long after its time a node that wasn't taken is believed to go
	// (--max-node-provision-time).
	Patience time.Duration
}

// Homes keeps room for the pods' replacements.
type Homes interface {
	Anticipate(t *lifecycle.Turn, node string, pods []*cluster.Pod)
	ReleaseUnevicted(t *lifecycle.Turn, node string)
	NodeTaken(t *lifecycle.Turn, node string)
	Kept(pod types.UID) (homes.Kept, bool)
	WhyNone(s *cluster.State, pod *cluster.Pod) string
	Version() int
}

// Deletions drains and deletes nodes.
type Deletions interface {
	// Leaving reports whether a node is on its way out already.
	Leaving(node string) bool
	// Interrupted has a node that is on its way out already wait for no other node.
	Interrupted(t *lifecycle.Turn, node string)
	// BeginInterrupted begins to drain a node. It returns why not, "" when it has begun.
	BeginInterrupted(t *lifecycle.Turn, r *autoscaler.Removal, why string) (stays string)
}

// Machine follows the nodes that are about to be taken. Only the core's goroutine may call it.
type Machine struct {
	cfg       Config
	homes     Homes
	deletions Deletions
	nodes     map[string]*node
	seen      int // version of the homes at the last Drain
}

// node is one that is about to be taken.
type node struct {
	uid     types.UID
	mark    autoscaler.InterruptionMark
	since   time.Time // of the first mark, or of the next after one whose time was over
	marked  time.Time // of the mark
	until   time.Time // when the cloud takes it; zero when that isn't known
	over    bool      // given up
	changed bool      // the node, or a pod of it, since Drain looked last
	wake    time.Time // when Drain looks again though nothing changes; zero for never
	why     string    // why it isn't drained yet; "" when it is
	// drains reports that a drain was begun and has not been found to have failed; fails counts those
	// that did, in a row, and retry is when the next may begin.
	drains bool
	fails  int
	retry  time.Time
}

var _ lifecycle.Machine = (*Machine)(nil)

// New returns a machine that follows no node.
func New(cfg Config, homes Homes, deletions Deletions) *Machine {
	return &Machine{cfg: cfg, homes: homes, deletions: deletions, nodes: map[string]*node{}}
}

// NodeSet takes how the API has a node, and how the state would have it, nil for not at all. It returns
// how the state is to have it.
func (m *Machine) NodeSet(t *lifecycle.Turn, api, info *cluster.NodeInfo) *cluster.NodeInfo {
	mark := autoscaler.FindInterruption(m.cfg.Marks, api)
	x := m.nodes[api.Name]
	if x != nil && (mark == nil || x.uid != api.Object.UID) {
		m.end(t, api.Name, x, x.uid == api.Object.UID)
		x = nil
	}
	if mark == nil {
		return info
	}
	if x == nil {
		x = &node{uid: api.Object.UID, since: t.Now}
		m.nodes[api.Name] = x
	}
	if x.mark != *mark {
		m.begin(t, api, x, *mark)
	}
	x.changed = true
	if info == nil {
		return nil
	}
	return mark.Interrupted(info)
}

// AsMarked returns a node as the state has it: with InterruptedTaint if the cloud is about to take it.
func (m *Machine) AsMarked(n *cluster.NodeInfo) *cluster.NodeInfo {
	if x := m.nodes[n.Name]; x != nil {
		return x.mark.Interrupted(n)
	}
	return n
}

// begin records a node's mark: its first, or another.
func (m *Machine) begin(t *lifecycle.Turn, n *cluster.NodeInfo, x *node, mark autoscaler.InterruptionMark) {
	if x.over || !x.until.IsZero() && !t.Now.Before(x.until) {
		x.since, x.until = t.Now, time.Time{} // the cloud didn't take the node then
	}
	x.mark, x.marked, x.over, x.fails, x.retry = mark, t.Now, false, 0, time.Time{}
	why := mark.Said()
	if mark.Warning > 0 {
		x.until = lifecycle.Earliest(x.until, t.Now.Add(mark.Warning)) // of two marks the one whose time is over first
		why += fmt.Sprintf(", it is taken in %s", x.until.Sub(t.Now))
	}
	t.Decide(step.Decision{Kind: step.NodeInterrupted, Node: n.Name, Group: n.Group, Reason: why})
	t.Emit(step.NodeEvent(n.Object, "NodeInterrupted", "ScalingDown", "the cloud is about to take the node ("+why+"): room for its pods is being reserved").AsWarning())
}

// end ends the interruption of a node whose mark is gone, or that is another machine now.
func (m *Machine) end(t *lifecycle.Turn, name string, x *node, markGone bool) {
	delete(m.nodes, name)
	why := "the node was replaced"
	if markGone {
		why = x.mark.Said() + " was removed, and the node stays"
		if !m.deletions.Leaving(name) {
			m.homes.ReleaseUnevicted(t, name)
		}
	} else {
		m.homes.NodeTaken(t, name)
	}
	t.Decide(step.Decision{Kind: step.InterruptionEnded, Node: name, Reason: why})
}

// NodeGone records that the API no longer shows a node. It comes before the node deletions hear of it.
func (m *Machine) NodeGone(t *lifecycle.Turn, name string) {
	if x := m.nodes[name]; x != nil {
		delete(m.nodes, name)
		if !x.over {
			m.homes.NodeTaken(t, name)
		}
		t.Decide(step.Decision{Kind: step.InterruptionEnded, Node: name, Reason: fmt.Sprintf("the node is gone, %s after its %s", t.Now.Sub(x.since), x.mark.Said())})
	}
}

// PodChanged records that a pod of a node has come, has changed or is gone.
func (m *Machine) PodChanged(name string) {
	if x := m.nodes[name]; x != nil {
		x.changed = true
	}
}

// BecomeLeader begins with the nodes that carry a mark: what another instance has kept for their pods
// isn't known.
func (m *Machine) BecomeLeader(t *lifecycle.Turn) {
	m.nodes = map[string]*node{}
	if len(m.cfg.Marks) == 0 {
		return
	}
	var marked []*cluster.NodeInfo
	t.State.Nodes(func(n *cluster.Node) {
		if autoscaler.FindInterruption(m.cfg.Marks, n.NodeInfo) != nil {
			marked = append(marked, n.NodeInfo)
		}
	})
	slices.SortFunc(marked, func(a, b *cluster.NodeInfo) int { return strings.Compare(a.Name, b.Name) })
	for _, n := range marked {
		t.State.SetNode(m.NodeSet(t, n, n))
	}
}

// Advance requests homes for the pods of nodes that have changed. It runs before homes are scheduled.
func (m *Machine) Advance(t *lifecycle.Turn) {
	for _, name := range m.names() {
		x, n := m.nodes[name], t.State.NodeByName(name)
		if n == nil || x.over || !x.changed && m.seen == m.homes.Version() { // homes may have been released
			continue
		}
		movers, _ := m.pods(t, n)
		m.homes.Anticipate(t, name, movers)
	}
}

// Drain begins the removal of the nodes whose pods have homes, or whose time has come. It costs
// O(nodes that are about to be taken × their pods) when homes have changed, and little otherwise.
func (m *Machine) Drain(t *lifecycle.Turn) {
	moved := m.seen != m.homes.Version()
	m.seen = m.homes.Version()
	for _, name := range m.names() {
		x := m.nodes[name]
		if x.over || !x.changed && !moved && (x.wake.IsZero() || t.Now.Before(x.wake)) {
			continue
		}
		x.changed, x.wake = false, time.Time{}
		switch n := t.State.NodeByName(name); {
		case n == nil:
		case m.deletions.Leaving(name):
			m.deletions.Interrupted(t, name)
		default:
			m.advance(t, n, x)
		}
	}
	m.seen = m.homes.Version()
}

// advance takes a node further that isn't on its way out.
func (m *Machine) advance(t *lifecycle.Turn, n *cluster.Node, x *node) {
	if giveUp := m.giveUpAt(x); !t.Now.Before(giveUp) {
		x.over, x.why = true, ""
		m.homes.ReleaseUnevicted(t, n.Name)
		t.Decide(step.Decision{Kind: step.InterruptionEnded, Node: n.Name, Group: n.Group,
			Reason: fmt.Sprintf("the cloud has not taken the node within %s after its %s: no room is reserved for its pods any more", giveUp.Sub(x.marked), x.mark.Said())})
		return
	}
	x.wake = m.giveUpAt(x)
	movers, blocked := m.pods(t, n)
	late := m.drainAt(x, movers)
	m.noteFailure(t, x, late)
	r := &autoscaler.Removal{Node: n.Name}
	waits, homeless := 0, ""
	for _, p := range movers {
		k, kept := m.homes.Kept(p.UID)
		switch {
		case !kept && homeless == "":
			homeless = fmt.Sprintf("no room can be reserved for pod %s, which %s", p.Name(), m.homes.WhyNone(t.State, p))
		case k.Waits && k.Shares && homeless == "":
			homeless = fmt.Sprintf("no node takes the replacement of pod %s, which shares devices with others", p.Name())
		case k.Waits && !k.Shares:
			waits++
		}
		r.Homes = append(r.Homes, autoscaler.Home{Pod: p.UID, Node: k.Node})
	}
	hold := x.since.Add(m.cfg.Hold)
	switch {
	case m.cfg.NoDrain:
		x.why = "scale-down is disabled (--scale-down-enabled=false)"
	case blocked != "":
		x.why = blocked
	case waits > 0 && (late.IsZero() || t.Now.Before(late)):
		x.why = fmt.Sprintf("%d of its %d pod(s) have no room yet", waits, len(movers))
		x.wake = lifecycle.Earliest(x.wake, late)
	case homeless != "" && late.IsZero() && t.Now.Before(hold):
		x.why = fmt.Sprintf("%s; it is evicted without reserved room at %s", homeless, hold.UTC().Format(time.TimeOnly))
		x.wake = lifecycle.Earliest(x.wake, hold)
	case t.Now.Before(x.retry):
		x.why = fmt.Sprintf("its drain has failed %d time(s), and begins again at %s", x.fails, x.retry.UTC().Format(time.TimeOnly))
		x.wake = lifecycle.Earliest(x.wake, x.retry)
	default:
		if x.why = m.deletions.BeginInterrupted(t, r, "the cloud is about to take it ("+x.mark.Said()+")"); x.why != "" {
			x.wake = lifecycle.Earliest(x.wake, t.Now.Add(retryAfter))
		}
		x.drains = x.why == ""
	}
}

// noteFailure records that a drain of the node has failed, if one had begun. The next one waits, twice as
// long as the one before did; but not beyond late, when its pods have to be told, if that is still to come.
func (m *Machine) noteFailure(t *lifecycle.Turn, x *node, late time.Time) {
	if !x.drains {
		return
	}
	x.drains = false
	wait := retryDrain
	if !x.until.IsZero() {
		wait = retryAfter
	}
	wait <<= min(x.fails, 10) // Config.Patience ends it long before
	x.fails++
	if x.retry = t.Now.Add(wait); t.Now.Before(late) && late.Before(x.retry) {
		x.retry = late
	}
}

// giveUpAt returns when a node that wasn't taken is believed to stay.
func (m *Machine) giveUpAt(x *node) time.Time {
	return x.marked.Add(x.mark.Warning + m.cfg.Patience)
}

// drainAt returns when pods have to be told to leave for them to end before the cloud takes their node;
// zero when that isn't known.
func (m *Machine) drainAt(x *node, movers []*cluster.Pod) time.Time {
	if x.until.IsZero() {
		return time.Time{}
	}
	var grace time.Duration
	for _, p := range movers {
		grace = max(grace, time.Duration(p.Eviction.Grace)*time.Second)
	}
	if m.cfg.MaxGrace > 0 {
		grace = min(grace, m.cfg.MaxGrace)
	}
	return x.until.Add(-grace - m.cfg.DelayAfterTaint)
}

// pods returns the pods of a node that will be replaced, sorted by name, and why the node may not be
// drained, "" when it may be. A pod that must not be evicted has a home, too: it goes with its node.
func (m *Machine) pods(t *lifecycle.Turn, n *cluster.Node) (movers []*cluster.Pod, blocked string) {
	ctx := drainability.Context{Rules: &m.cfg.Rules, State: t.State, Now: t.ServerNow(), Alone: true}
	list := slices.SortedFunc(slices.Values(n.Pods), func(a, b *cluster.Pod) int {
		return cmp.Or(strings.Compare(a.Name(), b.Name()), strings.Compare(string(a.UID), string(b.UID)))
	})
	for _, p := range list {
		if p.OfNode || p.Object.DeletionTimestamp != nil || p.Object.Spec.NodeName == "" {
			continue
		}
		v := ctx.Judge(p)
		switch v.Outcome {
		case drainability.Ignore:
			continue
		case drainability.Block, drainability.WaitFor:
			if blocked == "" {
				blocked = fmt.Sprintf("pod %s %s", p.Name(), v.Why)
			}
			if metav1.GetControllerOfNoCopy(p.Object) == nil {
				continue // nobody replaces it
			}
		}
		movers = append(movers, p)
	}
	return movers, blocked
}

func (m *Machine) names() []string {
	if len(m.nodes) == 0 {
		return nil
	}
	return slices.Sorted(maps.Keys(m.nodes))
}

// NextWake returns when a node is looked at though nothing changes; zero for never.
func (m *Machine) NextWake() (next time.Time) {
	for _, x := range m.nodes {
		if !x.over {
			next = lifecycle.Earliest(next, x.wake)
		}
	}
	return next
}

// Unsettled names the nodes that are about to be taken.
func (m *Machine) Unsettled() (out []string) {
	for _, name := range m.names() {
		if x := m.nodes[name]; !x.over {
			out = append(out, fmt.Sprintf("node %s is about to be taken since %s: %s", name, x.since.UTC().Format(time.TimeOnly), x.why))
		}
	}
	return out
}

// Invariants checks that deadlines come after marks.
func (m *Machine) Invariants() (out []string) {
	for _, name := range m.names() {
		if x := m.nodes[name]; x.since.IsZero() || !x.until.IsZero() && !x.until.After(x.since) {
			out = append(out, fmt.Sprintf("node %s is about to be taken since %s and until %s", name, x.since, x.until))
		}
	}
	return out
}

// InvariantsIn checks that the state has the taint on these nodes and on no others.
func (m *Machine) InvariantsIn(state *cluster.State) (out []string) {
	state.Nodes(func(n *cluster.Node) {
		if has := n.HasTaint(autoscaler.InterruptedTaint); has != (m.nodes[n.Name] != nil) {
			out = append(out, fmt.Sprintf("node %s has the taint %s: %t, and is about to be taken: %t", n.Name, autoscaler.InterruptedTaint, has, !has))
		}
	})
	return out
}

// Description is what is known of a node that is about to be taken, for people.
type Description struct {
	Mark  string    // "taint KEY" or "condition TYPE"
	Since time.Time // when Berth has seen it
	Until time.Time // when the cloud takes it; zero when that isn't known
	Why   string    // why it isn't drained yet
}

// Describe returns what is known of a node; ok is false when it isn't about to be taken.
func (m *Machine) Describe(name string) (d Description, ok bool) {
	x := m.nodes[name]
	if x == nil {
		return Description{}, false
	}
	d = Description{Mark: x.mark.Said(), Since: x.since, Until: x.until, Why: x.why}
	if x.over {
		d.Why = "the cloud has not taken it for long"
	}
	return d, true
}

// Count returns how many nodes are about to be taken.
func (m *Machine) Count() int { return len(m.nodes) }
