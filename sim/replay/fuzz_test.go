package replay

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/berthproject/berth/core"
	"github.com/berthproject/berth/core/autoscaler"
	"github.com/berthproject/berth/core/autoscaler/nodegroup"
	"github.com/berthproject/berth/core/autoscalingapi"
	"github.com/berthproject/berth/core/step"
	"github.com/berthproject/berth/internal/test/testkit"
)

// This file lets recordings be anything: one is refused with an error that names the line, or
// it can be played. Most inputs of a core are in recordings, so this is also what the core does
// with objects that no API server would let pass.

// recordingOf returns a recording with a Step for each list of inputs.
func recordingOf(f testing.TB, h Header, steps ...[]step.Input) []byte {
	f.Helper()
	h.Version = Version
	var out bytes.Buffer
	add := func(v any) {
		raw, err := json.Marshal(v)
		if err != nil {
			f.Fatal(err)
		}
		out.Write(append(raw, '\n'))
	}
	add(h)
	for i, inputs := range steps {
		l := line{Time: int64(time.Duration(i+1) * 15 * time.Second)}
		for _, in := range inputs {
			x, err := encode(in)
			if err != nil {
				f.Fatal(err)
			}
			l.In = append(l.In, x)
		}
		add(l)
	}
	add(line{End: &end{Why: "stopped"}})
	return out.Bytes()
}

// FuzzRecording plays any text as a recording.
func FuzzRecording(f *testing.F) {
	autoscale := core.DefaultAutoscale()
	node := testkit.Node("n0").Alloc("cpu", "4", "memory", "8Gi", "example.com/gpu", "2").Zone("a").Obj()
	group := nodegroup.Group{ID: "g", Max: 5, Target: 1, Template: node, Instances: []nodegroup.Instance{{ID: "i", Node: "n0"}, {ID: "j", Failed: "no", Class: nodegroup.OutOfResources}}}
	pending := testkit.Pod("p").Req("cpu", "3").Priority(5).Obj()
	buffer := &autoscalingapi.CapacityBuffer{}
	buffer.Namespace, buffer.Name = "default", "b"
	buffer.Spec.PodTemplateRef, buffer.Spec.Replicas = &autoscalingapi.LocalObjectRef{Name: "t"}, new(int32)
	f.Add(recordingOf(f, Header{}, []step.Input{step.NodeSet{Node: node}, step.PodSet{Pod: pending}}, []step.Input{step.BindDone{UID: pending.UID, Err: errors.New("no")}}, nil))
	f.Add(recordingOf(f, Header{Autoscale: &autoscale}, []step.Input{step.GroupsSet{Groups: []nodegroup.Group{group}}, step.NodeSet{Node: node, Group: "g"}}, []step.Input{step.PodSet{Pod: pending}, step.ObjectSet{Object: buffer}},
		[]step.Input{step.PlanMade{Plan: &autoscaler.Plan{}}}, []step.Input{step.ScaleUpDone{Group: "g", Nodes: 1, Err: errors.New("no")}}, []step.Input{step.NodeGone{Name: "n0"}, step.PodGone{UID: pending.UID}}, nil))
	for _, in := range everyInputWithObjects() {
		f.Add(recordingOf(f, Header{Autoscale: &autoscale}, []step.Input{step.NodeSet{Node: node}, in}, []step.Input{step.PodSet{Pod: pending}}, []step.Input{step.PlanMade{Plan: &autoscaler.Plan{}}}, nil))
	}
	f.Add([]byte(`{"berthRecording":1,"schedulerConfig":"kind: X"}` + "\n"))
	f.Add([]byte(`{"berthRecording":1}` + "\n" + `{"t":1,"in":[{"k":"ObjectSet","v":{"kind":200,"object":null}},{"k":"PodSet"},{"k":"PodSet","v":{}},{"k":"WorkloadSet","v":null}]}` + "\n"))
	f.Add([]byte(`{"berthRecording":1}` + "\n" + `{"t":1,"in":[{"k":"NodeSet","v":{"Node":{"metadata":{"name":"n"},"status":{"allocatable":{"cpu":"4e999999999","memory":"1e-999999999"}}}}},` +
		`{"k":"PodSet","v":{"Pod":{"metadata":{"name":"p","uid":"p"},"spec":{"schedulerName":"default-scheduler","containers":[{"resources":{"requests":{"cpu":"4e999999999"}}},{"resources":{"requests":{"cpu":"3"}}}]}}}},` +
		`{"k":"ObjectSet","v":{"kind":2,"object":{"metadata":{"name":"c"},"spec":{"resources":{"requests":{"storage":"1e-999999999"}}}}}}]}` + "\n"))
	path := filepath.Join(f.TempDir(), "recording")
	f.Fuzz(func(t *testing.T, raw []byte) {
		if err := os.WriteFile(path, raw, 0o600); err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithTimeout(t.Context(), 2*time.Second)
		defer stop()
		if r, err := Play(ctx, path, Policy{}); (r == nil) == (err == nil) {
			t.Errorf("got %v and %v, want one of the two", r, err)
		}
	})
}
