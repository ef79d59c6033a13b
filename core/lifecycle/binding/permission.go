package binding

import (
	"container/heap"
	"fmt"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/framework"
	"github.com/berthproject/berth/core/lifecycle"
	"github.com/berthproject/berth/core/step"
)

// This file holds the waits for permission (kube-scheduler's Permit). What plugins say about
// a waiting pod takes effect when resolve runs: after each decision, and in each Step. All of it together
// takes O(log waits) for each wait, however many members of a pod group wait for one another.

// wait is the wait of a pod that has a node for permission to be bound. Plugins see it
// as a framework.WaitingPod.
type wait struct {
	m        *Machine
	at       uint64 // numbers the waits in the order in which they began
	over     bool   // it is among Machine.over
	p        *Pod
	bind     step.Bind
	since    time.Time
	votes    []vote // of the plugins that it waits for
	rejected string // why it has to leave its node again, "" while it needn't
}

// vote is a plugin that a pod waits for.
type vote struct {
	plugin string
	until  time.Time
}

// Pod implements framework.WaitingPod.
func (w *wait) Pod() *cluster.Pod { return w.p.pod }

// Node implements framework.WaitingPod.
func (w *wait) Node() string { return w.p.node }

// Pending implements framework.WaitingPod.
func (w *wait) Pending() (out []string) {
	for _, v := range w.votes {
		out = append(out, v.plugin)
	}
	return out
}

// Allow implements framework.WaitingPod.
func (w *wait) Allow(plugin string) {
	w.votes = slices.DeleteFunc(w.votes, func(v vote) bool { return v.plugin == plugin })
	if len(w.votes) == 0 {
		w.end()
	}
}

// Reject implements framework.WaitingPod.
func (w *wait) Reject(plugin, message string) {
	if w.rejected == "" {
		w.rejected = fmt.Sprintf("rejected by plugin %s: %s", plugin, message)
		w.end()
	}
}

// end has resolve end a wait.
func (w *wait) end() {
	if !w.over && w.lasts() {
		w.over = true
		heap.Push(&w.m.over, w)
	}
}

// lasts reports whether the pod waits still.
func (w *wait) lasts() bool { return w.p.wait == w }

// waits are waits that are over, the one on top that began first. It implements heap.Interface.
type waits []*wait

func (x waits) Len() int           { return len(x) }
func (x waits) Less(i, k int) bool { return x[i].at < x[k].at }
func (x waits) Swap(i, k int)      { x[i], x[k] = x[k], x[i] }
func (x *waits) Push(w any)        { *x = append(*x, w.(*wait)) }
func (x *waits) Pop() any {
	last := len(*x) - 1
	w := (*x)[last]
	*x = (*x)[:last]
	return w
}

// begin has a pod wait.
func (m *Machine) begin(w *wait) {
	m.begun++
	w.m, w.at = m, m.begun
	w.p.state, w.p.wait = Waiting, w
	m.waiting = append(m.waiting, w)
	if key := w.p.pod.Group; key != nil {
		if m.members == nil {
			m.members = map[cluster.PodGroupKey]*memberWaits{}
		}
		x := m.members[*key]
		if x == nil {
			x = &memberWaits{}
			m.members[*key] = x
		}
		x.list, x.lasting = append(x.list, w), x.lasting+1
	}
}

// memberWaits are the waits of a group's members.
type memberWaits struct {
	list    []*wait // in the order in which they began; some may have ended
	lasting int     // those that haven't
}

// waitingPods implements framework.WaitingPods.
type waitingPods struct{ m *Machine }

// Each implements framework.WaitingPods.
func (l waitingPods) Each(f func(framework.WaitingPod)) {
	for _, w := range slices.Clone(l.m.waiting) {
		if w.lasts() {
			f(w)
		}
	}
}

// EachMember implements framework.WaitingPods.
func (l waitingPods) EachMember(key cluster.PodGroupKey, f func(framework.WaitingPod)) {
	x := l.m.members[key]
	if x == nil {
		return
	}
	x.list = slices.DeleteFunc(x.list, func(w *wait) bool { return !w.lasts() })
	for _, w := range slices.Clone(x.list) {
		f(w)
	}
}

