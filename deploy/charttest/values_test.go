package charttest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"
)

// TestValuesWithAMistake: Helm refuses them, and names what is wrong.
func TestValuesWithAMistake(t *testing.T) {
	for _, c := range []struct{ values, want string }{
		{"replica: 3", "'replica' not allowed"},
		{"image: {repo: example.com/berth}", "'repo' not allowed"},
		{"flags: {scan-intervall: 10s}", "'scan-intervall' not allowed"},
		{"flags: {kubeconfig: /tmp/config}", "'kubeconfig' not allowed"},
		{"flags: {max-nodes-total: many}", "/flags/max-nodes-total"},
		{"flags: {secure-port: 0}", "/flags/secure-port"},
		{"replicas: -1", "/replicas"},
		{"antiAffinity: strict", "/antiAffinity"},
		{"image: {digest: latest}", "/image/digest"},
		{"podDisruptionBudget: {minAvailable: 1}", "'minAvailable' not allowed"},
		{"serviceMonitor: {enabled: \"yes\"}", "/serviceMonitor/enabled"},
		{"schedulerConfiguration: {kind: Pod}", "/schedulerConfiguration/kind"},
		{"flags: {leader-elect: false}", "replicas is greater than 1 and leader election is off"},
		{"schedulerConfiguration: {leaderElection: {leaderElect: false}}", "replicas is greater than 1 and leader election is off"},
		{"flags: {cloud-provider: clusterapi}\ncloudConfig: |\n  kind: Config", "cloudConfig is a kubeconfig with flags.cloud-provider: clusterapi"},
		{"flags: {cloud-provider: externalgrpc}\ncloudConfig: address\ncloudConfigSecret: {name: s}", "cloudConfig and cloudConfigSecret.name exclude each other"},
		{"cloudConfigSecret: {name: s}", "flags.cloud-provider and cloudConfig go together"},
		{"flags: {cloud-provider: simulated}", "flags.cloud-provider and cloudConfig go together"},
		{"shadow: {enabled: true}\nflags: {cloud-provider: simulated}", "flags.cloud-provider and cloudConfig go together"},
		{"shadow: {enabled: true}\nflags: {mode: autoscaler}", "shadow.enabled and flags.mode exclude each other"},
		{"flags: {shadow: true}", "'shadow' not allowed"},
		{"flags: {mode: autoscaler}", "flags.mode: autoscaler does nothing but change nodes, and nothing says where they come from"},
		{"flags: {surge: true}", "flags.surge: true replaces pods of nodes that are removed, and nothing says where nodes come from"},
		{"flags: {mode: scheduler, cloud-provider: clusterapi}", "flags.mode: scheduler changes no nodes, and flags.cloud-provider says where nodes come from"},
		{"provider: {image: {repository: p, tag: v1}}\nflags: {mode: scheduler}", "flags.mode: scheduler changes no nodes, and provider.image.repository says where nodes come from"},
		{"hostNetwork: true\nextraEnv: [{name: POD_NAME, value: a}]", "extraEnv has POD_NAME, which the chart sets with hostNetwork"},
		{"shadow: {schedulerConfiguration: {kind: Pod}}", "/shadow/schedulerConfiguration/kind"},
		{"cloudConfig: groups", "flags.cloud-provider and cloudConfig go together"},
		{"fullnameOverride: Berth", "/fullnameOverride"},
		{"nameOverride: a-name-that-is-far-too-long", "/nameOverride"},
		{"serviceAccount: {create: false}", "serviceAccount.create is false and serviceAccount.name is empty"},
		{"serviceAccount: {create: false, name: a, annotations: {a: b}}", "serviceAccount.annotations is set and serviceAccount.create is false"},
		{"affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: []}}", "affinity.podAntiAffinity and antiAffinity: preferred exclude each other"},
		{"commonLabels: {app.kubernetes.io/name: other}", "commonLabels has app.kubernetes.io/name, by which the chart finds its pods"},
		{"podLabels: {app.kubernetes.io/instance: other}", "podLabels has app.kubernetes.io/instance, by which the chart finds its pods"},
		{"commonLabels: {team: a}\npodLabels: {team: b}", "podLabels and commonLabels both have team"},
		{"extraContainers: [{name: berth}]", "extraContainers has a container named berth"},
		{"extraVolumes: [{name: configuration}]", "extraVolumes has a volume named configuration"},
		{"extraEnv: [{value: a}]", "/extraEnv/0"},
		{"topologySpreadConstraints: [{topologyKey: zone}]", "/topologySpreadConstraints/0"},
		{"dnsPolicy: Cluster", "/dnsPolicy"},
		{"volumes: []", "'volumes' not allowed"},
		{"provider: {args: [a]}", "provider.args is set, and no provider runs without provider.image.repository"},
		{"provider: {socket: true}", "provider.socket is set, and no provider runs without provider.image.repository"},
		{"provider: {check: true}", "provider.check is set, and no provider runs without provider.image.repository"},
		{"provider: {tls: {secretName: s}}", "provider.tls or provider.image is set, and no provider runs"},
		{"provider: {image: {repository: p}}", "provider.image.repository has neither provider.image.tag nor provider.image.digest"},
		{"provider: {image: {repository: p, tag: v1}}\nflags: {cloud-provider: clusterapi}", "provider.image.repository runs a server of node groups beside Berth, and flags.cloud-provider is clusterapi"},
		{"provider: {image: {repository: p, tag: v1}}\ncloudConfig: a", "remove cloudConfig and cloudConfigSecret.name"},
		{"provider: {image: {repository: p, tag: v1}}\nhostNetwork: true", "with hostNetwork everything on the node reaches the provider's port"},
		{"provider: {image: {repository: p, tag: v1}, port: 10259}", "provider.port and flags.secure-port are both 10259"},
		{"provider: {image: {repository: p, tag: v1}, args: [--address=127.0.0.1:8087]}", "provider.args has --address=127.0.0.1:8087, and Berth connects to provider.port, which is 8086"},
		{"provider: {image: {repository: p, tag: v1}, port: 8087, args: ['-address=localhost:8086']}", "provider.args has -address=localhost:8086, and Berth connects to provider.port, which is 8087"},
		{"provider: {image: {repository: p, tag: v1}, args: [--address, ':8086']}", "write --address=HOST:PORT as one"},
		{"provider: {image: {repository: p, tag: v1}, args: ['--address=:8086']}", "provider.args has --address=:8086, and without provider.tls.secretName whoever reaches that address can remove nodes"},
		{"provider: {image: {repository: p, tag: v1}, args: ['--address=0.0.0.0:8086']}", "provider.args has --address=0.0.0.0:8086, and without provider.tls.secretName"},
		{"provider: {image: {repository: p, tag: v1}, socket: true, args: ['--address=127.0.0.1:8086']}", "provider.args has --address=127.0.0.1:8086, and provider.socket has Berth connect to a socket"},
		{"provider: {timeout: soon}", "/provider/timeout"},
		{"schedulerNamePolicy: {failurePolicy: Open}", "/schedulerNamePolicy/failurePolicy"},
		{"schedulerNamePolicy: {enabled: true}", "schedulerNamePolicy.namespaceSelector selects the namespace kube-system"},
		{"schedulerNamePolicy: {namespaceSelector: {matchLabel: {}}}", "'matchLabel' not allowed"},
		{"schedulerNamePolicy: {enabled: true, schedulerName: other}", "schedulerNamePolicy.schedulerName is other, and schedulerConfiguration.profiles has no such profile: it has berth"},
		{"schedulerNamePolicy: {enabled: true, schedulerName: default-scheduler}\nschedulerConfiguration: {profiles: []}", "schedulerNamePolicy.schedulerName is default-scheduler"},
		{"schedulerNamePolicy: {enabled: true}\nshadow: {enabled: true}", "schedulerNamePolicy.enabled gives pods to a Berth that places none"},
		{"schedulerNamePolicy: {enabled: true}\nflags: {mode: autoscaler, cloud-provider: clusterapi}", "schedulerNamePolicy.enabled gives pods to a Berth that places none"},
	} {
		values := map[string]any{}
		if err := yaml.Unmarshal([]byte(c.values), &values); err != nil {
			t.Fatal(err)
		}
		if _, err := template(t, values, current); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want …%s…", c.values, err, c.want)
		}
	}
}

