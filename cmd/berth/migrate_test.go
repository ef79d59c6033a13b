package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/berthproject/berth/internal/test/testkit"
)

// This file specifies berth migrate by values and manifests as people have them.

// migrated returns what berth migrate cluster-autoscaler prints for arguments and stdin.
func migrated(t *testing.T, stdin string, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	cmd := root()
	cmd.SetOut(&out)
	cmd.SetErr(&out)
	cmd.SetIn(strings.NewReader(stdin))
	cmd.SetArgs(append([]string{"migrate", "cluster-autoscaler"}, args...))
	err := cmd.ExecuteContext(t.Context())
	return out.String(), err
}

// chartValues reads what was printed, and checks that the chart takes it.
func chartValues(t *testing.T, text string) map[string]any {
	t.Helper()
	var values map[string]any
	if err := yaml.Unmarshal([]byte(text), &values); err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	raw, err := os.ReadFile(filepath.Join(repository, "deploy", "chart", "values.schema.json"))
	if err != nil {
		t.Fatal(err)
	}
	var schema map[string]any
	if err := json.Unmarshal(raw, &schema); err != nil {
		t.Fatal(err)
	}
	if why := unfit("values", schema, values); why != "" {
		t.Errorf("the chart refuses %s in\n%s", why, text)
	}
	return values
}

// unfit returns what a schema refuses of a value, as far as types and names of properties go.
func unfit(path string, schema map[string]any, value any) string {
	kinds, _ := schema["type"].([]any)
	if kind, ok := schema["type"].(string); ok {
		kinds = []any{kind}
	}
	is := fmt.Sprintf("%T", value)
	kind := map[string]string{"bool": "boolean", "string": "string", "float64": "number", "[]interface {}": "array", "map[string]interface {}": "object"}[is]
	if n, ok := value.(float64); ok && n == float64(int64(n)) && slices.Contains(kinds, any("integer")) {
		kind = "integer"
	}
	if len(kinds) > 0 && !slices.Contains(kinds, any(kind)) {
		return fmt.Sprintf("%s, a %s in place of %v", path, kind, kinds)
	}
	m, _ := value.(map[string]any)
	properties, _ := schema["properties"].(map[string]any)
	for key, inner := range m {
		of, ok := properties[key].(map[string]any)
		if !ok {
			if schema["additionalProperties"] == false {
				return path + "." + key
			}
			continue
		}
		if why := unfit(path+"."+key, of, inner); why != "" {
			return why
		}
	}
	return ""
}

// TestMigrateClusterAutoscaler migrates files as people have them. What is printed is in testdata/migrate.
func TestMigrateClusterAutoscaler(t *testing.T) {
	for _, x := range []struct {
		name, refused string
		args          []string
	}{
		{"aws", "2 setting(s) are refused", nil},
		{"clusterapi", "", []string{"--replace-scheduler"}},
		{"deployment", "", nil},
	} {
		t.Run(x.name, func(t *testing.T) {
			t.Chdir("testdata/migrate")
			got, err := migrated(t, "", append(x.args, "--file", x.name+".yaml")...)
			if (err == nil) != (x.refused == "") || err != nil && !strings.Contains(err.Error(), x.refused) {
				t.Errorf("the error is %v, want %q", err, x.refused)
			}
			testkit.Generated(t, x.name+".golden", got, "go test ./cmd/berth -rewrite", *rewrite)
			t.Chdir("../..")
			chartValues(t, got)
		})
	}
}

