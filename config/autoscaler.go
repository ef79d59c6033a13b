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
	Watch        Watching
}

// table returns all flags, in the order of docs/reference/flags.md. The targets hold the
// defaults when it is called from Flags.
func (a *Autoscaler) table() []flag {
	return slices.Concat(a.scaleUpFlags(), a.scaleDownFlags(), a.Watch.flags())
}

func (a *Autoscaler) scaleUpFlags() []flag {
	c := &a.Core
	return []flag{
		// When to plan, and which group to choose.
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
	}
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
	a.Core, a.Watch = core.DefaultAutoscale(), defaultWatching()
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
