package dynamicresources

import (
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"

	"github.com/berthproject/berth/core/cluster"
)

// Extended resources that devices provide (KEP-5004). A pod that requests some gets a claim of its own
// when it is placed on a node whose allocatable lacks them. Which container the devices are for is
// told by the pod's status.

// extended is a resource that devices of a class may provide, and the requests for it.
type extended struct {
	id       cluster.ResourceID
	requests []resourcev1.DeviceRequest
	mappings []v1.ContainerExtendedResourceRequest
}

// extendedOf returns the resources that a pod requests and a DeviceClass may back.
func extendedOf(pod *cluster.Pod) (out []cluster.ResourceID) {
	for id := range pod.Request.All() {
		if id.Scalar() && (isExtended(string(id.Name())) || isImplicit(id)) {
			out = append(out, id)
		}
	}
	return out
}

// isExtended reports whether a resource is a vendor's (IsExtendedResourceName of Kubernetes).
func isExtended(name string) bool {
	return strings.Contains(name, "/") && !strings.Contains(name, v1.ResourceDefaultNamespacePrefix) && !strings.HasPrefix(name, v1.DefaultResourceRequestsPrefix)
}

func isImplicit(id cluster.ResourceID) bool {
	return strings.HasPrefix(string(id.Name()), resourcev1.ResourceDeviceClassPrefix)
}

// extendedDemand returns what a pod requests of resources that device classes back, by name.
func extendedDemand(pod *cluster.Pod, state *cluster.State) (out []extended) {
	for _, id := range extendedOf(pod) {
		if class := state.DeviceClassOf(id.Name()); class != nil {
			x := extended{id: id}
			x.requests, x.mappings = requestsFor(pod.Object, id.Name(), class.Name)
			out = append(out, x)
		}
	}
	slices.SortFunc(out, func(a, b extended) int { return strings.Compare(string(a.id.Name()), string(b.id.Name())) })
	return out
}

// specialClaim returns a claim for extended resources, without a name. Its requests are sorted.
func specialClaim(list []extended) *resourcev1.ResourceClaim {
	c := &resourcev1.ResourceClaim{}
	for _, x := range list {
		c.Spec.Devices.Requests = append(c.Spec.Devices.Requests, x.requests...)
	}
	slices.SortFunc(c.Spec.Devices.Requests, func(a, b resourcev1.DeviceRequest) int { return strings.Compare(a.Name, b.Name) })
	return c
}

// requestsFor returns the requests of a pod's containers for a resource, and which container has
// devices of which request. Containers that live as long as the pod each have their own. Init
// containers that end before use what later containers have, and if that doesn't do, share one more
// request (createRequestsAndMappings of kube-scheduler).
func requestsFor(pod *v1.Pod, name v1.ResourceName, class string) (requests []resourcev1.DeviceRequest, mappings []v1.ContainerExtendedResourceRequest) {
	containers := slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers)
	ends := func(i int) bool {
		p := containers[i].RestartPolicy
		return i < len(pod.Spec.InitContainers) && (p == nil || *p != v1.ContainerRestartPolicyAlways)
	}
	staying := make([]*resourcev1.DeviceRequest, len(containers))
	for i := range containers {
		if !ends(i) {
			r, m := requestOf(i, &containers[i], name, class, nil)
			staying[i], mappings = r, append(mappings, m...)
		}
	}
	var largest *resourcev1.DeviceRequest
	var passing []v1.ContainerExtendedResourceRequest
	own := map[string]bool{} // requests of containers that end
	for i := range containers {
		if !ends(i) {
			continue
		}
		r, m := requestOf(i, &containers[i], name, class, staying[i:])
		passing = append(passing, m...)
		if r == nil {
			continue
		}
		own[r.Name] = true
		if largest == nil || largest.Exactly.Count < r.Exactly.Count {
			largest = r
		}
	}
	for i := range passing {
		if own[passing[i].RequestName] {
			passing[i].RequestName = largest.Name
		}
	}
	for _, r := range append([]*resourcev1.DeviceRequest{largest}, staying...) {
		if r != nil {
			requests = append(requests, *r)
		}
	}
	return requests, append(mappings, passing...)
}

// requestOf returns the request of a container for a resource, less what others have that it may use;
// nil when it needs none.
func requestOf(index int, c *v1.Container, name v1.ResourceName, class string, usable []*resourcev1.DeviceRequest) (*resourcev1.DeviceRequest, []v1.ContainerExtendedResourceRequest) {
	quantity, ok := c.Resources.Requests[name]
	if !ok {
		return nil, nil
	}
	want, ok := quantity.AsInt64()
	if !ok || want == 0 {
		return nil, nil
	}
	var mappings []v1.ContainerExtendedResourceRequest
	uses := func(request string) {
		mappings = append(mappings, v1.ContainerExtendedResourceRequest{ContainerName: c.Name, ResourceName: string(name), RequestName: request})
	}
	for _, r := range usable {
		if r == nil {
			continue
		}
		uses(r.Name)
		if want -= r.Exactly.Count; want <= 0 {
			return nil, mappings
		}
	}
	position := 0 // among the names of what the container requests
	for other := range c.Resources.Requests {
		if other < name {
			position++
		}
	}
	request := fmt.Sprintf("container-%d-request-%d", index, position)
	uses(request)
	return &resourcev1.DeviceRequest{Name: request, Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: class,
		AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: want}}, mappings
}
