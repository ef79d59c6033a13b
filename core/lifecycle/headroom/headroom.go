package headroom

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/berthproject/berth/core/autoscalingapi"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/engine"
	"github.com/berthproject/berth/core/lifecycle"
	"github.com/berthproject/berth/core/step"
)

// This file holds the machine: which objects ask for headroom, and when each is looked at.
// standins.go has the stand-ins, set.go the sets of them, and closest.go finds the one whose
// room a pod has taken; buffers.go and requests.go have what each kind of object asks for,
// status.go what is written of it.

// Scheduler is what headroom asks of the scheduler.
type Scheduler interface {
	Responsible(*cluster.Pod) bool
	Engine(*cluster.Pod) *engine.Engine
	FitsNominated(*cluster.Pod, *engine.Class) bool
}

// Records are the core's records of pods, in which stand-ins are like any other.
type Records interface {
	lifecycle.Pods[Pod]
	// Queue makes a record of a new stand-in and queues it.
	Queue(*lifecycle.Turn, *cluster.Pod)
	// Drop forgets a stand-in: it leaves the queue and the state.
	Drop(types.UID)
}

// Machine keeps all headrooms. Only the core's goroutine may call it.
type Machine struct {
	records   Records
	scheduler Scheduler
	asks      map[key]*ask
	byUID     map[types.UID]*ask
	inPlan    *ask                // the atomic request for which the last plan was asked; nil for none
	watch     lifecycle.RoomWatch // lostRoom has looked at the changes up to here
	refused   int
	looked    int // how many sets and stand-ins were looked at for pods that consume a booking, for tests
}

// key names an object that asks for headroom.
type key struct {
	kind            cluster.ObjectKind
	namespace, name string
}

// String names the object as the ledger does.
func (k key) String() string {
	kind := "CapacityBuffer"
	if k.kind == cluster.ProvisioningRequestKind {
		kind = "ProvisioningRequest"
	}
	return kind + " " + k.namespace + "/" + k.name
}

// ask is what an object asks for, and what it has.
type ask struct {
	key
	uid     types.UID
	dirty   bool      // the object, or one that it refers to, has changed
	wake    time.Time // when it is to be looked at though nothing has changed; zero for never
	problem string    // why it can't be made out, "" when it can
	sets    []*set
	missing string // why no node group would help a stand-in that waits, as the last plan has it
	stale   bool   // its status must be written again: stand-ins have changed
	report  report

	// Of a ProvisioningRequest:

	attempts int // since the process began
	// draft are the stand-ins of an atomic request for which nodes are to be bought: they
	// have no records. Nil when it waits for no plan.
	draft []*set
	// consumed are the pods that have used up a stand-in, with the number of its set, -1 for
	// none: those that were placed, and those that wait in its stead.
	consumed map[types.UID]int
}

var _ lifecycle.Machine = (*Machine)(nil)

// New returns a machine that keeps no room.
func New(scheduler Scheduler, records Records) *Machine {
	return &Machine{records: records, scheduler: scheduler, asks: map[key]*ask{}, byUID: map[types.UID]*ask{}}
}

// ObjectSet records an object that came or changed, when the state has it.
func (m *Machine) ObjectSet(t *lifecycle.Turn, o cluster.Object) {
	k := key{cluster.KindOf(o), o.GetNamespace(), o.GetName()}
	switch k.kind {
	case cluster.BufferKind, cluster.ProvisioningRequestKind:
		a := m.asks[k]
		if a != nil && a.uid != o.GetUID() {
			m.forget(t, a)
			a = nil
		}
		if a == nil {
			a = &ask{key: k, uid: o.GetUID()}
			m.asks[k], m.byUID[a.uid] = a, a
		}
		a.report.adopt(o)
		a.dirty = true
	case cluster.PodTemplateKind, cluster.ScalableKind:
		m.referredChanged(k.namespace)
	}
}

// ObjectGone records an object that was deleted.
func (m *Machine) ObjectGone(t *lifecycle.Turn, kind cluster.ObjectKind, namespace, name string) {
	switch kind {
	case cluster.BufferKind, cluster.ProvisioningRequestKind:
		if a := m.asks[key{kind, namespace, name}]; a != nil {
			m.forget(t, a)
		}
	case cluster.PodTemplateKind, cluster.ScalableKind:
		m.referredChanged(namespace)
	}
}

func (m *Machine) referredChanged(namespace string) {
	for k, a := range m.asks { // in any order
		if k.namespace == namespace {
			a.dirty = true
		}
	}
}

// forget ends what an object has that is gone.
func (m *Machine) forget(t *lifecycle.Turn, a *ask) {
	m.empty(t, a)
	delete(m.asks, a.key)
	delete(m.byUID, a.uid)
}

