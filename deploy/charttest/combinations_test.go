package charttest

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// combinations are values that people combine, beside those of chart/ci and of the examples.
var combinations = map[string]string{
	"a name in part":                 `{nameOverride: scheduler}`,
	"a name":                         `{fullnameOverride: placement, viewers: [{kind: User, name: carol, apiGroup: rbac.authorization.k8s.io}]}`,
	"labels":                         `{commonLabels: {team: infra}, podLabels: {tier: system}, podAnnotations: {a: b}}`,
	"an account of one's own":        `{serviceAccount: {create: false, name: scheduler}}`,
	"an account of another name":     `{serviceAccount: {name: scheduler, annotations: {eks.amazonaws.com/role-arn: "arn:aws:iam::1:role/r"}}}`,
	"no optional object":             `{podDisruptionBudget: {enabled: false}, networkPolicy: {enabled: false}}`,
	"every optional object":          `{prometheusRule: {enabled: true}, serviceMonitor: {enabled: true}, grafanaDashboard: {enabled: true, annotations: {folder: Kubernetes}}}`,
	"a policy of who may ask":        `{networkPolicy: {from: [{namespaceSelector: {matchLabels: {team: infra}}}]}}`,
	"one replica, not elected":       `{replicas: 1, flags: {leader-elect: false}}`,
	"five replicas apart":            `{replicas: 5, antiAffinity: required, podDisruptionBudget: {maxUnavailable: "40%"}}`,
	"spread over zones":              `{antiAffinity: none, topologySpreadConstraints: [{maxSkew: 1, topologyKey: topology.kubernetes.io/zone, whenUnsatisfiable: DoNotSchedule}, {maxSkew: 1, topologyKey: kubernetes.io/hostname, whenUnsatisfiable: ScheduleAnyway, labelSelector: {matchLabels: {a: b}}}]}`,
	"affinity for nodes":             `{affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: kubernetes.io/arch, operator: In, values: [amd64]}]}]}}}}`,
	"anti-affinity of one's own":     `{antiAffinity: none, affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: topology.kubernetes.io/zone, labelSelector: {matchLabels: {app.kubernetes.io/name: berth}}}]}}}`,
	"on the control plane":           `{nodeSelector: {node-role.kubernetes.io/control-plane: ""}, priorityClassName: system-node-critical}`,
	"before the network":             `{hostNetwork: true, flags: {secure-port: 10359}, tolerations: [{operator: Exists}]}`,
	"before the network, with DNS":   `{hostNetwork: true, dnsPolicy: Default, flags: {secure-port: 10359}}`,
	"behind a proxy":                 `{extraEnv: [{name: HTTPS_PROXY, value: "http://proxy:3128"}], extraEnvFrom: [{secretRef: {name: proxy, optional: true}}]}`,
	"beside another container":       `{extraContainers: [{name: logs, image: "logs:1", volumeMounts: [{name: logs, mountPath: /logs}]}], extraVolumes: [{name: logs, emptyDir: {}}], extraVolumeMounts: [{name: logs, mountPath: /logs}], flags: {record: /logs/recording}}`,
	"an image by digest":             `{image: {repository: registry.example.com/berth, digest: "sha256:0000000000000000000000000000000000000000000000000000000000000000", pullPolicy: Always}, imagePullSecrets: [{name: registry}]}`,
	"limits and time to end":         `{resources: {requests: {cpu: "2", memory: 2Gi}, limits: {memory: 4Gi}}, terminationGracePeriodSeconds: 60}`,
	"no priority":                    `{priorityClassName: "", resources: {}, tolerations: null}`,
	"two profiles":                   `{schedulerConfiguration: {profiles: [{schedulerName: berth}, {schedulerName: packed}]}}`,
	"a Lease elsewhere":              `{schedulerConfiguration: {leaderElection: {resourceNamespace: ns}}, flags: {namespace: ns, cloud-provider: clusterapi}}`,
	"a management cluster":           `{flags: {cloud-provider: clusterapi}, cloudConfigSecret: {name: management}}`,
	"a provider's file in a secret":  `{flags: {cloud-provider: externalgrpc, expander: "priority,least-waste"}, cloudConfigSecret: {name: provider, key: cloud.yaml}}`,
	"only scaling, with surge":       `{flags: {cloud-provider: clusterapi, mode: autoscaler, surge: true}}`,
	"a shadow of nodes":              `{shadow: {enabled: true, schedulerConfiguration: {profiles: [{schedulerName: default-scheduler}]}}, flags: {cloud-provider: clusterapi, expander: priority}}`,
	"a monitored shadow":             `{shadow: {enabled: true}, serviceMonitor: {enabled: true}, prometheusRule: {enabled: true, labels: {release: p}}, grafanaDashboard: {enabled: true}}`,
	"a provider in the pod":          `{provider: {image: {repository: provider, tag: v1}, args: [--address=127.0.0.1:8086]}}`,
	"a provider by mutual TLS":       `{provider: {image: {repository: provider, digest: "sha256:0000000000000000000000000000000000000000000000000000000000000000"}, command: [/provider], tls: {secretName: tls}, check: true, serviceAccountToken: true, env: [{name: A, value: b}], envFrom: [{secretRef: {name: cloud}}], volumeMounts: [{name: cloud, mountPath: /etc/cloud}], resources: {limits: {memory: 256Mi}}}, extraVolumes: [{name: cloud, secret: {secretName: cloud}}], hostNetwork: true, flags: {secure-port: 10359}}`,
	"a provider at a socket":         `{provider: {image: {repository: provider, tag: v1}, args: ["--listen=unix:///run/berth-provider/provider.sock"], socket: true, check: true}, hostNetwork: true, flags: {secure-port: 10359}}`,
	"a provider at a socket, by TLS": `{provider: {image: {repository: provider, tag: v1}, socket: true, tls: {secretName: tls}}}`,
	"a provider on IPv6":             `{provider: {image: {repository: provider, tag: v1}, args: ["--address=[::1]:8086"]}}`,
	"a provider for all, by TLS":     `{provider: {image: {repository: provider, tag: v1}, args: ["--address=:8086"], tls: {secretName: tls}}}`,
	"a provider for a shadow":        `{provider: {image: {repository: provider, tag: v1}, check: true}, shadow: {enabled: true}}`,
	"pods of some namespaces":        `{schedulerNamePolicy: {enabled: true, namespaceSelector: {matchLabels: {berth.dev/scheduler: berth}}}}`,
	"pods of all but some":           `{schedulerNamePolicy: {enabled: true, schedulerName: packed, failurePolicy: Fail, namespaceSelector: {matchExpressions: [{key: kubernetes.io/metadata.name, operator: NotIn, values: [kube-system, kube-public, own]}]}}, schedulerConfiguration: {profiles: [{schedulerName: packed}]}}`,
}

