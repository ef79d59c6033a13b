package nodegroup

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
)

// CSIDriversAnnotation is where a provider's template says which CSI drivers new nodes will
// have, and how many volumes of each they can attach: DRIVER=COUNT, separated by commas. It is
// Cluster Autoscaler's, for Cluster API.
const CSIDriversAnnotation = "capacity.cluster-autoscaler.kubernetes.io/csi-driver"

// attachLimitPrefix begins the name of the resource that says the same of one driver, as
// kubelets once published it.
const attachLimitPrefix = "attachable-volumes-csi-"

// CSIDrivers returns the CSI drivers that a template declares, by name. The annotation counts more
// than an allocatable resource. An error names the part that can't be read and what would be
// accepted.
func CSIDrivers(template *v1.Node) ([]storagev1.CSINodeDriver, error) {
	limits := map[string]int32{}
	for name, q := range template.Status.Allocatable {
		if driver, ok := strings.CutPrefix(string(name), attachLimitPrefix); ok {
			limits[driver] = int32(q.Value())
		}
	}
	for part := range strings.SplitSeq(template.Annotations[CSIDriversAnnotation], ",") {
		if part = strings.TrimSpace(part); part == "" {
			continue
		}
		driver, count, _ := strings.Cut(part, "=")
		n, err := strconv.ParseInt(count, 10, 32)
		if driver == "" || err != nil || n < 0 {
			return nil, fmt.Errorf("annotation %s has %q; it must be DRIVER=COUNT, such as ebs.csi.aws.com=25, several separated by commas", CSIDriversAnnotation, part)
		}
		limits[driver] = int32(n)
	}
	var out []storagev1.CSINodeDriver
	for driver, n := range limits {
		out = append(out, storagev1.CSINodeDriver{Name: driver, Allocatable: &storagev1.VolumeNodeResources{Count: &n}})
	}
	slices.SortFunc(out, func(x, y storagev1.CSINodeDriver) int { return strings.Compare(x.Name, y.Name) })
	return out, nil
}
