package config

import (
	"strings"
	"testing"
	"time"

	"github.com/berthproject/berth/core/compat"
	"github.com/berthproject/berth/core/framework"
	"github.com/berthproject/berth/core/plugins/dynamicresources"
	"github.com/berthproject/berth/core/plugins/noderesources"
	"github.com/berthproject/berth/core/weighing"
)

// This file specifies what of a KubeSchedulerConfiguration is read, and what is refused with
// which message. That profiles mean the same as in kube-scheduler is for the oracle in
// devcluster/.

// head begins every configuration.
const head = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"

func TestParseReadsWhatBerthHonours(t *testing.T) {
	got, err := Parse([]byte(head+`
parallelism: 32
percentageOfNodesToScore: 50
podMaxBackoffSeconds: 20
clientConnection: {qps: 300, burst: 600}
leaderElection: {leaderElect: false, leaseDuration: 30s}
profiles:
- schedulerName: packing
  pluginConfig:
  - name: NodeResourcesFit
    args:
      apiVersion: kubescheduler.config.k8s.io/v1
      kind: NodeResourcesFitArgs
      ignoredResourceGroups: [example.com]
      scoringStrategy:
        type: MostAllocated
        resources: [{name: cpu, weight: 3}, {name: nvidia.com/gpu}]
`), compat.Newest)
	if err != nil {
		t.Fatal(err)
	}
	fit := got.Profiles[0].Fit
	if got.Profiles[0].SchedulerName != "packing" || fit.Strategy != noderesources.MostAllocated ||
		len(fit.Resources) != 2 || fit.Resources[0].Weight != 3 || fit.Resources[1].Weight != 1 {
		t.Errorf("got the profile %+v, want packing, MostAllocated, with cpu of weight 3 and a GPU of weight 1", got.Profiles[0])
	}
	if got.BindQPS != 300 || got.BindBurst != 600 || got.Queue.MaxBackoff != 20*time.Second || got.LeaderElection.Enabled || got.LeaderElection.LeaseDuration != 30*time.Second {
		t.Errorf("got %+v, want what the file says", got)
	}
}

// refused is the text of a configuration, and a part of the error that it is refused with.
type refused struct{ in, want string }

func (c refused) check(t *testing.T) {
	t.Helper()
	if _, err := Parse([]byte(c.in), compat.Newest); err == nil || !strings.Contains(err.Error(), c.want) {
		t.Errorf("%q:\n got %v\nwant …%s…", c.in, err, c.want)
	}
}

// inProfile returns a configuration with one profile.
func inProfile(text string) string { return head + "profiles: [{" + text + "}]\n" }

// withArgs returns a configuration with arguments of one plugin.
func withArgs(plugin, args string) string {
	return inProfile("pluginConfig: [{name: " + plugin + ", args: {" + args + "}}]")
}

func TestParseRefusesWithFieldAndRemedy(t *testing.T) {
	for _, c := range []refused{
		{"kind: Pod\n", `kind "Pod"; they must be`},
		{head + "nonsense: 1\n", `unknown field "nonsense"`},
		{head + "parallelism: 0\n", "parallelism: Invalid value: 0: should be an integer value greater than zero"},
		{head + "percentageOfNodesToScore: 101\n", "percentageOfNodesToScore: Invalid value: 101: not in valid range [0-100]"},
		{head + "podInitialBackoffSeconds: 0\n", "podInitialBackoffSeconds: Invalid value: 0: must be greater than 0"},
		{head + "podMaxBackoffSeconds: 9223336854775807\n", "podMaxBackoffSeconds: Invalid value: 9223336854775807: must be greater than 0 and at most 9223372036"},
		{head + "podInitialBackoffSeconds: -9223336854775807\n", "podInitialBackoffSeconds: Invalid value: -9223336854775807: must be greater than 0 and at most 9223372036"},
		{head + "podMaxBackoffSeconds: 0\n", "podMaxBackoffSeconds: Invalid value: 0: must be greater than or equal to PodInitialBackoffSeconds"},
		{head + "leaderElection: {leaseDuration: 5s}\n", "leaderElection.leaseDuration: Invalid value"},
		{head + "leaderElection: {resourceLock: endpoints}\n", `resourceLock value must be "leases"`},
		{head + "clientConnection: {burst: -1}\n", "clientConnection.burst: Invalid value: -1"},
	} {
		c.check(t)
	}
}

