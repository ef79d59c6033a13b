package homes

// This file holds the machine: its entries, what node deletions and the core ask of it, and
// how it ends them. room.go has the room on the nodes. It must hold that
//
//   - byPod, byOwner and byNode have the same homes, in the order in which they were kept;
//     roomless has those of them without a node;
//   - a home with a node has its stand-in nominated there, and no other stand-in of this
//     machine's is nominated (InvariantsIn), but for places on coming nodes (queued);
//   - a home that is queued has no node.

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/engine"
	"github.com/berthproject/berth/core/lifecycle"
	"github.com/berthproject/berth/core/step"
)

// settleTime is how long an owner has to lack no pod until the homes of its pods end.
const settleTime = 5 * time.Second

// Config says how long homes are kept.
type Config struct {
	Time   time.Duration // from when a pod leaves on
	NoRoom bool          // no room is kept; the pods count as displaced
}

// Scheduler is what homes ask of the scheduler.
type Scheduler interface {
	Responsible(*cluster.Pod) bool
	Engine(*cluster.Pod) *engine.Engine
	FitsNominated(*cluster.Pod, *engine.Class) bool
}

// Machine keeps all homes. Only the core's goroutine may call it.
type Machine struct {
	cfg       Config
	scheduler Scheduler
	byPod     map[types.UID]*home // by the pod that has to leave
	byOwner   map[Owner][]*home
	byNode    map[string][]*home  // by the node that the pod has to leave
	roomless  map[types.UID]*home // those of byPod without a node
	made      int                 // how many homes there were so far; numbers them
	watch     lifecycle.RoomWatch
	// fitting are stand-ins nominated since the watch looked last, beside which all others of
	// their nodes have their room.
	fitting   map[types.UID]bool
	tried     cluster.Seq // homes without room were tried with the changes up to here
	untried   bool        // homes were added to roomless since findRoom looked last
	orders    Orders      // nil until Connect
	version   int         // counts changes of where homes are
	unsettled bool        // since endDue last looked an owner has changed, a pod has left, or a home has ended
	wake      time.Time   // when endDue has something to do though nothing changes; zero for never
}

// home is room for the replacement of one pod.
type home struct {
	pod     *cluster.Pod // that has to leave, as it was when the room was kept
	from    string       // its node
	owner   Owner
	number  int          // in the order of keeping
	standIn *cluster.Pod // keeps the room
	node    string       // where, "" while there is none
	known   bool         // the owner was known when the room was kept
	surging bool         // SuccessorRequested was called: the owner is the pod's Deployment
	asks    bool         // Anticipate was called: room is looked for until there is some
	claims  []claimKind  // how the replacement comes by the devices of each resource claim that the pod names
	queued  bool         // the stand-in is tried and planned for like a pod
	told    bool         // it had room at some time, as the ledger has it
	taken   bool         // NodeTaken was called: the pod goes with its node
	why     string       // why no node group helps the stand-in, as the last plan has it
	evicted bool         // PodEvicted was called
	left    time.Time    // when the pod was evicted, or was first shown leaving; zero before
	until   time.Time    // when the home ends for want of a replacement
	// ownerAt is the owner as it was when the pod left; full since when it has said anew that
	// it lacks no pod for this home, zero while it hasn't.
	ownerAt *cluster.Workload
	full    time.Time
}

// Owner names the controller of pods. One that has none is its own.
type Owner struct{ namespace, kind, name string }

// OwnerOf returns the owner of a pod.
func OwnerOf(p *cluster.Pod) Owner {
	if ref := metav1.GetControllerOfNoCopy(p.Object); ref != nil {
		return Owner{p.Object.Namespace, ref.Kind, ref.Name}
	}
	return Owner{p.Object.Namespace, "Pod", p.Object.Name}
}

// deploymentOf returns the Deployment of a pod as an owner; ok is false when it has none.
func deploymentOf(p *cluster.Pod) (o Owner, ok bool) {
	name := p.Deployment()
	return Owner{p.Object.Namespace, "Deployment", name}, name != ""
}

// String names the owner as the ledger does.
func (o Owner) String() string { return o.kind + " " + o.namespace + "/" + o.name }

var _ lifecycle.Machine = (*Machine)(nil)

// New returns a machine that keeps no home.
func New(cfg Config, scheduler Scheduler) *Machine {
	return &Machine{cfg: cfg, scheduler: scheduler, byPod: map[types.UID]*home{}, byOwner: map[Owner][]*home{}, byNode: map[string][]*home{}, roomless: map[types.UID]*home{}, fitting: map[types.UID]bool{}}
}

