package binding

import (
	"fmt"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/framework"
	"github.com/berthproject/berth/core/lifecycle"
	"github.com/berthproject/berth/core/queue"
	"github.com/berthproject/berth/core/step"
)

// State is how far a pod is on its way to a binding. The package comment has the
// transitions.
type State uint8

// The states.
const (
	None State = iota
	Waiting
	Binding
	Bound
)

// String says the state in words.
func (s State) String() string { return [...]string{"none", "waiting", "binding", "bound"}[s] }

// Pod is a pod's part of the machine. Its zero value is a pod without a node.
type Pod struct {
	state State
	pod   *cluster.Pod // as the API had it last; nil in state none
	node  string       // "" in state none
	// reserved is how many of the profile's Reservers, from the first on, keep something
	// for the pod.
	reserved int
	// writes are what was assumed of objects for it: they are written before the bind.
	writes []cluster.ObjectChange
	wait   *wait // set in state waiting
}

// State returns how far the pod is.
func (p *Pod) State() State { return p.state }

// Node returns the node that the pod was given, "" in state none.
func (p *Pod) Node() string { return p.node }

// Update records how the API has a pod that isn't in state none.
func (p *Pod) Update(pod *cluster.Pod) {
	if p.state != None {
		p.pod = pod
	}
}

// Profiles finds the plugins of a pod.
type Profiles interface {
	Profile(pod *cluster.Pod) *framework.Profile
}

// Others are those who have to know when a node is taken away from a pod, and when it takes a
// while until the pod is bound there.
type Others interface {
	// SlowBindBegun is called when the pod's binding begins with something slow.
	SlowBindBegun(t *lifecycle.Turn, pod *cluster.Pod, node string)
	// BeforeNodeLost is called before the pod leaves the node in the state.
	BeforeNodeLost(t *lifecycle.Turn, pod *cluster.Pod)
	// NodeLost is called when nothing is kept for the pod any more, before it backs off:
	// reason and message are those of its condition.
	NodeLost(t *lifecycle.Turn, item *queue.Item, reason, message string)
	// BindFailed is called when a bind has failed, once the pod is off the node and backs off.
	BindFailed(t *lifecycle.Turn, item *queue.Item, node string)
	// PodBackedOff is called last.
	PodBackedOff(t *lifecycle.Turn, pod *cluster.Pod)
}

// Machine follows all pods that have a node and aren't shown there. Only the core's
// goroutine may call it.
type Machine struct {
	pods     lifecycle.Pods[Pod]
	profiles Profiles
	others   Others
	// waiting are the waits of the pods in state waiting, in the order in which they began, and ended
	// others; over are those of them that resolve is to end, and members those of members of pod groups.
	waiting []*wait
	ended   int
	begun   uint64
	over    waits
	members map[cluster.PodGroupKey]*memberWaits
	looked  int // how many waits were looked at to end some, for tests
	assumed assumptions
	claims  claims
	// freed is when a wait for permission ended without one since Advance last ran, zero
	// for not: the pod's room is free then, and the queue wasn't asked about that yet.
	freed    time.Time
	failures int
}

var _ lifecycle.Machine = (*Machine)(nil)

// New returns a machine that follows no pod.
func New(profiles Profiles, pods lifecycle.Pods[Pod], others Others) *Machine {
	return &Machine{pods: pods, profiles: profiles, others: others, assumed: assumptions{}, claims: newClaims()}
}

// PodPlaced takes over a pod that a decision has placed on a node in the state: it is
// reserved for, asks for permission, and is bound, unless a plugin is against it or has
// it wait. What was assumed of objects for it has been told before (Assume).
func (m *Machine) PodPlaced(t *lifecycle.Turn, p *Pod, item *queue.Item, n *cluster.Node) {
	pod := item.Pod()
	p.state, p.pod, p.node = Binding, pod, n.Name
	profile := m.profiles.Profile(pod)
	bind := step.Bind{UID: pod.UID, Namespace: pod.Object.Namespace, Name: pod.Object.Name, Node: n.Name,
		Profile: pod.Object.Spec.SchedulerName, Attempts: item.Attempts() + 1, Queued: item.Queued(),
		Extender: profile.ExtenderBinds(pod.Object)}
	if t.State.TakesObjects(pod) {
		for _, w := range p.writes {
			bind.Writes = append(bind.Writes, w.New)
		}
		if len(pod.Claims) > 0 {
			bind.Claims, bind.Timeout = unboundClaims(t.State, pod), profile.BindTimeout
		}
		if bind.DeviceClaims, bind.ExtendedResources = m.claims.deviceClaims(pod, n, t.State, profile.Claimer()); len(bind.DeviceClaims) > 0 {
			bind.DeviceTimeout = profile.DeviceBindTimeout
		}
	}
	m.admit(t, p, n, profile, bind)
	m.resolve(t)
}

