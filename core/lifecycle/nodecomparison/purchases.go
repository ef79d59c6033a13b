package nodecomparison

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/lifecycle"
	"github.com/berthproject/berth/core/step"
)

// This file follows purchases. What must hold: m.wishes are by the time of their plan, and a pod
// belongs to one wish at most, whose pods wait.

// wish is a node that Berth would have bought.
// It counts until the other autoscaler buys it, or its pods wait no more.
type wish struct {
	group string
	at    time.Time
	pods  []types.UID // none when the group was to reach its minimum
	names []string    // of the first pods
	why   string
	alone bool // it has had its time, and has its verdict
	// waits says that the node would be of use still: a pod of it waits, or the group is below its
	// minimum.
	waits bool
}

// maxNames is how many pods of a purchase are named.
const maxNames = 3

// proposal is a node that a plan proposes, with the pods that still wait.
type proposal struct {
	up   *autoscaler.ScaleUp
	pods []types.UID
}

// commitPurchases takes what a plan would buy. Plans don't see nodes that Berth only wishes for,
// and may divide the pods otherwise each time; so it is counted by how many nodes a plan has more
// than there are wishes whose pods wait.
// Wishes that are of no use are ended first, so that they don't hide what the plan wants
// now.
func (m *Machine) commitPurchases(t *lifecycle.Turn, plan *autoscaler.Plan, waits func(types.UID) bool, name func(types.UID) string) {
	m.endWishes(t, plan, waits)
	m.settleGrowth(t, plan)
	var anew, others []proposal
	// How many nodes the plan has beyond what is wished for.
	more := 0
	for i := range plan.ScaleUps {
		up := &plan.ScaleUps[i]
		if len(up.Pods) == 0 {
			m.wishForMinimum(t, up)
			continue
		}
		// Each bin is a node.
		for _, bin := range up.Bins {
			p := proposal{up: up, pods: slices.DeleteFunc(slices.Clone(bin), func(uid types.UID) bool { return !waits(uid) })}
			if len(p.pods) == 0 {
				continue
			}
			more++
			// Of these the plan may have divided pods otherwise than an earlier one.
			if slices.ContainsFunc(p.pods, func(uid types.UID) bool { return m.claims[uid] != nil }) {
				others = append(others, p)
			} else {
				anew = append(anew, p)
			}
		}
	}
	for _, w := range m.wishes {
		if w.waits && len(w.pods) > 0 {
			more--
		}
	}
	for _, p := range append(anew, others...) { // nodes for pods that no wish has count first
		free := slices.DeleteFunc(slices.Clone(p.pods), func(uid types.UID) bool { return m.claims[uid] != nil })
		switch {
		case len(free) == 0:
		case more > 0:
			more--
			m.wish(t, p.up, free, "", name)
		default: // they have room on a node that is wished for already
			for _, uid := range p.pods {
				if w := m.claims[uid]; w != nil {
					m.claim(w, free, name)
					break
				}
			}
		}
	}
}

// wish records a node that Berth would have ordered now. Growth that was seen after the plan
// was asked for, and that nobody has wished for, is the same purchase.
// A wish is recorded before it is matched, so that both ways give the same accounts.
func (m *Machine) wish(t *lifecycle.Turn, up *autoscaler.ScaleUp, pods []types.UID, why string, name func(types.UID) string) {
	w := &wish{group: up.Group, at: t.Now, waits: true, why: why}
	g := m.group(up.Group)
	// Hours up to now are accounted before the number of nodes changes.
	g.hours.accrue(m.began, t.Now)
	g.hours.extra++
	m.wishes = append(m.wishes, w)
	m.claim(w, pods, name)
	// The other autoscaler was faster: its growth isn't matched with a second wish.
	if len(g.grown) == 0 {
		return
	}
	if g.grown[0].nodes--; g.grown[0].nodes == 0 {
		g.grown = g.grown[1:]
	}
	m.wishes = m.wishes[:len(m.wishes)-1]
	m.meet(t, []*wish{w})
}

// meet records that the other autoscaler has ordered nodes that were wished for.
// They are out of m.wishes already, or are taken out by the caller.
func (m *Machine) meet(t *lifecycle.Turn, wishes []*wish) {
	for _, w := range wishes {
		m.rest(t, w)
	}
	m.met = append(m.met, wishes...)
	m.verdict(t, wishes, step.BoughtByBoth, "")
}

// wishForMinimum is wish for the nodes that a group needs to reach its minimum.
// Such nodes are for no pod, so they are matched by group alone.
func (m *Machine) wishForMinimum(t *lifecycle.Turn, up *autoscaler.ScaleUp) {
	more := up.Nodes
	for _, w := range m.wishes {
		if w.waits && len(w.pods) == 0 && w.group == up.Group {
			more--
		}
	}
	for range more {
		m.wish(t, up, nil, "to reach the minimum size of the group", nil)
	}
}

// claim has pods belong to a wish.
// A pod that belonged to another wish must not come here: it would have two.
func (m *Machine) claim(w *wish, pods []types.UID, name func(types.UID) string) {
	for _, uid := range pods {
		w.pods = append(w.pods, uid)
		m.claims[uid] = w
		if len(w.names) < maxNames {
			w.names = append(w.names, name(uid))
		}
	}
}

