// Package defaultpreemption says which pods may take the place of which others.
package defaultpreemption

import (
	"cmp"
	"math"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/framework"
)

// Name is the plugin's.
const Name = "DefaultPreemption"

// Plugin is kube-scheduler's DefaultPreemption, without its sampling of nodes.
type Plugin struct{}

// Name implements framework.Preempter.
func (Plugin) Name() string { return Name }

// SignPreemption implements framework.Preempter.
func (Plugin) SignPreemption(pod *cluster.Pod, sig *framework.Signature) { sig.Bool(never(pod)) }

func never(pod *cluster.Pod) bool {
	p := pod.Object.Spec.PreemptionPolicy
	return p != nil && *p == v1.PreemptNever
}

// Eligible implements framework.Preempter.
func (Plugin) Eligible(pod *cluster.Pod) *framework.Reason {
	if never(pod) {
		return &framework.Reason{Plugin: Name, Messages: []string{"not eligible due to preemptionPolicy=Never."}, OfPod: true}
	}
	return nil
}

// Order implements framework.Preempter: the pods whose disruption budget has
// nothing left for them first, and within both parts the more important ones.
// A pod counts against each budget that selects it.
func (Plugin) Order(pods []*cluster.Pod, s *cluster.State) (violating int) {
	slices.SortFunc(pods, compare)
	left := map[*cluster.Budget]int32{}
	var within, beyond []*cluster.Pod
	for _, p := range pods {
		ok := true
		for _, b := range s.Budgets(p.Object.Namespace) {
			if !b.Selects(p) {
				continue
			}
			if _, known := left[b]; !known {
				left[b] = b.Status.DisruptionsAllowed
			}
			left[b]--
			ok = ok && left[b] >= 0
		}
		if ok {
			within = append(within, p)
		} else {
			beyond = append(beyond, p)
		}
	}
	copy(pods, append(beyond, within...))
	return len(beyond)
}

// compare orders by importance: higher priority, then longer running. A pod
// that has not started is the youngest.
func compare(a, b *cluster.Pod) int {
	return cmp.Or(cmp.Compare(b.Priority, a.Priority), cmp.Compare(started(a), started(b)), strings.Compare(string(a.UID), string(b.UID)))
}

func started(p *cluster.Pod) int64 {
	if t := p.Object.Status.StartTime; t != nil {
		return t.UnixNano()
	}
	return math.MaxInt64
}

// Cost implements framework.Preempter, with kube-scheduler's criteria: budgets
// violated, the highest priority, the sum of priorities, the number of victims,
// and how long the first of the most important ones has been running.
func (Plugin) Cost(v *framework.Victims) (c framework.PreemptionCost) {
	slices.SortFunc(v.Pods, compare)
	c[0] = int64(v.Violations)
	c[1] = int64(v.Pods[0].Priority)
	for _, p := range v.Pods {
		c[2] += int64(p.Priority) + math.MaxInt32 + 1
	}
	c[3] = int64(len(v.Pods))
	c[4] = -started(v.Pods[0])
	return c
}