// TestMigratedProvidersRunInThePod: the server of a cloud's provider gets flags, environment, volumes and role that Cluster
// Autoscaler had; that of another provider is elsewhere.
func TestMigratedProvidersRunInThePod(t *testing.T) {
	const settings = `autoscalingGroups: [{name: g, minSize: 1, maxSize: 5}]
rbac: {serviceAccount: {annotations: {role: r}}}
extraEnv: {B: "2", A: "1"}
extraEnvSecrets: {C: {name: s, key: k}}
extraEnvConfigMaps: {D: {name: m, key: k}}
envFromSecret: all
extraVolumes: [{name: certs, emptyDir: {}}]
extraVolumeMounts: [{name: certs, mountPath: /certs}]
extraVolumeSecrets: {b: {name: s, mountPath: /b}}
`
	for _, x := range []struct {
		what, values string
		args         []string
		want         string // the value provider, "" for none
	}{
		{"AWS", "cloudProvider: aws\nawsAccessKeyID: id\n" + settings, nil, `
image: {repository: REGISTRY/berth-provider, tag: aws}
args: ["--address=127.0.0.1:8086", --cloud-provider=aws, "--nodes=1:5:g"]
check: true
env: [{name: AWS_REGION, value: us-east-1}, {name: A, value: "1"}, {name: B, value: "2"}, {name: D, valueFrom: {configMapKeyRef: {name: m, key: k}}}, {name: C, valueFrom: {secretKeyRef: {name: s, key: k}}}]
envFrom: [{secretRef: {name: all}}]
volumeMounts: [{name: certs, mountPath: /certs}, {name: b, mountPath: /b, readOnly: true}]`},
		{"GCE, in place of kube-scheduler", "cloudProvider: gce\nautoscalingGroupsnamePrefix: [{name: p, minSize: 0, maxSize: 3}]\nextraArgs: {regional: true}\n", []string{"--replace-scheduler"}, `
image: {repository: REGISTRY/berth-provider, tag: gce}
args: ["--address=127.0.0.1:8086", --cloud-provider=gce, "--node-group-auto-discovery=mig:namePrefix=p,min=0,max=3"]`},
		{"a provider that runs elsewhere", "cloudProvider: kwok\n" + settings, nil, ""},
	} {
		got, err := migrated(t, x.values, append(x.args, "-f", "-")...)
		if err != nil {
			t.Fatalf("%s: %v\n%s", x.what, err, got)
		}
		values := chartValues(t, got)
		var want any
		if err := yaml.Unmarshal([]byte(x.want), &want); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(values["provider"], want) {
			t.Errorf("%s: the provider is\n%v\nwant\n%v\nin\n%s", x.what, values["provider"], want, got)
		}
		// Who runs elsewhere is reached by an address, and Berth's pod has neither the role nor the volumes.
		elsewhere := x.want == ""
		if (values["cloudConfig"] != nil) != elsewhere {
			t.Errorf("%s: cloudConfig is %v", x.what, values["cloudConfig"])
		}
		if strings.Contains(x.values, settings) && ((values["serviceAccount"] == nil) != elsewhere || (values["extraVolumes"] == nil) != elsewhere || values["extraVolumeMounts"] != nil) {
			t.Errorf("%s: the account is %v, the volumes are %v, mounted for Berth are %v", x.what, values["serviceAccount"], values["extraVolumes"], values["extraVolumeMounts"])
		}
		if strings.Contains(x.values, "awsAccessKeyID") && (strings.Contains(got, "value: id") || !strings.Contains(got, "#   awsAccessKeyID: add it to provider.env, and a credential to a Secret")) {
			t.Errorf("%s: the key is taken over, or isn't spoken of, in\n%s", x.what, got)
		}
	}
}

// TestEveryFlagOfClusterAutoscalerIsMigrated gives each flag of Cluster Autoscaler with its default: each has a line, none
// is refused, and Berth keeps none that its chart refuses.
func TestEveryFlagOfClusterAutoscalerIsMigrated(t *testing.T) {
	for _, f := range upstreamFlags(t, "cluster-autoscaler.txt") {
		if f.name == "cloud-provider" || f.byDefault == "" && f.kind != "string" {
			continue
		}
		arg := "--" + f.name + "=" + f.byDefault
		got, err := migrated(t, "", "--", "--cloud-provider=externalgrpc", arg)
		if err != nil {
			t.Errorf("%s: %v\n%s", arg, err, got)
		}
		if !strings.Contains(got, "#   "+arg) {
			t.Errorf("%s has no line in\n%s", arg, got)
		}
		chartValues(t, got)
	}
}

