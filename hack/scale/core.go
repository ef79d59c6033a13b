package main

import (
	"context"
	"fmt"
	"runtime"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berthproject/berth/core"
	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/autoscaler/nodegroup"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/framework"
	"github.com/berthproject/berth/core/plugins"
	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/drive"
	"github.com/berthproject/berth/internal/test/testkit"
)

// This file measures a core alone, and a core with its planner in one driver. Objects come as
// informers have them: each decoded by itself and trimmed, a thousand at a time. What the core
// asks to bind is bound at once, and the bound pod comes back as an object of its own.

// measureCore measures a core without an autoscaler, its classes in turn.
func measureCore(ctx context.Context, t task, m *meter) error {
	f, err := newFilled(t, m, nil)
	if err != nil {
		return err
	}
	if err := f.fill(ctx); err != nil {
		return err
	}
	m.figures["core total"] = f.took
	m.figures["core pod"] = f.perPod * 1e6
	return nil
}

// measureTogether measures scans of a full cluster after its nodes and pods have come: the first,
// which simulates the removal of each node; one after which nothing has changed; and scans with
// pods of one node in a hundred replaced. No node is removed and none bought, so that every scan
// finds the cluster as the one before.
func measureTogether(ctx context.Context, t task, m *meter) error {
	a := core.DefaultAutoscale()
	a.Limits.Totals = nil             // as many nodes as there are
	a.UnneededTime = 1000 * time.Hour // no node goes
	f, err := newFilled(t, m, &a)
	if err != nil {
		return err
	}
	f.inARow = true
	if err := f.fill(ctx); err != nil {
		return err
	}
	m.figures["together fill"] = f.perPod * 1e6
	list := f.list()
	m.figures["together scan"] = f.scan(list)
	for range 40 { // until nodes are simulated again that were stuck
		f.scan(list)
	}
	const idle = 20
	m.figures["together idle"] = m.time(func() {
		for range idle {
			f.scan(list)
		}
	}) / idle * 1e3
	m.figures["together node"] = (f.withNodes - f.empty) / float64(t.Nodes) / 1024
	m.figures["together pod"] = (live() - f.withNodes) / float64(t.pods()) / 1024
	changed := max(1, t.Nodes/100)
	took := 0.0
	const rounds = 5
	for r := range rounds {
		in := []step.Input{list}
		for i := range changed {
			k := (r*changed + i) * t.PodsPerNode * 7 % t.pods()
			p := f.pod(k, f.node[k])
			in = append(in, step.PodGone{UID: p.UID}, step.PodSet{Pod: p})
		}
		took += f.scan(in...)
	}
	m.figures["together changed"] = took / rounds
	runtime.KeepAlive(f)
	if f.plans == 0 {
		return fmt.Errorf("no plan was made")
	}
	return f.err
}

// filled is a loop around a driver, whose workers bind and plan at once. Virtual time passes as
// settle and scan say; only the driver's own work is measured.
type filled struct {
	drive.Unanswered
	task
	m    *meter
	pods *testkit.PlacementCase
	d    *drive.Driver
	now  time.Time
	// inbox has what the workers have answered, and binds what they have bound, since the last Step took
	// it; plans counts all plans.
	inbox []step.Input
	binds []step.Bind
	plans int
	node  []string // of each pod
	// encoded is a pod of each class. Making each pod anew would leave garbage, which is collected
	// during Steps, too.
	encoded [][]byte
	// inARow means that a class's pods arrive one after the other, as their controller makes them;
	// otherwise the classes take turns.
	inARow bool
	// err is the first error of a Step; later ones are likely to follow from it.
	err error

	took, perPod     float64 // seconds
	empty, withNodes float64 // bytes in use without objects, and with the nodes
}

// newFilled returns the loop for a task; a is nil for a core that only schedules.
func newFilled(t task, m *meter, a *core.Autoscale) (*filled, error) {
	f := &filled{task: t, m: m, pods: manyClasses(t), now: time.Unix(1000, 0), node: make([]string, t.pods())}
	schema := cluster.NewSchema()
	cfg := core.DefaultConfig()
	cfg.Profiles = []*framework.Profile{plugins.Default(schema, plugins.Options{})}
	cfg.Autoscale = a
	var err error
	f.d, err = drive.New(drive.Config{Schema: schema, Core: cfg, Workers: f, Inbox: func(in step.Input) { f.inbox = append(f.inbox, in) }})
	return f, err
}

// Bind implements drive.Workers.
func (f *filled) Bind(b step.Bind, done func(error)) {
	done(nil)
	f.binds = append(f.binds, b)
}

