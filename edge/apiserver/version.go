package apiserver

import (
	"fmt"
	"strings"

	utilversion "k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apimachinery/pkg/version"

	"github.com/berthproject/berth/core/compat"
)

// Berth is made for these minor versions of Kubernetes 1, and those between. With any other it runs
// all the same: all kinds that it must watch are far older, and of the others (CapacityBuffers,
// ProvisioningRequests) it does without those that an API server lacks.
const (
	oldestMinor = 33
	newestMinor = 37
)

// judgeVersion returns what a person should know of an API server of a version, "" of one that
// Berth is made for. Vendors' suffixes don't count.
func judgeVersion(v *version.Info) string {
	major, minor, ok := kubernetesMinor(v)
	madeFor := fmt.Sprintf("Berth supports Kubernetes 1.%d to 1.%d", oldestMinor, newestMinor)
	switch {
	case !ok:
		return fmt.Sprintf("the API server's version %q can't be parsed, and %s: check it with kubectl version", v.GitVersion, madeFor)
	case major < 1 || major == 1 && minor < oldestMinor:
		return fmt.Sprintf("the API server runs Kubernetes %s, and %s: Berth is untested with it; upgrade the cluster, or see what Berth would do with --shadow", v.GitVersion, madeFor)
	case major > 1 || minor > newestMinor:
		return fmt.Sprintf("the API server runs Kubernetes %s, and %s: Berth does not know newer scheduling rules and could place a pod in violation of one; use a newer Berth, or see what this one would do with --shadow", v.GitVersion, madeFor)
	}
	return ""
}

// followed returns the version whose rules to follow with an API server of a version: the newest when
// that can't be read.
func followed(v *version.Info) compat.Version {
	major, minor, ok := kubernetesMinor(v)
	if !ok || major != 1 {
		return compat.Newest
	}
	return compat.Nearest(minor)
}

// kubernetesMinor returns the major and minor version, of v.GitVersion ("v1.34.1-eks-abc") or else
// of v.Major and v.Minor ("33+"); not ok when neither can be read.
func kubernetesMinor(v *version.Info) (major, minor uint, ok bool) {
	for _, text := range []string{v.GitVersion, v.Major + "." + strings.TrimRight(v.Minor, "+")} {
		if parsed, err := utilversion.ParseGeneric(text); err == nil {
			return parsed.Major(), parsed.Minor(), true
		}
	}
	return 0, 0, false
}
