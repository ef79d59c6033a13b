package conformance_test

import (
	"maps"
	"testing"

	"pgregory.net/rapid"

	"github.com/berthproject/berth/config"
	"github.com/berthproject/berth/core/compat"
)

// This file compares Berth with kube-scheduler under configurations other than the
// default. What must hold: a file that one of them refuses the other refuses, too, and
// under one that both take their answers are equal.

const head = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"

// configurations are profiles that change which plugins are enabled, with which weights
// and arguments.
var configurations = map[string]string{
	"without a profile": "",
	"weights": `
profiles:
- plugins:
    score:
      enabled: [{name: TaintToleration, weight: 7}, {name: ImageLocality, weight: 20}]
    multiPoint:
      enabled: [{name: PodTopologySpread, weight: 9}, {name: InterPodAffinity}]
`,
	"some score plugins disabled": `
profiles:
- plugins:
    preScore: {disabled: [{name: TaintToleration}, {name: InterPodAffinity}]}
    score: {disabled: [{name: TaintToleration}, {name: InterPodAffinity}]}
`,
	"score plugins chosen": `
profiles:
- plugins:
    preScore:
      disabled: [{name: '*'}]
      enabled: [{name: NodeResourcesFit}, {name: PodTopologySpread}]
    score:
      disabled: [{name: '*'}]
      enabled: [{name: NodeResourcesFit, weight: 3}, {name: PodTopologySpread}]
`,
	"filters disabled": `
profiles:
- plugins:
    preFilter: {disabled: [{name: NodeResourcesFit}, {name: InterPodAffinity}, {name: PodTopologySpread}, {name: NodeVolumeLimits}]}
    filter: {disabled: [{name: NodeResourcesFit}, {name: InterPodAffinity}, {name: PodTopologySpread}, {name: TaintToleration}, {name: NodeVolumeLimits}]}
`,
	"filters in another order": `
profiles:
- plugins:
    preFilter: {enabled: [{name: PodTopologySpread}, {name: InterPodAffinity}]}
    filter: {enabled: [{name: PodTopologySpread}, {name: InterPodAffinity}, {name: NodeResourcesFit}]}
`,
	"plugins disabled altogether": `
profiles:
- plugins:
    multiPoint: {disabled: [{name: NodeUnschedulable}, {name: VolumeZone}, {name: ImageLocality}, {name: NodeDeclaredFeatures}]}
`,
	"everything named": `
profiles:
- plugins:
    multiPoint:
      disabled: [{name: '*'}]
      enabled: [{name: PrioritySort}, {name: DefaultBinder}, {name: NodeResourcesFit, weight: 2}, {name: NodeAffinity}, {name: InterPodAffinity, weight: 4}]
`,
	"packing": `
profiles:
- schedulerName: packing
  pluginConfig:
  - name: NodeResourcesFit
    args: {scoringStrategy: {type: MostAllocated, resources: [{name: cpu, weight: 3}, {name: example.com/gpu}]}, ignoredResourceGroups: [example.com]}
  - name: NodeResourcesBalancedAllocation
    args: {resources: [{name: cpu}, {name: memory}, {name: example.com/gpu}]}
`,
	"a shape": `
profiles:
- pluginConfig:
  - name: NodeResourcesFit
    args: {scoringStrategy: {type: RequestedToCapacityRatio, requestedToCapacityRatio: {shape: [{utilization: 0, score: 2}, {utilization: 40, score: 10}, {utilization: 100, score: 0}]}}}
`,
	"volumes don't score": `
profiles:
- plugins:
    score: {disabled: [{name: VolumeBinding}]}
`,
	"a list of default constraints": `
profiles:
- pluginConfig:
  - name: PodTopologySpread
    args:
      defaultingType: List
      defaultConstraints:
      - {maxSkew: 1, topologyKey: topology.kubernetes.io/zone, whenUnsatisfiable: DoNotSchedule}
      - {maxSkew: 2, topologyKey: kubernetes.io/hostname, whenUnsatisfiable: ScheduleAnyway}
`,
	"no default constraints": `
profiles:
- pluginConfig:
  - {name: PodTopologySpread, args: {defaultingType: List}}
`,
	"added affinity": `
profiles:
- pluginConfig:
  - name: NodeAffinity
    args:
      addedAffinity:
        requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: topology.kubernetes.io/zone, operator: In, values: [a, b]}]}]}
        preferredDuringSchedulingIgnoredDuringExecution: [{weight: 30, preference: {matchExpressions: [{key: disk, operator: Exists}]}}]
`,
	"hard affinity weighs": `
profiles:
- pluginConfig:
  - {name: InterPodAffinity, args: {hardPodAffinityWeight: 60}}
`,
	"preferences of others ignored": `
profiles:
- pluginConfig:
  - {name: InterPodAffinity, args: {hardPodAffinityWeight: 0, ignorePreferredTermsOfExistingPods: true}}
`,
}

// withShape is a configuration that kube-scheduler has read since 1.37.
const withShape = `
profiles:
- plugins:
    score: {enabled: [{name: VolumeBinding, weight: 5}]}
  pluginConfig:
  - name: VolumeBinding
    args: {shape: [{utilization: 10, score: 1}, {utilization: 50, score: 10}, {utilization: 90, score: 3}]}
`

// withoutPreFilters is a configuration in which plugins have no preFilter that they got in 1.37.
const withoutPreFilters = `
profiles:
- plugins:
    preFilter: {disabled: [{name: TaintToleration}, {name: NodeUnschedulable}]}
`

