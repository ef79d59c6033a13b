package podgroups

import (
	"github.com/berthproject/berth/core/engine"
	"github.com/berthproject/berth/core/queue"
	"github.com/berthproject/berth/core/scheduler"
)

// Attempt is what would be decided about a group now.
type Attempt struct {
	// Places is how many of the members would be given nodes, and Search how these were found
	// (scheduler.Search).
	Places int
	Search string
	// Message says why the group is unschedulable, "" when it isn't; Why says it of each member, in the
	// order of scheduling.
	Message string
	Why     []string
	// Diagnosis is of the first member that found no node; nil when every one did, or none was tried.
	Diagnosis *engine.Diagnosis
}

// WhatIf returns what would be decided about a group now, and leaves everything as it is. ok is false of
// a group whose PodGroup isn't there, or of which no member waits.
func (m *Machine) WhatIf(g *queue.Group) (x Attempt, ok bool) {
	object, members := m.state.PodGroup(g.Key()), g.Members()
	if object == nil || len(members) == 0 {
		return x, false
	}
	r := m.request(object, g, func(i int) scheduler.Member {
		p := members[i].Pod()
		return scheduler.Member{Pod: p, Class: m.scheduler.Class(p)}
	})
	d := m.scheduler.WhatIfGroup(&r)
	return Attempt{len(d.Places), string(d.Search), d.Message, d.Why, d.Diagnosis}, true
}
