package config

import (
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/berthproject/berth/core"
	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/autoscaler/nodebudget"
	"github.com/berthproject/berth/core/lifecycle/launching"
	"github.com/berthproject/berth/internal/test/testkit"
)

// This file specifies the flags of the autoscaler: a row of autoscalerFlags for each, and
// the refused values with their messages.

// autoscalerFlags has for each flag the default of Cluster Autoscaler 1.36, and a value
// with the field that it sets.
var autoscalerFlags = []struct {
	name, byDefault string
	value           string
	set             func(*core.Autoscale)
}{
	{"expander", "least-waste", "price,random", func(a *core.Autoscale) { a.Expander = "price,random" }},
	{"grpc-expander-url", "", "localhost:7000", func(*core.Autoscale) {}},
	{"grpc-expander-cert", "", "cert.pem", func(*core.Autoscale) {}},
	{"scan-interval", "10s", "1m", func(a *core.Autoscale) { a.ScanInterval = time.Minute }},
	{"balance-similar-node-groups", "false", "true", func(a *core.Autoscale) { a.Balancing.Mode = autoscaler.BalanceAlways }},
	{"balancing-ignore-label", "", "a,b", func(a *core.Autoscale) { a.Balancing.IgnoredLabels = []string{"a", "b"} }},
	{"balancing-label", "", "a", func(a *core.Autoscale) { a.Balancing.Labels = []string{"a"} }},
	{"memory-difference-ratio", "0.015", "0.1", func(a *core.Autoscale) { a.Balancing.MemoryDifference = 0.1 }},
	{"max-free-difference-ratio", "0.05", "0", func(a *core.Autoscale) { a.Balancing.FreeDifference = 0 }},
	{"max-allocatable-difference-ratio", "0.05", "1", func(a *core.Autoscale) { a.Balancing.AllocatableDifference = 1 }},
	{"frequent-loops-enabled", "true", "false", func(a *core.Autoscale) { a.DisableFrequentLoops = true }},
	{"max-binpacking-time", "5m0s", "1m", func(a *core.Autoscale) { a.MaxBinpackingTime = time.Minute }},
	{"max-nodegroup-binpacking-duration", "10s", "0s", func(a *core.Autoscale) { a.MaxNodeGroupBinpackingDuration = 0 }},
	{"max-nodes-total", "0", "7", func(a *core.Autoscale) { a.Limits.MaxNodesTotal = 7 }},
	{"max-nodes-per-scaleup", "1000", "0", func(a *core.Autoscale) { a.Limits.MaxNodesPerScaleUp = 0 }},
	{"max-nodes-launching", "0", "3", func(a *core.Autoscale) { a.MaxNodesLaunching = 3 }}, // Berth's own
	{"max-nodes-launching-per-group", "0", "adaptive", func(a *core.Autoscale) { a.MaxNodesLaunchingPerGroup = launching.Adaptive }},
	{"cores-total", "0:320000", "2:8", func(a *core.Autoscale) {
		a.Limits.Totals = []autoscaler.Total{a.Limits.Totals[1], {Resource: "cpu", Min: 2, Max: 8}}
	}},
	{"memory-total", "0:6400000", "1:2", func(a *core.Autoscale) {
		a.Limits.Totals = []autoscaler.Total{a.Limits.Totals[0], {Resource: "memory", Min: 1 << 30, Max: 2 << 30}}
	}},
	{"gpu-total", "", "nvidia.com/gpu:0:4", func(a *core.Autoscale) {
		a.Limits.Totals = append(a.Limits.Totals, autoscaler.Total{Resource: "nvidia.com/gpu", Max: 4})
	}},
	{"enforce-node-group-min-size", "false", "true", func(a *core.Autoscale) { a.Limits.EnforceMinSize = true }},
	{"max-total-unready-percentage", "45", "10.5", func(a *core.Autoscale) { a.Limits.MaxTotalUnready = 10.5 }},
	{"ok-total-unready-count", "3", "0", func(a *core.Autoscale) { a.Limits.OKTotalUnready = 0 }},
	{"expendable-pods-priority-cutoff", "-10", "5", func(a *core.Autoscale) { a.PriorityCutoff = 5 }},
	{"new-pod-scale-up-delay", "0s", "1m", func(a *core.Autoscale) { a.NewPodDelay = time.Minute }},
	{"allowed-scheduler-names", "", "a,b", func(a *core.Autoscale) { a.AllowedSchedulers = []string{"a", "b"} }},
	{"bypassed-scheduler-names", "", "a,b", func(a *core.Autoscale) { a.BypassedSchedulers = []string{"a", "b"} }},
	{"startup-taint", "", "a,b", func(a *core.Autoscale) { a.Readiness.StartupTaints = []string{"a", "b"} }},
	{"startup-taint-prefix", "", "a", func(a *core.Autoscale) { a.Readiness.StartupTaintPrefixes = []string{"a"} }},
	{"ignore-taint", "", "a", func(a *core.Autoscale) { a.Readiness.StartupTaints = []string{"a"} }},
	{"status-taint", "", "a", func(a *core.Autoscale) { a.Readiness.StatusTaints = []string{"a"} }},
	{"max-node-provision-time", "15m0s", "1h", func(a *core.Autoscale) { a.MaxProvisionTime = time.Hour }},
	{"max-node-startup-time", "15m0s", "1h", func(a *core.Autoscale) { a.Readiness.StartupTime = time.Hour }},
	{"force-delete-unregistered-nodes", "false", "true", func(a *core.Autoscale) { a.ForceDeleteUnregistered = true }},
	{"initial-node-group-backoff-duration", "5m0s", "1s", func(a *core.Autoscale) { a.InitialBackoff = time.Second }},
	{"max-node-group-backoff-duration", "30m0s", "1h", func(a *core.Autoscale) { a.MaxBackoff = time.Hour }},
	{"node-group-backoff-reset-timeout", "3h0m0s", "1h", func(a *core.Autoscale) { a.BackoffReset = time.Hour }},
	{"scale-down-enabled", "true", "false", func(a *core.Autoscale) { a.DisableScaleDown = true }},
	{"scale-down-unneeded-time", "10m0s", "0s", func(a *core.Autoscale) { a.UnneededTime = 0 }},
	{"scale-down-unready-enabled", "true", "false", func(a *core.Autoscale) { a.Removal.KeepUnready = true }},
	{"scale-down-utilization-threshold", "0.5", "0.7", func(a *core.Autoscale) { a.Removal.UtilizationThreshold = 0.7 }},
	{"scale-down-gpu-utilization-threshold", "0.5", "0.7", func(a *core.Autoscale) { a.Removal.GPUUtilizationThreshold = 0.7 }},
	{"ignore-daemonsets-utilization", "false", "true", func(a *core.Autoscale) { a.Removal.IgnoreDaemonPods = true }},
	{"ignore-mirror-pods-utilization", "false", "true", func(a *core.Autoscale) { a.Removal.IgnoreMirrorPods = true }},
	{"skip-nodes-with-system-pods", "true", "false", func(a *core.Autoscale) { a.Removal.SkipSystemPods = false }},
	{"blocking-system-pod-distruption-timeout", "1h0m0s", "0s", func(a *core.Autoscale) { a.Removal.SystemPodTimeout = 0 }},
	{"skip-nodes-with-local-storage", "true", "false", func(a *core.Autoscale) { a.Removal.SkipLocalStorage = false }},
	{"skip-nodes-with-custom-controller-pods", "true", "false", func(a *core.Autoscale) { a.Removal.SkipCustomControllerPods = false }},
	{"min-replica-count", "0", "2", func(a *core.Autoscale) { a.Removal.MinReplicas = 2 }},
	{"unremovable-node-recheck-timeout", "5m0s", "0s", func(a *core.Autoscale) { a.Removal.RecheckAfter = 0 }},
	{"scale-down-simulation-timeout", "30s", "0s", func(a *core.Autoscale) { a.SimulationTimeout = 0 }},
	{"node-deletion-candidate-ttl", "0s", "1h", func(a *core.Autoscale) { a.CandidateTTL = time.Hour }},
	{"max-bulk-soft-taint-count", "10", "0", func(a *core.Autoscale) { a.MaxBulkSoftTaints = 0 }},
	{"max-bulk-soft-taint-time", "3s", "0s", func(a *core.Autoscale) { a.MaxBulkSoftTaintTime = 0 }},
	{"scale-down-delay-after-delete", "0s", "1m", func(a *core.Autoscale) { a.DelayAfterDelete = time.Minute }},
	{"scale-down-delay-type-local", "true", "false", func(a *core.Autoscale) { a.ClusterDelays = true }}, // false there
	{"max-empty-bulk-delete", "10", "1", func(a *core.Autoscale) { a.MaxScaleDown = 1 }},
	{"max-drain-parallelism", "1", "0", func(a *core.Autoscale) { a.MaxDrain = 0 }},
	{"cordon-node-before-terminating", "true", "false", func(a *core.Autoscale) { a.KeepSchedulable = true }},
	{"max-graceful-termination-sec", "600", "0", func(a *core.Autoscale) { a.MaxGracefulTermination = 0 }},
	{"drain-priority-config", "", "100:5,0:10", func(a *core.Autoscale) {
		a.DrainPriority = []autoscaler.DrainTier{{Priority: 0, Grace: 10 * time.Second}, {Priority: 100, Grace: 5 * time.Second}}
	}},
	{"daemonset-eviction-for-occupied-nodes", "true", "false", func(a *core.Autoscale) { a.KeepDaemonPods = true }},
	{"node-deletion-delay-timeout", "2m0s", "0s", func(a *core.Autoscale) { a.DeletionDelayTimeout = 0 }},
	{"node-deletion-batcher-interval", "0s", "1m", func(a *core.Autoscale) { a.DeletionBatchInterval = time.Minute }},
	{"consolidation", "false", "true", func(a *core.Autoscale) { a.Consolidation = true }},            // Berth's own
	{"consolidation-threshold", "0.5", "2", func(a *core.Autoscale) { a.ConsolidationThreshold = 2 }}, // Berth's own
	{"node-disruption-budget", "", "nodes=10%;reasons=empty;schedule=@daily;duration=8h", func(a *core.Autoscale) { // Berth's own
		a.NodeBudgets = []nodebudget.Budget{testkit.Must(nodebudget.Parse("nodes=10%;reasons=empty;schedule=@daily;duration=8h0m0s"))}
	}},
	{"keep-evicted-pod-homes", "true", "false", func(a *core.Autoscale) { a.NoHomes = true }},     // Berth's own
	{"evicted-pod-home-time", "5m0s", "1m", func(a *core.Autoscale) { a.HomeTime = time.Minute }}, // Berth's own
	{"node-interruption-marks", "aws-node-termination-handler/spot-itn=2m0s, aws-node-termination-handler/scheduled-maintenance, aws-node-termination-handler/asg-lifecycle-termination, cloud.google.com/impending-node-termination=30s, remediator.kubernetes.azure.com/unschedulable=30s, condition:PreemptionScheduled=30s", "example.com/going=1m,condition:Going", func(a *core.Autoscale) { // Berth's own
		a.Interruptions = []autoscaler.InterruptionMark{{Taint: "example.com/going", Warning: time.Minute}, {Condition: "Going"}}
	}},
	{"move-pending-resizes-after", "0s", "1m", func(a *core.Autoscale) { a.MoveResizesAfter = time.Minute }}, // Berth's own
	{"surge", "false", "true", func(a *core.Autoscale) { a.Removal.Surge = true }},                           // Berth's own
	{"scale-down-unready-time", "20m0s", "0s", func(a *core.Autoscale) { a.UnreadyTime = 0 }},
	{"scale-down-delay-after-add", "10m0s", "0s", func(a *core.Autoscale) { a.DelayAfterAdd = 0 }},
	{"scale-down-delay-after-failure", "3m0s", "0s", func(a *core.Autoscale) { a.DelayAfterFailure = 0 }},
	{"max-scale-down-parallelism", "10", "1", func(a *core.Autoscale) { a.MaxScaleDown = 1 }},
	{"node-delete-delay-after-taint", "5s", "0s", func(a *core.Autoscale) { a.DeleteDelayAfterTaint = 0 }},
	{"daemonset-eviction-for-empty-nodes", "false", "true", func(a *core.Autoscale) { a.EvictDaemonPods = true }},
	{"max-pod-eviction-time", "2m0s", "0s", func(a *core.Autoscale) { a.MaxPodEvictionTime = 0 }},
	{"namespace", "kube-system", "ns", func(*core.Autoscale) {}}, // TestWatchingFlags has what these set
	{"write-status-configmap", "true", "false", func(*core.Autoscale) {}},
	{"status-config-map-name", "cluster-autoscaler-status", "name", func(*core.Autoscale) {}},
	{"emit-per-nodegroup-metrics", "false", "true", func(*core.Autoscale) {}},
	{"max-inactivity", "10m0s", "1m", func(*core.Autoscale) {}},
	{"max-failing-time", "15m0s", "1m", func(*core.Autoscale) {}},
	{"max-startup-time", "20m0s", "1m", func(*core.Autoscale) {}},
}

