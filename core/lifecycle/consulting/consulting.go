// Package consulting follows pods about which HTTP extenders are asked. A decision that
// needs them is made in two steps: the pod stays in flight until they have answered, and
// then the rules are asked again, since what has happened meanwhile may have closed a node.
//
//	state            waits for     then
//	none             a decision    asked about nodes, or about victims
//	about nodes      Consulted     none: the pod is decided on among the nodes that they allow
//	about victims    Consulted     none: the pod takes the place of victims that they agree to
//
// A pod that changes meanwhile is decided on anew, without waiting for the answer: questions are
// numbered, and the answer to an earlier one about the pod is ignored.
//
// The waiting classes are asked about a change when it is made, which a pod in flight misses:
// when it is rejected, the core asks its class about what has changed since Asked.
//
// An error of an extender that isn't ignorable is the end of the decision: the pod backs
// off. A pod that is gone meanwhile takes its state with it.
package consulting

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/engine"
	"github.com/berthproject/berth/core/lifecycle"
	"github.com/berthproject/berth/core/queue"
	"github.com/berthproject/berth/core/scheduler"
	"github.com/berthproject/berth/core/step"
)

// State is what extenders are asked about a pod.
type State uint8

// The states.
const (
	None State = iota
	AboutNodes
	AboutVictims
)

// String says the state in words.
func (s State) String() string { return [...]string{"none", "about nodes", "about victims"}[s] }

// Pod is a pod's part of the machine. Its zero value is a pod about which nobody is asked.
type Pod struct {
	state  State
	number uint64 // of the question that was asked last
	// asked is the state's position when the extenders were asked last. What has changed since
	// then the answer doesn't know of.
	asked cluster.Seq
}

// State returns what is asked.
func (p *Pod) State() State { return p.state }

// Asked returns the state's position when the extenders were asked last.
func (p *Pod) Asked() cluster.Seq { return p.asked }

// Scheduler decides when the extenders have answered.
type Scheduler = scheduler.Scheduler

// Machine follows all consultations. Only the core's goroutine may call it.
type Machine struct {
	pods      lifecycle.Pods[Pod]
	scheduler *Scheduler
	questions uint64 // how many were asked so far
}

var _ lifecycle.Machine = (*Machine)(nil)

// New returns a machine that has asked nobody.
func New(s *Scheduler, pods lifecycle.Pods[Pod]) *Machine { return &Machine{pods: pods, scheduler: s} }

// Ask asks the extenders about the nodes or the victims that a decision names; the pod
// stays in flight until they answer.
func (m *Machine) Ask(t *lifecycle.Turn, p *Pod, item *queue.Item, d *scheduler.Decision) {
	pod := item.Pod()
	m.questions++
	ask := step.Consult{UID: pod.UID, Number: m.questions, Pod: pod.Object, Nodes: d.Consult}
	p.state, p.number, p.asked = AboutNodes, m.questions, t.State.Head()
	what := fmt.Sprintf("%d node(s)", len(d.Consult))
	if d.Candidates != nil {
		p.state = AboutVictims
		what = fmt.Sprintf("%d node(s) with preemption victims", len(d.Candidates))
	}
	for i := range d.Candidates {
		ask.Candidates = append(ask.Candidates, candidate(t, &d.Candidates[i]))
	}
	t.Decide(step.Decision{Kind: step.Consults, Pod: pod.Name(), Reason: what})
	t.Ready.Consults = append(t.Ready.Consults, ask)
}

func candidate(t *lifecycle.Turn, c *engine.Candidate) step.PreemptionCandidate {
	out := step.PreemptionCandidate{Node: t.State.Node(c.Node).Name, Violations: c.Violations}
	for _, v := range c.Pods {
		out.Victims = append(out.Victims, v.Object)
	}
	return out
}

// Answer takes the extenders' answer, and reports whether the pod waited for it. Then it is
// in flight still, and the decision is to be carried out, unless the answer is an error.
func (m *Machine) Answer(t *lifecycle.Turn, in step.Consulted) (d scheduler.Decision, waited bool) {
	p, item := m.pods.Get(in.UID), t.Queue.Get(in.UID)
	if p == nil || p.state == None || in.Number != 0 && in.Number != p.number || item == nil || item.Stage() != queue.InFlight {
		return d, false
	}
	about := p.state
	p.state = None
	switch {
	case in.Err != nil:
		return d, true
	case about == AboutVictims:
		return m.scheduler.DecideVictims(item.Pod(), in.Agreed), true
	}
	allowed := map[string]int64{}
	for _, name := range in.Nodes {
		allowed[name] = in.Scores[name]
	}
	failed := make([]string, 0, len(in.Failed))
	for _, node := range slices.Sorted(maps.Keys(in.Failed)) {
		failed = append(failed, in.Failed[node])
	}
	return m.scheduler.DecideAmong(item.Pod(), allowed, failed), true
}

// PodDecided records that a decision about a pod is made: if extenders are asked still, then about the
// pod as it was, and what they say doesn't count any more.
func (m *Machine) PodDecided(p *Pod) { p.state = None }

// Advance does nothing: only answers bring something.
func (m *Machine) Advance(*lifecycle.Turn) {}

// NextWake returns zero: never.
func (m *Machine) NextWake() time.Time { return time.Time{} }

// Unsettled names the pods about which extenders haven't answered.
func (m *Machine) Unsettled() (out []string) {
	for uid, p := range m.pods.All() {
		if p.state != None {
			out = append(out, fmt.Sprintf("extenders are asked about pod %s: %s", uid, p.state))
		}
	}
	return out
}

// Invariants returns none: a single field can't contradict another.
func (m *Machine) Invariants() []string { return nil }

// InvariantsIn says what doesn't hold between the machine and the queue: a pod about which
// extenders are asked is in flight, unless it has changed so that it is queued anew.
func (m *Machine) InvariantsIn(q *queue.Queue) (out []string) {
	for uid, p := range m.pods.All() {
		if p.state != None && q.Get(uid) == nil {
			out = append(out, fmt.Sprintf("extenders are asked about pod %s, which isn't in the queue", uid))
		}
	}
	return out
}
