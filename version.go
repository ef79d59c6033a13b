// Package berth has the version that the next release of Berth has, for its programs.
package berth

import (
	_ "embed"
	"strings"
)

//go:embed VERSION
var file string

// Version returns the content of the file VERSION: MAJOR.MINOR.PATCH, without a "v".
func Version() string { return strings.TrimSpace(file) }
