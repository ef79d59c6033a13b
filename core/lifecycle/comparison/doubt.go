package comparison

import (
	"time"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/engine"
	"github.com/berthproject/berth/core/lifecycle"
	"github.com/berthproject/berth/core/step"
)

// This file has placements that aren't allowed judged again. A scheduler decides for one pod
// after the other and binds several at once: a binding may be seen before that of a pod which
// was decided on earlier, and a pod's binding before the node's change that allowed it, since
// pods and nodes are watched apart.

// doubt is a placement that wasn't allowed when it was seen.
type doubt struct {
	comparison step.Comparison
	pod        *cluster.Pod // as it was before it was bound
	seen, next time.Time
	times      int // how often it was judged again
}

// doubtEnds are how long after a binding was seen it is judged again, and a last time.
var doubtEnds = []time.Duration{100 * time.Millisecond, 300 * time.Millisecond, time.Second, 3 * time.Second, 10 * time.Second}

// judgeDoubts judges what is due. What was found when the binding was seen stands, unless the
// node is found to be allowed.
func (m *Machine) judgeDoubts(t *lifecycle.Turn) {
	kept := m.doubts[:0]
	for i := range m.doubts {
		if d := m.doubts[i]; !m.settle(t, &d) {
			kept = append(kept, d)
		}
	}
	clear(m.doubts[len(kept):])
	m.doubts = kept
}

// settle judges a doubt again if that is due, and reports whether it has ended: the node is
// allowed, the pod has left it, or this was the last time.
func (m *Machine) settle(t *lifecycle.Turn, d *doubt) (ended bool) {
	if t.Now.Before(d.next) {
		return false
	}
	n := m.truth.state.NodeOf(d.pod.UID)
	known := m.truth.state.PodOn(d.pod.UID) != nil
	if !known || n != nil && n.Name != d.comparison.Node {
		m.tell(t, &d.comparison)
		return true
	}
	if now := d.comparison; n != nil {
		if m.judged(&now, d.pod); now.Verdict != step.NotAllowed {
			now.Time, now.Later = t.Now, t.Now.Sub(d.seen)
			m.tell(t, &now)
			return true
		}
	}
	if d.times++; d.times == len(doubtEnds) {
		m.tell(t, &d.comparison)
		return true
	}
	d.next = d.seen.Add(doubtEnds[d.times])
	return false
}

// forget forgets what no judgement needs any more.
func (t *truth) forget(now time.Time) {
	if head := t.state.Head(); head > columnsFollow {
		t.state.Trim(head - columnsFollow)
	}
	t.sched.ForgetClasses(now, func() map[*engine.Class]bool { return nil })
}

// columnsFollow is how many changes are kept for columns, so that one that isn't asked for some
// time needn't be made anew.
const columnsFollow = 1 << 14
