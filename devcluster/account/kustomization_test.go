package account

import (
	"io/fs"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"github.com/berthproject/berth/deploy"
)

// TestBuildIsKustomizes compares the accounts and rights of each configuration with those that
// kustomize builds.
func TestBuildIsKustomizes(t *testing.T) {
	for _, configuration := range Configurations {
		got, err := build(configuration)
		if err != nil {
			t.Fatal(err)
		}
		want := kustomized(t, configuration)
		if len(got) != len(want) || len(got) == 0 {
			t.Errorf("%s has %d objects, want %d", configuration, len(got), len(want))
			continue
		}
		for i := range got {
			if !equality.Semantic.DeepEqual(got[i], want[i]) {
				t.Errorf("%s has\n%#v\nwant\n%#v", configuration, got[i], want[i])
			}
		}
	}
}

// kustomized returns what kustomize builds, in the order of build.
func kustomized(t *testing.T, configuration string) (out []runtime.Object) {
	t.Helper()
	files := filesys.MakeFsInMemory()
	if err := fs.WalkDir(deploy.Kustomize, "kustomize", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		raw, err := deploy.Kustomize.ReadFile(path)
		if err != nil {
			return err
		}
		return files.WriteFile(path, raw)
	}); err != nil {
		t.Fatal(err)
	}
	folder := "kustomize/base"
	if configuration != "base" {
		folder = "kustomize/overlays/" + configuration
	}
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(files, folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range built.Resources() {
		if r.GetKind() != "ServiceAccount" && r.GetGvk().Group != rbacv1.GroupName {
			continue
		}
		raw, err := r.AsYAML()
		if err != nil {
			t.Fatal(err)
		}
		o, _, err := scheme.Codecs.UniversalDeserializer().Decode(raw, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, o)
	}
	key := func(o runtime.Object) string {
		m := o.(metav1.Object)
		return o.GetObjectKind().GroupVersionKind().Kind + "/" + m.GetNamespace() + "/" + m.GetName()
	}
	slices.SortFunc(out, func(a, b runtime.Object) int { return strings.Compare(key(a), key(b)) })
	return out
}
