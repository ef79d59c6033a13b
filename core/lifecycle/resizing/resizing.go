package resizing

// This file holds the machine. What must hold: an entry is of a pod on a node that has the condition, or
// that was told to leave; and a pod is asked to leave only when room is kept for its replacement.

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
	// retryAfter is how long after its first refusal an eviction is requested again, and how long after a
	// pod was found not to be evictable it is looked at again.
	retryAfter = 10 * time.Second
	// maxRetry is the longest wait between two such requests.
	maxRetry = 5 * time.Minute
	// longestWait is how long a pod waits at most since its owner's pods have moved, where Config.After isn't longer.
	longestWait = 24 * time.Hour
	// movesForgotten is how long an owner's moves are remembered at least, after the last.
	movesForgotten = time.Hour
	// maxMoves is how many pods may have homes for this reason, or be leaving, at a time.
	maxMoves = 10
)

// Config says when pods move.
type Config struct {
	// After is how long a resize must have been pending before its pod moves; 0 for never.
	After time.Duration
	Rules autoscaler.RemovalRules // which pods may be evicted
	Quiet bool                    // no events: another scheduler is only watched
}

// Homes keeps room for the pods' replacements.
// It is the machine of core/lifecycle/homes, as far as it is used here.
type Homes interface {
	Anticipate(t *lifecycle.Turn, node string, pods []*cluster.Pod)
	ReleasePod(t *lifecycle.Turn, pod types.UID)
	PodEvicted(t *lifecycle.Turn, pod *cluster.Pod)
	Kept(pod types.UID) (homes.Kept, bool)
	WhyNone(s *cluster.State, pod *cluster.Pod) string
}

// Machine follows the pods whose resize is pending. Only the core's goroutine may call it.
type Machine struct {
	cfg   Config
	homes Homes
	pods  map[types.UID]*pod
	fresh bool // there may be pods whose event is to be emitted
	moved map[homes.Owner]moves
}

// moves is when pods of an owner were told to leave: the first and the last, and the first by the API server's clock.
type moves struct{ first, last, server time.Time }

// over reports whether the moves are so long ago that another is the first again.
func (x moves) over(now time.Time, after time.Duration) bool {
	return now.Sub(x.last) > after+movesForgotten+4*x.last.Sub(x.first)
}

// stage is how far a pod is, as in the table of the package.
// A pod that is told to leave stays told until it is gone.
type stage uint8

const (
	pending stage = iota
	seeking
	asked
	refused
	told
)

// pod is one whose resize is pending.
// Its entry ends when the resize does, or the pod.
type pod struct {
	name   string // for the order
	reason cluster.ResizeReason
	since  time.Time
	stage  stage
	fresh  bool          // its event is to be emitted
	why    string        // why it doesn't move now; "" when it does
	retry  time.Time     // when it is looked at though nothing changes; zero for not
	wait   time.Duration // the last wait of a refused pod
}

var _ lifecycle.Machine = (*Machine)(nil)

// New returns a machine that follows no pod.
func New(cfg Config, h Homes) *Machine {
	return &Machine{cfg: cfg, homes: h, pods: map[types.UID]*pod{}, moved: map[homes.Owner]moves{}}
}

// PodShown records how the API shows a pod on a node. Of a pod whose eviction was requested the answer is
// waited for, whatever becomes of its resize.
func (m *Machine) PodShown(t *lifecycle.Turn, p *cluster.Pod) {
	reason, x := cluster.PendingResize(p.Object), m.pods[p.UID]
	switch {
	// The answer decides what becomes of the entry.
	case x != nil && (x.stage == asked || x.stage == told):
	// Pods of nodes are restarted in place, and those that leave anyway need no move.
	case p.OfNode || p.Object.DeletionTimestamp != nil || reason == "":
		if x != nil {
			m.end(t, p.UID, x)
		}
	case x == nil:
		m.pods[p.UID] = &pod{name: p.Name(), reason: reason, since: t.Now, fresh: true}
		m.fresh = true
	// Deferred may become infeasible, which people should hear of.
	case x.reason != reason:
		x.reason, x.fresh = reason, true
		m.fresh = true
	}
}

// PodGone records that a pod is gone or has ended. It comes before homes are told.
func (m *Machine) PodGone(uid types.UID) { delete(m.pods, uid) }

