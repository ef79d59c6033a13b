package scaleup

import (
	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/devices"
	"github.com/berthproject/berth/internal/test/testkit"
)

// randomDevices draws the devices of a group's new nodes, all of whose pools are whole, and puts classes
// and taint rules into the state.
func randomDevices(t *rapid.T, state *cluster.State) *devices.Template {
	var declared []resourcev1.ResourceSlice
	for _, o := range testkit.RandomDevices(t, []*v1.Node{testkit.Node("t").Obj()}) {
		s, ok := o.(*resourcev1.ResourceSlice)
		switch {
		case !ok:
			state.SetObject(o)
		case s.Spec.NodeName != nil && s.Spec.PerDeviceNodeSelection == nil && !oldSlice(s):
			declared = append(declared, *s)
		}
	}
	return devices.NewTemplate(declared)
}

// oldSlice reports whether a slice is left of an older generation.
func oldSlice(s *resourcev1.ResourceSlice) bool {
	return len(s.Name) > 4 && s.Name[len(s.Name)-4:] == "-old"
}

// randomClaim draws what pods of a shape claim; nil for nothing.
func randomClaim(t *rapid.T) *resourcev1.ResourceClaim {
	if testkit.Uniform(t, 2, "claims") == 0 {
		return nil
	}
	of := []string{"gpus", "gpus", "nics", "parts", "shares", "any", "large"}
	request := func(name string) *testkit.RequestBuilder {
		r := testkit.Request(name, of[testkit.Uniform(t, len(of), "class")])
		switch testkit.Uniform(t, 6, "how many") {
		case 0:
			r.Exactly.AllocationMode, r.Exactly.Count = resourcev1.DeviceAllocationModeAll, 0
		case 1:
			r.Exactly.Count = 2
		}
		return r
	}
	switch testkit.Uniform(t, 3, "requests") {
	case 0:
		return testkit.ResourceClaim("c", request("q0"), request("q1")).Obj()
	case 1:
		return testkit.ResourceClaim("c", testkit.FirstAvailable("q0", request("x"), request("y"))).Obj()
	}
	return testkit.ResourceClaim("c", request("q0")).Obj()
}

// claimFor lets a pod have a claim of its own, like one that was drawn.
func claimFor(state *cluster.State, pod *testkit.PodBuilder, like *resourcev1.ResourceClaim) {
	if like == nil {
		return
	}
	c := like.DeepCopy()
	c.Name, c.UID = pod.Name+"-claim", pod.UID+"-claim"
	c.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID, Controller: new(true)}}
	state.SetObject(c)
	pod.Spec.ResourceClaims = []v1.PodResourceClaim{{Name: "devices", ResourceClaimName: &c.Name}}
}
