package nodecomparison

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/lifecycle"
	"github.com/berthproject/berth/core/lifecycle/candidates"
	"github.com/berthproject/berth/core/step"
)

// This file follows removals.

// nodeState is a row of the second table in doc.go.
type nodeState uint8

const (
	stays nodeState = iota
	wished
	kept
	left
)

// away is a node that a leader would have begun to remove at a time.
type away struct {
	name string
	at   time.Time
}

// node is a node of a node group.
type node struct {
	group string
	state nodeState
	at    time.Time // when a leader would have begun to remove it; zero in state stays
	why   string    // why it would have
	// given is the verdict on a node that has left, nil when there was none, and early reports
	// whether Berth would have removed it later.
	given *step.NodeComparison
	early bool
}

// NodeSet takes how the API shows a node.
func (m *Machine) NodeSet(t *lifecycle.Turn, info *cluster.NodeInfo) {
	if m == nil {
		return
	}
	leaving := info.HasTaint(autoscaler.ToBeDeletedTaint)
	n := m.nodes[info.Name]
	if n != nil && n.group != info.Group {
		m.forget(t, info.Name, n)
		n = nil
	}
	switch {
	case info.Group == "":
	case n == nil:
		n = &node{group: info.Group}
		if leaving {
			n.state = left
		}
		m.nodes[info.Name] = n
		h := m.hoursOf(t, n)
		h.nodes++
	case leaving && n.state != left:
		m.leaves(t, info.Name, n, "it was marked for removal")
	case !leaving && n.state == left:
		m.takeBack(n)
	}
}

// NodeGone records that the API shows a node no more.
func (m *Machine) NodeGone(t *lifecycle.Turn, name string) {
	if m == nil || m.nodes[name] == nil {
		return
	}
	n := m.nodes[name]
	if n.state != left {
		m.leaves(t, name, n, "it was removed")
	}
	m.forget(t, name, n)
}

// forget forgets a node.
func (m *Machine) forget(t *lifecycle.Turn, name string, n *node) {
	m.enter(t, n, stays)
	m.hoursOf(t, n).nodes--
	delete(m.nodes, name)
}

// hoursOf returns the sums of a node's group, up to now.
func (m *Machine) hoursOf(t *lifecycle.Turn, n *node) *hours {
	h := &m.group(n.group).hours
	h.accrue(m.began, t.Now)
	return h
}

// enter changes a node's state. Berth's version of the cluster has a node no more as long as it is
// wished or kept.
func (m *Machine) enter(t *lifecycle.Turn, n *node, to nodeState) {
	h := m.hoursOf(t, n)
	if n.state == wished || n.state == kept {
		h.saved--
	}
	if to == wished || to == kept {
		h.saved++
	}
	n.state = to
}

// leaves gives the verdict on a node that the other autoscaler removes, or that goes otherwise.
func (m *Machine) leaves(t *lifecycle.Turn, name string, n *node, what string) {
	c := step.NodeComparison{Verdict: step.RemovedOnlyByOther, Group: n.group, Nodes: 1, Node: name, Price: m.group(n.group).hours.price}
	switch n.state {
	case kept:
		m.report.correct(step.RemovedOnlyByBerth, func(c *step.NodeComparison) bool { return c.Node == name })
		fallthrough
	case wished:
		c.Verdict, c.Wished, c.Ahead, c.Reason = step.RemovedByBoth, n.at, t.Now.Sub(n.at), n.why
	default:
		why, candidate := m.whyKept(name, t.Now)
		c.Reason = what + "; Berth would have kept it: " + why
		if candidate {
			c.Reason = what + "; " + why
			m.report.early++
			n.early = true
		}
	}
	m.enter(t, n, left)
	n.at, n.why = time.Time{}, ""
	m.give(t, c)
	given := t.Ready.NodeComparisons[len(t.Ready.NodeComparisons)-1]
	n.given = &given
}

// takeBack takes the verdict back on a node that has left and turns out to stay.
func (m *Machine) takeBack(n *node) {
	if n.given != nil {
		m.report.remove(n.given, n.early)
	}
	n.state, n.given, n.early = stays, nil, false
}

// whyKept says why Berth wouldn't have removed a node, and whether it would have later, had nothing
// changed.
func (m *Machine) whyKept(name string, now time.Time) (why string, candidate bool) {
	if since := m.candidates.Since(name); !since.IsZero() {
		return fmt.Sprintf("Berth had found it unneeded for %s, not yet long enough", now.Sub(since)), true
	}
	i, found := slices.BinarySearchFunc(m.kept, name, func(k autoscaler.Kept, name string) int { return strings.Compare(k.Node, name) })
	if !found {
		return "no plan has simulated its removal", false
	}
	k := &m.kept[i]
	why = string(k.Reason)
	if k.Pod != "" {
		why += " (pod " + k.Pod + ")"
	}
	if k.Detail != "" {
		why += ": " + k.Detail
	}
	return why, false
}

// commitRemovals takes the nodes that a leader would begin to remove now, by a plan. Nodes that
// aren't candidates any more are needed.
func (m *Machine) commitRemovals(t *lifecycle.Turn, due []candidates.Due) {
	for i := range due {
		d := &due[i]
		if n := m.nodes[d.Node]; n != nil && n.state == stays {
			m.enter(t, n, wished)
			n.at, n.why = t.Now, fmt.Sprintf("%s for %s", d.Why, d.For)
			m.away = append(m.away, away{d.Node, t.Now})
		}
	}
	for _, name := range m.unwanted() {
		n := m.nodes[name]
		if !m.candidates.Since(name).IsZero() {
			continue
		}
		m.report.again++
		if n.state == wished {
			m.giveRemoval(t, name, n, fmt.Sprintf("it was needed again after %s", t.Now.Sub(n.at)))
		}
		m.enter(t, n, stays)
		n.at, n.why = time.Time{}, ""
	}
}

// unwanted returns the nodes that a leader would have begun to remove, by name.
func (m *Machine) unwanted() (out []string) {
	for name, n := range m.nodes {
		if n.state == wished || n.state == kept {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// Wished reports whether a leader would have begun to remove a node, which still stays.
func (m *Machine) Wished(name string) bool {
	n := m.nodes[name]
	return n != nil && (n.state == wished || n.state == kept)
}

// giveRemovalsUp gives verdicts on the removals that nobody has begun in time.
func (m *Machine) giveRemovalsUp(t *lifecycle.Turn) {
	for ; len(m.away) > 0; m.away = m.away[1:] {
		x := m.away[0]
		switch n := m.nodes[x.name]; {
		case n == nil || n.state != wished || !n.at.Equal(x.at): // it has left that state
		case t.Now.Sub(x.at) < m.patience:
			return
		default:
			m.giveRemoval(t, x.name, n, fmt.Sprintf("the other autoscaler has not begun to remove it within %s", m.patience))
			m.enter(t, n, kept)
		}
	}
}

// giveRemoval gives the verdict on a node that Berth alone would have removed.
func (m *Machine) giveRemoval(t *lifecycle.Turn, name string, n *node, why string) {
	m.give(t, step.NodeComparison{Verdict: step.RemovedOnlyByBerth, Group: n.group, Nodes: 1, Node: name, Price: m.group(n.group).hours.price,
		Wished: n.at, Reason: n.why + "; " + why})
}
