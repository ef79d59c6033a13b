package core_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/berthproject/berth/core/step"

	"k8s.io/apimachinery/pkg/types"

	"github.com/berthproject/berth/core"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/door"
	"github.com/berthproject/berth/core/plugins"
	"github.com/berthproject/berth/internal/test/testkit"
)

// BenchmarkIntake plays 1,000 changes a second, an operation each, to a core on one
// CPU: while a Step computes, what arrives waits. It tells how long inputs waited
// to be taken in, and how long after its creation a plain pod's bind is out, beside
//   - 50,000 pods of 100 classes that wait for room, as in BenchmarkUnschedulable;
//   - as many pods as changes, of 500 classes of seven rules in turn.
func BenchmarkIntake(b *testing.B) {
	b.Run("50000 wait", func(b *testing.B) {
		w := newTimed(b)
		for i := range 50_000 {
			p := testkit.Pod(fmt.Sprint("waits", i)).Label("app", fmt.Sprint(i%100)).Req("cpu", fmt.Sprint(2000+i%100, "m"), "memory", "1Gi")
			if i%100 < 20 {
				p.SpreadHard("topology.kubernetes.io/zone", 1, "app", fmt.Sprint(i%100))
			}
			w.now = w.now.Add(time.Microsecond)
			w.arrive(w.now, step.PodSet{Pod: p.Obj()})
		}
		w.run(b)
	})
	b.Run("pods come", func(b *testing.B) {
		w := newTimed(b)
		cases := testkit.PlacementCases()
		for i := range b.N {
			p := cases[i%len(cases)].CasePod(i % 500).Obj()
			p.Name = fmt.Sprint("burst", i)
			p.UID = types.UID("pod-" + p.Name)
			p.Spec.Containers = testkit.Pod("").Req("cpu", "50m", "memory", "64Mi").Obj().Spec.Containers
			w.beside = append(w.beside, step.PodSet{Pod: p})
		}
		w.run(b)
	})
}

// timed is a core whose clock goes on while it computes.
type timed struct {
	c       *core.Core
	now     time.Time
	queue   []arrival
	beside  []step.Input // one with each change
	created map[types.UID]time.Time
	delays  []time.Duration // of inputs
	latency []time.Duration // of plain pods
	steps   []time.Duration
}

type arrival struct {
	at time.Time
	in step.Input
}

const timedNodes = 5000

func timedNode(i int, more string) step.Input {
	return step.NodeSet{Node: testkit.Node(fmt.Sprint("n", i)).Alloc("cpu", "4", "memory", "32Gi").Zone(fmt.Sprint("z", i%3)).Label("more", more).Obj()}
}

func timedPod(i int, milli int) step.Input {
	return step.PodSet{Pod: testkit.Pod(fmt.Sprint("on", i)).Req("cpu", fmt.Sprint(milli, "m"), "memory", "1Gi").Priority(100).On(fmt.Sprint("n", i)).Obj()}
}

func newTimed(b *testing.B) *timed {
	schema := cluster.NewSchema()
	c, err := core.New(schema, core.DefaultConfig(plugins.Default(schema, plugins.Options{})))
	if err != nil {
		b.Fatal(err)
	}
	w := &timed{c: c, now: time.Unix(1000, 0), created: map[types.UID]time.Time{}}
	var in []step.Input
	for i := range timedNodes {
		in = append(in, timedNode(i, ""), timedPod(i, 3000))
	}
	c.Step(w.now, door.Must(in...)...)
	return w
}

func (w *timed) arrive(at time.Time, in step.Input) { w.queue = append(w.queue, arrival{at, in}) }

// run plays b.N changes, a plain pod with every tenth, when what has arrived before
// is worked off.
func (w *timed) run(b *testing.B) {
	for w.step(b) {
	}
	w.delays, w.latency, w.steps = nil, nil, nil
	w.now = w.now.Add(time.Second)
	start := w.now
	for i := range b.N {
		at, k := start.Add(time.Duration(i)*time.Millisecond), i/2%timedNodes
		if i%2 == 0 {
			w.arrive(at, timedNode(k, fmt.Sprint(i)))
		} else {
			w.arrive(at, timedPod(k, 2800+i%200))
		}
		if i < len(w.beside) {
			w.arrive(at, w.beside[i])
		}
		if i%10 == 0 {
			p := testkit.Pod(fmt.Sprint("plain", i)).Req("cpu", "10m", "memory", "1Mi").Priority(1000).Obj()
			w.created[p.UID] = at
			w.arrive(at, step.PodSet{Pod: p})
		}
	}
	b.ResetTimer()
	for w.step(b) {
	}
	b.StopTimer()
	if want := (b.N + 9) / 10; len(w.latency) != want {
		b.Fatalf("%d plain pods were bound, want %d", len(w.latency), want)
	}
	report := func(name string, all []time.Duration) {
		slices.Sort(all)
		b.ReportMetric(float64(all[len(all)*99/100].Microseconds())/1000, "p99-ms-"+name)
	}
	report("intake", w.delays)
	report("step", w.steps)
	report("bound", w.latency)
}

// step runs a Step with what has arrived, and reports whether there is more to do.
func (w *timed) step(b *testing.B) bool {
	n := 0
	for n < len(w.queue) && !w.queue[n].at.After(w.now) {
		n++
	}
	in := make([]step.Input, n)
	for i := range n {
		in[i] = w.queue[i].in
		w.delays = append(w.delays, w.now.Sub(w.queue[i].at))
	}
	w.queue = w.queue[n:]
	start := b.Elapsed()
	r := w.c.Step(w.now, door.Must(in...)...)
	took := b.Elapsed() - start
	w.steps = append(w.steps, took)
	w.now = w.now.Add(took)
	for i := range r.Binds {
		if at, ok := w.created[r.Binds[i].UID]; ok {
			w.latency = append(w.latency, w.now.Sub(at))
		}
	}
	switch {
	case r.NextWake.Equal(w.now.Add(-took)): // there is more to decide
		return true
	case len(w.queue) == 0:
		return false
	}
	if at := w.queue[0].at; at.After(w.now) {
		w.now = at
	}
	return true
}
