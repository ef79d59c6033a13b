package nomination

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/lifecycle"
	"github.com/berthproject/berth/core/queue"
	"github.com/berthproject/berth/core/step"
)

// retryAfter is how long after a write failed those that failed since are written
// again.
const retryAfter = 5 * time.Second

// State is how far a pod's nomination is known to the API. The package comment has the
// transitions.
type State uint8

// The states.
const (
	Agreed State = iota
	Writing
	WriteFailed
)

// String says the state in words.
func (s State) String() string { return [...]string{"agreed", "writing", "write failed"}[s] }

// Pod is a pod's part of the machine. Its zero value is a pod without a nomination,
// here and in the API.
type Pod struct {
	// node is the node that the pod is to come to, "" for none. While the pod is on a
	// node in the state, where it is nominated no more, it is what was decided before:
	// if the pod loses its node, it is nominated there again.
	node string
	// keeps says that what the pod claims of devices is kept for it on node (cluster.Nomination.Place).
	keeps bool
	// foreign says that node is what somebody else has written, and that no decision of this process has confirmed it.
	foreign bool
	// reserved says that a place is kept for the pod (core/lifecycle/reservation), and place
	// on which node; "" when that isn't registered. In the state the pod is nominated to
	// place when node is "". Nothing of it is written.
	reserved bool
	place    string
	// turn is the number of the pod's nomination to the node turnAt (cluster.Nomination.Begun), 0 for none. It
	// has that again when it is nominated there again after a decision, or after it was there.
	turn   uint64
	turnAt string
	// placed is the number with which its place is kept if its bind fails, 0 for the next.
	placed uint64
	// expected is the node that the pod was given, while that takes a while to become a binding
	// and is written for others to know; "" for none. The state has the pod there.
	expected string
	// written is what the API has or will have as far as is known: what was written
	// last, or, when that has failed, what it showed last.
	written string
	// failed says that what was written last has failed.
	failed bool
	shown  string // what the API showed last
	// unconfirmed was written and has not been shown yet, the oldest first. What has
	// failed stays here: the API server may have done it all the same.
	unconfirmed []string
}

// State returns how far the API is.
func (p *Pod) State() State {
	switch {
	case p.wanted() != p.written:
		return WriteFailed
	case p.written != p.shown:
		return Writing
	}
	return Agreed
}

// wanted returns what the API is to have.
func (p *Pod) wanted() string {
	if p.expected != "" {
		return p.expected
	}
	return p.node
}

// nominate nominates the pod in the state where at says, in its turn if it has one there.
func (p *Pod) nominate(s *cluster.State, pod *cluster.Pod) {
	node, place := p.at()
	as := cluster.Nomination{Name: node, Place: place}
	if node == p.turnAt {
		as.Begun = p.turn
	}
	s.Renominate(pod, &as)
	p.TakeTurn(s.NominationOf(pod.UID))
}

// TakeTurn has the pod be nominated in the turn of a nomination when it is nominated to its node next; nil for the
// next turn.
func (p *Pod) TakeTurn(of *cluster.Nomination) {
	p.turn, p.turnAt = 0, ""
	if of != nil {
		p.turn, p.turnAt = of.Begun, of.Name
	}
}

// Placed records that a decision has placed the pod on a node. If its bind fails and its place is kept, it comes before
// those that were nominated since: they were found to fit beside it.
func (p *Pod) Placed(s *cluster.State, node string) {
	if p.placed = p.turn; p.turnAt != node {
		p.placed = s.NextTurn()
	}
}

// at returns the node that the pod is nominated to in the state while it has none, and whether a place is kept
// for it there.
func (p *Pod) at() (node string, place bool) {
	if p.node != "" {
		return p.node, p.keeps || p.node == p.place
	}
	return p.place, p.place != ""
}

// waitsForNode reports whether the pod waits for a node of its own beside waiting with its
// class.
func (p *Pod) waitsForNode() bool { return p.node != "" || p.reserved }

// Decided reports whether the pod is nominated by a decision, or by what somebody else has
// written.
func (p *Pod) Decided() bool { return p.node != "" }

// Shown returns the node that somebody else has nominated the pod to, another process of this program, say; "" when a
// decision of this one came later, and for none.
func (p *Pod) Shown() string {
	if !p.foreign {
		return ""
	}
	return p.node
}

// Reserved reports whether a place is kept for the pod.
func (p *Pod) Reserved() bool { return p.reserved }

// Machine follows the nominations of all pods. Only the core's goroutine may call it.
type Machine struct {
	pods lifecycle.Pods[Pod]
	// failed are the pods whose nomination could not be written, in the order of the
	// failures, since failedSince. Some of them may be written or gone by now.
	failed      []types.UID
	failedSince time.Time
}

var _ lifecycle.Machine = (*Machine)(nil)

// New returns a machine that knows of no nomination.
func New(pods lifecycle.Pods[Pod]) *Machine { return &Machine{pods: pods} }

