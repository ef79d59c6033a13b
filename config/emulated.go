package config

import (
	"strings"

	"github.com/berthproject/berth/core/compat"
)

// EmulatedVersion is the pflag.Value of --emulated-version: the version of Kubernetes whose rules to
// follow, as "1.36" or, as kube-scheduler has it, "kube=1.36". The zero value stands for the API
// server's version.
type EmulatedVersion struct{ version compat.Version }

// Set implements pflag.Value.
func (e *EmulatedVersion) Set(text string) (err error) {
	if text = strings.TrimSpace(text); text == "" {
		*e = EmulatedVersion{}
		return nil
	}
	e.version, err = compat.Parse(text)
	return err
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
