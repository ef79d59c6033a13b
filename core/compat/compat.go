// Package compat names the versions of Kubernetes whose scheduling rules Berth implements. The rules
// of two versions differ in some ten places (docs/compatibility.md). The version is chosen once, where
// a core's configuration is made, and cluster.Schema hands it to the constructors of rules; nothing
// asks for it later.
package compat

import (
	"fmt"
	"strings"
)

// Version is the minor version of Kubernetes 1 whose kube-scheduler Berth follows, one of Versions.
type Version uint8

// The versions, and the one that is followed where nobody chooses.
const (
	V36    Version = 36
	V37    Version = 37
	Newest         = V37
)

// Versions returns all versions, the oldest first.
func Versions() []Version { return []Version{V36, V37} }

// Nearest returns the version to follow with an API server of Kubernetes 1.minor: its own, or the
// nearest that there is.
func Nearest(minor uint) Version { return Version(min(max(minor, uint(V36)), uint(Newest))) }

// Parse reads a version as kube-scheduler's --emulated-version has it: "1.37", "v1.37", "1.37.2" or
// "kube=1.37". An error names the versions that exist.
func Parse(text string) (Version, error) {
	parts := strings.SplitN(strings.TrimPrefix(strings.TrimPrefix(text, "kube="), "v"), ".", 3)
	if len(parts) >= 2 {
		for _, v := range Versions() {
			if parts[0]+"."+parts[1] == v.String() {
				return v, nil
			}
		}
	}
	return 0, fmt.Errorf("%q is not a version whose scheduling rules Berth implements; those are %s", text, Names())
}

// Names lists the versions for people: "1.36 and 1.37".
func Names() string {
	var names []string
	for _, v := range Versions() {
		names = append(names, v.String())
	}
	return strings.Join(names, " and ")
}

// String returns "1.37".
func (v Version) String() string { return fmt.Sprintf("1.%d", v) }

// MarshalText implements encoding.TextMarshaler, as String writes it.
func (v Version) MarshalText() ([]byte, error) { return []byte(v.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler, as Parse reads it.
func (v *Version) UnmarshalText(text []byte) (err error) {
	*v, err = Parse(string(text))
	return err
}