// Write takes where a queued pod is nominated in the state for decided, and has that
// written unless it was written last. Call it after each decision that may have
// nominated the pod or taken its nomination back.
func (m *Machine) Write(t *lifecycle.Turn, p *Pod, item *queue.Item) {
	p.node, p.keeps, p.foreign, p.expected = "", false, false, ""
	if is := t.State.NominationOf(item.Pod().UID); is != nil {
		p.TakeTurn(is)
		if is.Name != p.place {
			p.node, p.keeps = is.Name, is.Place
		}
	}
	m.show(t, p, item)
	m.send(t, p, item.Pod())
}

// KeepPlace keeps the place of a queued pod on a node that its bind has failed on, with the devices that it claims, and
// has that written.
func (m *Machine) KeepPlace(t *lifecycle.Turn, p *Pod, item *queue.Item, node string) {
	t.State.Renominate(item.Pod(), &cluster.Nomination{Name: node, Place: true, Begun: p.placed})
	p.placed = 0
	m.Write(t, p, item)
}

// Expect hands out the write of the node that a pod was given in the state and will be bound to in a while
// (KEP-5278): whoever removes nodes learns that somebody comes there. What was decided before
// stays, and is written again by Restore or Withdraw when the pod loses the node; the API server
// takes what was written away when the pod is bound.
func (m *Machine) Expect(t *lifecycle.Turn, pod *cluster.Pod, node string) {
	if p := m.pods.Get(pod.UID); p != nil {
		p.expected = node
		m.send(t, p, pod)
	}
}

// send has what the API is to have written, unless it was written last.
func (m *Machine) send(t *lifecycle.Turn, p *Pod, pod *cluster.Pod) {
	node := p.wanted()
	if node == p.written {
		return
	}
	p.written, p.failed = node, false
	p.unconfirmed = append(p.unconfirmed, node)
	obj := pod.Object
	t.Ready.Nominations = append(t.Ready.Nominations, step.Nomination{UID: obj.UID, Namespace: obj.Namespace, Name: obj.Name, Node: node})
}

// show has the state and the queue have a waiting pod as its part says.
func (m *Machine) show(t *lifecycle.Turn, p *Pod, item *queue.Item) {
	p.nominate(t.State, item.Pod())
	t.Queue.SetNominated(item, p.waitsForNode())
}

// Reserve implements reservation.Nominations.
func (m *Machine) Reserve(t *lifecycle.Turn, uid types.UID, node string) {
	m.setPlace(t, uid, true, node)
}

// Release implements reservation.Nominations. A pod that waits is tried: it didn't preempt
// while it had its place.
func (m *Machine) Release(t *lifecycle.Turn, uid types.UID) { m.setPlace(t, uid, false, "") }

// HandOver implements reservation.Nominations.
func (m *Machine) HandOver(t *lifecycle.Turn, from, to types.UID, node string) {
	was := t.State.NominationOf(from)
	m.setPlace(t, from, false, "")
	if p := m.pods.Get(to); p != nil && was != nil && was.Name == node {
		p.TakeTurn(was)
	}
	m.setPlace(t, to, true, node)
}

func (m *Machine) setPlace(t *lifecycle.Turn, uid types.UID, reserved bool, node string) {
	p, item := m.pods.Get(uid), t.Queue.Get(uid)
	if p == nil {
		return
	}
	p.reserved, p.place = reserved, node
	if _, placed := t.State.Placed(uid); placed || item == nil {
		return
	}
	m.show(t, p, item)
	if !reserved && item.Stage() == queue.Unschedulable {
		t.Queue.WakePod(t.Now, item)
	}
}

// Withdraw takes back a queued pod's nomination, in the state and in the API.
func (m *Machine) Withdraw(t *lifecycle.Turn, p *Pod, item *queue.Item) {
	t.State.Nominate(item.Pod(), "")
	m.Write(t, p, item)
}

// WithdrawFrom is Withdraw of a pod of which the caller has the item only.
func (m *Machine) WithdrawFrom(t *lifecycle.Turn, item *queue.Item) {
	if p := m.pods.Get(item.Pod().UID); p != nil {
		m.Withdraw(t, p, item)
	}
}

// RenominateFor is Renominate of a pod of which the caller hasn't the machine's part.
func (m *Machine) RenominateFor(t *lifecycle.Turn, pod *cluster.Pod) {
	if p := m.pods.Get(pod.UID); p != nil {
		m.Renominate(t, p, pod)
	}
}

// Restore nominates a pod again that was decided on and whose node was taken away from
// it: it may come to the node that it was nominated to after all.
func (m *Machine) Restore(t *lifecycle.Turn, p *Pod, item *queue.Item) {
	m.Renominate(t, p, item.Pod())
	m.Write(t, p, item)
}

