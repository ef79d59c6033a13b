package nodestatus

import (
	"fmt"
	"strings"
	"time"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/autoscaler/scaledown"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/lifecycle/candidates"
	"github.com/berthproject/berth/core/lifecycle/interruption"
	"github.com/berthproject/berth/core/lifecycle/keptnodes"
	"github.com/berthproject/berth/core/lifecycle/nodedeletion"
)

// The states of a node, for scale-down.
const (
	Stays     = "Stays"     // the last plan kept it, for Reason
	Candidate = "Candidate" // it could go; what it waits for is in Reason, "" when it goes with the next plan
	Leaving   = "Leaving"   // it is on its way out
	Unknown   = "Unknown"   // no plan has looked at it
)

// Status is where a node stands for scale-down. Only the fields of its state are set.
type Status struct {
	State  string
	Reason autoscaler.KeptReason
	detail string                   // Detail, of any node but a candidate
	Stay   keptnodes.Stay           // of one that stays
	Way    nodedeletion.Description // of one that is on its way out
	// Candidate and Removal are of one that could go; Removal is nil when it was one before
	// the last plan and that plan has held back.
	Candidate candidates.Description
	Removal   *autoscaler.Removal
}

// Config has the limits that a node may wait for.
type Config struct {
	DisableScaleDown bool
	MaxDeletions     int // of nodes at a time
	MaxDrains        int // of nodes with pods at a time
}

// Groups describes node groups.
type Groups interface {
	Known() bool
	ScaleDownDelay(now time.Time, group string) (until time.Time, why string)
}

// KeptNodes describes why the last plan keeps nodes.
type KeptNodes interface {
	Of(node string) (keptnodes.Stay, bool)
	Plan() *autoscaler.Plan
	Held() string
}

// Candidates describes nodes that could go.
type Candidates interface {
	Describe(node string, g *cluster.NodeGroup) (candidates.Description, bool)
}

// Deletions describes nodes on their way out.
type Deletions interface {
	Describe(node string) (nodedeletion.Description, bool)
	Counts() (all, draining int)
	Homeless(node string) (why string)
}

// Interruptions describes nodes that the cloud is about to take.
type Interruptions interface {
	Describe(node string) (interruption.Description, bool)
}

// Reader reads the status of nodes. Only the core's goroutine may call it.
type Reader struct {
	cfg        Config
	state      *cluster.State
	groups     Groups
	keptNodes  KeptNodes
	candidates Candidates
	deletions  Deletions
	// interruptions comes first of all that keeps a node: it goes by itself.
	interruptions Interruptions
	// overBudget are the nodes whose time had come when the last plan was committed and that a
	// node budget kept, with why; nil for none.
	overBudget map[string]string
}

// New returns a reader of a state and of these machines.
func New(cfg Config, state *cluster.State, groups Groups, keptNodes KeptNodes, candidates Candidates, deletions Deletions, interruptions Interruptions) *Reader {
	return &Reader{cfg: cfg, state: state, groups: groups, keptNodes: keptNodes, candidates: candidates, deletions: deletions, interruptions: interruptions}
}

// SetOverBudget records the nodes that a node budget keeps though their time has come, with why;
// nil for none. Those of before are forgotten.
func (r *Reader) SetOverBudget(why map[string]string) { r.overBudget = why }

// Of returns where a node stands; removal is what the last plan has of it, nil for nothing. Summaries call it for every
// node, so the sentences for people are left to Detail.
func (r *Reader) Of(now time.Time, n *cluster.Node, removal *autoscaler.Removal) Status {
	stay, stays := r.keptNodes.Of(n.Name)
	candidate, could := r.candidates.Describe(n.Name, r.state.Group(n.Group))
	way, leaves := r.deletions.Describe(n.Name)
	switch {
	case leaves && !way.Stays:
		return Status{State: Leaving, Way: way}
	case n.HasTaint(autoscaler.ToBeDeletedTaint):
		k := &autoscaler.Kept{Node: n.Name, Reason: autoscaler.KeptSomebodyElsesTask, Detail: "it has the taint " + autoscaler.ToBeDeletedTaint + ", which Berth did not set"}
		return Status{State: Stays, Reason: k.Reason, detail: k.Detail, Stay: keptnodes.Stay{Kept: k, Since: stay.Since}}
	case n.HasTaint(autoscaler.InterruptedTaint):
		k := r.interrupted(n)
		return Status{State: Stays, Reason: k.Reason, detail: k.Detail, Stay: keptnodes.Stay{Kept: k, Since: stay.Since}}
	case could:
		s := Status{State: Candidate, Candidate: candidate, Removal: removal}
		s.Reason = r.candidateWaits(now, n, &s)
		return s
	case stays && stay.Reason == autoscaler.KeptLeaving && !scaledown.Leaving(n.NodeInfo):
		return Status{State: Unknown, detail: "its removal was cancelled, and no plan has been made since"}
	case stays:
		return Status{State: Stays, Reason: stay.Reason, detail: stay.Detail, Stay: stay}
	}
	return Status{State: Unknown, detail: r.NotPlanned()}
}

