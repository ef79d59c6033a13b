package candidates

import (
	"fmt"
	"time"

	"github.com/berthproject/berth/core/cluster"
)

// This file has nodes wait longer after drains that came to nothing: their pods were evicted, and
// the node stayed, say for a pod that tolerates the taint of removals and came meanwhile. The same
// may happen each time. What must hold: a node whose drains all come to nothing has its pods
// evicted ever more rarely.

// vain is drains of one node in a row that have come to nothing.
type vain struct {
	times int
	last  time.Time
}

const (
	// leastAfterDrain is how long a node is unneeded before it is due again, at least.
	leastAfterDrain = time.Minute
	// mostAfterDrain is the same at most, unless a node's own time is longer.
	mostAfterDrain = 24 * time.Hour
	// vainKept is how long after the last drain in vain a node is due as others are.
	vainKept = 2 * mostAfterDrain
)

// DrainFailed records that pods of a node were asked to leave and that it stays all the same: it
// is needed, as after Forget. Each time in a row it has to be unneeded for twice as long.
func (m *Machine) DrainFailed(node string, now time.Time) {
	m.Forget(node)
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

// longer says for how long a candidate has to be unneeded after drains in vain; "" when there
// were none.
func (m *Machine) longer(c *candidate, g *cluster.NodeGroup) string {
	if c.vain == 0 || !c.ready {
		return ""
	}
	return fmt.Sprintf("; its pods were evicted in vain %d time(s), so it is due after %s", c.vain, m.dueAt(c, g).Sub(c.since))
}
