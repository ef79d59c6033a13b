package config

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	v1 "k8s.io/api/core/v1"

	"github.com/berthproject/berth/core"
	"github.com/berthproject/berth/core/autoscaler/expander"
)

// This file has the flags of the autoscaler, one row each (flag.go says what a row is).
// What must hold: a flag that Cluster Autoscaler has too keeps its name and its default;
// one of Berth's own says so.

// Autoscaler is what Cluster Autoscaler's flags set. Flags has to be called first, and
// Validate after parsing.
type Autoscaler struct {
	Core core.Autoscale
	// GRPCExpander is where the server of the grpc expander is, and the PEM file with its
	// certificate. Both are set when Core.Expander names grpc.
	GRPCExpander struct{ URL, Cert string }
}

// table returns all flags, in the order of docs/reference/flags.md. The targets hold the
// defaults when it is called from Flags.
func (a *Autoscaler) table() []flag {
	c := &a.Core
	return []flag{
		// Scale-up: when to plan, and which group to choose.
		textFlag("expander", &c.Expander, expanders, "how to choose among node groups: "+strings.Join(expander.Names(), ", ")+"; several, separated by commas, are asked one after the other, and among what the last leaves chance decides"),
		textFlag("grpc-expander-url", &a.GRPCExpander.URL, a.neededByGRPC, "host:port of the server that the expander grpc asks"),
		textFlag("grpc-expander-cert", &a.GRPCExpander.Cert, a.neededByGRPC, "path to a PEM file with that server's certificate, or its authority's"),
		durationFlag("scan-interval", &c.ScanInterval, moreThanZero, "how often to plan the size of the cluster"),
		balancingFlag("balance-similar-node-groups", &c.Balancing.Mode, "share what is bought over node groups whose nodes are similar, so that their sizes stay balanced; the expander cost does so unless this is false"),
		listFlag("balancing-ignore-label", &c.Balancing.IgnoredLabels, "label in which similar node groups may differ, in addition to those of zones, hosts and providers; may be repeated"),
		listFlag("balancing-label", &c.Balancing.Labels, "label of which similar node groups have the same value; with one or more of these nothing else is compared; may be repeated"),
		ratioFlag("memory-difference-ratio", &c.Balancing.MemoryDifference, "how far apart the memory of nodes of similar groups may be"),
		ratioFlag("max-free-difference-ratio", &c.Balancing.FreeDifference, "how far apart what daemon pods leave free of such nodes may be, of any resource"),
		ratioFlag("max-allocatable-difference-ratio", &c.Balancing.AllocatableDifference, "how far apart what such nodes can allocate may be, of any resource"),
		durationFlag("max-binpacking-time", &c.MaxBinpackingTime, moreThanZero, "how long a plan may take; what it has decided by then is bought, and the next plan goes on"),
		durationFlag("max-nodegroup-binpacking-duration", &c.MaxNodeGroupBinpackingDuration, zeroOrMore, "how long packing pods on nodes of one group may take before others are looked at, 0 for no bound"),
		unlessFlag("frequent-loops-enabled", &c.DisableFrequentLoops, "plan at once, not at the next scan, when pods find no node that no plan has seen"),

		// Limits of nodes; 0 stands for no limit.
		numberFlag("max-nodes-total", &c.Limits.MaxNodesTotal, atLeast(0), "nodes that the cluster may have, 0 for no limit"),
		numberFlag("max-nodes-per-scaleup", &c.Limits.MaxNodesPerScaleUp, atLeast(0), "nodes that one plan may add to a group"),
		launchFlag("max-nodes-launching", &c.MaxNodesLaunching, "nodes of the cluster that may be launching (ordered and not ready) at a time, 0 for no limit, adaptive to have Berth find what disks and registries bear; Berth's own"),
		launchFlag("max-nodes-launching-per-group", &c.MaxNodesLaunchingPerGroup, "the same for each node group; Berth's own"),
		valueFlag("cores-total", totalFlag{&c.Limits.Totals, v1.ResourceCPU, 1}, "cores that all nodes of the cluster may have together; the minimum is for removing nodes"),
		valueFlag("memory-total", totalFlag{&c.Limits.Totals, v1.ResourceMemory, 1 << 30}, "memory in GiB that all nodes of the cluster may have together"),
		valueFlag("gpu-total", gpuTotalFlag{&c.Limits.Totals}, "GPUs, counted by their extended resource, that all nodes may have together; may be repeated"),
		boolFlag("enforce-node-group-min-size", &c.Limits.EnforceMinSize, "grow node groups that are below their minimum, whether or not pods need it"),
		percentFlag("max-total-unready-percentage", &c.Limits.MaxTotalUnready, "percentage of nodes that aren't ready above which the cluster's size isn't changed"),
		numberFlag("ok-total-unready-count", &c.Limits.OKTotalUnready, atLeast(0), "nodes that aren't ready which are allowed, whatever percentage they are"),
		intFlag("expendable-pods-priority-cutoff", &c.PriorityCutoff, "pods with a lower priority than this are expendable: no nodes are bought for them"),
		listFlag("allowed-scheduler-names", &c.AllowedSchedulers, "schedulerName of pods that nodes are bought for, all when none is named; beside another scheduler one without a profile is expected to decide as the first profile; may be repeated"),
		listFlag("bypassed-scheduler-names", &c.BypassedSchedulers, "schedulerName of pods that nodes are bought for before their scheduler has called them unschedulable (--mode=autoscaler); as above; may be repeated").checked(a.bypassedAreAllowed),
		durationFlag("new-pod-scale-up-delay", &c.NewPodDelay, zeroOrMore, "how long a pod has to wait before nodes are bought for it; the annotation cluster-autoscaler.kubernetes.io/pod-scale-up-delay may ask for longer"),

		// Nodes that don't come, and how long their group backs off.
		durationFlag("max-node-provision-time", &c.MaxProvisionTime, moreThanZero, "how long an instance may take to become a node; then it is deleted and its group backs off"),
		durationFlag("max-node-startup-time", &c.Readiness.StartupTime, moreThanZero, "how long a node may take to become ready and still count as coming"),
		listFlag("startup-taint", &c.Readiness.StartupTaints, "key of a taint that nodes carry until something on them has started: such a node counts as coming; may be repeated"),
		listFlag("startup-taint-prefix", &c.Readiness.StartupTaintPrefixes, "prefix of keys of such taints, in addition to startup-taint.cluster-autoscaler.kubernetes.io/; may be repeated"),
		listFlag("ignore-taint", &c.Readiness.StartupTaints, "deprecated: the same as --startup-taint"),
		listFlag("status-taint", &c.Readiness.StatusTaints, "key of a taint that says something of one node's condition: new nodes are planned without it; may be repeated"),
		boolFlag("force-delete-unregistered-nodes", &c.ForceDeleteUnregistered, "delete instances that don't become nodes even from a group at its minimum"),
		durationFlag("initial-node-group-backoff-duration", &c.InitialBackoff, moreThanZero, "how long a node group is left alone after a failed scale-up"),
		durationFlag("max-node-group-backoff-duration", &c.MaxBackoff, moreThanZero, "the longest such time, after more failures"),
		durationFlag("node-group-backoff-reset-timeout", &c.BackoffReset, moreThanZero, "how long after its last failure a group's backoff is forgotten"),

		// Scale-down: which nodes aren't needed. A duration of 0 stands for at once.
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

		// Scale-down: how nodes are removed.
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
		boolFlag("surge", &c.Surge, "have the successor of a pod run before the pod leaves a node that is drained, for Deployments of one replica whose pod template has the annotation berth.dev/surge: \"true\"; Berth's own"),
	}
}

