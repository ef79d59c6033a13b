package nodecomparison

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/lifecycle"
	"github.com/berthproject/berth/core/lifecycle/candidates"
	"github.com/berthproject/berth/core/step"
)

// Candidates is what the comparison needs of the candidates.
type Candidates interface {
	// Since returns since when a node is a candidate; zero when it isn't one.
	Since(node string) time.Time
}

// Machine follows all wishes of a shadow. Only the core's goroutine may call it. Of a nil
// Machine, which is that of a core that compares no nodes, the methods that take inputs do
// nothing.
type Machine struct {
	patience   time.Duration
	candidates Candidates
	began      time.Time // when the provider first told of its groups; zero before
	groups     map[string]*group
	nodes      map[string]*node // of node groups, by name
	away       []away           // the nodes in state wished, since when, with those that have left it
	wishes     []*wish          // in the order in which they were made
	claims     map[types.UID]*wish
	met        []*wish           // that the other autoscaler has fulfilled, and of which a pod may wait
	kept       []autoscaler.Kept // by the last plan that looked at nodes, sorted by name
	report     tally
	// cluster and berth are the hours of groups that are forgotten, and unpriced those of them, at most
	// maxUnpriced, whose price wasn't known.
	cluster, berth Hours
	unpriced       []string
}

// maxUnpriced is how many groups without a price are remembered that are gone.
const maxUnpriced = 100

// group is a node group.
type group struct {
	target int  // as the provider said last
	listed bool // it has said
	// unlisted is since when the lists don't have it, zero when the last had it.
	unlisted time.Time
	// grown is growth that no wish was there for, each with the time when it was seen, until a
	// plan says whether pods need it.
	grown []growth
	hours hours
}

type growth struct {
	at    time.Time
	nodes int
}

var _ lifecycle.Machine = (*Machine)(nil)

// New returns a machine that knows of no group. patience is how long the other autoscaler has to
// do what Berth would have done.
func New(patience time.Duration, candidates Candidates) *Machine {
	return &Machine{patience: patience, candidates: candidates, groups: map[string]*group{}, nodes: map[string]*node{},
		claims: map[types.UID]*wish{}, report: newTally()}
}

// group returns the group of an ID, and makes it when it is new.
func (m *Machine) group(id string) *group {
	g := m.groups[id]
	if g == nil {
		g = &group{}
		m.groups[id] = g
	}
	return g
}

// GroupsSet takes what the provider tells of its groups. A group's first target is where the
// comparison begins.
func (m *Machine) GroupsSet(t *lifecycle.Turn, in step.GroupsSet) {
	if m == nil {
		return
	}
	// Hours are counted from the first list on.
	if m.began.IsZero() {
		m.began = t.Now
		for _, g := range m.groups {
			g.hours.last = t.Now
		}
	}
	defer m.forgetGroups(t, &in)
	for i := range in.Groups {
		x := &in.Groups[i]
		g := m.group(x.ID)
		g.unlisted = time.Time{}
		g.hours.accrue(m.began, t.Now)
		g.hours.price = x.Price
		more := x.Target - g.target
		if g.listed && more > 0 {
			if left := more - m.grew(t, x.ID, more); left > 0 {
				g.grown = append(g.grown, growth{t.Now, left})
			}
		}
		g.target, g.listed = x.Target, true
	}
}

// forgetGroups forgets groups that the lists haven't had for patience, of which there is neither a node
// nor a wish. What their nodes cost stays in the report.
// A list may lack a group by mistake, hence the patience.
func (m *Machine) forgetGroups(t *lifecycle.Turn, in *step.GroupsSet) {
	isListed := map[string]bool{}
	for i := range in.Groups {
		isListed[in.Groups[i].ID] = true
	}
	wanted := map[string]bool{}
	for _, w := range slices.Concat(m.wishes, m.met) {
		wanted[w.group] = true
	}
	for _, id := range slices.Sorted(maps.Keys(m.groups)) {
		g := m.groups[id]
		switch {
		case isListed[id] || !in.Says(id):
		case g.unlisted.IsZero():
			g.unlisted = t.Now
		case t.Now.Sub(g.unlisted) >= m.patience && g.hours.nodes == 0 && !wanted[id]:
			m.forgetGroup(id, g)
		}
	}
}

