package scenario

import (
	"fmt"

	"github.com/goccy/go-yaml"
	v1 "k8s.io/api/core/v1"
	kyaml "sigs.k8s.io/yaml"
)

// This file decodes the parts of pod templates that embed a struct without the option ",inline" in
// its tag: encoding/json takes the fields of that struct for the outer one's, the YAML library for
// unknown ones.

// embedding returns how values of these types are decoded.
func (v *validator) embedding() []yaml.DecodeOption {
	return []yaml.DecodeOption{
		asJSON[v1.Volume](v), asJSON[v1.Probe](v), asJSON[v1.EphemeralContainer](v), asJSON[v1.EnvFromSource](v), asJSON[v1.EnvVarSource](v),
	}
}

// asJSON decodes a type as encoding/json does. What can't be decoded stays as it is when something
// else has been reported.
func asJSON[T any](v *validator) yaml.DecodeOption {
	return yaml.CustomUnmarshaler(func(into *T, text []byte) error {
		if err := kyaml.UnmarshalStrict(text, into); err != nil && len(v.wrong) == 0 {
			return fmt.Errorf("%q: %w", text, err)
		}
		return nil
	})
}
