package launching

import (
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/berthproject/berth/core/lifecycle"
	"github.com/berthproject/berth/core/step"
)

// Limit is how many nodes may be launching at a time: a number, 0 for no limit, or
// Adaptive.
type Limit int

// Adaptive has launch control find the limit.
const Adaptive Limit = -1

// String writes the limit as the flags take it.
func (l Limit) String() string {
	if l == Adaptive {
		return "adaptive"
	}
	return strconv.Itoa(int(l))
}

// Config says how launches are limited.
type Config struct {
	Cluster Limit // of all groups together (--max-nodes-launching)
	Group   Limit // of each group (--max-nodes-launching-per-group)
	// Patience is how long a node whose pods don't start counts as pulling.
	Patience time.Duration
}

// Coming is how many nodes of each group were ordered and aren't ready, as
// scaleup.Coming counts them. The zero value has none.
type Coming struct {
	byGroup map[string]int // without zeros
	all     int
}

// Set records how many nodes of a group are coming.
func (c *Coming) Set(group string, nodes int) {
	if c.byGroup == nil {
		c.byGroup = map[string]int{}
	}
	c.all += nodes - c.byGroup[group]
	if c.byGroup[group] = nodes; nodes == 0 {
		delete(c.byGroup, group)
	}
}

// Of returns how many nodes of a group are coming.
func (c Coming) Of(group string) int { return c.byGroup[group] }

// All returns how many nodes of all groups are coming.
func (c Coming) All() int { return c.all }

func sum(of map[string]int) (n int) {
	for _, k := range of {
		n += k
	}
	return n
}

// Machine limits launches. Only the core's goroutine may call it.
type Machine struct {
	cfg     Config
	cluster *scope            // nil unless adaptive
	groups  map[string]*scope // filled as groups are asked about; empty unless adaptive
	// outcomes are those of each group's instances while no limit is adaptive: scopes know
	// more of launches.
	outcomes map[string]*outcomes
	best     bestTimes
	// nodes are the rows of the first table in doc.go: by the name of the node, by the ID of
	// the instance as long as the provider doesn't name its node.
	nodes map[string]*node
	// unlisted are the orders by group, less the instances that the provider has listed
	// since. Oldest first.
	unlisted map[string][]order
	arrived  []string // names of nodes that came into that state since the last Advance
	// pulls are names of nodes in the order in which they became ready: all that are in
	// state pulling, and some that no longer are. pulling counts the former by group.
	pulls   []string
	pulling map[string]int
	// took are the times of the latest launches by group, the latest last (times.go).
	took    map[string][]time.Duration
	waiting waiting
	// stages are those that launches have reached since the last Advance.
	stages []step.LaunchStage
}

var _ lifecycle.Machine = (*Machine)(nil)

// New returns a machine that has seen no launch.
func New(cfg Config) *Machine {
	m := &Machine{
		cfg: cfg, groups: map[string]*scope{}, outcomes: map[string]*outcomes{}, nodes: map[string]*node{}, unlisted: map[string][]order{},
		pulling: map[string]int{}, took: map[string][]time.Duration{},
	}
	if cfg.Cluster == Adaptive {
		m.cluster = newScope()
	}
	return m
}

// Limits reports whether there is any limit.
func (m *Machine) Limits() bool { return m.cfg.Cluster != 0 || m.cfg.Group != 0 }

// adaptive reports whether anything is to be learnt of launches.
func (m *Machine) adaptive() bool { return m.cfg.Cluster == Adaptive || m.cfg.Group == Adaptive }

// group returns what is known of a group, nil unless its limit is adaptive.
func (m *Machine) group(id string) *scope {
	if m.cfg.Group != Adaptive {
		return nil
	}
	g := m.groups[id]
	if g == nil {
		g = newScope()
		m.groups[id] = g
	}
	return g
}

// ForgetGroup forgets what was learnt of a group that is gone.
func (m *Machine) ForgetGroup(id string) {
	delete(m.groups, id)
	delete(m.outcomes, id)
	delete(m.took, id)
	delete(m.unlisted, id)
	m.best.forget(id)
}

