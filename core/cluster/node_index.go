package cluster

import (
	"math"
	"time"
)

// What is found of nodes without a walk over them. Invariant: it is what a walk over the
// nodes that there are would find; apply and undo keep it so.

// nodeIndex is what State finds of its nodes beside their names.
type nodeIndex struct {
	providers map[string]int // how many nodes have a provider ID; only those that some node has
	unready   map[NodeIndex]bool
	byGroup   map[string]int // how many nodes a group has; only groups that have some
	created   []int64        // by index: when nodes were created, in Unix seconds; neverCreated where there is none
}

// neverCreated is before the creation of any node.
const neverCreated = math.MinInt64

func (x *nodeIndex) init() {
	x.providers, x.unready, x.byGroup = map[string]int{}, map[NodeIndex]bool{}, map[string]int{}
}

// count adds what a node's object says, or with -1 takes it away.
func (x *nodeIndex) count(i NodeIndex, info *NodeInfo, times int) {
	if id := info.Object.Spec.ProviderID; id != "" {
		addTo(x.providers, id, times)
	}
	addTo(x.byGroup, info.Group, times)
	for int(i) >= len(x.created) {
		x.created = append(x.created, neverCreated)
	}
	if times < 0 {
		delete(x.unready, i)
		x.created[i] = neverCreated
		return
	}
	if !info.Ready() {
		x.unready[i] = true
	}
	x.created[i] = info.Object.CreationTimestamp.Unix()
}

// HasProviderID reports whether a node's spec has this provider ID.
func (s *State) HasProviderID(id string) bool { return s.index.providers[id] > 0 }

// Unready calls f with each node that isn't ready, in no particular order.
func (s *State) Unready(f func(*Node)) {
	for i := range s.index.unready {
		f(s.nodes[i])
	}
}

// GroupSize returns how many nodes a group has, in O(1).
func (s *State) GroupSize(group string) int { return s.index.byGroup[group] }

// CreatedSince calls f with each node that was created at a time or later, by index; of those that were
// created less than a second before, with some. It costs O(indices), but some nanoseconds for each:
// other nodes aren't touched.
func (s *State) CreatedSince(at time.Time, f func(*Node)) {
	since := max(at.Unix(), neverCreated+1)
	for i, created := range s.index.created {
		if created >= since {
			f(s.nodes[i])
		}
	}
}