func TestParseRefusesProfiles(t *testing.T) {
	for _, c := range []refused{
		{head + "profiles: [{schedulerName: a},{schedulerName: a}]\n", `profiles[1].schedulerName: Duplicate value`},
		{head + "profiles: [{schedulerName: a},{}]\n", `profiles[1].schedulerName: Required value`},
		{head + "profiles: [{schedulerName: a},{schedulerName: b, plugins: {queueSort: {disabled: [{name: x}]}}}]\n", `profiles[1].plugins.queueSort: Invalid value: "": must be the same for all profiles`},
		{inProfile("plugins: {score: {enabled: [{name: Mine}]}}"), `profiles[0].plugins.score.enabled[0].name: Unsupported value: "Mine": supported values: "DefaultBinder"`},
		{inProfile("plugins: {filter: {enabled: [{name: EBSLimits}]}}"), `profiles[0].plugins.filter.enabled[0]: Invalid value: "EBSLimits": was invalid in version`},
		{inProfile("plugins: {filter: {enabled: [{name: ImageLocality}]}}"), `plugin "ImageLocality" does not extend filter plugin; its points are score`},
		{inProfile("plugins: {multiPoint: {enabled: [{name: NodePorts}, {name: NodePorts}]}}"), `profiles[0].plugins.multiPoint.enabled[1]: Duplicate value: "NodePorts"`},
		{inProfile("plugins: {score: {disabled: [{name: Mine}]}}"), `profiles[0].plugins.score.disabled[0].name: Unsupported value: "Mine"`},
		{inProfile("plugins: {score: {enabled: [{name: ImageLocality, weight: -3}]}}"), `profiles[0].plugins.score.enabled[0].weight: Invalid value: -3: not in valid range`},
		{inProfile("plugins: {score: {enabled: [{name: ImageLocality, weight: 80000}, {name: TaintToleration, weight: 80000}]}}"), `profiles[0].plugins.score: Invalid value: `},
		{inProfile("plugins: {multiPoint: {disabled: [{name: '*'}]}}"), `only one queue sort plugin required for profile with scheduler name "default-scheduler", but got 0`},
		{inProfile("plugins: {bind: {disabled: [{name: DefaultBinder}]}}"), `profiles[0].plugins.bind: Required value: at least one bind plugin is needed`},
		{inProfile("plugins: {preFilter: {disabled: [{name: NodePorts}]}}"), `profiles[0].plugins.preFilter: Forbidden: NodePorts is enabled at filter and disabled at preFilter; enable or disable it at both`},
		{inProfile("plugins: {preBind: {disabled: [{name: VolumeBinding}]}}"), `enable or disable it at all three`},
	} {
		c.check(t)
	}
}