// TestClustersOfOtherVersions: one that is too old is refused and named; one that is newer than what
// Berth is made for is taken, and named in what Helm prints. Vendors' versions count as others.
func TestClustersOfOtherVersions(t *testing.T) {
	if _, err := template(t, nil, "v1.32.9"); err == nil || !strings.Contains(err.Error(), "requires kubeVersion: >=1.33.0-0 which is incompatible with Kubernetes v1.32.9") {
		t.Errorf("on Kubernetes 1.32: %v", err)
	}
	for version, newer := range map[string]bool{"v1.33.0-eks-1": false, "v1.37.9": false, "v1.38.0": true, "v1.38.0-eks-1": true} {
		r, err := release(t, nil, version)
		if err != nil {
			t.Errorf("on Kubernetes %s: %v", version, err)
			continue
		}
		if want := "runs Kubernetes " + version + ", and Berth supports 1.33 to 1.37"; strings.Contains(r.Info.Notes, want) != newer {
			t.Errorf("on Kubernetes %s the notes are to say %q: %t, and are\n%s", version, want, newer, r.Info.Notes)
		}
	}
}

// TestNamesOfValues: rights and objects follow the names that values give.
func TestNamesOfValues(t *testing.T) {
	names := func(more string) string {
		v := valuesOf(t, "simulated")
		if err := yaml.Unmarshal([]byte(more), &v); err != nil {
			t.Fatal(err)
		}
		v["flags"].(map[string]any)["cloud-provider"] = "simulated"
		var out []string
		for _, o := range rendered(t, v) {
			if o.GetKind() == "Role" {
				out = append(out, id(o))
			}
		}
		return strings.Join(out, ", ")
	}
	for values, want := range map[string]string{
		"flags: {namespace: ns, status-config-map-name: status}":                                          "Role kube-system/berth-electing, Role kube-system/berth-scheduling, Role kube-system/berth-viewer, Role ns/berth-scaling",
		"flags: {write-status-configmap: false}":                                                          "Role kube-system/berth-electing, Role kube-system/berth-scaling, Role kube-system/berth-scheduling, Role kube-system/berth-viewer",
		"{flags: {write-status-configmap: false, leader-elect: false}, replicas: 1}":                      "Role kube-system/berth-scaling, Role kube-system/berth-scheduling, Role kube-system/berth-viewer",
		"schedulerConfiguration: {leaderElection: {resourceName: kube-scheduler, resourceNamespace: ns}}": "Role kube-system/berth-scaling, Role kube-system/berth-scheduling, Role kube-system/berth-viewer, Role ns/berth-electing, Role ns/berth-viewer",
	} {
		if got := names(values); got != want {
			t.Errorf("%s gives %s, want %s", values, got, want)
		}
	}
}