// Assume remembers what a decision has changed in objects for a pod. When one has placed several, they
// may share objects: then what was assumed for each is told before PodPlaced of any, in the order in which
// they were placed.
func (m *Machine) Assume(state *cluster.State, p *Pod, pod *cluster.Pod, writes []cluster.ObjectChange) {
	p.writes = nil
	for _, w := range writes {
		if cluster.KindOf(w.New) == cluster.ResourceClaimKind {
			m.claims.add(pod.UID, w)
		} else {
			p.writes = append(p.writes, w)
		}
	}
	p.writes = append(p.writes, m.assumed.volumesOf(state, pod)...)
	m.assumed.add(p.writes)
}

// post hands out the bind of a pod.
func (m *Machine) post(t *lifecycle.Turn, bind step.Bind) {
	m.claims.posted(bind.UID)
	t.Ready.Binds = append(t.Ready.Binds, bind)
}

// admit asks the profile's plugins about a pod that was given a node.
func (m *Machine) admit(t *lifecycle.Turn, p *Pod, n *cluster.Node, profile *framework.Profile, bind step.Bind) {
	for _, x := range profile.Reservers {
		if why := x.Reserve(p.pod, n); why != nil {
			m.refuse(t, p, why)
			return
		}
		p.reserved++
	}
	var votes []vote
	for _, x := range profile.Permitters {
		v := x.Permit(p.pod, n, waitingPods{m})
		if v.Reason != nil {
			m.refuse(t, p, v.Reason)
			return
		}
		if v.Wait > 0 {
			votes = append(votes, vote{x.Name(), t.Now.Add(min(v.Wait, framework.MaxPermitWait))})
		}
	}
	if len(votes) > 0 || slow(&bind) {
		m.others.SlowBindBegun(t, p.pod, p.node)
	}
	if len(votes) == 0 {
		m.post(t, bind)
		return
	}
	m.begin(&wait{p: p, bind: bind, since: t.Now, votes: votes})
	t.Decide(step.Decision{Kind: step.Permitting, Pod: p.pod.Name(), Node: p.node, Reason: fmt.Sprintf("waiting for permit plugins %v", p.wait.Pending())})
}

// slow reports whether others are waited for before a pod is bound: objects are written for it and
// its claims be bound by controllers, its devices be made ready, or an extender binds it.
// kube-scheduler takes all but the last for slow (PreBindPreFlight).
func slow(bind *step.Bind) bool {
	return len(bind.Writes)+len(bind.Claims)+len(bind.DeviceClaims) > 0 || bind.Extender
}

// refuse takes the node away from a pod that a plugin is against.
func (m *Machine) refuse(t *lifecycle.Turn, p *Pod, why *framework.Reason) {
	message := ""
	if len(why.Messages) > 0 {
		message = why.Messages[0]
	}
	m.unplace(t, p, step.Refused, v1.PodReasonUnschedulable, unavailable(message), fmt.Sprintf("rejected by plugin %s: %s", why.Plugin, message))
}

// unavailable says a rejection after the choice of a node as kube-scheduler does: that
// node is all that was left.
func unavailable(why string) string { return fmt.Sprintf("0/1 nodes are available: 1 %s.", why) }

// BindDone takes the outcome of a bind, and reports whether the pod is bound. An outcome of a
// pod that is gone, or whose node was taken away, says nothing.
func (m *Machine) BindDone(t *lifecycle.Turn, in step.BindDone) (bound *cluster.Pod) {
	m.claims.done(t.State, in)
	p := m.pods.Get(in.UID)
	if p == nil || p.state == None {
		return nil
	}
	if in.Err == nil {
		m.PodShown(t, p)
		return p.pod
	}
	m.failures++
	uid, node := p.pod.UID, p.node
	m.unplace(t, p, step.Unplaced, "SchedulerError", fmt.Sprintf("binding failed: %v", in.Err), in.Err.Error())
	if item := t.Queue.Get(uid); item != nil {
		m.others.BindFailed(t, item, node)
	}
	return nil
}

// PodShown records, once, that the API has a pod on the node that it was given. It may
// show the pod before the answer to the bind comes, or after.
func (m *Machine) PodShown(t *lifecycle.Turn, p *Pod) {
	if p.state == Bound {
		return
	}
	if p.state == Waiting { // somebody else has bound it there
		m.endWait(t, p, true)
		m.claims.release(t.State, p.pod.UID)
	}
	p.state, p.reserved = Bound, 0
	for _, x := range m.profiles.Profile(p.pod).PostBinders {
		x.PostBind(p.pod, p.node)
	}
	obj := p.pod.Object
	t.Emit(step.SchedulingEvent(obj.Spec.SchedulerName, obj, "Scheduled", "Binding", fmt.Sprintf("Successfully assigned %s/%s to %s", obj.Namespace, obj.Name, p.node)))
}

// Release lets go of everything that is kept for a pod that is gone, or that somebody else
// has bound to another node than it was given. A bind that is under way is cancelled: it might
// wait for volumes for as long as BindTimeout, and nobody waits for its outcome.
func (m *Machine) Release(t *lifecycle.Turn, p *Pod) {
	if p.state == Binding {
		t.Ready.Cancels = append(t.Ready.Cancels, step.Cancel{UID: p.pod.UID})
	}
	m.unreserve(t, p)
	m.takeBack(t, p)
}

