package soak

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/berthproject/berth/internal/simulatedgroup"
	"github.com/berthproject/berth/sim/scenario"
)

// This file draws worlds with pod groups: gangs that fit, that don't, and that are never complete, some
// bound to one zone, some with devices, beside pods that take their room; while Berth crashes, calls fail
// and nodes go. As in generate.go the draws are in sequence. All nodes are there from the beginning or come
// because the group's minimum wants them.

// podGroupFaults are the kinds of faults that these worlds have. One that is there twice is drawn twice as
// often.
var podGroupFaults = []string{
	scenario.CrashBerth, scenario.CrashBerth, scenario.CrashBerth, scenario.CrashBerth,
	scenario.APIError, scenario.APIError, scenario.APIConflict, scenario.APITimeout, scenario.AnswerLost, scenario.AnswerLost, scenario.WatchStall,
	scenario.DeletePod, scenario.EvictPod, scenario.Cordon, scenario.SpotReclaim,
}

// GeneratePodGroups draws a world with pod groups. It comes to rest as those of Generate do. The number
// beside the seed makes its draws differ from theirs of the same seed.
func GeneratePodGroups(seed uint64) *scenario.Scenario {
	d := dice{rand.New(rand.NewPCG(seed, 0x67616e67))}
	s := &scenario.Scenario{APIVersion: scenario.APIVersion, Kind: scenario.Kind, Metadata: scenario.Metadata{Name: fmt.Sprintf("podgroups-%d", seed)}}
	sp := &s.Spec
	sp.Seed = seed
	devices := d.maybe(50)
	if devices {
		sp.DeviceClasses = []scenario.DeviceClass{{Name: "gpu", Driver: gpuDriver}}
	}
	for i := range d.from(1, 2) {
		sp.NodeGroups = append(sp.NodeGroups, d.gangGroup(i, devices))
	}
	if d.maybe(70) {
		n := scenario.Nodes{Name: "fixed", Count: d.from(2, 6), Zones: zones[:d.from(1, 3)], Template: d.gangNode()}
		if devices {
			n.Devices = d.devices()
		}
		sp.Nodes = append(sp.Nodes, n)
	}
	for i := range d.from(2, 5) {
		sp.Workload = append(sp.Workload, d.gangWorkload(i, devices))
	}
	for range d.IntN(6) {
		sp.Faults = append(sp.Faults, d.gangFault())
	}
	// That flag takes groups below their minimum.
	sp.Policy.Flags = slices.DeleteFunc(append(d.flags(), "--enforce-node-group-min-size"), func(flag string) bool { return flag == "--force-delete-unregistered-nodes" })
	sp.End = scenario.End{At: metav1.Duration{Duration: 12 * time.Hour}, Quiet: metav1.Duration{Duration: 25 * time.Minute}}
	d.levels(sp)
	return s
}

// levels has most nodes be in racks, whose names are in several zones, and some groups require or prefer two levels. It
// draws last, so that everything else is as without it.
func (d dice) levels(sp *scenario.Spec) {
	rack := func(t *simulatedgroup.Template) {
		if d.maybe(80) {
			t.Labels[rackLabel] = fmt.Sprint("r", d.IntN(2))
		}
	}
	for i := range sp.NodeGroups {
		rack(&sp.NodeGroups[i].Template)
	}
	for i := range sp.Nodes {
		rack(&sp.Nodes[i].Template)
	}
	for i := range sp.Workload {
		g := sp.Workload[i].PodGroup
		if g == nil || !d.maybe(40) {
			continue
		}
		zone := "required"
		if g.Topology == "" {
			zone = one(d, "required", "preferred")
		}
		g.Levels = fmt.Sprintf("%s=%s,%s=%s", v1.LabelTopologyZone, zone, rackLabel, one(d, "required", "preferred"))
	}
}

