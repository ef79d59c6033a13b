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

// section is a part of the flags, as help and docs/reference/flags.md show them.
type section struct {
	name  string
	flags []flag
}

// table returns all flags. The targets hold the defaults when it is called from Flags.
func (a *Autoscaler) table() []section {
	return []section{{"scale-up", a.scaleUpFlags()}, {"scale-down", a.scaleDownFlags()}, {"autoscaler status and health", a.Watch.flags()}}
}

// scaleUpFlags are those about ordering nodes. Their targets are fields of the core's own configuration,
// which hold the defaults.
func (a *Autoscaler) scaleUpFlags() []flag {
	c := &a.Core
	return []flag{
		// When to plan, and which group to choose.
		textFlag("expander", &c.Expander, expanders, "type of node group expander for scale-up: "+strings.Join(expander.Names(), ", ")+"; several, separated by commas, are called in succession, and remaining ties are broken randomly"),
		textFlag("grpc-expander-url", &a.GRPCExpander.URL, a.neededByGRPC, "host:port of the gRPC expander server"),
		textFlag("grpc-expander-cert", &a.GRPCExpander.Cert, a.neededByGRPC, "path to a PEM file with that server's certificate or its CA's"),
		durationFlag("scan-interval", &c.ScanInterval, moreThanZero, "how often the cluster is reevaluated for scale-up and scale-down"),
		balancingFlag("balance-similar-node-groups", &c.Balancing.Mode, "balance the number of nodes between similar node groups when scaling up; the expander cost does so unless this is false"),
		listFlag("balancing-ignore-label", &c.Balancing.IgnoredLabels, "label to ignore when comparing if two node groups are similar, in addition to the basic set of labels for zones, hosts and providers; may be repeated"),
		listFlag("balancing-label", &c.Balancing.Labels, "label to compare to decide if two node groups are similar; disables all other comparisons; may be repeated"),
		ratioFlag("memory-difference-ratio", &c.Balancing.MemoryDifference, "maximum difference in memory between nodes of similar node groups, as a ratio"),
		ratioFlag("max-free-difference-ratio", &c.Balancing.FreeDifference, "maximum difference in free resources (after DaemonSet pods) between nodes of similar node groups, as a ratio"),
		ratioFlag("max-allocatable-difference-ratio", &c.Balancing.AllocatableDifference, "maximum difference in allocatable resources between nodes of similar node groups, as a ratio"),
		durationFlag("max-binpacking-time", &c.MaxBinpackingTime, moreThanZero, "maximum time for planning a scale-up; nodes decided on by then are added, and the next plan continues"),
		durationFlag("max-nodegroup-binpacking-duration", &c.MaxNodeGroupBinpackingDuration, zeroOrMore, "maximum time for the binpacking simulation of each node group, 0 for no limit"),
		unlessFlag("frequent-loops-enabled", &c.DisableFrequentLoops, "plan immediately, and not at the next scan, when there are new unschedulable pods"),

		// Limits of nodes; 0 stands for no limit.
		numberFlag("max-nodes-total", &c.Limits.MaxNodesTotal, atLeast(0), "maximum number of nodes in the cluster, 0 for no limit"),
		numberFlag("max-nodes-per-scaleup", &c.Limits.MaxNodesPerScaleUp, atLeast(0), "maximum number of nodes that one scale-up adds to a node group"),
		launchFlag("max-nodes-launching", &c.MaxNodesLaunching, "maximum number of nodes in the cluster that are launching (requested and not ready) at a time, 0 for no limit, adaptive to have Berth find out what disks and registries can sustain; specific to Berth"),
		launchFlag("max-nodes-launching-per-group", &c.MaxNodesLaunchingPerGroup, "the same limit for each node group; specific to Berth"),
		valueFlag("cores-total", totalFlag{&c.Limits.Totals, v1.ResourceCPU, 1}, "minimum and maximum number of cores in the cluster; the minimum limits scale-down"),
		valueFlag("memory-total", totalFlag{&c.Limits.Totals, v1.ResourceMemory, 1 << 30}, "minimum and maximum memory of the cluster in GiB"),
		valueFlag("gpu-total", gpuTotalFlag{&c.Limits.Totals}, "minimum and maximum number of GPUs of an extended resource in the cluster, or of devices if a DeviceClass backs it; may be repeated"),
		boolFlag("enforce-node-group-min-size", &c.Limits.EnforceMinSize, "scale node groups up to their minimum size, whether or not pods need it"),
		percentFlag("max-total-unready-percentage", &c.Limits.MaxTotalUnready, "above this percentage of unready nodes the autoscaler stops resizing the cluster"),
		numberFlag("ok-total-unready-count", &c.Limits.OKTotalUnready, atLeast(0), "number of unready nodes that is allowed regardless of --max-total-unready-percentage"),
		intFlag("expendable-pods-priority-cutoff", &c.PriorityCutoff, "pods with a priority below this cutoff are expendable: they do not trigger scale-up"),
		listFlag("allowed-scheduler-names", &c.AllowedSchedulers, "schedulerName of pods that trigger scale-up (default: all); next to another scheduler, pods of a name without a profile are simulated with the first profile; may be repeated"),
		listFlag("bypassed-scheduler-names", &c.BypassedSchedulers, "schedulerName of pods that trigger scale-up before their scheduler has marked them unschedulable (--mode=autoscaler); must be allowed by --allowed-scheduler-names; may be repeated").checked(a.bypassedAreAllowed),
		durationFlag("new-pod-scale-up-delay", &c.NewPodDelay, zeroOrMore, "pods younger than this do not trigger scale-up; the annotation cluster-autoscaler.kubernetes.io/pod-scale-up-delay can increase it per pod"),

		// Nodes that don't come, and how long their group backs off.
		durationFlag("max-node-provision-time", &c.MaxProvisionTime, moreThanZero, "maximum time for an instance to register as a node; after that it is deleted and its node group backs off"),
		durationFlag("max-node-startup-time", &c.Readiness.StartupTime, moreThanZero, "maximum time from the creation of a node until it is ready; until then it counts as upcoming"),
		listFlag("startup-taint", &c.Readiness.StartupTaints, "key of a taint that nodes have until they have started up: a node with it counts as upcoming; may be repeated"),
		listFlag("startup-taint-prefix", &c.Readiness.StartupTaintPrefixes, "prefix of startup taint keys, in addition to startup-taint.cluster-autoscaler.kubernetes.io/; may be repeated"),
		listFlag("ignore-taint", &c.Readiness.StartupTaints, "deprecated: the same as --startup-taint"),
		listFlag("status-taint", &c.Readiness.StatusTaints, "key of a taint that reflects the status of a single node: the templates of new nodes omit it; may be repeated"),
		boolFlag("force-delete-unregistered-nodes", &c.ForceDeleteUnregistered, "delete unregistered instances even if their node group is at its minimum size"),
		durationFlag("initial-node-group-backoff-duration", &c.InitialBackoff, moreThanZero, "duration of the first backoff of a node group after a failed scale-up"),
		durationFlag("max-node-group-backoff-duration", &c.MaxBackoff, moreThanZero, "maximum backoff duration of a node group after repeated failures"),
		durationFlag("node-group-backoff-reset-timeout", &c.BackoffReset, moreThanZero, "time after the last failed scale-up when the backoff duration of a node group is reset"),
	}
}

