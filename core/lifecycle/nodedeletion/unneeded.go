package nodedeletion

import (
	"time"

	"github.com/berthproject/berth/core/cluster"
)

// unneededNodes keeps since when each node that the last plan found empty has been
// so, and since when it has been ready or not: a node that becomes ready or unready
// starts anew, because UnneededTime holds for the one and UnreadyTime for the other.
type unneededNodes map[string]unneeded // by node name

type unneeded struct {
	since time.Time
	ready bool // the node was ready at that time, and has been since
}

// replace keeps the entries of the nodes that a plan made at now found empty, adds
// those that are new, and forgets the rest.
func (u *unneededNodes) replace(now time.Time, empty []string, s *cluster.State) {
	next := unneededNodes{}
	for _, name := range empty {
		n := s.NodeByName(name)
		if n == nil {
			continue
		}
		entry, ok := (*u)[name]
		if !ok || entry.ready != n.Ready() {
			entry = unneeded{now, n.Ready()}
		}
		next[name] = entry
	}
	*u = next
}

// forget starts a node's time anew.
func (u unneededNodes) forget(node string) { delete(u, node) }

// due tells whether a node has been empty long enough to be deleted, why it goes, and
// how long it has been empty.
func (u unneededNodes) due(cfg *Config, now time.Time, node string) (why string, empty time.Duration, ok bool) {
	entry := u[node]
	empty = now.Sub(entry.since)
	if entry.ready {
		return "it has been empty", empty, empty >= cfg.UnneededTime
	}
	return "it has been empty and unready", empty, !cfg.KeepUnready && empty >= cfg.UnreadyTime
}
