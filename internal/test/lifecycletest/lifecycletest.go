// Package lifecycletest has what a lifecycle machine needs in tests: a cluster state, a
// queue, a time and the Ready of a Step, without the core around them. The machine's own
// test plays the core: it calls the machine's methods and gives it the outcomes.
package lifecycletest

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/engine"
	"github.com/berthproject/berth/core/framework"
	"github.com/berthproject/berth/core/lifecycle"
	"github.com/berthproject/berth/core/plugins"
	"github.com/berthproject/berth/core/queue"
	"github.com/berthproject/berth/core/scheduler"
	"github.com/berthproject/berth/core/step"
)

// Bench is the Turn of a machine, with a scheduler of kube-scheduler's default profile.
type Bench struct {
	*lifecycle.Turn
	Scheduler *scheduler.Scheduler
	ready     step.Ready // of Turn
}

// NewBench returns a bench with an empty cluster, at 1000 s of Unix time.
func NewBench() *Bench { return NewBenchOf(func(*framework.Profile) {}) }

// NewBenchOf is NewBench with a changed profile.
func NewBenchOf(change func(*framework.Profile)) *Bench {
	schema := cluster.NewSchema()
	profile := plugins.Default(schema, plugins.Options{})
	change(profile)
	state := cluster.New(schema)
	s, err := scheduler.New(state, []*framework.Profile{profile}, engine.Options{Seed: 1})
	if err != nil {
		panic(err) // the default profile is in order
	}
	b := &Bench{Scheduler: s}
	b.Turn = &lifecycle.Turn{Now: time.Unix(1000, 0), State: state, Queue: queue.New(queue.Config{}, profile.Less), Ready: &b.ready}
	return b
}

// Node sets a node in the state.
func (b *Bench) Node(obj *v1.Node) { b.State.SetNode(b.State.Schema.ParseNode(obj, "")) }

// Queued puts a pod into the queue, or updates it there, and returns its item.
func (b *Bench) Queued(obj *v1.Pod) *queue.Item {
	pod := b.State.Schema.ParsePod(obj)
	if item := b.Queue.Get(obj.UID); item != nil {
		b.Queue.Update(item, pod, b.Scheduler.Class(pod), b.Scheduler.Gate(pod))
		return item
	}
	return b.Queue.Add(b.Now, pod, b.Scheduler.Class(pod), b.Scheduler.Gate(pod))
}

// PopOnly pops an item that is active or backs off, whatever is before it in the queue; it
// panics when the item is in another stage. The others go back into the queue.
func (b *Bench) PopOnly(item *queue.Item) {
	var others []*queue.Item
	pop := func() *queue.Item { return b.Queue.Pop(b.Now.Add(time.Hour)) } // past every backoff
	for other := pop(); other != item; other = pop() {
		if other == nil {
			panic(fmt.Sprintf("pod %s is %s, and can't be tried", item.Pod().Name(), item.Stage()))
		}
		others = append(others, other)
	}
	for _, other := range others {
		b.Queue.Requeue(other, other.Pod())
	}
}

// Pass moves the time on by a duration such as 1m30s.
func (b *Bench) Pass(duration string) error {
	d, err := time.ParseDuration(duration)
	b.Now = b.Now.Add(d)
	return err
}

// Flush returns the work that the machine has asked for since the last Flush.
func (b *Bench) Flush() step.Ready {
	r := b.ready
	b.ready = step.Ready{}
	return r
}

// Text returns a line for each decision and each piece of work of a Ready, for goldens. Kinds of work that
// aren't here are left out: they go to whoever reads the Ready itself.
func Text(r *step.Ready) string {
	var out strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&out, format+"\n", args...) }
	for i := range r.Decisions {
		line("decided: %s", r.Decisions[i].String())
	}
	for _, x := range r.Binds {
		line("bind %s to %s", x.Name, x.Node)
	}
	for _, x := range r.Cancels {
		line("cancel the bind of %s", x.UID)
	}
	for _, x := range r.Deallocations {
		line("deallocate %s for %s", x.Name, x.Pod)
	}
	for _, x := range r.Preemptions {
		line("ask %s on %q to leave for %s", x.Name, x.Node, x.By)
	}
	for _, x := range r.Nominations {
		line("write the nomination of %s to %q", x.Name, x.Node)
	}
	for _, x := range r.Consults {
		line("consult about %s: %d nodes, %d with victims", x.UID, len(x.Nodes), len(x.Candidates))
	}
	for _, x := range r.Conditions {
		with := ""
		if x.Event != nil {
			with = fmt.Sprintf(", with the %s %s", eventType(x.Event), x.Event.Reason)
		}
		line("condition of %s%s: %s: %s", x.Name, with, x.Reason, x.Message)
	}
	for _, x := range r.Events {
		line("%s about %s %s: %s: %s", eventType(&x), x.Kind, x.Name, x.Reason, x.Message)
	}
	for _, x := range r.PermitWaits {
		line("a wait for permission has ended after %s, allowed: %t", x.Took, x.Allowed)
	}
	return out.String()
}

// eventType says "warning" of an event of type Warning, "event" of another.
func eventType(e *step.Event) string {
	if e.Warning {
		return "warning"
	}
	return "event"
}

// Pods are a machine's records by pod; they implement lifecycle.Pods.
type Pods[P any] map[types.UID]*P

// Get implements lifecycle.Pods.
func (p Pods[P]) Get(uid types.UID) *P { return p[uid] }

// All implements lifecycle.Pods.
func (p Pods[P]) All() iter.Seq2[types.UID, *P] {
	return func(yield func(types.UID, *P) bool) {
		for _, uid := range slices.Sorted(maps.Keys(p)) {
			if !yield(uid, p[uid]) {
				return
			}
		}
	}
}

// Uninterrupted is a cluster of which the cloud takes no node; it implements nodedeletion.Interruptions.
type Uninterrupted struct{}

// AsMarked implements nodedeletion.Interruptions.
func (Uninterrupted) AsMarked(n *cluster.NodeInfo) *cluster.NodeInfo { return n }
