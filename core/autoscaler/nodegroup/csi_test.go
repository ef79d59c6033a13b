package nodegroup_test

import (
	"fmt"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/berthproject/berth/core/autoscaler/nodegroup"
)

// TestCSIDriversOfATemplate come by name, from the annotation before the resources.
func TestCSIDriversOfATemplate(t *testing.T) {
	for _, c := range []struct {
		name, annotation string
		resources        map[string]string
		want             string // or a part of the error
	}{
		{"nothing", "", nil, ""},
		{"one", "ebs.csi.aws.com=25", nil, "ebs.csi.aws.com:25"},
		{"several", "efs.csi.aws.com=16, ebs.csi.aws.com=25,", nil, "ebs.csi.aws.com:25 efs.csi.aws.com:16"},
		{"none may be attached", "disks=0", nil, "disks:0"},
		{"a resource", "", map[string]string{"attachable-volumes-csi-disks": "7", "cpu": "4"}, "disks:7"},
		{"both", "disks=3", map[string]string{"attachable-volumes-csi-disks": "7", "attachable-volumes-csi-files": "9"}, "disks:3 files:9"},
		{"no count", "disks", nil, `has "disks"; it must be DRIVER=COUNT, such as ebs.csi.aws.com=25, several separated by commas`},
		{"no driver", "=3", nil, `has "=3"; it must be DRIVER=COUNT`},
		{"no number", "files=1,disks=many", nil, `has "disks=many"; it must be DRIVER=COUNT`},
		{"negative", "disks=-1", nil, `has "disks=-1"; it must be DRIVER=COUNT`},
	} {
		n := &v1.Node{}
		n.Annotations = map[string]string{nodegroup.CSIDriversAnnotation: c.annotation}
		n.Status.Allocatable = v1.ResourceList{"cpu": resource.MustParse("1"), "memory": resource.MustParse("1Gi"), "pods": resource.MustParse("1")}
		for name, q := range c.resources {
			n.Status.Allocatable[v1.ResourceName(name)] = resource.MustParse(q)
		}
		drivers, err := nodegroup.CSIDrivers(n)
		var got []string
		for _, d := range drivers {
			got = append(got, fmt.Sprint(d.Name, ":", *d.Allocatable.Count))
		}
		invalid := (&nodegroup.Group{ID: "g", Max: 1, Template: n}).Validate()
		if err != nil {
			if !strings.Contains(err.Error(), c.want) || c.want == "" || invalid == nil || invalid.Error() != `node group "g": template `+err.Error() {
				t.Errorf("%s: got %v, and of the group %v; want an error with %q", c.name, err, invalid, c.want)
			}
		} else if strings.Join(got, " ") != c.want || invalid != nil {
			t.Errorf("%s: got %v, and of the group %v; want %q", c.name, got, invalid, c.want)
		}
	}
}