// TestCombinationsOfValues: the API server would create each object of the chart, for each combination of values, in
// kube-system and elsewhere, and knows each field. Kinds of the Prometheus operator aren't defined here: its own types know
// their fields.
func TestCombinationsOfValues(t *testing.T) {
	c := startCluster(t)
	for _, name := range []string{"own", "ns"} {
		_, err := c.client.CoreV1().Namespaces().Create(t.Context(), &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
		must(t, err)
	}
	eventually(t, "kube-system", func(ctx context.Context) bool {
		_, err := c.client.CoreV1().Namespaces().Get(ctx, namespace, metav1.GetOptions{})
		return err == nil
	})
	all := map[string]map[string]any{}
	for name, text := range combinations {
		v := map[string]any{}
		must(t, yaml.UnmarshalStrict([]byte(text), &v))
		all[name] = v
	}
	for _, name := range append([]string{""}, overlays...) {
		all["chart/ci "+name] = valuesOf(t, name)
	}
	for path, v := range valuesOfExamples(t) {
		all[path] = v
	}
	for path, v := range valuesOfPages(t) {
		all[path] = v
	}
	if len(all) < 50 {
		t.Errorf("there are %d combinations; are they found?", len(all))
	}
	for name, values := range all {
		for _, in := range []string{namespace, "own"} {
			r, err := releaseIn(t, in, values, current)
			if err != nil {
				t.Errorf("%s, in %s: %v", name, in, err)
				continue
			}
			objects := parse(t, []byte(r.Manifest))
			for _, h := range r.Hooks {
				objects = append(objects, parse(t, []byte(h.Manifest))...)
			}
			for _, o := range objects {
				if o.GetKind() == "Pod" { // whose account isn't there when nothing is created
					unstructured.RemoveNestedField(o.Object, "spec", "serviceAccountName")
				}
				accepted := c.tryCreate
				if strings.HasPrefix(o.GetAPIVersion(), "monitoring.coreos.com/") {
					accepted = ofTheOperator
				}
				if err := accepted(o); err != nil {
					t.Errorf("%s, in %s: %s: %v", name, in, id(o), err)
				}
			}
			ownsNothingLive(t, name, objects)
		}
	}
}

// ownsNothingLive fails when a release has a Lease, a status, or a kubeconfig: what programs write while they run must not
// go with it, and credentials must not stand in its objects.
func ownsNothingLive(t *testing.T, name string, objects []*unstructured.Unstructured) {
	t.Helper()
	for _, o := range objects {
		data, _, _ := unstructured.NestedStringMap(o.Object, "data")
		for key, text := range data {
			if strings.Contains(text, "kind: Config\n") || strings.Contains(text, "client-key-data") {
				t.Errorf("%s: %s has a kubeconfig in %s", name, id(o), key)
			}
		}
		if o.GetKind() == "Lease" || o.GetKind() == "Secret" || strings.HasSuffix(o.GetName(), "-status") {
			t.Errorf("%s: the release has %s", name, id(o))
		}
	}
}

// valuesOfExamples returns the files of values among the examples.
func valuesOfExamples(t *testing.T) map[string]map[string]any {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(root, "..", "examples", "*", "*values.yaml"))
	must(t, err)
	out := map[string]map[string]any{}
	for _, path := range paths {
		raw, err := os.ReadFile(path)
		must(t, err)
		v := map[string]any{}
		must(t, yaml.UnmarshalStrict(raw, &v))
		out[path] = v
	}
	return out
}

