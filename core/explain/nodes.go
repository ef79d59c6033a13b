package explain

// This file sums up for people where the nodes of a cluster stand: how many stay for which
// reason, how many could go or are on their way out, and what all these cost.

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/cluster"
)

// ScaleDownStatus says in a word where scale-down stands.
type ScaleDownStatus string

// The statuses. Where Cluster Autoscaler has one, the word is its own. Exactly one holds: what
// concerns the whole cluster comes before what delays single candidates (scaleDownStatus).
const (
	ScaleDownDisabled     ScaleDownStatus = "Disabled"
	ScaleDownUnknown      ScaleDownStatus = "Unknown"           // no plan has looked at nodes
	ScaleDownHeld         ScaleDownStatus = "Held"              // plans give up no node: the cluster is too sick, or displaced pods have no room
	ScaleDownThrottled    ScaleDownStatus = "Throttled"         // candidates are due, and limits of parallel removals let none of them go
	ScaleDownInCooldown   ScaleDownStatus = "InCooldown"        // candidates are due, and their groups all grew, shrank, or failed to, too recently
	ScaleDownCandidates   ScaleDownStatus = "CandidatesPresent" // nodes could go
	ScaleDownNoCandidates ScaleDownStatus = "NoCandidates"      // none could
)

// ScaleDownStatuses are all there are.
var ScaleDownStatuses = []ScaleDownStatus{
	ScaleDownDisabled, ScaleDownUnknown, ScaleDownHeld, ScaleDownThrottled, ScaleDownInCooldown, ScaleDownCandidates, ScaleDownNoCandidates,
}

// NodesExplanation sums up where the nodes of a cluster stand.
type NodesExplanation struct {
	// Status is of the time of the answer, and follows from a plan that may be older (Planned).
	Status ScaleDownStatus `json:"status"`
	Why    string          `json:"why,omitempty"` // of a status in which no node is looked at
	// Planned is when the plan was asked for that says so; nil before the first.
	Planned *time.Time `json:"planned,omitempty"`
	// SkippedSeconds is for how long plans haven't come to look at the node that waits longest
	// for that; 0 when they have come to all.
	SkippedSeconds float64 `json:"skippedSeconds,omitempty"`
	NodesSum
	// Reasons are the nodes by state and reason, the most money first, then the most nodes.
	Reasons []NodesOfReason `json:"reasons"`
	// Groups are the nodes by node group, in the same order.
	Groups []NodesOfGroup `json:"groups"`
}

// NodesSum is a number of nodes with what they cost together an hour, as far as the provider
// says.
type NodesSum struct {
	Nodes int `json:"nodes"`
	// Price omits nodes of which the provider states no price, and nodes of no group: it is a lower
	// bound of the cost. 0 when no price is known.
	Price float64 `json:"price,omitempty"`
}

func (s *NodesSum) add(price float64) { s.Nodes, s.Price = s.Nodes+1, s.Price+price }

// NodesOfReason are the nodes that stand alike.
type NodesOfReason struct {
	// State is one of the states of NodeExplanation; State and Reason together are unique.
	State  string                `json:"state"`
	Reason autoscaler.KeptReason `json:"reason,omitempty"` // "" where the state says all
	NodesSum
	// Node is one of them, and Pod the pod that keeps it, as examples.
	Node string `json:"node"`
	Pod  string `json:"pod,omitempty"`
}

// NodesOfGroup are the nodes of one group, "" for those that are in none.
type NodesOfGroup struct {
	// The embedded sum has all nodes of the group; Candidates and Leaving are parts of it.
	Group string `json:"group"`
	NodesSum
	Candidates NodesSum `json:"candidates,omitzero"`
	Leaving    NodesSum `json:"leaving,omitzero"`
}

// ExplainNodes sums up where all nodes stand, in O(nodes × log nodes); ok is false when Berth
// only schedules.
func (v *View) ExplainNodes() (x NodesExplanation, ok bool) {
	if v.Autoscaler == nil {
		return NodesExplanation{}, false
	}
	sum := newNodesSummary(v)
	v.State.Nodes(sum.add)
	v.Autoscaler.Deletions.EachOutOfState(func(info *cluster.NodeInfo) { sum.add(cluster.DetachedNode(info)) })
	x = sum.explanation()
	if plan := v.Autoscaler.KeptNodes.Plan(); plan != nil {
		x.Planned = utcTime(plan.Now)
	}
	if x.Status = v.scaleDownStatus(sum); x.Status == ScaleDownDisabled || x.Status == ScaleDownUnknown || x.Status == ScaleDownHeld {
		x.Why = v.Autoscaler.Nodes.NotPlanned()
	}
	return x, true
}

