package soak

import (
	"math/rand/v2"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	"github.com/berthproject/berth/core/framework"
	"github.com/berthproject/berth/sim/scenario"
)

// This file draws worlds in which gangs are overtaken: those of podgroups.go with streams of small pods that take
// the room that comes free, some of which end by a deadline.

// GenerateGangRoom draws a world with pod groups and small pods. It comes to rest as those of Generate do.
func GenerateGangRoom(seed uint64) *scenario.Scenario {
	s := GeneratePodGroups(seed)
	s.Metadata.Name = "gangroom-" + s.Metadata.Name
	d := dice{rand.New(rand.NewPCG(seed, 0x726f6f6d))}
	for i := range d.from(1, 2) {
		s.Spec.Workload = append(s.Spec.Workload, d.smallPods(i))
	}
	return s
}

// drawKeepRoom draws after what time of waiting the gangs of a seed's world have room kept, and for how long.
func drawKeepRoom(seed uint64) framework.KeepRoom {
	d := dice{rand.New(rand.NewPCG(seed, 0x6b656570))}
	return framework.KeepRoom{After: d.dur(30*time.Second, 5*time.Minute).Duration, For: d.dur(2*time.Minute, 20*time.Minute).Duration}
}

// smallPods draws the i-th stream of small pods, which arrive one after the other.
func (d dice) smallPods(i int) scenario.Workload {
	run := d.span(30*time.Second, 6*time.Minute)
	w := scenario.Workload{Name: one(d, "quick", "slow") + string(rune('0'+i)), Kind: "Job", Copies: d.from(10, 40), Count: 1,
		Arrive: scenario.Arrive{Over: d.dur(5*time.Minute, 30*time.Minute)}, RunFor: &run}
	p := &w.Template.Spec
	p.Containers = []v1.Container{{Name: "c", Resources: v1.ResourceRequirements{Requests: v1.ResourceList{v1.ResourceCPU: resource.MustParse(one(d, "500m", "1", "2"))}}}}
	if d.maybe(60) {
		p.ActiveDeadlineSeconds = ptr.To(int64(run.Max.Duration/time.Second) + int64(d.from(1, 300)))
	}
	if d.maybe(20) {
		p.Priority = ptr.To(int32(d.from(-1, 1)))
	}
	return w
}
