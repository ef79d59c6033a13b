package config_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/berthproject/berth/config"
	"github.com/berthproject/berth/core/compat"
)

// TestComponentHasDefaultsAndNoSecrets: what a file leaves out is filled in, as the version has it, and
// its secrets and Berth's own plugin are left out. devcluster/upstream compares it with kube-scheduler.
func TestComponentHasDefaultsAndNoSecrets(t *testing.T) {
	for _, v := range compat.Versions() {
		cfg, err := config.Parse([]byte(`apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
extenders:
- urlPrefix: https://user:hunter2@extender.example
  filterVerb: filter
  tlsConfig: {keyData: aHVudGVyMg==, certData: aHVudGVyMg==, caData: aHVudGVyMg==}
profiles:
- pluginConfig:
  - name: PreemptOrBuy
    args: {policy: preempt-first}
  - name: DevicePreemption
    args: {enabled: true}
`), v)
		if err != nil {
			t.Fatal(err)
		}
		raw, err := json.Marshal(cfg.Component(config.Debugging{Profiling: true}))
		if err != nil {
			t.Fatal(err)
		}
		text := string(raw)
		for part, want := range map[string]bool{
			`"kind":"KubeSchedulerConfiguration"`: true, `"schedulerName":"default-scheduler"`: true, `"parallelism":16`: true, `"resourceName":"berth"`: true,
			`{"name":"SchedulingGates","weight":0}`: true, `"kind":"VolumeBindingArgs"`: true, `"bindTimeoutSeconds":600`: true, "extender.example": true,
			"hunter2": false, "aHVudGVyMg": false, "PreemptOrBuy": false, "DevicePreemption": false,
			`"shape":`: v >= compat.V37, `{"name":"NodeName","weight":0},{"name":"NodeUnschedulable","weight":0}`: v >= compat.V37,
		} {
			if strings.Contains(text, part) != want {
				t.Errorf("%s: %s is in the configuration: %t, want %t\n%s", v, part, !want, want, text)
			}
		}
	}
}
