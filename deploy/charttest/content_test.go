package charttest

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/chart/v2/lint/support"
	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"
)

// as reads an object into its type; unknown fields are errors.
func as[T any](t *testing.T, o *unstructured.Unstructured) *T {
	t.Helper()
	if o == nil {
		t.Fatalf("the chart has no %T", *new(T))
	}
	out := new(T)
	must(t, runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(o.Object, out, true))
	return out
}

// selects reports whether a selector that isn't empty takes labels.
func selects(t *testing.T, s *metav1.LabelSelector, of map[string]string) bool {
	t.Helper()
	selector, err := metav1.LabelSelectorAsSelector(s)
	must(t, err)
	return !selector.Empty() && selector.Matches(labels.Set(of))
}

// TestWhatTheChartHas reads what is installed without values: Berths that outlive a node, a drain
// and a shortage, that the kubelet can probe, that nobody reaches but by their port, and that have
// no privilege.
func TestWhatTheChartHas(t *testing.T) {
	objects := byID(rendered(t, nil))
	d := as[appsv1.Deployment](t, objects["Deployment kube-system/berth"])
	pods := d.Spec.Template
	if n := ptr.Deref(d.Spec.Replicas, 1); n != 2 || !selects(t, d.Spec.Selector, pods.Labels) {
		t.Errorf("there are %d replicas of %v, want 2 of %v", n, d.Spec.Selector, pods.Labels)
	}
	if got := pods.Spec.PriorityClassName; got != "system-cluster-critical" {
		t.Errorf("the priority class is %q", got)
	}
	pdb := as[policyv1.PodDisruptionBudget](t, objects["PodDisruptionBudget kube-system/berth"])
	if pdb.Spec.MaxUnavailable == nil || *pdb.Spec.MaxUnavailable != intstr.FromInt32(1) || !selects(t, pdb.Spec.Selector, pods.Labels) {
		t.Errorf("the budget is %+v, want one of the pods with %v to be unavailable", pdb.Spec, pods.Labels)
	}
	apart := pods.Spec.Affinity.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution
	if len(apart) != 1 || apart[0].PodAffinityTerm.TopologyKey != v1.LabelHostname || !selects(t, apart[0].PodAffinityTerm.LabelSelector, pods.Labels) {
		t.Errorf("the anti-affinity is %+v, want nodes of their own for the pods", apart)
	}

	if len(pods.Spec.Containers) != 1 {
		t.Fatalf("there are %d containers", len(pods.Spec.Containers))
	}
	c := pods.Spec.Containers[0]
	if len(c.Ports) != 1 || c.Ports[0].Name != "https" || !slices.Contains(c.Args, fmt.Sprint("--secure-port=", c.Ports[0].ContainerPort)) {
		t.Fatalf("the ports are %+v, and the arguments %q", c.Ports, c.Args)
	}
	for _, x := range []struct {
		name  string
		probe *v1.Probe
		path  string
	}{{"start-up", c.StartupProbe, "/livez"}, {"liveness", c.LivenessProbe, "/livez"}, {"readiness", c.ReadinessProbe, "/readyz"}} {
		if x.probe == nil || x.probe.HTTPGet == nil || x.probe.HTTPGet.Path != x.path || x.probe.HTTPGet.Port != intstr.FromString("https") || x.probe.HTTPGet.Scheme != v1.URISchemeHTTPS {
			t.Errorf("the probe for %s is %+v, want HTTPS %s of the port", x.name, x.probe, x.path)
		}
	}
	pod, own := pods.Spec.SecurityContext, c.SecurityContext
	if pod == nil || !ptr.Deref(pod.RunAsNonRoot, false) || ptr.Deref(pod.RunAsUser, 0) == 0 || pod.SeccompProfile == nil || pod.SeccompProfile.Type != v1.SeccompProfileTypeRuntimeDefault {
		t.Errorf("the pods' security context is %+v, want none that is root", pod)
	}
	if own == nil || !ptr.Deref(own.ReadOnlyRootFilesystem, false) || ptr.Deref(own.AllowPrivilegeEscalation, true) || own.Privileged != nil || own.RunAsNonRoot != nil || own.RunAsUser != nil ||
		own.Capabilities == nil || !slices.Equal(own.Capabilities.Drop, []v1.Capability{"ALL"}) || len(own.Capabilities.Add) > 0 {
		t.Errorf("the container's security context is %+v, want a read-only root and no capability", own)
	}

	policy := as[networkingv1.NetworkPolicy](t, objects["NetworkPolicy kube-system/berth"])
	if !selects(t, &policy.Spec.PodSelector, pods.Labels) || !slices.Equal(policy.Spec.PolicyTypes, []networkingv1.PolicyType{networkingv1.PolicyTypeIngress}) ||
		len(policy.Spec.Ingress) != 1 || len(policy.Spec.Ingress[0].Ports) != 1 || ptr.Deref(policy.Spec.Ingress[0].Ports[0].Port, intstr.IntOrString{}) != intstr.FromString("https") {
		t.Errorf("the network policy is %+v, want the pods' port https and nothing else let in", policy.Spec)
	}
	if objects["ServiceMonitor kube-system/berth"] != nil {
		t.Error("there is a ServiceMonitor, whose kind a cluster may lack")
	}
}

