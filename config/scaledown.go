package config

import (
	"errors"

	"github.com/spf13/pflag"

	"github.com/berthproject/berth/core"
)

// This file has the flags of scale-down.

func (a *Autoscaler) scaleDownFlags() []flag {
	c := &a.Core
	return []flag{
		// Which nodes aren't needed. A duration of 0 stands for at once.
		unlessFlag("scale-down-enabled", &c.DisableScaleDown, "remove nodes that aren't needed"),
		durationFlag("scale-down-unneeded-time", &c.UnneededTime, zeroOrMore, "how long a node must have been unneeded to be removed"),
		unlessFlag("scale-down-unready-enabled", &c.Removal.KeepUnready, "remove unneeded nodes that aren't ready"),
		durationFlag("scale-down-unready-time", &c.UnreadyTime, zeroOrMore, "how long an unready node must have been unneeded to be removed"),
		ratioFlag("scale-down-utilization-threshold", &c.Removal.UtilizationThreshold, "share of its CPU and of its memory that pods may request on a node that is drained"),
		ratioFlag("scale-down-gpu-utilization-threshold", &c.Removal.GPUUtilizationThreshold, "the same of its GPUs, for a node that has any; CPU and memory don't count there"),
		boolFlag("ignore-daemonsets-utilization", &c.Removal.IgnoreDaemonPods, "leave pods of DaemonSets out of that share"),
		boolFlag("ignore-mirror-pods-utilization", &c.Removal.IgnoreMirrorPods, "leave mirror pods out of that share"),
		boolFlag("skip-nodes-with-system-pods", &c.Removal.SkipSystemPods, "keep nodes with pods in kube-system that no disruption budget covers, for as long as the next flag says"),
		durationFlag("blocking-system-pod-distruption-timeout", &c.Removal.SystemPodTimeout, zeroOrMore, "how long such pods keep their node"),
		boolFlag("skip-nodes-with-local-storage", &c.Removal.SkipLocalStorage, "keep nodes with pods that have local storage, such as emptyDir or hostPath"),
		boolFlag("skip-nodes-with-custom-controller-pods", &c.Removal.SkipCustomControllerPods, "keep nodes with pods of controllers that Kubernetes doesn't have itself"),
		numberFlag("min-replica-count", &c.Removal.MinReplicas, atLeast(0), "replicas that a ReplicaSet, StatefulSet, Job or ReplicationController must have for its pods to be evicted"),
		durationFlag("unremovable-node-recheck-timeout", &c.Removal.RecheckAfter, zeroOrMore, "how long after a node was found not to be removable it is looked at again, unless something on it has changed"),
		durationFlag("scale-down-simulation-timeout", &c.SimulationTimeout, zeroOrMore, "how long a plan may look for nodes to remove; the next goes on, 0 for no bound"),
		durationFlag("node-deletion-candidate-ttl", &c.CandidateTTL, zeroOrMore, "how old the time in the taint of a node that could be removed may be for it to count after a restart, 0 for any age"),
		numberFlag("max-bulk-soft-taint-count", &c.MaxBulkSoftTaints, atLeast(0), "nodes on which that taint is written or taken off at a time, 0 for no such taints"),
		durationFlag("max-bulk-soft-taint-time", &c.MaxBulkSoftTaintTime, zeroOrMore, "how long such writes may take before the others are left to the next plan"),
		durationFlag("scale-down-delay-after-add", &c.DelayAfterAdd, zeroOrMore, "how long after a group grew it doesn't shrink"),
		durationFlag("scale-down-delay-after-delete", &c.DelayAfterDelete, zeroOrMore, "how long after a node of a group was deleted no other is"),
		durationFlag("scale-down-delay-after-failure", &c.DelayAfterFailure, zeroOrMore, "how long after a node of a group could not be removed the group doesn't shrink"),
		unlessFlag("scale-down-delay-type-local", &c.ClusterDelays, "have these delays concern the one group; false: all groups of the cluster"),

		// How nodes are removed.
		numberFlag("max-scale-down-parallelism", &c.MaxScaleDown, atLeast(1, "--scale-down-enabled=false removes nothing"), "nodes that may be under removal at a time"),
		numberFlag("max-empty-bulk-delete", &c.MaxScaleDown, atLeast(1, "--scale-down-enabled=false removes nothing"), "deprecated: the same as --max-scale-down-parallelism"),
		numberFlag("max-drain-parallelism", &c.MaxDrain, atLeast(0), "nodes with pods that may be under removal at a time, 0 to remove empty nodes only"),
		boolFlag("consolidation", &c.Consolidation, "replace several nodes that could not go by themselves by fewer or cheaper ones, which are bought first; Berth's own"),
		flagOf((*pflag.FlagSet).Float64Var, "consolidation-threshold", &c.ConsolidationThreshold, func(f float64) string {
			if f >= 0 {
				return ""
			}
			return "it must not be negative"
		}, "how many times the share of the cluster's pods that a consolidation moves the share of its price has to be that it saves: 0.5 as Karpenter's policy Balanced, 0 for any savings; Berth's own"),
		valueFlag("node-disruption-budget", nodeBudgets{&c.NodeBudgets}, "how many nodes of each group may be on their way out or not ready: nodes=5 or nodes=10%, and if need be ;reasons=empty,underutilized,consolidation and ;schedule=0 9 * * 1-5;duration=8h (cron, UTC); may be repeated, the most restrictive that is active counts; Berth's own, as Karpenter's budgets"),
		durationFlag("node-delete-delay-after-taint", &c.DeleteDelayAfterTaint, zeroOrMore, "how long after tainting a node it is looked at once more and removed"),
		unlessFlag("cordon-node-before-terminating", &c.KeepSchedulable, "make a node unschedulable when it is tainted to be removed"),
		durationFlag("max-pod-eviction-time", &c.MaxPodEvictionTime, zeroOrMore, "how long evicting a pod is tried before its node stays"),
		secondsFlag("max-graceful-termination-sec", &c.MaxGracefulTermination, "how many seconds an evicted pod may take to terminate at most"),
		drainFlag("drain-priority-config", &c.DrainPriority, "evict pods by priority, the lowest first: PRIORITY:SECONDS, separated by commas, for pods from that priority on; in place of --max-graceful-termination-sec").checked(a.oneTermination),
		boolFlag("daemonset-eviction-for-empty-nodes", &c.EvictDaemonPods, "evict daemon pods of a node without other pods before removing it"),
		unlessFlag("daemonset-eviction-for-occupied-nodes", &c.KeepDaemonPods, "evict daemon pods of a node that is drained"),
		durationFlag("node-deletion-delay-timeout", &c.DeletionDelayTimeout, zeroOrMore, "how long a node is kept for annotations delay-deletion.cluster-autoscaler.kubernetes.io/"),
		durationFlag("node-deletion-batcher-interval", &c.DeletionBatchInterval, zeroOrMore, "how long nodes of a group are gathered to be deleted in one call"),
		unlessFlag("keep-evicted-pod-homes", &c.NoHomes, "keep the room that was found for evicted pods for their replacements; Berth's own"),
		durationFlag("evicted-pod-home-time", &c.HomeTime, moreThanZero, "how long that room is kept, and an evicted pod counts that has no replacement; Berth's own"),
		boolFlag("surge", &c.Removal.Surge, "have the successor of a pod run before the pod leaves a node that is drained, for Deployments of one replica whose pod template has the annotation berth.dev/surge: \"true\"; Berth's own"),
	}
}

// oneTermination refuses two flags that say how long pods may take to terminate.
func (a *Autoscaler) oneTermination() error {
	if def := core.DefaultAutoscale(); len(a.Core.DrainPriority) > 0 && a.Core.MaxGracefulTermination != def.MaxGracefulTermination {
		return errors.New("--drain-priority-config says how long pods may take to terminate, and so does --max-graceful-termination-sec; leave one of them out")
	}
	return nil
}
