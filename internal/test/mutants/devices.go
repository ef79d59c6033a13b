package mutants

// deviceFaults are faults in what is remembered of devices, in how they are given back in what-ifs, and in
// limits of them.
var deviceFaults = []Mutant{
	{"devices are allocated in the pools of the node that was asked about first", "core/devices/allotment.go", "r.Pool = pools[slices.Index(a.pools, PoolID{r.Driver, r.Pool})].Name", "r.Pool = a.pools[slices.Index(a.pools, PoolID{r.Driver, r.Pool})].Name", "./core/devices", "TestPropertyRemembered", "100"},
	{"devices are of use on the node that was asked about first", "core/devices/allotment.go", "onlyNode(out[k].NodeSelector, a.node) {", "onlyNode(out[k].NodeSelector, \"\") {", "./core/devices", "TestPropertyRemembered", "100"},
	{"a claim has the parameters of another", "core/devices/allotment.go", "key := allotted{q, c, parametersOf(claims, classes)}", "key := allotted{q, c, Digest{}}", "./core/devices", "TestPropertyRemembered", "300"},
	{"what is allocated is remembered without a question", "core/devices/allotment.go", "if q == 0 || how.Packed {", "if how.Packed {", "./core/devices", "TestPropertyRemembered", "100"},
	{"a share has the name of another's", "core/devices/allocate.go", "nameShares(claims[k], &out[k])", "_ = k", "./core/devices", "TestPropertyRemembered", "300"},
	{"what is taken of a pool is told apart by what is taken as a whole", "core/devices/taken.go", "			shared = true\n", "", "./core/devices", "TestPropertyRemembered", "2000"},
	{"parts of a device are counted one by one", "core/devices/count.go", "if met[of] {", "if false {", "./core/devices", "TestDevicesAreCounted", "1"},
	{"devices that are published no more are counted", "core/devices/count.go", "if p.age(s) == 0 {", "if true {", "./core/devices", "TestDevicesAreCounted", "1"},
	{"devices that all nodes can use are counted on each", "core/devices/count.go", "if !p.isOf(n.Name) {", "if false {", "./core/devices", "TestDevicesAreCounted", "1"},
	{"a node's devices don't count for the cluster's minimum", "core/cluster/device_objects.go", "return s.objects.devices.CountOn(int32(n.Index), n.Object, class)", "return amount", "./core/autoscaler/scaledown", "TestMinimums", "1"},
	{"new nodes' devices don't count for the cluster's maximum", "core/autoscaler/scaleup/limits.go", "amount += b.State.Devices().CountOf(d, class)", "_ = d", "./core/autoscaler/scaleup", "TestScripts/devices_limits", "1"},
	{"nobody is told what a group's new nodes lack", "core/autoscaler/scaleup/explain.go", "			detail = e.Detail(class, i)\n", "", "./core/autoscaler/scaleup", "TestScripts/devices", "1"},
	{"entangled candidates stay moved", "core/autoscaler/scaledown/objects.go", "	for _, c := range slices.Backward(are) {\n", "	for _, c := range slices.Backward(are[:0]) {\n", "./core/autoscaler/scaledown", "Property", "300"},
	{"devices of a candidate that is undone stay moved", "core/autoscaler/scaledown/simulator.go", "	c.was.Restore(s.world.State)\n", "", "./core/autoscaler/scaledown", "Property", "300"},
	{"pods that are dismissed keep their devices", "core/autoscaler/scaledown/simulator.go", "	s.lent.Restore(s.world.State)\n", "", "./core/autoscaler/scaledown", "Property", "300"},
	{"a claim that pods share touches no node", "core/cluster/device_objects.go", "ok && i != NoNode {", "ok && i != NoNode && false {", "./core/engine", "TestPropertyPreemptionForDevices", "1500"},
	{"a dry run asks for the claims as they were before victims left", "core/engine/away.go", "	if c == f.class {\n", "	if c != nil {\n", "./core/engine", "TestPropertyPreemptionForDevices", "300"},
	{"a pod doesn't wait for the devices of its victims", "core/scheduler/postfilter.go", "s.Engine(pod).Yields() && s.devicesAreFreed(n)", "false && s.devicesAreFreed(n)", "./core", "TestScripts/scheduling_preemption_devices", "1"},
	{"a pod waits for claims that others still have", "core/scheduler/postfilter.go", "r.Resource != \"pods\" || !s.Gone(r.UID)", "false", "./core", "TestScripts/scheduling_preemption_devices", "1"},
	{"a claim is reserved for more pods than it may be", "edge/live/deviceclaims.go", "if len(c.Status.ReservedFor) >= resourcev1.ResourceClaimReservedForMaxSize {", "if false {", "./edge/live", "TestAClaimIsReserved", "1"},
	{"a pool's generations are forgotten while slices are of them", "core/devices/content.go", "if p.generations[at].slices += sign; p.generations[at].slices == 0 {", "if p.generations[at].slices += sign; sign < 0 {", "./core/devices", "TestPropertyTheNewestGeneration", "100"},
	{"a pool whose slices contradict each other counts as whole", "core/devices/judge.go", "twice && s.matches(n) {", "twice && false {", "./core/explain", "TestExplainsWhichPoolsAreBroken", "1"},
	{"groups at a limit don't say what they lack", "core/explain/scaling.go", "if g.Detail != \"\" {", "if false {", "./core/explain", "TestExplainsWhatGroupsAtALimitLack", "1"},
	{"a pod gets no devices for its last extended resources", "core/plugins/dynamicresources/rule.go", "if n.Allocatable.At(d.extended[i].id) <= 0 {", "if i < 16 && n.Allocatable.At(d.extended[i].id) <= 0 {", "./core", "TestManyExtendedResources", "1"},
	{"slices to come are told apart without their counters", "core/devices/content.go", "		key.counters = &s.SharedCounters[0]\n", "		key.of[1] = 0\n", "./core/devices", "TestPropertyMadeSlices", "300"},
	{"claims are told apart without their counts", "core/devices/taken.go", "key = binary.AppendVarint(key, x.Count)", "_ = binary.AppendVarint(key, x.Count)", "./core/devices", "TestPropertyClaimsAreToldApart", "100"},
}
