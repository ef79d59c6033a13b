package testkit

import (
	"fmt"
	"hash/crc32"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/berthproject/berth/core/cluster"
)

// This file draws claims for devices and pods that use them. What must hold: an API server would admit
// each claim by itself, and nothing depends on the time of the test: claims were allocated in 1970 or
// will have been in 9999.

// sharedClaims are the names of claims that any pod may use.
var sharedClaims = []string{"r0", "r1", "r2", "r3", "r4", "r5"}

// claimingPods are the names of pods that have claims made of a template, and of which some have a
// claim for extended resources already.
var claimingPods = []string{"p0", "p1", "new0", "new1", "new2", "subject"}

// AdminNamespace is the namespace whose claims may ask for admin access, for which an API server wants
// the label resource.kubernetes.io/admin-access: "true".
const AdminNamespace = "other"

// RandomDeviceClaims draws the claims of a cluster in which these devices are published (RandomDevices):
// of all that random pods may use, most.
// Claims that are missing are as important as those that are there: pods wait for them.
func RandomDeviceClaims(t *rapid.T, published []cluster.Object) []cluster.Object {
	var out []cluster.Object
	for _, ns := range spaces {
		for _, name := range sharedClaims {
			if maybe(t, 97, "exists") {
				out = append(out, randomDeviceClaim(t, ns, name, published))
			}
		}
		for _, pod := range claimingPods {
			if maybe(t, 97, "made") {
				out = append(out, randomTemplateClaim(t, ns, pod, published))
			}
		}
	}
	for _, pod := range claimingPods { // kube-scheduler looks for it in all namespaces, and takes any of several
		if maybe(t, 12, "made for extended resources") {
			out = append(out, randomExtendedClaim(t, pick(t, spaces, "ns"), pod, published))
		}
	}
	return out
}

// randomTemplateClaim draws the claim that is made of a template for a pod, or that has its name.
// In three of a hundred draws it isn't the pod's own: kube-scheduler refuses to use a claim
// that somebody else made under that name.
func randomTemplateClaim(t *rapid.T, namespace, pod string, published []cluster.Object) *resourcev1.ResourceClaim {
	c := randomDeviceClaim(t, namespace, pod+"-devices", published)
	if maybe(t, 97, "of its pod") {
		c.OwnerReferences = ResourceClaim("").MadeFor(pod).Obj().OwnerReferences
	}
	return c
}

// randomDeviceClaim draws a claim: its requests, constraints and state.
// The same name may be drawn with other requests later: an API server wouldn't allow that
// of one claim, but of one that was deleted and made anew.
func randomDeviceClaim(t *rapid.T, namespace, name string, published []cluster.Object) *resourcev1.ResourceClaim {
	var requests []*RequestBuilder
	for i := range pick(t, []int{1, 1, 2, 3}, "requests") {
		requests = append(requests, randomRequest(t, namespace, fmt.Sprint("q", i)))
	}
	b := ResourceClaim(name, requests...).Namespaced(namespace)
	if maybe(t, 25, "constrained") {
		// Any device may have a root; the others are attributes of one driver.
		attribute := pick(t, []string{"topology.example/root", "topology.example/root", "gpu.example/model", "gpu.example/index"}, "attribute")
		var of []string
		if maybe(t, 40, "some requests") {
			of = []string{"q0"}
		}
		if maybe(t, 40, "distinct") {
			b.Distinct(attribute, of...)
		} else {
			b.Match(attribute, of...)
		}
	}
	if maybe(t, 12, "has a config") {
		b.Spec.Devices.Config = []resourcev1.DeviceClaimConfiguration{{DeviceConfiguration: randomConfig(name)}}
	}
	if maybe(t, 25, "allocated") {
		// What is allocated need not satisfy the requests: devices change after they were
		// given away.
		drawAllocation(t, b, published)
	}
	if maybe(t, 3, "terminating") {
		b.Terminating()
	}
	return b.Obj()
}

// randomRequest draws a request for devices of a class, or for the first of alternatives.
// Alternatives are of any class each, so that the first that is possible isn't always the
// first.
func randomRequest(t *rapid.T, namespace, name string) *RequestBuilder {
	if !maybe(t, 30, "alternatives") {
		r := randomExactly(t, name)
		if namespace == AdminNamespace && maybe(t, 10, "admin") {
			r.Admin()
		}
		return r
	}
	var of []*RequestBuilder
	for i := range 1 + Uniform(t, 3, "alternatives") {
		of = append(of, randomExactly(t, fmt.Sprint("s", i)))
	}
	return FirstAvailable(name, of...)
}