// oneTermination refuses two flags that say how long pods may take to terminate.
func (a *Autoscaler) oneTermination() error {
	if def := core.DefaultAutoscale(); len(a.Core.DrainPriority) > 0 && a.Core.MaxGracefulTermination != def.MaxGracefulTermination {
		return errors.New("--drain-priority-config says how long pods may take to terminate, and so does --max-graceful-termination-sec; leave one of them out")
	}
	return nil
}

// bypassedAreAllowed refuses to bypass a scheduler for whose pods nothing is bought.
func (a *Autoscaler) bypassedAreAllowed() error {
	for _, name := range a.Core.BypassedSchedulers {
		if len(a.Core.AllowedSchedulers) > 0 && !slices.Contains(a.Core.AllowedSchedulers, name) {
			return fmt.Errorf("--bypassed-scheduler-names has %q, and --allowed-scheduler-names only %s; name it there, too", name, strings.Join(a.Core.AllowedSchedulers, ", "))
		}
	}
	return nil
}

// expanders checks the names of expanders.
func expanders(list string) string {
	if _, err := expander.ParseNames(list); err != nil {
		return err.Error()
	}
	return ""
}

// neededByGRPC refuses nothing where grpc is among the expanders.
func (a *Autoscaler) neededByGRPC(value string) string {
	if value == "" && expander.Named(a.Core.Expander, expander.GRPCName) {
		return "the expander grpc needs it"
	}
	return ""
}

// Flags adds the flags to fs, and gives everything its default.
func (a *Autoscaler) Flags(fs *pflag.FlagSet) {
	a.Core = core.DefaultAutoscale()
	for _, f := range a.table() {
		f.register(fs)
	}
}

// Validate returns what is wrong with the first flag in the table whose value can't be
// honoured: the flag, the value and what would be accepted.
func (a *Autoscaler) Validate() error {
	for _, f := range a.table() {
		if err := f.validate(); err != nil {
			return err
		}
	}
	return nil
}

// ParseAutoscaler reads flags from a list such as that of a command line: scenarios, policies
// and --autoscaler-flag have such lists. Flags that aren't given have their defaults.
func ParseAutoscaler(args []string) (core.Autoscale, error) {
	var a Autoscaler
	fs := pflag.NewFlagSet("autoscaler", pflag.ContinueOnError)
	fs.Usage = func() {}
	a.Flags(fs)
	if err := fs.Parse(slices.Clone(args)); err != nil {
		return core.Autoscale{}, err
	}
	if fs.NArg() > 0 {
		return core.Autoscale{}, errors.New("argument " + fs.Arg(0) + " is not a flag; write --name=value")
	}
	return a.Core, a.Validate()
}