// TestAutoscalerFlagsHaveClusterAutoscalersDefaults also checks that no flag is missing
// from the table.
func TestAutoscalerFlagsHaveClusterAutoscalersDefaults(t *testing.T) {
	var a Autoscaler
	fs := pflag.NewFlagSet("", pflag.ContinueOnError)
	a.Flags(func(string) *pflag.FlagSet { return fs })
	if !reflect.DeepEqual(a.Core, core.DefaultAutoscale()) {
		t.Errorf("without arguments the configuration is %+v, want %+v", a.Core, core.DefaultAutoscale())
	}
	var known []string
	for _, c := range autoscalerFlags {
		known = append(known, c.name)
		if f := fs.Lookup(c.name); f == nil || f.DefValue != c.byDefault {
			t.Errorf("--%s: got %+v, want a flag with the default %s", c.name, f, c.byDefault)
		}
	}
	fs.VisitAll(func(f *pflag.Flag) {
		if !slices.Contains(known, f.Name) {
			t.Errorf("--%s is in no row of the test", f.Name)
		}
	})
}

func TestEachAutoscalerFlagSetsItsField(t *testing.T) {
	for _, c := range autoscalerFlags {
		want := core.DefaultAutoscale()
		c.set(&want)
		got, err := ParseAutoscaler([]string{"--" + c.name + "=" + c.value})
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("--%s=%s: got %+v, %v, want %+v", c.name, c.value, got, err, want)
		}
	}
}

