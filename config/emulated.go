package config

import (
	"fmt"
	"strings"

	"github.com/berthproject/berth/core/compat"
)

// EmulatedVersion is the pflag.Value of --emulated-version: the version of Kubernetes whose rules to
// follow, as kube-scheduler takes it: "1.36" or "kube=1.36", since kube is its only component. The zero
// value stands for the API server's version.
type EmulatedVersion struct{ version compat.Version }

// Set implements pflag.Value.
func (e *EmulatedVersion) Set(text string) error {
	if text = strings.TrimSpace(text); text == "" {
		*e = EmulatedVersion{}
		return nil
	}
	v, err := compat.Parse(text)
	if err != nil {
		return err
	}
	if e.version != 0 && e.version != v {
		return fmt.Errorf("it is %s already; give one version", e.version)
	}
	e.version = v
	return nil
}

// String implements pflag.Value.
func (e *EmulatedVersion) String() string {
	if e.version == 0 {
		return ""
	}
	return e.version.String()
}

// Type implements pflag.Value.
func (*EmulatedVersion) Type() string { return "version" }

// Or returns the version that was set, or otherwise v.
func (e *EmulatedVersion) Or(v compat.Version) compat.Version {
	if e.version != 0 {
		return e.version
	}
	return v
}
