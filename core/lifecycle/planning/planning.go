// Package planning decides when the planner is asked for a plan. There is at most one
// request without an answer.
//
//	state      is                              waits for                      then
//	unknown    the provider hasn't told of     GroupsKnown                    idle
//	           its node groups yet
//	idle       no plan is asked for            ScanInterval since the last    due
//	                                           request, or a pod that found
//	                                           no node and was in no request,
//	                                           or nodes that the provider has
//	                                           refused
//	due        a plan is to be asked for       nothing is left to try; or,    requested
//	                                           after MaxDelay, no longer
//	requested  the planner works               PlanMade with the request's    idle
//	                                           number; others are refused
//
// A plan is made for the pods that were tried and found no node. While others are still
// to be tried it would see only some of a burst, and order nodes for these alone; so a
// due plan waits until nothing is left to try. In a cluster where something is always
// left it would wait for ever: hence MaxDelay.
package planning

import (
	"fmt"
	"time"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/lifecycle"
	"github.com/berthproject/berth/core/step"
)

// Config says when plans are made.
type Config struct {
	// ScanInterval is how long after a request the next is due, whether or not anything
	// has happened (--scan-interval).
	ScanInterval time.Duration
	// OnDemand asks for a plan as soon as a pod that no plan has seen finds no node
	// (Cluster Autoscaler's --frequent-loops-enabled).
	OnDemand bool
}

// gap is the least time between two requests: pods that come one after the other don't
// bring a plan each.
func (c *Config) gap() time.Duration { return c.ScanInterval / 20 }

// maxDelay is how long a due plan waits at most for pods that are still to be tried.
func (c *Config) maxDelay() time.Duration { return c.ScanInterval }

// State is where the machine stands.
type State uint8

// The states.
const (
	Unknown State = iota
	Idle
	Due
	Requested
)

// String returns the state in words.
func (s State) String() string { return [...]string{"unknown", "idle", "due", "requested"}[s] }

// Machine decides when a plan is asked for. Only the core's goroutine may call it.
type Machine struct {
	cfg       Config
	known     bool   // the provider has told of its node groups
	requested bool   // a PlanMade is owed
	number    uint64 // of the last request, 0 before the first
	refused   int    // plans that were refused
	// next is when a plan is due whether or not anything happens: ScanInterval after
	// the last request, and at once when the provider first tells of its groups.
	next time.Time
	last time.Time // when a plan was last asked for; zero for never
	// wantedSince is from when on a plan is wanted for a pod that was in no request and
	// has found no node; zero when there is none.
	wantedSince time.Time
	// retrySince is from when on a plan is wanted for pods that were in a request already,
	// since what was bought for them won't come; zero when none is.
	retrySince time.Time
	// followed is a position that the planner's follower has reached: the journal from
	// there on is kept for it.
	followed cluster.Seq
}

var _ lifecycle.Machine = (*Machine)(nil)

// New returns a machine that waits for the provider's node groups.
func New(cfg Config) *Machine { return &Machine{cfg: cfg} }

// GroupsKnown says that the provider has told of its node groups.
func (m *Machine) GroupsKnown(now time.Time) {
	if !m.known {
		m.known, m.next = true, now
	}
}

// Want says that a pod which was in no request has found no node, or that nodes which were
// bought won't come, and that a plan is wanted from a time on: now, or later.
func (m *Machine) Want(from time.Time) {
	m.wantedSince = lifecycle.Earliest(m.wantedSince, from)
}

// Retry says that what a plan proposed for pods can't be had, or that it left pods out for
// want of time: a plan is due at once. The caller sees to it that this ends.
func (m *Machine) Retry(now time.Time) {
	m.retrySince = lifecycle.Earliest(m.retrySince, now)
}

// State returns where the machine stands at a time.
func (m *Machine) State(now time.Time) State {
	switch {
	case m.requested:
		return Requested
	case !m.known:
		return Unknown
	case now.Before(m.due()):
		return Idle
	}
	return Due
}

// due returns when the next plan is due, provided that none is asked for.
func (m *Machine) due() time.Time {
	if !m.retrySince.IsZero() {
		return m.retrySince
	}
	at := m.next
	if m.cfg.OnDemand && !m.wantedSince.IsZero() {
		soon := m.last.Add(m.cfg.gap())
		if soon.Before(m.wantedSince) {
			soon = m.wantedSince
		}
		if soon.Before(at) {
			at = soon
		}
	}
	return at
}

// Ready reports whether a plan is to be asked for now: it is due, and nothing is left to
// try, or it has waited long enough.
func (m *Machine) Ready(now time.Time, leftToTry bool) bool {
	return m.State(now) == Due && (!leftToTry || now.Sub(m.due()) >= m.cfg.maxDelay())
}

// Request puts a request into the work. Its pending pods must be all pods that were tried
// and found no node.
func (m *Machine) Request(t *lifecycle.Turn, req *autoscaler.Request) {
	m.number++
	req.Number = m.number
	m.requested, m.last, m.wantedSince, m.retrySince = true, t.Now, time.Time{}, time.Time{}
	m.next = t.Now.Add(m.cfg.ScanInterval)
	t.Ready.Plan = req
}

// PlanMade takes a plan, and reports whether it may be committed. It may not when it
// doesn't answer the open request, or was made at a position that the state hasn't
// reached or that the follower had left behind: what is known of the follower would be
// wrong. Either is a defect of the driver's; the ledger has it, and Refused counts it.
func (m *Machine) PlanMade(t *lifecycle.Turn, plan *autoscaler.Plan) bool {
	switch head := t.State.Head(); {
	case !m.requested || plan.Request != m.number:
		m.refuse(t, fmt.Sprintf("it answers request %d; of %d requests the last is answered: %t", plan.Request, m.number, !m.requested))
		return false
	case plan.At < m.followed || plan.At > head:
		m.requested = false
		m.refuse(t, fmt.Sprintf("it was made at %d; the follower was at %d already, and the state is at %d", plan.At, m.followed, head))
		return false
	}
	m.requested = false
	m.Followed(plan.At)
	return true
}

func (m *Machine) refuse(t *lifecycle.Turn, why string) {
	m.refused++
	t.Decide(step.Decision{Kind: step.PlanRefused, Reason: why})
}

// Refused returns how many plans were refused.
func (m *Machine) Refused() int { return m.refused }

// Followed records a position that the planner's follower has reached.
func (m *Machine) Followed(at cluster.Seq) { m.followed = at }

// JournalFrom returns from which position on the follower needs the journal.
func (m *Machine) JournalFrom() cluster.Seq { return m.followed }

// Advance does nothing: the core asks for the plan at the end of a Step, when it knows
// whether something is left to try.
func (m *Machine) Advance(*lifecycle.Turn) {}

// NextWake returns when the next plan is due, zero while one is being made or no group is
// known.
func (m *Machine) NextWake() time.Time {
	if m.requested || !m.known {
		return time.Time{}
	}
	return m.due()
}

// Unsettled names the plan that is being made. A core at rest still asks for plans, so
// nothing is said of it.
func (m *Machine) Unsettled() []string { return nil }

// Invariants checks that a plan is asked for only when there are groups to plan with.
func (m *Machine) Invariants() []string {
	if m.requested && !m.known {
		return []string{fmt.Sprintf("a plan was asked for at %s, and no node group is known", m.last)}
	}
	return nil
}
