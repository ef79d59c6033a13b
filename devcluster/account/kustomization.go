package account

import (
	"bytes"
	"fmt"
	"path"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"

	"github.com/berthproject/berth/deploy"
)

// This file builds as much of a kustomization of deploy/ as accounts and rights need: resources, and
// patches that change or delete them. kustomize itself would be compiled with every demo; the test
// compares with it.

// kustomization is a kustomization.yaml as "make chart" writes it.
type kustomization struct {
	APIVersion string
	Kind       string
	Resources  []string
	Patches    []struct{ Path string }
}

// manifest is an object, or a patch of one, as it is written.
// Patches match by kind, namespace and name, as kustomize has it.
type manifest struct {
	kind, namespace, name string
	deletes               bool // it is a patch that deletes the object
	json                  []byte
}

// patches reports whether a patch is for an object.
func (m *manifest) patches(o *manifest) bool {
	return m.kind == o.kind && m.namespace == o.namespace && m.name == o.name
}

// build returns the ServiceAccounts of a kustomization and the objects that give rights, sorted by
// kind, namespace and name.
// Sorted so that two builds compare.
func build(configuration string) ([]runtime.Object, error) {
	folder := "kustomize/base"
	if configuration != "base" {
		folder = "kustomize/overlays/" + configuration
	}
	manifests, err := manifestsOf(folder)
	if err != nil {
		return nil, fmt.Errorf("building %s: %w", folder, err)
	}
	slices.SortFunc(manifests, func(a, b *manifest) int {
		return strings.Compare(a.kind+"/"+a.namespace+"/"+a.name, b.kind+"/"+b.namespace+"/"+b.name)
	})
	var out []runtime.Object
	for _, m := range manifests {
		o, _, err := scheme.Codecs.UniversalDeserializer().Decode(m.json, nil, nil)
		if err != nil {
			return nil, fmt.Errorf("building %s: reading %s %s: %w", folder, m.kind, m.name, err)
		}
		out = append(out, o)
	}
	return out, nil
}

// manifestsOf returns the resources of a folder with its patches applied.
// It calls itself for folders.
func manifestsOf(folder string) ([]*manifest, error) {
	raw, err := deploy.Kustomize.ReadFile(path.Join(folder, "kustomization.yaml"))
	if err != nil {
		return nil, err
	}
	var k kustomization
	if err := yaml.UnmarshalStrict(raw, &k); err != nil { // a field that is new is not left out in silence
		return nil, err
	}
	var out []*manifest
	for _, r := range k.Resources {
		// A resource is a file or another folder.
		read := read
		if !strings.HasSuffix(r, ".yaml") {
			read = manifestsOf
		}
		more, err := read(path.Join(folder, r))
		if err != nil {
			return nil, err
		}
		out = append(out, more...)
	}
	for _, p := range k.Patches {
		changes, err := read(path.Join(folder, p.Path))
		if err != nil {
			return nil, err
		}
		for _, c := range changes {
			if out, err = apply(out, c); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

// read returns the manifests of a file that are about accounts and rights.
// Everything else in the files is passed over.
func read(file string) (out []*manifest, err error) {
	raw, err := deploy.Kustomize.ReadFile(file)
	if err != nil {
		return nil, err
	}
	for _, document := range bytes.Split(raw, []byte("\n---\n")) {
		head := struct {
			APIVersion string
			Kind       string
			Metadata   struct{ Namespace, Name string }
			Patch      string `json:"$patch"`
		}{}
		if err := yaml.Unmarshal(document, &head); err != nil {
			return nil, fmt.Errorf("reading %s: %w", file, err)
		}
		kind := schema.FromAPIVersionAndKind(head.APIVersion, head.Kind)
		if kind != v1.SchemeGroupVersion.WithKind("ServiceAccount") && kind.Group != rbacv1.GroupName {
			continue
		}
		m := &manifest{kind: head.Kind, namespace: head.Metadata.Namespace, name: head.Metadata.Name, deletes: head.Patch == "delete"}
		if m.json, err = yaml.YAMLToJSON(document); err != nil {
			return nil, fmt.Errorf("reading %s: %w", file, err)
		}
		out = append(out, m)
	}
	return out, nil
}

// apply applies a patch to the object that it is for.
// A patch that fits nothing is an error, as with kustomize.
func apply(objects []*manifest, change *manifest) ([]*manifest, error) {
	at := slices.IndexFunc(objects, change.patches)
	if at < 0 {
		return nil, fmt.Errorf("there is no %s %s to patch", change.kind, change.name)
	}
	if change.deletes {
		return slices.Delete(objects, at, at+1), nil
	}
	o, _, err := scheme.Codecs.UniversalDeserializer().Decode(objects[at].json, nil, nil)
	if err != nil {
		return nil, err
	}
	merged, err := strategicpatch.StrategicMergePatch(objects[at].json, change.json, o)
	if err != nil {
		return nil, fmt.Errorf("patching %s %s: %w", change.kind, change.name, err)
	}
	changed := *objects[at]
	changed.json = merged
	objects[at] = &changed
	return objects, nil
}
