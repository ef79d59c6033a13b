package cluster

import (
	"maps"
	"slices"
	"strings"

	"github.com/berthproject/berth/core/devices"
)

// NodeGroup is a node group as the provider describes it.
type NodeGroup struct {
	ID       string
	Min, Max int
	Target   int       // nodes asked for, launched or not
	Template *NodeInfo // what a new node looks like
	Price    float64   // per node and hour
	// TemplateError is why the provider can't say what a new node looks like, "" when it
	// can. Template is the last that it gave then, one without anything when it gave none.
	TemplateError string
	// KeepNodes is why no node of the group may be chosen for removal, "" when one may.
	KeepNodes string
	// Options are the provider's own for this group, nil for none.
	Options *GroupOptions
	// Devices are those that new nodes will have, as somebody declares it; nil for none.
	Devices *devices.Template
}

// SetGroup records what is known of a group; nil forgets it.
func (s *State) SetGroup(id string, g *NodeGroup) {
	s.record(Change{Op: GroupSet, Node: NoNode, Group: g, OldGroup: s.groups[id], name: id})
}

// Group returns a node group, or nil.
func (s *State) Group(id string) *NodeGroup { return s.groups[id] }

// Template returns what a new node of a group looks like, nil when that isn't known.
func (s *State) Template(group string) *NodeInfo {
	if g := s.groups[group]; g != nil {
		return g.Template
	}
	return nil
}

// Groups returns all groups by ID.
func (s *State) Groups() []*NodeGroup {
	return slices.SortedFunc(maps.Values(s.groups), func(a, b *NodeGroup) int { return strings.Compare(a.ID, b.ID) })
}

// EachGroup calls f for every node group, in any order: for what doesn't depend on it. It doesn't
// allocate.
func (s *State) EachGroup(f func(*NodeGroup)) {
	for _, g := range s.groups {
		f(g)
	}
}
