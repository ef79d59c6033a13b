package charttest

import (
	"fmt"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestRightsToLookForOtherPrograms renders the chart with values of several kinds: Berth may read the
// Lease of a program that it would be the second one of, and with it the status of a Cluster
// Autoscaler, and no Lease or ConfigMap that it doesn't look at. Those that it writes aren't listed.
func TestRightsToLookForOtherPrograms(t *testing.T) {
	const (
		scheduler  = "kube-system leases kube-scheduler"
		autoscaler = "kube-system leases cluster-autoscaler"
		status     = "kube-system configmaps cluster-autoscaler-status"
	)
	flags := func(pairs ...any) map[string]any {
		out := map[string]any{}
		for i := 0; i < len(pairs); i += 2 {
			out[pairs[i].(string)] = pairs[i+1]
		}
		return map[string]any{"flags": out}
	}
	for name, x := range map[string]struct {
		values map[string]any
		want   []string
	}{
		"by default":                                   {nil, []string{scheduler}},
		"as a shadow":                                  {valuesOf(t, "shadow"), nil},
		"as a shadow that compares nodes":              {valuesOf(t, "shadow-nodes"), nil},
		"with nodes":                                   {valuesOf(t, "external"), []string{autoscaler, scheduler}},
		"with kube-scheduler's Lease":                  {valuesOf(t, "swap"), []string{autoscaler}},
		"with Cluster Autoscaler's Lease":              {valuesOf(t, "autoscaler"), nil},
		"with nodes, and a status of its own":          {flags("cloud-provider", "clusterapi", "status-config-map-name", "berth-status"), []string{status, autoscaler, scheduler}},
		"with nodes, and no status":                    {flags("cloud-provider", "clusterapi", "write-status-configmap", false), []string{status, autoscaler, scheduler}},
		"with nodes, beside an autoscaler elsewhere":   {flags("cloud-provider", "clusterapi", "namespace", "scaling"), []string{scheduler, "scaling leases cluster-autoscaler"}},
		"without leader election":                      {map[string]any{"replicas": 1, "flags": map[string]any{"leader-elect": false}}, []string{scheduler}},
		"with nodes, and with all of that allowed":     {flags("cloud-provider", "clusterapi", "allow-second-scheduler", true, "allow-second-autoscaler", true), nil},
		"scaling only, beside an autoscaler elsewhere": {flags("cloud-provider", "clusterapi", "mode", "autoscaler", "namespace", "scaling"), []string{"scaling leases cluster-autoscaler"}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := readOnly(t, rendered(t, x.values)); !slices.Equal(got, x.want) {
				t.Errorf("Berth may get %q, want %q", got, x.want)
			}
		})
	}
}

// readOnly returns the objects that Roles let get by name and do nothing else to, each as
// "NAMESPACE RESOURCE NAME", sorted.
func readOnly(t *testing.T, objects []*unstructured.Unstructured) (out []string) {
	t.Helper()
	for _, o := range objects {
		if o.GetKind() != "Role" || o.GetName() == "berth-viewer" {
			continue
		}
		rules, _, err := unstructured.NestedSlice(o.Object, "rules")
		must(t, err)
		for _, r := range rules {
			list := func(key string) []string {
				got, _, err := unstructured.NestedStringSlice(r.(map[string]any), key)
				must(t, err)
				return got
			}
			if !slices.Equal(list("verbs"), []string{"get"}) {
				continue
			}
			for _, resource := range list("resources") {
				for _, name := range list("resourceNames") {
					out = append(out, fmt.Sprintf("%s %s %s", o.GetNamespace(), resource, name))
				}
			}
		}
	}
	slices.Sort(out)
	return out
}
