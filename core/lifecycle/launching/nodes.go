package launching

import (
	"fmt"
	"slices"
	"time"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/lifecycle"
	"github.com/berthproject/berth/core/step"
)

// This file follows launches, from what the provider lists to the first pod that runs: the
// first table in doc.go. Unless a limit is adaptive they end when the node is ready: nobody
// asks what pulls then.

// node is a launch.
// It stays after it has ended, as usable, until the node goes: a node that was launched
// once isn't launched again.
type node struct {
	group      string
	state      state
	ordered    time.Time // zero when it isn't known
	ready      time.Time // zero in state launching
	registered bool      // the API has had it as a node
	images     string    // of the pods that it got first; "" before state pulling
	// noPod says that no pod of the launch has run yet, though it is ready (reached).
	noPod bool
}

// state is a row of the first table in doc.go.
type state uint8

const (
	launching state = iota
	arrived
	pulling
	usable
)

func (s state) String() string {
	return [...]string{"launching", "arrived", "pulling", "usable"}[s]
}

// InstanceListed takes an instance that isn't a node, when the provider first lists it, or lists it
// in another group, as it does when a group gets another name. It is taken
// for one of the latest order: of an earlier one that isn't listed instances were lost.
func (m *Machine) InstanceListed(now time.Time, group, id, name string) {
	if _, n := m.find(id, name); n != nil {
		m.moveTo(n, group)
		return
	}
	key := name
	if key == "" {
		key = id
	}
	n := &node{group: group, ordered: m.popOrder(now, group, latest)}
	m.nodes[key] = n
	m.reached(now, n, step.LaunchListed)
}

// whichOrder selects, among the open orders of a group, the one that an instance belongs to.
type whichOrder bool

const (
	oldest whichOrder = false
	latest whichOrder = true
)

// popOrder takes a node off the orders of a group that aren't listed, and returns when it was
// ordered; zero when there is no such order.
func (m *Machine) popOrder(now time.Time, group string, which whichOrder) time.Time {
	// Orders that are too old to bring a node any more don't count.
	list := recentOrders(m.unlisted[group], now)
	if len(list) == 0 {
		delete(m.unlisted, group)
		return time.Time{}
	}
	i := 0
	if which == latest {
		i = len(list) - 1
	}
	at := list[i].at
	if list[i].nodes--; list[i].nodes == 0 {
		list = slices.Delete(list, i, i+1)
	}
	m.unlisted[group] = list
	return at
}

// find returns the launch of an instance or a node, with the name that it is kept under; nil
// when it isn't known.
func (m *Machine) find(id, name string) (key string, n *node) {
	if n := m.nodes[name]; n != nil {
		return name, n
	}
	return id, m.nodes[id]
}

// InstanceUnlisted records that the provider no longer lists an instance that isn't a node.
func (m *Machine) InstanceUnlisted(id, name string) {
	// A node outlives its instance's entry in the list, which may be gone for a moment.
	if key, n := m.find(id, name); n != nil && n.state == launching {
		delete(m.nodes, key)
		m.waiting.changed = true
	}
}

// NodeSet takes a node as the state has it. isReady says whether it takes pods.
func (m *Machine) NodeSet(now time.Time, in *cluster.NodeInfo, isReady bool) {
	// Nodes of no group were ordered by nobody here.
	if in.Group == "" {
		return
	}
	key, n := m.find(in.Object.Spec.ProviderID, in.Name)
	if n != nil {
		m.moveTo(n, in.Group)
	}
	switch {
	// No launch was seen, so none is learnt from.
	case n == nil && isReady: // it was there before
		m.nodes[in.Name] = &node{group: in.Group, state: usable, ready: now}
	case n == nil:
		n := &node{group: in.Group, ordered: m.popOrder(now, in.Group, oldest), registered: true}
		m.nodes[in.Name] = n
		m.reached(now, n, step.LaunchRegistered)
	case n.state == launching:
		// From now on it is known by its node's name.
		delete(m.nodes, key)
		m.nodes[in.Name] = n
		if !n.registered {
			n.registered = true
			m.reached(now, n, step.LaunchRegistered)
		}
		if isReady {
			m.becameReady(now, in.Name, n)
		}
	}
}