// end forgets a pod that stays.
func (m *Machine) end(t *lifecycle.Turn, uid types.UID, x *pod) {
	delete(m.pods, uid)
	if x.stage != pending {
		m.release(t, uid)
	}
}

// release gives a pod's home back, unless its node is going: then the home is for that.
func (m *Machine) release(t *lifecycle.Turn, uid types.UID) {
	if n := t.State.NodeOf(uid); n == nil || !autoscaler.Going(n.NodeInfo) {
		m.homes.ReleasePod(t, uid)
	}
}

// noteMove records that a pod was told to leave, and forgets what is too old to count.
func (m *Machine) noteMove(t *lifecycle.Turn, p *cluster.Pod) {
	maps.DeleteFunc(m.moved, func(_ homes.Owner, x moves) bool { return x.over(t.Now, m.cfg.After) })
	x, ok := m.moved[homes.OwnerOf(p)]
	if !ok {
		x.first, x.server = t.Now, t.ServerNow()
	}
	x.last = t.Now
	m.moved[homes.OwnerOf(p)] = x
}

// EvictionDone takes the outcome of an eviction, of whatever pod.
func (m *Machine) EvictionDone(t *lifecycle.Turn, in step.EvictionDone) {
	x, p := m.pods[in.UID], t.State.PodOn(in.UID)
	switch {
	case x == nil || x.stage != asked || p == nil:
	case in.Err == nil:
		x.stage, x.why = told, ""
		m.noteMove(t, p)
		m.homes.PodEvicted(t, p)
	case cluster.PendingResize(p.Object) == "" || p.Object.DeletionTimestamp != nil: // it was carried out or taken back, or somebody deletes the pod
		m.end(t, in.UID, x)
	default:
		x.stage = refused
		// A refusal by a budget ends by itself.
		x.backOff(t)
		x.why = fmt.Sprintf("its eviction was refused: %v", in.Err)
	}
}

// backOff sets when a pod is looked at again: twice as long after now as the last time.
func (x *pod) backOff(t *lifecycle.Turn) {
	x.wait = min(max(retryAfter, 2*x.wait), maxRetry)
	x.retry = t.Now.Add(x.wait)
}

// Advance emits events and requests homes. It runs before homes are scheduled. It goes over all pods whose
// resize is pending, if pods move at all, but judges only those that are moving (maxMoves at most) or whose
// time to be looked at has come.
func (m *Machine) Advance(t *lifecycle.Turn) {
	m.tell(t)
	if len(m.pods) == 0 || m.cfg.After == 0 {
		return
	}
	moving := map[homes.Owner]*pod{}
	moves := 0
	// All of them are counted before one is judged, so that the order doesn't matter.
	for uid, x := range m.pods { // in any order: one of an owner moves at a time
		if x.stage == pending {
			continue
		}
		moves++
		if p := t.State.PodOn(uid); p != nil {
			moving[homes.OwnerOf(p)] = x
		}
	}
	due := func(x *pod) bool {
		if x.stage == pending {
			return !t.Now.Before(x.retry)
		}
		return x.stage == seeking || x.stage == refused
	}
	for _, uid := range m.order(due) {
		x, p, n := m.pods[uid], t.State.PodOn(uid), t.State.NodeOf(uid)
		switch {
		case p == nil || n == nil: // the node isn't known yet, or is gone: so will the pod be
			x.retry = t.Now.Add(retryAfter)
			continue
		// Moving many at once would drain nodes for a reason that isn't theirs.
		case x.stage == pending && moves >= maxMoves:
			x.why, x.retry = fmt.Sprintf("%d other pods are being moved", moves), t.Now.Add(retryAfter)
			continue
		}
		if why, again := m.whyStays(t, p, n, x, moving[homes.OwnerOf(p)]); why != "" {
			x.why, x.retry = why, again
			// Its room is for others now.
			if x.stage != pending {
				x.stage = pending
				m.release(t, uid)
			}
			continue
		}
		if x.stage == pending {
			x.stage, x.retry = seeking, time.Time{}
			moving[homes.OwnerOf(p)] = x
			moves++
		}
		m.homes.Anticipate(t, n.Name, []*cluster.Pod{p})
	}
}

