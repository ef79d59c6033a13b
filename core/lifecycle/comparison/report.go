package comparison

import (
	"cmp"
	"slices"
	"time"

	"github.com/berthproject/berth/core/step"
)

// This file sums up what was compared.

// Report sums up what a shadow has seen since it began.
type Report struct {
	// Since is when the first comparison was made, Until when the last was; zero before.
	Since time.Time `json:"since"`
	Until time.Time `json:"until"`
	// Compared are the pods that the other scheduler has placed after the shadow had seen them
	// without a node. Verdicts counts them, and the pods that are Berth's alone.
	Compared int                  `json:"compared"`
	Verdicts map[step.Verdict]int `json:"verdicts"`
	// Judged again are the placements that were found to be allowed later than they were seen.
	JudgedAgain int `json:"judgedAgain"`
	// Overtaken are, of the worse placements, those before which a pod left its node or a node
	// came, changed or went after the pod was first seen.
	Overtaken int `json:"overtaken"`
	// Short is by how many points all nodes of the other scheduler together score less than
	// Berth's choices.
	Short int64 `json:"short"`
	// Earlier compares with Berth's decisions at their own time.
	Earlier EarlierReport `json:"earlier"`
	// Other and Berth are how long pods have waited for a node: for the other's binding to be
	// seen, and for Berth's decision, which is bound by nobody. Both begin when the pod is first
	// seen, and count the same pods.
	Other Quantiles `json:"other"`
	Berth Quantiles `json:"berth"`
	// Waiting are pods that Berth has placed and of which the other scheduler has said nothing,
	// and Doubted placements that are to be judged again.
	Waiting int `json:"waiting"`
	Doubted int `json:"doubted"`
	// Differences are the largest, at most MaxDifferences.
	Differences []step.Comparison `json:"differences"`
}

// EarlierReport compares the other's placements with what Berth had decided before it saw
// them, in a cluster where its decisions had come true.
type EarlierReport struct {
	Decided int `json:"decided"` // pods for which Berth had a node before the other's binding was seen
	NoNode  int `json:"noNode"`  // pods for which Berth had found no node by then
	NotYet  int `json:"notYet"`  // pods that Berth hadn't tried by then
	Same    int `json:"same"`    // of Decided, those on the same node
	// Of Decided: how the other's node scores, when it was seen, against Berth's earlier one,
	// which NoMore says the cluster has no room on any more.
	Equal  int `json:"equal"`
	Better int `json:"better"`
	Worse  int `json:"worse"`
	NoMore int `json:"noMore"`
}

// MaxDifferences is how many differences a report explains.
const MaxDifferences = 10

// Agreement returns the share of compared pods whose node Berth chooses, too, or finds as
// good, of 1; 0 when none was compared.
func (r *Report) Agreement() float64 {
	return share(r.Verdicts[step.SameNode]+r.Verdicts[step.EquallyGood], r.Compared)
}

// Allowed returns the share of compared pods whose node Berth's rules allow.
func (r *Report) Allowed() float64 { return share(r.Compared-r.Verdicts[step.NotAllowed], r.Compared) }

func share(n, of int) float64 {
	if of == 0 {
		return 0
	}
	return float64(n) / float64(of)
}

// tally is a report in the making.
type tally struct {
	since, until time.Time
	compared     int
	onlyBerth    int
	verdicts     map[step.Verdict]int // of compared pods
	again        int
	overtaken    int
	short        int64
	earlier      EarlierReport
	other, berth times
	largest      []step.Comparison // by falling size
}

func newTally() tally { return tally{verdicts: map[step.Verdict]int{}} }

// add counts a comparison.
func (x *tally) add(c *step.Comparison) {
	if x.since.IsZero() {
		x.since = c.Time
	}
	x.until = c.Time
	x.addLargest(c)
	if !c.Verdict.Compared() {
		x.onlyBerth++
		return
	}
	x.compared++
	x.verdicts[c.Verdict]++
	if c.Later > 0 {
		x.again++
	}
	if c.Verdict == step.Worse && c.Meanwhile > 0 {
		x.overtaken++
	}
	x.short += c.Points()
	x.earlier.add(c)
	if c.Earlier != nil && c.Earlier.Node != "" {
		x.other.add(c.Took)
		x.berth.add(c.Earlier.Took)
	}
}

func (r *EarlierReport) add(c *step.Comparison) {
	switch e := c.Earlier; {
	case e == nil:
		r.NotYet++
	case e.Node == "":
		r.NoNode++
	default:
		r.Decided++
		switch {
		case e.Node == c.Node:
			r.Same++
		case c.Verdict == step.NotAllowed:
		case !e.Fits:
			r.NoMore++
		case c.Score == e.Now:
			r.Equal++
		case c.Score > e.Now:
			r.Better++
		default:
			r.Worse++
		}
	}
}

// size ranks differences: placements that aren't allowed, then by how many points a node scores
// less, then pods that are Berth's alone. 0 is no difference.
func size(v step.Verdict, points int64) int64 {
	switch v {
	case step.NotAllowed:
		return 1 << 62
	case step.Worse:
		return 1 + points
	case step.Better:
		return 1 - points
	case step.OnlyBerth:
		return 1
	}
	return 0
}

// wants reports whether a comparison is among the largest differences so far.
func (x *tally) wants(v step.Verdict, points int64) bool {
	n := size(v, points)
	return n > 0 && (len(x.largest) < MaxDifferences || n > sizeOf(&x.largest[len(x.largest)-1]))
}

func sizeOf(c *step.Comparison) int64 { return size(c.Verdict, c.BerthScore-c.Score) }

// addLargest puts a comparison among the largest differences, if it is one. Of equal ones the first
// stay.
func (x *tally) addLargest(c *step.Comparison) {
	if !x.wants(c.Verdict, c.BerthScore-c.Score) {
		return
	}
	x.largest = append(x.largest, *c)
	slices.SortStableFunc(x.largest, func(a, b step.Comparison) int { return cmp.Compare(sizeOf(&b), sizeOf(&a)) })
	x.largest = x.largest[:min(len(x.largest), MaxDifferences)]
}

// Report sums up what was compared so far, in O(pods without a node).
func (m *Machine) Report() *Report {
	x := &m.report
	r := &Report{Since: x.since, Until: x.until, Compared: x.compared, Verdicts: map[step.Verdict]int{}, JudgedAgain: x.again,
		Overtaken: x.overtaken, Short: x.short, Earlier: x.earlier, Other: x.other.quantiles(), Berth: x.berth.quantiles(), Doubted: len(m.doubts),
		Differences: slices.Clone(x.largest)}
	for _, v := range step.Verdicts {
		r.Verdicts[v] = x.verdicts[v]
	}
	r.Verdicts[step.OnlyBerth] = x.onlyBerth
	for _, p := range m.pods.All() {
		if p.pod != nil {
			r.Waiting++
		}
	}
	return r
}
