package nodegroups

import (
	"fmt"
	"maps"
	"slices"
)

// This file keeps the instances that aren't nodes, or are being deleted. What must hold: each
// group's counts by state are what counting its instances would yield. Thousands may fail in one
// list, and for each it is asked how many of its group are in which state.

// followed is these instances. The zero value has none.
type followed struct {
	byID    map[string]*instance
	byGroup map[string]*groupInstances // groups without an instance have no entry
	changed map[string]bool            // groups of which it has to be counted anew what is coming
}

// groupInstances are those of one group.
type groupInstances struct {
	byID  map[string]*instance
	count [deleted + 1]int // by state
}

// get returns an instance by its ID, nil for one that isn't followed.
func (f *followed) get(id string) *instance { return f.byID[id] }

// ids returns the IDs of a group's instances, sorted.
func (f *followed) ids(group string) []string {
	if g := f.byGroup[group]; g != nil {
		return slices.Sorted(maps.Keys(g.byID))
	}
	return nil
}

// count returns how many of a group's instances are in some states, in O(states).
func (f *followed) count(group string, states ...instanceState) (n int) {
	if g := f.byGroup[group]; g != nil {
		for _, s := range states {
			n += g.count[s]
		}
	}
	return n
}

// none reports whether a group has no instance.
func (f *followed) none(group string) bool { return f.byGroup[group] == nil }

// follow adds an instance, in the place of another with its ID.
func (f *followed) follow(id string, x *instance) {
	f.forget(id)
	if f.byID == nil {
		f.byID, f.byGroup = map[string]*instance{}, map[string]*groupInstances{}
	}
	g := f.byGroup[x.group]
	if g == nil {
		g = &groupInstances{byID: map[string]*instance{}}
		f.byGroup[x.group] = g
	}
	f.byID[id], g.byID[id] = x, x
	f.add(x, 1)
}

// forget removes an instance, if it is followed.
func (f *followed) forget(id string) {
	x := f.byID[id]
	if x == nil {
		return
	}
	f.add(x, -1)
	delete(f.byID, id)
	g := f.byGroup[x.group]
	if delete(g.byID, id); len(g.byID) == 0 {
		delete(f.byGroup, x.group)
	}
}

// move takes an instance that is followed to another group.
func (f *followed) move(id string, x *instance, group string) {
	f.forget(id)
	x.group = group
	f.follow(id, x)
}

// become changes the state of an instance that is followed.
func (f *followed) become(x *instance, to instanceState) {
	f.add(x, -1)
	x.state = to
	f.add(x, 1)
}

func (f *followed) add(x *instance, n int) {
	f.byGroup[x.group].count[x.state] += n
	f.note(x.group)
}

// note records that something of a group has changed that says how many of its nodes are coming.
func (f *followed) note(group string) {
	if f.changed == nil {
		f.changed = map[string]bool{}
	}
	f.changed[group] = true
}

// invariants returns how the counts differ from the instances.
func (f *followed) invariants() (out []string) {
	all := 0
	for _, id := range slices.Sorted(maps.Keys(f.byGroup)) {
		g := f.byGroup[id]
		var count [deleted + 1]int
		for _, x := range g.byID {
			count[x.state]++
		}
		if all += len(g.byID); count != g.count {
			out = append(out, fmt.Sprintf("node group %s: its instances are counted as %v by state, and are %v", id, g.count, count))
		}
	}
	if all != len(f.byID) {
		out = append(out, fmt.Sprintf("%d instances are followed, and %d by group", len(f.byID), all))
	}
	return out
}