// PodGone lets go of the claims that are held for a pod that is gone. Whether it has a record
// doesn't matter: a pod that was bound has none, and its claims are held until the API shows them.
func (m *Machine) PodGone(t *lifecycle.Turn, uid types.UID) { m.claims.release(t.State, uid) }

// takeBack forgets what was assumed of objects for a pod, and has the state follow.
func (m *Machine) takeBack(t *lifecycle.Turn, p *Pod) {
	m.assumed.takeBack(t.State, p)
	if p.pod != nil {
		m.claims.release(t.State, p.pod.UID)
	}
}

// Cancel takes back the bind of a pod, and reports whether there is one under way. What
// becomes of it is the bind's outcome.
func (m *Machine) Cancel(t *lifecycle.Turn, uid types.UID) bool {
	p := m.pods.Get(uid)
	if p == nil || p.state != Binding {
		return false
	}
	t.Ready.Cancels = append(t.Ready.Cancels, step.Cancel{UID: uid})
	return true
}

// unplace takes the node away from a pod whose bind has failed or isn't to be, and has it
// tried again after a while: what was against it needn't be anything in the cluster, so
// no change of it tells.
func (m *Machine) unplace(t *lifecycle.Turn, p *Pod, kind step.DecisionKind, reason, message, why string) {
	pod := p.pod
	t.Decide(step.Decision{Kind: kind, Pod: pod.Name(), Profile: pod.Object.Spec.SchedulerName, Node: p.node, Reason: why})
	m.others.BeforeNodeLost(t, pod)
	t.State.Remove(pod.UID)
	m.unreserve(t, p)
	m.takeBack(t, p)
	p.state, p.pod, p.node = None, nil, ""
	item := t.Queue.Get(pod.UID)
	t.Queue.SetPod(item, pod)
	m.others.NodeLost(t, item, reason, message)
	t.Queue.Fail(t.Now, item)
	m.others.PodBackedOff(t, pod)
}

// unreserve tells the plugins that nothing comes of the node of a pod.
func (m *Machine) unreserve(t *lifecycle.Turn, p *Pod) {
	m.endWait(t, p, false)
	for p.reserved > 0 {
		p.reserved--
		m.profiles.Profile(p.pod).Reservers[p.reserved].Unreserve(p.pod, p.node, waitingPods{m})
	}
}

// Failures returns how many binds have failed.
func (m *Machine) Failures() int { return m.failures }

// Unsettled names the pods that were given a node and aren't shown there, and the
// objects that were assumed for them.
func (m *Machine) Unsettled() (out []string) {
	for uid, p := range m.pods.All() {
		if p.state != None {
			out = append(out, fmt.Sprintf("pod %s is assumed on %s, and nothing has come of it: %s", uid, p.node, p.state))
		}
	}
	return slices.Concat(out, m.assumed.unsettled(), m.claims.unsettled())
}

// Invariants says what doesn't hold of the machine's own fields between Steps: nothing is
// kept for a pod in state none, the pods that wait are those in state waiting, and each of
// them waits for a plugin.
func (m *Machine) Invariants() (out []string) {
	broken := func(uid types.UID, what string) {
		out = append(out, fmt.Sprintf("pod %s, binding state %s", uid, what))
	}
	waits := map[*wait]bool{}
	for _, w := range m.waiting {
		if !w.lasts() {
			continue
		}
		waits[w] = true
		if w.rejected != "" || len(w.votes) == 0 {
			broken(w.p.pod.UID, "waiting: it waits for nothing: "+strings.Join(w.Pending(), ", ")+w.rejected)
		}
	}
	for uid, p := range m.pods.All() {
		switch {
		case (p.state == None) != (p.node == "") || (p.state == None) != (p.pod == nil):
			broken(uid, fmt.Sprintf("%s: its node is %q", p.state, p.node))
		case p.state == None && (p.reserved > 0 || p.writes != nil):
			broken(uid, fmt.Sprintf("none: %d reservations and %d assumed objects are kept", p.reserved, len(p.writes)))
		case (p.state == Waiting) != (p.wait != nil) || p.wait != nil && !waits[p.wait]:
			broken(uid, fmt.Sprintf("%s: it waits for permission: %t", p.state, p.wait != nil))
		}
		if p.wait != nil {
			delete(waits, p.wait)
		}
	}
	for w := range waits {
		broken(w.p.pod.UID, "waiting: the pod is gone, and waits for permission")
	}
	return append(out, m.claims.invariants()...)
}

// InvariantsIn says what doesn't hold between the machine and the state: a pod that was
// given a node is there, and claims are reserved for those that hold them.
func (m *Machine) InvariantsIn(state *cluster.State) (out []string) {
	for uid, p := range m.pods.All() {
		if p.state == None {
			continue
		}
		i, placed := state.Placed(uid)
		if n := state.Node(i); !placed || n != nil && n.Name != p.node {
			out = append(out, fmt.Sprintf("pod %s was given node %s, and isn't there in the state", uid, p.node))
		}
	}
	return append(out, m.claims.invariantsIn(state)...)
}
