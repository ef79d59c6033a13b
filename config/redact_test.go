package config

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/berthproject/berth/core/compat"
)

// This file specifies what of a configuration is shown and recorded.

// secret is planted in all fields that may hold one. It is base64, since keys are.
const secret = "aHVudGVyMg"

const withSecrets = `apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
# the password of the old extender was aHVudGVyMg
clientConnection: {kubeconfig: /etc/kubeconfig, qps: 100}
profiles:
- schedulerName: ours
  pluginConfig:
  - name: NodeResourcesFit
    args: {scoringStrategy: {type: MostAllocated, resources: [{name: cpu, weight: 3}]}}
extenders:
- urlPrefix: https://user:aHVudGVyMg@extender.example/scheduler?token=aHVudGVyMg
  filterVerb: filter
  weight: 2
  prioritizeVerb: prioritize
  enableHTTPS: true
  tlsConfig:
    serverName: extender.example
    certFile: /etc/cert
    certData: aHVudGVyMg==
    keyData: aHVudGVyMg==
    caData: aHVudGVyMg==
`

func TestNothingSecretOfAConfigurationIsShown(t *testing.T) {
	cfg, err := Parse([]byte(withSecrets), compat.Newest)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(cfg)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"https://extender.example/scheduler", "/etc/cert", "/etc/kubeconfig"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the configuration is shown without %s:\n%s", want, text)
		}
	}
	if strings.Contains(string(text), secret) || strings.Contains(string(text), "hunter2") {
		t.Errorf("the configuration is shown with a secret:\n%s", text)
	}
	if string(cfg.Extenders[0].TLSConfig.KeyData) != "hunter2" || !strings.Contains(cfg.Extenders[0].URLPrefix, secret) {
		t.Error("showing the configuration has taken its secrets away")
	}
}

func TestRedactedText(t *testing.T) {
	text, err := Redact(withSecrets)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(text, secret) {
		t.Errorf("a secret is left:\n%s", text)
	}
	cfg, err := Parse([]byte(text), compat.Newest)
	if err != nil {
		t.Fatalf("what is left can't be read: %v\n%s", err, text)
	}
	if x := cfg.Extenders[0]; x.FilterVerb != "filter" || x.Weight != 2 || x.TLSConfig.CertFile != "/etc/cert" || x.URLPrefix != "https://extender.example/scheduler" {
		t.Errorf("the extender is now %+v", x)
	}
	if again, err := Redact(text); err != nil || again != text {
		t.Errorf("redacted twice:\n%s\nonce:\n%s\n%v", again, text, err)
	}
	for name, text := range map[string]string{"a misspelt field": "profile: []\n", "no YAML": "{"} {
		if _, err := Redact(text); err == nil {
			t.Errorf("%s is taken for a configuration", name)
		}
	}
}

func TestRedactedTextIsParsedAsBefore(t *testing.T) {
	for _, text := range []string{
		head,
		withSecrets,
		head + "extenders: [{urlPrefix: 'https://x', prioritizeVerb: p, weight: 9007199254740993}]\n", // no float64
		head + `
parallelism: 32
percentageOfNodesToScore: 50
podMaxBackoffSeconds: 20
clientConnection: {qps: 300.5, burst: 600}
leaderElection: {leaderElect: false, leaseDuration: 30s}
profiles:
- schedulerName: packing
  plugins:
    score: {disabled: [{name: '*'}], enabled: [{name: NodeResourcesFit, weight: 5}]}
    postFilter: {disabled: [{name: DefaultPreemption}]}
  pluginConfig:
  - name: PodTopologySpread
    args:
      defaultingType: List
      defaultConstraints: [{maxSkew: 3, topologyKey: zone, whenUnsatisfiable: ScheduleAnyway}]
- schedulerName: spreading
extenders: []
`,
	} {
		show := func(text string) string {
			cfg, err := Parse([]byte(text), compat.Newest)
			if err != nil {
				t.Fatalf("%v\n%s", err, text)
			}
			out, err := json.Marshal(cfg) // without secrets
			if err != nil {
				t.Fatal(err)
			}
			return string(out)
		}
		redacted, err := Redact(text)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := show(redacted), show(text); got != want {
			t.Errorf("redacted, it is parsed as\n%s\nwant\n%s", got, want)
		}
	}
}