// interrupted says what is known of a node that the cloud is about to take.
func (r *Reader) interrupted(n *cluster.Node) *autoscaler.Kept {
	k := &autoscaler.Kept{Node: n.Name, Reason: autoscaler.KeptInterrupted, Detail: "the cloud is about to take it"}
	x, ok := r.interruptions.Describe(n.Name)
	if !ok {
		return k
	}
	k.Detail = fmt.Sprintf("it has had the %s since %s", x.Mark, utc(x.Since))
	if !x.Until.IsZero() {
		k.Detail += fmt.Sprintf(", which means that it is taken at %s", utc(x.Until))
	}
	if x.Why != "" {
		k.Detail += "; it is not drained yet: " + x.Why
	}
	return k
}

// candidateWaits returns what a node that could go waits for, "" when it goes with the next plan. candidateDetail has a
// sentence for each of these reasons; it is separate because those who only count nodes need none.
func (r *Reader) candidateWaits(now time.Time, n *cluster.Node, s *Status) autoscaler.KeptReason {
	switch due := s.Candidate.Due; {
	case due.IsZero():
		return autoscaler.KeptUnready
	case now.Before(due) && !s.Candidate.Ready:
		return autoscaler.KeptNotUnreadyEnough
	case now.Before(due):
		return autoscaler.KeptNotLongEnough
	}
	until, _ := r.groups.ScaleDownDelay(now, n.Group)
	switch {
	case !until.IsZero():
		return autoscaler.KeptGroupDelayed
	case s.Removal != nil && len(s.Removal.WaitsFor) > 0:
		return autoscaler.KeptOnCompletion
	}
	switch all, draining := r.deletions.Counts(); {
	case all >= r.cfg.MaxDeletions, s.Removal != nil && !s.Removal.Empty() && draining >= r.cfg.MaxDrains:
		return autoscaler.KeptThrottled
	case r.overBudget[n.Name] != "":
		return autoscaler.KeptNodeBudget
	case r.deletions.Homeless(n.Name) != "":
		return autoscaler.KeptNoPlace
	}
	return ""
}

// Detail returns a sentence for people that explains the status s, which Of returned for the node. Call it before the
// state changes.
func (r *Reader) Detail(now time.Time, n *cluster.Node, s *Status) string {
	if s.State == Candidate {
		return r.candidateDetail(now, n, s)
	}
	return s.detail
}

// candidateDetail says in a sentence what a node that could go waits for.
func (r *Reader) candidateDetail(now time.Time, n *cluster.Node, s *Status) string {
	switch s.Reason {
	case autoscaler.KeptUnready:
		return "unready nodes are not removed (--scale-down-unready-enabled=false)"
	case autoscaler.KeptNotUnreadyEnough:
		return "unready for " + progress(now, &s.Candidate) + " (--scale-down-unready-time)"
	case autoscaler.KeptNotLongEnough:
		return "unneeded for " + progress(now, &s.Candidate) + unneededTime(&s.Candidate)
	case autoscaler.KeptGroupDelayed:
		until, delay := r.groups.ScaleDownDelay(now, n.Group)
		return fmt.Sprintf("%s, so it is not removed before %s", delay, utc(until))
	case autoscaler.KeptOnCompletion:
		return "these pods must complete first: " + strings.Join(s.Removal.WaitsFor, ", ")
	case autoscaler.KeptThrottled:
		all, draining := r.deletions.Counts()
		if all >= r.cfg.MaxDeletions {
			return fmt.Sprintf("%d node(s) are being removed, the maximum (--max-scale-down-parallelism)", all)
		}
		return fmt.Sprintf("%d node(s) are being drained, the maximum (--max-drain-parallelism)", draining)
	case autoscaler.KeptNodeBudget:
		return r.overBudget[n.Name]
	case autoscaler.KeptNoPlace:
		return r.deletions.Homeless(n.Name)
	}
	return "it is removed with the next plan"
}

// progress says how much of the time that a candidate has to wait is over.
func progress(now time.Time, candidate *candidates.Description) string {
	return fmt.Sprintf("%s of %s", now.Sub(candidate.Since).Round(time.Second), candidate.Due.Sub(candidate.Since))
}

// unneededTime names what sets for how long a candidate has to be unneeded.
func unneededTime(candidate *candidates.Description) string {
	if n := candidate.DrainsInVain; n > 0 {
		return fmt.Sprintf(" (--scale-down-unneeded-time, longer after %d drain(s) that did not end with its removal)", n)
	}
	return " (--scale-down-unneeded-time)"
}

// NotPlanned says why no plan has looked at a node.
func (r *Reader) NotPlanned() string {
	switch plan := r.keptNodes.Plan(); {
	case r.cfg.DisableScaleDown:
		return "scale-down is disabled (--scale-down-enabled=false)"
	case !r.groups.Known():
		return "the provider has not listed its node groups yet"
	case r.keptNodes.Held() != "":
		return fmt.Sprintf("scale-down is on hold: %s", r.keptNodes.Held())
	case plan == nil:
		return "no plan has been made since this instance became the leader"
	default:
		return fmt.Sprintf("the last plan, made at %s, does not mention it", utc(plan.Now))
	}
}

// utc writes a time for people.
func utc(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05") }