// Reserve reserves room for the pods of a removal on their homes. It returns why not, "" when it
// has all of it; otherwise it has reserved none. Pods that aren't on the node any more, or leave
// already, need none.
func (m *Machine) Reserve(t *lifecycle.Turn, r *autoscaler.Removal) (why string) {
	var list []*home
	for _, x := range r.Homes {
		pod := t.State.PodOn(x.Pod)
		if n := t.State.NodeOf(x.Pod); pod == nil || n == nil || n.Name != r.Node || leaves(pod) || m.byPod[x.Pod] != nil {
			continue
		}
		list = append(list, newHome(t.State, pod, r.Node, x.Node))
	}
	if m.cfg.NoRoom {
		for _, h := range list {
			h.node = ""
		}
	} else if why := m.noRoom(t, list); why != "" {
		return why
	}
	for _, h := range list {
		m.add(h)
		m.nominate(t, h, h.node)
	}
	return ""
}

func newHome(s *cluster.State, pod *cluster.Pod, from, node string) *home {
	h := &home{pod: pod, from: from, owner: OwnerOf(pod), node: node, known: s.OwnerOf(pod) != nil, standIn: standInFor(s, pod)}
	h.claimDevices(s)
	return h
}

func (m *Machine) add(h *home) {
	m.made++
	h.number = m.made
	m.byPod[h.pod.UID] = h
	m.byOwner[h.owner] = append(m.byOwner[h.owner], h)
	m.byNode[h.from] = append(m.byNode[h.from], h)
}

// leaves reports whether the API shows a pod terminating.
func leaves(p *cluster.Pod) bool { return p.Object.DeletionTimestamp != nil }

// PodEvicted records that a pod was told to leave: from now on its replacement is expected.
func (m *Machine) PodEvicted(t *lifecycle.Turn, pod *cluster.Pod) {
	h := m.byPod[pod.UID]
	if h == nil {
		return
	}
	if h.awaitsSuccessor() { // from now on its ReplicaSet may lack a pod
		h.ownerAt, m.unsettled = t.State.OwnerOf(h.pod), true
	}
	h.evicted = true
	m.expect(t, h)
}

// SuccessorRequested records that the Deployment of a pod is asked for its successor, while the
// pod stays: the successor may be shown next, and is of another ReplicaSet.
func (m *Machine) SuccessorRequested(t *lifecycle.Turn, pod *cluster.Pod) {
	h := m.byPod[pod.UID]
	deployment, ok := deploymentOf(pod)
	if h == nil || !ok {
		return
	}
	without(m.byOwner, h.owner, h)
	h.surging, h.owner = true, deployment
	m.byOwner[h.owner] = inOrder(slices.Values(append(m.byOwner[h.owner], h)))
	m.expect(t, h)
}

// awaitsSuccessor reports whether the successor of a pod is expected that hasn't left, so that
// its ReplicaSet lacks none.
func (h *home) awaitsSuccessor() bool { return h.surging && !h.evicted }

// PodTerminating records that the API shows a pod terminating, or gone: its replacement may be shown
// next, before the outcome of the eviction is known.
func (m *Machine) PodTerminating(t *lifecycle.Turn, uid types.UID) {
	if h := m.byPod[uid]; h != nil {
		m.expect(t, h)
	}
}

// expect begins the time of a home. A StatefulSet replaces a pod when it is gone, which may
// take as long as it has to terminate.
func (m *Machine) expect(t *lifecycle.Turn, h *home) {
	if !h.left.IsZero() {
		return
	}
	h.left, h.until, h.ownerAt = t.Now, t.Now.Add(m.cfg.Time), t.State.OwnerOf(h.pod)
	if h.owner.kind == string(cluster.StatefulSet) {
		h.until = h.until.Add(time.Duration(h.pod.Eviction.Grace) * time.Second)
	}
	m.unsettled, m.wake = true, lifecycle.Earliest(m.wake, h.until)
}

// ReleaseUnevicted ends the homes of those pods of a node that weren't evicted and don't leave:
// the node stays, or the pods ended by themselves.
func (m *Machine) ReleaseUnevicted(t *lifecycle.Turn, node string) {
	var list []*home
	for _, h := range m.byNode[node] {
		pod := t.State.PodOn(h.pod.UID)
		if !h.evicted && !h.taken && (pod == nil || !leaves(pod)) {
			list = append(list, h)
		}
	}
	m.endAll(t, list, func(*home) string { return "its pod is not being evicted" })
}

