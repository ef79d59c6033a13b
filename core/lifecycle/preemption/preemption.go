package preemption

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/engine"
	"github.com/berthproject/berth/core/framework"
	"github.com/berthproject/berth/core/lifecycle"
	"github.com/berthproject/berth/core/queue"
	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/core/weighing"
)

// Pod is a pod's part of the machine, as a preemptor. Its zero value is an idle one.
type Pod struct{ asking *asking }

// asking is a preemption of which not all victims have an outcome.
type asking struct {
	open map[types.UID]bool // victims without an outcome; never empty
	err  error              // the first failure
}

// Asking reports whether victims of the pod have no outcome yet.
func (p *Pod) Asking() bool { return p.asking != nil }

// VictimState is how far a victim is on its way out. The package comment has the
// transitions.
type VictimState uint8

// The states of a victim. One that is gone early isn't among the victims any more.
const (
	Leaving VictimState = iota
	Cancelling
	Asked
	Terminating
)

// String says the state in words.
func (s VictimState) String() string {
	return [...]string{"leaving", "cancelling", "asked", "terminating"}[s]
}

// victim is a pod on its way out.
type victim struct {
	by        types.UID // its preemptor, a pod or a pod group, which may be gone
	preemptor step.PodName
	scheduler string // the preemptor's schedulerName
	state     VictimState
	draws     []budgetKey // the disruption budgets that it draws down
}

// goneEarly is a victim that went before the call that asked it to leave was answered.
type goneEarly struct {
	by    types.UID
	event step.Event // to be written if the call was carried out
}

// Bindings is what preemption needs of pods on their way to a binding.
type Bindings interface {
	// Preempt ends the wait of a pod for permission to be bound, and reports whether it
	// waits. It leaves its node later in the same Step.
	Preempt(victim types.UID) bool
	// Cancel takes back the bind of a pod, and reports whether one is under way.
	Cancel(t *lifecycle.Turn, victim types.UID) bool
}

// Nominations is what preemption needs of nominations.
type Nominations interface {
	// WithdrawFrom takes back the nomination of a queued pod.
	WithdrawFrom(t *lifecycle.Turn, item *queue.Item)
}

// Scheduler is what preemption asks of the scheduler about pods in the queue.
type Scheduler interface {
	Class(*cluster.Pod) *engine.Class
	Fits(*cluster.Pod, *engine.Class) bool
	WaitsInVain(*cluster.Pod, *engine.Class) bool
	Diagnose(*engine.Class) *engine.Diagnosis
}

// Machine follows all preemptors and victims. Only the core's goroutine may call it.
type Machine struct {
	pods        lifecycle.Pods[Pod]
	bindings    Bindings
	nominations Nominations
	groups      Groups
	scheduler   Scheduler
	victims     map[types.UID]*victim
	early       map[types.UID]goneEarly
	budgets     budgets
	// released are pods that are to be looked at when all inputs of the Step are in: the
	// victims of some have all had an outcome, others waited for a victim that stays.
	released []*queue.Item
	counts   Counts
}

// Counts are what was decided so far.
type Counts struct {
	Preemptions int // decisions that others leave a node for a pod
	Victims     int // of them, in all
	Violations  int // of disruption budgets, by these victims
	// GroupViolations are those of Violations where a pod group preempted.
	GroupViolations int
}

var _ lifecycle.Machine = (*Machine)(nil)

// New returns a machine without a victim.
func New(scheduler Scheduler, pods lifecycle.Pods[Pod], bindings Bindings, nominations Nominations, groups Groups) *Machine {
	return &Machine{pods: pods, bindings: bindings, nominations: nominations, groups: groups, scheduler: scheduler,
		victims: map[types.UID]*victim{}, early: map[types.UID]goneEarly{}, budgets: budgets{}}
}

// Victim reports whether a pod was asked to leave its node for another, and is there still.
func (m *Machine) Victim(uid types.UID) bool { return m.victims[uid] != nil }

// VictimsOf returns the pods that a preemptor waits for, in the order of their UIDs.
func (m *Machine) VictimsOf(preemptor types.UID) (out []types.UID) {
	for uid, v := range m.victims {
		if v.by == preemptor {
			out = append(out, uid)
		}
	}
	slices.Sort(out)
	return out
}

// EachVictim calls f for each pod that was asked to leave its node for another and is there
// still, in no particular order.
func (m *Machine) EachVictim(f func(victim, preemptor types.UID)) {
	for uid, v := range m.victims {
		f(uid, v.by)
	}
}

