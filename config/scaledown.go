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
		unlessFlag("scale-down-enabled", &c.DisableScaleDown, "scale down the cluster: remove unneeded nodes"),
		durationFlag("scale-down-unneeded-time", &c.UnneededTime, zeroOrMore, "how long a node must be unneeded before it can be removed"),
		unlessFlag("scale-down-unready-enabled", &c.Removal.KeepUnready, "also remove unneeded nodes that are unready"),
		durationFlag("scale-down-unready-time", &c.UnreadyTime, zeroOrMore, "how long an unready node must be unneeded before it can be removed"),
		ratioFlag("scale-down-utilization-threshold", &c.Removal.UtilizationThreshold, "maximum utilization of a node, the higher of its requested share of CPU and of memory, for it to be drained and removed"),
		ratioFlag("scale-down-gpu-utilization-threshold", &c.Removal.GPUUtilizationThreshold, "maximum GPU utilization of a node with GPUs for it to be drained and removed; CPU and memory are ignored for such nodes"),
		boolFlag("ignore-daemonsets-utilization", &c.Removal.IgnoreDaemonPods, "ignore DaemonSet pods when computing utilization"),
		boolFlag("ignore-mirror-pods-utilization", &c.Removal.IgnoreMirrorPods, "ignore mirror pods when computing utilization"),
		boolFlag("skip-nodes-with-system-pods", &c.Removal.SkipSystemPods, "never remove nodes with kube-system pods that no disruption budget covers, while they are younger than --blocking-system-pod-distruption-timeout"),
		durationFlag("blocking-system-pod-distruption-timeout", &c.Removal.SystemPodTimeout, zeroOrMore, "how long after its creation such a pod blocks the removal of its node"),
		boolFlag("skip-nodes-with-local-storage", &c.Removal.SkipLocalStorage, "never remove nodes with pods that use local storage, such as emptyDir or hostPath"),
		boolFlag("skip-nodes-with-custom-controller-pods", &c.Removal.SkipCustomControllerPods, "never remove nodes with pods owned by custom controllers"),
		numberFlag("min-replica-count", &c.Removal.MinReplicas, atLeast(0), "minimum number of replicas of a ReplicaSet or ReplicationController for its pods to be evictable"),
		durationFlag("unremovable-node-recheck-timeout", &c.Removal.RecheckAfter, zeroOrMore, "how long to wait before a node that was found unremovable is checked again, unless something on it changes"),
		durationFlag("scale-down-simulation-timeout", &c.SimulationTimeout, zeroOrMore, "maximum time for simulating node removals in a plan, 0 for no limit; the next plan continues where it stopped"),
		durationFlag("node-deletion-candidate-ttl", &c.CandidateTTL, zeroOrMore, "maximum age of the deletion candidate taint for its time to count after a restart, 0 for any age"),
		numberFlag("max-bulk-soft-taint-count", &c.MaxBulkSoftTaints, atLeast(0), "maximum number of nodes whose deletion candidate taint is set or removed at a time, 0 to disable these taints"),
		durationFlag("max-bulk-soft-taint-time", &c.MaxBulkSoftTaintTime, zeroOrMore, "maximum time for setting and removing deletion candidate taints; the rest is left to the next plan"),
		durationFlag("scale-down-delay-after-add", &c.DelayAfterAdd, zeroOrMore, "how long after a scale-up the node group can be scaled down again"),
		durationFlag("scale-down-delay-after-delete", &c.DelayAfterDelete, zeroOrMore, "how long after a node was deleted the node group can be scaled down again"),
		durationFlag("scale-down-delay-after-failure", &c.DelayAfterFailure, zeroOrMore, "how long after a failed scale-down the node group can be scaled down again"),
		unlessFlag("scale-down-delay-type-local", &c.ClusterDelays, "apply the --scale-down-delay-after-* flags per node group; false: to the whole cluster"),

		// How nodes are removed.
		numberFlag("max-scale-down-parallelism", &c.MaxScaleDown, atLeast(1, "--scale-down-enabled=false disables scale-down"), "maximum number of nodes being removed at a time"),
		numberFlag("max-empty-bulk-delete", &c.MaxScaleDown, atLeast(1, "--scale-down-enabled=false disables scale-down"), "deprecated: the same as --max-scale-down-parallelism"),
		numberFlag("max-drain-parallelism", &c.MaxDrain, atLeast(0), "maximum number of nodes being drained and removed at a time, 0 to remove only empty nodes"),
		boolFlag("consolidation", &c.Consolidation, "replace several nodes that are not removable by themselves with fewer or cheaper ones, which are added first; specific to Berth"),
		flagOf((*pflag.FlagSet).Float64Var, "consolidation-threshold", &c.ConsolidationThreshold, func(f float64) string {
			if f >= 0 {
				return ""
			}
			return "it must not be negative"
		}, "minimum ratio of the share of the cluster's cost that a consolidation saves to the share of its pods that it moves: 0.5 as Karpenter's policy Balanced, 0 for any savings; specific to Berth"),
		valueFlag("node-disruption-budget", nodeBudgets{&c.NodeBudgets}, "maximum number of nodes of each node group that are being removed or unready: nodes=5 or nodes=10%, optionally with ;reasons=empty,underutilized,consolidation and ;schedule=0 9 * * 1-5;duration=8h (cron, UTC); may be repeated, the most restrictive active budget applies; specific to Berth, like Karpenter's budgets"),
		durationFlag("node-delete-delay-after-taint", &c.DeleteDelayAfterTaint, zeroOrMore, "delay between tainting a node for deletion and checking it once more and removing it"),
		unlessFlag("cordon-node-before-terminating", &c.KeepSchedulable, "cordon a node when it is tainted for deletion"),
		durationFlag("max-pod-eviction-time", &c.MaxPodEvictionTime, zeroOrMore, "maximum time to retry the eviction of a pod before the removal of its node fails"),
		secondsFlag("max-graceful-termination-sec", &c.MaxGracefulTermination, "maximum number of seconds to wait for an evicted pod to terminate"),
		drainFlag("drain-priority-config", &c.DrainPriority, "evict pods by priority, lowest first: PRIORITY:SECONDS, separated by commas, sets the maximum termination time for pods of at least that priority; replaces --max-graceful-termination-sec").checked(a.oneTermination),
		boolFlag("daemonset-eviction-for-empty-nodes", &c.EvictDaemonPods, "evict DaemonSet pods from empty nodes before removing them"),
		unlessFlag("daemonset-eviction-for-occupied-nodes", &c.KeepDaemonPods, "evict DaemonSet pods from non-empty nodes"),
		durationFlag("node-deletion-delay-timeout", &c.DeletionDelayTimeout, zeroOrMore, "maximum time to wait for annotations delay-deletion.cluster-autoscaler.kubernetes.io/ to be removed from a node"),
		durationFlag("node-deletion-batcher-interval", &c.DeletionBatchInterval, zeroOrMore, "how long node deletions are collected to delete the nodes of a group in one batch"),
		unlessFlag("keep-evicted-pod-homes", &c.NoHomes, "reserve the room that was found for evicted pods for their replacements; specific to Berth"),
		durationFlag("evicted-pod-home-time", &c.HomeTime, moreThanZero, "how long room is reserved for the replacement of an evicted pod; specific to Berth"),
		valueFlag("node-interruption-marks", &interruptionMarks{target: &c.Interruptions}, "node taints, and conditions as condition:TYPE, by which the cloud or a termination handler announces that it is about to take a node, each with how long before as =DURATION where that is known; room for the node's pods is then reserved or bought, and the node drained; replaces the default, may be repeated, empty to take no notice as Cluster Autoscaler does; specific to Berth"),
		durationFlag("move-pending-resizes-after", &c.MoveResizesAfter, zeroOrMore, "how long an in-place resize must have been deferred or infeasible on a pod's node before room for the pod is reserved or bought on another node and the pod evicted, 0 for never; specific to Berth"),
		boolFlag("surge", &c.Removal.Surge, "start the replacement of a pod before evicting it from a node that is drained, for Deployments with one replica whose pod template has the annotation berth.dev/surge: \"true\"; specific to Berth"),
	}
}

// oneTermination refuses two flags that say how long pods may take to terminate.
func (a *Autoscaler) oneTermination() error {
	if def := core.DefaultAutoscale(); len(a.Core.DrainPriority) > 0 && a.Core.MaxGracefulTermination != def.MaxGracefulTermination {
		return errors.New("--drain-priority-config and --max-graceful-termination-sec both set how long pods may take to terminate; omit one of them")
	}
	return nil
}
