package charttest

import (
	"bytes"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/chart"
	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/loader"
	releasev1 "helm.sh/helm/v4/pkg/release/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// This file renders the chart as helm template does.

var rewrite = flag.Bool("rewrite", false, "write what is generated anew")

const namespace = "kube-system"

// current is the Kubernetes version that Berth has its rules from.
const current = "v1.37.2"

// root is the folder deploy/.
const root = ".."

func loadChart(t *testing.T) chart.Charter {
	t.Helper()
	c, err := loader.LoadDir(filepath.Join(root, "chart"))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// valuesOf returns the values of a file of chart/ci, none for the name "".
func valuesOf(t *testing.T, name string) map[string]any {
	t.Helper()
	out := map[string]any{}
	if name == "" {
		return out
	}
	raw, err := os.ReadFile(filepath.Join(root, "chart", "ci", name+"-values.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(raw, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// release returns what helm install berth deploy/chart --namespace kube-system would install on a
// cluster of a version.
func release(t *testing.T, values map[string]any, kubernetes string) (*releasev1.Release, error) {
	t.Helper()
	return releaseIn(t, namespace, values, kubernetes)
}

// releaseIn is release in another namespace.
func releaseIn(t *testing.T, namespace string, values map[string]any, kubernetes string) (*releasev1.Release, error) {
	t.Helper()
	i := action.NewInstall(action.NewConfiguration())
	i.DryRunStrategy, i.ReleaseName, i.Namespace = action.DryRunClient, "berth", namespace
	version, err := common.ParseKubeVersion(kubernetes)
	if err != nil {
		t.Fatal(err)
	}
	i.KubeVersion = version
	out, err := i.Run(loadChart(t), values)
	if err != nil {
		return nil, err
	}
	return out.(*releasev1.Release), nil
}

// template returns what helm template berth deploy/chart --namespace kube-system prints, for a
// cluster of a version.
func template(t *testing.T, values map[string]any, kubernetes string) (string, error) {
	t.Helper()
	r, err := release(t, values, kubernetes)
	if err != nil {
		return "", err
	}
	return r.Manifest, nil
}

// rendered returns the objects of the chart with some values, in the order of their names.
func rendered(t *testing.T, values map[string]any) []*unstructured.Unstructured {
	t.Helper()
	text, err := template(t, values, current)
	if err != nil {
		t.Fatal(err)
	}
	return parse(t, []byte(text))
}

// parse reads objects, without the two labels that say that Helm has made them.
func parse(t *testing.T, text []byte) (out []*unstructured.Unstructured) {
	t.Helper()
	for docs := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096); ; {
		o := &unstructured.Unstructured{}
		err := docs.Decode(&o.Object)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}
		if len(o.Object) == 0 {
			continue
		}
		labels := o.GetLabels()
		delete(labels, "helm.sh/chart")
		delete(labels, "app.kubernetes.io/managed-by")
		o.SetLabels(labels)
		out = append(out, o)
	}
	slices.SortFunc(out, func(a, b *unstructured.Unstructured) int { return strings.Compare(id(a), id(b)) })
	return out
}

// id names an object among all of a cluster.
func id(o *unstructured.Unstructured) string {
	return o.GetKind() + " " + o.GetNamespace() + "/" + o.GetName()
}

// text returns objects as YAML documents.
func text(t *testing.T, objects []*unstructured.Unstructured) string {
	t.Helper()
	var docs []string
	for _, o := range objects {
		raw, err := yaml.Marshal(o.Object)
		if err != nil {
			t.Fatal(err)
		}
		docs = append(docs, string(raw))
	}
	return strings.Join(docs, "---\n")
}
