package config

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/pflag"

	"github.com/berthproject/berth/core"
)

// Autoscaler is what Cluster Autoscaler's flags set.
type Autoscaler struct {
	Core         core.Autoscale
	expander     string
	scaleDown    bool
	scaleUnready bool
	frequent     bool
}

// Flags adds the flags, with Cluster Autoscaler's names and defaults.
func (a *Autoscaler) Flags(fs *pflag.FlagSet) {
	a.Core = core.DefaultAutoscale()
	c := &a.Core
	fs.StringVar(&a.expander, "expander", "least-waste", "how to choose among node groups: least-waste")
	fs.DurationVar(&c.ScanInterval, "scan-interval", c.ScanInterval, "how often to plan the size of the cluster")
	fs.BoolVar(&a.frequent, "frequent-loops-enabled", true, "plan at once, not at the next scan, when pods find no node that no plan has seen")
	fs.IntVar(&c.Limits.MaxNodesTotal, "max-nodes-total", c.Limits.MaxNodesTotal, "nodes that the cluster may have, 0 for no limit")
	fs.IntVar(&c.Limits.MaxNodesPerScaleUp, "max-nodes-per-scaleup", c.Limits.MaxNodesPerScaleUp, "nodes that one plan may add to a group")
	fs.IntVar(&c.Limits.MaxNodesLaunching, "max-nodes-launching", c.Limits.MaxNodesLaunching, "nodes of the cluster that may be launching (ordered and not ready) at a time, 0 for no limit; Berth's own")
	fs.DurationVar(&c.MaxProvisionTime, "max-node-provision-time", c.MaxProvisionTime, "how long an instance may take to become a node; then it is deleted and its group backs off")
	fs.DurationVar(&c.Limits.StartupTime, "max-node-startup-time", c.Limits.StartupTime, "how long a node may take to become ready and still count as coming")
	fs.BoolVar(&c.ForceDeleteUnregistered, "force-delete-unregistered-nodes", false, "delete instances that don't become nodes even from a group at its minimum")
	fs.DurationVar(&c.InitialBackoff, "initial-node-group-backoff-duration", c.InitialBackoff, "how long a node group is left alone after a failed scale-up")
	fs.DurationVar(&c.MaxBackoff, "max-node-group-backoff-duration", c.MaxBackoff, "the longest such time, after more failures")
	fs.DurationVar(&c.BackoffReset, "node-group-backoff-reset-timeout", c.BackoffReset, "how long after its last failure a group's backoff is forgotten")
	fs.BoolVar(&a.scaleDown, "scale-down-enabled", true, "remove nodes that aren't needed")
	fs.DurationVar(&c.UnneededTime, "scale-down-unneeded-time", c.UnneededTime, "how long a node must have been empty to be removed")
	fs.BoolVar(&a.scaleUnready, "scale-down-unready-enabled", true, "remove empty nodes that aren't ready")
	fs.DurationVar(&c.UnreadyTime, "scale-down-unready-time", c.UnreadyTime, "how long an unready node must have been empty to be removed")
	fs.DurationVar(&c.DelayAfterAdd, "scale-down-delay-after-add", c.DelayAfterAdd, "how long after a group grew it doesn't shrink")
	fs.DurationVar(&c.DelayAfterFailure, "scale-down-delay-after-failure", c.DelayAfterFailure, "how long after a failed scale-up a group doesn't shrink")
	fs.IntVar(&c.MaxScaleDown, "max-scale-down-parallelism", c.MaxScaleDown, "nodes that may be under removal at a time")
	fs.DurationVar(&c.DeleteDelayAfterTaint, "node-delete-delay-after-taint", c.DeleteDelayAfterTaint, "how long after tainting a node it is looked at once more and removed")
	fs.BoolVar(&c.EvictDaemonPods, "daemonset-eviction-for-empty-nodes", false, "evict daemon pods of a node before removing it")
	fs.DurationVar(&c.MaxPodEvictionTime, "max-pod-eviction-time", c.MaxPodEvictionTime, "how long to wait for such evictions")
}

// Finish checks what the flags set and completes Core.
func (a *Autoscaler) Finish() error {
	if a.expander != "least-waste" {
		return fmt.Errorf("--expander is %q; this version of Berth has least-waste only", a.expander)
	}
	c := &a.Core
	for _, d := range []struct {
		name  string
		value *time.Duration
		zero  bool // may be 0: at once
	}{
		{"scan-interval", &c.ScanInterval, false},
		{"scale-down-unneeded-time", &c.UnneededTime, true},
		{"scale-down-unready-time", &c.UnreadyTime, true},
		{"scale-down-delay-after-add", &c.DelayAfterAdd, true},
		{"scale-down-delay-after-failure", &c.DelayAfterFailure, true},
		{"node-delete-delay-after-taint", &c.DeleteDelayAfterTaint, true},
		{"max-pod-eviction-time", &c.MaxPodEvictionTime, true},
		{"max-node-provision-time", &c.MaxProvisionTime, false},
		{"max-node-startup-time", &c.Limits.StartupTime, false},
		{"initial-node-group-backoff-duration", &c.InitialBackoff, false},
		{"max-node-group-backoff-duration", &c.MaxBackoff, false},
		{"node-group-backoff-reset-timeout", &c.BackoffReset, false},
	} {
		switch {
		case *d.value == 0 && d.zero:
		case *d.value == 0:
			return fmt.Errorf("--%s is 0s; it must be greater than 0", d.name)
		case *d.value < 0:
			return fmt.Errorf("--%s is %s; it must not be negative", d.name, *d.value)
		}
	}
	for _, n := range []struct {
		name  string
		value int
	}{
		{"max-nodes-total", c.Limits.MaxNodesTotal}, {"max-nodes-per-scaleup", c.Limits.MaxNodesPerScaleUp}, {"max-nodes-launching", c.Limits.MaxNodesLaunching},
	} {
		if n.value < 0 {
			return fmt.Errorf("--%s is %d; it must be at least 0", n.name, n.value)
		}
	}
	if c.MaxScaleDown < 1 {
		return fmt.Errorf("--max-scale-down-parallelism is %d; it must be at least 1 (--scale-down-enabled=false removes nothing)", c.MaxScaleDown)
	}
	c.DisableScaleDown, c.KeepUnready = !a.scaleDown, !a.scaleUnready
	c.DisableFrequentLoops = !a.frequent
	return nil
}

// ParseAutoscaler reads flags from a list such as that of a command line.
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
	return a.Core, a.Finish()
}
