package devices_test

import (
	"encoding/json"
	"fmt"
	"testing"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/berthproject/berth/core/compat"
	"github.com/berthproject/berth/core/devices"
	"github.com/berthproject/berth/internal/test/testkit"
)

// TestPropertyClaimsAreToldApart: what stands for two claims is the same exactly when the JSON of their requests and
// constraints is.
func TestPropertyClaimsAreToldApart(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		published := testkit.RandomDevices(t, []*v1.Node{testkit.Node("n").Zone("z0").Obj()})
		v := devices.NewInventory(nodes{}, devices.Features(compat.Newest))
		var claims []*resourcev1.ResourceClaim
		for _, o := range append(testkit.RandomDeviceClaims(t, published), testkit.RandomDeviceClaims(t, published)...) {
			claims = append(claims, o.(*resourcev1.ResourceClaim))
		}
		for i := range 3 {
			claims = append(claims, claim(fmt.Sprint("plain", i), int64(1+testkit.Uniform(t, 2, "count"))))
		}
		text := func(c *resourcev1.ResourceClaim) string {
			raw, err := json.Marshal([]any{c.Spec.Devices.Requests, c.Spec.Devices.Constraints})
			if err != nil {
				t.Fatal(err)
			}
			return string(raw)
		}
		for _, a := range claims {
			for _, b := range claims {
				if got, want := v.Wants(a) == v.Wants(b), text(a) == text(b); got != want {
					t.Fatalf("one for both: %t, want %t:\n%s\n%s", got, want, text(a), text(b))
				}
			}
		}
	})
}

// TestPropertyMadeSlicesAreTheAPIs: slices that are in no API, which share lists of devices, are told apart as slices of
// the API are, whose content is read each time.
func TestPropertyMadeSlicesAreTheAPIs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := nodes{{ObjectMeta: metav1.ObjectMeta{Name: "n"}}}
		made, served := devices.NewInventory(list, devices.Features(compat.Newest)), devices.NewInventory(list, devices.Features(compat.Newest))
		all := published("n", 6).Spec.Devices
		sets := []resourcev1.CounterSet{{Name: "a"}, {Name: "b"}}
		was := map[string][2]*resourcev1.ResourceSlice{}
		for range rapid.IntRange(1, 12).Draw(t, "steps") {
			s := published("n", 0)
			s.Name = fmt.Sprint("s", testkit.Uniform(t, 3, "name"))
			from := testkit.Uniform(t, 3, "from")
			s.Spec.Devices = all[from : from+testkit.Uniform(t, 4, "devices")]
			s.Spec.SharedCounters = sets[:testkit.Uniform(t, 3, "sets")]
			s.Spec.Pool.ResourceSliceCount = int64(1 + testkit.Uniform(t, 2, "of"))
			s.Spec.Driver = fmt.Sprint("driver", testkit.Uniform(t, 2, "driver"))
			switch testkit.Uniform(t, 4, "where") {
			case 0:
				s.Spec.NodeName, s.Spec.AllNodes = nil, new(true)
			case 1:
				s.Spec.NodeName, s.Spec.PerDeviceNodeSelection = nil, new(true)
			}
			real := s.DeepCopy()
			real.UID = types.UID("uid")
			made.SetSlice(s, was[s.Name][0])
			served.SetSlice(real, was[s.Name][1])
			was[s.Name] = [2]*resourcev1.ResourceSlice{s, real}
			made.Settle()
			served.Settle()
			if made.Digest(0) != served.Digest(0) {
				t.Fatalf("the slice %+v is another one than in the API", s.Spec)
			}
		}
	})
}
