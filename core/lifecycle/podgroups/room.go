package podgroups

// This file keeps room for a gang that has waited for long (framework.KeepRoom), so that smaller pods
// don't overtake it for ever. Each place that its members will have when some pods have ended is kept by a
// stand-in (cluster.GroupRoom): a pod in no API, nominated there. Pods of the group's priority or a lower
// one leave it its room, but for those that don't delay the group: they end before the pods do that the
// group has to wait for, or the group may preempt them; and for members of a gang of which others have nodes
// already: it was placed as a whole before, and some of its binds have failed. A stand-in keeps what nodes have,
// and devices (claims.go), but no storage.
//
//	room is   from                                              then
//	wanted    a gang of which too few members have nodes was    room is kept for the one of the highest
//	          decided on; it has waited for KeepRoom.After      priority, of these for the one that waits longest
//	kept      there will be places when pods end that end by    given back
//	          themselves; KeepRoom.For at most
//	-         there won't                                       wanted again after KeepRoom.After
//
// Room is kept for one gang at a time: the next would be given what the first one needs. The room ends when the
// gang has its nodes, is deleted or can't be tried, and at the latest after KeepRoom.For. A gang whose room has
// ended after KeepRoom.For begins to wait anew, so that others have their turn. A gang that is held, or without
// members, goes on waiting as long as its PodGroup is there. When a member goes, or a node on which room is kept no longer admits
// its members, places are searched again. Nothing of this outlives the process: after a crash the wait is counted from the
// transition time of the gang's condition, and room is kept again.

import (
	"fmt"
	"maps"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/engine"
	"github.com/berthproject/berth/core/lifecycle"
	"github.com/berthproject/berth/core/queue"
	"github.com/berthproject/berth/core/scheduler"
	"github.com/berthproject/berth/core/step"
)

// roomPrefix begins the UIDs of this machine's stand-ins and the names of its headrooms.
const roomPrefix = "podgroup/"

// rooms are the gangs for which room may be kept.
type rooms struct {
	// waits are the gangs that wait, by the object's UID.
	waits map[types.UID]*wait
	look  time.Time // when to look next whether one has waited for long enough; zero for never
	kept  *keptRoom // nil for none
	// begun are the gangs in waits of which some members have nodes, sorted; stale says that it must be computed again.
	begun []cluster.PodGroupKey
	stale bool
}

// wait is a gang of which too few members have nodes.
type wait struct {
	key      cluster.PodGroupKey
	priority int32
	since    time.Time // or since room was last kept for it, or looked for in vain
	after    time.Duration
	lasts    time.Duration // KeepRoom.For
	ends     time.Time     // room that is kept is given back then; zero as long as none was
	missing  string        // why none could be kept when it was last looked for; "" when some was
	begun    bool          // some members have nodes
}

// keptRoom is the room that is kept for a gang.
type keptRoom struct {
	*wait
	group    types.UID // of the object
	id       cluster.HeadroomID
	standIns []*cluster.Pod
	members  []types.UID // by stand-in
	had      []int       // how many claims of the member had devices, by stand-in
	nodes    []string    // sorted, each once
	objects  []*v1.Node  // by node: as it was when its stand-ins' members could last be on it
	preempts bool
	since    time.Time
	// until is when the last pod ends that the gang has to wait for and that is known to end; since when none is.
	until time.Time
}

// Room is the room that is kept for a pod group.
type Room struct {
	Members int
	Nodes   []string  // sorted
	Since   time.Time // when it was first kept
	// Until is before when pods must end that use it meanwhile; Since when none may.
	Until time.Time
	Ends  time.Time // given back then at the latest
}

// RoomOf returns the room that is kept for a pod group, nil for none.
func (m *Machine) RoomOf(key cluster.PodGroupKey) *Room {
	k := m.rooms.kept
	if k == nil || k.key != key {
		return nil
	}
	return &Room{len(k.standIns), k.nodes, k.since, k.until, k.ends}
}

// Named returns the pod group that a stand-in of this machine keeps room for, for people; "" when it is
// another machine's.
func (m *Machine) Named(standIn *cluster.Pod) string {
	if k := m.rooms.kept; k != nil && standIn.StandIn == k.id {
		return "pod group " + k.key.String()
	}
	return ""
}

// RoomMissing returns why no room was found for a pod group that has waited for long, "" for any other.
func (m *Machine) RoomMissing(key cluster.PodGroupKey) string {
	if g := m.state.PodGroup(key); g != nil && m.rooms.waits[g.UID] != nil {
		return m.rooms.waits[g.UID].missing
	}
	return ""
}