// TestWhatAMonitoredChartHas: the ServiceMonitor selects the Service, which selects the pods, and
// each names the other's port.
func TestWhatAMonitoredChartHas(t *testing.T) {
	objects := byID(rendered(t, valuesOf(t, "monitored")))
	pods := as[appsv1.Deployment](t, objects["Deployment kube-system/berth"]).Spec.Template
	service := as[v1.Service](t, objects["Service kube-system/berth"])
	if !selects(t, &metav1.LabelSelector{MatchLabels: service.Spec.Selector}, pods.Labels) || len(service.Spec.Ports) != 1 || service.Spec.Ports[0].TargetPort != intstr.FromString(pods.Spec.Containers[0].Ports[0].Name) {
		t.Errorf("the Service is %+v, want the port of the pods with %v", service.Spec, pods.Labels)
	}
	monitor := objects["ServiceMonitor kube-system/berth"]
	if monitor == nil {
		t.Fatal("there is no ServiceMonitor")
	}
	var spec struct {
		Spec struct {
			Selector  metav1.LabelSelector
			Endpoints []struct{ Port, Scheme, Path string }
		}
	}
	raw, err := json.Marshal(monitor.Object)
	must(t, err)
	must(t, json.Unmarshal(raw, &spec))
	if !selects(t, &spec.Spec.Selector, service.Labels) || monitor.GetLabels()["release"] != "prometheus" {
		t.Errorf("the ServiceMonitor selects %v and has the labels %v; the Service has %v", spec.Spec.Selector, monitor.GetLabels(), service.Labels)
	}
	var paths []string
	for _, e := range spec.Spec.Endpoints {
		paths = append(paths, e.Path)
		if e.Port != service.Spec.Ports[0].Name || e.Scheme != "https" {
			t.Errorf("the ServiceMonitor reads %+v, and the Service has the port %+v", e, service.Spec.Ports[0])
		}
	}
	if want := []string{"/metrics", "/metrics/resources"}; !slices.Equal(paths, want) {
		t.Errorf("the ServiceMonitor reads %q, want %q", paths, want)
	}
}

// TestAlertsAndDashboardOfTheChart: the PrometheusRule has all alerts, and the ConfigMap the dashboard, as the files
// have them. What looks like a template in them is Prometheus' own.
func TestAlertsAndDashboardOfTheChart(t *testing.T) {
	values := valuesOf(t, "monitored")
	values["grafanaDashboard"] = map[string]any{"enabled": true}
	objects := byID(rendered(t, values))
	raw, err := os.ReadFile(filepath.Join(root, "chart", "files", "alerts.yaml"))
	must(t, err)
	var alerts map[string]any
	must(t, yaml.Unmarshal(raw, &alerts))
	rule := objects["PrometheusRule kube-system/berth"]
	if rule == nil || !reflect.DeepEqual(rule.Object["spec"], alerts) || rule.GetLabels()["release"] != "prometheus" {
		t.Errorf("the PrometheusRule is\n%+v\nthe file has\n%+v", rule, alerts)
	}
	dashboard := as[v1.ConfigMap](t, objects["ConfigMap kube-system/berth-dashboard"])
	raw, err = os.ReadFile(filepath.Join(root, "chart", "files", "grafana-dashboard.json"))
	must(t, err)
	if dashboard.Data["berth.json"] != string(raw) || dashboard.Labels["grafana_dashboard"] != "1" {
		t.Errorf("the ConfigMap has the labels %v and a dashboard of %d bytes, the file has %d", dashboard.Labels, len(dashboard.Data["berth.json"]), len(raw))
	}
}

