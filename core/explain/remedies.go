package explain

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
type remedy func(v *View, n *cluster.Node, k *autoscaler.Kept) []string

// remedies has one for each reason for which a plan keeps a node.
var remedies = map[autoscaler.KeptReason]remedy{
	autoscaler.KeptNotAutoscaled: says("only nodes of a node group are removed: the provider must list its instance in one"),
	autoscaler.KeptDisabled: says("kubectl annotate node NODE "+autoscaler.ScaleDownDisabledAnnotation+"-",
		"kubectl annotate node NODE "+cluster.DoNotDisruptAnnotation+"-, if this is the annotation that it has"),
	autoscaler.KeptRollout:     says("nothing to do: it is considered again when the rollout of its node group has ended"),
	autoscaler.KeptUnready:     says("it becomes ready; or set --scale-down-unready-enabled=true"),
	autoscaler.KeptStarting:    says("it becomes ready, or stays unready for longer than --max-node-startup-time or its node group's option"),
	autoscaler.KeptLeaving:     says("nothing: it is already being removed"),
	autoscaler.KeptInterrupted: says("nothing to do: it is drained once its pods have room elsewhere, or go with it when the cloud takes it"),
	autoscaler.KeptUtilized:    remedyUtilized,
	autoscaler.KeptReplaced:    says("nothing to do: it is removed once the nodes that replace it have room for its pods"),
	autoscaler.KeptReplacement: says("the nodes that its node group replaces are removed, or their consolidation is given up"),
	autoscaler.KeptMinSize:     remedyMinSize,
	autoscaler.KeptMinTotal:    says("lower the minimum of the cluster: --cores-total, --memory-total, --gpu-total"),
	autoscaler.KeptAwaited:     says("the pods that are nominated to it are bound elsewhere, or are bound to it and can be evicted"),
	autoscaler.KeptDestination: says("the removable nodes whose pods need its room are removed: then it is considered like any other node",
		"this is not an error: of nodes that are removable only one after the other, those whose pods fit on the others are removed first"),
	autoscaler.KeptNoPlace:      remedyNoPlace,
	autoscaler.KeptBlockedByPod: remedyBlocked,
	autoscaler.KeptAtomic:       says("all nodes of its node group are removable together: the provider scales the group to its maximum or to zero (zeroOrMaxNodeScaling)"),
	autoscaler.KeptNotSimulated: says("nothing to do: the next plan continues where this one stopped", "raise --scale-down-simulation-timeout to have a plan simulate more nodes"),
	autoscaler.KeptDisplaced:    says("make room for these pods, which must be placed before any other pod is evicted: berth explain pod NAMESPACE/NAME shows what they need"),
	autoscaler.KeptSick:         says("get more nodes ready: --max-total-unready-percentage and --ok-total-unready-count limit how many may be unready"),
	autoscaler.KeptSomebodyElsesTask: says("whoever set the taint must remove it or delete the node: Berth deletes and untaints only nodes that it tainted itself",
		"if nobody does: kubectl taint node NODE "+autoscaler.ToBeDeletedTaint+"-"),
}

// wouldChange says what would have a node go that is kept, a line for each way.
func (v *View) wouldChange(n *cluster.Node, k *autoscaler.Kept) []string {
	of := remedies[k.Reason]
	if of == nil {
		return nil
	}
	return of(v, n, k)
}

// says is a remedy that is the same for all nodes but for their names.
func says(lines ...string) remedy {
	return func(_ *View, n *cluster.Node, _ *autoscaler.Kept) []string {
		out := make([]string, len(lines))
		for i, line := range lines {
			out[i] = strings.ReplaceAll(line, "NODE", n.Name)
		}
		return out
	}
}

func remedyUtilized(v *View, n *cluster.Node, k *autoscaler.Kept) []string {
	out := []string{
		"lower the requests of its pods",
		fmt.Sprintf("raise --scale-down-utilization-threshold to %.2f or more (for nodes with GPUs --scale-down-gpu-utilization-threshold)", k.Utilization),
	}
	if g := v.State.Group(n.Group); g != nil && g.Options != nil && (g.Options.UtilizationThreshold != nil || g.Options.GPUUtilizationThreshold != nil) {
		out[1] = fmt.Sprintf("raise the utilization threshold to %.2f or more in the provider's options of node group %s", k.Utilization, g.ID)
	}
	if !v.Autoscaler.Removal.IgnoreDaemonPods {
		out = append(out, "set --ignore-daemonsets-utilization=true, if DaemonSet pods account for its utilization")
	}
	return out
}

func remedyMinSize(v *View, n *cluster.Node, _ *autoscaler.Kept) []string {
	g := v.State.Group(n.Group)
	if g == nil {
		return []string{fmt.Sprintf("nothing: the provider no longer lists node group %s", n.Group)}
	}
	return []string{fmt.Sprintf("lower the minimum size of node group %s below %d, or grow it beyond its %d nodes: others of them are removed first", g.ID, g.Min, g.Target)}
}

func remedyNoPlace(_ *View, n *cluster.Node, k *autoscaler.Kept) []string {
	if k.Pod == "" {
		return []string{"make room for its pods on other nodes"}
	}
	out := []string{fmt.Sprintf("free capacity for %s on another node; to see which plugins reject which nodes: berth explain pod %s", k.Pod, k.Pod)}
	if podOn(n, k.Pod) == nil {
		out = append(out, "the pod has since left the node: the next plan reconsiders it")
	}
	return out
}

// remedyBlocked leaves what would change it to the blocks, a line for each pod.
func remedyBlocked(_ *View, n *cluster.Node, k *autoscaler.Kept) []string {
	if podOn(n, k.Pod) == nil {
		return []string{fmt.Sprintf("nothing: %s has since left the node, and the next plan reconsiders it", k.Pod)}
	}
	return []string{"every pod listed below must be evictable or finish"}
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