// randomExactly draws a request for devices of a class.
func randomExactly(t *rapid.T, name string) *RequestBuilder {
	// Classes that can't be satisfied would decide the fate of most pods if they were drawn
	// as often as the others.
	class := pick(t, []string{"gpus", "gpus", "gpus", "large", "nics", "parts", "parts", "shares", "shares", "any", "none", "odd", "absent"}, "class")
	if class == "none" || class == "odd" || class == "absent" { // most pods with it fit nowhere
		class = pick(t, []string{"gpus", "any", "any", "nics", class}, "class after all")
	}
	r := Request(name, class).Count(int64(pick(t, []int{1, 1, 1, 2, 3}, "count")))
	if maybe(t, 10, "all") {
		r.All()
	}
	if maybe(t, 25, "selects") {
		r.Where(pick(t, []string{
			`device.driver != "nic.example"`,
			`device.driver == "gpu.example" && device.attributes["gpu.example"].model == "a"`,
			`device.driver == "gpu.example" && device.attributes["gpu.example"].driverVersion.isGreaterThan(semver("1.9.9"))`,
			`"root" in device.attributes["topology.example"] && device.attributes["topology.example"].root == "r0"`,
			`device.driver != "share.example" || device.allowMultipleAllocations`,
			// Evaluation fails there, which must count as an error for the node, not as
			// false.
			`device.attributes["gpu.example"].model == "b"`, // fails for other drivers
		}, "expression"))
	}
	if maybe(t, 25, "tolerates") {
		r.Tolerate(pick(t, deviceTaints, "taint"))
	}
	// A share above 100 fits no device.
	if (class == "shares" || class == "any") && maybe(t, 60, "of the capacity") {
		r.Capacity("share", pick(t, []string{"5", "20", "30", "60", "110"}, "share"))
	}
	return r
}

// drawAllocation draws what a claim has been allocated, from where it is usable, and for whom.
// The extra device, of a pool that nobody publishes, stands for one that is gone.
func drawAllocation(t *rapid.T, b *ResourceClaimBuilder, published []cluster.Object) {
	devices := append(publishedDevices("q0", published), Allocation("q0", "gpu.example", "gone", "d0"))
	var chosen []resourcev1.DeviceRequestAllocationResult
	for i := range b.Spec.Devices.Requests {
		k := Uniform(t, len(devices), "allocated device")
		d := devices[k]
		d.Request = b.Spec.Devices.Requests[i].Name
		if of := b.Spec.Devices.Requests[i].FirstAvailable; len(of) > 0 {
			d.Request += "/" + of[Uniform(t, len(of), "chosen alternative")].Name
		}
		if d.ConsumedCapacity != nil {
			d.ShareID = new(shareID(b.Namespace, b.Name, i))
		}
		if x := b.Spec.Devices.Requests[i].Exactly; x != nil {
			d.AdminAccess = x.AdminAccess
		}
		// A device that isn't shared leaves the list, so that no two requests of a claim
		// have it.
		if chosen = append(chosen, d); d.ShareID == nil {
			devices = slices.Delete(devices, k, k+1)
		}
		if len(devices) == 0 {
			break
		}
	}
	b.Allocated(chosen...)
	// An allocation may say on which nodes it is usable; without a word it is everywhere.
	switch Uniform(t, 4, "usable") {
	case 0:
		b.OnNode(pick(t, []string{"n0", "n1", "n2"}, "on"))
	case 1:
		b.In(v1.LabelTopologyZone, pick(t, zones, "in"))
	}
	// The claim may be in use by the pod that the test is about, by another one, or by as
	// many as may use it at once.
	switch Uniform(t, 6, "reserved") {
	case 0:
		b.ReservedFor("someone")
	case 1:
		b.ReservedFor(pick(t, claimingPods, "reserved for"))
	case 2:
		if b.ReservedFor("subject"); maybe(t, 50, "full") {
			b.Full()
		}
	}
	drawBinding(t, b, chosen)
}

// shareID returns an ID, as an API server accepts it, for the i-th device of a claim.
// It depends on the arguments alone: a draw that is repeated must give the same cluster.
func shareID(namespace, name string, i int) types.UID {
	return types.UID(fmt.Sprintf("00000000-0000-4000-8000-0000%08x", crc32.ChecksumIEEE(fmt.Append(nil, namespace, "/", name, "/", i))))
}