// bypassedAreAllowed refuses to bypass a scheduler for whose pods nothing is bought.
func (a *Autoscaler) bypassedAreAllowed() error {
	for _, name := range a.Core.BypassedSchedulers {
		if len(a.Core.AllowedSchedulers) > 0 && !slices.Contains(a.Core.AllowedSchedulers, name) {
			return fmt.Errorf("--bypassed-scheduler-names has %q, but --allowed-scheduler-names only %s; add it there, too", name, strings.Join(a.Core.AllowedSchedulers, ", "))
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

// Flags adds the flags to the sets of their sections, and gives everything its default.
func (a *Autoscaler) Flags(set func(section string) *pflag.FlagSet) {
	a.Core, a.Watch = core.DefaultAutoscale(), defaultWatching()
	for _, s := range a.table() {
		for _, f := range s.flags {
			f.register(set(s.name))
		}
	}
}

// Validate returns what is wrong with the first flag in the table whose value can't be
// honoured: the flag, the value and what would be accepted.
func (a *Autoscaler) Validate() error {
	for _, s := range a.table() {
		for _, f := range s.flags {
			if err := f.validate(); err != nil {
				return err
			}
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
	a.Flags(func(string) *pflag.FlagSet { return fs })
	if err := fs.Parse(slices.Clone(args)); err != nil {
		return core.Autoscale{}, err
	}
	if fs.NArg() > 0 {
		return core.Autoscale{}, errors.New("argument " + fs.Arg(0) + " is not a flag; flags are given as --name=value")
	}
	return a.Core, a.Validate()
}
