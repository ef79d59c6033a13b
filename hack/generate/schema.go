package main

import (
	"encoding/json"
	"path/filepath"
	"reflect"
	"strings"

	"github.com/invopop/jsonschema"
	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berthproject/berth/sim/scenario"
)

// schema returns the JSON schema of scenarios, with the comments of the fields as descriptions.
func schema() ([]byte, error) {
	r := &jsonschema.Reflector{Anonymous: true, Mapper: leaf}
	for _, dir := range []string{"sim/scenario", "internal/simulateddevices", "internal/simulatedgroup"} {
		if err := r.AddGoComments("github.com/berthproject/berth/"+dir, filepath.Join(root, dir)); err != nil {
			return nil, err
		}
	}
	// The comments are found under the folder that they were read from.
	for key, text := range r.CommentMap {
		if _, rest, ok := strings.Cut(key, "../../"); ok {
			r.CommentMap["github.com/berthproject/berth/"+rest] = text
		}
	}
	s := r.Reflect(&scenario.Scenario{})
	s.Title = "Scenario of berth simulate"
	raw, err := json.MarshalIndent(s, "", "  ")
	return append(raw, '\n'), err
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
