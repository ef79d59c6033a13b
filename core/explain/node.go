package explain

// This file explains to people where a node stands on its way out of the cluster, or why it
// isn't on it: why it stays and what would change that, since when it could go and what it
// waits for. Plans have said it, and machines remember it; only what a plan didn't come to, of
// a node that stays, is a what-if on the state.

import (
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/autoscaler/drainability"
	"github.com/berthproject/berth/core/autoscaler/scaledown"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/lifecycle/nodestatus"
)

// The states of a node, for scale-down.
const (
	NodeStays     = nodestatus.Stays     // the last plan kept it, for Reason
	NodeCandidate = nodestatus.Candidate // it could go; what it waits for is in Reason, "" when it goes with the next plan
	NodeLeaving   = nodestatus.Leaving   // it is on its way out
	NodeUnknown   = nodestatus.Unknown   // no plan has looked at it
)

// NodeExplanation is why a node stays, or how far it is on its way out.
type NodeExplanation struct {
	Node  string  `json:"node"`
	Group string  `json:"group,omitempty"` // "" when it is in none
	Ready bool    `json:"ready"`
	Price float64 `json:"price,omitempty"` // an hour
	// State is one of the constants above; which fields are set depends on it.
	State string `json:"state"`
	// Reason is why it stays, or what a candidate waits for.
	Reason autoscaler.KeptReason `json:"reason,omitempty"`
	Pod    string                `json:"pod,omitempty"` // that keeps it, as namespace/name
	// Detail explains Reason in a sentence, with the numbers that decided: for people only.
	Detail string `json:"detail,omitempty"`
	// Utilization is the largest share of a resource that its pods request; nil when the last
	// plan doesn't say.
	Utilization *float64 `json:"utilization,omitempty"`
	// Since is when it began to stay for this reason, or when it became a candidate.
	Since *time.Time `json:"since,omitempty"`
	// Looked is when a plan last tried to do without it with this outcome; of a node that
	// stays.
	Looked *time.Time `json:"looked,omitempty"`
	// Changes say what would have it go, a line for each way.
	Changes []string `json:"changes,omitempty"`
	// Leaving is how far it is on its way out; nil when it isn't on it.
	Leaving *Leaving `json:"leaving,omitempty"`
	// Blocks are all pods that keep it, of a node that stays because of one.
	Blocks []PodBlock `json:"blocks,omitempty"`
	// Due is when a candidate's time has come; nil when it never will.
	Due *time.Time `json:"due,omitempty"`
	// Pods are those that have to leave it for another node: by the last plan of a candidate;
	// of a node that stays, if it alone were removed now; of a node on its way out, those that
	// are still on it, with the nodes on which room is kept for their replacements.
	Pods []PodHome `json:"pods,omitempty"`
	// WaitsFor are the pods that have to end by themselves before it goes.
	WaitsFor []string `json:"waitsFor,omitempty"`
	// Awaits are the pods that are to come to it.
	Awaits []string `json:"awaits,omitempty"`
	// Planned is when the plan was asked for that says so; nil before the first.
	Planned *time.Time `json:"planned,omitempty"`
}

// Leaving is how far a node is on its way out.
type Leaving struct {
	// Step of a draining node ends with the number of pods that are left. Why is a sentence.
	Step string `json:"step"` // as core/lifecycle/nodedeletion has them
	Why  string `json:"why"`  // it goes
	// Next is when it is looked at though nothing happens; nil for never.
	Next *time.Time `json:"next,omitempty"`
}

// PodHome is a pod that has to leave a node, with the node that has room for its replacement.
type PodHome struct {
	Pod string `json:"pod"` // namespace/name
	// Home is a node by name. Of a node that is being drained it is where room is kept, which may
	// change until the replacement comes.
	Home string `json:"home,omitempty"` // "" when no node has room
	Why  string `json:"why,omitempty"`  // of no node, in kube-scheduler's words
}

// ExplainNode says where a node stands, in O(removals + nodes × classes of the node's pods); ok
// is false when there is no such node, or Berth only schedules.
func (v *View) ExplainNode(name string) (x NodeExplanation, ok bool) {
	if v.Autoscaler == nil {
		return NodeExplanation{}, false
	}
	x = NodeExplanation{Node: name}
	if plan := v.Autoscaler.KeptNodes.Plan(); plan != nil {
		x.Planned = utcTime(plan.Now)
	}
	n := v.State.NodeByName(name)
	if n == nil {
		info := v.outOfState(name)
		if info == nil {
			return NodeExplanation{}, false
		}
		n = cluster.DetachedNode(info)
	}
	x.Group, x.Ready, x.Price = n.Group, n.Ready(), v.price(n.Group)
	for _, p := range n.Nominated {
		x.Awaits = append(x.Awaits, p.Name())
	}
	at := v.Autoscaler.Nodes.Of(v.Now(), n, v.Autoscaler.KeptNodes.Removal(name))
	x.State, x.Reason, x.Detail = at.State, at.Reason, v.Autoscaler.Nodes.Detail(v.Now(), n, &at)
	if resizes := v.resizesOn(n); resizes != "" {
		if x.Detail != "" {
			x.Detail += "; "
		}
		x.Detail += resizes
	}
	switch at.State {
	case NodeStays:
		v.explainStay(n, at, &x)
	case NodeCandidate:
		v.explainCandidate(n, at, &x)
	case NodeLeaving:
		v.explainLeaving(n, at, &x)
	}
	return x, true
}