// tell emits an event about each pod whose resize has become pending, or is pending for another reason.
func (m *Machine) tell(t *lifecycle.Turn) {
	if !m.fresh {
		return
	}
	m.fresh = false
	for _, uid := range m.order(func(x *pod) bool { return x.fresh }) {
		x, p, n := m.pods[uid], t.State.PodOn(uid), t.State.NodeOf(uid)
		if p == nil || n == nil {
			m.fresh = true // its node isn't known yet
			continue
		}
		if x.fresh = false; !m.cfg.Quiet {
			t.Emit(step.PodEvent(p.Object, "ResizeWaitsForRoom", "Resizing", fmt.Sprintf("in-place resize is %s: %s", x.reason, cluster.ResizeLack(t.State, p, n))).AsWarning())
		}
	}
}

// whyStays returns why a pod doesn't move, and when to look again; "" when it may. moving is the pod of its
// owner that moves already: itself, another or none.
func (m *Machine) whyStays(t *lifecycle.Turn, p *cluster.Pod, n *cluster.Node, x, moving *pod) (why string, again time.Time) {
	again = t.Now.Add(retryAfter)
	if due := m.movesAt(t, p, x); t.Now.Before(due) {
		format := time.TimeOnly
		if due.Sub(t.Now) >= 12*time.Hour { // a time of day alone could be today's
			format = time.DateTime
		}
		return fmt.Sprintf("it moves at %s at the earliest (--move-pending-resizes-after)", due.UTC().Format(format)), due
	}
	if autoscaler.Going(n.NodeInfo) {
		return "its node is being removed or about to be taken", again
	}
	// Some pods can't have a home at all, whatever room there is.
	if why := m.homes.WhyNone(t.State, p); why != "" {
		return "no room can be reserved for it: it " + why, again
	}
	ctx := drainability.Context{Rules: &m.cfg.Rules, State: t.State, Now: t.ServerNow(), Alone: true}
	if v := ctx.Judge(p); v.Outcome != drainability.Evict {
		if v.Why == "" {
			v.Why = "is not evicted (" + v.Rule + ")"
		}
		return "it " + v.Why, again
	}
	if metav1.GetControllerOfNoCopy(p.Object) == nil {
		return "it has no controller, so nothing would recreate it", again
	}
	// One at a time, as with a rolling update.
	if moving != nil && moving != x {
		return "another pod of its controller is being moved", again
	}
	// A move that has begun is left to the eviction itself, which the API server checks.
	if x.stage == pending {
		for _, b := range t.State.AppendBudgets(nil, p) {
			if b.Status.DisruptionsAllowed < 1 && (t.State.Ready(p.UID) || !b.LetsUnreadyGo()) {
				return fmt.Sprintf("disruption budget %s allows no disruptions now", b.Name), again
			}
		}
	}
	return "", time.Time{}
}

// movesAt returns when a pod may move at the earliest. One that was created since its owner's pods began to move most
// likely replaces one that has moved: it has to wait as long as they have moved by its creation, or pods of which not
// all have room could take the place of each other for ever.
func (m *Machine) movesAt(t *lifecycle.Turn, p *cluster.Pod, x *pod) time.Time {
	of, ok := m.moved[homes.OwnerOf(p)]
	if !ok || of.over(t.Now, m.cfg.After) {
		return x.since.Add(m.cfg.After)
	}
	return lifecycle.Latest(x.since, of.last).Add(max(m.cfg.After, min(longestWait, p.Object.CreationTimestamp.Sub(of.server))))
}

// Evict requests the eviction of pods whose replacements have room on a node that is there. It runs after
// homes were scheduled.
// Only then it is known which of them have room.
func (m *Machine) Evict(t *lifecycle.Turn) {
	if m.cfg.After == 0 {
		return
	}
	due := func(x *pod) bool { return x.stage == seeking || x.stage == refused && !t.Now.Before(x.retry) }
	for _, uid := range m.order(due) {
		x, p, n := m.pods[uid], t.State.PodOn(uid), t.State.NodeOf(uid)
		if p == nil || n == nil {
			x.retry = t.Now.Add(retryAfter)
			continue
		}
		k, ok := m.homes.Kept(uid)
		switch {
		// Room on a node that is coming isn't room yet.
		case !ok || k.Node == "":
			m.waitForRoom(t, uid, x, k)
			continue
		// Said once, not with each attempt.
		case x.stage == seeking:
			t.Decide(step.Decision{Kind: step.PodEvicted, Pod: p.Name(), Node: n.Name, Reason: fmt.Sprintf("its in-place resize is %s, and room is reserved on node %s", x.reason, k.Node)})
			t.Emit(step.PodEvent(p.Object, "ResizeMovesPod", "Resizing", fmt.Sprintf("evicting the pod: its in-place resize is %s, and node %s has room for its replacement", x.reason, k.Node)))
		}
		x.stage, x.why, x.retry = asked, "", time.Time{}
		t.Ready.Evictions = append(t.Ready.Evictions, step.Eviction{UID: uid, Namespace: p.Object.Namespace, Name: p.Object.Name, Node: n.Name})
	}
}