// TestViewers: people who ask Berth are bound to its paths, to the way to its pods, and to the Lease
// where that is in another namespace; without any, nobody is, and a subject of no kind is refused.
func TestViewers(t *testing.T) {
	bindings := func(text string) string {
		v := map[string]any{}
		if err := yaml.Unmarshal([]byte(text), &v); err != nil {
			t.Fatal(err)
		}
		var out []string
		for _, o := range rendered(t, v) {
			if strings.HasSuffix(o.GetKind(), "Binding") && o.GetName() == "berth-viewer" {
				subjects, _, _ := unstructured.NestedSlice(o.Object, "subjects")
				out = append(out, fmt.Sprintf("%s %d %s", id(o), len(subjects), subjects[0].(map[string]any)["name"]))
			}
		}
		return strings.Join(out, ", ")
	}
	const viewers = "viewers: [{kind: Group, name: developers, apiGroup: rbac.authorization.k8s.io}, {kind: ServiceAccount, name: robot, namespace: default}]"
	for values, want := range map[string]string{
		"{}":    "",
		viewers: "ClusterRoleBinding /berth-viewer 2 developers, RoleBinding kube-system/berth-viewer 2 developers",
		"schedulerConfiguration: {leaderElection: {resourceNamespace: ns}}\n" + viewers: "ClusterRoleBinding /berth-viewer 2 developers, RoleBinding kube-system/berth-viewer 2 developers, RoleBinding ns/berth-viewer 2 developers",
	} {
		if got := bindings(values); got != want {
			t.Errorf("%s gives %s, want %s", values, got, want)
		}
	}
	if _, err := template(t, map[string]any{"viewers": []any{map[string]any{"name": "carol"}}}, current); err == nil || !strings.Contains(err.Error(), "viewers") {
		t.Errorf("a viewer without a kind: %v", err)
	}
}