// sorted returns the objects that ask for headroom in the order of their names.
func (m *Machine) sorted() []*ask {
	return slices.SortedFunc(maps.Values(m.asks), func(a, b *ask) int {
		return cmp.Or(cmp.Compare(a.kind, b.kind), strings.Compare(a.namespace, b.namespace), strings.Compare(a.name, b.name))
	})
}

// Advance looks at the stand-ins of nodes that have changed, and at the objects that have
// changed or whose time has come. It is called before the queue handles changes:
// other pods may be admitted, stand-ins are queued, and a stand-in that regains its room regains it
// before others are tried.
func (m *Machine) Advance(t *lifecycle.Turn) {
	m.lostRoom(t)
	if len(m.asks) == 0 {
		return
	}
	for _, a := range m.sorted() {
		if !a.dirty && (a.wake.IsZero() || t.Now.Before(a.wake)) {
			continue
		}
		a.dirty, a.wake, a.stale = false, time.Time{}, true
		switch o := t.State.Object(a.kind, a.namespace, a.name).(type) {
		case *autoscalingapi.CapacityBuffer:
			m.advanceBuffer(t, a, o)
		case *autoscalingapi.ProvisioningRequest:
			m.advanceRequest(t, a, o)
		}
	}
}

// refuse records why an object's headroom can't be made out, "" when it can.
func (m *Machine) refuse(t *lifecycle.Turn, a *ask, why string) {
	if a.problem == why {
		return
	}
	if a.problem = why; why != "" {
		m.refused++
		t.Decide(step.Decision{Kind: step.HeadroomRefused, Headroom: a.String(), Reason: why})
	}
}

// Refused returns how often an object's headroom couldn't be made out.
func (m *Machine) Refused() int { return m.refused }

// PlanMade says that a plan was made: what the last one had to say about stand-ins is old.
func (m *Machine) PlanMade() {
	for _, a := range m.asks { // in any order
		a.stale = a.stale || a.missing != ""
		a.missing = ""
	}
}

// NoHelp takes why no node group would help a stand-in, as a plan has it.
func (m *Machine) NoHelp(pod *cluster.Pod, why string) {
	if a := m.byUID[types.UID(pod.StandIn)]; a != nil {
		a.missing, a.stale = why, true
	}
}

// StatusWritten takes the outcome of a write.
func (m *Machine) StatusWritten(t *lifecycle.Turn, in step.StatusWritten) {
	if a := m.byUID[in.UID]; a != nil {
		a.report.done(t.Now, in.Err)
	}
}

// NextWake returns when an object is to be looked at next, or a status to be written.
func (m *Machine) NextWake() (next time.Time) {
	for _, a := range m.asks { // in any order
		next = lifecycle.Earliest(next, lifecycle.Earliest(a.wake, a.report.next()))
	}
	return next
}

// Unsettled names the objects with a status that isn't written.
func (m *Machine) Unsettled() (out []string) {
	for _, a := range m.sorted() {
		if a.report.owed || a.report.unwritten {
			out = append(out, fmt.Sprintf("the status of %s is to be written", a))
		}
	}
	return out
}

// Invariants says what doesn't hold of the machine's own fields: a stand-in is of the set
// that it is in, and has a record.
func (m *Machine) Invariants() (out []string) {
	known := map[types.UID]bool{}
	for _, a := range m.sorted() {
		if m.byUID[a.uid] != a {
			out = append(out, fmt.Sprintf("%s isn't known by its UID", a))
		}
		for _, s := range a.sets {
			for x := s.oldest; x != nil; x = x.newer {
				known[x.pod.UID] = true
				if p := m.records.Get(x.pod.UID); types.UID(x.pod.StandIn) != a.uid || p == nil || p.self != x {
					out = append(out, fmt.Sprintf("%s stands in for %q, is in a set of %s, has a record: %t", x.pod.UID, x.pod.StandIn, a, p != nil))
				}
			}
		}
	}
	for uid, p := range m.records.All() {
		if node := p.Node(); node != "" && !known[uid] {
			out = append(out, fmt.Sprintf("room is kept on %s for %s, which no object asks for", node, uid))
		}
	}
	return out
}

// InvariantsIn says what doesn't hold between the machine and the state: held stand-ins are
// nominated where they are held.
func (m *Machine) InvariantsIn(state *cluster.State) (out []string) {
	for uid, p := range m.records.All() {
		if node, at := p.Node(), state.NominatedTo(uid); node != "" && at != node {
			out = append(out, fmt.Sprintf("room is kept on %s for %s, and the state says %q", node, uid, at))
		}
	}
	return out
}

// Knows reports whether a stand-in keeps room for a headroom that is there.
func (m *Machine) Knows(state *cluster.State, standIn *cluster.Pod) bool {
	return m.records.Get(standIn.UID) != nil && state.Headroom(standIn.StandIn) != nil
}