// Counts returns what was decided so far.
func (m *Machine) Counts() Counts { return m.counts }

// Preempt has victims leave a node for a pod, which the decision has nominated to it. The
// nominations of less important pods to that node are taken back: there may be no room for
// them any more, and they are tried elsewhere at once. w is what else the pod could have
// done; nil for nothing.
func (m *Machine) Preempt(t *lifecycle.Turn, p *Pod, preemptor *cluster.Pod, c *engine.Candidate, w *weighing.Result) {
	Note(t, preemptor, c, w)
	m.withdrawLessImportant(t, t.State.Node(c.Node), preemptor.Priority)
	obj := preemptor.Object
	if open := m.leave(t, &c.Victims, step.PodName{UID: obj.UID, Namespace: obj.Namespace, Name: obj.Name}, obj.Spec.SchedulerName); len(open) > 0 {
		p.asking = &asking{open: open}
	}
}

// leave has victims leave their nodes, and returns those of which no outcome is known.
func (m *Machine) leave(t *lifecycle.Turn, v *framework.Victims, by step.PodName, scheduler string) map[types.UID]bool {
	m.counts.Preemptions++
	m.counts.Victims += len(v.Pods)
	m.counts.Violations += v.Violations
	if by.PodGroup {
		m.counts.GroupViolations += v.Violations
	}
	open := map[types.UID]bool{}
	told := map[cluster.PodGroupKey]bool{}
	for _, p := range v.Pods {
		if key, whole := t.State.GoesWhole(p); whole && !told[key] {
			told[key] = true
			m.groups.Disrupted(t, key, message(scheduler, by))
		}
		if p.Object.DeletionTimestamp != nil || m.victims[p.UID] != nil {
			continue // it is on its way out already
		}
		open[p.UID] = true
		m.victims[p.UID] = &victim{by: by.UID, preemptor: by, scheduler: scheduler, draws: m.budgets.draw(t.State, p)}
		m.start(t, p)
	}
	return open
}

// Note enters into the ledger that others are to leave a node for a pod.
func Note(t *lifecycle.Turn, preemptor *cluster.Pod, c *engine.Candidate, w *weighing.Result) {
	t.Decide(preempts(t.State, &c.Victims, step.Decision{Pod: preemptor.Name(), Node: t.State.Node(c.Node).Name, Weighed: w}))
}

// preempts returns a decision that victims leave.
func preempts(s *cluster.State, v *framework.Victims, d step.Decision) step.Decision {
	d.Kind, d.Victims, d.Disruptions = step.Preempts, make([]string, len(v.Pods)), disruptions(s, v)
	for i, p := range v.Pods {
		d.Victims[i] = p.Name()
	}
	d.Reason = fmt.Sprintf("preempting %d pod(s) of lower priority, %d of them in violation of a disruption budget", len(v.Pods), v.Violations)
	return d
}

// start has a new victim leave, in the way that its binding needs.
func (m *Machine) start(t *lifecycle.Turn, pod *cluster.Pod) {
	switch v := m.victims[pod.UID]; {
	case m.bindings.Preempt(pod.UID):
		v.state = Leaving
	case m.bindings.Cancel(t, pod.UID):
		v.state = Cancelling
	default:
		m.ask(t, pod)
	}
}

// ask has the edge ask a victim to leave.
func (m *Machine) ask(t *lifecycle.Turn, pod *cluster.Pod) {
	v := m.victims[pod.UID]
	v.state = Asked
	t.Ready.Preemptions = append(t.Ready.Preemptions, step.Preemption{
		UID: pod.UID, Namespace: pod.Object.Namespace, Name: pod.Object.Name, Node: nodeOf(t.State, pod.UID), By: v.by, ByGroup: v.preemptor.PodGroup, Generation: pod.Object.Generation,
		Message: message(v.scheduler, v.preemptor)})
}

func nodeOf(state *cluster.State, uid types.UID) string {
	if n := state.NodeOf(uid); n != nil {
		return n.Name
	}
	return ""
}

func (m *Machine) withdrawLessImportant(t *lifecycle.Turn, node *cluster.Node, priority int32) {
	for _, pod := range slices.Clone(node.Nominated) {
		p, item := m.pods.Get(pod.UID), t.Queue.Get(pod.UID)
		if pod.Priority >= priority || p == nil || item == nil {
			continue
		}
		m.nominations.WithdrawFrom(t, item)
		if p.asking == nil {
			t.Queue.Activate(item)
		}
	}
}

