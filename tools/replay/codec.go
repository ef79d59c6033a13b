package replay

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/berthproject/berth/core/autoscaler/nodegroup"
	"github.com/berthproject/berth/core/step"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/berthproject/berth/core/cluster"
)

// line is one line of a recording: a Step with what went in, or the end.
type line struct {
	Time int64   `json:"t,omitempty"` // unix time in nanoseconds
	In   []input `json:"in,omitempty"`
	End  *end    `json:"end,omitempty"`
}

type end struct {
	Why       string `json:"why"`
	Decisions int    `json:"decisions"`
	Digest    string `json:"digest"`
}

// input is one input under the name of its type.
type input struct {
	Kind  string          `json:"k"`
	Value json.RawMessage `json:"v,omitempty"`
}

// outcome is an input that may carry an error.
type outcome[T any] struct {
	Value T      `json:"of"`
	Err   string `json:"err,omitempty"`
}

// workload is a cluster.Workload without the interface in it.
type workload struct {
	Kind            cluster.WorkloadKind
	Namespace, Name string
	Set             map[string]string `json:",omitempty"`
	Selector        string            `json:",omitempty"`
	Nothing         bool              `json:",omitempty"` // the selector selects nothing
}

// encode writes an input. Of objects it writes what Berth reads (cluster.Trim):
// no environment variables, commands, names of secrets, parameters of drivers,
// annotations of others. testdata/fields.txt lists what that leaves.
func encode(in step.Input) (input, error) {
	var v any
	switch x := in.(type) {
	case step.PodSet:
		v = step.PodSet{Pod: cluster.Trim(x.Pod)}
	case step.NodeSet:
		v = step.NodeSet{Node: cluster.Trim(x.Node), Group: x.Group}
	case step.DaemonSetSet:
		v = step.DaemonSetSet{DaemonSet: cluster.Trim(x.DaemonSet)}
	case step.GroupsSet:
		v = step.GroupsSet{Groups: trimTemplates(x.Groups)}
	case step.WorkloadSet:
		w := workload{Kind: x.Workload.Kind, Namespace: x.Workload.Namespace, Name: x.Workload.Name, Set: x.Workload.Set}
		if s := x.Workload.Selector; s != nil {
			_, selectable := s.Requirements()
			w.Selector, w.Nothing = s.String(), !selectable
		}
		v = w
	case step.ObjectSet:
		o, err := encodeObject(x.Object)
		if err != nil {
			return input{}, err
		}
		v = o
	case step.Consulted:
		err := x.Err
		x.Err = nil
		v = outcome[step.Consulted]{x, text(err)}
	case step.PlanMade:
		v = nil // the planner makes it again
	case step.BindDone:
		v = outcome[step.BindDone]{step.BindDone{UID: x.UID}, text(x.Err)}
	case step.TaintDone:
		v = outcome[step.TaintDone]{step.TaintDone{Node: x.Node}, text(x.Err)}
	case step.EvictionDone:
		v = outcome[step.EvictionDone]{step.EvictionDone{UID: x.UID, Node: x.Node}, text(x.Err)}
	case step.PreemptionDone:
		v = outcome[step.PreemptionDone]{step.PreemptionDone{UID: x.UID, By: x.By}, text(x.Err)}
	case step.NominationDone:
		v = outcome[step.NominationDone]{step.NominationDone{UID: x.UID, Node: x.Node}, text(x.Err)}
	case step.ScaleUpDone:
		v = outcome[step.ScaleUpDone]{step.ScaleUpDone{Group: x.Group, Nodes: x.Nodes}, text(x.Err)}
	case step.NodeDeletionDone:
		v = outcome[step.NodeDeletionDone]{step.NodeDeletionDone{Node: x.Node, Instance: x.Instance}, text(x.Err)}
	default:
		v = x
	}
	out := input{Kind: strings.TrimPrefix(fmt.Sprintf("%T", in), "step.")}
	if v == nil {
		return out, nil
	}
	raw, err := json.Marshal(v)
	out.Value = raw
	return out, err
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func failure(text string) error {
	if text == "" {
		return nil
	}
	return errors.New(text)
}

// decode reads an input; a PlanMade comes back without its plan.
func decode(in input) (step.Input, error) {
	switch in.Kind {
	case "PodSet":
		return plain[step.PodSet](in)
	case "PodGone":
		return plain[step.PodGone](in)
	case "NodeSet":
		return plain[step.NodeSet](in)
	case "NodeGone":
		return plain[step.NodeGone](in)
	case "DaemonSetSet":
		return plain[step.DaemonSetSet](in)
	case "WorkloadGone":
		return plain[step.WorkloadGone](in)
	case "GroupsSet":
		return plain[step.GroupsSet](in)
	case "ObjectGone":
		return plain[step.ObjectGone](in)
	case "ObjectSet":
		return decodeObject(in)
	case "PlanMade":
		return step.PlanMade{}, nil
	case "WorkloadSet":
		w := workload{}
		if err := json.Unmarshal(in.Value, &w); err != nil {
			return nil, err
		}
		out := &cluster.Workload{Kind: w.Kind, Namespace: w.Namespace, Name: w.Name, Set: w.Set}
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
	case "BindDone":
		o, err := read[outcome[step.BindDone]](in)
		o.Value.Err = failure(o.Err)
		return o.Value, err
	case "Consulted":
		o, err := read[outcome[step.Consulted]](in)
		o.Value.Err = failure(o.Err)
		return o.Value, err
	case "TaintDone":
		o, err := read[outcome[step.TaintDone]](in)
		o.Value.Err = failure(o.Err)
		return o.Value, err
	case "EvictionDone":
		o, err := read[outcome[step.EvictionDone]](in)
		o.Value.Err = failure(o.Err)
		return o.Value, err
	case "PreemptionDone":
		o, err := read[outcome[step.PreemptionDone]](in)
		o.Value.Err = failure(o.Err)
		return o.Value, err
	case "NominationDone":
		o, err := read[outcome[step.NominationDone]](in)
		o.Value.Err = failure(o.Err)
		return o.Value, err
	case "ScaleUpDone":
		o, err := read[outcome[step.ScaleUpDone]](in)
		o.Value.Err = failure(o.Err)
		return o.Value, err
	case "NodeDeletionDone":
		o, err := read[outcome[step.NodeDeletionDone]](in)
		o.Value.Err = failure(o.Err)
		return o.Value, err
	}
	return nil, fmt.Errorf("input %q is unknown; was it recorded by a newer Berth?", in.Kind)
}

func read[T any](in input) (v T, err error) {
	err = json.Unmarshal(in.Value, &v)
	return v, err
}

func plain[T step.Input](in input) (step.Input, error) {
	v, err := read[T](in)
	return v, err
}

// trimTemplates returns the groups with templates as nodes are recorded.
func trimTemplates(in []nodegroup.Group) []nodegroup.Group {
	out := slices.Clone(in)
	for i := range out {
		if t := out[i].Template; t != nil {
			out[i].Template = cluster.Trim(t)
		}
	}
	return out
}
