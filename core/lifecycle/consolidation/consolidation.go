package consolidation

// This file holds the machine. What must be true in it: old is sorted as the plan has it, and
// empty exactly while the machine rests.

import (
	"fmt"
	"slices"
	"time"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/autoscaler/scaledown"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/lifecycle"
	"github.com/berthproject/berth/core/lifecycle/candidates"
	"github.com/berthproject/berth/core/step"
)

const (
	// afterSearch is how long after a plan that has looked for a consolidation the next looks:
	// to look costs more than a pass, and what could be saved doesn't change by the second.
	afterSearch = time.Minute
	// afterFailure is how long after a consolidation was given up the next is looked for. What
	// was bought for it stands about ten minutes without use: once an hour that is a small part
	// of what a consolidation has to save, more often it wouldn't be.
	afterFailure = time.Hour
)

// Config says how long a consolidation may take.
type Config struct {
	// Settle is how long nothing has to have been bought before a consolidation is looked for
	// (--scale-down-unneeded-time), and how long this process has to have led: a cluster that
	// grows, or whose pods have just come, will be another in a minute.
	Settle time.Duration
	// Patience is how long the new nodes may take until the old ones could go, and each of
	// these to go after the one before (--max-node-provision-time).
	Patience time.Duration
}

// Machine follows the consolidation that is under way. Only the core's goroutine may call it.
type Machine struct {
	cfg      Config
	old      []string // nodes that are to go and aren't gone; none while the machine rests
	grown    []string // groups that nodes were ordered of
	began    time.Time
	draining bool
	going    int       // of old, how many are on their way out
	changed  time.Time // when the state last changed, or one of old went or began to
	// restsTo is from when on a consolidation is looked for; zero until a plan is made.
	restsTo time.Time
}

var _ lifecycle.Machine = (*Machine)(nil)

// New returns a machine that rests.
func New(cfg Config) *Machine { return &Machine{cfg: cfg} }

// SearchDue reports whether a plan made now is to look for a consolidation.
func (m *Machine) SearchDue(now time.Time) bool {
	return len(m.old) == 0 && !m.restsTo.IsZero() && !now.Before(m.restsTo)
}

// NodesOrdered records that nodes were ordered for pods.
func (m *Machine) NodesOrdered(now time.Time) { m.rest(now.Add(m.cfg.Settle)) }

// rest has the machine look for no consolidation before a time.
func (m *Machine) rest(to time.Time) {
	if to.After(m.restsTo) {
		m.restsTo = to
	}
}

// SearchEnded records that a plan has looked and found none that is carried out.
func (m *Machine) SearchEnded(now time.Time) { m.rest(now.Add(afterSearch)) }

// Replacing returns what passes have to know; nil while the machine rests.
func (m *Machine) Replacing() *autoscaler.Replacing {
	if len(m.old) == 0 {
		return nil
	}
	return &autoscaler.Replacing{Nodes: slices.Clone(m.old), Groups: m.grown}
}

// Has reports whether a node is one of those that are to go.
func (m *Machine) Has(node string) bool { return slices.Contains(m.old, node) }

// Begin begins a consolidation whose new nodes have been ordered.
func (m *Machine) Begin(t *lifecycle.Turn, x *autoscaler.Consolidation) {
	m.old, m.grown, m.draining, m.going = slices.Clone(x.Nodes), nil, false, 0
	m.began, m.changed = t.Now, t.Now
	for _, up := range x.ScaleUps {
		m.grown = append(m.grown, up.Group)
	}
}

