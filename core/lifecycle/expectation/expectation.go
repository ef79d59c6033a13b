// Package expectation follows where another scheduler is expected to put pods. Beside
// one, the autoscaler has to know which pods have no node because there is none for them:
// each pod is decided on as if Berth placed it, and counts as being there until the API
// shows where it is, so that the room on the nodes isn't counted twice.
//
//	state      waits for                          then
//	none       a decision                         expected
//	expected   the pod's update                   the core forgets the pod
//	           a plan, a scan interval later      none: it is decided on anew
//	           another node in the API            none: it is decided on anew
package expectation

import (
	"fmt"
	"time"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/lifecycle"
	"github.com/berthproject/berth/core/queue"
	"github.com/berthproject/berth/core/step"
)

// Pod is a pod's part of the machine. Its zero value is a pod of which nothing is
// expected.
type Pod struct {
	pod   *cluster.Pod // as the API had it last; nil in state none
	last  string       // node where it was expected last; in state expected it is
	since int64        // when it was, in nanoseconds
}

// Node returns the node where the pod is expected, "" for none.
func (p *Pod) Node() string {
	if p.pod == nil {
		return ""
	}
	return p.last
}

// Update records how the API has a pod that is expected somewhere.
func (p *Pod) Update(pod *cluster.Pod) {
	if p.pod != nil {
		p.pod = pod
	}
}

// Nominations is what expectations need of nominations.
type Nominations interface {
	// RenominateFor nominates a pod in the state again, as before it was decided on.
	RenominateFor(t *lifecycle.Turn, pod *cluster.Pod)
}

// Machine follows all pods beside another scheduler. Only the core's goroutine may call
// it.
type Machine struct {
	pods        lifecycle.Pods[Pod]
	nominations Nominations
}

var _ lifecycle.Machine = (*Machine)(nil)

// New returns a machine that expects nothing.
func New(pods lifecycle.Pods[Pod], nominations Nominations) *Machine {
	return &Machine{pods: pods, nominations: nominations}
}

// Expect takes over a pod that a decision has placed on a node in the state. The ledger
// has it when it isn't what was expected last.
func (m *Machine) Expect(t *lifecycle.Turn, p *Pod, item *queue.Item, node string) {
	if p.last != node {
		t.Decide(step.Decision{Kind: step.Expected, Pod: item.Pod().Name(), Node: node})
	}
	p.pod, p.last, p.since = item.Pod(), node, t.Now.UnixNano()
}

// TakeBack has all pods decided on anew that were expected somewhere for age or longer,
// in the order of their UIDs.
func (m *Machine) TakeBack(t *lifecycle.Turn, age time.Duration) {
	for _, p := range m.pods.All() {
		if p.pod != nil && t.Now.Sub(time.Unix(0, p.since)) >= age {
			m.takeBack(t, p)
		}
	}
}

// Contradicted has a pod decided on anew of which the other scheduler says that it will be
// somewhere else than expected. A pod of which nothing is expected stays as it is.
func (m *Machine) Contradicted(t *lifecycle.Turn, p *Pod) {
	if p.pod != nil {
		m.takeBack(t, p)
	}
}

func (m *Machine) takeBack(t *lifecycle.Turn, p *Pod) {
	pod := p.pod
	p.pod = nil
	t.State.Remove(pod.UID)
	m.nominations.RenominateFor(t, pod)
	t.Queue.Requeue(t.Queue.Get(pod.UID), pod)
}

// Advance does nothing: expectations are taken back before a plan.
func (m *Machine) Advance(*lifecycle.Turn) {}

// NextWake returns zero: never.
func (m *Machine) NextWake() time.Time { return time.Time{} }

// Unsettled names the pods that are expected somewhere.
func (m *Machine) Unsettled() (out []string) {
	for uid, p := range m.pods.All() {
		if node := p.Node(); node != "" {
			out = append(out, fmt.Sprintf("pod %s is expected on %s, and nothing has come of it", uid, node))
		}
	}
	return out
}

// Invariants says what doesn't hold of the machine's own fields: what is expected has a
// node.
func (m *Machine) Invariants() (out []string) {
	for uid, p := range m.pods.All() {
		if p.pod != nil && p.last == "" {
			out = append(out, fmt.Sprintf("pod %s is expected on no node", uid))
		}
	}
	return out
}
