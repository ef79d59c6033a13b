package nodedeletion

// This file decides whose nodes are that carry the taint though this process hasn't written it.
// What must be true: only what Berth has marked is taken over, in a group that the
// provider lists, and only where nodes are removed at all. Any other such node keeps its
// taint, whoever put it there: it is neither untainted nor deleted.

import (
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/lifecycle"
	"github.com/berthproject/berth/core/step"
)

// Resume takes over a node that carries Berth's marks although this process has not written
// them: another process began to delete the node, and ended. It isn't known any more where
// its pods would go: the node goes only if none is left that would have to be evicted.
func (m *Machine) Resume(t *lifecycle.Turn, info *cluster.NodeInfo) {
	if taintOf(info.Object) < 0 {
		delete(m.others, info.Name)
		return
	}
	if m.cfg.LeaveResumed {
		return
	}
	marking, ours := readMarking(info.Object)
	if !ours {
		m.leave(t, info.Name, "", "it has the deletion taint, which Berth did not set")
		return
	}
	if group, left := m.others[info.Name]; left && group == info.Group {
		return
	}
	delete(m.others, info.Name)
	m.enter(info.Name, &deletion{group: info.Group, marking: marking, why: "its removal had begun", state: resumed{t.Now}})
}

// leave leaves a tainted node alone, and says so once. It is looked at again when its taint is
// gone or, if its note is Berth's, when it is in another group than the one given.
func (m *Machine) leave(t *lifecycle.Turn, name, group, why string) {
	if _, said := m.others[name]; !said {
		t.Decide(step.Decision{Kind: step.NodeKept, Node: name, Reason: why})
	}
	m.others[name] = group
}
