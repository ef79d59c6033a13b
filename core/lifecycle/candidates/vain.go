package candidates

import (
	"fmt"
	"time"

	"github.com/berthproject/berth/core/cluster"
)

// This file makes nodes wait longer after drains that came to nothing: pods were evicted, and the
// node stayed all the same, for instance because a pod that tolerates the removal taint was placed
// on it meanwhile. The same may happen each time. What must hold: the pods of such a node are evicted
// ever more rarely.

// vain counts the drains of one node in a row that came to nothing.
type vain struct {
	times int
	last  time.Time
}

const (
	// leastAfterDrain is how long a node is unneeded before it is due again, at least.
	leastAfterDrain = time.Minute
	// mostAfterDrain is the same at most, unless a node's own time is longer.
	mostAfterDrain = 24 * time.Hour
	// vainKept is how long drains in vain are remembered after the last.
	vainKept = 2 * mostAfterDrain
)

// DrainedInVain records that pods of a node were evicted and that it stays all the same. Each time in
// a row it has to be unneeded for twice as long before it is due.
func (m *Machine) DrainedInVain(node string, now time.Time) {
	m.vain[node] = vain{m.inVain(node, now) + 1, now}
}

// inVain returns how many drains of a node in a row have come to nothing.
func (m *Machine) inVain(node string, now time.Time) int {
	v := m.vain[node]
	if now.Sub(v.last) > vainKept {
		delete(m.vain, node)
		return 0
	}
	return v.times
}

// afterDrains returns how long a node has to be unneeded after so many drains in vain.
func afterDrains(unneeded time.Duration, times int) time.Duration {
	if times == 0 {
		return unneeded
	}
	longest := max(unneeded, mostAfterDrain)
	unneeded = max(unneeded, leastAfterDrain)
	for ; times > 0 && unneeded < longest; times-- {
		unneeded *= 2
	}
	return min(unneeded, longest)
}

// longer describes how much longer than others a candidate has to be unneeded; "" when it hasn't.
func (m *Machine) longer(c *candidate, g *cluster.NodeGroup) string {
	if c.vain == 0 || !c.ready {
		return ""
	}
	return fmt.Sprintf("; it must be unneeded for %s, since %d drain(s) of it evicted pods and did not end with its removal", m.dueAt(c, g).Sub(c.since), c.vain)
}