func TestParseRefusesArgumentsOfPlugins(t *testing.T) {
	for _, c := range []refused{
		{withArgs("Other", ""), `profiles[0].pluginConfig[0].name: Unsupported value: "Other"`},
		{withArgs("NodePorts", "x: 1"), `profiles[0].pluginConfig[0].args: Forbidden: NodePorts has no arguments; remove them`},
		{inProfile("pluginConfig: [{name: NodeAffinity}, {name: NodeAffinity}]"), `profiles[0].pluginConfig[1]: Duplicate value: "NodeAffinity"`},
		{withArgs("NodeResourcesFit", "scoringStrategy: {type: Best}"), `args.scoringStrategy.type: Unsupported value: "Best": supported values: "LeastAllocated", "MostAllocated", "RequestedToCapacityRatio"`},
		{withArgs("NodeResourcesFit", "strategy: {}"), `has to match plugin args: json: unknown field "strategy"`},
		{withArgs("NodeResourcesFit", "ignoredResourceGroups: [a/b]"), `args.ignoredResourceGroups[0]: Invalid value: "a/b": resource group name can't contain '/'`},
		{withArgs("NodeResourcesFit", "ignoredResources: ['-']"), `args.ignoredResources[0]: Invalid value: "-"`},
		{withArgs("NodeResourcesFit", "scoringStrategy: {type: LeastAllocated, resources: [{name: cpu, weight: 101}]}"), "resource weight of cpu not in valid range (0, 100]"},
		{withArgs("NodeResourcesFit", "scoringStrategy: {type: LeastAllocated, requestedToCapacityRatio: {}}"), "must be nil when type is not RequestedToCapacityRatio"},
		{withArgs("NodeResourcesFit", "scoringStrategy: {type: RequestedToCapacityRatio}"), "must be specified when type is RequestedToCapacityRatio"},
		{withArgs("NodeResourcesFit", "scoringStrategy: {type: RequestedToCapacityRatio, requestedToCapacityRatio: {shape: []}}"), "at least one point must be specified"},
		{withArgs("NodeResourcesFit", "scoringStrategy: {type: RequestedToCapacityRatio, requestedToCapacityRatio: {shape: [{utilization: 9, score: 1}, {utilization: 9, score: 11}]}}"), "values must be sorted in increasing order"},
		{withArgs("NodeResourcesFit", "scoringStrategy: {type: RequestedToCapacityRatio, requestedToCapacityRatio: {shape: [{utilization: 101, score: 11}]}}"), "score: Invalid value: 11: not in valid range [0, 10]"},
		{withArgs("NodeResourcesBalancedAllocation", "resources: [{name: cpu, weight: 2}, {name: cpu}]"), "must be 1"},
		{withArgs("NodeResourcesBalancedAllocation", "resources: [{name: cpu}, {name: cpu}]"), `args.resources[1].name: Duplicate value: "cpu"`},
		{withArgs("PodTopologySpread", "defaultingType: Mine"), `args.defaultingType: Unsupported value: "Mine": supported values: "System", "List"`},
		{withArgs("PodTopologySpread", "defaultConstraints: [{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: DoNotSchedule}]"), "when .defaultConstraints are not empty"},
		{withArgs("PodTopologySpread", "defaultingType: List, defaultConstraints: [{maxSkew: 0, topologyKey: '', whenUnsatisfiable: Perhaps, labelSelector: {}}]"), "args.defaultConstraints[0].maxSkew: Invalid value: 0: not in valid range (0, inf)"},
		{withArgs("PodTopologySpread", "defaultingType: List, defaultConstraints: [{maxSkew: 1, topologyKey: z, whenUnsatisfiable: DoNotSchedule}, {maxSkew: 2, topologyKey: z, whenUnsatisfiable: DoNotSchedule}]"), `Duplicate value: "{z, DoNotSchedule}"`},
		{withArgs("InterPodAffinity", "hardPodAffinityWeight: 101"), "args.hardPodAffinityWeight: Invalid value: 101: not in valid range [0, 100]"},
		{withArgs("NodeAffinity", "addedAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: k, operator: Maybe}]}]}}"), "args.addedAffinity.requiredDuringSchedulingIgnoredDuringExecution"},
		{withArgs("VolumeBinding", "bindTimeoutSeconds: -1"), "should not be a negative value"},
		{withArgs("VolumeBinding", "shape: [{utilization: 9, score: 1}, {utilization: 9, score: 11}]"), "args.shape[1].utilization: Invalid value: 9: values must be sorted in increasing order"},
		{withArgs("VolumeBinding", "shape: [{utilization: 9, score: 11}]"), "args.shape[0].score: Invalid value: 11: not in valid range [0, 10]"},
		{withArgs("DefaultPreemption", "minCandidateNodesPercentage: 0, minCandidateNodesAbsolute: 0"), "cannot be zero at the same time as minCandidateNodesAbsolute"},
	} {
		c.check(t)
	}
}

