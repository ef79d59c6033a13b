package core

// This file says what would have a node go that stays: for each reason the annotation, the
// limit, the flag or the pod that somebody could change. It is advice for people; what may go
// is decided by plans alone.

import (
	"fmt"
	"strings"

	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/cluster"
)

// remedy says what would have a node go that is kept for one reason.
type remedy func(c *Core, n *cluster.Node, k *autoscaler.Kept) []string

// remedies has one for each reason for which a plan keeps a node.
var remedies = map[autoscaler.KeptReason]remedy{
	autoscaler.KeptNotAutoscaled: says("only nodes of a node group are removed: the provider has to list its instance in one"),
	autoscaler.KeptDisabled: says("kubectl annotate node NODE "+autoscaler.ScaleDownDisabledAnnotation+"-",
		"kubectl annotate node NODE "+cluster.DoNotDisruptAnnotation+"-, if it is this one"),
	autoscaler.KeptUnready:     says("that it becomes ready, or --scale-down-unready-enabled=true"),
	autoscaler.KeptStarting:    says("that it becomes ready; it is waited for as long as --max-node-startup-time, or an option of its group, says"),
	autoscaler.KeptLeaving:     says("nothing: it is on its way out"),
	autoscaler.KeptUtilized:    remedyUtilized,
	autoscaler.KeptReplaced:    says("the nodes that are to replace it: it goes when they have room for its pods"),
	autoscaler.KeptReplacement: says("that the nodes are gone which others of its group are to replace, or that their consolidation is given up"),
	autoscaler.KeptMinSize:     remedyMinSize,
	autoscaler.KeptMinTotal:    says("a lower minimum of the cluster: --cores-total, --memory-total, --gpu-total"),
	autoscaler.KeptAwaited:     says("that the pods that are to come to it are bound elsewhere, or are bound to it and may be evicted"),
	autoscaler.KeptDestination: says("that the nodes are gone whose pods have room on it: then it is looked at like any other",
		"this is no fault: of nodes that could go in turn, those go first whose pods fit on the rest"),
	autoscaler.KeptNoPlace:      remedyNoPlace,
	autoscaler.KeptBlockedByPod: remedyBlocked,
	autoscaler.KeptAtomic:       says("that all nodes of its group can go together: the provider says that it has all of them or none (zeroOrMaxNodeScaling)"),
	autoscaler.KeptNotSimulated: says("the next plan goes on where this one ended", "a longer --scale-down-simulation-timeout has a plan look at more nodes"),
	autoscaler.KeptDisplaced:    says("room for these pods, which have to find nodes before any other may be evicted: berth explain pod NAMESPACE/NAME says what they need"),
	autoscaler.KeptSick:         says("that more nodes are ready: --max-total-unready-percentage and --ok-total-unready-count say how many have to be"),
	autoscaler.KeptSomebodyElsesTask: says("that who put the taint takes it off, or removes the node: Berth removes and untaints only nodes that it tainted itself",
		"if nobody does: kubectl taint node NODE "+autoscaler.ToBeDeletedTaint+"-"),
}

// wouldChange says what would have a node go that is kept, a line for each way.
func (c *Core) wouldChange(n *cluster.Node, k *autoscaler.Kept) []string {
	of := remedies[k.Reason]
	if of == nil {
		return nil
	}
	return of(c, n, k)
}

// says is a remedy that is the same for all nodes but for their names.
func says(lines ...string) remedy {
	return func(_ *Core, n *cluster.Node, _ *autoscaler.Kept) []string {
		out := make([]string, len(lines))
		for i, line := range lines {
			out[i] = strings.ReplaceAll(line, "NODE", n.Name)
		}
		return out
	}
}

func remedyUtilized(c *Core, n *cluster.Node, k *autoscaler.Kept) []string {
	out := []string{
		"that its pods request less",
		fmt.Sprintf("a threshold of %.2f or more: --scale-down-utilization-threshold (of nodes with GPUs --scale-down-gpu-utilization-threshold)", k.Utilization),
	}
	if g := c.state.Group(n.Group); g != nil && g.Options != nil && (g.Options.UtilizationThreshold != nil || g.Options.GPUUtilizationThreshold != nil) {
		out[1] = fmt.Sprintf("a threshold of %.2f or more, by the provider's options of group %s", k.Utilization, g.ID)
	}
	if !c.cfg.Autoscale.Removal.IgnoreDaemonPods {
		out = append(out, "--ignore-daemonsets-utilization=true, if it is its daemon pods that fill it")
	}
	return out
}

func remedyMinSize(c *Core, n *cluster.Node, _ *autoscaler.Kept) []string {
	g := c.state.Group(n.Group)
	if g == nil {
		return []string{fmt.Sprintf("nothing any more: the provider doesn't list group %s", n.Group)}
	}
	return []string{fmt.Sprintf("a minimum of group %s below %d, or more nodes in it than the %d that it has: another of them goes first", g.ID, g.Min, g.Target)}
}

func remedyNoPlace(_ *Core, n *cluster.Node, k *autoscaler.Kept) []string {
	if k.Pod == "" {
		return []string{"room for its pods on other nodes"}
	}
	out := []string{fmt.Sprintf("room for %s on another node that stays: berth explain pod %s lists which rules reject which nodes", k.Pod, k.Pod)}
	if podOn(n, k.Pod) == nil {
		out = append(out, "the pod has left the node since: the next plan looks again")
	}
	return out
}

// remedyBlocked leaves what would change it to the blocks, a line for each pod.
func remedyBlocked(_ *Core, n *cluster.Node, k *autoscaler.Kept) []string {
	if podOn(n, k.Pod) == nil {
		return []string{fmt.Sprintf("nothing any more: %s has left the node, and the next plan looks again", k.Pod)}
	}
	return []string{"each of the pods below being allowed to go, or ending"}
}

// podOn returns the pod of a name that is on a node; nil when none is.
func podOn(n *cluster.Node, name string) *cluster.Pod {
	for _, p := range n.Pods {
		if p.Name() == name {
			return p
		}
	}
	return nil
}
