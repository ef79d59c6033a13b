package core_test

import (
	"fmt"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/berthproject/berth/core"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/door"
	"github.com/berthproject/berth/core/plugins"
	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/internal/test/testkit"
)

// BenchmarkPodGroup has a gang decided on in a cluster of 5,000 nodes in 3 zones and 500 racks: a Step
// from the inputs, which were taken before, to the Ready with the binds of all members, or with none.
func BenchmarkPodGroup(b *testing.B) {
	for _, x := range []groupBench{
		{name: "1000 members", members: 1000},
		{name: "1000 members under a hard zone spread", members: 1000, spread: true},
		{name: "1000 members of which 900 fit", members: 1000, room: 900},
		{name: "1000 members of which 900 fit, under a hard zone spread", members: 1000, room: 900, spread: true},
		{name: "64 members in one of 500 racks", members: 64, label: rackLabel},
		{name: "64 members of which no rack takes more than 60", members: 64, room: 60 * 500, label: rackLabel},
		{name: "1000 members in one zone", members: 1000, label: v1.LabelTopologyZone},
	} {
		b.Run(x.name, x.run)
	}
}

const rackLabel = "example.com/rack"

type groupBench struct {
	name    string
	members int
	room    int // of how many members there is room, in all; 0 for more than enough
	spread  bool
	label   string
}

func (x *groupBench) run(b *testing.B) {
	const nodes = 5000
	schema := cluster.NewSchema()
	b.ReportAllocs()
	for b.Loop() {
		b.StopTimer()
		cfg := core.DefaultConfig(plugins.Default(schema, plugins.Options{}))
		c, err := core.New(schema, cfg)
		if err != nil {
			b.Fatal(err)
		}
		now := time.Unix(1000, 0)
		var in []step.Input
		for i := range nodes {
			cpu := "64"
			if x.room > 0 { // the room is on as many nodes as needed, spread over the racks
				cpu = "0"
				if per := (x.room + nodes - 1) / nodes; i < x.room/per {
					cpu = fmt.Sprint(per)
				}
			}
			in = append(in, step.NodeSet{Node: testkit.Node(fmt.Sprint("n", i)).Alloc("cpu", cpu, "memory", "256Gi").
				Zone(fmt.Sprint("z", i%3)).Label(rackLabel, fmt.Sprint("r", i%500)).Obj()})
		}
		// A pod of the class has been decided on before.
		member := func(name string) *testkit.PodBuilder {
			p := testkit.Pod(name).Label("app", "train").Req("cpu", "1", "memory", "1Gi")
			if x.spread {
				p.SpreadHard(v1.LabelTopologyZone, 5, "app", "train")
			}
			return p
		}
		in = append(in, step.PodSet{Pod: member("before").Obj()})
		c.Step(now, door.Must(in...)...)
		c.Step(now, door.Must(step.PodGone{UID: "pod-before"})...)
		in = []step.Input{step.ObjectSet{Object: testkit.PodGroup("gang", x.members, x.label)}}
		for i := range x.members {
			in = append(in, step.PodSet{Pod: member(fmt.Sprint("m", i)).PodGroup("gang").Obj()})
		}
		c.Take(now, door.Must(in...)...)
		b.StartTimer()
		r := c.Step(now)
		b.StopTimer()
		want := x.members
		if x.room > 0 {
			want = 0
		}
		if len(r.Binds) != want {
			b.Fatalf("%d members are bound, want %d; group: %+v", len(r.Binds), want, r.StatusWrites)
		}
		b.StartTimer()
	}
}