// gangWaits notes that too few members of a group have nodes, gangRests that this is so no more, and
// gangHeld that it can't be tried: it goes on waiting, without room.
func (m *Machine) gangWaits(t *lifecycle.Turn, g *schedulingv1beta1.PodGroup, member *cluster.Pod) {
	keep := m.scheduler.Profile(member).KeepRoom
	if keep.After == 0 || !m.members.Decides() || g.Spec.SchedulingPolicy.Gang == nil {
		return
	}
	key := cluster.PodGroupKey{Namespace: g.Namespace, Name: g.Name}
	if t.State.PlacedMembers(key) >= MinCount(g) { // others may have bound some
		m.gangRests(t, g.UID, "enough members have nodes")
		return
	}
	begun := t.State.PlacedMembers(key) > 0
	if x := m.rooms.waits[g.UID]; x != nil {
		m.rooms.stale = m.rooms.stale || begun != x.begun
		x.begun = begun
		if k := m.rooms.kept; k == nil || k.wait != x { // it may have been passed over while it was held
			m.rooms.look = lifecycle.Earliest(m.rooms.look, x.since.Add(x.after))
		}
		return
	}
	x := &wait{key: key, priority: member.Priority, since: t.Now, after: keep.After, lasts: keep.For, begun: begun}
	m.rooms.stale = m.rooms.stale || begun
	if c := meta.FindStatusCondition(g.Status.Conditions, schedulingv1beta1.PodGroupInitiallyScheduled); c != nil && c.Reason == schedulingv1beta1.PodGroupReasonUnschedulable && c.LastTransitionTime.Time.Before(t.Now) {
		x.since = c.LastTransitionTime.Time
	}
	m.rooms.waits[g.UID] = x
	m.rooms.look = lifecycle.Earliest(m.rooms.look, x.since.Add(keep.After))
}

func (m *Machine) gangRests(t *lifecycle.Turn, uid types.UID, why string) {
	m.gangHeld(t, uid, why)
	m.rooms.forget(uid)
}

// forget forgets a gang.
func (r *rooms) forget(uid types.UID) {
	if x := r.waits[uid]; x != nil {
		r.stale = r.stale || x.begun
		delete(r.waits, uid)
	}
}

// haveBegun returns the gangs of which some members have nodes, sorted.
func (r *rooms) haveBegun() []cluster.PodGroupKey {
	if r.stale {
		r.begun, r.stale = nil, false
		for _, x := range r.waits { // in any order: they are sorted
			if x.begun {
				r.begun = append(r.begun, x.key)
			}
		}
		slices.SortFunc(r.begun, cluster.PodGroupKey.Compare)
	}
	return r.begun
}

func (m *Machine) gangHeld(t *lifecycle.Turn, uid types.UID, why string) {
	if k := m.rooms.kept; k != nil && k.group == uid {
		m.giveBack(t, why)
	}
}

// advanceRoom gives room back that isn't needed any more, and keeps some for the gang whose time has come.
func (m *Machine) advanceRoom(t *lifecycle.Turn) {
	if k := m.rooms.kept; k != nil {
		if why, over := m.roomEnds(t, k); why != "" {
			m.giveBack(t, why)
			if over {
				k.wait.since, k.wait.ends = t.Now, time.Time{}
			}
		} else {
			m.admit(t, k)
		}
	}
	if m.rooms.kept != nil || m.rooms.look.IsZero() || t.Now.Before(m.rooms.look) {
		return
	}
	m.rooms.look = time.Time{}
	uid, x := m.firstWait(t)
	if x == nil {
		return
	}
	if why := m.keepRoom(t, uid, x); why != "" {
		t.Decide(step.Decision{Kind: step.RoomMissing, PodGroup: x.key.String(), Reason: why})
		x.since, x.ends, x.missing = t.Now, time.Time{}, why
		m.rooms.look = t.Now.Add(nextLook)
	}
}

// firstWait returns the gang for which room is to be kept first, nil when none has waited for long enough.
// Those that are gone are forgotten, and those that can't be tried passed over.
func (m *Machine) firstWait(t *lifecycle.Turn) (first types.UID, x *wait) {
	for uid, y := range m.rooms.waits { // in any order: one comes before all others
		if g := t.State.PodGroup(y.key); g == nil || g.UID != uid {
			m.rooms.forget(uid)
			continue
		}
		if !y.ends.IsZero() && !t.Now.Before(y.ends) { // its turn is over, though no room was kept lately
			y.since, y.ends = y.ends, time.Time{}
		}
		if g := t.Queue.Group(y.key); g == nil || g.Held() != "" {
			continue
		}
		due := y.since.Add(y.after)
		if t.Now.Before(due) {
			m.rooms.look = lifecycle.Earliest(m.rooms.look, due)
			continue
		}
		if x == nil || y.before(x) {
			first, x = uid, y
		}
	}
	return first, x
}

