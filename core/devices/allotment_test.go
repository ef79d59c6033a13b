package devices_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"pgregory.net/rapid"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/devices"
	"github.com/berthproject/berth/internal/test/testkit"
)

// TestPropertyRememberedAllotmentsAreTheLibrarys asks about claims on nodes that are alike, whose pools have
// other names, and takes devices in between. What is remembered of one node is, on another, what the library
// itself allocates there when nothing is remembered.
func TestPropertyRememberedAllotmentsAreTheLibrarys(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := cluster.New(cluster.NewSchema())
		first := testkit.Node("m0").Zone("z0").Obj()
		published := testkit.RandomDevices(t, []*v1.Node{first})
		nodes := []*cluster.Node{}
		for i := range 4 {
			n := testkit.Node(fmt.Sprint("m", i)).Zone("z0").Obj()
			nodes = append(nodes, s.Node(s.SetNode(s.Schema.ParseNode(n, ""))))
			for _, o := range published {
				s.SetObject(likeFor(o, n.Name))
			}
		}
		how := devices.How{Steps: 5000}
		var claims []*resourcev1.ResourceClaim
		for _, o := range testkit.RandomDeviceClaims(t, published) {
			c := o.(*resourcev1.ResourceClaim)
			c.Status = resourcev1.ResourceClaimStatus{}
			claims = append(claims, c)
		}
		for step := range rapid.IntRange(1, 12).Draw(t, "steps") {
			c := claims[testkit.Uniform(t, len(claims), "claim")]
			n := nodes[testkit.Uniform(t, len(nodes), "node")]
			of := []*resourcev1.ResourceClaim{c}
			wants := s.Devices().Wants(c)
			got, failed := s.Devices().Allocate(s.Devices().Question(wants[:]), int32(n.Index), n.Object, of, s.DeviceClasses(), how)
			want, wantFailed := s.Devices().Allocate(0, int32(n.Index), n.Object, of, s.DeviceClasses(), how)
			if fmt.Sprint(failed) != fmt.Sprint(wantFailed) || !reflect.DeepEqual(got, want) {
				t.Fatalf("step %d, claim %s on %s:\nremembered %+v, %v\nthe library %+v, %v", step, c.Name, n.Name, got, failed, want, wantFailed)
			}
			if len(got) == 1 && testkit.Uniform(t, 2, "take") == 0 {
				taken := *c
				taken.Name, taken.Status.Allocation = fmt.Sprint("taken-", step), &got[0]
				s.SetObject(&taken)
			}
		}
	})
}

// likeFor returns an object that is for the node m0 as it is for another node: its slices and pools have
// that node's name.
func likeFor(o cluster.Object, node string) cluster.Object {
	slice, ok := o.(*resourcev1.ResourceSlice)
	if !ok || !strings.HasPrefix(slice.Name, "m0") {
		return o
	}
	out := slice.DeepCopy()
	out.Name, out.Spec.Pool.Name = node+slice.Name[2:], node+slice.Spec.Pool.Name[2:]
	if out.Spec.NodeName != nil {
		out.Spec.NodeName = &node
	}
	return out
}
