package config

import (
	"strings"
	"testing"
	"time"

	"github.com/berthproject/berth/plugins/noderesources"
)

const head = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"

func TestParseTakesWhatItHonours(t *testing.T) {
	got, err := Parse([]byte(head + `
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
`))
	if err != nil {
		t.Fatal(err)
	}
	fit := got.Profiles[0].Fit
	if got.Profiles[0].SchedulerName != "packing" || fit.Strategy != noderesources.MostAllocated ||
		len(fit.Resources) != 2 || fit.Resources[0].Weight != 3 || fit.Resources[1].Weight != 1 {
		t.Errorf("profile is %+v", got.Profiles[0])
	}
	if got.BindQPS != 300 || got.BindBurst != 600 || got.Queue.MaxBackoff != 20*time.Second || got.LeaderElection.Enabled || got.LeaderElection.LeaseDuration != 30*time.Second {
		t.Errorf("got %+v", got)
	}
}

func TestParseRefusesWithFieldAndRemedy(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"kind: Pod\n", `kind "Pod"; they must be`},
		{head + "nonsense: 1\n", `unknown field "nonsense"`},
		{head + "extenders: [{urlPrefix: http://x}]\n", "extenders: this version"},
		{head + "podInitialBackoffSeconds: 0\n", "podInitialBackoffSeconds: is 0; it must be greater than 0"},
		{head + "profiles: [{schedulerName: a},{schedulerName: a}]\n", `profiles[1].schedulerName: "a" is there twice`},
		{head + "profiles: [{plugins: {}}]\n", "profiles[0]: plugins: this version"},
		{head + "profiles: [{pluginConfig: [{name: Other, args: {}}]}]\n", `pluginConfig[0] "Other"`},
		{head + "profiles: [{pluginConfig: [{name: NodeResourcesFit, args: {scoringStrategy: {type: Best}}}]}]\n", `args.scoringStrategy.type: is "Best"; it must be`},
		{head + "leaderElection: {leaseDuration: 5s}\n", "must fall in this order"},
	} {
		_, err := Parse([]byte(c.in))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q:\n got %v\nwant …%s…", c.in, err, c.want)
		}
	}
}
