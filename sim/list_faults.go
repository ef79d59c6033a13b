package sim

import (
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/berthproject/berth/core/autoscaler/nodegroup"
	"github.com/berthproject/berth/internal/seeded"
	"github.com/berthproject/berth/sim/scenario"
)

// This file is what goes wrong with the cloud's lists of groups: a group has another name, is in one
// list twice, or shares instances with another. What must hold: faults and luck go by a group's
// configured name, so that they are the same whatever the group is called.

// formerName is a name that a group had and has no more.
type formerName struct {
	name   string
	missed time.Duration // when Berth first got a list without it, -1 for not yet
	gone   bool          // Berth has got another nodegroup.GoneAfter later, or any later one
}

// configured returns the configured name of a group, and the name as it is if no group has it.
func (w *World) configured(id string) string {
	if g := w.group(id); g != nil {
		return g.cfg.Name
	}
	return id
}

// configured returns the configured name of the node's group, "" for none.
func (n *node) configured() string {
	if n.instance == nil {
		return n.group
	}
	return n.instance.group.cfg.Name
}

// renameGroup gives a group another name, and its former one back after a while, if ever.
func (w *World) renameGroup(x *scenario.Fault, pick func(int) int) {
	list := slices.DeleteFunc(slices.Clone(w.groups), func(g *group) bool { return x.Group != "" && g.cfg.Name != x.Group })
	if len(list) == 0 {
		return
	}
	g := list[pick(len(list))]
	name := fmt.Sprintf("%s-%d", g.cfg.Name, w.faults.serial)
	if w.faults.serial%2 == 0 { // so that it stands elsewhere in lists
		name = fmt.Sprintf("new-%d-%s", w.faults.serial, g.cfg.Name)
	}
	w.rename(g, name)
	if x.For.Duration > 0 {
		w.after(x.For.Duration, phaseWorld, func() { w.rename(g, g.cfg.Name) })
	}
}

// rename has the cloud know a group by another name from now on. Its instances keep their IDs.
func (w *World) rename(g *group, name string) {
	if g.id == name {
		return
	}
	w.formerly = slices.DeleteFunc(w.formerly, func(f formerName) bool { return f.name == name })
	w.formerly = append(w.formerly, formerName{g.id, -1, false})
	g.id, g.toldAt, g.renamed = name, -1, w.now
	w.sortGroups()
	for _, m := range g.instances {
		if m.node != nil && !m.node.dead {
			m.node.group = name
			w.publishNode(m.node)
		}
	}
	w.noteChange()
}

// withOthers returns the instances that a list has of a group: its own, and some of other groups. It
// costs O(instances of all groups) in a world that has the fault.
func (w *World) withOthers(g *group, own []nodegroup.Instance) []nodegroup.Instance {
	if len(w.faults.byKind[scenario.GroupsOverlap]) == 0 {
		return own
	}
	var others []nodegroup.Instance
	for _, other := range w.groups {
		if other == g {
			continue
		}
		for _, m := range other.instances {
			if m.listed <= w.now && w.faults.hits(w, scenario.GroupsOverlap, g.cfg.Name, g.cfg.Name, m.name) {
				others = append(others, nodegroup.Instance{ID: m.id, Node: m.name, Failed: m.failed})
			}
		}
	}
	if others == nil {
		return own
	}
	w.cloud.overlapped = w.now
	return slices.Concat(own, others)
}

// perhapsTwice returns a group as a list has it: once, as a rule.
func (w *World) perhapsTwice(g *group, x nodegroup.Group) []nodegroup.Group {
	call := fmt.Sprint(w.cloud.made)
	if !w.faults.hits(w, scenario.GroupTwice, g.cfg.Name, g.cfg.Name, call) {
		return []nodegroup.Group{x}
	}
	out := []nodegroup.Group{x, x}
	if g.last.ID == g.id {
		if luck := seeded.Float(w.seed, "twice", g.cfg.Name, call); luck < 0.6 {
			out[int(luck*10)%2] = g.last
		}
	}
	return out
}

// tells returns the groups of which a list tells how they are: those that it doesn't have twice and
// differently.
func tells(groups []nodegroup.Group) map[string]bool {
	out, first := map[string]bool{}, map[string]*nodegroup.Group{}
	for i := range groups {
		g := &groups[i]
		if first[g.ID] == nil {
			first[g.ID], out[g.ID] = g, true
		} else if !reflect.DeepEqual(first[g.ID], g) {
			delete(out, g.ID)
		}
	}
	return out
}

// noteListedNames notes, of names that groups have no more, whether a list that Berth gets has them.
func (w *World) noteListedNames(groups []nodegroup.Group) {
	for i := range w.formerly {
		f := &w.formerly[i]
		switch {
		case slices.ContainsFunc(groups, func(g nodegroup.Group) bool { return g.ID == f.name }):
			f.missed, f.gone = -1, false
		case f.missed < 0:
			f.missed = w.now
		case w.now-f.missed >= nodegroup.GoneAfter:
			f.gone = true
		}
	}
}

// checkNames looks for groups in the state by names that they have no more.
func (w *World) checkNames() {
	for i := range w.formerly {
		if f := &w.formerly[i]; f.gone && w.berth.core().State().Group(f.name) != nil {
			w.violation("Berth has a node group %s, which lists haven't had since %s", f.name, f.missed)
		}
	}
}