// TestMigrateRefusesWhatItCannotRead has files and flags that make no sense.
func TestMigrateRefusesWhatItCannotRead(t *testing.T) {
	for name, x := range map[string]struct {
		stdin, want string
		args        []string
	}{
		"nothing":                           {"", "there are no flags of Cluster Autoscaler", nil},
		"another object":                    {"kind: Service\napiVersion: v1\n", "there are no flags of Cluster Autoscaler", []string{"-f", "-"}},
		"no YAML":                           {"a: [", "-: ", []string{"-f", "-"}},
		"no file":                           {"", "no such file", []string{"-f", "testdata/nothing.yaml"}},
		"a template":                        {"extraArgs: {cluster-name: '{{ .Release.Name }}'}", "has a template; write out what Helm makes of it", []string{"-f", "-"}},
		"a template in the environment":     {"extraEnv: {A: '{{ .Release.Name }}'}", `extraEnv.A: "{{ .Release.Name }}" has a template`, []string{"-f", "-"}},
		"a shell":                           {"kind: Pod\nspec: {containers: [{name: ca, command: [sh, -c, ./cluster-autoscaler]}]}", "container ca starts Cluster Autoscaler by another program (sh -c)", []string{"-f", "-"}},
		"a variable":                        {"kind: Pod\nspec: {containers: [{name: ca, command: [./cluster-autoscaler, --namespace=$(NS)]}]}", `"--namespace=$(NS)" has a variable`, []string{"-f", "-"}},
		"no flag":                           {"", `"expander" is no flag`, []string{"--", "expander"}},
		"a flag without one":                {"", "--expander has no value", []string{"--", "--expander"}},
		"a wrong value":                     {"", "1 setting(s) are refused", []string{"--", "--cloud-provider=clusterapi", "--max-nodes-total=many"}},
		"values that contradict each other": {"", "1 setting(s) are refused", []string{"--", "--cloud-provider=clusterapi", "--expander=cheapest"}},
	} {
		t.Run(name, func(t *testing.T) {
			if got, err := migrated(t, x.stdin, x.args...); err == nil || !strings.Contains(err.Error(), x.want) {
				t.Errorf("the error is %v, want one with %q\n%s", err, x.want, got)
			}
		})
	}
}

// TestMigrateMergesFiles: of two files of values the second counts more, value by value.
func TestMigrateMergesFiles(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	a := write("a.yaml", "cloudProvider: clusterapi\nextraArgs: {scan-interval: 10s, max-nodes-total: 5}\n")
	b := write("b.yaml", "extraArgs: {max-nodes-total: 7, skip-nodes-with-local-storage: null}\n")
	got, err := migrated(t, "", "-f", a, "-f", b, "--", "--scan-interval=20s")
	if err != nil {
		t.Fatal(err)
	}
	flags, _ := chartValues(t, got)["flags"].(map[string]any)
	for name, want := range map[string]any{"scan-interval": "20s", "max-nodes-total": 7.0, "skip-nodes-with-local-storage": true, "mode": "autoscaler"} {
		if flags[name] != want {
			t.Errorf("%s is %v, want %v:\n%s", name, flags[name], want, got)
		}
	}
}

// TestMigrateKeepsVolumesBesideThoseOfSecrets has both kinds of volumes, which become one list in Berth's chart.
func TestMigrateKeepsVolumesBesideThoseOfSecrets(t *testing.T) {
	got, err := migrated(t, "cloudProvider: clusterapi\nextraVolumes: [{name: a, emptyDir: {}}]\nextraVolumeMounts: [{name: a, mountPath: /a}]\n"+
		"extraVolumeSecrets: {b: {name: s, mountPath: /b}}\n", "-f", "-")
	if err != nil {
		t.Fatal(err)
	}
	values := chartValues(t, got)
	for _, name := range []string{"extraVolumes", "extraVolumeMounts"} {
		if list, _ := values[name].([]any); len(list) != 2 {
			t.Errorf("%s are %v, want those of a and of b:\n%s", name, list, got)
		}
	}
}

// TestNothingIsLeftOutThatTheChartHas: a value is left out only for as long as Berth's chart has none of its name.
func TestNothingIsLeftOutThatTheChartHas(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join(repository, "deploy", "chart", "values.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var chart map[string]any
	if err := yaml.Unmarshal(raw, &chart); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"affinity", "topologySpreadConstraints", "dnsPolicy", "dnsConfig", "hostNetwork", "initContainers", "nameOverride", "fullnameOverride", "updateStrategy", "additionalLabels", "prometheusRule", "deployment", "extraObjects"} {
		got, err := migrated(t, name+": {x: y}\n", "-f", "-")
		if err != nil {
			t.Fatal(err)
		}
		if _, has := chart[name]; has && strings.Contains(got, "#   "+name+": Berth's chart has no such value") {
			t.Errorf("the chart has %s, and it is left out: add it to what is kept", name)
		}
	}
}
