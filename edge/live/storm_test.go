package live

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/berthproject/berth/core"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/door"
	"github.com/berthproject/berth/core/plugins"
	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/internal/test/testkit"
)

// TestAChurningClusterIsNoStormOfEvents has 100 pods each of 100 classes wait while one node
// changes every 10 s for an hour, so that numbers in texts change, or reasons.
func TestAChurningClusterIsNoStormOfEvents(t *testing.T) {
	const classes, each = 100, 100
	node := func(i int) *testkit.NodeBuilder {
		return testkit.Node(fmt.Sprint("n", i)).Alloc("cpu", "4", "memory", "8Gi")
	}
	change := func(turn int) step.Input {
		switch turn % 3 {
		case 0:
			return step.NodeSet{Node: node(0).Cordon().Obj()}
		case 1:
			return step.NodeGone{Name: "n0"}
		}
		return step.NodeSet{Node: node(0).Obj()}
	}
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		defer wg.Wait()
		defer stop()
		client, writes := fake.NewClientset(), atomic.Int64{}
		client.PrependReactor("*", "events", func(clienttesting.Action) (bool, runtime.Object, error) {
			writes.Add(1)
			return true, &eventsv1.Event{}, nil
		})
		r := newRecorder(client, "host", idle)
		r.run(ctx, &wg)
		schema := cluster.NewSchema()
		k, err := core.New(schema, core.DefaultConfig(plugins.Default(schema, plugins.Options{})))
		if err != nil {
			t.Fatal(err)
		}
		conditions := map[types.UID]int{}
		now := time.Unix(1000, 0)
		run := func(until time.Time, in ...step.Input) {
			for {
				out := k.Step(now, door.Must(in...)...)
				in = nil
				for _, x := range out.Conditions {
					conditions[x.UID]++
					if x.Event != nil {
						r.event(*x.Event)
					}
				}
				for _, e := range out.Events {
					r.event(e)
				}
				next := out.NextWake
				if next.IsZero() || next.After(until) {
					next = until
				}
				time.Sleep(next.Sub(now))
				if now = next; !now.Before(until) {
					synctest.Wait()
					return
				}
			}
		}

		var in []step.Input
		for i := range 20 {
			in = append(in, step.NodeSet{Node: node(i).Obj()})
		}
		for i := range classes {
			for j := range each {
				in = append(in, step.PodSet{Pod: testkit.Pod(fmt.Sprint("p", i, "-", j)).Req("cpu", fmt.Sprint(10+i)).Obj()})
			}
		}
		run(now.Add(10*time.Second), in...)
		if n := writes.Load(); n != classes*each {
			t.Fatalf("%d event writes when %d pods have found no node, want one for each", n, classes*each)
		}
		writes.Store(0)
		clear(conditions)
		for turn := range 360 {
			run(now.Add(10*time.Second), change(turn))
		}
		if n := writes.Load(); n > 2000 {
			t.Errorf("%d event writes in the hour after that, want 2,000 at most", n)
		}
		worst := 0
		for _, n := range conditions {
			worst = max(worst, n)
		}
		if worst > 20 {
			t.Errorf("the condition of a pod was rewritten %d times in an hour, want 20 times at most", worst)
		}
	})
}
