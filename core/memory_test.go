package core_test

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/berthproject/berth/core"
	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/internal/test/testkit"
)

// heap returns how much memory is in use, in bytes.
func heap() int64 {
	runtime.GC()
	runtime.GC() // what finalizers have let go
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// taker takes in inputs as a leader or as an instance that stands by, with a planner that
// follows.
type taker struct {
	name string
	take func(now time.Time, in ...step.Input)
	core *core.Core
}

// takers returns a leader and an instance that stands by, over the same few nodes.
func takers(t *testing.T) []taker {
	nodes := []step.Input{step.GroupsSet{}}
	for _, name := range testkit.Names("n", 20) {
		nodes = append(nodes, step.NodeSet{Node: testkit.Node(name).Zone("a").Alloc("cpu", "8", "memory", "32Gi", "pods", "110").Obj()})
	}
	var out []taker
	for _, name := range []string{"leader", "standby"} {
		d := newDriven(t, autoscaling(func(*core.Autoscale) {}), prompt{}, defaults)
		take := d.stepOut
		if name == "standby" {
			take = func(now time.Time, in ...step.Input) {
				if err := d.StandBy(now, in...); err != nil {
					t.Fatal(err)
				}
			}
		}
		take(time.Unix(1000, 0), nodes...)
		out = append(out, taker{name, take, d.Core()})
	}
	return out
}

// TestInventedResourcesCostTheirPodsOnly has somebody who may create pods create 20 that ask
// for 5,000 resources each which nobody has heard of; and others 400 pods that ask for one of
// them, some of which are on nodes. What each costs is what it asks for, and when all are gone
// nothing of it is left.
func TestInventedResourcesCostTheirPodsOnly(t *testing.T) {
	large, small := 20, 400
	if testing.Short() {
		large, small = 4, 80
	}
	invented := func(i, k int) v1.ResourceName {
		return v1.ResourceName(fmt.Sprintf("example.com/invented-%d-%d", i, k))
	}
	for _, x := range takers(t) {
		t.Run(x.name, func(t *testing.T) {
			now := time.Unix(2000, 0)
			take := func(in ...step.Input) { // and again when messages have been refreshed and classes looked at
				for range 2 {
					now = now.Add(10 * time.Second)
					x.take(now, in...)
					in = nil
				}
			}
			take()
			before := heap()
			var larges, smalls, gone []step.Input
			for i := range large {
				p := testkit.Pod(fmt.Sprint("large", i)).Req("cpu", "100m", "memory", "128Mi")
				for k := range 5000 {
					p.Spec.Containers[0].Resources.Requests[invented(i, k)] = resource.MustParse("1")
				}
				larges, gone = append(larges, step.PodSet{Pod: p.Obj()}), append(gone, step.PodGone{UID: p.UID})
			}
			take(larges...)
			withLarge := heap()
			for i := range small {
				p := testkit.Pod(fmt.Sprint("small", i)).Req("cpu", "10m", "memory", "16Mi", string(invented(i%large, 0)), "1")
				if i%2 == 0 {
					p.On(fmt.Sprint("n", i%20))
				}
				smalls, gone = append(smalls, step.PodSet{Pod: p.Obj()}), append(gone, step.PodGone{UID: p.UID})
			}
			take(smalls...)
			withSmall := heap()
			take(gone...)
			after := heap()
			t.Logf("MiB: %d before, %d with large pods, %d with small ones, %d when all have gone", before>>20, withLarge>>20, withSmall>>20, after>>20)
			if each := (withLarge - before) / int64(large); each > 8<<20 {
				t.Errorf("a pod that asks for 5,000 resources takes %d MiB, want 8 at most", each>>20)
			}
			if each := (withSmall - withLarge) / int64(small); each > 32<<10 {
				t.Errorf("a pod that asks for one resource takes %d KiB, want 32 at most", each>>10)
			}
			if left := after - before; left > 10<<20 {
				t.Errorf("%d MiB are left when all pods have gone, want 10 at most", left>>20)
			}
			runtime.KeepAlive(x.core)
		})
	}
}
