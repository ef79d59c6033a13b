package soak

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/berthproject/berth/internal/simulateddevices"
	"github.com/berthproject/berth/internal/simulatedgroup"
	"github.com/berthproject/berth/sim/scenario"
)

// This file draws worlds with devices: nodes whose drivers publish some, late, tainted, fewer than before or not any
// more, and pods that claim them by templates, by claims that they share, and as extended resources. As in
// generate.go the draws are in sequence. All nodes are there from the beginning or come because the group's
// minimum wants them: nobody buys a node for devices here.

// deviceFaults are the kinds of faults that these worlds have. One that is there twice is drawn twice as often.
var deviceFaults = []string{
	scenario.DevicesLate, scenario.DevicesWithdrawn, scenario.DevicesWithdrawn, scenario.DevicesChanged, scenario.DevicesChanged,
	scenario.DeviceTainted, scenario.DeviceFailed, scenario.CrashBerth, scenario.CrashBerth, scenario.CrashBerth,
	scenario.APIError, scenario.APIConflict, scenario.APITimeout, scenario.AnswerLost, scenario.AnswerLost, scenario.WatchStall,
	scenario.DeletePod, scenario.DeletePod, scenario.EvictPod, scenario.Cordon, scenario.SpotReclaim,
}

const (
	gpuDriver = "gpu.example.com"
	nicDriver = "nic.example.com"
	gpuName   = "example.com/gpu"
)

// GenerateDevices draws a world with devices. It comes to rest as those of Generate do. The number beside the seed makes its
// draws differ from theirs of the same seed.
func GenerateDevices(seed uint64) *scenario.Scenario {
	d := dice{rand.New(rand.NewPCG(seed, 0x64657669636573))}
	s := &scenario.Scenario{APIVersion: scenario.APIVersion, Kind: scenario.Kind, Metadata: scenario.Metadata{Name: fmt.Sprintf("devices-%d", seed)}}
	sp := &s.Spec
	sp.Seed = seed
	sp.DeviceClasses = []scenario.DeviceClass{
		{Name: "gpu", Driver: gpuDriver, Selectors: []string{`device.attributes["gpu.example.com"].part == false`}},
		{Name: "part", Driver: gpuDriver, Selectors: []string{`device.attributes["gpu.example.com"].part == true`}},
		{Name: "nic", Driver: nicDriver},
	}
	if d.maybe(60) {
		sp.DeviceClasses[0].ExtendedResourceName = gpuName
	}
	for i := range d.from(1, 2) {
		sp.NodeGroups = append(sp.NodeGroups, d.deviceGroup(i))
	}
	if d.maybe(60) {
		sp.Nodes = append(sp.Nodes, scenario.Nodes{Name: "fixed", Count: d.from(1, 4), Zones: zones[:d.from(1, 3)], Template: d.deviceNode(), Devices: d.devices()})
	}
	for i := range d.from(1, 5) {
		sp.Workload = append(sp.Workload, d.deviceWorkload(i))
	}
	for range d.IntN(6) {
		sp.Faults = append(sp.Faults, d.deviceFault())
	}
	// The flag makes groups buy the nodes of their minimum.
	sp.Policy.Flags = append(d.flags(), "--enforce-node-group-min-size")
	if d.maybe(15) {
		sp.Policy.EmulatedVersion = "1.36"
	}
	sp.End = scenario.End{At: metav1.Duration{Duration: 12 * time.Hour}, Quiet: metav1.Duration{Duration: 25 * time.Minute}}
	return s
}

// extended reports whether pods get devices by extended resources.
func extended(sp *scenario.Spec) bool {
	return slices.ContainsFunc(sp.Workload, func(w scenario.Workload) bool {
		return slices.ContainsFunc(slices.Collect(maps.Keys(w.Template.Spec.Containers[0].Resources.Requests)), func(name v1.ResourceName) bool { return strings.Contains(string(name), "/") })
	})
}

// deviceNode draws what a node with devices offers. Some lack CPU for as many pods as they have devices.
func (d dice) deviceNode() simulatedgroup.Template {
	return simulatedgroup.Template{Allocatable: v1.ResourceList{
		v1.ResourceCPU:    resource.MustParse(one(d, "2", "8", "16")),
		v1.ResourceMemory: resource.MustParse("32Gi"),
		v1.ResourcePods:   resource.MustParse(one(d, "5", "110")),
	}, Labels: map[string]string{v1.LabelTopologyZone: one(d, zones...)}}
}

// deviceGroup draws the i-th node group. Its nodes are those of its minimum: they come again when they are taken away.
func (d dice) deviceGroup(i int) scenario.NodeGroup {
	n := d.from(1, 4)
	g := scenario.NodeGroup{GroupConfig: simulatedgroup.GroupConfig{
		Name: fmt.Sprintf("g%d", i), Min: n, Max: n, PricePerHour: 0.1 * float64(d.from(1, 9)),
		LaunchDelay: d.span(5*time.Second, time.Minute), Startup: d.span(time.Second, 20*time.Second), Template: d.deviceNode(),
	}, Initial: d.from(0, n), Devices: d.devices()}
	if d.maybe(50) {
		after := d.span(0, 2*time.Minute)
		// Drivers often publish minutes after the node is ready.
		g.DevicesAfter = &after
	}
	return g
}