func TestOnlyAllowedSchedulersAreBypassed(t *testing.T) {
	_, err := ParseAutoscaler([]string{"--allowed-scheduler-names=a,b", "--bypassed-scheduler-names=b,c"})
	if want := `--bypassed-scheduler-names has "c", but --allowed-scheduler-names only a, b; add it there, too`; fmt.Sprint(err) != want {
		t.Errorf("got %v, want %s", err, want)
	}
	if _, err := ParseAutoscaler([]string{"--allowed-scheduler-names=a,b", "--bypassed-scheduler-names=b"}); err != nil {
		t.Error(err)
	}
}

// TestABooleanFlagNeedsNoValue has flags whose field means the opposite, and one whose
// field doesn't.
func TestABooleanFlagNeedsNoValue(t *testing.T) {
	got, err := ParseAutoscaler([]string{"--scale-down-enabled=false", "--scale-down-enabled", "--scale-down-unready-enabled=0", "--force-delete-unregistered-nodes",
		"--balance-similar-node-groups=false", "--balance-similar-node-groups"})
	want := core.DefaultAutoscale()
	want.Balancing.Mode = autoscaler.BalanceAlways
	want.Removal.KeepUnready, want.ForceDeleteUnregistered = true, true
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
}

// TestBalancingIsTurnedOffByAWord differs from saying nothing, which leaves it to the expander.
func TestBalancingIsTurnedOffByAWord(t *testing.T) {
	got, err := ParseAutoscaler([]string{"--balance-similar-node-groups=false"})
	if err != nil || got.Balancing.Mode != autoscaler.BalanceNever {
		t.Errorf("got mode %d, %v, want %d", got.Balancing.Mode, err, autoscaler.BalanceNever)
	}
}