// PodAppearedPending records that the API shows a pod for the first time, without a node: if it
// replaces one that has left, a home of these ends. It returns the nomination that has kept the room of that, nil
// when it had none.
func (m *Machine) PodAppearedPending(t *lifecycle.Turn, pod *cluster.Pod) (room *cluster.Nomination) {
	h := m.homeFor(t, pod)
	if h == nil {
		return nil
	}
	node := h.node
	if node != "" {
		room = t.State.NominationOf(h.standIn.UID)
	}
	if h.queued {
		m.orders.HandOver(t, h.standIn.UID, pod.UID)
	}
	m.end(t, h)
	t.Decide(step.Decision{Kind: step.HomeTaken, Pod: pod.Name(), Node: node, Reason: fmt.Sprintf("it replaces pod %s", h.pod.Name())})
	return room
}

// PodAppearedBound records that the API shows a pod for the first time, and on a node: nobody
// else comes for the home of the pod that it replaces.
func (m *Machine) PodAppearedBound(t *lifecycle.Turn, pod *cluster.Pod) {
	if h := m.homeFor(t, pod); h != nil {
		m.endAll(t, []*home{h}, func(*home) string { return "its replacement was placed elsewhere" })
	}
}

// homeFor returns the home that a new pod of an owner ends: that of the pod with its name; failing
// that the oldest whose node takes the pod, or simply the oldest. It is nil when no pod of the owner has left.
func (m *Machine) homeFor(t *lifecycle.Turn, pod *cluster.Pod) (best *home) {
	if len(m.byPod) == 0 || m.byPod[pod.UID] != nil {
		return nil
	}
	rank := 0
	list := m.byOwner[OwnerOf(pod)]
	if deployment, ok := deploymentOf(pod); ok {
		list = slices.Concat(list, m.byOwner[deployment])
	}
	for _, h := range list {
		if h.left.IsZero() || rank == 2 {
			continue
		}
		switch {
		case h.pod.Object.Name == pod.Object.Name:
			return h
		case h.node != "" && m.takes(t, h, pod):
			best, rank = h, 2
		case best == nil:
			best, rank = h, 1
		}
	}
	return best
}

// endAll ends homes in the order in which they were kept, for a reason that the ledger gets.
func (m *Machine) endAll(t *lifecycle.Turn, list []*home, why func(*home) string) {
	for _, h := range inOrder(slices.Values(list)) {
		reason := why(h) // of the home as it was
		node := h.node
		m.end(t, h)
		t.Decide(step.Decision{Kind: step.HomeEnded, Pod: h.pod.Name(), Node: node, Reason: reason})
	}
}

// end forgets a home and its stand-in: whoever waits for the room is asked about the change.
func (m *Machine) end(t *lifecycle.Turn, h *home) {
	m.unsettled = true // another home of the owner may be needed in its place
	m.version++
	m.unqueue(h)
	t.State.Nominate(h.standIn, "")
	delete(m.byPod, h.pod.UID)
	delete(m.roomless, h.pod.UID)
	delete(m.fitting, h.standIn.UID)
	without(m.byOwner, h.owner, h)
	without(m.byNode, h.from, h)
}

// without takes a home off a list, and an empty list away.
func without[K comparable](lists map[K][]*home, key K, h *home) {
	rest := slices.DeleteFunc(lists[key], func(x *home) bool { return x == h })
	if lists[key] = rest; len(rest) == 0 {
		delete(lists, key)
	}
}

// Advance ends the homes whose time is over, or whose owners lack no pod, and looks for room
// for those that have lost theirs. It comes before the queue is asked about changes.
func (m *Machine) Advance(t *lifecycle.Turn) {
	if len(m.byPod) == 0 {
		m.watch.Skip(t.State)
		clear(m.fitting)
		m.wake = time.Time{}
		return
	}
	m.dropLostRoom(t)
	if m.unsettled || !m.wake.IsZero() && !t.Now.Before(m.wake) {
		m.endDue(t)
	}
	m.findRoom(t)
}