// TestFlagsOfValues: numbers, truths and lists of flags are written as Berth reads them.
func TestFlagsOfValues(t *testing.T) {
	for values, want := range map[string]string{
		"record-limit: 1073741824":                      `"--record-limit=1073741824"`,
		"memory-difference-ratio: 0.00001":              `"--memory-difference-ratio=0.00001"`,
		"consolidation: true":                           `"--consolidation=true"`,
		"startup-taint: [example.com/a, example.com/b]": "\"--startup-taint=example.com/a\"\n        - \"--startup-taint=example.com/b\"",
		"scan-interval: 10s":                            `"--scan-interval=10s"`,
		"cores-total: \"0:100\"":                        `"--cores-total=0:100"`,
	} {
		v := map[string]any{}
		if err := yaml.Unmarshal([]byte("flags: {"+values+"}"), &v); err != nil {
			t.Fatal(err)
		}
		got, err := template(t, v, current)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(got, want) {
			t.Errorf("flags: {%s} gives no %s:\n%s", values, want, got[strings.Index(got, "args:"):])
		}
	}
}

// TestAShadowOfNodesMayOnlyRead: beside any provider, and with priorities of groups, a shadow may
// list and watch, and nothing else.
func TestAShadowOfNodesMayOnlyRead(t *testing.T) {
	for provider, more := range map[string]string{"clusterapi": "{}", "externalgrpc": "cloudConfig: \"address: server:8086\"", "simulated": "cloudConfig: \"groups: []\""} {
		v := map[string]any{"shadow": map[string]any{"enabled": true}, "flags": map[string]any{"cloud-provider": provider, "expander": "priority"}}
		if err := yaml.Unmarshal([]byte(more), &v); err != nil {
			t.Fatal(err)
		}
		read := map[string]bool{}
		for _, o := range rendered(t, v) {
			if !strings.HasSuffix(o.GetKind(), "Role") || o.GetName() == "berth-viewer" {
				continue
			}
			rules, _, _ := unstructured.NestedSlice(o.Object, "rules")
			for _, r := range rules {
				verbs, _, _ := unstructured.NestedStringSlice(r.(map[string]any), "verbs")
				if !slices.Equal(verbs, []string{"list", "watch"}) {
					t.Errorf("%s: %s has %v of %v", provider, id(o), verbs, r)
				}
				resources, _, _ := unstructured.NestedStringSlice(r.(map[string]any), "resources")
				for _, name := range resources {
					read[name] = true
				}
			}
		}
		if !read["daemonsets"] || !read["configmaps"] || read["machinedeployments"] != (provider == "clusterapi") {
			t.Errorf("%s: may read %v", provider, slices.Sorted(maps.Keys(read)))
		}
	}
}

// TestFlowSchemas: outside of kube-system Berth's service account has the priority that
// kube-scheduler has, and its Lease that of leader elections. In kube-system the API server's own
// FlowSchemas say so.
func TestFlowSchemas(t *testing.T) {
	schemas := func(namespace, values string) string {
		v := map[string]any{}
		must(t, yaml.Unmarshal([]byte(values), &v))
		r, err := releaseIn(t, namespace, v, current)
		must(t, err)
		var out []string
		for _, o := range parse(t, []byte(r.Manifest)) {
			if o.GetKind() != "FlowSchema" {
				continue
			}
			f := flowcontrolv1.FlowSchema{}
			must(t, runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(o.Object, &f, true))
			rule := f.Spec.Rules[0]
			account, resources := rule.Subjects[0].ServiceAccount, rule.ResourceRules[0]
			out = append(out, fmt.Sprintf("%s: %s/%s %v in %v to %s", f.Name, account.Namespace, account.Name, resources.Resources, resources.Namespaces, f.Spec.PriorityLevelConfiguration.Name))
		}
		return strings.Join(out, ", ")
	}
	for _, x := range []struct{ namespace, values, want string }{
		{"kube-system", "{}", ""},
		{"own", "{}", "berth: own/berth [*] in [*] to workload-high, berth-leader-election: own/berth [leases] in [kube-system] to leader-election"},
		{"own", "schedulerConfiguration: {leaderElection: {resourceNamespace: own}}", "berth: own/berth [*] in [*] to workload-high, berth-leader-election: own/berth [leases] in [own] to leader-election"},
		{"own", "shadow: {enabled: true}", "berth: own/berth [*] in [*] to workload-high"},
	} {
		if got := schemas(x.namespace, x.values); got != x.want {
			t.Errorf("in %s with %s there are %q, want %q", x.namespace, x.values, got, x.want)
		}
	}
}