// before reports whether room is kept for a gang before another: for one for which some was, of the same
// turn, before all others.
func (x *wait) before(y *wait) bool {
	switch {
	case x.ends.IsZero() != y.ends.IsZero():
		return y.ends.IsZero()
	case x.priority != y.priority:
		return x.priority > y.priority
	case !x.since.Equal(y.since):
		return x.since.Before(y.since)
	}
	return x.key.Compare(y.key) < 0
}

// roomEnds returns why room isn't kept any more where it is, "" when it is; over says that the gang has
// had its turn.
func (m *Machine) roomEnds(t *lifecycle.Turn, k *keptRoom) (why string, over bool) {
	g, waits := t.State.PodGroup(k.key), t.Queue.Group(k.key)
	switch {
	case g == nil || g.UID != k.group || waits == nil:
		return "the pod group no longer waits", false
	case !t.Now.Before(k.ends):
		return fmt.Sprintf("the pod group did not start within %s", k.lasts), true
	}
	for i, uid := range k.members {
		item := t.Queue.Get(uid)
		if item == nil || item.WaitsWithGroup() != waits {
			return "other members wait than before", false
		}
		if allocatedClaims(t.State, item.Pod()) != k.had[i] {
			return fmt.Sprintf("claims of pod %s have got or lost their devices", item.Pod().Name()), false
		}
	}
	for i, name := range k.nodes {
		n := t.State.NodeByName(name)
		if n == nil || n.Object != k.objects[i] && m.excludes(t, k, n) {
			return fmt.Sprintf("node %s is gone, or no longer admits the members", name), false
		}
		k.objects[i] = n.Object
	}
	return "", false
}

// excludes reports whether a node's object keeps members away for which room is kept there. It is the
// rules' answer, with which the room was found, too: otherwise room would be kept and given back in turns.
func (m *Machine) excludes(t *lifecycle.Turn, k *keptRoom, n *cluster.Node) bool {
	asked := map[*engine.Class]bool{}
	for i, standIn := range k.standIns {
		if t.State.NominatedTo(standIn.UID) != n.Name {
			continue
		}
		p := t.Queue.Get(k.members[i]).Pod()
		c := m.scheduler.Class(p)
		if !asked[c] && m.scheduler.Engine(p).ExcludedByObject(c, n) {
			return true
		}
		asked[c] = true
	}
	return false
}

// keepRoom keeps room for a gang, or returns why it can't.
func (m *Machine) keepRoom(t *lifecycle.Turn, uid types.UID, x *wait) (why string) {
	g, object := t.Queue.Group(x.key), t.State.PodGroup(x.key)
	if n := len(g.Members()); n == 0 || n > maxRoomMembers {
		return fmt.Sprintf("%d of its members are pending, and the limit is %d", n, maxRoomMembers)
	}
	for _, item := range g.Members() {
		if claim := sharedClaim(t.State, item.Pod()); claim != "" {
			return fmt.Sprintf("devices can't be reserved for pod %s: other pods may use its claim %s, too, which has none yet", item.Pod().Name(), claim)
		}
	}
	first := g.Members()[0].Pod()
	r := m.request(object, g, func(i int) scheduler.Member {
		p := g.Members()[i].Pod()
		return scheduler.Member{Pod: p, Class: m.scheduler.Class(p)}
	})
	k := &keptRoom{wait: x, group: uid, id: cluster.HeadroomID(roomPrefix + string(uid)), since: t.Now,
		preempts: m.scheduler.Profile(first).Preempter != nil && preemptionPolicy(first.Object) != v1.PreemptNever}
	leaving := leavers(t, k)
	pods := make([]*cluster.Pod, len(leaving))
	for i := range leaving {
		pods[i] = leaving[i].pod
	}
	room := m.scheduler.RoomFor(&r, pods)
	switch {
	case len(room.Places) == 0 && room.Cut:
		return fmt.Sprintf("no places were found for the pod group within %d steps", room.Work)
	case len(room.Places) == 0:
		return fmt.Sprintf("the pod group finds no places even when the %d pods have ended that end by themselves", len(pods))
	}
	for _, at := range room.Places {
		if claim := sharedWrite(at.Choice.Writes, g.Members()[at.Member].Pod()); claim != "" {
			return fmt.Sprintf("devices can't be reserved by claim %s, which other pods may use, too, once it has lost those that it has", claim)
		}
	}
	x.missing = ""
	k.until = knownEnd(leaving, room.MustGo, t.Now)
	if x.ends.IsZero() {
		x.ends = t.Now.Add(x.lasts)
	}
	m.nominateStandIns(t, k, g.Members(), room.Places)
	t.Decide(step.Decision{Kind: step.RoomKept, PodGroup: x.key.String(), Members: len(room.Places), Reason: fmt.Sprintf("on %d nodes, where %d pods have to end first; until %s", len(k.nodes), len(room.MustGo), x.ends.UTC().Format(time.RFC3339))})
	return ""
}