// endWishes has the wishes be of no use any more of which no pod waits, and forgets those that
// have their verdict.
// Pods may have found room elsewhere, or have gone.
func (m *Machine) endWishes(t *lifecycle.Turn, plan *autoscaler.Plan, waits func(types.UID) bool) {
	below := map[string]bool{} // groups below their minimum
	for i := range plan.ScaleUps {
		if up := &plan.ScaleUps[i]; len(up.Pods) == 0 {
			below[up.Group] = true
		}
	}
	for _, w := range m.wishes {
		if w.waits && !slices.ContainsFunc(w.pods, waits) && !(len(w.pods) == 0 && below[w.group]) {
			m.rest(t, w)
		}
	}
	// One with a verdict whose pods still wait is kept, or the next plan would wish for it
	// again.
	m.wishes = slices.DeleteFunc(m.wishes, func(w *wish) bool { return w.alone && !w.waits })
	m.met = slices.DeleteFunc(m.met, func(w *wish) bool { return !slices.ContainsFunc(w.pods, waits) })
}

// rest has a wish be of no use any more: Berth's version of the cluster has the node no longer.
// From then on its hours aren't counted for Berth.
func (m *Machine) rest(t *lifecycle.Turn, w *wish) {
	if !w.waits {
		return
	}
	w.waits = false
	h := &m.group(w.group).hours
	h.accrue(m.began, t.Now)
	h.extra--
	for _, uid := range w.pods {
		delete(m.claims, uid)
	}
}

// grew records that a group's target has grown, and returns how many of these nodes were wished
// for, the oldest wishes first.
// One that had been given up as bought by Berth only gets its verdict corrected.
func (m *Machine) grew(t *lifecycle.Turn, id string, nodes int) (met int) {
	var matched []*wish
	for _, w := range m.wishes {
		if w.group == id && len(matched) < nodes {
			matched = append(matched, w)
			if w.alone {
				m.report.correct(step.BoughtOnlyByBerth, func(c *step.NodeComparison) bool {
					return c.Group == id && c.Wished.Equal(w.at)
				})
			}
		}
	}
	m.wishes = slices.DeleteFunc(m.wishes, func(w *wish) bool { return slices.Contains(matched, w) })
	m.meet(t, matched)
	return len(matched)
}

// settleGrowth gives verdicts on growth that no wish was there for and that the plan has seen:
// nodes on which it has put waiting pods, Berth would have bought, too.
// Growth that came after the plan's snapshot is left for the next plan.
func (m *Machine) settleGrowth(t *lifecycle.Turn, plan *autoscaler.Plan) {
	needed := map[string]int{}
	for i := range plan.Joins {
		needed[plan.Joins[i].Group]++
	}
	// Those have their verdict already.
	for _, w := range m.met {
		needed[w.group]-- // some of these pods are those that the node was wished for
	}
	for _, in := range t.State.Groups() {
		g := m.group(in.ID)
		for len(g.grown) > 0 && !g.grown[0].at.After(plan.Now) {
			grown := g.grown[0]
			g.grown = g.grown[1:]
			both := max(min(grown.nodes, needed[in.ID]), 0)
			needed[in.ID] -= both
			if both > 0 {
				m.give(t, step.NodeComparison{Verdict: step.BoughtByBoth, Group: in.ID, Nodes: both, Price: float64(both) * in.Price,
					Reason: "the other autoscaler was first: pending pods need the nodes that it added"})
			}
			if alone := grown.nodes - both; alone > 0 {
				m.give(t, step.NodeComparison{Verdict: step.BoughtOnlyByOther, Group: in.ID, Nodes: alone, Price: float64(alone) * in.Price, Reason: m.whyNotBought(t, in.ID)})
			}
		}
	}
}

// whyNotBought says why Berth wouldn't have had a group grow.
// Order is that of the groups in the state.
func (m *Machine) whyNotBought(t *lifecycle.Turn, id string) string {
	instead := map[string]int{}
	for _, w := range m.wishes {
		if w.group != id {
			instead[w.group]++
		}
	}
	var out []string
	for _, g := range t.State.Groups() {
		if n := instead[g.ID]; n > 0 {
			out = append(out, fmt.Sprintf("%d of %s", n, g.ID))
		}
	}
	if out == nil {
		return "there was no pending pod for which Berth would have added such a node"
	}
	return "Berth would have added " + strings.Join(out, " and ") + " instead"
}

// givePurchasesUp gives verdicts on the purchases that nobody has made in time.
// Wishes are by time, so the first that is young ends the search.
func (m *Machine) givePurchasesUp(t *lifecycle.Turn) {
	var late []*wish
	for _, w := range m.wishes {
		if t.Now.Sub(w.at) < m.patience {
			break
		}
		if !w.alone {
			w.alone = true
			late = append(late, w)
		}
	}
	if late == nil {
		return
	}
	m.verdict(t, late, step.BoughtOnlyByBerth, fmt.Sprintf("the group was not scaled up for it within %s", m.patience))
	// Those that are of use stay until their pods have nodes.
	m.wishes = slices.DeleteFunc(m.wishes, func(w *wish) bool { return w.alone && !w.waits })
}

// verdict gives one verdict on wishes, those of one group and plan together.
// Wishes of one plan are next to each other.
func (m *Machine) verdict(t *lifecycle.Turn, wishes []*wish, v step.NodeVerdict, why string) {
	for len(wishes) > 0 {
		first, n := wishes[0], 0
		c := step.NodeComparison{Verdict: v, Group: first.group, Wished: first.at, Reason: why}
		if first.why != "" {
			c.Reason = strings.TrimPrefix(c.Reason+"; "+first.why, "; ")
		}
		for ; n < len(wishes) && wishes[n].group == first.group && wishes[n].at.Equal(first.at) && wishes[n].why == first.why; n++ {
			c.Pods = append(c.Pods, wishes[n].names...)
		}
		wishes = wishes[n:]
		c.Nodes, c.Price = n, float64(n)*m.group(first.group).hours.price
		c.Pods = c.Pods[:min(len(c.Pods), maxNames)]
		// How much earlier Berth wanted the nodes.
		if v.OfBoth() {
			c.Ahead = t.Now.Sub(first.at)
		}
		m.give(t, c)
	}
}
