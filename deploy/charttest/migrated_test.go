package charttest

import (
	"os"
	"path/filepath"
	"testing"

	"sigs.k8s.io/yaml"
)

// TestMigratedValues renders the chart with what berth migrate cluster-autoscaler prints (cmd/berth/testdata/migrate).
func TestMigratedValues(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(root, "..", "cmd", "berth", "testdata", "migrate", "*.golden"))
	must(t, err)
	if len(files) < 3 {
		t.Fatalf("there are the files %v; are all found?", files)
	}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		must(t, err)
		values := map[string]any{}
		must(t, yaml.UnmarshalStrict(raw, &values))
		if len(rendered(t, values)) == 0 {
			t.Errorf("%s makes no object", file)
		}
	}
}
