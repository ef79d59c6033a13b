package engine

import (
	"slices"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/framework"
)

// Which nodes take pods that claim devices beside the nominated pods that keep some there (kept.go).
//
// To find that out takes a what-if that places those pods, and hundreds of nodes may have some. So each
// answer is remembered for the class until its node is touched: a choice asks again only about nodes
// where something has changed. It must hold that an answer is remembered only if
//
//   - it concerns every pod of the class: no change of the what-if may have one of them signed
//     otherwise, and no nominated pod has a claim of the pod that asks;
//   - it follows from the node and the objects that local rules read: no group rule reads one of
//     the nominated pods. What group rules say of the node as it is must be asked before.
//
// The slow reference remembers nothing (Options.Rebuilt).

// maxBeside is how many answers an engine remembers: some 100 bytes each. Then all are forgotten.
const maxBeside = 1 << 18

// besides are the answers that an engine remembers. They follow the journal: after sync those whose
// number of touches is their node's are right.
type besides struct {
	cursor  cluster.Seq // the changes before it are taken into account
	touches []uint64    // how often a change or a rollback has touched a node, by node index; it never goes back
	answers map[*Class]map[cluster.NodeIndex]*besideAnswer
	n       int // how many answers there are
}

// besideAnswer is what is known of a node as of a number of touches.
type besideAnswer struct {
	touches uint64
	asked   bool // code is known
	code    framework.Code
	why     *framework.Reason // why the node is rejected; nil while that isn't known
}

// sync takes the changes since the last sync into account.
func (b *besides) sync(s *cluster.State) {
	changes, ok := s.Since(b.cursor)
	b.cursor = s.Head()
	for len(b.touches) < s.Len() {
		b.touches = append(b.touches, 0)
	}
	if b.n == 0 {
		return
	}
	if !ok {
		b.forgetAll()
	}
	b.touch(changes)
}

// touch records that changes were made or taken back. Which devices a group's room keeps follows from its
// headroom, too.
func (b *besides) touch(changes []cluster.Change) {
	for i := range changes {
		if n := changes[i].Node; n != cluster.NoNode && int(n) < len(b.touches) {
			b.touches[n]++
		}
		if changes[i].Op == cluster.HeadroomSet {
			b.forgetAll()
		}
	}
}

// rolledBack moves the cursor back to a position if it is beyond.
func (b *besides) rolledBack(to cluster.Seq, undone []cluster.Change) {
	if b.cursor > to {
		b.touch(undone[:b.cursor-to])
		b.cursor = to
	}
}

func (b *besides) forgetAll() { b.answers, b.n = nil, 0 }

// forget forgets a class.
func (b *besides) forget(c *Class) {
	b.n -= len(b.answers[c])
	delete(b.answers, c)
}

// answer returns what is known of a class and a node now. What is found out is for the caller to add, before the
// state changes.
func (b *besides) answer(c *Class, n cluster.NodeIndex) *besideAnswer {
	a := b.answers[c][n]
	switch {
	case a == nil:
		if a = (&besideAnswer{touches: b.touches[n]}); b.n >= maxBeside {
			b.forgetAll()
		}
		if b.answers == nil {
			b.answers = map[*Class]map[cluster.NodeIndex]*besideAnswer{}
		}
		if b.answers[c] == nil {
			b.answers[c] = map[cluster.NodeIndex]*besideAnswer{}
		}
		b.answers[c][n] = a
		b.n++
	case a.touches != b.touches[n]:
		*a = besideAnswer{touches: b.touches[n]}
	}
	return a
}

// remembersBeside prepares the engine to remember answers for a filter's class, and reports whether it may.
func (e *Engine) remembersBeside(f *nodeFilter) bool {
	pod := f.class.pod
	if f.whatIfs || f.counts != nil || !f.class.takes || !e.state.ClaimsDevices(pod) || e.state.ClaimsAwaited(pod) {
		return false
	}
	e.beside.sync(e.state)
	return true
}

// rememberedBeside is codeWithNominatedPods for classes that remembersBeside is true of.
func (f *nodeFilter) rememberedBeside(n *cluster.Node) framework.Code {
	if f.class.LooksBeyondNode() && slices.ContainsFunc(n.Nominated, func(p *cluster.Pod) bool { return f.leavesRoomFor(p) && f.reads(p) }) {
		return f.codeWithNominatedPods(n)
	}
	a := f.engine.beside.answer(f.class, n.Index)
	if a.asked {
		return a.code
	}
	code := f.codeWithNominatedPods(n)
	if !f.shared {
		a.code, a.asked = code, true
	}
	return code
}

// reasonBeside is reason, which is remembered for classes that remembersBeside is true of, and whose rules don't look
// beyond nodes.
func (f *nodeFilter) reasonBeside(n *cluster.Node, settled kinds, remembers bool) (why *framework.Reason, hinting int) {
	if !remembers {
		return f.reason(n, settled)
	}
	a := f.engine.beside.answer(f.class, n.Index)
	if a.why != nil {
		return a.why, noPlugin
	}
	if why, hinting = f.reason(n, settled); !f.shared {
		a.why = why
	}
	return why, hinting
}
