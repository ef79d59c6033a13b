package soak

import (
	"fmt"
	"math"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berthproject/berth/internal/simulatedgroup"
	"github.com/berthproject/berth/sim/scenario"
)

// This file draws what is odd of some worlds, after everything else, so that the rest of each world
// is the same with it and without.

// oddFaults are the kinds of faults of which a world may have some, each with a rate or as an event.
// They are what a provider or a clock does against all expectation. At 12 % each, a world has one of
// them on the average.
var oddFaults = []string{
	scenario.GroupUnlisted, scenario.InstanceAgain, scenario.NodeMoves, scenario.SpotReplaced, scenario.NodeLingers,
	scenario.TaintNode, scenario.FutureStamp, scenario.ClockAhead,
}

// odd draws what a world has of these. The odd grace periods overflow a duration in nanoseconds, or
// nearly do: arithmetic on them must not make a deadline that lies in the past.
func (d dice) odd(sp *scenario.Spec) {
	for _, kind := range oddFaults {
		if d.maybe(12) {
			sp.Faults = append(sp.Faults, d.oddFault(kind))
		}
	}
	if d.maybe(10) {
		d.refusals(sp)
	}
	if d.maybe(10) {
		d.stream(sp)
	}
	if d.maybe(15) {
		w := &sp.Workload[d.IntN(len(sp.Workload))]
		w.Template.Spec.TerminationGracePeriodSeconds = new(one(d, int64(math.MaxInt64), 9223372037, 1<<40))
	}
	if d.maybe(15) {
		d.slowBinds(sp)
	}
	d.oddLists(sp)
}

// oddLists draws what is odd of the lists of a cloud's groups.
func (d dice) oddLists(sp *scenario.Spec) {
	for _, kind := range []string{scenario.GroupRenamed, scenario.GroupTwice, scenario.GroupsOverlap} {
		if !d.maybe(8) {
			continue
		}
		f := scenario.Fault{Kind: kind, From: d.dur(0, 10*time.Minute)}
		f.Until = metav1.Duration{Duration: f.From.Duration + d.dur(5*time.Minute, 40*time.Minute).Duration}
		switch kind {
		case scenario.GroupRenamed:
			f.PerHour = one(d, 6.0, 30)
			if d.maybe(50) {
				f.For = d.dur(5*time.Second, 20*time.Minute)
			}
		default:
			f.Rate = one(d, 0.2, 0.8)
		}
		sp.Faults = append(sp.Faults, f)
	}
}

// oddFault draws a fault of a kind. All but a clock that is wrong end within an hour.
func (d dice) oddFault(kind string) scenario.Fault {
	f := scenario.Fault{Kind: kind, From: d.dur(0, 10*time.Minute)}
	f.Until = metav1.Duration{Duration: f.From.Duration + d.dur(5*time.Minute, 40*time.Minute).Duration}
	switch kind {
	case scenario.ClockAhead: // from the beginning, and for good
		f.From, f.Until = metav1.Duration{}, metav1.Duration{}
		f.For = d.dur(30*time.Second, 10*time.Hour)
	case scenario.FutureStamp:
		f.Rate, f.For = one(d, 0.1, 0.5), d.dur(2*time.Minute, 12*time.Minute)
	case scenario.NodeLingers:
		f.Rate = one(d, 0.3, 1)
		if d.maybe(50) {
			f.For = d.dur(time.Minute, 30*time.Minute)
		}
	case scenario.GroupUnlisted, scenario.InstanceAgain:
		f.Rate = one(d, 0.2, 0.8)
	case scenario.NodeMoves:
		f.PerHour = one(d, 60.0, 400)
	default:
		f.PerHour = one(d, 10.0, 60)
		if d.maybe(70) {
			f.For = d.dur(time.Minute, 15*time.Minute)
		}
	}
	return f
}

// refusals makes a cloud that doesn't answer some calls refuse others. So a
// call may be refused while the outcome of the one before it is unknown.
func (d dice) refusals(sp *scenario.Spec) {
	f := scenario.Fault{Kind: scenario.CloudNoAnswer, Rate: one(d, 0.3, 0.6), For: d.dur(20*time.Second, 100*time.Second)}
	f.Until = d.dur(20*time.Minute, 50*time.Minute)
	refuses := scenario.Fault{Kind: scenario.CloudError, Rate: one(d, 0.3, 0.6), Until: f.Until}
	sp.Faults = append(sp.Faults, f, refuses)
}

// stream draws a group that grows all the time, in a cloud that lists instances late. Each
// of its nodes takes one of its pods.
func (d dice) stream(sp *scenario.Spec) {
	name := fmt.Sprint("g", len(sp.NodeGroups))
	sp.NodeGroups = append(sp.NodeGroups, scenario.NodeGroup{GroupConfig: simulatedgroup.GroupConfig{
		Name: name, Max: 60, PricePerHour: 0.1, LaunchDelay: d.span(time.Minute, 3*time.Minute), Startup: d.span(time.Second, 10*time.Second),
		Template: simulatedgroup.Template{Allocatable: v1.ResourceList{
			v1.ResourceCPU: resource.MustParse("2"), v1.ResourceMemory: resource.MustParse("4Gi"), v1.ResourcePods: resource.MustParse("20"),
		}, Labels: map[string]string{"stream": "true"}},
	}})
	run := d.span(time.Minute, 3*time.Minute)
	w := scenario.Workload{Name: "stream", Kind: "Pod", Count: d.from(40, 120), RunFor: &run,
		Arrive: scenario.Arrive{Over: d.dur(10*time.Minute, 20*time.Minute), Pattern: one(d, "", "poisson")}}
	w.Template.Spec.NodeSelector = map[string]string{"stream": "true"}
	w.Template.Spec.Containers = []v1.Container{{Name: "c", Resources: v1.ResourceRequirements{Requests: v1.ResourceList{v1.ResourceCPU: resource.MustParse("1500m")}}}}
	sp.Workload = append(sp.Workload, w)
	sp.Faults = append(sp.Faults, scenario.Fault{Kind: scenario.ListedLate, Group: name, Rate: 1, For: d.dur(30*time.Second, 150*time.Second), Until: metav1.Duration{Duration: 40 * time.Minute}})
}

// slowBinds makes binds wait for each other while somebody deletes pods: a pod may be gone before its
// bind was sent.
func (d dice) slowBinds(sp *scenario.Spec) {
	sp.API.BindsPerSecond = one(d, 0.2, 1, 5)
	sp.Faults = append(sp.Faults, scenario.Fault{Kind: scenario.DeletePod, PerHour: one(d, 60.0, 240), Until: d.dur(10*time.Minute, 30*time.Minute)})
}