// explainStay fills in why a node stays, and what would change it.
func (v *View) explainStay(n *cluster.Node, at nodestatus.Status, x *NodeExplanation) {
	x.Pod, x.Changes = at.Stay.Pod, v.wouldChange(n, at.Stay.Kept)
	if !at.Stay.Since.IsZero() {
		x.Since = utcTime(at.Stay.Since)
	}
	if !at.Stay.Looked.IsZero() {
		x.Looked = utcTime(at.Stay.Looked)
	}
	if at.Stay.Utilization > 0 { // otherwise the plan may not have looked
		x.Utilization = &at.Stay.Utilization
	}
	switch at.Reason {
	case autoscaler.KeptNotAutoscaled, autoscaler.KeptStarting, autoscaler.KeptLeaving, autoscaler.KeptSomebodyElsesTask:
		return // where its pods would go is of no interest
	case autoscaler.KeptInterrupted:
		v.explainHomes(n, x)
		return
	case autoscaler.KeptBlockedByPod:
		x.Blocks = v.blocks(n)
	}
	for _, d := range v.destinations(n) {
		x.Pods = append(x.Pods, PodHome{Pod: d.Pod.Name(), Home: d.Node, Why: d.Why})
	}
}

// destinations returns where the pods of nodes would go if these alone were removed now.
func (v *View) destinations(nodes ...*cluster.Node) []scaledown.Destination {
	if v.whatIf == nil {
		whatIf, err := scaledown.NewWhatIf(v.State, v.Profiles, v.Options)
		if err != nil {
			panic("explain: an engine for the profiles of the scheduler: " + err.Error()) // New has made one
		}
		v.whatIf = whatIf
	}
	return v.whatIf.Destinations(v.drainRules(), nodes...)
}

// drainRules returns the rules of drainability at this moment. Ages of pods are measured by the
// API server's clock, which stamped their creation.
func (v *View) drainRules() *drainability.Context {
	return &drainability.Context{Rules: &v.Autoscaler.Removal, State: v.State, Now: v.ServerNow()}
}

// explainCandidate fills in since when a node could go, and where its pods would.
func (v *View) explainCandidate(n *cluster.Node, at nodestatus.Status, x *NodeExplanation) {
	x.Since = utcTime(at.Candidate.Since)
	if !at.Candidate.Due.IsZero() {
		x.Due = utcTime(at.Candidate.Due)
	}
	if at.Removal == nil {
		return
	}
	x.Utilization, x.WaitsFor = &at.Removal.Utilization, at.Removal.WaitsFor
	names := map[types.UID]string{}
	for _, p := range n.Pods {
		names[p.UID] = p.Name()
	}
	for _, h := range at.Removal.Homes {
		if name, ok := names[h.Pod]; ok { // otherwise it has left since the plan
			x.Pods = append(x.Pods, PodHome{Pod: name, Home: h.Node})
		}
	}
}

// explainLeaving fills in how far a node is on its way out, and which pods are still on it.
func (v *View) explainLeaving(n *cluster.Node, at nodestatus.Status, x *NodeExplanation) {
	leaving := leavingOf(&at)
	x.Leaving = &leaving
	v.explainHomes(n, x)
}

// explainHomes fills in which pods are still on a node that goes, and what is kept for their
// replacements.
func (v *View) explainHomes(n *cluster.Node, x *NodeExplanation) {
	for _, p := range n.Pods {
		if p.OfNode {
			continue
		}
		kept, _ := v.Autoscaler.Homes.Kept(p.UID)
		home := PodHome{Pod: p.Name(), Home: kept.Node}
		switch {
		case kept.Coming:
			home.Why = "a node is coming that has room for its replacement"
		case kept.Why != "":
			home.Why = kept.Why
		}
		x.Pods = append(x.Pods, home)
	}
	slices.SortFunc(x.Pods, func(a, b PodHome) int { return strings.Compare(a.Pod, b.Pod) })
}

// leavingOf returns how far a node is that is on its way out.
func leavingOf(at *nodestatus.Status) Leaving {
	x := Leaving{Step: at.Way.State, Why: at.Way.Why}
	if !at.Way.Next.IsZero() {
		x.Next = utcTime(at.Way.Next)
	}
	return x
}

// outOfState returns what the API last showed of a node that the provider was asked to
// delete; nil for any other.
func (v *View) outOfState(name string) (found *cluster.NodeInfo) {
	v.Autoscaler.Deletions.EachOutOfState(func(info *cluster.NodeInfo) {
		if info.Name == name {
			found = info
		}
	})
	return found
}

// price returns what a node of a group costs an hour, 0 when that isn't known.
func (v *View) price(group string) float64 {
	if g := v.State.Group(group); g != nil {
		return g.Price
	}
	return 0
}

// NodeNames returns the names of all nodes, for suggestions to people who mistype one; ok is
// false when Berth only schedules, and no node can be explained.
func (v *View) NodeNames() (names []string, ok bool) {
	v.State.Nodes(func(n *cluster.Node) { names = append(names, n.Name) })
	return names, v.Autoscaler != nil
}

// utcTime returns a time for people.
func utcTime(t time.Time) *time.Time {
	t = t.UTC()
	return &t
}

// NodesInterrupted returns how many nodes the cloud is about to take; none when Berth only schedules.
func (v *View) NodesInterrupted() int {
	if v.Autoscaler == nil {
		return 0
	}
	return v.Autoscaler.Interruptions.Count()
}

// NodesLeaving returns how many nodes are on their way out, in O(of them); none when Berth only
// schedules.
func (v *View) NodesLeaving() int {
	if v.Autoscaler == nil {
		return 0
	}
	all, _ := v.Autoscaler.Deletions.Counts()
	return all
}
