package binding

import (
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
// a waiting pod takes effect when resolve runs: after each decision, and in each Step.

// wait is the wait of a pod that has a node for permission to be bound. Plugins see it
// as a framework.WaitingPod.
type wait struct {
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
}

// Reject implements framework.WaitingPod.
func (w *wait) Reject(plugin, message string) {
	if w.rejected == "" {
		w.rejected = fmt.Sprintf("rejected by plugin %s: %s", plugin, message)
	}
}

// waitingPods implements framework.WaitingPods.
type waitingPods struct{ m *Machine }

// Each implements framework.WaitingPods.
func (l waitingPods) Each(f func(framework.WaitingPod)) {
	for _, w := range slices.Clone(l.m.waiting) {
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
	return true
}

// Advance ends the waits whose time is over, or whose node is gone.
func (m *Machine) Advance(t *lifecycle.Turn) {
	m.freed = time.Time{}
	for _, w := range m.waiting {
		if t.State.NodeByName(w.p.node) == nil && w.rejected == "" {
			w.rejected = fmt.Sprintf("node %s is gone", w.p.node)
		}
		for _, v := range w.votes {
			if !t.Now.Before(v.until) && w.rejected == "" {
				w.rejected = fmt.Sprintf("rejected due to timeout after waiting %s at plugin %s", v.until.Sub(w.since), v.plugin)
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
	for {
		i := slices.IndexFunc(m.waiting, func(w *wait) bool { return w.rejected != "" || len(w.votes) == 0 })
		if i < 0 {
			return
		}
		w := m.waiting[i]
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
	m.waiting = slices.DeleteFunc(m.waiting, func(w *wait) bool { return w == p.wait })
	p.state, p.wait = Binding, nil
}

// NextWake returns when the first wait is over, zero for never; at once, when room has
// come free about which the queue wasn't asked.
func (m *Machine) NextWake() time.Time {
	next := m.freed
	for _, w := range m.waiting {
		for _, v := range w.votes {
			next = lifecycle.Earliest(next, v.until)
		}
	}
	return next
}
