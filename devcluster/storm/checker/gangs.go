package checker

import (
	"maps"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
)

// This file follows gangs: pods of which a few are of no use. What must hold: a gang with all members there of
// which some have nodes, and too few, gets ahead within Patience.

// gang is what pods are there of a gang, as of the last check.
type gang struct {
	minCount   int
	pods       int       // that haven't ended
	placed     int       // of those
	inPartFrom time.Time // since when as many as now are placed, and too few; zero for not
}

// whole reports whether enough members are there to be placed.
func (g *gang) whole() bool { return g.pods >= g.minCount }

// inPart reports whether members have nodes that are of no use.
func (g *gang) inPart() bool { return g.whole() && g.placed > 0 && g.placed < g.minCount }

// gangOf returns the gang of a pod, "" for none.
func (h *History) gangOf(p *v1.Pod) (name string, minCount int) {
	if h.config.Gang == nil {
		return "", 0
	}
	return h.config.Gang(p)
}

// countGangs counts members as they are now.
func (h *History) countGangs() map[string]*gang {
	now := map[string]*gang{}
	for _, l := range h.pods {
		name, minCount := h.gangOf(l.pod)
		if name == "" || l.ended {
			continue
		}
		g := now[name]
		if g == nil {
			g = &gang{minCount: minCount}
			now[name] = g
		}
		g.pods++
		if l.pod.Spec.NodeName != "" {
			g.placed++
		}
	}
	return now
}

// checkGangs finds gangs that stay placed in part.
func (h *History) checkGangs(now time.Time) {
	counted := h.countGangs()
	for _, name := range slices.Sorted(maps.Keys(counted)) {
		g, before := counted[name], h.gangs[name]
		if before != nil && before.placed >= g.placed { // no progress
			g.inPartFrom = before.inPartFrom
		}
		g.inPartFrom = since(now, g.inPartFrom, g.inPart())
		if h.tooLong(now, g.inPartFrom) {
			h.add(now, GangInPart, name, "gang %s has %d of %d members placed since %s, and needs %d", name, g.placed, g.pods, g.inPartFrom.Format(time.TimeOnly), g.minCount)
		}
	}
	h.gangs = counted
}

// lacksMembers reports whether a pod is of a gang of which too few members are there: it can't be placed.
func (h *History) lacksMembers(p *v1.Pod) bool {
	name, _ := h.gangOf(p)
	return name != "" && (h.gangs[name] == nil || !h.gangs[name].whole())
}

// Gang returns how many pods of a gang are there and haven't ended, and how many of them have nodes.
func (h *History) Gang(name string) (pods, placed int) {
	if g := h.countGangs()[name]; g != nil {
		return g.pods, g.placed
	}
	return 0, 0
}
