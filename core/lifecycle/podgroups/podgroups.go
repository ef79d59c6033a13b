package podgroups

import (
	"fmt"
	"slices"
	"time"

	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/engine"
	"github.com/berthproject/berth/core/framework"
	"github.com/berthproject/berth/core/lifecycle"
	"github.com/berthproject/berth/core/queue"
	"github.com/berthproject/berth/core/scheduler"
	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/core/weighing"
)

// Members is who follows single pods: the core.
type Members interface {
	// Class returns the class of a member that is to be tried, as it is signed now.
	Class(*queue.Item) *engine.Class
	// Known reports whether a pod is one of ours that the API shows on no node.
	Known(types.UID) bool
	// Assumed takes over what a decision has changed in objects for a member that it has placed. It
	// comes before Placed of any member: they may share objects.
	Assumed(item *queue.Item, writes []cluster.ObjectChange)
	// Placed carries out that a member was placed in the state; the decision has seen the changes up
	// to seen.
	Placed(t *lifecycle.Turn, item *queue.Item, d scheduler.Decision, seen cluster.Seq)
	// Waits carries out that a member found no node, and is nominated as the decision has it.
	Waits(t *lifecycle.Turn, item *queue.Item, why string)
	// Preempts carries out that pods have to leave for a group; weighed says what else there was.
	Preempts(t *lifecycle.Turn, g *schedulingv1beta1.PodGroup, members []*cluster.Pod, victims *framework.Victims, weighed *weighing.Result)
	// Asks carries out that members without a place ask for one on nodes that are coming or are bought for the
	// group, all of them; with nil for weighed, that they don't.
	Asks(t *lifecycle.Turn, items []*queue.Item, weighed *weighing.Result)
	// FitsNowhere carries out that a member with claims would fit on no node alone, with why.
	FitsNowhere(t *lifecycle.Turn, pod *cluster.Pod, d *engine.Diagnosis)
	// KeepPlace nominates a waiting member to a node, and FreePlace withdraws the nomination.
	KeepPlace(t *lifecycle.Turn, item *queue.Item, node string)
	FreePlace(t *lifecycle.Turn, item *queue.Item)
	// Shown returns the node that somebody else has nominated a waiting member to, "" for none.
	Shown(item *queue.Item) (node string)
	// Held reports why a member isn't tried; failure says that it is an error of somebody's.
	Held(t *lifecycle.Turn, uid types.UID, why string, failure bool)
	// Decides reports whether what is decided is done, and told.
	Decides() bool
}

// Machine takes pod groups through the core. Only the core's goroutine may call it.
type Machine struct {
	scheduler *scheduler.Scheduler // set by Use
	members   Members
	state     *cluster.State
	said      map[types.UID]*said // by the object's UID
	// unwritten are the groups whose conditions couldn't be written, by the object's UID, since unwrittenSince.
	// Some of them may be gone by now.
	unwritten      []types.UID
	unwrittenSince time.Time
	kept           []keptPlace // in the order in which they end
	// toCome is how many members have places that are being carried out, and weren't asked about yet.
	toCome int
	rooms  rooms
}

// New returns a machine over a state.
func New(state *cluster.State, members Members) *Machine {
	return &Machine{state: state, members: members, said: map[types.UID]*said{}, rooms: rooms{waits: map[types.UID]*wait{}}}
}

// Use gives the machine the scheduler, whose profiles have the machine as a Permitter.
func (m *Machine) Use(s *scheduler.Scheduler) { m.scheduler = s }

// Check holds the groups that can't be tried, and releases those that can: of the groups that members
// have joined or left, and those that the changes since the last call concern. The queue is asked about
// the changes after that.
func (m *Machine) Check(t *lifecycle.Turn, known bool, changes []cluster.Change) {
	m.changesShown(t, changes)
	if !t.Queue.AnyGroups() {
		return
	}
	groups := t.Queue.ChangedGroups()
	if !known {
		groups = t.Queue.Groups()
	}
	retry := map[*queue.Group]bool{}
	concerns := func(key cluster.PodGroupKey, helps bool) {
		if g := t.Queue.Group(key); g != nil {
			retry[g] = retry[g] || helps
			groups = append(groups, g)
		}
	}
	shown := shownAnew(t.State, changes)
	for i := range changes {
		m.groupsChanged(t.State, &changes[i], shown, concerns)
	}
	slices.SortFunc(groups, func(a, b *queue.Group) int { return a.Key().Compare(b.Key()) })
	for _, g := range slices.Compact(groups) {
		if m.check(t, g) && retry[g] {
			t.Queue.RetryGroup(g)
		}
	}
}

