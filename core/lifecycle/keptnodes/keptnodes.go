package keptnodes

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/lifecycle"
	"github.com/berthproject/berth/core/step"
)

// This file holds the machine. What must be true in it: spells[i] is about plan.Kept[i], and
// both are sorted by the name of the node, so that a plan is taken in by one walk along the
// last and this one, in O(nodes) without a map. Plans are never changed.

// Stay is a node that stays by the last plan that looked at nodes.
type Stay struct {
	*autoscaler.Kept
	Since  time.Time // by the plans, for this reason and because of this pod
	Looked time.Time // when it was last looked at with this outcome
}

// Machine keeps what the last plan said of nodes. Only the core's goroutine may call it.
type Machine struct {
	plan   *autoscaler.Plan // the last one that looked at nodes; nil before the first
	spells []spell
	spare  []spell // memory of the spells before, for the next
	// displaced is the first of plan.Kept that says that displaced pods hold all nodes; nil when
	// none does.
	displaced *autoscaler.Kept
	// held is the reason for which the last plan gave up no node of the cluster, and heldWhy
	// its words; "" when the plan looked at nodes one by one.
	held    autoscaler.KeptReason
	heldWhy string
}

// spell is how long a node has stayed for one reason, and what the ledger has of it.
type spell struct {
	since time.Time
	noted cause // of the last NodeStays since the node could have gone; zero for none
}

// cause is what one line of the ledger is about. The quantities of a reason change all the
// time; its kind and its pod don't.
type cause struct {
	reason autoscaler.KeptReason
	pod    string
}

var _ lifecycle.Machine = (*Machine)(nil)

// New returns a machine that has seen no plan.
func New() *Machine { return &Machine{} }

// CommitPlan takes what a plan says about nodes, and enters reasons that have begun. A plan for
// a sick cluster looks at no node: what the one before it said of them stays.
func (m *Machine) CommitPlan(t *lifecycle.Turn, plan *autoscaler.Plan) {
	m.hold(t, plan)
	if plan.Sick != "" {
		return
	}
	if m.repeated(plan) {
		m.plan = plan
		return
	}
	spells := slices.Grow(m.spare[:0], len(plan.Kept))[:len(plan.Kept)]
	var candidates map[string]bool // by the last plan; nil until it is asked for
	last := 0                      // in the last plan's Kept
	for i := range plan.Kept {
		k := &plan.Kept[i]
		var before *autoscaler.Kept
		for ; m.plan != nil && last < len(m.plan.Kept) && m.plan.Kept[last].Node <= k.Node; last++ {
			before = &m.plan.Kept[last]
		}
		s := spell{since: plan.Now}
		if before != nil && before.Node == k.Node {
			s.noted = m.spells[last-1].noted
			if causeOf(before) == causeOf(k) {
				s.since = m.spells[last-1].since
			}
		}
		if now := causeOf(k); Noted(k.Reason) && s.noted != now {
			s.noted = now
			if candidates == nil {
				candidates = m.removed()
			}
			if !candidates[k.Node] { // otherwise NodeNeeded says it
				m.note(t, k)
			}
		}
		spells[i] = s
	}
	m.plan, m.spells, m.spare = plan, spells, m.spells
}

// repeated reports whether a plan has the very lists of the last one: then it says the same of all
// nodes.
func (m *Machine) repeated(plan *autoscaler.Plan) bool {
	return m.plan != nil && same(m.plan.Kept, plan.Kept) && same(m.plan.Removals, plan.Removals)
}

// same reports whether two lists are one.
func same[T any](a, b []T) bool { return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0]) }

// removed returns the nodes that the last plan would remove.
func (m *Machine) removed() map[string]bool {
	out := map[string]bool{}
	if m.plan != nil {
		for _, r := range m.plan.Removals {
			out[r.Node] = true
		}
	}
	return out
}