// PreemptionDone takes the outcome of asking a victim to leave. One that refused stays: those who
// waited for it are looked at again.
func (m *Machine) PreemptionDone(t *lifecycle.Turn, in step.PreemptionDone) {
	v := m.victims[in.UID]
	if v == nil || v.by != in.By {
		if gone, ok := m.early[in.UID]; ok && gone.by == in.By {
			delete(m.early, in.UID)
			if in.Err == nil {
				t.Emit(gone.event)
			}
		}
		return
	}
	if v.state == Asked {
		v.state = Terminating
	}
	if in.Err != nil {
		if v.preemptor.PodGroup {
			m.groups.VictimStays(t, cluster.PodGroupKey{Namespace: v.preemptor.Namespace, Name: v.preemptor.Name})
		}
		m.victimStays(t, in.UID)
		m.released = append(m.released, preemptorsWaitingFor(t, in.UID)...)
	} else if pod := t.State.PodOn(in.UID); pod != nil {
		t.Emit(preempted(t.State, pod, v, ""))
	}
	m.finish(t, in.UID, in.By, in.Err)
}

// preemptorsWaitingFor returns the pods that are nominated to a victim's node: they may
// have assumed that it would terminate.
func preemptorsWaitingFor(t *lifecycle.Turn, victim types.UID) (out []*queue.Item) {
	n := t.State.NodeOf(victim)
	if n == nil {
		return nil
	}
	for _, pod := range n.Nominated {
		if item := t.Queue.Get(pod.UID); item != nil {
			out = append(out, item)
		}
	}
	return out
}

// preempted returns the event about a victim, which the preemptor's scheduler reports and which is
// related to the preemptor; how is added to it.
func preempted(state *cluster.State, pod *cluster.Pod, v *victim, how string) step.Event {
	node := nodeOf(state, pod.UID)
	if v.preemptor.PodGroup {
		node = "cluster" // as kube-scheduler names it
	}
	out := step.SchedulingEvent(v.scheduler, pod.Object, "Preempted", "Preempting", fmt.Sprintf("Preempted by %s %s on node %s%s", kind(v.preemptor), v.by, node, how))
	out.Preemptor = v.preemptor
	return out
}

// BeforeBindUndone is called before a pod whose bind is taken back leaves its node: of a victim
// an event says that it was preempted before it ran.
func (m *Machine) BeforeBindUndone(t *lifecycle.Turn, pod *cluster.Pod) {
	if v := m.victims[pod.UID]; v != nil {
		t.Emit(preempted(t.State, pod, v, " (in memory)"))
	}
}

// BeforePodRemoved is called before a deleted pod leaves the state. If the pod is a victim, it is
// reported as preempted only when the outcome of its eviction is known.
func (m *Machine) BeforePodRemoved(t *lifecycle.Turn, uid types.UID) {
	if v, pod := m.victims[uid], t.State.PodOn(uid); v != nil && v.state == Asked && pod != nil {
		m.early[uid] = goneEarly{v.by, preempted(t.State, pod, v, "")}
	}
}

// PodRemoved records that a pod has left the cluster, or its node.
func (m *Machine) PodRemoved(t *lifecycle.Turn, uid types.UID) {
	if v := m.victims[uid]; v != nil {
		m.budgets.gone(t.State, t.Now, v.draws, uid)
		delete(m.victims, uid)
		m.finish(t, uid, v.by, nil)
	}
}

// victimStays records that a victim stays.
func (m *Machine) victimStays(t *lifecycle.Turn, victim types.UID) {
	m.budgets.giveBack(t.State, m.victims[victim].draws, victim)
	delete(m.victims, victim)
}

// PodBound records that the API has a pod on its node: if it is a victim, its bind could
// not be taken back.
func (m *Machine) PodBound(t *lifecycle.Turn, pod *cluster.Pod) {
	if v := m.victims[pod.UID]; v != nil && v.state == Cancelling {
		m.ask(t, pod)
	}
}

