package scheduler_test

import (
	"fmt"
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/engine"
	"github.com/berthproject/berth/core/framework"
	"github.com/berthproject/berth/core/plugins"
	"github.com/berthproject/berth/core/scheduler"
	"github.com/berthproject/berth/internal/test/testkit"
)

// BenchmarkDecideGroup has a gang decided on in a cluster of 5,000 nodes in 3 zones and 500 racks, and nothing else:
// BenchmarkPodGroup of core has the Step around it. The class of the members is known. A decision that places the gang
// is rolled back outside of the time that is measured.
func BenchmarkDecideGroup(b *testing.B) {
	const rack = "example.com/rack"
	for _, x := range []struct {
		name    string
		members int
		fit     int // how many of them, in all; 0 for all
		spread  bool
		label   string
	}{
		{name: "1000 members", members: 1000},
		{name: "1000 members under a hard zone spread", members: 1000, spread: true},
		{name: "1000 members of which 900 fit", members: 1000, fit: 900},
		{name: "1000 members of which 900 fit, under a hard zone spread", members: 1000, fit: 900, spread: true},
		{name: "64 members in one of 500 racks", members: 64, label: rack},
		{name: "64 members of which no rack takes more than 60", members: 64, fit: 60 * 500, label: rack},
		{name: "1000 members in one zone", members: 1000, label: v1.LabelTopologyZone},
	} {
		b.Run(x.name, func(b *testing.B) {
			const nodes = 5000
			schema := cluster.NewSchema()
			state := cluster.New(schema)
			s := testkit.Must(scheduler.New(state, []*framework.Profile{plugins.Default(schema, plugins.Options{})}, engine.Options{Seed: 1}))
			for i := range nodes {
				cpu := "64"
				if x.fit > 0 {
					cpu = "0"
					if per := (x.fit + nodes - 1) / nodes; i < x.fit/per {
						cpu = fmt.Sprint(per)
					}
				}
				state.SetNode(schema.ParseNode(testkit.Node(fmt.Sprint("n", i)).Alloc("cpu", cpu, "memory", "256Gi").
					Zone(fmt.Sprint("z", i%3)).Label(rack, fmt.Sprint("r", i%500)).Obj(), ""))
			}
			state.SetObject(testkit.PodGroup("gang", x.members, x.label))
			r := &scheduler.GroupRequest{MinCount: x.members, Topology: x.label}
			for i := range x.members {
				p := testkit.Pod(fmt.Sprint("m", i)).Label("app", "train").Req("cpu", "1", "memory", "1Gi").PodGroup("gang")
				if x.spread {
					p.SpreadHard(v1.LabelTopologyZone, 5, "app", "train")
				}
				pod := schema.ParsePod(p.Obj())
				r.Members = append(r.Members, scheduler.Member{Pod: pod, Class: s.Class(pod)})
			}
			s.WhatIfGroup(r)
			b.ReportAllocs()
			measureDecisions(b, s, state, r, func(d *scheduler.GroupDecision) {
				if (len(d.Places) == x.members) != (x.fit == 0) {
					b.Fatalf("%d members have places: %s", len(d.Places), d.Message)
				}
			})
		})
	}
}

// BenchmarkGroupVictims has a gang decided on that places only others' leaving gives it: a node for each member, on each
// of which ten pods of a low priority are, as in scheduler_perf's GangPreemptionBasic and GangPreemptionAffinity, where
// the members have to be beside a pod that stays. Nothing else is measured, as in BenchmarkDecideGroup.
func BenchmarkGroupVictims(b *testing.B) {
	for _, x := range []struct {
		name           string
		nodes, members int
		affinity       bool
	}{
		{name: "10 of 100 nodes", nodes: 100, members: 10},
		{name: "100 of 100 nodes", nodes: 100, members: 100},
		{name: "10 of 100 nodes with affinity", nodes: 100, members: 10, affinity: true},
		{name: "100 of 100 nodes with affinity", nodes: 100, members: 100, affinity: true},
		{name: "100 of 500 nodes with affinity", nodes: 500, members: 100, affinity: true},
	} {
		b.Run(x.name, func(b *testing.B) {
			schema := cluster.NewSchema()
			state := cluster.New(schema)
			s := testkit.Must(scheduler.New(state, []*framework.Profile{plugins.Default(schema, plugins.Options{})}, engine.Options{Seed: 1}))
			for i := range x.nodes {
				name := fmt.Sprint("n", i)
				state.SetNode(schema.ParseNode(testkit.Node(name).Alloc("cpu", "4", "memory", "32Gi").Label(v1.LabelHostname, name).Obj(), ""))
				on := func(pod, cpu string, priority int32) {
					state.Place(schema.ParsePod(testkit.Pod(pod).Label("app", "blue").Req("cpu", cpu, "memory", "100Mi").Priority(priority).On(name).Obj()), name)
				}
				on(fmt.Sprint("anchor", i), "10m", 10)
				for k := range 10 {
					on(fmt.Sprint("low", i, "-", k), "40m", 0)
				}
			}
			state.SetObject(testkit.PodGroup("gang", x.members, ""))
			r := &scheduler.GroupRequest{MinCount: x.members}
			for i := range x.members {
				p := testkit.Pod(fmt.Sprint("m", i)).Req("cpu", "3970m", "memory", "100Mi").Priority(10).PodGroup("gang")
				if x.affinity {
					p.Together(v1.LabelHostname, "app", "blue")
				}
				pod := schema.ParsePod(p.Obj())
				r.Members = append(r.Members, scheduler.Member{Pod: pod, Class: s.Class(pod)})
			}
			measureDecisions(b, s, state, r, func(d *scheduler.GroupDecision) {
				if d.Victims == nil || len(d.Victims.Pods) != 10*x.members {
					b.Fatalf("victims %v, want %d pods: %s", d.Victims, 10*x.members, d.Message)
				}
			})
		})
	}
}

// measureDecisions has a group decided on again and again. Each decision is checked and rolled back, which isn't measured.
func measureDecisions(b *testing.B, s *scheduler.Scheduler, state *cluster.State, r *scheduler.GroupRequest, check func(*scheduler.GroupDecision)) {
	for b.Loop() {
		b.StopTimer()
		mark := state.Mark()
		b.StartTimer()
		d := s.DecideGroup(r)
		b.StopTimer()
		state.Rollback(mark)
		check(&d)
		b.StartTimer()
	}
}