// gangNode draws what a node offers.
func (d dice) gangNode() simulatedgroup.Template {
	return simulatedgroup.Template{Allocatable: v1.ResourceList{
		v1.ResourceCPU: resource.MustParse(one(d, "2", "4", "8")), v1.ResourceMemory: resource.MustParse("32Gi"), v1.ResourcePods: resource.MustParse(one(d, "5", "110")),
	}, Labels: map[string]string{v1.LabelTopologyZone: one(d, zones...)}}
}

// gangGroup draws the i-th node group. Its nodes are those of its minimum: they come again when they are
// taken away.
func (d dice) gangGroup(i int, devices bool) scenario.NodeGroup {
	n := d.from(1, 4)
	g := scenario.NodeGroup{GroupConfig: simulatedgroup.GroupConfig{
		Name: fmt.Sprintf("g%d", i), Min: n, Max: n, PricePerHour: 0.1 * float64(d.from(1, 9)),
		LaunchDelay: d.span(5*time.Second, time.Minute), Startup: d.span(time.Second, 20*time.Second), Template: d.gangNode(),
	}, Initial: d.from(0, n)}
	if devices {
		g.Devices = d.devices()
	}
	return g
}

// gangWorkload draws the i-th workload. Some are no group, so that others compete for the room.
func (d dice) gangWorkload(i int, devices bool) scenario.Workload {
	w := scenario.Workload{
		Name: fmt.Sprintf("w%d", i), Kind: one(d, "Pod", "Job", "Job", "Job", "ReplicaSet"), Count: d.from(1, 8), Copies: one(d, 0, 0, 2, 3),
		Arrive: scenario.Arrive{After: d.dur(0, 5*time.Minute), Over: d.dur(0, 5*time.Minute), Pattern: one(d, "", "poisson")},
	}
	if w.Kind == "ReplicaSet" || d.maybe(30) {
		w.DeleteAfter = d.dur(2*time.Minute, 30*time.Minute)
	}
	if w.Kind != "ReplicaSet" && d.maybe(80) {
		run := d.span(30*time.Second, 15*time.Minute)
		w.RunFor = &run
	}
	p := &w.Template.Spec
	p.Containers = []v1.Container{{Name: "c", Resources: v1.ResourceRequirements{Requests: v1.ResourceList{v1.ResourceCPU: resource.MustParse(one(d, "500m", "1", "1500m", "2"))}}}}
	if d.maybe(30) {
		p.Priority = ptr.To(int32(d.from(-1, 2)))
	}
	if d.maybe(25) {
		return w
	}
	w.PodGroup = &scenario.PodGroup{MinCount: d.from(0, w.Count), DisruptionMode: one(d, "", "single", "all")}
	if d.maybe(50) {
		w.PodGroup.MinCount = w.Count
	}
	if d.maybe(5) {
		w.PodGroup.MinCount = w.Count + 1
	}
	if d.maybe(30) {
		w.PodGroup.Topology = v1.LabelTopologyZone
	}
	if devices && d.maybe(70) {
		w.Claims = append(w.Claims, scenario.Claim{Name: "gpu", Shared: d.maybe(30), DeviceRequest: scenario.DeviceRequest{Class: "gpu"}})
	}
	return w
}

// gangFault draws a fault that ends within an hour.
func (d dice) gangFault() scenario.Fault {
	f := scenario.Fault{Kind: one(d, podGroupFaults...), From: d.dur(0, 10*time.Minute)}
	f.Until = metav1.Duration{Duration: f.From.Duration + d.dur(time.Minute, 20*time.Minute).Duration}
	if scenario.IsEvent(f.Kind) {
		f.PerHour = one(d, 20.0, 60, 200)
	} else {
		f.Rate = one(d, 0.05, 0.3, 0.6)
	}
	if d.maybe(60) && scenario.IsEvent(f.Kind) {
		f.For = d.dur(time.Second, 5*time.Minute)
	}
	return f
}
