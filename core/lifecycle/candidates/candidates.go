package candidates

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/lifecycle"
)

// Config says when a candidate's time has come. Names are those of Cluster Autoscaler's
// flags; core.Autoscale has the defaults.
type Config struct {
	UnneededTime time.Duration // of a ready node
	UnreadyTime  time.Duration // of a node that isn't ready
	KeepUnready  bool          // a node that isn't ready is never due
}

// Due is a candidate whose time has come.
type Due struct {
	*autoscaler.Removal
	Why string        // why it is to go
	For time.Duration // how long it has been a candidate
}

// Machine follows all candidates. Only the core's goroutine may call it.
type Machine struct {
	cfg    Config
	byName map[string]candidate
}

type candidate struct {
	since time.Time
	ready bool // the node was ready at that time, and has been since
}

var _ lifecycle.Machine = (*Machine)(nil)

// New returns a machine that knows of no candidate.
func New(cfg Config) *Machine { return &Machine{cfg: cfg, byName: map[string]candidate{}} }

// CommitPlan takes which nodes a plan would remove, and returns those whose time has come,
// in the plan's order.
func (m *Machine) CommitPlan(t *lifecycle.Turn, plan *autoscaler.Plan) (due []Due) {
	next := map[string]candidate{}
	for _, r := range plan.Removals {
		n := t.State.NodeByName(r.Node)
		if n == nil {
			continue
		}
		c, ok := m.byName[r.Node]
		if !ok || c.ready != n.Ready() {
			c = candidate{plan.Now, n.Ready()}
		}
		next[r.Node] = c
		if why, ok := m.due(t.Now, c, n, r); ok {
			due = append(due, Due{Removal: r, Why: why, For: t.Now.Sub(c.since)})
		}
	}
	m.byName = next
	return due
}

// due tells whether a candidate's time has come, and why it is to go.
func (m *Machine) due(now time.Time, c candidate, _ *cluster.Node, r *autoscaler.Removal) (why string, ok bool) {
	why = "it has been empty"
	if !r.Empty() {
		why = "it has been unneeded"
	}
	age := now.Sub(c.since)
	if c.ready {
		return why, age >= m.cfg.UnneededTime
	}
	return why + " and unready", !m.cfg.KeepUnready && age >= m.cfg.UnreadyTime
}

// Forget has a node be needed: if a plan has it again, its time starts anew.
func (m *Machine) Forget(node string) { delete(m.byName, node) }

// Since returns since when a node is a candidate; zero when it isn't one.
func (m *Machine) Since(node string) time.Time { return m.byName[node].since }

// Advance does nothing: candidates change with plans.
func (m *Machine) Advance(*lifecycle.Turn) {}

// NextWake returns zero: the next plan finds candidates due.
func (m *Machine) NextWake() time.Time { return time.Time{} }

// Unsettled returns nothing: a candidate may stay one for ever, for its group's minimum.
func (m *Machine) Unsettled() []string { return nil }

// Invariants checks that each candidate has a time.
func (m *Machine) Invariants() (out []string) {
	for _, name := range slices.Sorted(maps.Keys(m.byName)) {
		if m.byName[name].since.IsZero() {
			out = append(out, fmt.Sprintf("node %s is a candidate since no time", name))
		}
	}
	return out
}