// Plan implements drive.Workers.
func (f *filled) Plan(compute func() *autoscaler.Plan, done func(*autoscaler.Plan)) {
	f.plans++
	done(compute())
}

// atATime is how many objects arrive between two Steps.
const atATime = 1000

// fill makes the nodes arrive and then the pods, until all are bound. It is an error when one of a
// thousand pods isn't bound by the time the core has nothing to do: then it has no room for it.
func (f *filled) fill(ctx context.Context) error {
	f.empty = live()
	for from := 0; from < f.Nodes; from += atATime {
		var in []step.Input
		for i := from; i < min(from+atATime, f.Nodes); i++ {
			n := decoded(encoded(f.pods.CaseNode(i).Alloc(roomy(f.task)...).Obj()), &v1.Node{})
			n.Spec.ProviderID = "cloud://" + n.Name
			in = append(in, step.NodeSet{Node: cluster.Trim(n), Group: "g"})
		}
		f.took += f.settle(in)
	}
	f.withNodes = live()
	nodes := f.took
	for from := 0; from < f.task.pods(); from += atATime {
		if err := ctx.Err(); err != nil {
			return err
		}
		var in []step.Input
		numbers := map[types.UID]int{}
		for i := from; i < min(from+atATime, f.task.pods()); i++ {
			p := f.pod(i, "")
			numbers[p.UID] = i
			in = append(in, step.PodSet{Pod: p})
		}
		f.took += f.settle(in)
		in = nil
		for _, b := range f.binds {
			i := numbers[b.UID]
			f.node[i] = b.Node
			in = append(in, step.PodSet{Pod: f.pod(i, b.Node)})
		}
		if len(f.binds) != len(numbers) {
			return fmt.Errorf("%d of %d pods that came with pod %d were bound", len(f.binds), len(numbers), from)
		}
		f.binds = f.binds[:0]
		f.took += f.settle(in)
	}
	f.perPod = (f.took - nodes) / float64(f.task.pods())
	return f.err
}

// settle makes the driver take Steps until there is nothing to do but wait, and returns the seconds
// that it takes.
func (f *filled) settle(in []step.Input) float64 {
	return f.m.time(func() {
		for {
			f.now = f.now.Add(10 * time.Millisecond)
			wake, err := f.d.Step(f.now, in...)
			if err != nil && f.err == nil {
				f.err = err
			}
			in, f.inbox = f.inbox, nil
			if len(in) == 0 && (wake.IsZero() || wake.After(f.now)) {
				return
			}
		}
	})
}

// scan lets a scan interval pass and the inputs arrive, and returns the seconds that it takes until
// the plan is made and taken in.
func (f *filled) scan(in ...step.Input) float64 {
	f.now = f.now.Add(10 * time.Second)
	return f.settle(in)
}

// pod returns a pod as an informer has it, on a node or on none. Every call makes an object of its
// own, as each event of a watch does.
func (f *filled) pod(i int, node string) *v1.Pod {
	class := f.class(i)
	for len(f.encoded) <= class {
		n := len(f.encoded)
		f.encoded = append(f.encoded, encoded(f.pods.CasePod(n).Owner("apps/v1", "ReplicaSet", fmt.Sprint("app", n)).Obj()))
	}
	p := decoded(f.encoded[class], &v1.Pod{})
	p.Name = fmt.Sprintf("%s-%d", p.Name, i)
	p.UID = types.UID("pod-" + p.Name)
	p.Spec.NodeName = node
	return cluster.Trim(p)
}

// class returns the class of a pod.
func (f *filled) class(i int) int {
	if f.inARow {
		return i * f.Classes / f.task.pods()
	}
	return i % f.Classes
}

// list returns what the provider lists: one group that has all nodes and can't grow.
func (f *filled) list() step.Input {
	g := nodegroup.Group{ID: "g", Max: f.Nodes, Target: f.Nodes, Template: f.pods.CaseNode(0).Alloc(roomy(f.task)...).Obj()}
	for i := range f.Nodes {
		name := f.pods.CaseNode(i).Name
		g.Instances = append(g.Instances, nodegroup.Instance{ID: "cloud://" + name, Node: name})
	}
	return step.GroupsSet{Groups: []nodegroup.Group{g}}
}

// encoded returns an object as it comes over the network.
func encoded(from interface{ Marshal() ([]byte, error) }) []byte {
	raw, err := from.Marshal()
	if err != nil {
		panic(err) // it was made here
	}
	return raw
}

// decoded returns an object with memory of its own, as if it had come over the network.
func decoded[O interface{ Unmarshal([]byte) error }](raw []byte, into O) O {
	if err := into.Unmarshal(raw); err != nil {
		panic(err) // it was made here
	}
	return into
}
