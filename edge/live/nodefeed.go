package live

import (
	"maps"
	"slices"
	"sync"

	v1 "k8s.io/api/core/v1"

	"github.com/berthproject/berth/core/step"
)

// nodeFeed gives nodes to the core, each with the ID of its node group. A provider may learn a
// node's group only after the API has shown the node: then regroup gives the node to the core
// again.
//
// What must hold: of one node, inputs come in the order in which the API showed it, and the last
// has the group that the provider named last; but a node that had a group has none only when two
// lists in a row have none for it: the provider may answer before its own cache is full.
type nodeFeed struct {
	groupOf func(*v1.Node) string
	put     func(...step.Input)

	mu    sync.Mutex
	shown map[string]step.NodeSet // guarded by mu; by name, what the core was given last
	// without are the nodes, by name, that had a group before the last list and not by it; guarded by mu
	without map[string]bool
}

func newNodeFeed(groupOf func(*v1.Node) string, put func(...step.Input)) *nodeFeed {
	return &nodeFeed{groupOf: groupOf, put: put, shown: map[string]step.NodeSet{}, without: map[string]bool{}}
}

// deliver puts inputs that are made by set and gone.
func (f *nodeFeed) deliver(inputs func() []step.Input) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.put(inputs()...)
}

// set returns the input for a node that came or changed. The caller holds mu.
func (f *nodeFeed) set(n *v1.Node) step.Input {
	in := step.NodeSet{Node: n, Group: f.groupOf(n)}
	if last := f.shown[n.Name]; in.Group == "" && last.Node != nil && last.Node.UID == n.UID {
		in.Group = last.Group // regroup says when it has none
	}
	f.shown[n.Name] = in
	return in
}

// gone returns the input for a node that was deleted. The caller holds mu.
func (f *nodeFeed) gone(n *v1.Node) step.Input {
	delete(f.shown, n.Name)
	delete(f.without, n.Name)
	return step.NodeGone{Name: n.Name}
}

// regroup gives the core again those nodes, by name, whose group isn't what the core was told.
func (f *nodeFeed) regroup() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(f.shown)) {
		in := f.shown[name]
		if group := f.groupOf(in.Node); group == "" && in.Group != "" && !f.without[name] {
			f.without[name] = true
			continue
		}
		delete(f.without, name)
		if group := f.groupOf(in.Node); group != in.Group {
			in.Group = group
			f.shown[name] = in
			f.put(in)
		}
	}
}