// CommitPlan takes which nodes a plan could remove, and returns those of the consolidation
// whose time has come: once all could go, each that could. The ledger says when it is over.
func (m *Machine) CommitPlan(t *lifecycle.Turn, plan *autoscaler.Plan) (due []candidates.Due) {
	if m.restsTo.IsZero() {
		m.restsTo = t.Now.Add(m.cfg.Settle)
	}
	if len(m.old) == 0 {
		return nil
	}
	could := map[string]*autoscaler.Removal{}
	for _, r := range plan.Removals {
		could[r.Node] = r
	}
	before, going, ready := len(m.old), 0, 0
	m.old = slices.DeleteFunc(m.old, func(name string) bool { return t.State.NodeByName(name) == nil })
	for _, name := range m.old {
		switch n := t.State.NodeByName(name); {
		case scaledown.Leaving(n.NodeInfo):
			going++
		case could[name] != nil:
			ready++
		}
	}
	if len(m.old) < before || going > m.going {
		m.changed = t.Now
	}
	m.going = going
	if !m.draining && ready+going == len(m.old) {
		m.draining, m.changed = true, t.Now
	}
	switch {
	case len(m.old) == 0:
		m.end(t, t.Now.Add(afterSearch), fmt.Sprintf("its nodes were removed after %s", t.Now.Sub(m.began)))
		return nil
	case t.Now.Sub(m.changed) >= m.cfg.Patience:
		m.end(t, t.Now.Add(afterFailure), m.whyGivenUp(plan))
		return nil
	case !m.draining:
		return nil
	}
	for _, name := range m.old {
		if r := could[name]; r != nil {
			due = append(due, candidates.Due{Removal: r, Why: "it has been part of a consolidation", For: t.Now.Sub(m.began)})
		}
	}
	return due
}

// whyGivenUp says why nothing has changed for so long.
func (m *Machine) whyGivenUp(plan *autoscaler.Plan) string {
	why := fmt.Sprintf("given up: %d of its nodes were not removed", len(m.old))
	if !m.draining {
		why = "given up: its nodes could not be removed together"
	}
	why += fmt.Sprintf(" within %s (--max-node-provision-time); the next consolidation is considered in %s", m.cfg.Patience, afterFailure)
	for i := range plan.Kept {
		if k := &plan.Kept[i]; m.Has(k.Node) {
			return fmt.Sprintf("%s; %s stays: %s", why, k.Node, k.Detail)
		}
	}
	return why
}

// end ends a consolidation; the next is looked for from a time on.
func (m *Machine) end(t *lifecycle.Turn, rest time.Time, why string) {
	m.old, m.grown = nil, nil
	m.rest(rest)
	t.Decide(step.Decision{Kind: step.ConsolidationEnded, Reason: why})
}

// Advance does nothing: a consolidation goes on with plans.
func (m *Machine) Advance(*lifecycle.Turn) {}

// NextWake returns zero: plans come by themselves.
func (m *Machine) NextWake() time.Time { return time.Time{} }

// Unsettled says that a consolidation is under way.
func (m *Machine) Unsettled() []string {
	if len(m.old) == 0 {
		return nil
	}
	return []string{fmt.Sprintf("a consolidation has %d nodes that are to go", len(m.old))}
}

// BecomeLeader forgets what was under way: another instance may have finished it.
func (m *Machine) BecomeLeader() { *m = Machine{cfg: m.cfg} }

// Invariants checks that a consolidation has a beginning, and that nothing of one is left.
func (m *Machine) Invariants() (out []string) {
	switch {
	case len(m.old) > 0 && (m.began.IsZero() || m.changed.Before(m.began)):
		out = append(out, "a consolidation is under way that hasn't begun")
	case len(m.old) == 0 && len(m.grown) > 0:
		out = append(out, fmt.Sprintf("no consolidation is under way, and groups %v have grown for one", m.grown))
	}
	return out
}

// StillStands reports whether what a plan says about the old nodes holds: they exist, and nobody
// removes them.
func StillStands(state *cluster.State, x *autoscaler.Consolidation) bool {
	return !slices.ContainsFunc(x.Nodes, func(name string) bool {
		n := state.NodeByName(name)
		return n == nil || scaledown.Leaving(n.NodeInfo)
	})
}