// waitForRoom says why a pod has to wait for its home. One for which no node group helps gives way to others.
func (m *Machine) waitForRoom(t *lifecycle.Turn, uid types.UID, x *pod, k homes.Kept) {
	x.why, x.retry = "no node has room for its replacement", t.Now.Add(retryAfter)
	switch {
	case k.Coming:
		x.why = "a node is coming that has room for its replacement"
		return
	case k.Why != "":
		x.why += ", and no node group helps: " + k.Why
	case !k.Shares:
		return
	}
	x.stage = pending
	x.backOff(t)
	m.release(t, uid)
}

// order returns the pods that are wanted, those first whose resize is pending longest.
func (m *Machine) order(wanted func(*pod) bool) (out []types.UID) {
	for uid, x := range m.pods { // in any order: sorted below
		if wanted(x) {
			out = append(out, uid)
		}
	}
	slices.SortFunc(out, func(a, b types.UID) int {
		x, y := m.pods[a], m.pods[b]
		return cmp.Or(x.since.Compare(y.since), strings.Compare(x.name, y.name), strings.Compare(string(a), string(b)))
	})
	return out
}

// NextWake returns when a pod is looked at though nothing changes; zero for never.
func (m *Machine) NextWake() (next time.Time) {
	if m.cfg.After == 0 {
		return next
	}
	for _, x := range m.pods { // in any order
		// In the other stages an answer or a node will come by itself.
		switch x.stage {
		case pending:
			next = lifecycle.Earliest(next, lifecycle.Latest(x.retry, x.since.Add(m.cfg.After)))
		case refused:
			next = lifecycle.Earliest(next, x.retry)
		}
	}
	return next
}

// Unsettled names the pods that are being moved.
func (m *Machine) Unsettled() (out []string) {
	for _, uid := range m.order(func(x *pod) bool { return x.stage != pending }) {
		x := m.pods[uid]
		out = append(out, fmt.Sprintf("pod %s is being moved, since its resize is %s: %s", x.name, x.reason, x.why))
	}
	return out
}

// Invariants checks that a pod has a reason.
func (m *Machine) Invariants() (out []string) {
	for _, uid := range m.order(func(*pod) bool { return true }) {
		if x := m.pods[uid]; x.reason == "" || x.since.IsZero() {
			out = append(out, fmt.Sprintf("the resize of pod %s is %q since %s", x.name, x.reason, x.since))
		}
	}
	return out
}

// Description is what is known of a pod whose resize is pending, for people.
type Description struct {
	UID    types.UID
	Pod    string // namespace/name
	Reason cluster.ResizeReason
	Since  time.Time // when Berth first saw it
	Moves  bool      // it is being moved
	Why    string    // why it doesn't move, or what its move waits for; "" when it is being evicted
}

// Describe returns what is known of a pod; ok is false when no resize of it is pending.
func (m *Machine) Describe(uid types.UID) (d Description, ok bool) {
	x := m.pods[uid]
	if x == nil {
		return Description{}, false
	}
	d = Description{UID: uid, Pod: x.name, Reason: x.reason, Since: x.since, Moves: x.stage != pending, Why: x.why}
	if m.cfg.After == 0 {
		d.Why = "it is not moved: --move-pending-resizes-after is 0"
	}
	return d, true
}

// Pending returns all pods whose resize is pending: those that are being moved first, and of these and of the
// others the ones first whose resize is pending longest. It costs O(of them × log of them).
func (m *Machine) Pending() (out []Description) {
	for _, moves := range []bool{true, false} {
		for _, uid := range m.order(func(x *pod) bool { return (x.stage != pending) == moves }) {
			d, _ := m.Describe(uid)
			out = append(out, d)
		}
	}
	return out
}
