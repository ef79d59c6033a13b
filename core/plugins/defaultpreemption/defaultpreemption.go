// Package defaultpreemption says which pods may preempt others, which of a node's
// pods are to be kept first, and on which node preemption costs least. It is
// kube-scheduler's DefaultPreemption without its sampling of nodes: the engine looks
// at all of them, and finds the victims (engine.Preempt).
package defaultpreemption

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/compat"
	"github.com/berthproject/berth/core/framework"
)

// Name is the plugin's name in kube-scheduler configuration.
const Name = "DefaultPreemption"

// Plugin implements framework.Preempter.
type Plugin struct {
	// stops says that a pod that violates a disruption budget is counted against no further one.
	stops bool
	// tells says that a pod's condition names the node that victims leave for it.
	tells bool
}

// New returns the plugin as kube-scheduler of a version has it.
func New(v compat.Version) Plugin { return Plugin{stops: v >= compat.V37, tells: v >= compat.V37} }

var _ framework.Preempter = Plugin{}

// Name implements framework.Preempter.
func (Plugin) Name() string { return Name }

// SignPreemption implements framework.Preempter.
func (Plugin) SignPreemption(pod *cluster.Pod, sig *framework.Signature) { sig.Bool(never(pod)) }

// never reports whether the pod's preemptionPolicy forbids that it preempts.
func never(pod *cluster.Pod) bool {
	p := pod.Object.Spec.PreemptionPolicy
	return p != nil && *p == v1.PreemptNever
}

// Eligible implements framework.Preempter (PodEligibleToPreemptOthers). That a
// nominated pod waits for its victims is the queue's.
func (Plugin) Eligible(pod *cluster.Pod) *framework.Reason {
	if never(pod) {
		return &framework.Reason{Plugin: Name, Messages: []string{"not eligible due to preemptionPolicy=Never."}, OfPod: true}
	}
	return nil
}

// Order implements framework.Preempter (filterPodsWithPDBViolation): first the units with pods
// whose eviction would violate a disruption budget, then the others, each part by
// falling importance. Budgets are spent in order of importance: the most important
// pods use up what disruptions are allowed.
func (x Plugin) Order(units []framework.Unit, s *cluster.State) (violating int) {
	slices.SortFunc(units, moreImportant)
	spent := spending{state: s, stops: x.stops, allowed: map[*cluster.Budget]int32{}}
	for i := range units {
		u := &units[i]
		u.Violations = 0
		for _, p := range u.Pods {
			if spent.violates(p) {
				u.Violations++
			}
		}
		if u.Violations > 0 {
			violating++
		}
	}
	// Mostly none violates a budget, or all do, and they are in order as they are.
	if violating > 0 && violating < len(units) {
		slices.SortStableFunc(units, func(a, b framework.Unit) int { return compareBool(b.Violations > 0, a.Violations > 0) })
	}
	return violating
}

// spending counts disruption budgets down.
type spending struct {
	state   *cluster.State
	stops   bool
	allowed map[*cluster.Budget]int32 // disruptions left; below 0 when violated
	found   []*cluster.Budget         // scratch memory
}

// violates counts a pod against the budgets that select it, by name, and reports whether it violates
// one. Counting ends at the first of these if the plugin stops there.
func (x *spending) violates(p *cluster.Pod) bool {
	ok := true
	x.found = x.state.AppendBudgets(x.found[:0], p)
	for _, b := range x.found {
		if !b.Selects(p) {
			continue
		}
		if _, known := x.allowed[b]; !known {
			x.allowed[b] = b.Status.DisruptionsAllowed
		}
		x.allowed[b]--
		ok = ok && x.allowed[b] >= 0
		if !ok && x.stops {
			break
		}
	}
	return !ok
}

// Success implements framework.Preempter.
func (x Plugin) Success(node string, victims int) string {
	if !x.tells {
		return ""
	}
	return fmt.Sprintf("found a potential placement for pod on node %s, preempting %d victims", node, victims)
}

// moreImportant orders units by descending priority; groups come before pods, and larger groups
// before smaller ones (kube-scheduler's MoreImportantVictim); then by start time and UID of their
// most important pods.
func moreImportant(a, b framework.Unit) int {
	x, y := first(a.Pods), first(b.Pods)
	if c := cmp.Or(cmp.Compare(y.Priority, x.Priority), compareBool(b.Group, a.Group), cmp.Compare(len(b.Pods), len(a.Pods))); c != 0 {
		return c
	}
	return byImportance(x, y)
}

// first returns the most important pod.
func first(pods []*cluster.Pod) *cluster.Pod {
	if len(pods) == 1 {
		return pods[0]
	}
	return slices.MinFunc(pods, byImportance)
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}

// byImportance orders pods by descending priority, then by start time, the earliest first
// (kube-scheduler's MoreImportantPod), then by UID, so that the order is total. A pod that hasn't started is the youngest.
func byImportance(a, b *cluster.Pod) int {
	return cmp.Or(cmp.Compare(b.Priority, a.Priority), cmp.Compare(started(a), started(b)), strings.Compare(string(a.UID), string(b.UID)))
}

// started returns when the pod was started, in nanoseconds since 1970, the end of
// time when it wasn't.
func started(p *cluster.Pod) int64 {
	if t := p.Object.Status.StartTime; t != nil {
		return t.UnixNano()
	}
	return math.MaxInt64
}

// Cost implements framework.Preempter with the criteria of
// pickOneNodeForPreemption, in its order:
//
//	0  budgets violated: the fewest
//	1  the highest priority of a victim: the lowest
//	2  the sum of priorities: the lowest
//	3  the number of victims: the fewest
//	4  the start of the longest running victim of the highest priority: the latest
//
// Each priority is summed from the lowest there is, so that more victims never sum to
// less.
func (Plugin) Cost(v *framework.Victims) (c framework.PreemptionCost) {
	slices.SortFunc(v.Pods, byImportance)
	c[0] = int64(v.Violations)
	c[1] = int64(v.Pods[0].Priority)
	for _, p := range v.Pods {
		c[2] += int64(p.Priority) + math.MaxInt32 + 1
	}
	c[3] = int64(len(v.Pods))
	c[4] = -started(v.Pods[0])
	return c
}
