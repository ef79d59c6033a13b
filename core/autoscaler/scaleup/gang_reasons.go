package scaleup

import (
	"fmt"
	"strings"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/cluster"
)

// This file says why no purchase helps a gang.

// whyNot returns what the groups say, as NoHelp.Reasons has it: a limit, or why a new node takes none of the
// members; of one that takes some, how many would have a place.
func (b *builder) whyNot(g *gang) []string {
	counts, tried := map[string]int{}, triedDomains(g)
	runs := byClass(b.memberRuns(g.left))
	for _, group := range b.State.Groups() {
		for _, why := range b.whyNotGroup(g, runs, group, tried) {
			counts[why]++
		}
	}
	return autoscaler.CountReasons(counts)
}

// triedDomains returns what came of a gang's domains, by value: how many members fit at most, and whether one wasn't
// looked at. Of many groups each asks about its own domain.
func triedDomains(g *gang) map[string]autoscaler.GangOption {
	out := make(map[string]autoscaler.GangOption, len(g.out.Tried))
	for _, o := range g.out.Tried {
		x := out[o.Domain]
		if x.Fits = max(x.Fits, o.Fits); o.Why == notLookedAt {
			x.Why = o.Why
		}
		out[o.Domain] = x
	}
	return out
}

// whyNotGroup returns why nodes of one group don't help a gang, of which domains were tried.
func (b *builder) whyNotGroup(g *gang, runs []*run, group *cluster.NodeGroup, tried map[string]autoscaler.GangOption) []string {
	if room, limit := b.headroom(group); room <= 0 {
		return []string{limit}
	}
	m := b.models[group.ID]
	if why := b.takesNone(m, runs); why != nil {
		return why
	}
	value, _ := m.domainOf(g.Topologies)
	for _, label := range g.Topologies {
		if _, known := m.domainOf([]string{label}); !known {
			return []string{fmt.Sprintf("topology domain of new nodes unknown: %s differs or is missing", label)}
		}
	}
	of := tried[value]
	if of.Why == notLookedAt {
		return []string{of.Why}
	}
	return []string{fmt.Sprintf("not enough room for the pod group: %d of %d members fit", len(g.inPlace)+of.Fits, len(g.inPlace)+len(g.left))}
}

// takesNone returns why a new node of a group takes none of some classes, nil when it takes one.
func (b *builder) takesNone(m *model, runs []*run) []string {
	var first []string
	for _, r := range runs {
		why := b.Engine(r.pods[0]).ExplainAlone(r.class, b.blank(m))
		if why == nil {
			return nil
		}
		if first == nil {
			first = why.Messages
		}
	}
	return first
}

// mayHelpLater reports whether a group takes members that may not grow in this plan, and may soon.
func (b *builder) mayHelpLater(g *gang) bool {
	runs := byClass(b.memberRuns(g.left))
	for _, group := range b.State.Groups() {
		if room, limit := b.headroom(group); room <= 0 && passes(limit) && b.takesNone(b.models[group.ID], runs) == nil {
			return true
		}
	}
	return false
}

// tried notes an option of which nothing came.
func (g *gang) tried(domain string, fits int, why string) {
	g.out.Tried = append(g.out.Tried, autoscaler.GangOption{Domain: domain, Fits: fits, Why: why})
}

func compareIDs(x, y *cluster.NodeGroup) int { return strings.Compare(x.ID, y.ID) }
