package conformance_test

import (
	"regexp"
	"slices"

	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berthproject/berth/devcluster/oracle"
)

// This file has what the comparison with kube-scheduler 1.36 leaves out about devices. Berth has the
// allocator of 1.37 for both versions (docs/compatibility.md):
//
//	counters  1.36 reads slices with shared counters for every node, and tells the counters of two drivers'
//	          pools of one name not apart: pools with counters are left out
//	capacity  1.36 passes over devices whose capacity can't be compared: claims that ask for capacity are left
//	          out
//	all       1.36 leaves out of a request for all devices those that several claims may have and that have too
//	          little capacity left, whether or not it asks for capacity, and allocates the others; 1.37 finds
//	          that not all can be had: where such devices are published, claims for all devices are left out
//	distinct  1.36 compares a device only with those of other requests, for a constraint that says in which
//	          attribute devices have to differ: claims with such a constraint are left out
//	errors    1.36 names no device when a selector fails, and gives no advice; it names no request when a
//	          claim asks for more devices than one may have
//	config    1.37 leaves the requests of a config empty that is for all of them

// dropNewDevices takes out of a cluster what the allocators of the two versions read differently.
func dropNewDevices(c *oracle.Cluster) {
	counted, shared := map[[2]string]bool{}, false
	for _, o := range c.Objects {
		if s, ok := o.(*resourcev1.ResourceSlice); ok {
			if usesCounters(s) {
				counted[[2]string{s.Spec.Driver, s.Spec.Pool.Name}] = true
			}
			shared = shared || slices.ContainsFunc(s.Spec.Devices, func(d resourcev1.Device) bool {
				return d.AllowMultipleAllocations != nil && *d.AllowMultipleAllocations
			})
		}
	}
	c.Objects = slices.DeleteFunc(c.Objects, func(o metav1.Object) bool {
		switch x := o.(type) {
		case *resourcev1.ResourceSlice:
			return counted[[2]string{x.Spec.Driver, x.Spec.Pool.Name}]
		case *resourcev1.ResourceClaim:
			return asksForCapacity(x) || shared && asksForAll(x) || slices.ContainsFunc(x.Spec.Devices.Constraints, func(c resourcev1.DeviceConstraint) bool { return c.DistinctAttribute != nil })
		}
		return false
	})
}

func usesCounters(s *resourcev1.ResourceSlice) bool {
	return len(s.Spec.SharedCounters) > 0 || slices.ContainsFunc(s.Spec.Devices, func(d resourcev1.Device) bool { return len(d.ConsumesCounters) > 0 })
}

func asksForCapacity(c *resourcev1.ResourceClaim) bool {
	return slices.ContainsFunc(c.Spec.Devices.Requests, func(r resourcev1.DeviceRequest) bool {
		return r.Exactly != nil && r.Exactly.Capacity != nil ||
			slices.ContainsFunc(r.FirstAvailable, func(x resourcev1.DeviceSubRequest) bool { return x.Capacity != nil })
	})
}

func asksForAll(c *resourcev1.ResourceClaim) bool {
	const all = resourcev1.DeviceAllocationModeAll
	return slices.ContainsFunc(c.Spec.Devices.Requests, func(r resourcev1.DeviceRequest) bool {
		return r.Exactly != nil && r.Exactly.AllocationMode == all ||
			slices.ContainsFunc(r.FirstAvailable, func(x resourcev1.DeviceSubRequest) bool { return x.AllocationMode == all })
	})
}

// newWords are what 1.37 adds to the error of a selector.
var newWords = regexp.MustCompile(`(selector #\d+) on device \S+: (.*?)(\. consider using CEL optional chaining .*)?$`)

// tooMany are the words of a claim that asks for more devices than one may have, in both versions.
var tooMany = regexp.MustCompile(`(claim \S+?)(, request \S+)?: (adding|number of requested devices) \d+ (devices )?exceeds the claim limit of (\d+)(, with \d+ already accounted for)?`)

// wordedAs136 returns an outcome of Berth or kube-scheduler as both versions word it.
func wordedAs136(out *oracle.Outcome) *oracle.Outcome {
	words := func(text string) string {
		return tooMany.ReplaceAllString(newWords.ReplaceAllString(text, "$1: $2"), "$1: more than $5 devices")
	}
	out.Error, out.Message = words(out.Error), words(out.Message)
	for name, a := range out.Nodes {
		a.Error = words(a.Error)
		a.Messages = slices.Clone(a.Messages)
		for i := range a.Messages {
			a.Messages[i] = words(a.Messages[i])
		}
		a.Allocations = slices.Clone(a.Allocations)
		for i := range a.Allocations {
			config := slices.Clone(a.Allocations[i].Result.Devices.Config)
			for k := range config {
				config[k].Requests = nil
			}
			a.Allocations[i].Result.Devices.Config = config
		}
		out.Nodes[name] = a
	}
	return out
}
