package engine

// This file runs a class's rules on single nodes, as kube-scheduler's Filter does.
// It is the slow way, O(rules) a node, for nodes that no cached answer covers: those
// with nominated pods, what-ifs, touched nodes of a waiting class, explanations. Its
// answers must equal the cached ones (column.go, view.go); both are compared with
// core/engine/reference.

import (
	"slices"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/framework"
)

// nodeFilter runs a class's rules on single nodes, each as a group of its own. It
// reads the state as it is when it is asked, and is for use within one call of the
// engine: rules that are made anew make it stale.
type nodeFilter struct {
	class    *Class
	counts   func(*cluster.Pod) bool // which nominated pods count, of those that the class leaves room for; nil: all
	state    *cluster.State
	plugins  []pluginRules
	topology []*cluster.Topology
	groups   framework.Groups // of one node; reused for each
	answer   [1]framework.Code
}

// pluginRules are the rules that a plugin made for a class; at least one isn't nil.
type pluginRules struct {
	plugin int // position in the profile
	local  framework.LocalRule
	group  *groupRule
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
	*f = nodeFilter{class: c, state: e.state, topology: c.topologies, plugins: c.inOrder, groups: f.groups}
}

// code returns the rules' answer for a node. The node has to take the class both
// with and without the pods of equal or higher priority that are nominated to it
// (kube-scheduler's RunFilterPluginsWithNominatedPods): they may help or hinder.
func (f *nodeFilter) code(n *cluster.Node) framework.Code {
	if code := f.codeWithNominatedPods(n); code != framework.OK {
		return code
	}
	return f.reject(n).code
}

// codeWithNominatedPods returns the rules' answer for a node with those nominated
// pods placed on it, OK when there are none.
func (f *nodeFilter) codeWithNominatedPods(n *cluster.Node) framework.Code {
	code := framework.OK
	f.withNominatedPods(n, func() { code = f.reject(n).code })
	return code
}

// reason returns why a node is rejected, nil when it isn't, with and without the
// nominated pods as code has it. hinting is the plugin when it is a group rule
// that says no: the answer may then change without the node being touched.
func (f *nodeFilter) reason(n *cluster.Node) (why *framework.Reason, hinting int) {
	hinting = noPlugin
	f.withNominatedPods(n, func() { why, hinting = f.explain(f.reject(n), n) })
	if why != nil {
		return why, hinting
	}
	return f.explain(f.reject(n), n)
}

// leavesRoomFor reports whether a pod nominated to the node is in the way there.
func (f *nodeFilter) leavesRoomFor(p *cluster.Pod) bool {
	return f.class.LeavesRoomFor(p) && (f.counts == nil || f.counts(p))
}

// withNominatedPods calls do while the nominated pods that the class leaves room for are
// placed on the node; not at all when there are none.
func (f *nodeFilter) withNominatedPods(n *cluster.Node, do func()) {
	if !slices.ContainsFunc(n.Nominated, f.leavesRoomFor) {
		return
	}
	mark := f.state.Mark()
	for _, p := range slices.Clone(n.Nominated) {
		if f.leavesRoomFor(p) {
			f.state.PlaceAt(p, n.Index)
		}
	}
	do()
	f.state.Rollback(mark)
}

// explain words a rejection of a node. It must be called before the state or the
// node asked about changes: a group rule explains its last answer.
func (f *nodeFilter) explain(r rejection, n *cluster.Node) (why *framework.Reason, hinting int) {
	switch {
	case r.leftOut:
		return f.class.narrowed.reason(), noPlugin
	case r.local != nil:
		return r.local.Explain(n), noPlugin
	case r.group != nil:
		return r.group.Explain(&f.groups, 0), r.group.plugin
	}
	return nil, noPlugin
}

// reject returns the first rule that rejects the node as the state is. It doesn't
// allocate.
func (f *nodeFilter) reject(n *cluster.Node) rejection {
	if f.class.narrowed.leavesOut(n.NodeInfo) {
		return rejection{code: framework.Final, leftOut: true}
	}
	for i := range f.plugins {
		p := &f.plugins[i]
		if p.local != nil {
			if code, _ := p.local.EvalNode(n); code != framework.OK {
				return rejection{code: code, local: p.local}
			}
		}
		if p.group != nil {
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
