package nodecomparison

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/berthproject/berth/core/step"
)

// This file sums up what was compared.

// Report sums up what a shadow has seen of nodes.
type Report struct {
	// Since is when the provider first told of its groups: the comparison begins then. Zero before.
	Since time.Time `json:"since"`
	// Verdicts counts nodes.
	Verdicts map[step.NodeVerdict]int `json:"verdicts"`
	// Buying are nodes that Berth would have bought, and Removing those that it would have removed,
	// of which it is open whether the other autoscaler does.
	Buying   int `json:"buying"`
	Removing int `json:"removing"`
	// Early are, of the nodes that only the other autoscaler has removed, those that Berth had
	// found unneeded, too, for a shorter time than it waits.
	Early int `json:"early"`
	// Again is how often a node was needed again that Berth would have removed.
	Again int `json:"again"`
	// BoughtAhead and RemovedAhead are by how much Berth was sooner on the mean, with what both
	// have done.
	BoughtAhead  time.Duration `json:"boughtAhead"`
	RemovedAhead time.Duration `json:"removedAhead"`
	// Cluster are the hours of the nodes of all groups, and Berth those of Berth's version.
	Cluster Hours `json:"cluster"`
	Berth   Hours `json:"berth"`
	// Unpriced are the groups with nodes whose price isn't known: they cost nothing here.
	Unpriced []string `json:"unpriced,omitempty"`
	// Differences are the largest by price, at most MaxDifferences.
	Differences []step.NodeComparison `json:"differences"`
}

// MaxDifferences is how many differences a report explains.
const MaxDifferences = 10

// tally is a report in the making.
type tally struct {
	verdicts            map[step.NodeVerdict]int
	early, again        int
	bought, removed     int // by both
	boughtIn, removedIn time.Duration
	largest             []step.NodeComparison // by falling price
}

func newTally() tally { return tally{verdicts: map[step.NodeVerdict]int{}} }

// add counts a verdict.
func (x *tally) add(c *step.NodeComparison) {
	x.verdicts[c.Verdict] += c.Nodes
	switch c.Verdict {
	case step.BoughtByBoth:
		x.bought += c.Nodes
		x.boughtIn += time.Duration(c.Nodes) * c.Ahead
	case step.RemovedByBoth:
		x.removed++
		x.removedIn += c.Ahead
	default:
		x.largest = append(x.largest, *c)
		slices.SortStableFunc(x.largest, func(a, b step.NodeComparison) int { return cmp.Compare(b.Price, a.Price) })
		x.largest = x.largest[:min(len(x.largest), MaxDifferences)]
	}
}

// correct takes back, of one node, the verdict that only Berth would have bought or removed it:
// the other autoscaler does, too. v is that verdict, and is tells which it is among the differences.
func (x *tally) correct(v step.NodeVerdict, is func(*step.NodeComparison) bool) {
	x.verdicts[v]--
	for i := range x.largest {
		c := &x.largest[i]
		if c.Verdict != v || !is(c) {
			continue
		}
		c.Price -= c.Price / float64(c.Nodes)
		c.Nodes--
		break
	}
	x.largest = slices.DeleteFunc(x.largest, func(c step.NodeComparison) bool { return c.Nodes == 0 })
}

// remove takes the verdict on a removal back; early reports whether Berth would have removed the
// node later.
func (x *tally) remove(c *step.NodeComparison, early bool) {
	x.verdicts[c.Verdict]--
	if early {
		x.early--
	}
	if c.Verdict == step.RemovedByBoth {
		x.removed--
		x.removedIn -= c.Ahead
	}
	x.largest = slices.DeleteFunc(x.largest, func(o step.NodeComparison) bool {
		return o.Node == c.Node && o.Time.Equal(c.Time) && o.Verdict == c.Verdict
	})
}

func mean(sum time.Duration, n int) time.Duration {
	if n == 0 {
		return 0
	}
	return sum / time.Duration(n)
}

// Report sums up what was compared until now, in O(nodes).
func (m *Machine) Report(now time.Time) *Report {
	x := &m.report
	r := &Report{Since: m.began, Verdicts: map[step.NodeVerdict]int{}, Early: x.early, Again: x.again,
		BoughtAhead: mean(x.boughtIn, x.bought), RemovedAhead: mean(x.removedIn, x.removed), Differences: slices.Clone(x.largest),
		Cluster: m.cluster, Berth: m.berth, Unpriced: slices.Clone(m.unpriced)}
	for _, v := range step.NodeVerdicts {
		r.Verdicts[v] = x.verdicts[v]
	}
	for _, w := range m.wishes {
		if !w.alone {
			r.Buying++
		}
	}
	for _, n := range m.nodes {
		if n.state == wished {
			r.Removing++
		}
	}
	for _, id := range slices.Sorted(maps.Keys(m.groups)) {
		h := m.groups[id].hours
		h.accrue(m.began, now)
		r.Cluster.sum(h.cluster)
		r.Berth.sum(h.berth)
		if h.isUnpriced() && !slices.Contains(r.Unpriced, id) {
			r.Unpriced = append(r.Unpriced, id)
		}
	}
	slices.Sort(r.Unpriced)
	return r
}
