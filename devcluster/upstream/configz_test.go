package upstream

import (
	"encoding/json"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/diff"
	kubeschedulerv1 "k8s.io/kube-scheduler/config/v1"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/latest"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/scheme"
	conversion "k8s.io/kubernetes/pkg/scheduler/apis/config/v1"

	"github.com/berthproject/berth/config"
	"github.com/berthproject/berth/core/compat"
)

// configurations are files with what /configz must show.
var configurations = map[string]string{
	"none": "",
	"all parts": `
parallelism: 8
percentageOfNodesToScore: 30
podInitialBackoffSeconds: 2
podMaxBackoffSeconds: 20
clientConnection: {qps: 70, burst: 90, contentType: application/json}
leaderElection: {leaderElect: false, resourceNamespace: own, resourceName: own, leaseDuration: 30s, renewDeadline: 20s, retryPeriod: 4s}
extenders: [{urlPrefix: https://extender.example/, filterVerb: filter, weight: 2, managedResources: [{name: example.com/a, ignoredByScheduler: true}]}]
profiles:
- schedulerName: one
  percentageOfNodesToScore: 50
  plugins:
    multiPoint: {enabled: [{name: PodTopologySpread, weight: 9}, {name: InterPodAffinity}], disabled: [{name: NodePorts}]}
    preScore: {disabled: [{name: TaintToleration}]}
    score: {enabled: [{name: ImageLocality, weight: 20}], disabled: [{name: TaintToleration}]}
  pluginConfig:
  - name: NodeResourcesFit
    args: {ignoredResources: [example.com/b], scoringStrategy: {type: MostAllocated, resources: [{name: cpu}, {name: example.com/a, weight: 3}]}}
  - name: DefaultPreemption
    args: {minCandidateNodesPercentage: 20}
  - name: PodTopologySpread
    args: {defaultingType: List, defaultConstraints: [{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: ScheduleAnyway}]}
- schedulerName: two
  plugins:
    preScore: {disabled: [{name: '*'}], enabled: [{name: NodeResourcesFit}]}
    score: {disabled: [{name: '*'}], enabled: [{name: NodeResourcesFit}]}
`,
}

// TestConfigzIsKubeSchedulers compares what /configz shows of a file with what kube-scheduler shows of it.
// The Lease and the limits of binding requests have other defaults in Berth.
func TestConfigzIsKubeSchedulers(t *testing.T) {
	for name, text := range configurations {
		t.Run(name, func(t *testing.T) {
			theirs, ours := &schedulerconfig.KubeSchedulerConfiguration{}, config.Default()
			if text == "" {
				var err error
				if theirs, err = latest.Default(); err != nil {
					t.Fatal(err)
				}
				theirs.LeaderElection.ResourceName, theirs.ClientConnection.QPS, theirs.ClientConnection.Burst = "berth", 2000, 4000
			} else {
				raw := []byte("apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration" + text)
				if err := runtime.DecodeInto(scheme.Codecs.UniversalDecoder(), raw, theirs); err != nil {
					t.Fatal(err)
				}
				var err error
				if ours, err = config.Parse(raw, compat.Newest); err != nil {
					t.Fatal(err)
				}
			}
			external := &kubeschedulerv1.KubeSchedulerConfiguration{}
			if err := conversion.Convert_config_KubeSchedulerConfiguration_To_v1_KubeSchedulerConfiguration(theirs, external, nil); err != nil {
				t.Fatal(err)
			}
			external.SetGroupVersionKind(kubeschedulerv1.SchemeGroupVersion.WithKind("KubeSchedulerConfiguration"))
			debugging := config.Debugging{Profiling: theirs.EnableProfiling, Contention: theirs.EnableContentionProfiling}
			if want, got := asMap(t, external), asMap(t, ours.Component(debugging)); diff.Diff(want, got) != "" {
				t.Errorf("/configz differs from kube-scheduler's (-want +got):\n%s", diff.Diff(want, got))
			}
		})
	}
}

// asMap returns an object as its JSON has it.
func asMap(t *testing.T, v any) (out map[string]any) {
	t.Helper()
	raw, err := json.Marshal(v)
	if err == nil {
		err = json.Unmarshal(raw, &out)
	}
	if err != nil {
		t.Fatal(err)
	}
	return out
}
