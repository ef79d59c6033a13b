package charttest

import (
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// valuesOfMigration returns the values that docs/migration.md tells people to install the chart
// with: all of them in place of kube-scheduler and Cluster Autoscaler, and what of them is
// exchanged in place of Cluster Autoscaler alone.
func valuesOfMigration(t *testing.T) (swap, autoscaler map[string]any) {
	t.Helper()
	page, err := os.ReadFile(filepath.Join(root, "..", "docs", "migration.md"))
	must(t, err)
	var out []map[string]any
	for _, block := range regexp.MustCompile("(?ms)^( *)```yaml\n(.*?)^ *```$").FindAllSubmatch(page, -1) {
		lines := strings.Split(string(block[2]), "\n")
		for i := range lines {
			lines[i] = strings.TrimPrefix(lines[i], string(block[1]))
		}
		v := map[string]any{}
		must(t, yaml.UnmarshalStrict([]byte(strings.Join(lines, "\n")), &v))
		out = append(out, v)
	}
	if len(out) != 2 {
		t.Fatalf("docs/migration.md has %d blocks of YAML, want those of both ways", len(out))
	}
	return out[0], out[1]
}

// TestMigration installs the chart with the values of docs/migration.md: Berth places the pods of
// kube-scheduler by kube-scheduler's Lease, or buys nodes for them by Cluster Autoscaler's, and may
// use that Lease and no other. The kustomizations of the page have the same values, and so has
// TestSwap of devcluster/e2e its rights.
func TestMigration(t *testing.T) {
	swap, exchanged := valuesOfMigration(t)
	autoscaler := maps.Clone(swap)
	maps.Copy(autoscaler, exchanged)
	for _, c := range []struct {
		name, lease string
		values      map[string]any
	}{{"swap", "kube-scheduler", swap}, {"autoscaler", "cluster-autoscaler", autoscaler}} {
		if want := valuesOf(t, c.name); !reflect.DeepEqual(c.values, want) {
			t.Errorf("%s: docs/migration.md has the values\n%v\nchart/ci/%s-values.yaml has\n%v", c.name, c.values, c.name, want)
		}
		objects := byID(rendered(t, c.values))
		text, _, _ := unstructured.NestedString(objects["ConfigMap kube-system/berth"].Object, "data", "scheduler.yaml")
		var file struct {
			Profiles []struct{ SchedulerName string }
		}
		must(t, yaml.Unmarshal([]byte(text), &file))
		if len(file.Profiles) != 1 || file.Profiles[0].SchedulerName != "default-scheduler" {
			t.Errorf("%s: the profiles are %+v, want one of default-scheduler", c.name, file.Profiles)
		}
		rules, _, _ := unstructured.NestedSlice(objects["Role kube-system/berth-electing"].Object, "rules")
		var leases []string
		for _, r := range rules {
			verbs, _, _ := unstructured.NestedStringSlice(r.(map[string]any), "verbs")
			names, _, _ := unstructured.NestedStringSlice(r.(map[string]any), "resourceNames")
			if slices.Contains(verbs, "update") {
				leases = append(leases, names...)
			}
		}
		if !slices.Equal(leases, []string{c.lease}) {
			t.Errorf("%s: Berth may use the Leases %v, want %s", c.name, leases, c.lease)
		}
	}
}
