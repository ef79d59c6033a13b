package replay

import (
	"encoding/json"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/berthproject/berth/core/autoscaler/nodegroup"
	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/door"
	"github.com/berthproject/berth/core/step"
)

// This file records what JSON can't read back by itself: objects behind an interface, and
// workloads, whose selectors are interfaces.

// object is a cluster.Object with its kind.
type object struct {
	Kind   cluster.ObjectKind `json:"kind"`
	Object json.RawMessage    `json:"object"`
}

// recordableObject returns an object with its kind; an error for a type that the state doesn't know,
// which would be a new one that was forgotten here.
func recordableObject(o cluster.Object) (object, error) {
	kind := cluster.KindOf(o)
	if kind == cluster.NoObject {
		return object{}, fmt.Errorf("an object of type %T can't be recorded", o)
	}
	raw, err := json.Marshal(cluster.Trim(o))
	return object{kind, raw}, err
}

func decodeObject(raw json.RawMessage) (step.Input, error) {
	o := object{}
	if err := json.Unmarshal(raw, &o); err != nil {
		return nil, err
	}
	into := cluster.NewObject(o.Kind)
	if into == nil {
		return nil, fmt.Errorf("unknown object kind %d; was it recorded by a newer version of Berth?", o.Kind)
	}
	if err := door.Read(o.Object, into); err != nil {
		return nil, err
	}
	return step.ObjectSet{Object: into}, nil
}

// workload is a cluster.Workload with its selector as text. A selector that selects nothing
// has the same text as one that selects everything, hence Nothing.
type workload struct {
	Kind            cluster.WorkloadKind
	Namespace, Name string
	Set             map[string]string `json:",omitempty"`
	Selector        string            `json:",omitempty"`
	Nothing         bool              `json:",omitempty"`
	Replicas        cluster.Replicas  `json:",omitzero"`
}

func recordableWorkload(in *cluster.Workload) workload {
	w := workload{Kind: in.Kind, Namespace: in.Namespace, Name: in.Name, Set: in.Set, Replicas: in.Replicas}
	if s := in.Selector; s != nil {
		_, selectable := s.Requirements()
		w.Selector, w.Nothing = s.String(), !selectable
	}
	return w
}

func decodeWorkload(raw json.RawMessage) (step.Input, error) {
	w := workload{}
	if err := json.Unmarshal(raw, &w); err != nil {
		return nil, err
	}
	out := &cluster.Workload{Kind: w.Kind, Namespace: w.Namespace, Name: w.Name, Set: w.Set, Replicas: w.Replicas}
	switch {
	case w.Nothing:
		out.Selector = labels.Nothing()
	case w.Kind == cluster.ReplicaSet || w.Kind == cluster.StatefulSet:
		s, err := labels.Parse(w.Selector)
		if err != nil {
			return nil, err
		}
		out.Selector = s
	}
	return step.WorkloadSet{Workload: out}, nil
}

// trimTemplates returns groups with what Berth reads of their templates.
func trimTemplates(in []nodegroup.Group) []nodegroup.Group {
	out := slices.Clone(in)
	for i := range out {
		if t := out[i].Template; t != nil {
			out[i].Template = cluster.TrimTemplate(t)
		}
	}
	return out
}