// NodesPlanned returns when the plan was asked for that ExplainNodes tells of, zero before the
// first; ok is false when Berth only schedules. It costs nothing.
func (v *View) NodesPlanned() (at time.Time, ok bool) {
	if v.Autoscaler == nil {
		return time.Time{}, false
	}
	if plan := v.Autoscaler.KeptNodes.Plan(); plan != nil {
		at = plan.Now
	}
	return at, true
}

// scaleDownStatus returns where scale-down stands.
func (v *View) scaleDownStatus(sum *nodesSummary) ScaleDownStatus {
	candidates := func(reason autoscaler.KeptReason) int {
		if r := sum.reasons[reasonKey{NodeCandidate, reason}]; r != nil {
			return r.Nodes
		}
		return 0
	}
	switch {
	case v.Autoscaler.DisableScaleDown:
		return ScaleDownDisabled
	case v.Autoscaler.KeptNodes.Held() != "":
		return ScaleDownHeld
	case v.Autoscaler.KeptNodes.Plan() == nil:
		return ScaleDownUnknown
	case candidates("") > 0: // some go with the next plan
		return ScaleDownCandidates
	case candidates(autoscaler.KeptThrottled)+candidates(autoscaler.KeptNodeBudget) > 0:
		return ScaleDownThrottled
	case candidates(autoscaler.KeptGroupDelayed) > 0:
		return ScaleDownInCooldown
	case sum.states[NodeCandidate] > 0:
		return ScaleDownCandidates
	}
	return ScaleDownNoCandidates
}

// nodesSummary adds up nodes.
type nodesSummary struct {
	v *View
	// removals are the last plan's, by node; empty before the first plan.
	removals map[string]*autoscaler.Removal
	all      NodesSum
	skipped  time.Duration // of the node that has been skipped longest
	// states counts nodes by state; reasons and groups hold what explanation sorts and returns.
	states  map[string]int
	reasons map[reasonKey]*NodesOfReason
	groups  map[string]*NodesOfGroup
}

type reasonKey struct {
	state  string
	reason autoscaler.KeptReason
}

func newNodesSummary(v *View) *nodesSummary {
	return &nodesSummary{v: v, removals: v.removals(), states: map[string]int{}, reasons: map[reasonKey]*NodesOfReason{}, groups: map[string]*NodesOfGroup{}}
}

func (s *nodesSummary) add(n *cluster.Node) {
	at, price := s.v.Autoscaler.Nodes.Of(s.v.Now(), n, s.removals[n.Name]), s.v.price(n.Group)
	s.all.add(price)
	if at.Reason == autoscaler.KeptNotSimulated {
		s.skipped = max(s.skipped, s.v.Now().Sub(at.Stay.Since))
	}
	s.states[at.State]++
	k := reasonKey{at.State, at.Reason}
	r := s.reasons[k]
	if r == nil {
		r = &NodesOfReason{State: at.State, Reason: at.Reason}
		s.reasons[k] = r
	}
	if r.add(price); r.Node == "" || n.Name < r.Node {
		r.Node, r.Pod = n.Name, ""
		if at.State == NodeStays {
			r.Pod = at.Stay.Pod
		}
	}
	g := s.groups[n.Group]
	if g == nil {
		g = &NodesOfGroup{Group: n.Group}
		s.groups[n.Group] = g
	}
	g.add(price)
	switch at.State {
	case NodeCandidate:
		g.Candidates.add(price)
	case NodeLeaving:
		g.Leaving.add(price)
	}
}

func (s *nodesSummary) explanation() NodesExplanation {
	x := NodesExplanation{SkippedSeconds: s.skipped.Seconds(), NodesSum: s.all, Reasons: []NodesOfReason{}, Groups: []NodesOfGroup{}}
	for _, r := range slices.SortedFunc(maps.Values(s.reasons), func(a, b *NodesOfReason) int {
		return cmp.Or(a.compare(&b.NodesSum), strings.Compare(a.State, b.State), cmp.Compare(a.Reason, b.Reason))
	}) {
		x.Reasons = append(x.Reasons, *r)
	}
	for _, g := range slices.SortedFunc(maps.Values(s.groups), func(a, b *NodesOfGroup) int {
		return cmp.Or(a.compare(&b.NodesSum), strings.Compare(a.Group, b.Group))
	}) {
		x.Groups = append(x.Groups, *g)
	}
	return x
}

// compare puts more money in front, and of equally much more nodes.
func (s *NodesSum) compare(o *NodesSum) int {
	return cmp.Or(cmp.Compare(o.Price, s.Price), cmp.Compare(o.Nodes, s.Nodes))
}