func TestParseRefusesExtenders(t *testing.T) {
	for _, c := range []refused{
		{head + "extenders: [{urlPrefix: 'extender:80'}]\n", `extenders[0].urlPrefix: Invalid value: "extender:80": must be an http or https address`},
		{head + "extenders: [{urlPrefix: 'http://x', prioritizeVerb: p}]\n", "extenders[0].weight: Invalid value: 0: must have a positive weight applied to it"},
		{head + "extenders: [{urlPrefix: 'http://x', prioritizeVerb: p, weight: 46116860184273879}, {urlPrefix: 'http://y', prioritizeVerb: p, weight: 1}]\n", "extenders[1].weight: Invalid value: 1: the total score could overflow; the weights of extenders may add up to 46116860184273879"},
		{head + "extenders: [{urlPrefix: 'http://x', bindVerb: b}, {urlPrefix: 'http://y', bindVerb: b}]\n", "only one extender can implement bind"},
		{head + "extenders: [{urlPrefix: 'http://x', managedResources: [{name: cpu}]}]\n", "extenders[0].managedResources[0].name: Invalid value: \"cpu\": is an invalid extended resource name"},
		{head + "extenders: [{urlPrefix: 'http://x', managedResources: [{name: a.b/c}, {name: a.b/c}]}]\n", "duplicate extender managed resource name"},
	} {
		c.check(t)
	}
}

