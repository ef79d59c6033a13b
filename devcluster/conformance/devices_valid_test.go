package conformance_test

import (
	"fmt"
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/apis/resource"
	_ "k8s.io/kubernetes/pkg/apis/resource/install"
	"k8s.io/kubernetes/pkg/apis/resource/validation"
	"pgregory.net/rapid"

	"github.com/berthproject/berth/internal/test/testkit"
)

// TestPropertyRandomDevicesAreValid: an API server would admit each slice, class, rule and claim that
// random clusters have, and each status of a claim; and each later version that random changes bring.
func TestPropertyRandomDevicesAreValid(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		nodes := []*v1.Node{testkit.Node("n0").Obj(), testkit.Node("n1").Obj()}
		published := testkit.RandomDevices(rt, nodes)
		there := append(published, testkit.RandomDeviceClaims(rt, published)...)
		for _, o := range there {
			checkValid(rt, o)
		}
		for range 10 {
			o, gone := testkit.RandomDeviceChange(rt, nodes, there)
			checkValid(rt, o)
			there = slices.DeleteFunc(there, func(x metav1.Object) bool {
				return fmt.Sprintf("%T", x) == fmt.Sprintf("%T", o) && x.GetNamespace() == o.GetNamespace() && x.GetName() == o.GetName()
			})
			if !gone {
				there = append(there, o)
			}
		}
	})
}

func checkValid(t *rapid.T, o metav1.Object) {
	if errs := validate(t, o); len(errs) > 0 {
		t.Fatalf("%T %s: %v", o, o.GetName(), errs.ToAggregate())
	}
}

// validate returns what an API server has against an object.
func validate(t *rapid.T, o metav1.Object) field.ErrorList {
	switch x := o.(type) {
	case *resourcev1.ResourceSlice:
		return validation.ValidateResourceSlice(internal(t, x, &resource.ResourceSlice{}))
	case *resourcev1.DeviceClass:
		return validation.ValidateDeviceClass(internal(t, x, &resource.DeviceClass{}))
	case *resourcev1.DeviceTaintRule:
		return validation.ValidateDeviceTaintRule(internal(t, x, &resource.DeviceTaintRule{}))
	case *resourcev1.ResourceClaim:
		claim := internal(t, x, &resource.ResourceClaim{})
		claim.DeletionTimestamp = nil // devices are allocated before
		before := claim.DeepCopy()
		before.Status = resource.ResourceClaimStatus{}
		return append(validation.ValidateResourceClaim(before), validation.ValidateResourceClaimStatusUpdate(claim, before)...)
	}
	t.Fatalf("%T isn't an object of devices", o)
	return nil
}

// internal converts an object to the version in which API servers validate it.
func internal[T runtime.Object](t *rapid.T, o runtime.Object, into T) T {
	o = o.DeepCopyObject()
	legacyscheme.Scheme.Default(o)
	if err := legacyscheme.Scheme.Convert(o, into, nil); err != nil {
		t.Fatal(err)
	}
	return into
}
