package conformance_test

import (
	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berthproject/berth/internal/test/testkit"
)

// This file has the cases about devices: which are chosen, which claims a pod must wait for, and what
// is said where none can be had.

// ready is a device with binding conditions that was allocated.
var ready = func() resourcev1.DeviceRequestAllocationResult {
	r := testkit.Allocation("q", driver, "n0", "d0")
	r.BindingConditions, r.BindingFailureConditions = []string{"example.com/ready"}, []string{"example.com/failed"}
	return r
}()

// shared returns a device of which claims consume shares of a hundred.
func shared(name string) *testkit.DeviceBuilder {
	return testkit.Device(name).Shared().Ranged("share", "100", "10", "5")
}

// consumed returns a claim "taken" that consumes so much of the only shared device of n0.
func consumed(share string) *resourcev1.ResourceClaim {
	r := testkit.Allocation("q", driver, "n0", "d0")
	r.ShareID = new(types.UID("share"))
	r.ConsumedCapacity = testkit.Request("q", "gpus").Capacity("share", share).Exactly.Capacity.Requests
	return testkit.ResourceClaim("taken", testkit.Request("q", "gpus")).Allocated(r).OnNode("n0").ReservedFor("other").Obj()
}

var deviceCases = []deviceCase{
	{
		name:    "the first device by the names of pool and slice",
		objects: objects(one().Obj(), slice("n0", plain("d1", "d0")...), testkit.ResourceSlice("a", driver, "z").OnNode("n0").Devices(plain("d9")...).Obj()),
		want:    "n0: ok c/q=gpu.example/n0/d1\nn1: DynamicResources: cannot allocate all claims",
	},
	{
		name:    "not one that another claim has",
		objects: objects(one().Obj(), slice("n0", plain("d0", "d1")...), takes("n0", "d0")),
		want:    "n0: ok c/q=gpu.example/n0/d1\nn1: DynamicResources: cannot allocate all claims",
	},
	{
		name:    "all are taken",
		objects: objects(one().Obj(), slice("n0", plain("d0", "d1")...), takes("n0", "d0", "d1")),
		want:    nothing,
	},
	{
		name:    "two claims of a pod get different devices",
		objects: objects(one().Obj(), testkit.ResourceClaim("e", testkit.Request("q", "gpus")).Obj(), slice("n0", plain("d0", "d1")...), slice("n1", plain("d0")...)),
		pod:     testkit.Pod("pod").Claims("e", "c"),
		want:    "n0: ok e/q=gpu.example/n0/d0 c/q=gpu.example/n0/d1\nn1: DynamicResources: cannot allocate all claims",
	},
	{
		name:    "an incomplete pool has no devices",
		objects: objects(one().Obj(), testkit.NodeSlice(driver, "n0").Of(2).Devices(plain("d0")...).Obj()),
		want:    nothing,
	},
	{
		name: "all devices of an incomplete pool end the attempt",
		objects: objects(testkit.ResourceClaim("c", testkit.Request("q", "gpus").All()).Obj(),
			testkit.NodeSlice(driver, "n0").Of(2).Devices(plain("d0")...).Obj(), slice("n1", plain("d0", "d1")...)),
		want: "n0: an error\nerror: running \"DynamicResources\" filter plugin: claim default/c, request q: asks for all devices, but resource pool gpu.example/n0 is currently being updated",
	},
	{
		name: "all devices that match",
		objects: objects(testkit.ResourceClaim("c", testkit.Request("q", "gpus").All()).Obj(), slice("n0", plain("d0", "d1")...), slice("n1", plain("d0", "d1")...),
			takes("n1", "d1")),
		want: "n0: ok c/q=gpu.example/n0/d0 c/q=gpu.example/n0/d1\nn1: DynamicResources: cannot allocate all claims",
	},
	{
		name: "a newer generation replaces an older",
		objects: objects(one().Obj(), slice("n0", plain("d0")...),
			testkit.ResourceSlice("later", driver, "n0").OnNode("n0").Generation(2).Devices(plain("d7")...).Obj()),
		want: "n0: ok c/q=gpu.example/n0/d7\nn1: DynamicResources: cannot allocate all claims",
	},
	{
		name: "a pool with a name twice is invalid",
		objects: objects(one().Obj(), testkit.ResourceSlice("a", driver, "n0").OnNode("n0").Of(2).Devices(plain("d0")...).Obj(),
			testkit.ResourceSlice("b", driver, "n0").OnNode("n0").Of(2).Devices(plain("d0")...).Obj()),
		want: "n0: DynamicResources: invalid resource pools were encountered\nn1: DynamicResources: cannot allocate all claims\n" + helpless,
	},
	{
		name:    "a pool of all nodes",
		objects: objects(one().Obj(), testkit.ResourceSlice("s", driver, "net").Everywhere().Devices(plain("d0")...).Obj()),
		want:    "n0: ok c/q=gpu.example/net/d0\nn1: ok c/q=gpu.example/net/d0",
	},
	{
		name:    "a pool of some nodes",
		objects: objects(one().Obj(), testkit.ResourceSlice("s", driver, "net").In(v1.LabelTopologyZone, "b").Devices(plain("d0")...).Obj()),
		want:    "n0: DynamicResources: cannot allocate all claims\nn1: ok c/q=gpu.example/net/d0",
	},
	{
		name: "a pool that leaves it to devices",
		objects: objects(one().Obj(), testkit.ResourceSlice("s", driver, "net").PerDevice().
			Devices(testkit.Device("d0").OnNode("n1"), testkit.Device("d1").In(v1.LabelTopologyZone, "a", "b"), testkit.Device("d2").Everywhere()).Obj()),
		want: "n0: ok c/q=gpu.example/net/d1\nn1: ok c/q=gpu.example/net/d0",
	},
	{
		name: "attributes of all types",
		objects: objects(testkit.ResourceClaim("c", testkit.Request("q", "gpus").Where(`device.attributes["gpu.example"].model == "b" && device.attributes["gpu.example"].healthy`,
			`device.attributes["gpu.example"].driverVersion.isGreaterThan(semver("1.9.0"))`, `device.capacity["gpu.example"].memory.compareTo(quantity("40Gi")) >= 0`,
			`device.attributes["gpu.example"].index > 1`)).Obj(),
			slice("n0", testkit.Device("d0").Attr("model", "b").Attr("healthy", true).Attr("driverVersion", testkit.Version("1.2.0")).Attr("index", 3).Capacity("memory", "40Gi"),
				testkit.Device("d1").Attr("model", "b").Attr("healthy", true).Attr("driverVersion", testkit.Version("2.0.0")).Attr("index", 2).Capacity("memory", "80Gi"))),
		want: "n0: ok c/q=gpu.example/n0/d1\nn1: DynamicResources: cannot allocate all claims",
	},
	{
		name:    "an expression that fails ends the attempt",
		objects: objects(testkit.ResourceClaim("c", testkit.Request("q", "gpus").Where(`device.attributes["gpu.example"].model == "b"`)).Obj(), slice("n0", plain("d0")...)),
		want: "n0: an error\nn1: DynamicResources: cannot allocate all claims\nerror: running \"DynamicResources\" filter plugin: claim default/c: " +
			"selector #0 on device gpu.example/n0/d0: CEL runtime error: no such key: model. consider using CEL optional chaining (.? followed by orValue()) or guarding the check with has() for optional fields",
		want36: "n0: an error\nn1: DynamicResources: cannot allocate all claims\nerror: running \"DynamicResources\" filter plugin: claim default/c: " +
			"selector #0: CEL runtime error: no such key: model",
	},
	{
		name:    "a class that doesn't exist",
		objects: objects(testkit.ResourceClaim("c", testkit.Request("q", "absent")).Obj(), slice("n0", plain("d0")...)),
		want: "n0: DynamicResources: request q: device class absent does not exist\nn1: DynamicResources: request q: device class absent does not exist\n" +
			helpless,
	},
	{
		name:    "admin access to a device that is taken",
		objects: objects(testkit.ResourceClaim("c", testkit.Request("q", "gpus").Admin()).Obj(), slice("n0", plain("d0")...), takes("n0", "d0")),
		want:    "n0: ok c/q=gpu.example/n0/d0 admin\nn1: DynamicResources: cannot allocate all claims",
	},
	{
		name: "the first alternative scores more",
		objects: objects(testkit.ResourceClaim("c", testkit.FirstAvailable("q", testkit.Request("two", "gpus").Count(2), testkit.Request("one", "gpus"))).Obj(),
			slice("n0", plain("d0", "d1")...), slice("n1", plain("d0")...)),
		want: "n0: ok c/q/two=gpu.example/n0/d0 c/q/two=gpu.example/n0/d1 score 8\nn1: ok c/q/one=gpu.example/n1/d0 score 7",
	},
	{
		name: "devices that are alike",
		objects: objects(testkit.ResourceClaim("c", testkit.Request("q", "gpus"), testkit.Request("p", "gpus")).Match("topology.example/root").Obj(),
			slice("n0", testkit.Device("d0").Attr("topology.example/root", "r0"), testkit.Device("d1").Attr("topology.example/root", "r1"), testkit.Device("d2").Attr("topology.example/root", "r1")),
			slice("n1", testkit.Device("d0").Attr("topology.example/root", "r0"), testkit.Device("d1"))),
		want: "n0: ok c/q=gpu.example/n0/d1 c/p=gpu.example/n0/d2\nn1: DynamicResources: cannot allocate all claims",
	},
	{
		name: "devices that differ",
		objects: objects(testkit.ResourceClaim("c", testkit.Request("q", "gpus").Count(2)).Distinct("topology.example/root").Obj(),
			slice("n0", testkit.Device("d0").Attr("topology.example/root", "r0"), testkit.Device("d1").Attr("topology.example/root", "r0"), testkit.Device("d2").Attr("topology.example/root", "r1"))),
		want: "n0: ok c/q=gpu.example/n0/d0 c/q=gpu.example/n0/d2\nn1: DynamicResources: cannot allocate all claims",
	},
	{
		name: "partitions consume what they share",
		objects: objects(one().Obj(), testkit.ResourceSlice("counters", driver, "n0").OnNode("n0").Of(2).Counters("memory", "gib", "40").Obj(),
			testkit.ResourceSlice("partitions", driver, "n0").OnNode("n0").Of(2).Devices(testkit.Device("whole").Consumes("memory", "gib", "40"),
				testkit.Device("half-0").Consumes("memory", "gib", "20"), testkit.Device("half-1").Consumes("memory", "gib", "20")).Obj(), takes("n0", "half-0")),
		want: "n0: ok c/q=gpu.example/n0/half-1\nn1: DynamicResources: cannot allocate all claims",
	},
	{
		name:    "the rest of a shared device",
		objects: objects(testkit.ResourceClaim("c", testkit.Request("q", "gpus").Capacity("share", "32")).Obj(), slice("n0", shared("d0")), consumed("65")),
		want:    "n0: ok c/q=gpu.example/n0/d0 share=35\nn1: DynamicResources: cannot allocate all claims",
	},
	{
		name:    "too little rest of a shared device",
		objects: objects(testkit.ResourceClaim("c", testkit.Request("q", "gpus").Capacity("share", "32")).Obj(), slice("n0", shared("d0")), consumed("70")),
		want:    nothing,
	},
	{
		// DRAFractionalCapacityRange needs --min-compatibility-version 1.37, which isn't the default.
		name: "shares of less than one are rounded up",
		objects: objects(testkit.ResourceClaim("c", testkit.Request("q", "gpus").Capacity("share", "1200m")).Obj(),
			slice("n0", testkit.Device("d0").Shared().Ranged("share", "10", "500m", "500m"))),
		want: "n0: ok c/q=gpu.example/n0/d0 share=2\nn1: DynamicResources: cannot allocate all claims",
	},
	{
		name: "taints and tolerations",
		objects: objects(testkit.ResourceClaim("c", testkit.Request("q", "gpus").Tolerate("example.com/kept")).Obj(),
			slice("n0", testkit.Device("d0").Taint("example.com/broken", "", resourcev1.DeviceTaintEffectNoSchedule), testkit.Device("d1").Taint("example.com/kept", "x", resourcev1.DeviceTaintEffectNoExecute)),
			slice("n1", testkit.Device("d0").Taint("example.com/broken", "", resourcev1.DeviceTaintEffectNone))),
		want: "n0: ok c/q=gpu.example/n0/d1\nn1: ok c/q=gpu.example/n1/d0",
	},
	{
		name: "a taint rule",
		objects: objects(one().Obj(), slice("n0", plain("d0", "d1")...), slice("n1", plain("d0")...),
			testkit.DeviceTaintRule("rule", driver, "", "d0", "example.com/broken", resourcev1.DeviceTaintEffectNoSchedule)),
		want:   "n0: ok c/q=gpu.example/n0/d1\nn1: DynamicResources: cannot allocate all claims",
		want36: "n0: ok c/q=gpu.example/n0/d0\nn1: ok c/q=gpu.example/n1/d0",
	},
	{
		name:    "devices that bind come last",
		objects: objects(one().Obj(), slice("n0", testkit.Device("d0").BindsWhen("example.com/ready", "example.com/failed")), testkit.ResourceSlice("z", driver, "z").OnNode("n0").Devices(plain("d9")...).Obj()),
		want:    "n0: ok c/q=gpu.example/z/d9\nn1: DynamicResources: cannot allocate all claims",
	},
	{
		name:    "a claim that is allocated here",
		objects: objects(one().Allocated(testkit.Allocation("q", driver, "n0", "d0")).OnNode("n0").ReservedFor("other").Obj(), slice("n1", plain("d0")...)),
		want:    "n0: ok\nn1: DynamicResources: resourceclaim not available on the node",
	},
	{
		name:    "a claim that is allocated where no node is",
		objects: objects(one().Allocated(testkit.Allocation("q", driver, "n9", "d0")).OnNode("n9").ReservedFor("pod").Obj(), slice("n1", plain("d0")...)),
		want:    "n0: DynamicResources: resourceclaim not available on the node\nn1: DynamicResources: resourceclaim not available on the node\ndeallocates default/c\n" + helpless,
	},
	{
		name:    "a claim that is allocated where no node is, for another pod",
		objects: objects(one().Allocated(testkit.Allocation("q", driver, "n9", "d0")).OnNode("n9").ReservedFor("other").Obj(), slice("n1", plain("d0")...)),
		want:    "n0: DynamicResources: resourceclaim not available on the node\nn1: DynamicResources: resourceclaim not available on the node\n" + helpless,
	},
	{
		// The scheduler doesn't count: the API server refuses to reserve it for one more.
		name:    "a claim that is in use by as many as may",
		objects: objects(one().Allocated(testkit.Allocation("q", driver, "n0", "d0")).OnNode("n0").Full().Obj()),
		want:    "n0: ok\nn1: DynamicResources: resourceclaim not available on the node",
	},
	{
		name:    "a claim that is being deleted",
		objects: objects(one().Terminating().Obj(), slice("n0", plain("d0")...)),
		want:    heldFor(`resourceclaim "c" is being deleted`),
	},
	{
		name:    "a claim that is missing",
		objects: objects(slice("n0", plain("d0")...)),
		want:    heldFor(`could not find ResourceClaim "default/c"`),
	},
	{
		name:    "a claim that isn't made yet",
		objects: objects(slice("n0", plain("d0")...)),
		pod:     testkit.Pod("pod").TemplateClaim("t", ""),
		want:    heldFor(`pod "default/pod": ResourceClaim not created yet`),
	},
	{
		name:    "a claim of the template's name that was made for another pod",
		objects: objects(one().MadeFor("other").Obj(), slice("n0", plain("d0")...)),
		pod:     testkit.Pod("pod").TemplateClaim("t", "c"),
		want:    heldFor("ResourceClaim default/c was not created for Pod default/pod (Pod is not owner)"),
	},
	{
		name:    "a claim that was made of a template",
		objects: objects(one().MadeFor("pod").Obj(), slice("n0", plain("d0")...)),
		pod:     testkit.Pod("pod").TemplateClaim("t", "c"),
		want:    "n0: ok c/q=gpu.example/n0/d0\nn1: DynamicResources: cannot allocate all claims",
	},
	{
		name:    "an extended resource by its name",
		objects: objects(slice("n0", plain("d0", "d1")...)),
		pod:     testkit.Pod("pod").Req("example.com/gpu", "2"),
		nodes:   func(_, n1 *testkit.NodeBuilder) { n1.Alloc("example.com/gpu", "4") },
		want:    "n0: ok <extended-resources>/container-0-request-0=gpu.example/n0/d0 <extended-resources>/container-0-request-0=gpu.example/n0/d1\nn1: ok",
	},
	{
		name:    "an extended resource by the name of its class",
		objects: objects(slice("n0", plain("d0")...), slice("n1", plain("d0", "d1")...)),
		pod:     testkit.Pod("pod").Req("cpu", "1", "deviceclass.resource.kubernetes.io/gpus", "2"),
		want:    "n0: DynamicResources: cannot allocate all claims\nn1: ok <extended-resources>/container-0-request-1=gpu.example/n1/d0 <extended-resources>/container-0-request-1=gpu.example/n1/d1",
	},
	{
		name: "a claim for extended resources of an earlier attempt",
		objects: objects(slice("n0", plain("d0")...),
			testkit.ResourceClaim("pod-extended-resources-x", testkit.Request("container-0-request-0", "gpus")).ForExtended("pod").Obj()),
		pod: testkit.Pod("pod").Req("example.com/gpu", "1"),
		want: "n0: DynamicResources: cannot schedule extended resource claim\nn1: DynamicResources: cannot schedule extended resource claim\n" +
			"deallocates default/pod-extended-resources-x\n" + helpless,
	},
	{
		name:    "a device that could not be bound",
		objects: objects(one().Allocated(ready).OnNode("n0").AllocatedAt(253_370_764_800).Condition(ready, "example.com/failed", metav1.ConditionTrue).ReservedFor("pod").Obj()),
		want:    "n0: DynamicResources: resourceclaim not available on the node\nn1: DynamicResources: resourceclaim not available on the node\ndeallocates default/c\n" + helpless,
	},
	{
		name:    "a device that was not bound in time",
		objects: objects(one().Allocated(ready).OnNode("n0").AllocatedAt(0).ReservedFor("pod").Obj()),
		want:    "n0: DynamicResources: resourceclaim not available on the node\nn1: DynamicResources: resourceclaim not available on the node\ndeallocates default/c\n" + helpless,
	},
	{
		name:    "a device that may still be bound",
		objects: objects(one().Allocated(ready).OnNode("n0").AllocatedAt(253_370_764_800).ReservedFor("pod").Obj()),
		want:    "n0: ok\nn1: DynamicResources: resourceclaim not available on the node",
	},
	{
		// Its PostFilter fails when an earlier plugin's PreFilter has rejected the pod, and with it ends
		// preemption's part of the message.
		name:    "a pod that isn't asked about devices",
		objects: objects(),
		pod:     testkit.Pod("pod").Uses("absent"),
		want: "n0: VolumeRestrictions: persistentvolumeclaim \"absent\" not found\nn1: VolumeRestrictions: persistentvolumeclaim \"absent\" not found\n" +
			"0/2 nodes are available: persistentvolumeclaim \"absent\" not found. not found",
	},
}
