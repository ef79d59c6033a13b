package candidates

// This file reads back, after a restart or a change of leader, since when nodes are
// candidates: from their soft taints, in the first plan of the process. From then on a soft
// taint says nothing that isn't known.

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/lifecycle"
	"github.com/berthproject/berth/core/step"
)

// BecomeLeader begins anew: another process has decided meanwhile. Resume is then to be
// called with each node of the state.
func (m *Machine) BecomeLeader() { m.reset() }

// Resume takes a node as the API shows it, and the state has it already.
func (m *Machine) Resume(n *cluster.NodeInfo) { m.shown(n) }

// readBack returns since when a node is a candidate by its soft taint, in the first plan, and
// what to say about that. It is now, and ok false, when there is no soft taint, and when its time
// can't be or mustn't count.
func (m *Machine) readBack(node string, now time.Time) (since time.Time, by string, ok bool) {
	s := m.soft.nodes[node]
	if m.plans > 1 || s == nil || s.api == (mark{}) {
		return now, "", false
	}
	at, ok := markedTime(s.api)
	switch {
	case !ok:
		return now, fmt.Sprintf("; the value of its soft taint is not a time: %q", s.api.value), false
	case at.After(now):
		return now, fmt.Sprintf("; the time in its soft taint, %s, is in the future", at.UTC().Format(time.RFC3339)), false
	case m.cfg.TTL > 0 && now.Sub(at) > m.cfg.TTL:
		return now, fmt.Sprintf("; the time in its soft taint, %s, is older than --node-deletion-candidate-ttl=%s", at.UTC().Format(time.RFC3339), m.cfg.TTL), false
	}
	return at, fmt.Sprintf(", since %s by its soft taint", at.UTC().Format(time.RFC3339)), true
}

// markedTime returns the time that a soft taint says; ok is false when it is none.
func markedTime(k mark) (at time.Time, ok bool) {
	seconds, err := strconv.ParseInt(k.value, 10, 64)
	return time.Unix(seconds, 0), err == nil && seconds > 0
}

// resumeUnreached ends the reading of soft taints. Nodes that have one and that the first
// plan had no time for are candidates, as they would be without the restart. All other nodes
// with a soft taint that aren't candidates are needed: it is to go.
func (m *Machine) resumeUnreached(t *lifecycle.Turn, plan *autoscaler.Plan) {
	for _, name := range slices.Sorted(maps.Keys(m.soft.nodes)) {
		m.soft.changed(name, false)
		n, kept := t.State.NodeByName(name), keptIn(plan, name)
		if n == nil || m.byName[name] != nil || kept == nil || kept.Reason != autoscaler.KeptNotSimulated {
			continue
		}
		if since, by, ok := m.readBack(name, plan.Now); ok {
			m.add(n, since)
			t.Decide(step.Decision{Kind: step.NodeUnneeded, Node: name, Group: n.Group, Reason: "the plan has not reached it" + by})
		}
	}
}

// Problems returns what can't be read of a node's soft taint, and the node's own problems.
func Problems(n *cluster.NodeInfo) []cluster.Problem {
	k := markOf(n)
	if k == (mark{}) || n.Group == "" {
		return n.Problems
	}
	if _, ok := markedTime(k); ok {
		return n.Problems
	}
	return append(slices.Clip(n.Problems), cluster.Problem{
		Field: "spec.taints[" + autoscaler.DeletionCandidateTaint + "]", Value: strconv.Quote(k.value), Taken: "unset; it must be seconds since 1970",
	})
}