// configurationsOf returns the configurations that both read in a version.
func configurationsOf(v compat.Version) map[string]string {
	out := maps.Clone(configurations)
	out["preFilters of 1.37 disabled"] = withoutPreFilters
	if v >= compat.V37 {
		out["a shape of storage"] = withShape
	}
	return out
}

// inProfile is a file with one profile of these fields.
func inProfile(fields string) string { return "profiles: [{" + fields + "}]\n" }

// withArgs is a file with the arguments of a plugin.
func withArgs(plugin, args string) string {
	return inProfile("pluginConfig: [{name: " + plugin + ", args: {" + args + "}}]")
}

// ofVersions are files that the versions may read in different ways, with whether each takes it. They are
// those of config's TestFilesOfVersions, which has Berth's messages.
var ofVersions = []struct {
	text       string
	in36, in37 bool
}{
	{inProfile("plugins: {podGroupPostFilter: {enabled: [{name: DefaultPreemption}]}}"), false, true},
	{inProfile("plugins: {podGroupPostFilter: {disabled: [{name: DynamicResources}]}}"), false, true},
	{inProfile("plugins: {podGroupPostFilter: {}}"), false, true},
	{inProfile("plugins: {podGroupPostFilter: {enabled: [{name: NodeName}]}}"), false, false},
	{inProfile("plugins: {preFilter: {enabled: [{name: NodeName}]}}"), false, true},
	{inProfile("plugins: {preFilter: {enabled: [{name: NodeUnschedulable}, {name: TaintToleration}]}}"), false, true},
	{inProfile("plugins: {preFilter: {disabled: [{name: TaintToleration}]}}"), true, true},
	{inProfile("plugins: {preFilter: {disabled: [{name: NodeUnschedulable}]}}"), true, true},
	{inProfile("plugins: {preFilter: {disabled: [{name: NodeName}]}}"), true, true},
	{withArgs("DynamicResources", "filterTimeout: 0s, bindingTimeout: 1s"), true, true},
	{withArgs("DynamicResources", "filterTimeout: -1s"), false, false},
	{withArgs("DynamicResources", "bindingTimeout: 999ms"), false, false},
}

// filesOf returns the files of ofVersions that a version takes, or those that it refuses.
func filesOf(v compat.Version, taken bool) (out []string) {
	for _, f := range ofVersions {
		if is := f.in37 && v >= compat.V37 || f.in36 && v < compat.V37; is == taken {
			out = append(out, f.text)
		}
	}
	return out
}

// refusedBy returns the files that both refuse in one version, and may take in another.
func refusedBy(v compat.Version) []string {
	out := filesOf(v, false)
	if v < compat.V37 {
		return append(out, withShape)
	}
	return append(out,
		"profiles: [{pluginConfig: [{name: VolumeBinding, args: {shape: [{utilization: 1, score: 11}]}}]}]\n",
		"profiles: [{pluginConfig: [{name: VolumeBinding, args: {shape: [{utilization: 50, score: 1}, {utilization: 50, score: 2}]}}]}]\n",
	)
}

// TestPropertyConfigurations: when kube-scheduler and Berth read the same file, their
// answers are equal.
func TestPropertyConfigurations(t *testing.T) {
	eachVersion(t, func(t *testing.T, v compat.Version) {
		for name, text := range configurationsOf(v) {
			t.Run(name, func(t *testing.T) {
				upstream, err := peerOf(t, v, head+text)
				if err != nil {
					t.Fatalf("kube-scheduler refuses the file: %v", err)
				}
				cfg, err := config.Parse([]byte(head+text), v)
				if err != nil {
					t.Fatalf("Berth refuses the file: %v", err)
				}
				seen := map[string]int{}
				rapid.Check(t, func(rt *rapid.T) { compare(rt, upstream, cfg.Profiles[0], seen) })
			})
		}
	})
}

// TestRefusedFiles: both refuse each of these files, and take each of those that the version takes.
func TestRefusedFiles(t *testing.T) {
	eachVersion(t, func(t *testing.T, v compat.Version) {
		for _, text := range append(refusedBy(v), []string{
			"nonsense: 1\n",
			"parallelism: -1\n",
			"profiles: [{schedulerName: a},{schedulerName: a}]\n",
			"profiles: [{schedulerName: a},{}]\n",
			"profiles: [{plugins: {score: {enabled: [{name: Mine}]}}}]\n",
			"profiles: [{plugins: {filter: {enabled: [{name: ImageLocality}]}}}]\n",
			"profiles: [{plugins: {multiPoint: {disabled: [{name: '*'}]}}}]\n",
			"profiles: [{plugins: {bind: {disabled: [{name: DefaultBinder}]}}}]\n",
			"profiles: [{pluginConfig: [{name: InterPodAffinity, args: {hardPodAffinityWeight: -1}}]}]\n",
			"profiles: [{pluginConfig: [{name: PodTopologySpread, args: {defaultConstraints: [{maxSkew: 1, topologyKey: z, whenUnsatisfiable: DoNotSchedule}]}}]}]\n",
			"extenders: [{urlPrefix: 'http://x', prioritizeVerb: p}]\n",
		}...) {
			if _, err := peerOf(t, v, head+text); err == nil {
				t.Errorf("kube-scheduler takes %q", text)
			}
			if _, err := config.Parse([]byte(head+text), v); err == nil {
				t.Errorf("Berth takes %q", text)
			}
		}
		for _, text := range filesOf(v, true) {
			if _, err := peerOf(t, v, head+text); err != nil {
				t.Errorf("kube-scheduler refuses %q: %v", text, err)
			}
			if _, err := config.Parse([]byte(head+text), v); err != nil {
				t.Errorf("Berth refuses %q: %v", text, err)
			}
		}
	})
}
