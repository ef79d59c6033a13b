package config_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/berthproject/berth/config"
	"github.com/berthproject/berth/core"
	"github.com/berthproject/berth/core/compat"
)

// This file lets configurations be anything: one is refused with an error, or a core can be made
// of it.

// FuzzScheduler reads any text as a KubeSchedulerConfiguration. One that is accepted makes a
// core, and without its secrets it is the same configuration.
func FuzzScheduler(f *testing.F) {
	const head = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
	for _, text := range []string{
		"", "profiles:\n- schedulerName: a\n- schedulerName: b\n  plugins: {multiPoint: {disabled: [{name: '*'}], enabled: [{name: NodeName, weight: 3}]}}\n",
		"profiles:\n- pluginConfig:\n  - name: PodTopologySpread\n    args: {defaultingType: List, defaultConstraints: [{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: ScheduleAnyway}]}\n",
		"profiles:\n- pluginConfig:\n  - name: NodeResourcesFit\n    args: {scoringStrategy: {type: RequestedToCapacityRatio, resources: [{name: cpu, weight: 1}], requestedToCapacityRatio: {shape: [{utilization: 0, score: 0}, {utilization: 100, score: 10}]}}}\n",
		"profiles:\n- pluginConfig:\n  - name: NodeAffinity\n    args: {addedAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: a, operator: Gt, values: ['1']}]}]}}}\n",
		"profiles:\n- pluginConfig:\n  - name: DefaultPreemption\n    args: {minCandidateNodesPercentage: 10, minCandidateNodesAbsolute: 100}\n  - name: InterPodAffinity\n    args: {hardPodAffinityWeight: 100, ignorePreferredTermsOfExistingPods: true}\n  - name: VolumeBinding\n    args: {bindTimeoutSeconds: 600}\n",
		"extenders:\n- urlPrefix: https://user:secret@x/y?z\n  filterVerb: f\n  prioritizeVerb: p\n  weight: 5\n  tlsConfig: {certData: YQ==, keyData: YQ==, caData: YQ==, insecure: true}\n  managedResources: [{name: example.com/gpu, ignoredByScheduler: true}]\n",
		"podInitialBackoffSeconds: 1\npodMaxBackoffSeconds: 9223372036854775807\nparallelism: 16\npercentageOfNodesToScore: 101\n",
		"leaderElection: {leaderElect: true, leaseDuration: 15s, renewDeadline: 10s, retryPeriod: 2s}\nclientConnection: {qps: 1e300}\n",
	} {
		f.Add(head + text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := config.Parse([]byte(text), compat.Newest)
		if err != nil {
			return
		}
		schema, profiles := s.Build()
		cfg := core.DefaultConfig(profiles...)
		cfg.Queue = s.Queue
		if _, err := core.New(schema, cfg); err != nil {
			t.Errorf("it is accepted, and no core can be made of it: %v", err)
		}
		redacted, err := config.Redact(text)
		if err != nil {
			t.Fatalf("it is accepted, and can't be recorded: %v", err)
		}
		again, err := config.Parse([]byte(redacted), compat.Newest)
		if err != nil {
			t.Fatalf("without its secrets it is refused: %v", err)
		}
		want, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := json.Marshal(again); err != nil || !bytes.Equal(got, want) {
			t.Errorf("without its secrets it is\n%s (%v), want\n%s", got, err, want)
		}
	})
}

// FuzzAutoscaler reads any text as the autoscaler's flags, one a line. What is accepted makes a
// core.
func FuzzAutoscaler(f *testing.F) {
	for _, text := range []string{
		"--expander=priority,least-waste", "--scale-down-unneeded-time=10m\n--max-nodes-total=7", "--cores-total=1:9\n--memory-total=0:2\n--gpu-total=nvidia.com/gpu:0:4",
		"--drain-priority-config=0:30,1000:60", "--max-launches=adaptive", "--balance-similar-node-groups\n--balancing-label=a\n--balancing-ignore-label=b",
		"--node-budget=10%;0 9 * * 1-5;8h", "--scale-down-enabled=false\n--scan-interval=1ns", "--max-bulk-soft-taint-count=-1", "--ok-total-unready-count=99999999999999999999",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		a, err := config.ParseAutoscaler(strings.Split(text, "\n"))
		if err != nil {
			return
		}
		s := config.Default()
		schema, profiles := s.Build()
		cfg := core.DefaultConfig(profiles...)
		cfg.Autoscale = &a
		if _, err := core.New(schema, cfg); err != nil {
			t.Errorf("%q is accepted, and no core can be made of it: %v", text, err)
		}
	})
}