// TestTemplatesDependOnValuesAlone: ArgoCD and Flux render the chart again and again, without the cluster. No template
// looks something up there, takes the time or draws a random value: each rendering would differ from what is installed.
func TestTemplatesDependOnValuesAlone(t *testing.T) {
	impure := regexp.MustCompile(`\b(lookup|now|uuidv4|shuffle|htpasswd|bcrypt|rand[A-Z][A-Za-z]*|gen[A-Z][A-Za-z]*|getHostByName)\b`)
	for text, is := range map[string]bool{`{{ lookup "v1" "Secret" "a" "b" }}`: true, `{{ randAlphaNum 5 }}`: true, `{{ now | date "2006" }}`: true, `{{ .Values.nowhere }}`: false} {
		if impure.MatchString(text) != is {
			t.Errorf("whether %s depends on more than values: %t, want %t", text, !is, is)
		}
	}
	files, err := filepath.Glob(filepath.Join(root, "chart", "templates", "*"))
	must(t, err)
	for _, path := range files {
		if info, err := os.Stat(path); err != nil || info.IsDir() {
			continue
		}
		raw, err := os.ReadFile(path)
		must(t, err)
		for _, action := range regexp.MustCompile(`(?s)\{\{.*?\}\}`).FindAllString(string(raw), -1) {
			if !strings.HasPrefix(action, "{{/*") && !strings.HasPrefix(action, "{{- /*") && !strings.HasPrefix(action, "{{- fail") && impure.MatchString(action) {
				t.Errorf("%s: %s depends on more than values", path, action)
			}
		}
	}
	for _, name := range append([]string{""}, overlays...) {
		first, err := template(t, valuesOf(t, name), current)
		must(t, err)
		second, err := template(t, valuesOf(t, name), current)
		must(t, err)
		if first != second {
			t.Errorf("with the values %q two renderings differ", name)
		}
	}
}

// TestLint: Helm finds nothing wrong with the chart, with any of its files of values.
func TestLint(t *testing.T) {
	for _, name := range append([]string{""}, overlays...) {
		r := action.NewLint().Run([]string{filepath.Join(root, "chart")}, valuesOf(t, name))
		for _, m := range r.Messages {
			if m.Severity >= support.WarningSev {
				t.Errorf("with the values %q: %s", name, m)
			}
		}
		for _, err := range r.Errors {
			t.Errorf("with the values %q: %v", name, err)
		}
	}
}

// TestAnnotationsForArtifactHub: those that are lists can be read, and the image is the one that the chart installs.
func TestAnnotationsForArtifactHub(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join(root, "chart", "Chart.yaml"))
	must(t, err)
	var chart struct {
		AppVersion  string
		Annotations map[string]string
	}
	must(t, yaml.Unmarshal(raw, &chart))
	for _, name := range []string{"images", "links", "changes"} {
		var entries []map[string]any
		if err := yaml.Unmarshal([]byte(chart.Annotations["artifacthub.io/"+name]), &entries); err != nil || len(entries) == 0 {
			t.Errorf("artifacthub.io/%s has %v (%v)", name, entries, err)
		}
		if name == "images" && entries[0]["image"] != "ghcr.io/berthproject/berth:"+chart.AppVersion {
			t.Errorf("the image is %v, want the appVersion %s", entries[0]["image"], chart.AppVersion)
		}
	}
}
