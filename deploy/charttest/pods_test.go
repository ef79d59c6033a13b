package charttest

import (
	"maps"
	"reflect"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// This file reads what values say about the pods of the Deployment and about their account.

// chartOf returns the objects of the chart with values in YAML, and the Deployment's pods.
func chartOf(t *testing.T, values string) (map[string]*unstructured.Unstructured, v1.PodTemplateSpec) {
	t.Helper()
	v := map[string]any{}
	must(t, yaml.UnmarshalStrict([]byte(values), &v))
	objects := byID(rendered(t, v))
	return objects, as[appsv1.Deployment](t, objects["Deployment kube-system/berth"]).Spec.Template
}

// TestAnAccountOfOnesOwn: without serviceAccount.create the chart has no ServiceAccount, and all rights and the pods are
// for the one that is named.
func TestAnAccountOfOnesOwn(t *testing.T) {
	objects, pods := chartOf(t, `serviceAccount: {create: false, name: theirs}`)
	if pods.Spec.ServiceAccountName != "theirs" {
		t.Errorf("the pods have the account %q, want theirs", pods.Spec.ServiceAccountName)
	}
	bindings := 0
	for _, name := range slices.Sorted(maps.Keys(objects)) {
		switch o := objects[name]; o.GetKind() {
		case "ServiceAccount":
			t.Errorf("the chart has %s", name)
		case "RoleBinding", "ClusterRoleBinding":
			bindings++
			subjects, _, err := unstructured.NestedSlice(o.Object, "subjects")
			must(t, err)
			want := []any{map[string]any{"kind": "ServiceAccount", "name": "theirs", "namespace": namespace}}
			if !reflect.DeepEqual(subjects, want) {
				t.Errorf("%s is for %v, want %v", name, subjects, want)
			}
		}
	}
	if bindings < 2 {
		t.Errorf("the chart has %d bindings; are they found?", bindings)
	}
}

// TestSpreadConstraintsSelectThePods: a constraint without a labelSelector gets that of Berth's pods, and one that has a
// labelSelector keeps it.
func TestSpreadConstraintsSelectThePods(t *testing.T) {
	_, pods := chartOf(t, `topologySpreadConstraints:
- {maxSkew: 1, topologyKey: topology.kubernetes.io/zone, whenUnsatisfiable: DoNotSchedule}
- {maxSkew: 2, topologyKey: kubernetes.io/hostname, whenUnsatisfiable: ScheduleAnyway, labelSelector: {matchLabels: {a: b}}}`)
	got := pods.Spec.TopologySpreadConstraints
	if len(got) != 2 || got[0].TopologyKey != v1.LabelTopologyZone || got[1].TopologyKey != v1.LabelHostname || got[1].MaxSkew != 2 {
		t.Fatalf("the constraints are %+v, want the two of the values", got)
	}
	if !selects(t, got[0].LabelSelector, pods.Labels) {
		t.Errorf("the first constraint selects %v, want the pods with %v", got[0].LabelSelector, pods.Labels)
	}
	if want := map[string]string{"a": "b"}; !maps.Equal(got[1].LabelSelector.MatchLabels, want) {
		t.Errorf("the second constraint selects %v, want %v", got[1].LabelSelector, want)
	}
}

// TestAffinityStaysBesideTheAntiAffinity: affinity of the values and the chart's own anti-affinity are both in the pods.
func TestAffinityStaysBesideTheAntiAffinity(t *testing.T) {
	const affinity = `affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: kubernetes.io/arch, operator: In, values: [arm64]}]}]}}}`
	for anti, want := range map[string]struct{ preferred, required int }{"preferred": {1, 0}, "required": {0, 1}, "none": {0, 0}} {
		_, pods := chartOf(t, affinity+"\nantiAffinity: "+anti)
		a := pods.Spec.Affinity
		if a.NodeAffinity == nil || a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms[0].MatchExpressions[0].Values[0] != "arm64" {
			t.Errorf("antiAffinity: %s: the node affinity is %+v, want that of the values", anti, a.NodeAffinity)
		}
		var preferred, required int
		if p := a.PodAntiAffinity; p != nil {
			preferred, required = len(p.PreferredDuringSchedulingIgnoredDuringExecution), len(p.RequiredDuringSchedulingIgnoredDuringExecution)
		}
		if preferred != want.preferred || required != want.required {
			t.Errorf("antiAffinity: %s: there are %d preferred and %d required terms, want %d and %d", anti, preferred, required, want.preferred, want.required)
		}
	}
}

// TestFurtherContainersComeLast: kubectl logs and exec take a pod's first container, which stays Berth's.
func TestFurtherContainersComeLast(t *testing.T) {
	_, pods := chartOf(t, `extraContainers: [{name: logs, image: "logs:1"}, {name: proxy, image: "proxy:1"}]`)
	var names []string
	for _, c := range pods.Spec.Containers {
		names = append(names, c.Name)
	}
	if want := []string{"berth", "logs", "proxy"}; !slices.Equal(names, want) {
		t.Errorf("the containers are %q, want %q", names, want)
	}
	if len(pods.Spec.InitContainers) != 0 {
		t.Errorf("there are init containers: %+v", pods.Spec.InitContainers)
	}
}
