package core

// This file brings together what machines know of one node's way out: nodedeletion of one that
// is on it, candidates of one that could go, staying of one that stays. What a later stage
// says goes before what an earlier one does.

import (
	"fmt"
	"strings"
	"time"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/autoscaler/scaledown"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/lifecycle/candidates"
	"github.com/berthproject/berth/core/lifecycle/nodedeletion"
	"github.com/berthproject/berth/core/lifecycle/staying"
)

// standing is where a node stands. Only the fields of its state are set.
type standing struct {
	state  string
	reason autoscaler.KeptReason
	detail string
	stay   staying.Stay             // of one that stays
	way    nodedeletion.Description // of one that is on its way out
	// candidate and removal are of one that could go; removal is nil when it was one before
	// the last plan and that plan has held back.
	candidate candidates.Description
	removal   *autoscaler.Removal
}

// standing returns where a node stands; removal is what the last plan has of it, nil for
// nothing.
func (c *Core) standing(n *cluster.Node, removal *autoscaler.Removal) standing {
	stay, stays := c.scale.staying.Of(n.Name)
	candidate, could := c.scale.candidates.Describe(n.Name, c.state.Group(n.Group))
	way, leaves := c.scale.deletions.Describe(n.Name)
	switch {
	case leaves && !way.Stays:
		return standing{state: NodeLeaving, way: way}
	case n.HasTaint(autoscaler.ToBeDeletedTaint):
		k := &autoscaler.Kept{Node: n.Name, Reason: autoscaler.KeptSomebodyElsesTask, Detail: "it has the taint " + autoscaler.ToBeDeletedTaint + ", which Berth did not set"}
		return standing{state: NodeStays, reason: k.Reason, detail: k.Detail, stay: staying.Stay{Kept: k, Since: stay.Since}}
	case could:
		at := standing{state: NodeCandidate, candidate: candidate, removal: removal}
		at.reason, at.detail = c.candidateWaits(n, &at)
		return at
	case stays && stay.Reason == autoscaler.KeptLeaving && !scaledown.Leaving(n.NodeInfo):
		return standing{state: NodeUnknown, detail: "its removal was cancelled, and no plan has been made since"}
	case stays:
		return standing{state: NodeStays, reason: stay.Reason, detail: stay.Detail, stay: stay}
	}
	return standing{state: NodeUnknown, detail: c.notPlanned()}
}

// candidateWaits says what a node that could go waits for: "" when it goes with the next plan.
func (c *Core) candidateWaits(n *cluster.Node, at *standing) (autoscaler.KeptReason, string) {
	now, due := c.turn.Now, at.candidate.Due
	until, delay := c.scale.groups.ScaleDownDelay(now, n.Group)
	switch {
	case due.IsZero():
		return autoscaler.KeptUnready, "unready nodes are not removed (--scale-down-unready-enabled=false)"
	case now.Before(due) && !at.candidate.Ready:
		return autoscaler.KeptNotUnreadyEnough, "unready for " + progress(now, &at.candidate) + " (--scale-down-unready-time)"
	case now.Before(due):
		return autoscaler.KeptNotLongEnough, "unneeded for " + progress(now, &at.candidate) + " (--scale-down-unneeded-time)"
	case !until.IsZero():
		return autoscaler.KeptGroupDelayed, fmt.Sprintf("%s, so it is not removed before %s", delay, utc(until))
	case at.removal != nil && len(at.removal.WaitsFor) > 0:
		return autoscaler.KeptOnCompletion, "these pods must complete first: " + strings.Join(at.removal.WaitsFor, ", ")
	}
	limits := c.cfg.Autoscale
	switch all, draining := c.scale.deletions.Going(); {
	case all >= limits.MaxScaleDown:
		return autoscaler.KeptThrottled, fmt.Sprintf("%d node(s) are being removed, the maximum (--max-scale-down-parallelism)", all)
	case at.removal != nil && !at.removal.Empty() && draining >= limits.MaxDrain:
		return autoscaler.KeptThrottled, fmt.Sprintf("%d node(s) are being drained, the maximum (--max-drain-parallelism)", draining)
	case c.scale.overBudget[n.Name] != "":
		return autoscaler.KeptNodeBudget, c.scale.overBudget[n.Name]
	case c.scale.deletions.Homeless(n.Name) != "":
		return autoscaler.KeptNoPlace, c.scale.deletions.Homeless(n.Name)
	}
	return "", "it is removed with the next plan"
}

// progress says how much of the time that a candidate has to wait is over.
func progress(now time.Time, candidate *candidates.Description) string {
	return fmt.Sprintf("%s of %s", now.Sub(candidate.Since).Round(time.Second), candidate.Due.Sub(candidate.Since))
}

// NodesLeaving returns how many nodes are on their way out, in O(of them); none when Berth only
// schedules.
func (c *Core) NodesLeaving() int {
	if c.cfg.Autoscale == nil {
		return 0
	}
	all, _ := c.scale.deletions.Going()
	return all
}
