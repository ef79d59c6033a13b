package scenario

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
)

// TestWhatPodTemplatesEmbedIsRead reads a field of each struct that a type of a pod template embeds.
func TestWhatPodTemplatesEmbedIsRead(t *testing.T) {
	const text = `apiVersion: berth.dev/v1alpha1
kind: Scenario
spec:
  workload:
  - name: w
    count: 1
    template:
      spec:
        volumes: [{name: v, emptyDir: {sizeLimit: 1Gi}}, {name: c, configMap: {name: settings}}]
        containers:
        - name: c
          livenessProbe: {exec: {command: [look]}}
          envFrom: [{secretRef: {name: keys}}]
          env: [{name: E, valueFrom: {configMapKeyRef: {name: settings, key: k}}}]
`
	run, err := Parse("s.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	pod := &run.Spec.Workload[0].Template.Spec
	c := &pod.Containers[0]
	for what, read := range map[string]bool{
		"a volume":           pod.Volumes[0].EmptyDir != nil && pod.Volumes[0].EmptyDir.SizeLimit.Value() == 1<<30,
		"a volume's source":  pod.Volumes[1].ConfigMap != nil && pod.Volumes[1].ConfigMap.Name == "settings",
		"a probe":            c.LivenessProbe != nil && c.LivenessProbe.Exec != nil,
		"variables' source":  len(c.EnvFrom) == 1 && c.EnvFrom[0].SecretRef != nil && c.EnvFrom[0].SecretRef.Name == "keys",
		"a variable's value": c.Env[0].ValueFrom != nil && c.Env[0].ValueFrom.ConfigMapKeyRef != nil && c.Env[0].ValueFrom.ConfigMapKeyRef.Name == "settings",
	} {
		if !read {
			t.Errorf("%s isn't read", what)
		}
	}
	if _, err := Parse("s.yaml", []byte(strings.Replace(text, "command: [look]", "command: 1", 1))); err == nil || !strings.HasPrefix(err.Error(), "s.yaml:") {
		t.Errorf("a wrong probe is accepted, or without its file: %v", err)
	}
}

// TestTypesThatEmbedAreDecodedAsJSON walks over the types of a pod template: one that embeds a struct
// without a name in JSON is in the list of asJSON, or within one that is.
func TestTypesThatEmbedAreDecodedAsJSON(t *testing.T) {
	asJSON := []reflect.Type{
		reflect.TypeFor[v1.Volume](), reflect.TypeFor[v1.Probe](), reflect.TypeFor[v1.EphemeralContainer](),
		reflect.TypeFor[v1.EnvFromSource](), reflect.TypeFor[v1.EnvVarSource](),
	}
	if n := len(new(validator).embedding()); n != len(asJSON) {
		t.Errorf("%d types are decoded as JSON, %d are expected", n, len(asJSON))
	}
	seen := map[reflect.Type]bool{}
	var walk func(x reflect.Type)
	walk = func(x reflect.Type) {
		switch x.Kind() {
		case reflect.Pointer, reflect.Slice, reflect.Map:
			walk(x.Elem())
		case reflect.Struct:
			if seen[x] || slices.Contains(asJSON, x) || !strings.HasPrefix(x.PkgPath(), "k8s.io/api/") {
				return
			}
			seen[x] = true
			for f := range x.Fields() {
				if name, options, _ := strings.Cut(f.Tag.Get("json"), ","); f.Anonymous && name == "" && options != "inline" {
					t.Errorf("%s embeds %s, which the YAML library doesn't read", x, f.Type)
				}
				walk(f.Type)
			}
		}
	}
	walk(reflect.TypeFor[v1.PodTemplateSpec]())
	if len(seen) < 20 {
		t.Errorf("only %d types were looked at", len(seen))
	}
}
