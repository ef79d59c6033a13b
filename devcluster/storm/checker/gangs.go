package checker

import (
	"maps"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
)

// This file follows gangs: pods of which a few are of no use. What must hold: a gang with all members there of
// which some have nodes, and too few, gets ahead within Patience; and the nodes of a gang that requires a topology
// are in one domain of it.

// gang is what pods are there of a gang, as of the last check.
type gang struct {
	minCount   int
	domains    []string  // in which members are, in order; nil when no topology is required
	pods       int       // that haven't ended
	placed     int       // of those
	inPartFrom time.Time // since when as many as now are placed, and too few; zero for not
}

// whole reports whether enough members are there to be placed.
func (g *gang) whole() bool { return g.pods >= g.minCount }

// inPart reports whether members have nodes that are of no use.
func (g *gang) inPart() bool { return g.whole() && g.placed > 0 && g.placed < g.minCount }

// gangOf returns the gang of a pod, the zero Gang for none.
func (h *History) gangOf(p *v1.Pod) Gang {
	if h.config.Gang == nil {
		return Gang{}
	}
	return h.config.Gang(p)
}

// countGangs counts members as they are now.
func (h *History) countGangs() map[string]*gang {
	now := map[string]*gang{}
	for _, l := range h.pods {
		of := h.gangOf(l.pod)
		if of.Name == "" || l.ended {
			continue
		}
		g := now[of.Name]
		if g == nil {
			g = &gang{minCount: of.MinCount}
			now[of.Name] = g
		}
		g.pods++
		if l.pod.Spec.NodeName != "" {
			g.placed++
			g.domains = append(g.domains, h.domainOf(of.Topology, l.pod.Spec.NodeName)...)
		}
	}
	for _, g := range now {
		slices.Sort(g.domains)
		g.domains = slices.Compact(g.domains)
	}
	return now
}

// domainOf returns in which domain of a topology a node is: nothing when no topology is required, or when the
// node isn't known, since nobody can say then.
func (h *History) domainOf(topology, node string) []string {
	for _, l := range h.nodes {
		if topology != "" && l.node.Name == node && !l.gone {
			return []string{l.node.Labels[topology]}
		}
	}
	return nil
}

// checkGangs finds gangs that stay placed in part, or are in more than one domain.
func (h *History) checkGangs(now time.Time) {
	counted := h.countGangs()
	for _, name := range slices.Sorted(maps.Keys(counted)) {
		g, before := counted[name], h.gangs[name]
		if before != nil && before.placed >= g.placed { // no progress
			g.inPartFrom = before.inPartFrom
		}
		if len(g.domains) > 1 {
			h.add(now, GangApart, name, "gang %s is in the domains %q", name, g.domains)
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
	name := h.gangOf(p).Name
	return name != "" && (h.gangs[name] == nil || !h.gangs[name].whole())
}

// Gang returns how many pods of a gang are there and haven't ended, and how many of them have nodes.
func (h *History) Gang(name string) (pods, placed int) {
	if g := h.countGangs()[name]; g != nil {
		return g.pods, g.placed
	}
	return 0, 0
}
