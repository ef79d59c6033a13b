package live

import (
	"maps"
	"slices"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/berthproject/berth/core/autoscaler/nodegroup"
	"github.com/berthproject/berth/core/step"
)

// nodeFeed gives nodes to the core, each with the ID of its node group. A provider may learn a
// node's group only after the API has shown the node: then regroup gives the node to the core
// again.
//
// What must hold: of one node, inputs come in the order in which the API showed it, and the last
// has the group that the provider named last; but a node that had a group has none only when the
// lists have had none for it for nodegroup.GoneAfter.
type nodeFeed struct {
	groupOf func(*v1.Node) string
	put     func(...step.Input)

	mu    sync.Mutex
	shown map[string]step.NodeSet // guarded by mu; by name, what the core was given last
	// without are the nodes, by name, that the core has in a group and the last lists don't, since when;
	// guarded by mu
	without map[string]time.Time
}

func newNodeFeed(groupOf func(*v1.Node) string, put func(...step.Input)) *nodeFeed {
	return &nodeFeed{groupOf: groupOf, put: put, shown: map[string]step.NodeSet{}, without: map[string]time.Time{}}
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
		group := f.groupOf(in.Node)
		if group == "" && in.Group != "" {
			since, ok := f.without[name]
			if !ok {
				since = time.Now()
				f.without[name] = since
			}
			if time.Since(since) < nodegroup.GoneAfter {
				continue
			}
		}
		delete(f.without, name)
		if group != in.Group {
			in.Group = group
			f.shown[name] = in
			f.put(in)
		}
	}
}
