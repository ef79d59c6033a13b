package candidates

// This file follows since when each node is a candidate. softtaint.go writes that to the
// API, and resume.go reads it back after a restart.

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/lifecycle"
	"github.com/berthproject/berth/core/step"
)

// Config says when a candidate's time has come, and how it is told. Names are those of
// Cluster Autoscaler's flags; core.Autoscale has the defaults. Groups whose provider has
// times of its own use these instead (cluster.GroupOptions).
type Config struct {
	UnneededTime time.Duration // of a ready node
	UnreadyTime  time.Duration // of a node that isn't ready
	KeepUnready  bool          // a node that isn't ready is never due

	TTL      time.Duration // how old the time in a soft taint may be to count after a restart; 0 for any age
	MaxBulk  int           // soft taints that are written at a time; 0 for no soft taints
	BulkTime time.Duration // how long after a plan writes of soft taints begin
	// NoSoftTaints leaves soft taints to somebody else: none is read, put on or taken off, in the
	// state and in the API.
	NoSoftTaints bool
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
	plans  int // that were committed since this process decides
	byName map[string]*candidate
	soft   softTaints
	vain   map[string]vain // drains that came to nothing, by node (vain.go)

	steerBulk int // 1 or more
}

type candidate struct {
	since time.Time
	ready bool // the node was ready at that time, and has been since
	mark  mark // the soft taint that says so
	plan  int  // the last plan that has it among its removals
	// kept is why it stayed last though its time had come; "" when nothing has kept it.
	kept autoscaler.KeptReason
	// vain is how many drains of the node in a row have come to nothing.
	vain int
}

var _ lifecycle.Machine = (*Machine)(nil)

// New returns a machine that knows of no candidate.
func New(cfg Config) *Machine {
	if cfg.NoSoftTaints {
		cfg.MaxBulk = 0
	}
	m := &Machine{cfg: cfg, steerBulk: steerBulk}
	m.reset()
	return m
}

func (m *Machine) reset() {
	m.plans, m.byName, m.soft, m.vain = 0, map[string]*candidate{}, newSoftTaints(), map[string]vain{}
}

// CommitPlan takes which nodes a plan would remove, and returns those whose time has come,
// in the plan's order. Of what it decides only changes come into the ledger. A plan for
// which nothing has changed costs O(candidates), and allocates nothing.
func (m *Machine) CommitPlan(t *lifecycle.Turn, plan *autoscaler.Plan) (due []Due) {
	m.plans++
	t.Ready.Decisions = slices.Grow(t.Ready.Decisions, max(0, len(plan.Removals)-len(m.byName)))
	for _, r := range plan.Removals {
		n := t.State.NodeByName(r.Node)
		if n == nil {
			continue
		}
		c := m.confirm(t, plan.Now, n, r)
		if at := m.dueAt(c, t.State.Group(n.Group)); !at.IsZero() && !t.Now.Before(at) {
			due = append(due, Due{Removal: r, Why: whyRemoved(c, r), For: t.Now.Sub(c.since)})
		}
	}
	if m.plans == 1 {
		m.resumeUnreached(t, plan)
	}
	m.drop(t, plan)
	m.steer(t)
	m.soft.bulkDue = true
	return due
}

// confirm returns the candidate that a removal of a plan is, which it becomes now unless it
// was one.
func (m *Machine) confirm(t *lifecycle.Turn, now time.Time, n *cluster.Node, r *autoscaler.Removal) *candidate {
	c := m.byName[n.Name]
	switch {
	case c == nil:
		since, by, _ := m.readBack(n.Name, now)
		c = m.add(n, since)
		by += m.longer(c, t.State.Group(n.Group))
		t.Decide(step.Decision{Kind: step.NodeUnneeded, Node: n.Name, Group: n.Group, Reason: describe(r) + by})
	case c.ready != n.Ready():
		c = m.add(n, now)
		by := "; its timer restarts: it is no longer ready"
		if c.ready {
			by = "; its timer restarts: it is ready again"
		}
		t.Decide(step.Decision{Kind: step.NodeUnneeded, Node: n.Name, Group: n.Group, Reason: describe(r) + by})
	}
	c.plan = m.plans
	return c
}

// add makes a node a candidate since a time.
func (m *Machine) add(n *cluster.Node, since time.Time) *candidate {
	c := &candidate{since: since, ready: n.Ready(), mark: markSince(since), plan: m.plans, vain: m.inVain(n.Name, since)}
	m.byName[n.Name] = c
	m.changed(n.Name, m.cfg.MaxBulk > 0)
	return c
}

// describe says what a removal would take.
func describe(r *autoscaler.Removal) string {
	switch len(r.Homes) {
	case 0:
		return "it is empty"
	case 1:
		return fmt.Sprintf("its pod fits elsewhere; utilization %.2f", r.Utilization)
	}
	return fmt.Sprintf("its %d pods fit elsewhere; utilization %.2f", len(r.Homes), r.Utilization)
}

// whyRemoved says why a candidate is to go whose time has come.
func whyRemoved(c *candidate, r *autoscaler.Removal) string {
	why := "it has been empty"
	if !r.Empty() {
		why = "it has been unneeded"
	}
	if !c.ready {
		why += " and unready"
	}
	return why
}

