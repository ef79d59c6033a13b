package main

import (
	"encoding/json"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/invopop/jsonschema"
	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/berthproject/berth/edge/api/v1alpha1"
	"github.com/berthproject/berth/sim/scenario"
)

// schema returns the JSON schema of scenarios, with the comments of the fields as descriptions.
func schema() ([]byte, error) {
	return schemaOf(&scenario.Scenario{}, "Scenario of berth simulate", false, leaf, "sim/scenario", "internal/simulateddevices", "internal/simulatedgroup")
}

// apiSchema returns the JSON schema of the answers of Berth's API: a property for each path.
func apiSchema() ([]byte, error) {
	return schemaOf(&v1alpha1.Answers{}, "Answers of /api/v1alpha1/, by path", true, apiLeaf, "edge/api/v1alpha1")
}

// leaveOut corrects the definitions of a type, and of all types of its fields and their items, where the library is too strict:
// a field with omitzero isn't required, and an item that is a pointer may be null.
func leaveOut(defs jsonschema.Definitions, t reflect.Type, seen map[reflect.Type]bool) {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map:
		leaveOut(defs, t.Elem(), seen)
		return
	case reflect.Struct:
	default:
		return
	}
	def := defs[t.Name()]
	if seen[t] {
		return
	}
	seen[t] = true
	for _, f := range reflect.VisibleFields(t) {
		leaveOut(defs, f.Type, seen)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if def == nil || f.Anonymous {
			continue
		}
		if strings.Contains(options, "omitzero") {
			def.Required = slices.DeleteFunc(def.Required, func(required string) bool { return required == name })
		}
		if f.Type.Kind() == reflect.Slice && f.Type.Elem().Kind() == reflect.Pointer {
			if list, ok := def.Properties.Get(name); ok {
				list.Items = &jsonschema.Schema{AnyOf: []*jsonschema.Schema{list.Items, {Type: "null"}}}
			}
		}
	}
}

// schemaOf returns the JSON schema of a value's type, with the comments that folders have as descriptions. An
// open one allows more fields.
func schemaOf(value any, title string, open bool, leaf func(reflect.Type) *jsonschema.Schema, folders ...string) ([]byte, error) {
	r := &jsonschema.Reflector{Anonymous: true, Mapper: leaf, AllowAdditionalProperties: open}
	for _, dir := range folders {
		// Paths are joined with that of this package, whose root they begin with.
		if err := r.AddGoComments("github.com/berthproject/berth/hack/generate", filepath.Join(root, dir)); err != nil {
			return nil, err
		}
	}
	s := r.Reflect(value)
	s.Title = title
	leaveOut(s.Definitions, reflect.TypeOf(value), map[reflect.Type]bool{})
	raw, err := json.MarshalIndent(s, "", "  ")
	return append(raw, '\n'), err
}

// apiLeaf returns the schema of a type of the API that isn't written as its fields are, nil for any other type.
func apiLeaf(t reflect.Type) *jsonschema.Schema {
	switch t {
	case reflect.TypeFor[metav1.Duration]():
		return &jsonschema.Schema{Type: "string", Description: "A duration such as 1m30s."}
	case reflect.TypeFor[resource.Quantity]():
		return &jsonschema.Schema{Type: "string", Description: "A Kubernetes quantity such as 500m, 4 or 8Gi."}
	}
	return nil
}

// leaf returns the schema of a type whose fields aren't listed, nil for any other type.
func leaf(t reflect.Type) *jsonschema.Schema {
	switch t {
	case reflect.TypeFor[metav1.Duration]():
		return &jsonschema.Schema{Type: "string", Description: "A duration such as 90s, 15m or 2h.", Pattern: `^([0-9.]+(ns|us|µs|ms|s|m|h))+$|^0$`}
	case reflect.TypeFor[resource.Quantity]():
		return &jsonschema.Schema{Description: "A Kubernetes quantity such as 500m, 4 or 8Gi.", OneOf: []*jsonschema.Schema{{Type: "string"}, {Type: "number"}}}
	case reflect.TypeFor[v1.PodTemplateSpec]():
		return &jsonschema.Schema{Type: "object", Description: "A Kubernetes PodTemplateSpec."}
	case reflect.TypeFor[v1.Taint]():
		return &jsonschema.Schema{Type: "object", Description: "A Kubernetes Taint."}
	case reflect.TypeFor[v1.ContainerImage]():
		return &jsonschema.Schema{Type: "object", Description: "A Kubernetes ContainerImage."}
	case reflect.TypeFor[resourcev1.ResourceClaimSpec](), reflect.TypeFor[resourcev1.DeviceAttribute](), reflect.TypeFor[resourcev1.DeviceCapacity](),
		reflect.TypeFor[resourcev1.DeviceTaint](), reflect.TypeFor[resourcev1.DeviceToleration]():
		return &jsonschema.Schema{Type: "object", Description: "A Kubernetes " + t.Name() + "."}
	}
	return nil
}
