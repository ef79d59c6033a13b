package demo

import (
	"fmt"
	"slices"
	"sync"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// This file is the pods of the services as the API shows them, one change after the other.
// What must hold: a pod counts as ready for its service exactly while the disruption
// controller counts it as healthy, which is ready and not asked to terminate; so the fewest
// ready pods of a service say whether its budget was overrun, however short that was.

// serviceLabel is the label that names the service of a pod.
const serviceLabel = "app"

// servicePods is what was seen of the services' pods. From watch on it
// follows budgets and homes. Pods are told apart by UID: those of a StatefulSet have their names again.
type servicePods struct {
	least int // ready pods that each budget leaves a service

	mu       sync.Mutex
	pods     map[types.UID]servicePod // that exist; guarded by mu, as everything below
	ready    map[string]int           // by service
	watching bool
	known    map[types.UID]bool // pods that existed when the watching began
	evicted  map[types.UID]bool // pods whose condition said so since then
	moved    map[types.UID]bool // newer pods that have a node
	homeless map[types.UID]bool // newer pods of which it was said that no node has room
	// overrun has a line for each time that a service fell below its budget.
	overrun []string
	fewest  int // ready pods of any service at any time
}

// servicePod is what a pod's last event said.
type servicePod struct {
	service      string
	ready, bound bool
}

// podCounts is a summary of the services' pods.
type podCounts struct {
	all, pending, ready      int // now
	evicted, moved, homeless int // since the watching began
	overrun                  []string
	fewest                   int
}

func newServicePods(least int) *servicePods {
	return &servicePods{least: least, pods: map[types.UID]servicePod{}, ready: map[string]int{}}
}

// changed records a pod as it now is.
func (s *servicePods) changed(p *v1.Pod) {
	s.mu.Lock()
	defer s.mu.Unlock()
	seen := servicePod{service: p.Labels[serviceLabel], bound: p.Spec.NodeName != "", ready: p.DeletionTimestamp == nil && has(p, v1.PodReady, v1.ConditionTrue, "")}
	s.set(p, seen)
	s.pods[p.UID] = seen
}

// gone records a pod that was deleted.
func (s *servicePods) gone(p *v1.Pod) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.set(p, servicePod{service: p.Labels[serviceLabel], bound: p.Spec.NodeName != ""})
	delete(s.pods, p.UID)
}

// set counts the change of a pod. A pod that has become unready is judged against its service's budget
// at once, so that a fall that lasts for one event is seen.
func (s *servicePods) set(p *v1.Pod, seen servicePod) {
	was := s.pods[p.UID].ready
	switch {
	case seen.ready && !was:
		s.ready[seen.service]++
	case was && !seen.ready:
		s.ready[seen.service]--
	}
	if !s.watching {
		return
	}
	if ready := s.ready[seen.service]; was && !seen.ready {
		s.fewest = min(s.fewest, ready)
		if ready < s.least {
			s.overrun = append(s.overrun, fmt.Sprintf("%s with %d pods ready, fewer than %d", seen.service, ready, s.least))
		}
	}
	if has(p, v1.DisruptionTarget, v1.ConditionTrue, "EvictionByEvictionAPI") {
		s.evicted[p.UID] = true
	}
	if s.known[p.UID] {
		return
	}
	if seen.bound {
		s.moved[p.UID] = true
	}
	if has(p, v1.PodScheduled, v1.ConditionFalse, v1.PodReasonUnschedulable) {
		s.homeless[p.UID] = true
	}
}

// has reports whether a pod has a condition with a status and, unless it is "", a reason.
func has(p *v1.Pod, kind v1.PodConditionType, status v1.ConditionStatus, reason string) bool {
	return slices.ContainsFunc(p.Status.Conditions, func(c v1.PodCondition) bool {
		return c.Type == kind && c.Status == status && (reason == "" || c.Reason == reason)
	})
}

// watch begins to follow budgets and homes, if there are so many pods and all are ready. It
// reports whether that is so.
func (s *servicePods) watch(pods int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	ready := 0
	for _, n := range s.ready {
		ready += n
	}
	if ready != pods || len(s.pods) != pods {
		return false
	}
	s.watching, s.fewest = true, pods
	s.known, s.evicted, s.moved, s.homeless = map[types.UID]bool{}, map[types.UID]bool{}, map[types.UID]bool{}, map[types.UID]bool{}
	for uid := range s.pods {
		s.known[uid] = true
	}
	for _, n := range s.ready {
		s.fewest = min(s.fewest, n)
	}
	return true
}

// count sums up.
func (s *servicePods) count() podCounts {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := podCounts{all: len(s.pods), evicted: len(s.evicted), moved: len(s.moved), homeless: len(s.homeless), overrun: slices.Clone(s.overrun), fewest: s.fewest}
	for _, p := range s.pods {
		switch {
		case p.ready:
			c.ready++
		case !p.bound:
			c.pending++
		}
	}
	return c
}