// nominateStandIns has stand-ins keep places for members.
func (m *Machine) nominateStandIns(t *lifecycle.Turn, k *keptRoom, items []*queue.Item, places []scheduler.Place) {
	m.rooms.kept = k
	m.admit(t, k)
	nodes := map[string]bool{}
	for _, at := range places {
		member, node := items[at.Member].Pod(), t.State.Node(at.Choice.Node).Name
		standIn := lifecycle.StandInOf(member, roomPrefix, "room-for-"+member.Object.Name)
		standIn.StandIn, standIn.Group = k.id, nil
		bringClaims(t.State, member, standIn)
		t.State.Nominate(standIn, node)
		k.standIns, k.members = append(k.standIns, standIn), append(k.members, member.UID)
		k.had = append(k.had, allocatedClaims(t.State, member))
		nodes[node] = true
	}
	k.nodes = slices.Sorted(maps.Keys(nodes))
	for _, name := range k.nodes {
		k.objects = append(k.objects, t.State.NodeByName(name).Object)
	}
}

// admit says which pods may use the room now: those that end before until wherever in a part of the time
// to it they begin. It is said anew of each part, so that there are few classes.
func (m *Machine) admit(t *lifecycle.Turn, k *keptRoom) {
	room := cluster.GroupRoom{Key: k.key, Priority: k.priority, Preempts: k.preempts, Begun: m.rooms.haveBegun()}
	if part := k.until.Sub(k.since) / admittingParts; part > 0 {
		passed := t.Now.Sub(k.since)/part + 1
		room.Within = max(k.until.Sub(k.since)-passed*part, 0).Truncate(time.Second)
	}
	t.State.SetHeadroom(&cluster.Headroom{ID: k.id, Group: &room})
}

// giveBack gives the room back that is kept.
func (m *Machine) giveBack(t *lifecycle.Turn, why string) {
	k := m.rooms.kept
	for _, standIn := range k.standIns {
		t.State.Nominate(standIn, "")
	}
	t.State.RemoveHeadroom(k.id)
	m.rooms.kept = nil
	m.rooms.look = t.Now // others may have waited for it
	t.Decide(step.Decision{Kind: step.RoomLost, PodGroup: k.key.String(), Members: len(k.standIns), Reason: why})
}

// roomWake returns when room is to be given back or kept next, zero for never.
func (m *Machine) roomWake() time.Time {
	if k := m.rooms.kept; k != nil {
		return k.ends
	}
	return m.rooms.look
}

// InvariantsIn says what doesn't hold between the machine and the state: room that is kept is a headroom of
// a group that is there, and its stand-ins are nominated to its nodes.
func (m *Machine) InvariantsIn(state *cluster.State) (out []string) {
	k := m.rooms.kept
	for _, h := range state.Headrooms() {
		if h.Group != nil && (k == nil || k.id != h.ID) {
			out = append(out, fmt.Sprintf("room is kept for pod group %s, which nobody asks for", h.Group.Key))
		}
	}
	if k == nil {
		return out
	}
	if state.Headroom(k.id) == nil || m.rooms.waits[k.group] != k.wait {
		out = append(out, fmt.Sprintf("room is kept for pod group %s: as a headroom %t, waiting %t", k.key, state.Headroom(k.id) != nil, m.rooms.waits[k.group] == k.wait))
	}
	for _, p := range k.standIns {
		if _, on := slices.BinarySearch(k.nodes, state.NominatedTo(p.UID)); !on {
			out = append(out, fmt.Sprintf("stand-in %s of pod group %s is nominated to %q", p.UID, k.key, state.NominatedTo(p.UID)))
		}
	}
	return out
}