// becameReady records that a node is ready: how long that took goes into later estimates,
// and with an adaptive limit what the node pulls is followed.
func (m *Machine) becameReady(now time.Time, name string, n *node) {
	n.ready, n.noPod = now, true
	m.reached(now, n, step.LaunchReady)
	m.waiting.changed = true
	// How long it took isn't known of nodes that were ordered by another process.
	if !n.ordered.IsZero() {
		m.remember(n.group, now.Sub(n.ordered))
	}
	if !m.adaptive() {
		n.state = usable
		return
	}
	n.state = arrived
	m.arrived = append(m.arrived, name)
	if n.ordered.IsZero() {
		return
	}
	// Compared with the best launches of the group lately: adaptive limits react to the
	// ratio.
	slowness := m.best.slowness(now, stage{group: n.group}, now.Sub(n.ordered))
	m.scopes(n.group, func(s *scope) { s.becameReady(now, n.ordered, slowness) })
}

// NodeGone records that a node is gone.
func (m *Machine) NodeGone(name string) {
	if n := m.nodes[name]; n != nil {
		m.end(n)
		delete(m.nodes, name)
	}
}

// end ends a launch.
// It may be called in any state.
func (m *Machine) end(n *node) {
	if n.state == pulling {
		m.countPull(n.group, -1)
	}
	n.state = usable
	m.waiting.changed = true
}

// moveTo records that a launch is of a group.
// Its time goes on: to move isn't to begin anew.
func (m *Machine) moveTo(n *node, group string) {
	if n.group == group {
		return
	}
	if n.state == pulling {
		m.countPull(n.group, -1)
		m.countPull(group, 1)
	}
	n.group = group
	m.waiting.changed = true
}

// countPull keeps the number of nodes of a group that pull; a group without any has no
// entry.
func (m *Machine) countPull(group string, by int) {
	if m.pulling[group] += by; m.pulling[group] == 0 {
		delete(m.pulling, group)
	}
}

// PodRuns records that the API shows a pod running on a node.
func (m *Machine) PodRuns(now time.Time, name string, pod *cluster.Pod) {
	n := m.nodes[name]
	// Pods of DaemonSets run everywhere, and say nothing about the images of those that the
	// node was bought for.
	if n == nil || pod.Daemon() {
		return
	}
	if n.noPod {
		n.noPod = false
		m.reached(now, n, step.LaunchRuns)
	}
	if n.state == pulling {
		m.started(now, n)
	}
}

// started ends a launch with an outcome: a pod runs, or none is there.
// A node without pods has pulled nothing, and counts as no slower than the best.
func (m *Machine) started(now time.Time, n *node) {
	took, slowness := now.Sub(n.ready), 1.0
	if n.state == pulling {
		slowness = m.best.slowness(now, stage{n.group, n.images}, took)
	}
	m.end(n)
	m.scopes(n.group, func(s *scope) { s.started(now, n.ordered, took, slowness) })
}

// Advance looks at the nodes that have become ready, in the Step of which this is the end:
// those that got pods pull. It gives up those that have pulled for too long.
// Only now it is known which pods the Step has put there.
func (m *Machine) Advance(t *lifecycle.Turn) {
	t.Ready.LaunchStages = append(t.Ready.LaunchStages, m.stages...)
	m.stages = m.stages[:0]
	for _, name := range m.arrived {
		n := m.nodes[name]
		if n == nil || n.state != arrived {
			continue
		}
		if n.images = images(t.State.NodeByName(name)); n.images == "" {
			m.started(t.Now, n)
			continue
		}
		n.state = pulling
		m.pulls = append(m.pulls, name)
		m.countPull(n.group, 1)
	}
	m.arrived = m.arrived[:0]
	// The order is that in which nodes became ready, so those at the head have pulled
	// longest.
	for len(m.pulls) > 0 {
		n := m.nodes[m.pulls[0]]
		if n != nil && n.state == pulling {
			if t.Now.Sub(n.ready) < m.cfg.Patience {
				break
			}
			m.end(n)
		}
		m.pulls = m.pulls[1:]
	}
}

// images returns the images of the pods on a node, each once, sorted; daemon pods are left
// aside. It is "" without such pods.
// Two nodes with the same images can be compared in how long they pull.
func images(n *cluster.Node) string {
	var out []string
	if n != nil {
		for _, pod := range n.Pods {
			for i := range pod.Object.Spec.Containers {
				if !pod.Daemon() {
					out = append(out, pod.Object.Spec.Containers[i].Image)
				}
			}
		}
	}
	if out == nil {
		return ""
	}
	slices.Sort(out)
	return fmt.Sprint(slices.Compact(out))
}

// BecomeLeader ends all launches: when another instance ordered them isn't known. What was
// learnt of them stays.
// An instance that stood by has seen neither orders nor decisions.
func (m *Machine) BecomeLeader() {
	for _, n := range m.nodes { // in any order
		n.noPod = false
		if n.state != usable {
			m.end(n)
		}
	}
	m.arrived, m.pulls = nil, nil
	clear(m.unlisted)
}