// finish ends a preemption when the victim was the last one without an outcome: the pod
// waits for its node, or, when something failed, is tried again after a while.
func (m *Machine) finish(t *lifecycle.Turn, victim, by types.UID, err error) {
	p := m.pods.Get(by)
	if p == nil || p.asking == nil || !p.asking.open[victim] {
		return
	}
	a := p.asking
	delete(a.open, victim)
	if a.err == nil {
		a.err = err
	}
	if len(a.open) > 0 {
		return
	}
	p.asking = nil
	item := t.Queue.Get(by)
	if item == nil || item.Stage() != queue.Held {
		return
	}
	if a.err == nil {
		m.released = append(m.released, item)
		return
	}
	t.Decide(step.Decision{Kind: step.PreemptionFailed, Pod: item.Pod().Name(), Node: t.State.NominatedTo(by), Reason: a.err.Error()})
	m.nominations.WithdrawFrom(t, item)
	t.Queue.Fail(t.Now, item)
}

// Advance handles the pods that were released. It must be called after the queue has handled
// all changes. A held pod that fits now, or none of whose victims is terminating, is tried; any other
// waits with its class. A pod whose nominated node can no longer take it is tried, too.
func (m *Machine) Advance(t *lifecycle.Turn) {
	m.budgets.expire(t.State, t.Now)
	for _, item := range m.released {
		p := m.pods.Get(item.Pod().UID)
		switch {
		case item.Stage() == queue.Unschedulable && item.Nominated() && m.scheduler.WaitsInVain(item.Pod(), item.Class()):
			t.Queue.WakePod(t.Now, item)
		case item.Stage() == queue.Held && p != nil && p.asking == nil:
			m.release(t, item)
		}
	}
	m.released = m.released[:0]
}

func (m *Machine) release(t *lifecycle.Turn, item *queue.Item) {
	class := m.scheduler.Class(item.Pod())
	t.Queue.SetClass(item, class)
	if m.scheduler.Fits(item.Pod(), class) || m.scheduler.WaitsInVain(item.Pod(), class) {
		t.Queue.ReleaseToTry(t.Now, item)
		return
	}
	d := t.Queue.StillRejected(class)
	if d == nil {
		d = m.scheduler.Diagnose(class)
	}
	t.Queue.ReleaseToWait(t.Now, item, d)
}

// NextWake returns when a victim that is gone no longer draws a disruption budget down. All else comes
// with inputs: what is released in a Step after Advance comes with room that has come free, for which
// the next Step comes at once.
func (m *Machine) NextWake() time.Time { return m.budgets.due() }

// Unsettled names preemptors and victims without an outcome, and victims that are still
// there.
func (m *Machine) Unsettled() (out []string) {
	for uid, p := range m.pods.All() {
		if p.asking != nil {
			out = append(out, fmt.Sprintf("pod %s is held for victims without an outcome: %v", uid, slices.Sorted(maps.Keys(p.asking.open))))
		}
	}
	for _, uid := range slices.Sorted(maps.Keys(m.victims)) {
		out = append(out, fmt.Sprintf("pod %s was to leave for %s, and is still there: %s", uid, m.victims[uid].by, m.victims[uid].state))
	}
	for _, uid := range slices.Sorted(maps.Keys(m.early)) {
		out = append(out, fmt.Sprintf("pod %s has left, and the call that asked it to has no answer", uid))
	}
	return out
}

// Invariants says what doesn't hold of the machine's own fields: a preemptor that is
// asking waits for victims, each of which is on its way out for it, and budgets are drawn down
// by victims.
func (m *Machine) Invariants() (out []string) {
	out = m.budgets.invariants(m.victims)
	for uid, p := range m.pods.All() {
		if p.asking == nil {
			continue
		}
		if len(p.asking.open) == 0 {
			out = append(out, fmt.Sprintf("pod %s is held for victims, and none is without an outcome", uid))
		}
		for _, victim := range slices.Sorted(maps.Keys(p.asking.open)) {
			switch v := m.victims[victim]; {
			case v == nil || v.by != uid:
				out = append(out, fmt.Sprintf("pod %s is held for pod %s, which isn't its victim", uid, victim))
			case v.state == Terminating:
				out = append(out, fmt.Sprintf("pod %s is held for pod %s, which is terminating", uid, victim))
			}
		}
	}
	return out
}

// InvariantsIn says what doesn't hold between the machine and the queue: a pod that is
// held is asking, or was released and will be looked at.
func (m *Machine) InvariantsIn(q *queue.Queue) (out []string) {
	for uid, p := range m.pods.All() {
		item := q.Get(uid)
		if item != nil && item.Stage() == queue.Held && p.asking == nil && !slices.Contains(m.released, item) {
			out = append(out, fmt.Sprintf("pod %s is held, and nothing will release it", uid))
		}
	}
	return out
}