// Renominate nominates a pod in the state as before the decision, of which nothing is
// written: the nominations of pods that another scheduler places are its own.
func (m *Machine) Renominate(t *lifecycle.Turn, p *Pod, pod *cluster.Pod) {
	p.nominate(t.State, pod)
}

// Show takes the node that the API has a pod nominated to that isn't bound, and reports whether
// somebody else has written it. Then it replaces what was decided here; of a pod that has a node
// in the state it counts when the pod loses that. A write of this
// machine's that is shown late changes nothing, but for one that has failed: the API
// server did it all the same, so if something else was decided since, that is written.
func (m *Machine) Show(t *lifecycle.Turn, p *Pod, item *queue.Item, node string) (others bool) {
	if node == p.shown {
		return false
	}
	p.shown = node
	if at := slices.Index(p.unconfirmed, node); at >= 0 {
		p.unconfirmed = p.unconfirmed[at+1:]
		if p.failed {
			if p.written = node; p.wanted() != node {
				m.retry(t, item.Pod().UID)
			}
		}
		return false
	}
	p.node, p.keeps, p.foreign, p.expected, p.written, p.failed = node, false, true, "", node, false
	if _, placed := t.State.Placed(item.Pod().UID); !placed {
		m.show(t, p, item)
	}
	return true
}

// NominationDone takes the outcome of a write. One that failed is written again after retryAfter,
// unless another was written since.
func (m *Machine) NominationDone(t *lifecycle.Turn, in step.NominationDone) {
	p := m.pods.Get(in.UID)
	if p == nil || in.Err == nil || p.written != in.Node {
		return
	}
	p.written, p.failed = p.shown, true
	m.retry(t, in.UID)
}

// retry writes a pod's nomination again after retryAfter, if that is needed then.
func (m *Machine) retry(t *lifecycle.Turn, uid types.UID) {
	if m.failed == nil {
		m.failedSince = t.Now
	}
	m.failed = append(m.failed, uid)
}

// Advance writes the nominations again that could not be written. Pods that have got a
// node meanwhile are left out: their nomination means nothing, or is written when they
// lose the node.
func (m *Machine) Advance(t *lifecycle.Turn) {
	if m.failed == nil || t.Now.Sub(m.failedSince) < retryAfter {
		return
	}
	for _, uid := range m.failed {
		p, item := m.pods.Get(uid), t.Queue.Get(uid)
		if _, placed := t.State.Placed(uid); p != nil && item != nil && !placed {
			m.Write(t, p, item)
		}
	}
	m.failed = nil
}

// NextWake returns when failed writes are written again, zero for never.
func (m *Machine) NextWake() time.Time {
	if m.failed == nil {
		return time.Time{}
	}
	return m.failedSince.Add(retryAfter)
}

// Unsettled names the pods whose nomination could not be written.
func (m *Machine) Unsettled() (out []string) {
	for _, uid := range m.failed {
		if p := m.pods.Get(uid); p != nil {
			out = append(out, fmt.Sprintf("the nomination of pod %s to %q is to be written again: %s", uid, p.node, p.State()))
		}
	}
	return out
}

// Invariants says what doesn't hold of the machine's own fields: writes that wait have
// a time, and what isn't shown yet was written.
func (m *Machine) Invariants() (out []string) {
	if m.failed != nil && m.failedSince.IsZero() {
		out = append(out, "nominations wait to be written again, and nothing says since when")
	}
	for uid, p := range m.pods.All() {
		if p.State() == Writing && !slices.Contains(p.unconfirmed, p.wanted()) {
			out = append(out, fmt.Sprintf("the nomination of pod %s to %q counts as written (the API has %q), and it was not", uid, p.wanted(), p.shown))
		}
	}
	return out
}

// InvariantsIn says what doesn't hold between the machine and the state: a pod without
// a node is nominated there as was decided, and nobody else is nominated, stand-ins aside, which are another machine's.
func (m *Machine) InvariantsIn(state *cluster.State) (out []string) {
	for uid, p := range m.pods.All() {
		if _, placed := state.Placed(uid); placed {
			continue
		}
		node, place := p.at()
		switch is := state.NominationOf(uid); {
		case is == nil && node == "" || is != nil && (is.Pod.StandsIn() || is.Name == node && is.Place == place):
		default:
			out = append(out, fmt.Sprintf("pod %s is nominated to %q, with a place there: %t, and the state says %+v", uid, node, place, is))
		}
		if is := state.NominationOf(uid); is != nil && !is.Pod.StandsIn() && (is.Begun != p.turn || is.Name != p.turnAt) {
			out = append(out, fmt.Sprintf("pod %s has turn %d on %q, and the state says %+v", uid, p.turn, p.turnAt, is))
		}
	}
	for _, n := range state.Nominations() {
		if !n.Pod.StandsIn() && m.pods.Get(n.Pod.UID) == nil {
			out = append(out, fmt.Sprintf("pod %s, which nobody knows, is nominated to %s", n.Pod.UID, n.Name))
		}
	}
	return out
}