// shownAnew returns the members that have left their node by some changes and are there again: only
// something else about them has changed.
func shownAnew(s *cluster.State, changes []cluster.Change) map[types.UID]bool {
	var left map[types.UID]cluster.NodeIndex
	for i := range changes {
		if c := &changes[i]; c.Op == cluster.PodRemoved && c.Pod.Group != nil {
			if left == nil {
				left = map[types.UID]cluster.NodeIndex{}
			}
			if _, known := left[c.Pod.UID]; !known {
				left[c.Pod.UID] = c.Node
			}
		}
	}
	shown := map[types.UID]bool{}
	for uid, node := range left {
		if now, placed := s.Placed(uid); placed && now == node {
			shown[uid] = true
		}
	}
	return shown
}

// groupsChanged calls concerns with the groups that a change is about: their object, which members are on
// nodes, and in which domains these are. helps says that fewer members may have to be placed together
// now, or that they may be elsewhere: a group that waits is tried again. Members of shown are where they
// were.
func (m *Machine) groupsChanged(s *cluster.State, c *cluster.Change, shown map[types.UID]bool, concerns func(key cluster.PodGroupKey, helps bool)) {
	switch c.Op {
	case cluster.ObjectSet:
		if key, ok := c.Object.PodGroup(); ok {
			concerns(key, c.Object.GroupSpecChanged())
		}
	case cluster.PodAdded, cluster.PodRemoved, cluster.OrphanAdded, cluster.OrphanRemoved:
		if c.Pod.Group != nil && !shown[c.Pod.UID] {
			concerns(*c.Pod.Group, c.Op != cluster.PodAdded || !m.members.Known(c.Pod.UID))
		}
	case cluster.NodeUpdated:
		if !s.AnyMemberOn(c.Node) {
			return
		}
		for _, p := range s.Node(c.Node).Pods {
			if p.Group != nil {
				concerns(*p.Group, true)
			}
		}
	}
}

// check holds a group or releases it, and reports whether it can be tried.
func (m *Machine) check(t *lifecycle.Turn, g *queue.Group) bool {
	x := &Group{Key: g.Key(), Gated: g.Gated(), Consults: func(p *cluster.Pod) bool { return m.scheduler.Profile(p).Consults(p.Object) }}
	for _, item := range g.Members() {
		x.Waiting = append(x.Waiting, item.Pod())
	}
	m.keepShown(t, g)
	why, failure := Hold(x, t.State)
	if why == "" {
		placed := t.State.PlacedMembers(g.Key())
		t.Queue.SetBegun(g, placed > 0 && placed < MinCount(t.State.PodGroup(g.Key())))
		t.Queue.ReleaseGroup(t.Now, g)
		return true
	}
	t.Queue.HoldGroup(g, why)
	if object := t.State.PodGroup(g.Key()); object != nil {
		m.gangHeld(t, object.UID, why)
	}
	for _, p := range x.Waiting {
		m.members.Held(t, p.UID, why, failure)
	}
	if failure {
		m.failed(t, g.Key(), why)
	}
	return false
}

// MayHelp returns what tells the queue which classes of members changes may help. Changes that aren't
// known may help any.
func (m *Machine) MayHelp(known bool, changes []cluster.Change) func(*engine.Class, bool) bool {
	return func(class *engine.Class, everywhere bool) bool {
		return !known || m.scheduler.Engine(class.Pod()).MayHelpMembers(class, everywhere, changes)
	}
}

// Try decides on a group that was popped.
func (m *Machine) Try(t *lifecycle.Turn, g *queue.Group) {
	items := slices.Clone(g.Members())
	object := t.State.PodGroup(g.Key())
	if object == nil || len(items) == 0 { // it is checked in the next Step
		t.Queue.RejectGroup(t.Now, g, nil)
		return
	}
	r := m.request(object, g, func(i int) scheduler.Member {
		return scheduler.Member{Pod: items[i].Pod(), Class: m.members.Class(items[i])}
	})
	seen := t.State.Head()
	d := m.scheduler.DecideGroup(&r)
	m.note(t, g.Key(), items, &d, seen)
	if len(d.Places) > 0 {
		m.gangRests(t, object.UID, "its members have nodes")
	} else {
		m.gangWaits(t, object, items[0].Pod())
	}
	m.preempts(t, object, &r, &d)
	m.carryOut(t, g, items, &r, &d, seen)
	m.decided(t, object, &d)
}

// request returns what is asked about a group whose PodGroup is given, and of which members wait.
func (m *Machine) request(g *schedulingv1beta1.PodGroup, waiting *queue.Group, member func(int) scheduler.Member) scheduler.GroupRequest {
	key := cluster.PodGroupKey{Namespace: g.Namespace, Name: g.Name}
	r := scheduler.GroupRequest{Members: make([]scheduler.Member, len(waiting.Members())), Placed: m.state.PlacedMembers(key),
		MinCount: MinCount(g), Topology: cluster.RequiredTopology(g), Attempt: waiting.Item().Attempts()}
	if g.Annotations[cluster.TopologyLevelsAnnotation] != "" {
		r.Levels, _ = cluster.TopologyLevels(g) // what can't be read keeps the group from being tried
	}
	for i := range r.Members {
		r.Members[i] = member(i)
	}
	return r
}

