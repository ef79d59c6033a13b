package soak

import (
	"fmt"
	"math/rand/v2"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/internal/simulatedgroup"
	"github.com/berthproject/berth/sim/scenario"
)

// This file draws worlds with pod groups for which nodes are bought: racks that are node groups, some of them atomic, that
// are out of stock now and then, and groups that fit in one rack, in several, or nowhere. As in generate.go the draws are in
// sequence.

// rackLabel is the topology that some groups require. Several node groups may be in one rack.
const rackLabel = "example.com/rack"

// GenerateGangs draws a world with pod groups. It comes to rest as those of Generate do. In some nothing goes wrong but that
// orders are refused for want of stock, and no pod ends: there no node may be bought in vain. The number beside the seed makes
// its draws differ from theirs of the same seed.
func GenerateGangs(seed uint64) *scenario.Scenario {
	d := dice{rand.New(rand.NewPCG(seed, 0x67616e6773))}
	s := &scenario.Scenario{APIVersion: scenario.APIVersion, Kind: scenario.Kind, Metadata: scenario.Metadata{Name: fmt.Sprintf("gangs-%d", seed)}}
	sp := &s.Spec
	sp.Seed = seed
	onlyStock := d.maybe(60)
	racks := d.from(1, 3)
	for i := range d.from(2, 5) {
		sp.NodeGroups = append(sp.NodeGroups, d.rack(i, racks))
	}
	for i := range d.from(1, 5) {
		w, object := d.gang(i, onlyStock)
		sp.Workload, sp.Objects = append(sp.Workload, w), append(sp.Objects, object)
	}
	for range d.IntN(5) {
		from := d.dur(0, 20*time.Minute)
		sp.Faults = append(sp.Faults, scenario.Fault{Kind: scenario.StockOut, Group: one(d, sp.NodeGroups...).Name, From: from, Until: metav1.Duration{Duration: from.Duration + d.dur(time.Minute, 30*time.Minute).Duration}})
	}
	if !onlyStock {
		for range d.from(1, 3) {
			sp.Faults = append(sp.Faults, d.fault(sp))
		}
	}
	sp.Policy.Flags = []string{"--scale-down-unneeded-time=2m", "--scale-down-delay-after-add=1m", "--initial-node-group-backoff-duration=1m", "--max-node-group-backoff-duration=3m", "--expander=" + one(d, "least-waste", "random", "price", "cost")}
	sp.End = scenario.End{At: metav1.Duration{Duration: 12 * time.Hour}, Quiet: metav1.Duration{Duration: 25 * time.Minute}}
	return s
}

// rack draws the i-th node group. Its nodes take long enough to come that an order of which another is refused can be
// taken back.
func (d dice) rack(i, racks int) scenario.NodeGroup {
	g := scenario.NodeGroup{GroupConfig: simulatedgroup.GroupConfig{
		Name: fmt.Sprintf("g%d", i), Max: d.from(1, 6), PricePerHour: float64(d.from(1, 9)),
		LaunchDelay: d.span(time.Minute, 3*time.Minute), Startup: d.span(time.Second, 20*time.Second),
		Template: simulatedgroup.Template{Allocatable: v1.ResourceList{
			v1.ResourceCPU: resource.MustParse(one(d, "4", "8")), v1.ResourceMemory: resource.MustParse("16Gi"), v1.ResourcePods: resource.MustParse("20"),
		}, Labels: map[string]string{rackLabel: fmt.Sprint("r", d.IntN(racks))}},
	}}
	if d.maybe(25) {
		g.Options = &cluster.GroupOptions{ZeroOrMax: true}
		g.Template.Labels[rackLabel] = fmt.Sprint("own-", i)
	}
	return g
}

// gang draws the i-th pod group with its members, of which there may be fewer than it needs.
func (d dice) gang(i int, forever bool) (scenario.Workload, map[string]any) {
	name, members := fmt.Sprint("gang", i), d.from(2, 12)
	minCount := members
	if d.maybe(30) {
		minCount = d.from(1, members+1)
	}
	spec := map[string]any{"schedulingPolicy": map[string]any{"gang": map[string]any{"minCount": minCount}}}
	if d.maybe(60) {
		spec["schedulingConstraints"] = map[string]any{"topology": []any{map[string]any{"key": rackLabel}}}
	}
	w := scenario.Workload{Name: name, Kind: "Pod", Count: members, Arrive: scenario.Arrive{After: d.dur(0, 20*time.Minute)}}
	w.Template.Spec = v1.PodSpec{SchedulingGroup: &v1.PodSchedulingGroup{PodGroupName: &name},
		Containers: []v1.Container{{Name: "c", Resources: v1.ResourceRequirements{Requests: v1.ResourceList{v1.ResourceCPU: resource.MustParse(one(d, "1", "2", "4")), v1.ResourceMemory: resource.MustParse("1Gi")}}}}}
	if !forever && d.maybe(70) {
		run := d.span(time.Minute, 20*time.Minute)
		w.RunFor = &run
	}
	return w, map[string]any{"apiVersion": "scheduling.k8s.io/v1beta1", "kind": "PodGroup", "metadata": map[string]any{"name": name}, "spec": spec}
}