// drawBinding draws how far devices with binding conditions are.
// Devices without such conditions are ready as soon as they are allocated.
func drawBinding(t *rapid.T, b *ResourceClaimBuilder, chosen []resourcev1.DeviceRequestAllocationResult) {
	if !slices.ContainsFunc(chosen, func(d resourcev1.DeviceRequestAllocationResult) bool { return d.BindingConditions != nil }) {
		return
	}
	const longAgo, inLongTime = 0, 253_370_764_800 // 1970 and 9999
	b.AllocatedAt(int64(pick(t, []int{longAgo, inLongTime}, "allocated at")))
	for _, d := range chosen {
		for _, c := range append(slices.Clone(d.BindingConditions), d.BindingFailureConditions...) {
			if maybe(t, 60, "condition is there") {
				b.Condition(d, c, pick(t, []metav1.ConditionStatus{metav1.ConditionTrue, metav1.ConditionFalse}, "condition"))
			}
		}
	}
}

// randomExtendedClaim draws a claim that a scheduler has made for a pod's extended resources, in an
// attempt that it didn't finish.
func randomExtendedClaim(t *rapid.T, namespace, pod string, published []cluster.Object) *resourcev1.ResourceClaim {
	b := ResourceClaim(pod+"-extended-resources-x", Request("container-0-request-0", "gpus")).Namespaced(namespace).ForExtended(pod)
	if maybe(t, 50, "allocated") {
		drawAllocation(t, b, published)
	}
	return b.Obj()
}

// AddDeviceClaims adds one to three claims to a pod: such as any pod may use, or the one that is made
// for it of a template.
// Rare ones name a claim that doesn't exist, or a template whose claim isn't made yet.
func AddDeviceClaims(t *rapid.T, p *v1.Pod) {
	b := &PodBuilder{Pod: *p}
	for range pick(t, []int{1, 1, 1, 2, 3}, "claims") {
		switch k := Uniform(t, 40, "claim"); {
		case k == 0:
			b.Claims("nowhere")
		case k == 1:
			b.TemplateClaim("later", "")
		case k == 2: // a template of which this pod needs no claim
			b.TemplateClaim("optional", "")
			b.Status.ResourceClaimStatuses = append(b.Status.ResourceClaimStatuses, v1.PodResourceClaimStatus{Name: "optional"})
		// The claims of a pod have different names, as the API server checks.
		case k < 20 && !slices.ContainsFunc(b.Spec.ResourceClaims, func(c v1.PodResourceClaim) bool { return c.Name == "devices" }):
			b.TemplateClaim("devices", p.Name+"-devices")
		default:
			name := pick(t, sharedClaims, "shared claim")
			if !slices.ContainsFunc(b.Spec.ResourceClaims, func(c v1.PodResourceClaim) bool { return c.Name == name }) {
				b.Claims(name)
			}
		}
	}
	*p = b.Pod
}

// AddExtendedResources adds requests for extended resources that classes of random clusters back, by
// their own names or by those that every class has.
func AddExtendedResources(t *rapid.T, p *v1.Pod) {
	// One that no class backs, absent, is left to node capacity: then the pod fits nowhere.
	names := []string{"example.com/gpu", "example.com/large", "example.com/share", resourcev1.ResourceDeviceClassPrefix + "gpus",
		resourcev1.ResourceDeviceClassPrefix + "nics", resourcev1.ResourceDeviceClassPrefix + "any", resourcev1.ResourceDeviceClassPrefix + "absent"}
	// A request of 0 asks for nothing, and must cost nothing.
	add := func(c *v1.Container) {
		if c.Resources.Requests == nil {
			c.Resources.Requests = v1.ResourceList{}
		}
		name := pick(t, names, "extended resource")
		if strings.HasSuffix(name, "absent") && maybe(t, 80, "not that") {
			name = names[0]
		}
		c.Resources.Requests[v1.ResourceName(name)] = resource.MustParse(pick(t, []string{"1", "1", "2", "0"}, "of it"))
	}
	for range 1 + Uniform(t, 2, "extended resources") {
		add(&p.Spec.Containers[Uniform(t, len(p.Spec.Containers), "container")])
	}
	if maybe(t, 20, "init container") {
		// Requests of an init container count beside those of the others if it goes on
		// running, and otherwise by the maximum.
		c := v1.Container{Name: "prepare"}
		if maybe(t, 50, "stays") {
			c.RestartPolicy = new(v1.ContainerRestartPolicyAlways)
		}
		add(&c)
		p.Spec.InitContainers = append(p.Spec.InitContainers, c)
	}
}