// Get implements framework.WaitingPods.
func (l waitingPods) Get(uid types.UID) framework.WaitingPod {
	if p := l.m.pods.Get(uid); p != nil && p.wait != nil {
		return p.wait
	}
	return nil
}

// Permission is a plugin that a pod waits for.
type Permission struct {
	Plugin string
	Until  time.Time // then the node is taken away from the pod
}

// Permissions returns the plugins that a pod waits for, nil in other states than waiting.
func (p *Pod) Permissions() (out []Permission) {
	if p.wait != nil {
		for _, v := range p.wait.votes {
			out = append(out, Permission{v.plugin, v.until})
		}
	}
	return out
}

// Preempt ends the wait of a pod whose place another takes, and reports whether it waits.
// The pod leaves its node with the next Resolve.
func (m *Machine) Preempt(uid types.UID) bool {
	p := m.pods.Get(uid)
	if p == nil || p.wait == nil {
		return false
	}
	p.wait.rejected = "preempted"
	p.wait.end()
	return true
}

// Advance ends the waits whose time is over, or whose node is gone.
func (m *Machine) Advance(t *lifecycle.Turn) {
	m.freed = time.Time{}
	for _, w := range m.waiting {
		if !w.lasts() {
			continue
		}
		if t.State.NodeByName(w.p.node) == nil && w.rejected == "" {
			w.rejected = fmt.Sprintf("node %s is gone", w.p.node)
			w.end()
		}
		for _, v := range w.votes {
			if !t.Now.Before(v.until) && w.rejected == "" {
				w.rejected = fmt.Sprintf("rejected due to timeout after waiting %s at plugin %s", v.until.Sub(w.since), v.plugin)
				w.end()
			}
		}
	}
	m.resolve(t)
}

// Resolve binds the pods that wait for nobody any more, and takes the node away from those
// that were rejected.
func (m *Machine) Resolve(t *lifecycle.Turn) { m.resolve(t) }

// resolve goes on until nobody is left: what it does may have plugins say more.
func (m *Machine) resolve(t *lifecycle.Turn) {
	for len(m.over) > 0 {
		w := heap.Pop(&m.over).(*wait)
		if !w.lasts() {
			continue
		}
		m.looked++
		m.endWait(t, w.p, w.rejected == "")
		if w.rejected == "" {
			t.Decide(step.Decision{Kind: step.Permitted, Pod: w.p.pod.Name(), Node: w.p.node})
			m.post(t, w.bind)
			continue
		}
		m.unplace(t, w.p, step.Refused, v1.PodReasonUnschedulable, unavailable(w.rejected), w.rejected)
		m.freed = t.Now
	}
}

// endWait ends a pod's wait for permission, if it waits.
func (m *Machine) endWait(t *lifecycle.Turn, p *Pod, allowed bool) {
	if p.wait == nil {
		return
	}
	t.Ready.PermitWaits = append(t.Ready.PermitWaits, step.PermitWait{Allowed: allowed, Took: t.Now.Sub(p.wait.since)})
	if key := p.pod.Group; key != nil {
		if x := m.members[*key]; x != nil {
			if x.lasting--; x.lasting == 0 {
				delete(m.members, *key)
			}
		}
	}
	p.state, p.wait = Binding, nil
	if m.ended++; 2*m.ended > len(m.waiting) {
		m.looked += len(m.waiting)
		m.waiting = slices.DeleteFunc(m.waiting, func(w *wait) bool { return !w.lasts() })
		m.ended = 0
	}
}

// NextWake returns when the first wait is over, zero for never; at once, when room has
// come free about which the queue wasn't asked.
func (m *Machine) NextWake() time.Time {
	next := m.freed
	for _, w := range m.waiting {
		if !w.lasts() {
			continue
		}
		for _, v := range w.votes {
			next = lifecycle.Earliest(next, v.until)
		}
	}
	return next
}