// devices draws the devices of a node: of one or two drivers, some shared, some that can be divided.
func (d dice) devices() (out []simulateddevices.Devices) {
	whole, model := ptr.To(false), one(d, "a", "a", "b")
	gpu := simulateddevices.Devices{Driver: gpuDriver, Name: "gpu", Count: d.from(1, 5),
		Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{"model": {StringValue: &model}, "part": {BoolValue: whole}},
		Capacity:   map[resourcev1.QualifiedName]resourcev1.DeviceCapacity{"memory": {Value: resource.MustParse(one(d, "40Gi", "80Gi"))}}}
	switch d.IntN(4) {
	case 0:
		gpu.Counters = map[string]resource.Quantity{"memory": resource.MustParse("80Gi")}
		gpu.Partitions = []simulateddevices.Partition{{Name: "half", Count: 2, Counters: map[string]resource.Quantity{"memory": resource.MustParse("40Gi")},
			Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{"part": {BoolValue: ptr.To(true)}}}}
	case 1:
		gpu.Shared = true
	}
	if d.maybe(20) {
		gpu.BindingConditions = []string{"example.com/attached"}
	}
	if d.maybe(15) {
		gpu.Taints = []resourcev1.DeviceTaint{{Key: "example.com/reserved", Effect: resourcev1.DeviceTaintEffectNoSchedule}}
	}
	out = append(out, gpu)
	if d.maybe(40) {
		out = append(out, simulateddevices.Devices{Driver: nicDriver, Pool: "nics", Name: "nic", Count: d.from(1, 3)})
	}
	return out
}

// deviceWorkload draws the i-th workload. Some claim no devices, so that others compete for the room of a node.
func (d dice) deviceWorkload(i int) scenario.Workload {
	w := scenario.Workload{
		Name: fmt.Sprintf("w%d", i), Kind: one(d, "Pod", "Pod", "Job", "Job", "ReplicaSet", "StatefulSet"), Count: d.from(1, 8), Copies: one(d, 0, 0, 2),
		Arrive: scenario.Arrive{After: d.dur(0, 5*time.Minute), Over: d.dur(0, 10*time.Minute), Pattern: one(d, "", "poisson")},
	}
	switch w.Kind {
	case "Pod", "Job":
		run := d.span(5*time.Second, 15*time.Minute)
		w.RunFor = &run
		if d.maybe(15) {
			w.DeleteAfter = d.dur(time.Second, 15*time.Minute)
		}
	default:
		if d.maybe(70) {
			w.DeleteAfter = d.dur(2*time.Minute, 30*time.Minute)
		}
	}
	p := &w.Template.Spec
	p.Containers = []v1.Container{{Name: "c", Resources: v1.ResourceRequirements{Requests: v1.ResourceList{v1.ResourceCPU: resource.MustParse(one(d, "100m", "1", "1500m"))}}}}
	if d.maybe(30) {
		p.Priority = ptr.To(int32(d.from(-2, 2)))
	}
	if d.maybe(30) {
		p.TerminationGracePeriodSeconds = ptr.To(int64(d.from(0, 60)))
	}
	// A sixth of the workloads use extended resources, a sixth nothing.
	switch d.IntN(6) {
	case 0:
		p.Containers[0].Resources.Requests[gpuName] = resource.MustParse(one(d, "1", "1", "2"))
		if d.maybe(30) {
			delete(p.Containers[0].Resources.Requests, gpuName)
			p.Containers[0].Resources.Requests[v1.ResourceName(resourcev1.ResourceDeviceClassPrefix+"gpu")] = resource.MustParse("1")
		}
	case 1:
	default:
		for k := range d.from(1, 2) {
			w.Claims = append(w.Claims, d.claim(k))
		}
	}
	return w
}

// claim draws the k-th claim of a pod.
func (d dice) claim(k int) scenario.Claim {
	c := scenario.Claim{Name: fmt.Sprint("c", k), Shared: d.maybe(25), DeviceRequest: d.request()}
	switch {
	case d.maybe(15):
		// Alternatives have no request of their own beside them.
		c.FirstAvailable, c.DeviceRequest = []scenario.DeviceRequest{d.request(), d.request()}, scenario.DeviceRequest{}
	case c.Count > 1 && d.maybe(50):
		c.SameAttribute = resourcev1.FullyQualifiedName(gpuDriver + "/model")
	}
	return c
}

// request draws what is asked for. Some devices are there in no world.
func (d dice) request() scenario.DeviceRequest {
	r := scenario.DeviceRequest{Class: one(d, "gpu", "gpu", "gpu", "part", "nic"), Count: int64(d.from(0, 3))}
	if d.maybe(8) {
		r.All, r.Count = true, 0
	}
	if r.Class == "gpu" && d.maybe(25) {
		r.Selectors = []string{fmt.Sprintf(`device.attributes["gpu.example.com"].model == %q`, one(d, "a", "b", "none"))}
	}
	if r.Class == "gpu" && d.maybe(40) {
		r.Capacity = map[resourcev1.QualifiedName]resource.Quantity{"memory": resource.MustParse(one(d, "10Gi", "30Gi", "40Gi", "80Gi"))}
	}
	if d.maybe(25) {
		r.Tolerations = []resourcev1.DeviceToleration{{Operator: resourcev1.DeviceTolerationOpExists}}
	}
	return r
}

// deviceFault draws a fault that ends within an hour.
// Faults end, so that every world comes to rest.
func (d dice) deviceFault() scenario.Fault {
	f := scenario.Fault{Kind: one(d, deviceFaults...), From: d.dur(0, 10*time.Minute)}
	f.Until = metav1.Duration{Duration: f.From.Duration + d.dur(time.Minute, 30*time.Minute).Duration}
	if scenario.IsEvent(f.Kind) {
		f.PerHour = one(d, 20.0, 60, 200)
	} else {
		f.Rate = one(d, 0.05, 0.3, 0.6)
	}
	if d.maybe(60) && (scenario.IsEvent(f.Kind) || f.Kind == scenario.DevicesLate) {
		f.For = d.dur(time.Second, 5*time.Minute)
	}
	return f
}