// valuesOfPages returns the values that pages show: their blocks of YAML that begin with the name of a file of values, or
// that have flags, a configuration of the scheduler, or viewers. Words in capitals are for the reader to replace. What
// docs/migration.md shows is TestMigration's: one block there changes another.
func valuesOfPages(t *testing.T) map[string]map[string]any {
	t.Helper()
	out := map[string]map[string]any{}
	for path, block := range blocksOfPages(t, "yaml") {
		if !strings.Contains(path, "migration.md") && regexp.MustCompile(`(?m)^(# values\.yaml|flags:|schedulerConfiguration:|viewers:.*)$`).MatchString(block) {
			v := map[string]any{}
			must(t, yaml.UnmarshalStrict([]byte(block), &v))
			out[path] = v
		}
	}
	if len(out) < 12 {
		t.Errorf("the pages show values %d times; are they found?", len(out))
	}
	return out
}

// blocksOfPages returns the blocks of a language on all pages, by page and number.
func blocksOfPages(t *testing.T, language string) map[string]string {
	t.Helper()
	docs := filepath.Join(root, "..", "docs")
	clouds, err := filepath.Glob(filepath.Join(docs, "clouds", "*.md"))
	must(t, err)
	others, err := filepath.Glob(filepath.Join(docs, "*.md"))
	must(t, err)
	out := map[string]string{}
	for _, path := range append(clouds, others...) {
		text, err := os.ReadFile(path)
		must(t, err)
		for i, m := range regexp.MustCompile("(?ms)^```"+language+"\n(.*?)^```$").FindAllSubmatch(text, -1) {
			out[fmt.Sprintf("%s %d", path, i)] = string(m[1])
		}
	}
	return out
}

// TestRightsOfPagesAreJSON: policies and roles for clouds can be read, and none gives everything.
func TestRightsOfPagesAreJSON(t *testing.T) {
	all := blocksOfPages(t, "json")
	for path, block := range all {
		if !strings.Contains(path, "clouds") {
			continue
		}
		var read map[string]any
		if err := json.Unmarshal([]byte(block), &read); err != nil {
			t.Errorf("%s: %v", path, err)
		}
		if strings.Contains(block, `:*"`) || strings.Contains(block, `/*"`) {
			t.Errorf("%s gives every right of a kind:\n%s", path, block)
		}
	}
	if len(all) < 4 {
		t.Errorf("the pages have %d policies; are they found?", len(all))
	}
}

// TestNamesFollowTheOverrides: objects have the name that values give, the pods their account, and what finds pods by
// labels goes on finding them.
func TestNamesFollowTheOverrides(t *testing.T) {
	for values, want := range map[string][2]string{
		"{}":                          {"berth", "berth"},
		"nameOverride: scheduler":     {"berth-scheduler", "berth-scheduler"},
		"nameOverride: ber":           {"berth", "berth"},
		"fullnameOverride: placement": {"placement", "placement"},
		"{fullnameOverride: placement, serviceAccount: {name: other}}": {"placement", "other"},
	} {
		v := map[string]any{}
		must(t, yaml.Unmarshal([]byte(values), &v))
		r, err := release(t, v, current)
		must(t, err)
		var names []string
		for _, o := range parse(t, []byte(r.Manifest)) {
			switch o.GetKind() {
			case "Deployment":
				names = append(names, o.GetName())
				account, _, _ := unstructured.NestedString(o.Object, "spec", "template", "spec", "serviceAccountName")
				labels, _, _ := unstructured.NestedStringMap(o.Object, "spec", "template", "metadata", "labels")
				names = append(names, account)
				if labels["app.kubernetes.io/name"] != "berth" || labels["app.kubernetes.io/instance"] != "berth" {
					t.Errorf("%s: the pods have the labels %v", values, labels)
				}
			case "RoleBinding", "ClusterRoleBinding":
				subjects, _, _ := unstructured.NestedSlice(o.Object, "subjects")
				if got := subjects[0].(map[string]any)["name"]; got != want[1] {
					t.Errorf("%s: %s is for %v, want %s", values, id(o), got, want[1])
				}
			}
		}
		if !slices.Equal(names, want[:]) {
			t.Errorf("%s: the Deployment and its account are %q, want %q", values, names, want)
		}
		if says := strings.Contains(r.Info.Notes, "--service-account kube-system/"+want[1]); says != (want[1] != "berth") {
			t.Errorf("%s: the notes are\n%s", values, r.Info.Notes)
		}
	}
}