func TestProfilesWithOneQueueSortAgree(t *testing.T) {
	for _, text := range []string{
		"profiles: [{schedulerName: a, plugins: {score: {disabled: [{name: ImageLocality}]}}}, {schedulerName: b}]\n",
		"profiles: [{schedulerName: a, plugins: {queueSort: {enabled: [{name: PrioritySort, weight: 1}]}}}, {schedulerName: b, plugins: {queueSort: {enabled: [{name: PrioritySort, weight: 1}]}}}]\n",
	} {
		if _, err := Parse([]byte(head+text), compat.Newest); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestParseReportsAllErrorsAtOnce(t *testing.T) {
	_, err := Parse([]byte(head+"parallelism: -1\npodInitialBackoffSeconds: 0\nprofiles: [{schedulerName: a},{schedulerName: a}]\n"), compat.Newest)
	for _, want := range []string{"parallelism", "podInitialBackoffSeconds", "profiles[1]"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want …%s…", err, want)
		}
	}
}

func TestDevicePreemptionIsReadPerProfile(t *testing.T) {
	got, err := Parse([]byte(head+`
profiles:
- schedulerName: default-scheduler
- schedulerName: batch
  pluginConfig:
  - name: DevicePreemption
    args: {enabled: true}
`), compat.Newest)
	if err != nil {
		t.Fatal(err)
	}
	if got.Profiles[0].DevicePreemption || !got.Profiles[1].DevicePreemption {
		t.Errorf("preemption for devices is %t and %t, want false and true", got.Profiles[0].DevicePreemption, got.Profiles[1].DevicePreemption)
	}
	for _, c := range []refused{
		{withArgs(DevicePreemption, "preempt: true"), `unknown field "preempt"`},
		{withArgs("DynamicResources", "preemption: true"), `unknown field "preemption"`},
		{inProfile("plugins: {postFilter: {disabled: [{name: DefaultPreemption}]}}, pluginConfig: [{name: DevicePreemption, args: {enabled: true}}]"), "no pod of the profile preempts"},
	} {
		c.check(t)
	}
}

func TestDeviceScoringIsReadPerProfile(t *testing.T) {
	got, err := Parse([]byte(head+`
profiles:
- schedulerName: default-scheduler
- schedulerName: gpus
  pluginConfig:
  - name: DeviceScoring
    args: {strategy: LeastFragmentation}
`), compat.Newest)
	if err != nil {
		t.Fatal(err)
	}
	if a, b := got.Profiles[0].DeviceStrategy, got.Profiles[1].DeviceStrategy; a != dynamicresources.AsPublished || b != dynamicresources.LeastFragmentation {
		t.Errorf("got %q and %q, want the strategy in the second profile only", a, b)
	}
	for _, c := range []refused{
		{withArgs(DeviceScoring, "strategy: MostAllocated"), `profiles[0].pluginConfig[0].args.strategy: Unsupported value: "MostAllocated": supported values: "LeastFragmentation"`},
		{withArgs(DeviceScoring, ""), "strategy: Unsupported value"},
		{withArgs(DeviceScoring, "stratgy: LeastFragmentation"), `unknown field "stratgy"`},
		{inProfile("plugins: {score: {disabled: [{name: DynamicResources}]}, preScore: {disabled: [{name: DynamicResources}]}}, pluginConfig: [{name: DeviceScoring, args: {strategy: LeastFragmentation}}]"), "does not score by DynamicResources"},
		{inProfile("plugins: {score: {enabled: [{name: DeviceScoring}]}}"), "DeviceScoring"},
	} {
		c.check(t)
	}
}

func TestPreemptOrBuyIsReadPerProfile(t *testing.T) {
	got, err := Parse([]byte(head+`
profiles:
- schedulerName: default-scheduler
- schedulerName: batch
  pluginConfig:
  - name: DefaultPreemption
    args: {minCandidateNodesPercentage: 20}
  - name: PreemptOrBuy
    args: {policy: cheapest, maxWait: 90s, costs: {perVictim: 0.5}}
`), compat.Newest)
	if err != nil {
		t.Fatal(err)
	}
	want := weighing.Default()
	want.Policy, want.MaxWait, want.Costs.PerVictim = weighing.Cheapest, 90*time.Second, 0.5
	if got.Profiles[0].Weighing != nil || got.Profiles[1].Weighing == nil || *got.Profiles[1].Weighing != want {
		t.Errorf("got %+v and %+v, want the defaults and %+v", got.Profiles[0].Weighing, got.Profiles[1].Weighing, want)
	}
	for _, c := range []refused{
		{withArgs(PreemptOrBuy, "policy: buy"), `profiles[0].pluginConfig[0].args.policy: Unsupported value: "buy": supported values: "preempt-first", "buy-first", "cheapest"`},
		{withArgs(PreemptOrBuy, "maxWait: 0s"), "pluginConfig[0].args.maxWait: Invalid value: \"0s\": must be greater than 0"},
		{withArgs(PreemptOrBuy, "launchTimes: 0.5"), "pluginConfig[0].args.launchTimes: Invalid value: 0.5: must be from 1 to 1000"},
		{withArgs(PreemptOrBuy, "costs: {perVictim: -1}"), "pluginConfig[0].args.costs.perVictim: Invalid value: -1: must be from 0 to 1000000"},
		{withArgs(PreemptOrBuy, "polcy: cheapest"), `unknown field "polcy"`},
		{withArgs("DefaultPreemption", "policy: cheapest"), `unknown field "policy"`},
		{inProfile("plugins: {postFilter: {disabled: [{name: DefaultPreemption}]}}, pluginConfig: [{name: PreemptOrBuy, args: {}}]"), "no pod of the profile preempts"},
		{inProfile("plugins: {postFilter: {enabled: [{name: PreemptOrBuy}]}}"), "PreemptOrBuy"},
	} {
		c.check(t)
	}
}

func TestGangRoomIsReadPerProfile(t *testing.T) {
	got, err := Parse([]byte(head+`
profiles:
- schedulerName: default-scheduler
- schedulerName: batch
  pluginConfig: [{name: GangRoom, args: {after: 10m}}]
- schedulerName: short
  pluginConfig: [{name: GangRoom, args: {after: 1m, for: 30m}}]
`), compat.Newest)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []framework.KeepRoom{{}, {After: 10 * time.Minute, For: time.Hour}, {After: time.Minute, For: 30 * time.Minute}} {
		if got.Profiles[i].KeepRoom != want {
			t.Errorf("profile %d: got %v, want %v", i, got.Profiles[i].KeepRoom, want)
		}
	}
	for _, c := range []refused{
		{withArgs(GangRoom, ""), `args.after: Invalid value: "0s": must be 1s or more; remove the entry to keep no room`},
		{withArgs(GangRoom, "after: 1m, for: 0s"), `args.for: Invalid value: "0s": must be 1s or more`},
		{withArgs(GangRoom, "aftr: 1m"), `unknown field "aftr"`},
		{inProfile("plugins: {permit: {enabled: [{name: GangRoom}]}}"), "GangRoom"},
	} {
		c.check(t)
	}
}