// endDue ends the homes that nobody comes for any more, and works out when to look again. It
// costs O(homes × log homes).
func (m *Machine) endDue(t *lifecycle.Turn) {
	m.unsettled, m.wake = false, time.Time{}
	spare := m.spare(t.State)
	var due []*home
	for _, h := range m.byPod { // in any order
		if h.left.IsZero() && !h.taken {
			continue
		}
		if next := m.ends(t, h, spare[h]); !t.Now.Before(next) {
			due = append(due, h)
		} else {
			m.wake = lifecycle.Earliest(m.wake, next)
		}
	}
	m.endAll(t, due, func(h *home) string {
		switch w := t.State.OwnerOf(h.pod); {
		case !t.Now.Before(h.until):
			return "no replacement arrived in time"
		case h.full.IsZero():
			return "its owner was deleted"
		case w != nil && w.Replicas.Missing() > 0:
			return fmt.Sprintf("its owner has all of its pods but %d, for which other homes are kept", w.Replicas.Missing())
		}
		return "its owner has all of its pods"
	})
}

// ends returns when an expected home ends by itself, as things are. spare says that its owner lacks
// no pod for it.
func (m *Machine) ends(t *lifecycle.Turn, h *home, spare bool) time.Time {
	switch {
	case h.left.IsZero(): // its node was taken, and the API shows the pod still
		return h.until
	case h.known && t.State.OwnerOf(h.pod) == nil:
		h.full = time.Time{}
		return t.Now
	case !spare:
		h.full = time.Time{}
		return h.until
	case h.full.IsZero():
		h.full = t.Now
	}
	return lifecycle.Earliest(h.until, h.full.Add(settleTime))
}

// spare returns the expected homes beyond the number of pods that their owners lack: of each owner
// the ones that were kept last. Those of which the owner has said nothing since the pod left
// aren't counted. A StatefulSet replaces pods by name and one at a time: its homes are spare
// only when it lacks no pod.
func (m *Machine) spare(s *cluster.State) map[*home]bool {
	out, lacks := map[*home]bool{}, map[*cluster.Workload]int{}
	for _, h := range inOrder(maps.Values(m.byPod)) {
		w := s.OwnerOf(h.pod)
		if h.left.IsZero() || h.awaitsSuccessor() || w == nil || w == h.ownerAt || !keepsReplicas(w) {
			continue
		}
		lacks[w]++
		missing := w.Replicas.Missing()
		out[h] = missing == 0 || lacks[w] > missing && w.Kind != cluster.StatefulSet
	}
	return out
}

// keepsReplicas reports whether a workload's Replicas mean something.
func keepsReplicas(w *cluster.Workload) bool {
	switch w.Kind {
	case cluster.ReplicaSet, cluster.StatefulSet, cluster.ReplicationController, cluster.Job:
		return true
	}
	return false
}

// inOrder returns homes in the order in which they were kept.
func inOrder(homes iter.Seq[*home]) []*home {
	return slices.SortedFunc(homes, func(a, b *home) int { return cmp.Compare(a.number, b.number) })
}

// Displaced returns stand-ins for the pods that have to find a node before another may be given
// up, in the order in which their removals began: those of homes without room. Where no room
// is kept these are the pods that are still to be evicted, and of each owner as many of those
// that have left as it lacks pods.
func (m *Machine) Displaced(s *cluster.State) (out []*cluster.Pod) {
	lacks := map[Owner]int{}
	for _, h := range inOrder(maps.Values(m.roomless)) {
		if h.queued {
			continue // it is among the pending pods of the request
		}
		if w := s.OwnerOf(h.pod); m.cfg.NoRoom && !h.left.IsZero() && !h.awaitsSuccessor() && w != nil && keepsReplicas(w) {
			if lacks[h.owner]++; lacks[h.owner] > w.Replicas.Missing() {
				continue
			}
		}
		out = append(out, h.standIn)
	}
	return out
}

// Named returns whose home a stand-in keeps, as people read it; "" when it isn't one of these.
func (m *Machine) Named(standIn *cluster.Pod) string {
	if h := m.byPod[leaver(standIn)]; h != nil {
		return "the replacement of a pod of " + h.owner.String()
	}
	return ""
}

// NextWake returns when a home ends by itself, zero for never.
func (m *Machine) NextWake() time.Time { return m.wake }

// Unsettled names the homes.
func (m *Machine) Unsettled() (out []string) {
	for _, h := range inOrder(maps.Values(m.byPod)) {
		out = append(out, fmt.Sprintf("the home of pod %s is kept on %q", h.pod.Name(), h.node))
	}
	return out
}
