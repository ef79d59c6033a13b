package checker

import (
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/berthproject/berth/sim/checker"
)

// This file has what must hold while the storm is on. What a rule forgives for a while it
// forgives in calm times only as long as Patience: after a misfortune the count begins anew.

// Check looks at everything as it is now, and records what breaks a rule. The order of the rules doesn't
// matter but that gangs are counted before who waits is judged, and that the last two steps forget what the
// rules have judged.
func (h *History) Check(now time.Time) {
	nodes, pods := h.live()
	h.checkPlaces(now, nodes, pods)
	h.checkDeletions(now)
	h.checkPurchases(now)
	h.checkTaints(now)
	h.checkGangs(now)
	h.checkWaiting(now, nodes, pods)
	h.checkDevices(now)
	h.endWaves()
	h.forget(now)
}

// checkPlaces finds pods that may not be where they are, by a second checker that looks at
// one moment. That a node is missing is checkDeletions' to say.
func (h *History) checkPlaces(now time.Time, nodes []*v1.Node, pods []*v1.Pod) {
	for _, v := range checker.Check(nodes, h.withoutExtended(pods), cameLater) {
		if v.Rule != "node" {
			h.add(now, Misplaced, v.Pod+" "+v.Rule, "%s", v)
		}
	}
}

// cameLater reports whether a taint is one that a node gets after its pods.
func cameLater(t v1.Taint) bool {
	switch t.Key {
	case v1.TaintNodeNotReady, v1.TaintNodeUnreachable, v1.TaintNodeUnschedulable, toBeDeleted:
		return true
	}
	return false
}

// checkDeletions finds nodes of groups that were deleted while pods ran on them: pods that
// ended, neither by eviction nor by themselves, only after the node. A deletion is judged when
// the watch of pods has seen as far.
func (h *History) checkDeletions(now time.Time) {
	for uid, l := range h.nodes {
		if !l.gone || l.judged || h.podsSeen < l.goneBy {
			continue
		}
		l.judged = true
		if h.forgiven[uid] || l.node.Labels[h.config.GroupLabel] == "" || h.another(l) {
			continue
		}
		for _, p := range h.pods {
			if p.pod.Spec.NodeName == l.node.Name && (!p.ended || p.ranUntil >= l.goneBy) {
				h.add(now, NotEvicted, string(p.pod.UID), "node %s was deleted by revision %d, and pod %s, bound by revision %d, had not ended",
					l.node.Name, l.goneBy, name(p.pod), p.boundBy)
			}
		}
	}
}

// another reports whether another node has or had the name of a node.
func (h *History) another(l *nodeLife) bool {
	for _, other := range h.nodes {
		if other != l && other.node.Name == l.node.Name {
			return true
		}
	}
	return false
}

// checkTaints finds nodes that have the taint of deletion, or a cordon that goes with it, for
// longer than Patience.
func (h *History) checkTaints(now time.Time) {
	for uid, l := range h.nodes {
		if l.gone || l.node.Labels[h.config.GroupLabel] == "" {
			continue
		}
		if h.tooLong(now, l.tainted) {
			h.add(now, TaintedForEver, string(uid), "node %s has the taint %s since %s, with %s on it", l.node.Name, toBeDeleted, l.tainted.Format(time.TimeOnly), h.on(l.node.Name))
		} else if l.tainted.IsZero() && h.tooLong(now, l.cordoned) {
			h.add(now, TaintedForEver, string(uid), "node %s is cordoned without the taint %s since %s", l.node.Name, toBeDeleted, l.cordoned.Format(time.TimeOnly))
		}
	}
}

// on names the pods that run on a node.
func (h *History) on(node string) string {
	var out []string
	for _, l := range h.pods {
		if l.pod.Spec.NodeName == node && !l.ended {
			out = append(out, name(l.pod))
		}
	}
	if len(out) == 0 {
		return "no pod"
	}
	slices.Sort(out)
	return strings.Join(out, ", ")
}

// checkWaiting finds pods without a node that could have one.
func (h *History) checkWaiting(now time.Time, nodes []*v1.Node, pods []*v1.Pod) {
	for _, l := range h.pods {
		if !waits(l) || h.lacksMembers(l.pod) {
			l.fitsSince = time.Time{}
			continue
		}
		l.fitsSince = since(now, l.fitsSince, h.fits(l.pod, nodes, pods) != "")
		if h.tooLong(now, l.fitsSince) {
			h.add(now, Unscheduled, string(l.pod.UID), "pod %s has no node since %s, and fits on %s since %s",
				name(l.pod), l.pod.CreationTimestamp.Format(time.TimeOnly), h.fits(l.pod, nodes, pods), l.fitsSince.Format(time.TimeOnly))
		}
	}
}

// waits reports whether a pod waits for a scheduler.
func waits(l *podLife) bool {
	return !l.gone && !finished(l.pod) && l.pod.DeletionTimestamp == nil && l.pod.Spec.NodeName == "" && len(l.pod.Spec.SchedulingGates) == 0
}

// fits returns a node on which a pod may be placed, "" for none. Pods of lower priority may be
// preempted. Room that is kept for pods of the same or of higher priority on a node to which
// they are nominated is taken. No pod is preempted for devices.
func (h *History) fits(p *v1.Pod, nodes []*v1.Node, pods []*v1.Pod) string {
	taken := make([]*v1.Pod, 0, len(pods))
	for _, other := range pods {
		if n := other.Status.NominatedNodeName; n != "" && other.Spec.NodeName == "" && other.UID != p.UID && priority(other) >= priority(p) {
			there := *other
			there.Spec.NodeName = n
			other = &there
		}
		if other.Spec.NodeName != "" && priority(other) >= priority(p) {
			taken = append(taken, other)
		}
	}
	plain := h.withoutExtended([]*v1.Pod{p})[0]
	for _, n := range nodes {
		if ready(n) && h.hasDevices(p, n.Name) && checker.Fits(plain, n, nodes, taken) {
			return n.Name
		}
	}
	return ""
}

// priority returns a pod's priority, 0 without one: admission sets it for all others.
func priority(p *v1.Pod) int32 {
	if p.Spec.Priority == nil {
		return 0
	}
	return *p.Spec.Priority
}

// ready reports whether a node's kubelet says that it is ready.
func ready(n *v1.Node) bool {
	for _, c := range n.Status.Conditions {
		if c.Type == v1.NodeReady {
			return c.Status == v1.ConditionTrue
		}
	}
	return false
}

// tooLong reports whether something that holds since a time has held for longer than Patience
// in calm times.
func (h *History) tooLong(now, from time.Time) bool {
	return h.longerThan(h.config.Patience, now, from)
}

// longerThan reports whether something that holds since a time has held for longer than d in calm times.
func (h *History) longerThan(d time.Duration, now, from time.Time) bool {
	if from.IsZero() || h.calmSince.IsZero() {
		return false
	}
	if h.calmSince.After(from) {
		from = h.calmSince
	}
	return now.Sub(from) > d
}