// hold enters that a plan gives up no node at all, when that begins.
func (m *Machine) hold(t *lifecycle.Turn, plan *autoscaler.Plan) {
	before := m.held
	m.held, m.heldWhy = "", ""
	d := step.Decision{Kind: step.NodeStays}
	if plan.Sick != "" {
		m.held, m.heldWhy = autoscaler.KeptSick, plan.Sick
	} else {
		if !m.repeated(plan) {
			m.displaced = firstDisplaced(plan)
		}
		if k := m.displaced; k != nil {
			m.held, m.heldWhy, d.Pod = autoscaler.KeptDisplaced, k.Detail, k.Pod
		}
	}
	if m.held != "" && m.held != before {
		d.Reason = inWords(m.held, m.heldWhy)
		t.Decide(d)
	}
}

// firstDisplaced returns the first node of a plan that displaced pods hold; nil when they hold none.
func firstDisplaced(plan *autoscaler.Plan) *autoscaler.Kept {
	for i := range plan.Kept {
		if plan.Kept[i].Reason == autoscaler.KeptDisplaced {
			return &plan.Kept[i]
		}
	}
	return nil
}

// note enters why a node stays.
func (m *Machine) note(t *lifecycle.Turn, k *autoscaler.Kept) {
	d := step.Decision{Kind: step.NodeStays, Node: k.Node, Pod: k.Pod, Reason: inWords(k.Reason, k.Detail)}
	if n := t.State.NodeByName(k.Node); n != nil {
		d.Group = n.Group
	}
	t.Decide(d)
}

func inWords(reason autoscaler.KeptReason, detail string) string {
	if detail == "" {
		return string(reason)
	}
	return string(reason) + ": " + detail
}

func causeOf(k *autoscaler.Kept) cause { return cause{k.Reason, k.Pod} }

// Noted reports whether a reason is one that somebody can act on, so that the ledger has it.
func Noted(reason autoscaler.KeptReason) bool {
	switch reason {
	case autoscaler.KeptDisabled, autoscaler.KeptUnready, autoscaler.KeptMinSize, autoscaler.KeptMinTotal,
		autoscaler.KeptNoPlace, autoscaler.KeptBlockedByPod, autoscaler.KeptAtomic, autoscaler.KeptSomebodyElsesTask:
		return true
	}
	return false
}

// Plan returns the last plan that looked at nodes; nil before the first.
func (m *Machine) Plan() *autoscaler.Plan { return m.plan }

// Held returns why the last plan gave up no node at all, "" when it looked at them.
func (m *Machine) Held() string {
	if m.held == "" {
		return ""
	}
	return inWords(m.held, m.heldWhy)
}

// Of returns why a node stays; ok is false when the last plan doesn't say so.
func (m *Machine) Of(node string) (s Stay, ok bool) {
	if m.plan == nil {
		return Stay{}, false
	}
	i, ok := slices.BinarySearchFunc(m.plan.Kept, node, func(k autoscaler.Kept, node string) int { return strings.Compare(k.Node, node) })
	if !ok {
		return Stay{}, false
	}
	k := &m.plan.Kept[i]
	looked := k.Since
	if looked.IsZero() {
		looked = m.plan.Now
	}
	return Stay{k, m.spells[i].since, looked}, true
}

// Removal returns how the last plan would remove a node; nil when it wouldn't. It costs
// O(removals).
func (m *Machine) Removal(node string) *autoscaler.Removal {
	if m.plan == nil {
		return nil
	}
	for _, r := range m.plan.Removals {
		if r.Node == node {
			return r
		}
	}
	return nil
}

// Advance does nothing: plans say what changes.
func (m *Machine) Advance(*lifecycle.Turn) {}

// NextWake returns zero.
func (m *Machine) NextWake() time.Time { return time.Time{} }

// Unsettled returns nothing: a node may stay for ever.
func (m *Machine) Unsettled() []string { return nil }

// Invariants checks that the last plan has its nodes in order, each with a time.
func (m *Machine) Invariants() (out []string) {
	if m.plan == nil {
		return nil
	}
	for i := range m.plan.Kept {
		k := &m.plan.Kept[i]
		if i > 0 && m.plan.Kept[i-1].Node >= k.Node {
			out = append(out, fmt.Sprintf("a plan keeps node %s after node %s; they have to be in order, once each", k.Node, m.plan.Kept[i-1].Node))
		}
		if m.spells[i].since.IsZero() {
			out = append(out, fmt.Sprintf("node %s stays since no time", k.Node))
		}
	}
	return out
}
