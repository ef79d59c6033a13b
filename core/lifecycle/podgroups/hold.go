package podgroups

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"

	"github.com/berthproject/berth/core/cluster"
)

// This file says which groups can't be tried.

// MinCount returns how many members must have nodes for any to be bound: 1 of a group with the basic
// policy.
func MinCount(g *schedulingv1beta1.PodGroup) int {
	if gang := g.Spec.SchedulingPolicy.Gang; gang != nil {
		return int(gang.MinCount)
	}
	return 1
}

// Group is what there is of a pod group.
type Group struct {
	Key     cluster.PodGroupKey
	Waiting []*cluster.Pod // members that are to be given nodes
	Gated   int            // members that a plugin keeps out of the queue
	// Consults reports whether extenders have a say in the placement of a member.
	Consults func(*cluster.Pod) bool
}

// Hold returns why a group can't be tried yet, "" when it can. Messages are kube-scheduler's, where it
// has them. Failure is set when it reports them as an error of the scheduler's.
func Hold(x *Group, state *cluster.State) (why string, failure bool) {
	g := state.PodGroup(x.Key)
	if g == nil {
		return fmt.Sprintf("waiting for pods's pod group %q to appear in scheduling queue", x.Key.Name), false
	}
	switch {
	case g.Spec.ParentCompositePodGroupName != nil:
		return fmt.Sprintf("PodGroup %s is part of CompositePodGroup %s, which Berth does not place: make it a group of its own, without spec.parentCompositePodGroupName (create it anew, the field cannot be changed), or have the members placed by another scheduler (spec.schedulerName)",
			x.Key.Name, *g.Spec.ParentCompositePodGroupName), false
	case x.Gated > 0:
		return fmt.Sprintf("waiting for %d pods of pod group %q that have scheduling gates", x.Gated, x.Key.Name), false
	case g.Spec.SchedulingPolicy.Gang != nil && len(x.Waiting)+state.PlacedMembers(x.Key) < MinCount(g):
		return "waiting for minCount pods from a gang to appear in scheduling queue", false
	}
	if _, err := cluster.TopologyLevels(g); err != nil {
		return err.Error(), true
	}
	if why = disagreement(x, g, state); why != "" {
		return why, true
	}
	if label := cluster.RequiredTopology(g); label != "" && state.PlacedMembers(x.Key) > 0 && len(state.MemberDomains(x.Key, label)) == 0 {
		return "cannot determine domain for already scheduled pods: no topology domain found", true
	}
	for _, p := range x.Waiting {
		if x.Consults(p) {
			return fmt.Sprintf("an extender filters or scores nodes for pod %s, and a pod group is placed in one decision, which cannot wait for its answers: limit the extender to other pods (managedResources), or take the pod out of the group", p.Name()), false
		}
	}
	return "", false
}

// disagreement says in what members differ from one another, or from their group, that must agree; ""
// when they don't.
func disagreement(x *Group, g *schedulingv1beta1.PodGroup, state *cluster.State) (message string) {
	if len(x.Waiting) == 0 {
		return ""
	}
	var priority int32
	if g.Spec.Priority != nil {
		priority = *g.Spec.Priority
	}
	first := x.Waiting[0].Object
	scheduler, policy := first.Spec.SchedulerName, preemptionPolicy(first)
	check := func(p *cluster.Pod) {
		switch own := preemptionPolicy(p.Object); {
		case message != "":
		case p.Object.Spec.SchedulerName != scheduler:
			message = fmt.Sprintf("all pods in a single pod group should have the same .spec.schedulerName set, got: %q and %q", p.Object.Spec.SchedulerName, scheduler)
		case p.Priority != priority:
			message = fmt.Sprintf("all pods in a single pod group should have the same priority as the pod group's priority, got %d and %d", p.Priority, priority)
		case own != policy:
			message = fmt.Sprintf("all pods in a single pod group should have the same preemption policy, got %v and %v", own, policy)
		}
	}
	for _, p := range x.Waiting {
		check(p)
	}
	state.EachPlacedMember(x.Key, check)
	return message
}

// preemptionPolicy returns the policy of a pod; PreemptLowerPriority when it names none.
func preemptionPolicy(p *v1.Pod) v1.PreemptionPolicy {
	if p.Spec.PreemptionPolicy != nil {
		return *p.Spec.PreemptionPolicy
	}
	return v1.PreemptLowerPriority
}
