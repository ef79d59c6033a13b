package engine

import (
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/framework"
)

// Nodes with the pods that are nominated to them.
//
// A node has to take a class both with and without the pods of equal or higher priority
// that are nominated to it (kube-scheduler's RunFilterPluginsWithNominatedPods): they may
// help or hinder. What each kind of rule may say otherwise with them decides what is asked:
//
//	objectRules   nothing: they read the node's object only
//	podRules      local rules that read pods are asked about a copy of the node with the
//	              nominated pods on it, in O(pods there)
//	groupRules    only if one of them reads one of these pods (framework.PodReader): then
//	              they are asked in a what-if that places the pods that are read
//
// Classes that take something, as devices, are asked in a what-if where nominated pods take what they keep
// (kept.go), in the order in which they were nominated; then all rules are asked. kube-scheduler keeps no
// devices for nominated pods.
//
// Most group rules of most classes read nothing of the pods nominated to a node, and a
// what-if updates every fact that counts these pods. The slow reference places all pods in
// a what-if and asks all rules (Options.Rebuilt); the properties of property_test.go compare
// both.

// kinds is a set of kinds of rules.
type kinds uint8

const (
	objectRules kinds = 1 << iota // local rules that read only a node's object, and narrowing
	podRules                      // the other local rules
	groupRules

	allRules = objectRules | podRules | groupRules
)

// overlay is memory for a node with its nominated pods.
type overlay struct {
	pods, read []*cluster.Pod // the nominated ones, and of these those that a group rule reads
	node       cluster.Node   // the copy
}

// mayAwaitOthers returns the nodes to which pods may be nominated that the class has to leave room
// for, by index: those that only keep room for it are left out, as there are thousands in a large
// booking. The list is valid until the next call or change.
func (e *Engine) mayAwaitOthers(c *Class) []cluster.NodeIndex {
	return e.state.NominatedNodesBut(c.admitting, &e.awaiting)
}

// firstRejection returns the first rule that rejects a node with the nominated pods, or else
// without, and why if f.explains. settled are kinds of rules that are known to take the class
// on the node as it is; they are only asked what the nominated pods change.
func (f *nodeFilter) firstRejection(n *cluster.Node, settled kinds) (r rejection, why *framework.Reason) {
	ask := func(by *nodeFilter, asked kinds, with *cluster.Node) {
		if r = by.rejectBy(asked, n, with); f.explains {
			why = by.explain(r, with)
		}
	}
	f.withNominatedPods(n, func(by *nodeFilter, with *cluster.Node, changed kinds) {
		ask(by, allRules&^settled|changed, with)
		settled |= allRules &^ changed // or the node is rejected
	})
	if r.code == framework.OK {
		ask(f, allRules&^settled, n)
	}
	return r, why
}

// codeWithNominatedPods returns the rules' answer for a node with those pods on it that are
// nominated to it. The rules must take the class on the node as it is.
func (f *nodeFilter) codeWithNominatedPods(n *cluster.Node) framework.Code {
	code := framework.OK
	f.withNominatedPods(n, func(by *nodeFilter, with *cluster.Node, changed kinds) { code = by.rejectBy(changed, n, with).code })
	return code
}

// withNominatedPods calls do when the node has nominated pods that the class leaves room for:
// with is the node for local rules to look at, and the state is as group rules are to see it.
// changed are the kinds of rules that may answer otherwise than without these pods. by is the filter to
// ask: another one when these pods share claims with the class.
func (f *nodeFilter) withNominatedPods(n *cluster.Node, do func(by *nodeFilter, with *cluster.Node, changed kinds)) {
	x := f.overlay
	x.pods, x.read, f.shared = x.pods[:0], x.read[:0], false
	for _, p := range n.Nominated {
		if !f.leavesRoomFor(p) {
			continue
		}
		x.pods = append(x.pods, p)
		if f.whatIfs || f.reads(p) || f.takes(p) {
			x.read = append(x.read, p)
		}
	}
	if len(x.pods) == 0 {
		return
	}
	with, changed := n, allRules
	if !f.whatIfs {
		n.CopyWith(x.pods, &x.node)
		with, changed = &x.node, podRules
	}
	if len(x.read) == 0 {
		do(f, with, changed)
		return
	}
	mark, objects := f.state.Mark(), f.engine.concernFrom()
	by, changed := f, changed|groupRules
	if f.class.takes && len(x.read) > 1 {
		f.state.SortNominated(x.read)
	}
	for _, p := range x.read {
		if !f.takes(p) {
			f.state.PlaceAt(p, n.Index)
			continue
		}
		f.engine.PlaceNominated(p, n.Index)
		by, changed = f.now(f.engine, &objects), allRules
	}
	f.shared = by != f
	do(by, with, changed)
	f.state.Rollback(mark)
}

// leavesRoomFor reports whether a pod nominated to the node is in the way there.
func (f *nodeFilter) leavesRoomFor(p *cluster.Pod) bool {
	return f.class.LeavesRoomFor(p) && (f.counts == nil || f.counts(p))
}

// takes reports whether what a nominated pod keeps may concern the class.
func (f *nodeFilter) takes(p *cluster.Pod) bool {
	return f.class.takes && f.state.ClaimsDevices(f.class.pod) && f.engine.Keeps(p)
}

// reads reports whether a group rule of the class reads a pod.
func (f *nodeFilter) reads(p *cluster.Pod) bool {
	for i := range f.class.groupRules {
		g := &f.class.groupRules[i]
		if !g.neverFilters && (g.pods == nil || g.pods.ReadsPod(p)) {
			return true
		}
	}
	return false
}
