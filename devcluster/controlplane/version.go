package controlplane

import (
	"strings"
	_ "unsafe" // for go:linkname

	"k8s.io/component-base/version"
)

// This file makes the components report which version of Kubernetes they are. A release of
// Kubernetes sets the variables below with linker flags; without those a component says
// v0.0.0-master+$Format:%H$, which kubectl and other clients can't parse. The linker's flags
// would have to be given to every build of this binary and of every test binary that runs
// components; setting the variables when a component starts needs none.

//go:linkname gitVersion k8s.io/component-base/version.gitVersion
var gitVersion string

//go:linkname gitMajor k8s.io/component-base/version.gitMajor
var gitMajor string

//go:linkname gitMinor k8s.io/component-base/version.gitMinor
var gitMinor string

// Version is that of the module k8s.io/kubernetes in go.mod. (A test binary's build
// information doesn't list its modules.)
const Version = "v1.37.2"

// setVersion makes Version the one that a component reports.
func setVersion() error {
	parts := strings.Split(strings.TrimPrefix(Version, "v"), ".")
	gitVersion, gitMajor, gitMinor = Version, parts[0], parts[1]
	return version.SetDynamicVersion(Version)
}
