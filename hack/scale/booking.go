package main

import (
	"context"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berthproject/berth/core"
	"github.com/berthproject/berth/core/autoscalingapi"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/door"
	"github.com/berthproject/berth/core/plugins"
	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/internal/test/testkit"
)

// This file measures one ProvisioningRequest of the largest size, from the attempt to book room for
// all of its pods until all of these are bound.

// maxBooked is how many pods a request may have.
const maxBooked = 50_000

func measureBooking(ctx context.Context, t task, m *meter) error {
	pods := min(t.pods(), maxBooked)
	schema := cluster.NewSchema()
	cfg := core.DefaultConfig(plugins.Default(schema, plugins.Options{}))
	a := core.DefaultAutoscale()
	cfg.Autoscale = &a
	c, err := core.New(schema, cfg)
	if err != nil {
		return err
	}
	b := &booked{core: c, now: time.Unix(1000, 0)}
	in := []step.Input{step.ObjectSet{Object: &v1.PodTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "job"}, Template: v1.PodTemplateSpec{Spec: b.pod("").Obj().Spec}}}}
	for i := range t.Nodes {
		in = append(in, step.NodeSet{Node: testkit.Node(fmt.Sprint("n", i)).Alloc("cpu", fmt.Sprint(t.PodsPerNode), "memory", "64Gi", "pods", "110").Obj()})
	}
	b.step(in...)
	request := &autoscalingapi.ProvisioningRequest{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "r", UID: "r", CreationTimestamp: metav1.NewTime(b.now)}}
	request.Spec.ProvisioningClassName = autoscalingapi.CheckCapacity
	request.Spec.PodSets = []autoscalingapi.PodSet{{PodTemplateRef: autoscalingapi.LocalObjectRef{Name: "job"}, Count: int32(pods)}}
	m.figures["booking made"] = m.time(func() { b.step(step.ObjectSet{Object: request}) })
	if b.kept != pods {
		return fmt.Errorf("room is kept for %d pods, want %d", b.kept, pods)
	}
	var come []*testkit.PodBuilder
	for i := range pods {
		p := b.pod(fmt.Sprint("p", i))
		p.Annotations = map[string]string{autoscalingapi.ConsumeAnnotation: "r"}
		come = append(come, p)
	}
	m.figures["booking used"] = m.time(func() {
		for from := 0; from < pods && ctx.Err() == nil; from += atATime {
			b.arrive(come[from:min(from+atATime, pods)])
		}
	})
	if b.bound != pods && ctx.Err() == nil {
		return fmt.Errorf("%d pods are bound, want %d", b.bound, pods)
	}
	return ctx.Err()
}

// booked is a core with a request.
type booked struct {
	core        *core.Core
	now         time.Time
	kept, bound int
}

func (b *booked) pod(name string) *testkit.PodBuilder {
	return testkit.Pod(name).Req("cpu", "1", "memory", "1Gi")
}

// step makes Steps until there is nothing more to do now. Pods are bound at once.
func (b *booked) step(in ...step.Input) {
	for again := true; again; {
		r := b.core.Step(b.now, door.Must(in...)...)
		in = nil
		for _, d := range r.Decisions {
			if d.Kind == step.RoomKept {
				b.kept++
			}
		}
		for _, x := range r.Binds {
			b.bound++
			in = append(in, step.BindDone{UID: x.UID})
		}
		again = len(in) > 0 || !r.NextWake.IsZero() && !r.NextWake.After(b.now)
	}
}

// arrive has pods arrive, and be shown where they are bound.
func (b *booked) arrive(pods []*testkit.PodBuilder) {
	var in []step.Input
	for _, p := range pods {
		in = append(in, step.PodSet{Pod: p.Obj()})
	}
	b.step(in...)
}
