package core

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/lifecycle/podgroups"
	"github.com/berthproject/berth/core/queue"
	"github.com/berthproject/berth/core/record"
	"github.com/berthproject/berth/core/step"
)

// This file is about nodes for pod groups: which groups are in a request, and whether what a plan has
// for one still holds. What must hold: the nodes of a gang are ordered all together or not at all.

// gangsToPlan returns the pod groups for which nodes may be bought, and the members for which it is too
// early. A group waits with all members for the one that waits the longest; one of which a member has
// others leave a node for it isn't planned for.
func (c *Core) gangsToPlan() (out []autoscaler.Gang, early []*record.Pod) {
	for _, g := range c.queue.RejectedGroups() {
		object := c.state.PodGroup(g.Key())
		if object == nil {
			continue
		}
		may, waiting := c.eligibleMembers(g)
		if early = append(early, waiting...); !may {
			continue
		}
		gang := autoscaler.Gang{Key: g.Key(), MinCount: podgroups.MinCount(object), Topology: cluster.RequiredTopology(object), Members: make([]*cluster.Pod, 0, len(g.Members()))}
		for _, item := range g.Members() {
			gang.Members = append(gang.Members, item.Pod())
		}
		out = append(out, gang)
	}
	return out, early
}

// eligibleMembers reports whether nodes may be bought for all members of a group, and returns those for
// which they may be later.
func (c *Core) eligibleMembers(g *queue.Group) (may bool, early []*record.Pod) {
	may = true
	for _, item := range g.Members() {
		p := c.pods[item.Pod().UID]
		e := c.eligible(p)
		if may = may && e.now && !p.HasNodeToWaitFor(c.state); !e.now && !e.from.IsZero() {
			early = append(early, p)
		}
	}
	return may, early
}

// outdatedGangs returns the pod groups, as namespace/name, for which what a plan has holds no more: too
// many members are gone, or not all nodes can be ordered; or members are to be on nodes that are bought for
// another such group.
func (c *Core) outdatedGangs(plan *autoscaler.Plan) map[string]bool {
	if len(plan.Gangs) == 0 {
		return nil
	}
	out, gone, on := map[string]bool{}, map[string]int{}, map[string][]string{}
	ups := map[string][]autoscaler.ScaleUp{}
	note := func(bought string, pods []types.UID) {
		for _, uid := range pods {
			p := c.pods[uid]
			switch {
			case p == nil || p.Parsed.Group == nil:
				gone[bought]++
			case !c.waits(uid):
				gone[p.Parsed.Group.String()]++
			case p.Parsed.Group.String() != bought:
				on[p.Parsed.Group.String()] = append(on[p.Parsed.Group.String()], bought)
			}
		}
	}
	for i := range plan.ScaleUps {
		if up := &plan.ScaleUps[i]; up.Gang != "" {
			ups[up.Gang] = append(ups[up.Gang], *up)
			note(up.Gang, up.Pods)
		}
	}
	for i := range plan.Joins {
		if j := &plan.Joins[i]; j.Gang != "" {
			note(j.Gang, j.Pods)
		}
	}
	var accepted []autoscaler.ScaleUp
	for i := range plan.Gangs {
		g := &plan.Gangs[i]
		all := append(accepted[:len(accepted):len(accepted)], ups[g.Gang]...)
		out[g.Gang] = g.Placed-gone[g.Gang] < g.Need || !c.scale.groups.HasRoom(c.turn, all)
		for _, other := range on[g.Gang] {
			out[g.Gang] = out[g.Gang] || out[other]
		}
		if !out[g.Gang] {
			accepted = all
		}
	}
	return out
}

// endGangPlaces ends the places of the pod groups that a plan has planned anew.
func (c *Core) endGangPlaces(plan *autoscaler.Plan, outdated map[string]bool) {
	for i := range plan.Gangs {
		g := &plan.Gangs[i]
		if !g.Anew || outdated[g.Gang] && g.Placed > 0 {
			continue
		}
		namespace, name, _ := strings.Cut(g.Gang, "/")
		if group := c.queue.Group(cluster.PodGroupKey{Namespace: namespace, Name: name}); group != nil {
			for _, item := range group.Members() {
				c.reservation.ReleasePod(c.turn, item.Pod().UID)
			}
		}
	}
}

// decideGangs enters into the ledger what plans have for pod groups, each time that it is something
// else.
func (c *Core) decideGangs(plan *autoscaler.Plan, outdated map[string]bool) {
	said := map[string]string{}
	for i := range plan.Gangs {
		g := &plan.Gangs[i]
		kind, why := step.GroupPlanned, describeGang(g)
		switch {
		case outdated[g.Gang] && g.Placed > 0:
			kind, why = step.GroupNotPlanned, "the cluster has changed since the plan was begun, and it can't be carried out in full"
		case g.Placed == 0:
			kind = step.GroupNotPlanned
		}
		said[g.Gang] = why
		if c.scale.gangs[g.Gang] != why {
			c.turn.Decide(step.Decision{Kind: kind, PodGroup: g.Gang, Members: g.Placed, Nodes: g.Nodes, Reason: why})
		}
	}
	c.scale.gangs = said
}

// describeGang says what a plan has for a pod group.
func describeGang(g *autoscaler.GangPlan) string {
	var parts []string
	if g.Placed > 0 {
		parts = append(parts, fmt.Sprintf("%d of %d members have places", g.Placed, g.Members))
		if g.Domain != "" {
			parts[0] += " in " + g.Domain
		}
		if g.Nodes == 0 {
			parts = append(parts, "no node has to be bought")
		} else if g.Price > 0 {
			parts = append(parts, fmt.Sprintf("%d node(s) are bought for $%.2f/h", g.Nodes, g.Price))
		} else {
			parts = append(parts, fmt.Sprintf("%d node(s) are bought", g.Nodes))
		}
	} else {
		parts = append(parts, fmt.Sprintf("%d members have to be placed together, and nothing is bought", g.Need))
	}
	for _, o := range g.Tried[:min(len(g.Tried), maxToldOptions)] {
		in := ""
		if o.Domain != "" {
			in = " in " + o.Domain
		}
		parts = append(parts, fmt.Sprintf("%d would fit%s", o.Fits, in))
	}
	if more := len(g.Tried) - maxToldOptions; more > 0 {
		parts = append(parts, fmt.Sprintf("and fewer than needed in %d more domains", more))
	}
	return strings.Join(parts, "; ")
}

// maxToldOptions is how many options that failed a message names.
const maxToldOptions = 8