// dueAt returns when the time of a candidate of a group has come, zero for never. g may be
// nil.
func (m *Machine) dueAt(c *candidate, g *cluster.NodeGroup) time.Time {
	unneeded, unready := m.times(g)
	switch {
	case c.ready:
		return c.since.Add(afterDrains(unneeded, c.vain))
	case m.cfg.KeepUnready:
		return time.Time{}
	}
	return c.since.Add(unready)
}

// times returns how long ready and unready nodes of a group are candidates before they are
// due. g may be nil.
func (m *Machine) times(g *cluster.NodeGroup) (unneeded, unready time.Duration) {
	unneeded, unready = m.cfg.UnneededTime, m.cfg.UnreadyTime
	if g == nil || g.Options == nil {
		return unneeded, unready
	}
	if x := g.Options.UnneededTime; x != nil {
		unneeded = x.Duration
	}
	if x := g.Options.UnreadyTime; x != nil {
		unready = x.Duration
	}
	return unneeded, unready
}

// drop ends the time of candidates that a plan hasn't among its removals, but of two kinds:
//
//   - nodes on their way out: the end of their removal decides;
//   - nodes that the plan had no time for. Nothing says that they are needed, and passes begin
//     with other nodes each time: if each lost what it had, in a cluster too large for one
//     pass none would ever be due. They aren't due before a plan has them again.
//
// That a plan didn't look at any node makes all needed: pods that are on the move have to
// find nodes before any more is given up.
func (m *Machine) drop(t *lifecycle.Turn, plan *autoscaler.Plan) {
	var names []string
	for name, c := range m.byName {
		if c.plan != m.plans {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	t.Ready.Decisions = slices.Grow(t.Ready.Decisions, len(names))
	for _, name := range names {
		n, kept := t.State.NodeByName(name), keptIn(plan, name)
		switch {
		case n == nil:
			delete(m.byName, name) // its removal has said so
		case n.HasTaint(autoscaler.ToBeDeletedTaint):
		case kept != nil && kept.Reason == autoscaler.KeptNotSimulated:
			if m.byName[name].ready != n.Ready() {
				m.add(n, plan.Now)
			}
		default:
			m.waited(t, m.byName[name], n.Group, false)
			delete(m.byName, name)
			m.changed(name, false)
			t.Decide(step.Decision{Kind: step.NodeNeeded, Node: name, Group: n.Group, Reason: whyNeeded(plan, kept)})
		}
	}
}

// keptIn returns why a plan keeps a node, nil when it doesn't say.
func keptIn(plan *autoscaler.Plan, node string) *autoscaler.Kept {
	i, found := slices.BinarySearchFunc(plan.Kept, node, func(k autoscaler.Kept, name string) int { return strings.Compare(k.Node, name) })
	if !found {
		return nil
	}
	return &plan.Kept[i]
}

// whyNeeded says why a node isn't a candidate any more. kept may be nil.
func whyNeeded(plan *autoscaler.Plan, kept *autoscaler.Kept) string {
	switch {
	case kept == nil && plan.Sick != "":
		return string(autoscaler.KeptSick) + ": " + plan.Sick
	case kept == nil:
		return "the plan did not find it removable"
	}
	why := string(kept.Reason)
	if kept.Pod != "" {
		why += " (pod " + kept.Pod + ")"
	}
	if kept.Detail != "" {
		why += ": " + kept.Detail
	}
	return why
}

// Forget has a node be needed, since its removal ended with the node staying: if a plan has
// it again, its time starts anew.
func (m *Machine) Forget(node string) {
	delete(m.byName, node)
	m.changed(node, false)
}

// NodeGone forgets a node that the API no longer shows. Another of its name may come.
func (m *Machine) NodeGone(node string) {
	delete(m.byName, node)
	delete(m.soft.nodes, node)
	delete(m.vain, node)
}

// RemovalDelayed records what keeps a candidate whose time has come.
func (m *Machine) RemovalDelayed(node string, by autoscaler.KeptReason) {
	if c := m.byName[node]; c != nil {
		c.kept = by
	}
}

// RemovalBegun records that the removal of a candidate begins.
func (m *Machine) RemovalBegun(t *lifecycle.Turn, node string) {
	if c, n := m.byName[node], t.State.NodeByName(node); c != nil && n != nil {
		m.waited(t, c, n.Group, true)
	}
}

// waited tells how long a candidate of a group has waited since its time has come, if it has.
func (m *Machine) waited(t *lifecycle.Turn, c *candidate, group string, removed bool) {
	if due := m.dueAt(c, t.State.Group(group)); !due.IsZero() && t.Now.After(due) {
		t.Ready.RemovalWaits = append(t.Ready.RemovalWaits, step.RemovalWait{Removed: removed, Reason: c.kept, Took: t.Now.Sub(due)})
	}
}

// Each calls f with each candidate, in no particular order.
func (m *Machine) Each(f func(node string)) {
	for name := range m.byName {
		f(name)
	}
}

// Since returns since when a node is a candidate; zero when it isn't one.
func (m *Machine) Since(node string) time.Time {
	if c := m.byName[node]; c != nil {
		return c.since
	}
	return time.Time{}
}

// Count returns how many candidates there are.
func (m *Machine) Count() int { return len(m.byName) }