// TestTheGRPCExpanderNeedsAServerAndItsCertificate gives both, or the first alone.
func TestTheGRPCExpanderNeedsAServerAndItsCertificate(t *testing.T) {
	args := []string{"--expander=grpc", "--grpc-expander-url=localhost:7000", "--grpc-expander-cert=cert.pem"}
	for _, c := range []struct {
		args []string
		want string
	}{
		{args, "<nil>"},
		{args[:2], `--grpc-expander-cert is ""; the expander grpc needs it`},
	} {
		var a Autoscaler
		fs := pflag.NewFlagSet("", pflag.ContinueOnError)
		a.Flags(func(string) *pflag.FlagSet { return fs })
		if err := fs.Parse(c.args); err != nil {
			t.Fatal(err)
		}
		if err := a.Validate(); fmt.Sprint(err) != c.want || a.GRPCExpander.URL != "localhost:7000" {
			t.Errorf("%v: got %v and the URL %q, want %s and localhost:7000", c.args, err, a.GRPCExpander.URL, c.want)
		}
	}
}

func TestAutoscalerFlagsAreRefusedByNameAndValue(t *testing.T) {
	for _, c := range []struct{ arg, want string }{
		{"--expander=price,magic", `--expander is "price,magic"; unknown expander "magic"; give one or more of random, most-pods, least-waste, least-nodes, price, priority, grpc, cost, separated by commas`},
		{"--expander=", `--expander is ""; unknown expander ""; give one or more of random, most-pods, least-waste, least-nodes, price, priority, grpc, cost, separated by commas`},
		{"--expander=price,price", `--expander is "price,price"; expander price is listed twice; list each expander once`},
		{"--expander=random,price", `--expander is "random,price"; expander price comes after random, which leaves only one option; list random last`},
		{"--expander=priority,grpc", `--grpc-expander-url is ""; the expander grpc needs it`},

		{"--balance-similar-node-groups=zonal", `invalid argument "zonal" for "--balance-similar-node-groups" flag: it must be true or false`},
		{"--memory-difference-ratio=-0.1", "--memory-difference-ratio is -0.1; it must be a ratio, from 0 to 1"},
		{"--max-free-difference-ratio=5", "--max-free-difference-ratio is 5; it must be a ratio, from 0 to 1"},
		{"--max-allocatable-difference-ratio=NaN", "--max-allocatable-difference-ratio is NaN; it must be a ratio, from 0 to 1"},
		{"--max-free-difference-ratio=5%", `invalid argument "5%" for "--max-free-difference-ratio" flag: strconv.ParseFloat: parsing "5%": invalid syntax`},

		{"--scan-interval=0s", "--scan-interval is 0s; it must be greater than 0"},
		{"--scan-interval=-1s", "--scan-interval is -1s; it must not be negative"},
		{"--max-binpacking-time=0s", "--max-binpacking-time is 0s; it must be greater than 0"},
		{"--max-nodegroup-binpacking-duration=-1s", "--max-nodegroup-binpacking-duration is -1s; it must not be negative"},
		{"--max-node-provision-time=0s", "--max-node-provision-time is 0s; it must be greater than 0"},
		{"--max-node-startup-time=0s", "--max-node-startup-time is 0s; it must be greater than 0"},
		{"--initial-node-group-backoff-duration=0s", "--initial-node-group-backoff-duration is 0s; it must be greater than 0"},
		{"--max-node-group-backoff-duration=0s", "--max-node-group-backoff-duration is 0s; it must be greater than 0"},
		{"--node-group-backoff-reset-timeout=0s", "--node-group-backoff-reset-timeout is 0s; it must be greater than 0"},

		{"--cores-total=5", `invalid argument "5" for "--cores-total" flag: "5" must be MIN:MAX, two whole numbers from 0 to 1073741824, MIN not above MAX, such as 0:1000`},
		{"--memory-total=9:8", `invalid argument "9:8" for "--memory-total" flag: "9:8" must be MIN:MAX, two whole numbers from 0 to 1073741824, MIN not above MAX, such as 0:1000`},
		{"--cores-total=-1:8", `invalid argument "-1:8" for "--cores-total" flag: "-1:8" must be MIN:MAX, two whole numbers from 0 to 1073741824, MIN not above MAX, such as 0:1000`},
		{"--memory-total=0:1073741825", `invalid argument "0:1073741825" for "--memory-total" flag: "0:1073741825" must be MIN:MAX, two whole numbers from 0 to 1073741824, MIN not above MAX, such as 0:1000`},
		{"--gpu-total=T4:0:8", `invalid argument "T4:0:8" for "--gpu-total" flag: "T4:0:8" must be RESOURCE:MIN:MAX, such as nvidia.com/gpu:0:64`},
		{"--max-total-unready-percentage=101", "--max-total-unready-percentage is 101; it must be a percentage, from 0 to 100"},
		{"--ok-total-unready-count=-1", "--ok-total-unready-count is -1; it must be at least 0"},
		{"--new-pod-scale-up-delay=-1s", "--new-pod-scale-up-delay is -1s; it must not be negative"},

		{"--scale-down-unneeded-time=-1m", "--scale-down-unneeded-time is -1m0s; it must not be negative"},
		{"--scale-down-unready-time=-1m", "--scale-down-unready-time is -1m0s; it must not be negative"},
		{"--scale-down-delay-after-add=-1m", "--scale-down-delay-after-add is -1m0s; it must not be negative"},
		{"--scale-down-delay-after-failure=-1m", "--scale-down-delay-after-failure is -1m0s; it must not be negative"},
		{"--node-delete-delay-after-taint=-1s", "--node-delete-delay-after-taint is -1s; it must not be negative"},
		{"--max-pod-eviction-time=-1s", "--max-pod-eviction-time is -1s; it must not be negative"},

		{"--max-nodes-total=-1", "--max-nodes-total is -1; it must be at least 0"},
		{"--max-nodes-per-scaleup=-1", "--max-nodes-per-scaleup is -1; it must be at least 0"},
		{"--max-nodes-launching=-1", `invalid argument "-1" for "--max-nodes-launching" flag: it must be a number of nodes of at least 0, or adaptive`},
		{"--max-nodes-launching-per-group=many", `invalid argument "many" for "--max-nodes-launching-per-group" flag: it must be a number of nodes of at least 0, or adaptive`},
		{"--max-scale-down-parallelism=0", "--max-scale-down-parallelism is 0; it must be at least 1 (--scale-down-enabled=false disables scale-down)"},

		{"--consolidation-threshold=-1", "--consolidation-threshold is -1; it must not be negative"},
		{"--node-disruption-budget=10%", `invalid argument "10%" for "--node-disruption-budget" flag: unknown key "10%"; the keys are nodes, reasons, schedule and duration, as in nodes=10%, separated by semicolons`},
		{"--node-disruption-budget=reasons=empty", `invalid argument "reasons=empty" for "--node-disruption-budget" flag: the number of nodes is missing; add nodes=5 or nodes=10%`},

		{"--scale-down-enabled=perhaps", `invalid argument "perhaps" for "--scale-down-enabled" flag: strconv.ParseBool: parsing "perhaps": invalid syntax`},
		{"--scan-interval=10", `invalid argument "10" for "--scan-interval" flag: time: missing unit in duration "10"`},
		{"--max-nodes=3", "unknown flag: --max-nodes"},
		{"max-nodes-total=3", "argument max-nodes-total=3 is not a flag; flags are given as --name=value"},
	} {
		if _, err := ParseAutoscaler([]string{c.arg}); err == nil || err.Error() != c.want {
			t.Errorf("%s:\n got %v\nwant %s", c.arg, err, c.want)
		}
	}
}