// forgetGroup forgets a group without nodes.
// Sums go on in the machine's own hours.
func (m *Machine) forgetGroup(id string, g *group) {
	m.cluster.sum(g.hours.cluster)
	m.berth.sum(g.hours.berth)
	if g.hours.isUnpriced() && len(m.unpriced) < maxUnpriced && !slices.Contains(m.unpriced, id) {
		m.unpriced = append(m.unpriced, id)
	}
	delete(m.groups, id)
}

// CommitPlan takes a plan, and the nodes that a leader would now begin to remove. waits reports
// whether a pod still has no node, and name returns its name.
func (m *Machine) CommitPlan(t *lifecycle.Turn, plan *autoscaler.Plan, due []candidates.Due, waits func(types.UID) bool, name func(types.UID) string) {
	// A plan of a sick cluster hasn't looked at nodes.
	if plan.Sick == "" {
		m.kept = plan.Kept
	}
	m.commitPurchases(t, plan, waits, name)
	m.commitRemovals(t, due)
}

// give counts a verdict and hands it out.
// Verdicts go to the ledger and into the sums of the report.
func (m *Machine) give(t *lifecycle.Turn, c step.NodeComparison) {
	c.Time = t.Now
	m.report.add(&c)
	t.Ready.NodeComparisons = append(t.Ready.NodeComparisons, c)
}

// Advance gives verdicts on wishes that have had their time.
func (m *Machine) Advance(t *lifecycle.Turn) {
	if m == nil {
		return
	}
	m.givePurchasesUp(t)
	m.giveRemovalsUp(t)
}

// NextWake returns when the next wish has had its time.
func (m *Machine) NextWake() (next time.Time) {
	if m == nil {
		return next
	}
	// They are by time, so the first that is open is the next.
	for _, w := range m.wishes {
		if !w.alone {
			next = w.at.Add(m.patience)
			break
		}
	}
	if len(m.away) > 0 {
		next = lifecycle.Earliest(next, m.away[0].at.Add(m.patience))
	}
	return next
}

// Unsettled names what has no verdict yet.
func (m *Machine) Unsettled() (out []string) {
	if m == nil {
		return nil
	}
	for _, w := range m.wishes {
		if !w.alone {
			out = append(out, fmt.Sprintf("whether the other autoscaler orders a node of group %s, too, is open", w.group))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(m.nodes)) {
		if m.nodes[name].state == wished {
			out = append(out, fmt.Sprintf("whether the other autoscaler removes node %s, too, is open", name))
		}
	}
	return out
}

// Invariants checks that what hours are summed up of is what the wishes say.
// A difference would make the hours wrong for ever.
func (m *Machine) Invariants() (out []string) {
	if m == nil {
		return nil
	}
	ends := map[away]bool{}
	for _, a := range m.away {
		ends[a] = true
	}
	for name, n := range m.nodes {
		if n.state == wished && !ends[away{name, n.at}] {
			out = append(out, fmt.Sprintf("node %s would be removed, and nobody looks for how long", name))
		}
	}
	type counts struct{ nodes, saved, extra int }
	want := map[string]counts{}
	for _, n := range m.nodes {
		c := want[n.group]
		c.nodes++
		if n.state == wished || n.state == kept {
			c.saved++
		}
		want[n.group] = c
	}
	for _, w := range m.wishes {
		if w.waits {
			c := want[w.group]
			c.extra++
			want[w.group] = c
		}
	}
	for _, id := range slices.Sorted(maps.Keys(m.groups)) {
		h := &m.groups[id].hours
		if got := (counts{h.nodes, h.saved, h.extra}); got != want[id] {
			out = append(out, fmt.Sprintf("group %s: hours are summed up of %+v, and there are %+v", id, got, want[id]))
		}
	}
	for uid, w := range m.claims {
		if !w.waits || !slices.Contains(m.wishes, w) {
			out = append(out, fmt.Sprintf("pod %s belongs to a purchase that is over", uid))
		}
	}
	slices.Sort(out)
	return out
}
