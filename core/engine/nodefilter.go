package engine

// This file runs a class's rules on single nodes, as kube-scheduler's Filter does.
// It is the slow way, O(rules) a node, for nodes that no cached answer covers: those
// with nominated pods, what-ifs, touched nodes of a waiting class, explanations. Its
// answers must equal the cached ones (column.go, view.go); both are compared with
// core/engine/reference.

import (
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/framework"
)

// nodeFilter runs a class's rules on single nodes, each as a group of its own. It
// reads the state as it is when it is asked, and is for use within one call of the
// engine: rules that are made anew make it stale.
type nodeFilter struct {
	class    *Class
	engine   *Engine
	counts   func(*cluster.Pod) bool // which nominated pods count, of those that the class leaves room for; nil: all
	state    *cluster.State
	plugins  []pluginRules
	topology []*cluster.Topology
	groups   framework.Groups // of one node; reused for each
	answer   [1]framework.Code
	overlay  *overlay // the engine's
	explains bool     // firstRejection words what it returns
	shared   bool     // pods nominated to the node that was asked about last share claims with the class's pod
	whatIfs  bool     // nominated pods are placed in what-ifs only: the slow reference (Options.Rebuilt)
}

// pluginRules are the rules that a plugin made for a class; at least one isn't nil.
type pluginRules struct {
	plugin    int // position in the profile
	local     framework.LocalRule
	localKind kinds // that of local: objectRules or podRules
	group     *groupRule
}

// rejection is the first rule that rejects a node, in the profile's order: either
// local or group is set, neither when the code is OK, or when rules have left the node out
// before any is asked (narrowing).
type rejection struct {
	code    framework.Code
	local   framework.LocalRule
	group   *groupRule
	leftOut bool
}

// noPlugin stands where no plugin is meant.
const noPlugin = -1

func (e *Engine) newNodeFilter(c *Class) *nodeFilter {
	f := &nodeFilter{}
	f.begin(e, c)
	return f
}

// begin makes f a filter of a class, and keeps the memory that it has.
func (f *nodeFilter) begin(e *Engine, c *Class) {
	*f = nodeFilter{class: c, engine: e, state: e.state, topology: c.topologies, plugins: c.inOrder, groups: f.groups, overlay: &e.overlay, whatIfs: e.options.Rebuilt}
}

// code returns the rules' answer for a node, with and without the pods nominated to it.
func (f *nodeFilter) code(n *cluster.Node) framework.Code {
	r, _ := f.firstRejection(n, 0)
	return r.code
}

// reason returns why a node is rejected, nil when it isn't, with and without the pods
// nominated to it. hinting is the plugin when it is a group rule that says no: the answer
// may then change without the node being touched. settled are rules that are known to take
// the class on the node as it is.
func (f *nodeFilter) reason(n *cluster.Node, settled kinds) (why *framework.Reason, hinting int) {
	f.explains = true
	r, why := f.firstRejection(n, settled)
	f.explains = false
	if r.group != nil {
		return why, r.group.plugin
	}
	return why, noPlugin
}

// explain words a rejection of a node, nil when it is none. It must be called before the state
// or the node asked about changes: a group rule explains its last answer.
func (f *nodeFilter) explain(r rejection, n *cluster.Node) *framework.Reason {
	switch {
	case f.class.Rejected != nil:
		return f.class.Rejected
	case r.leftOut:
		return f.class.narrowed.reason()
	case r.local != nil:
		return r.local.Explain(n)
	case r.group != nil:
		return r.group.Explain(&f.groups, 0)
	}
	return nil
}

// reject returns the first rule that rejects the node as the state is. It doesn't
// allocate.
func (f *nodeFilter) reject(n *cluster.Node) rejection { return f.rejectBy(allRules, n, n) }

// rejectBy is reject by the rules of some kinds. The local ones are asked about with, which
// is the node or a copy of it.
func (f *nodeFilter) rejectBy(asked kinds, n, with *cluster.Node) rejection {
	if f.class.Rejected != nil {
		return rejection{code: framework.Final} // of a filter that now has returned
	}
	if asked&objectRules != 0 && f.class.narrowed.leavesOut(n.NodeInfo) {
		return rejection{code: framework.Final, leftOut: true}
	}
	for i := range f.plugins {
		p := &f.plugins[i]
		if p.local != nil && asked&p.localKind != 0 {
			if code, _ := p.local.EvalNode(with); code != framework.OK {
				return rejection{code: code, local: p.local}
			}
		}
		if p.group != nil && asked&groupRules != 0 {
			if code := f.groupCode(p.group, n); code != framework.OK {
				return rejection{code: code, group: p.group}
			}
		}
	}
	return rejection{}
}

// onlyRejecter returns the plugin that rejects the node when all others take it,
// noPlugin when none or more than one does.
func (f *nodeFilter) onlyRejecter(n *cluster.Node) int {
	only := noPlugin
	for i := range f.plugins {
		p := &f.plugins[i]
		rejects := p.group != nil && f.groupCode(p.group, n) != framework.OK
		if p.local != nil && !rejects {
			code, _ := p.local.EvalNode(n)
			rejects = code != framework.OK
		}
		if rejects && only != noPlugin {
			return noPlugin
		}
		if rejects {
			only = p.plugin
		}
	}
	return only
}

// groupCode returns a group rule's answer for one node as a group of its own.
func (f *nodeFilter) groupCode(r *groupRule, n *cluster.Node) framework.Code {
	g := &f.groups
	g.Nodes = append(g.Nodes[:0], 1)
	g.Static = append(g.Static[:0], r.StaticKey(&n.NodeBasics))
	g.Host = append(g.Host[:0], r.HostKey(n.Index))
	g.Domains = g.Domains[:0]
	for _, at := range r.topologies {
		g.Domains = append(g.Domains, []cluster.Domain{f.topology[at].Of(n.Index)})
	}
	r.Filter(g, f.answer[:])
	return f.answer[0]
}