// scopes calls f with what is known of the cluster and of a group.
func (m *Machine) scopes(group string, f func(*scope)) {
	if m.cluster != nil {
		f(m.cluster)
	}
	if g := m.group(group); g != nil {
		f(g)
	}
}

// Unlimited is a cap that limits nothing.
const Unlimited = math.MaxInt

// Cap returns how many nodes of all groups together may be coming now; at least 1.
func (m *Machine) Cap(now time.Time, coming Coming) int {
	return limit(m.cfg.Cluster, m.cluster, now, coming.All(), sum(m.pulling))
}

// GroupCap returns how many nodes of a group may be coming now; at least 1.
func (m *Machine) GroupCap(now time.Time, id string, coming Coming) int {
	return limit(m.cfg.Group, m.group(id), now, coming.Of(id), m.pulling[id])
}

func limit(l Limit, s *scope, now time.Time, coming, pulling int) int {
	switch l {
	case 0:
		return Unlimited
	case Adaptive:
		return coming + s.room(now, coming, pulling)
	}
	return int(l)
}

// Room returns how many more nodes of a group may be ordered now.
func (m *Machine) Room(now time.Time, id string, coming Coming) int {
	return max(min(m.Cap(now, coming)-coming.All(), m.GroupCap(now, id, coming)-coming.Of(id)), 0)
}

// NodesOrdered records that nodes of a group were ordered.
func (m *Machine) NodesOrdered(now time.Time, group string, nodes int) {
	m.scopes(group, func(s *scope) { s.ordered(now, nodes) })
	m.unlisted[group] = append(recentOrders(m.unlisted[group], now), order{now, nodes})
}

// OrderRefused records that the latest order of so many nodes was refused.
func (m *Machine) OrderRefused(group string, nodes int) {
	m.scopes(group, func(s *scope) { s.orders = withoutLatest(s.orders, nodes) })
	if list := withoutLatest(m.unlisted[group], nodes); len(list) > 0 {
		m.unlisted[group] = list
	} else {
		delete(m.unlisted, group)
	}
	m.waiting.changed = true
}

// withoutLatest removes the latest order of so many nodes, if there is one.
func withoutLatest(list []order, nodes int) []order {
	for i := len(list) - 1; i >= 0; i-- {
		if list[i].nodes == nodes {
			return slices.Delete(list, i, i+1)
		}
	}
	return list
}

// LaunchFailed records that an instance failed or is late while others are coming. It reports whether
// its group is to back off: not if launches fail by chance.
func (m *Machine) LaunchFailed(now time.Time, group, id, name string, coming Coming) (backOff bool) {
	if !m.adaptive() {
		o := m.outcomesOf(group)
		o.fail()
		return o.failing(coming.Of(group))
	}
	var ordered time.Time // zero when it isn't known: then no window shrinks
	if _, n := m.find(id, name); n != nil {
		ordered = n.ordered
	}
	if m.cluster != nil {
		m.cluster.hasFailed(now, ordered, coming.All())
		backOff = m.cluster.failing(coming.All())
	}
	if g := m.group(group); g != nil { // it says more about the group
		g.hasFailed(now, ordered, coming.Of(group))
		backOff = g.failing(coming.Of(group))
	}
	m.waiting.changed = true
	return backOff
}

// InstanceRegistered records that an instance of a group which wasn't a node is one.
func (m *Machine) InstanceRegistered(group string) {
	if !m.adaptive() {
		m.outcomesOf(group).pass()
	}
}

func (m *Machine) outcomesOf(group string) *outcomes {
	o := m.outcomes[group]
	if o == nil {
		o = &outcomes{}
		m.outcomes[group] = o
	}
	return o
}

// NextWake returns when a group may have room though nothing happens.
func (m *Machine) NextWake() time.Time { return m.waiting.wake() }

// Unsettled returns none: nobody waits for a launch, and what pulls isn't Berth's.
func (m *Machine) Unsettled() []string { return nil }
