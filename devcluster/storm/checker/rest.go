package checker

import (
	"maps"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
)

// This file has what must hold at rest: nobody creates anything any more, and no misfortune is
// on. Unrest says what is still under way; whoever waits for rest gives up after a time, and
// then Rest makes violations of it.

// Unrest returns what isn't at rest yet, in words, "" for nothing: pods that fit and wait, and
// nodes on their way out.
func (h *History) Unrest(now time.Time) string {
	probe := *h
	probe.found, probe.known = nil, map[string]bool{}
	probe.rest(now)
	if len(probe.found) == 0 {
		return ""
	}
	return probe.found[0].String()
}

// Rest records what Unrest would return as violations.
func (h *History) Rest(now time.Time) { h.rest(now) }

// rest is both: what it finds is violations of the History that it is called on.
func (h *History) rest(now time.Time) {
	nodes, pods := h.live()
	for _, p := range pods {
		l := h.pods[p.UID]
		if !waits(l) || h.lacksMembers(p) {
			continue
		}
		if on := h.fits(p, nodes, pods); on != "" {
			h.add(now, Unscheduled, string(p.UID), "pod %s waits at rest, and fits on %s", name(p), on)
		} else if p.Spec.NodeSelector[h.config.GroupLabel] != "" {
			h.add(now, Unscheduled, string(p.UID), "pod %s waits at rest for a node of group %s", name(p), p.Spec.NodeSelector[h.config.GroupLabel])
		} else if h.claims(p) {
			h.add(now, Unscheduled, string(p.UID), "pod %s waits at rest for devices; %s", name(p), h.devices.String())
		}
	}
	counted := h.countGangs()
	for _, name := range slices.Sorted(maps.Keys(counted)) {
		switch g := counted[name]; {
		case g.inPart():
			h.add(now, GangInPart, name, "gang %s has %d of %d members placed at rest, and needs %d", name, g.placed, g.pods, g.minCount)
		case g.whole() && g.placed == 0: // there is room for each gang, or it can be bought
			h.add(now, Unscheduled, name, "gang %s of %d members waits at rest", name, g.pods)
		}
	}
	for _, n := range nodes {
		l := h.nodes[n.UID]
		if n.Labels[h.config.GroupLabel] == "" {
			continue
		}
		if !l.tainted.IsZero() || !l.cordoned.IsZero() {
			h.add(now, TaintedForEver, string(n.UID), "node %s is tainted or cordoned at rest, since %s", n.Name, latest(l.tainted, l.cordoned).Format(time.TimeOnly))
		}
	}
}

// Empty records nodes of groups and claims with devices that are left when no pod needs any, which is when the
// cluster has no load.
func (h *History) Empty(now time.Time) {
	nodes, pods := h.live()
	for _, n := range nodes {
		if n.Labels[h.config.GroupLabel] != "" && !used(n, pods) {
			h.add(now, NodeLeft, string(n.UID), "node %s of group %s has no pod", n.Name, n.Labels[h.config.GroupLabel])
		}
	}
	for _, c := range h.devices.allocated() {
		h.add(now, DevicesKept, string(c.UID), "claim %s has devices without load", name(c))
	}
}

// Left returns how many nodes of groups have no pod, and claims have devices, when there is no load.
func (h *History) Left() (left int) {
	nodes, pods := h.live()
	for _, n := range nodes {
		if n.Labels[h.config.GroupLabel] != "" && !used(n, pods) {
			left++
		}
	}
	return left + len(h.devices.allocated())
}

// used reports whether a pod that hasn't ended is on a node.
func used(n *v1.Node, pods []*v1.Pod) bool {
	for _, p := range pods {
		if p.Spec.NodeName == n.Name {
			return true
		}
	}
	return false
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