// carryOut does what follows from a decision that has seen the state's changes up to seen.
func (m *Machine) carryOut(t *lifecycle.Turn, g *queue.Group, items []*queue.Item, r *scheduler.GroupRequest, d *scheduler.GroupDecision, seen cluster.Seq) {
	placed := make([]*queue.Item, len(d.Places))
	for i := range d.Places {
		placed[i] = items[d.Places[i].Member]
	}
	t.Queue.MembersPlaced(g, placed)
	if len(placed) < len(items) {
		m.wait(t, g, items, r, d)
	}
	t.Ready.Binds, t.Ready.Decisions = slices.Grow(t.Ready.Binds, len(placed)), slices.Grow(t.Ready.Decisions, len(placed))
	for i, item := range placed {
		m.members.Assumed(item, d.Places[i].Choice.Writes)
	}
	m.toCome = len(placed)
	for i, item := range placed {
		at := &d.Places[i]
		t.Queue.SetClass(item, at.Class)
		m.members.Placed(t, item, scheduler.Decision{Class: at.Class, Node: t.State.Node(at.Choice.Node), Score: at.Choice.Score,
			Writes: at.Choice.Writes, Breakdown: engine.Breakdown{RunnerUp: cluster.NoNode}}, seen)
	}
	m.toCome = 0
}

// maxWaits is how many classes a group waits for; one with members of more is tried after any change,
// and so is one for whose member an attempt ended with an error.
const maxWaits = 16

// wait has the members wait that have no place.
func (m *Machine) wait(t *lifecycle.Turn, g *queue.Group, items []*queue.Item, r *scheduler.GroupRequest, d *scheduler.GroupDecision) {
	var waits []queue.GroupWait
	failed := false // what may help a member then isn't known
	for i, why := range d.Why {
		if why == "" {
			continue
		}
		failed = failed || m.scheduler.Engine(items[i].Pod()).Failure(r.Members[i].Class) != ""
		w := queue.GroupWait{Class: r.Members[i].Class, Everywhere: d.Rejected[r.Members[i].Class]}
		if len(waits) <= maxWaits && !slices.Contains(waits, w) {
			waits = append(waits, w)
		}
		m.members.Waits(t, items[i], why)
	}
	if len(waits) > maxWaits || failed {
		waits = nil
	}
	t.Queue.RejectGroup(t.Now, g, waits)
	if len(d.Places) == 0 {
		var asks *weighing.Result
		if d.Asks() {
			asks = d.Weighed
		}
		m.members.Asks(t, items, asks)
	}
	m.freeDevices(t, r, d)
}

// freeDevices looks for members without a place whose claims have devices where no member can be, as an
// attempt to bind them leaves them that was interrupted: those of maxWaits classes at most.
func (m *Machine) freeDevices(t *lifecycle.Turn, r *scheduler.GroupRequest, d *scheduler.GroupDecision) {
	var seen []*engine.Class
	for i, why := range d.Why {
		p := r.Members[i].Pod
		if why == "" || !t.State.ClaimsDevices(p) {
			continue
		}
		if len(seen) == maxWaits {
			return
		}
		c := m.scheduler.Class(p)
		if slices.Contains(seen, c) {
			continue
		}
		if seen = append(seen, c); !m.scheduler.Fits(p, c) {
			m.members.FitsNowhere(t, p, m.scheduler.Diagnose(c))
		}
	}
}

// note enters a decision about a group into the ledger.
func (m *Machine) note(t *lifecycle.Turn, key cluster.PodGroupKey, items []*queue.Item, d *scheduler.GroupDecision, seen cluster.Seq) {
	note := step.Decision{Kind: step.GroupWaits, PodGroup: key.String(), Members: len(items), Profile: items[0].Pod().Object.Spec.SchedulerName, Position: uint64(seen), Reason: d.Message}
	if len(d.Places) > 0 {
		note.Kind, note.Reason = step.GroupPlaced, fmt.Sprintf("%d of %d members were placed %s", len(d.Places), len(items), d.Search)
		if d.Domain != "" {
			note.Reason += " in " + d.Domain
		}
	}
	if d.Asks() { // of a group that preempts Preempts says it
		note.Weighed = d.Weighed
	}
	if d.Diagnosis != nil {
		note.Rejected = step.WhyRejected(d.Diagnosis)
	}
	t.Decide(note)
}
