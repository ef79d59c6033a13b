package charttest

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

// overlays are the kustomizations beside the base, each named as the file of the chart's
// values that it has the content of.
var overlays = []string{"autoscaler", "clusterapi", "external", "monitored", "shadow", "shadow-nodes", "simulated", "surge", "swap"}

// TestKustomizeHasWhatTheChartHas builds each kustomization, and compares its objects with
// those of the chart. The kustomizations are generated from the chart: the base is what it
// has without values, an overlay what others values add, change and leave out.
func TestKustomizeHasWhatTheChartHas(t *testing.T) {
	base := rendered(t, nil)
	if *rewrite {
		write(t, "base", kustomization("Kustomization", list("resources", "berth.yaml")), "berth.yaml", text(t, base))
		for _, name := range overlays {
			writeOverlay(t, name, base, rendered(t, valuesOf(t, name)))
		}
	}
	for _, name := range append([]string{""}, overlays...) {
		folder := "base"
		if name != "" {
			folder = filepath.Join("overlays", name)
		}
		built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), filepath.Join(root, "kustomize", folder))
		if err != nil {
			t.Fatal(err)
		}
		raw, err := built.AsYaml()
		if err != nil {
			t.Fatal(err)
		}
		got, want := parse(t, raw), rendered(t, valuesOf(t, name))
		if len(got) != len(want) || len(want) < 10 {
			t.Errorf("%s has %d objects, the chart %d", folder, len(got), len(want))
		}
		wanted := byID(want)
		for _, o := range got {
			if w := wanted[id(o)]; w == nil {
				t.Errorf("%s has %s, which the chart doesn't have", folder, id(o))
			} else if !equality.Semantic.DeepEqual(o.Object, w.Object) {
				t.Errorf("%s: %s is\n%s\nthat of the chart is\n%s", folder, id(o), text(t, []*unstructured.Unstructured{o}), text(t, []*unstructured.Unstructured{w}))
			}
		}
		if t.Failed() {
			t.Fatal("run go test . -rewrite in deploy/charttest")
		}
	}
	// There is no kustomization that nothing compares.
	folders, err := os.ReadDir(filepath.Join(root, "kustomize", "overlays"))
	if err != nil {
		t.Fatal(err)
	}
	values, err := filepath.Glob(filepath.Join(root, "chart", "ci", "*-values.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var names, files []string
	for _, f := range folders {
		names = append(names, f.Name())
	}
	for _, f := range values {
		files = append(files, strings.TrimSuffix(filepath.Base(f), "-values.yaml"))
	}
	slices.Sort(files)
	if !slices.Equal(names, overlays) || !slices.Equal(files, overlays) {
		t.Errorf("the overlays are %v, the files of values %v, and compared are %v", names, files, overlays)
	}
}

// writeOverlay writes the kustomization that makes of the base what is wanted.
func writeOverlay(t *testing.T, name string, base, want []*unstructured.Unstructured) {
	t.Helper()
	before := byID(base)
	var added, changed []*unstructured.Unstructured
	for _, o := range want {
		b := before[id(o)]
		delete(before, id(o))
		switch {
		case b == nil:
			added = append(added, o)
		case !equality.Semantic.DeepEqual(b.Object, o.Object):
			changed = append(changed, &unstructured.Unstructured{Object: patching(b.Object, o.Object)})
		}
	}
	for _, key := range slices.Sorted(maps.Keys(before)) { // what is left goes
		gone := before[key]
		o := &unstructured.Unstructured{Object: map[string]any{"$patch": "delete", "apiVersion": gone.GetAPIVersion(), "kind": gone.GetKind()}}
		o.SetName(gone.GetName())
		if gone.GetNamespace() != "" {
			o.SetNamespace(gone.GetNamespace())
		}
		changed = append(changed, o)
	}
	resources, patches := []string{"../../base"}, ""
	files := []string{}
	if len(added) > 0 {
		resources = append(resources, "berth.yaml")
		files = append(files, "berth.yaml", text(t, added))
	}
	if len(changed) > 0 {
		patches = "patches:\n- path: changes.yaml\n"
		files = append(files, "changes.yaml", text(t, changed))
	}
	write(t, filepath.Join("overlays", name), kustomization("Kustomization", list("resources", resources...)+patches), files...)
}

// patching returns what makes of an object another one: that one, with null for each field that
// only the first has. What is in lists is taken as it stands.
func patching(from, to map[string]any) map[string]any {
	out := maps.Clone(to)
	for key, old := range from {
		now, stays := to[key]
		if !stays {
			out[key] = nil
			continue
		}
		a, isMap := old.(map[string]any)
		b, isMapToo := now.(map[string]any)
		if isMap && isMapToo {
			out[key] = patching(a, b)
		}
	}
	return out
}

func kustomization(kind, content string) string {
	return fmt.Sprintf("# Generated from the chart: make chart\napiVersion: kustomize.config.k8s.io/v1beta1\nkind: %s\n%s", kind, content)
}

func list(key string, items ...string) string {
	return key + ":\n- " + strings.Join(items, "\n- ") + "\n"
}

// write writes a folder anew: its kustomization, and further files as names and texts.
func write(t *testing.T, folder, kustomization string, files ...string) {
	t.Helper()
	dir := filepath.Join(root, "kustomize", folder)
	must(t, os.RemoveAll(dir))
	must(t, os.MkdirAll(dir, 0o755))
	must(t, os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte(kustomization), 0o644))
	for i := 0; i < len(files); i += 2 {
		must(t, os.WriteFile(filepath.Join(dir, files[i]), []byte("# Generated from the chart: make chart\n"+files[i+1]), 0o644))
	}
}

func byID(objects []*unstructured.Unstructured) map[string]*unstructured.Unstructured {
	out := map[string]*unstructured.Unstructured{}
	for _, o := range objects {
		out[id(o)] = o
	}
	return out
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
