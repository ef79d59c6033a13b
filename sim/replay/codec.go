package replay

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/door"
	"github.com/berthproject/berth/core/step"
)

// This file turns inputs into the lines of a recording and back. What must hold: an input
// that was decoded means the same to the core as the one that was encoded; and nothing of
// an object is written that Berth doesn't read (cluster.Trim): no environment variables,
// commands, names of secrets, parameters of drivers, annotations of others.
// testdata/fields.txt lists what that leaves. A new type of input needs a row in decoders,
// and a case in encode where it holds an object or an error.

// line is one line of a recording: a Step with its inputs, or the end.
type line struct {
	Time int64   `json:"t,omitempty"` // unix time in nanoseconds
	In   []input `json:"in,omitempty"`
	End  *end    `json:"end,omitempty"`
}

// end is the last line of a recording that was not cut off.
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

// encode writes an input.
func encode(in step.Input) (input, error) {
	out := input{Kind: strings.TrimPrefix(fmt.Sprintf("%T", in), "step.")}
	v, err := recordable(in)
	if err != nil || v == nil {
		return out, err
	}
	out.Value, err = json.Marshal(v)
	return out, err
}

// recordable returns what is written of an input: objects trimmed, interfaces replaced;
// nil when there is nothing but its type.
func recordable(in step.Input) (any, error) {
	switch x := in.(type) {
	case step.PodSet:
		return step.PodSet{Pod: cluster.Trim(x.Pod)}, nil
	case step.NodeSet:
		return step.NodeSet{Node: cluster.Trim(x.Node), Group: x.Group}, nil
	case step.DaemonSetSet:
		return step.DaemonSetSet{DaemonSet: cluster.Trim(x.DaemonSet)}, nil
	case step.GroupsSet:
		return step.GroupsSet{Groups: trimTemplates(x.Groups), Busy: x.Busy}, nil
	case step.WorkloadSet:
		return recordableWorkload(x.Workload), nil
	case step.ObjectSet:
		return recordableObject(x.Object)
	case step.PlanMade:
		return recordablePlan(x.Plan), nil
	case step.Consulted:
		return outcomeOf(&x, &x.Err), nil
	case step.BindDone:
		return outcomeOf(&x, &x.Err), nil
	case step.DeallocationDone:
		return outcomeOf(&x, &x.Err), nil
	case step.TaintDone:
		return outcomeOf(&x, &x.Err), nil
	case step.EvictionDone:
		return outcomeOf(&x, &x.Err), nil
	case step.SurgeDone:
		return outcomeOf(&x, &x.Err), nil
	case step.PreemptionDone:
		return outcomeOf(&x, &x.Err), nil
	case step.NominationDone:
		return outcomeOf(&x, &x.Err), nil
	case step.StatusWritten:
		return outcomeOf(&x, &x.Err), nil
	case step.ScaleUpDone:
		return outcomeOf(&x, &x.Err), nil
	case step.NodeDeletionDone:
		return outcomeOf(&x, &x.Err), nil
	}
	return in, nil
}

// decoder reads the value of an input.
type decoder func(json.RawMessage) (step.Input, error)

// decoders are those of all inputs, by the name of the type.
var decoders = map[string]decoder{
	"PodSet":       decodePlain[step.PodSet],
	"PodGone":      decodePlain[step.PodGone],
	"NodeSet":      decodePlain[step.NodeSet],
	"NodeGone":     decodePlain[step.NodeGone],
	"DaemonSetSet": decodePlain[step.DaemonSetSet],
	"WorkloadSet":  decodeWorkload,
	"WorkloadGone": decodePlain[step.WorkloadGone],
	"ObjectSet":    decodeObject,
	"ObjectGone":   decodePlain[step.ObjectGone],
	"GroupsSet":    decodePlain[step.GroupsSet],
	"ServerTime":   decodePlain[step.ServerTime],
	"PlanMade":     decodePlan,

	"Consulted":        decodeOutcome(func(x *step.Consulted) *error { return &x.Err }),
	"BindDone":         decodeOutcome(func(x *step.BindDone) *error { return &x.Err }),
	"DeallocationDone": decodeOutcome(func(x *step.DeallocationDone) *error { return &x.Err }),
	"TaintDone":        decodeOutcome(func(x *step.TaintDone) *error { return &x.Err }),
	"EvictionDone":     decodeOutcome(func(x *step.EvictionDone) *error { return &x.Err }),
	"SurgeDone":        decodeOutcome(func(x *step.SurgeDone) *error { return &x.Err }),
	"PreemptionDone":   decodeOutcome(func(x *step.PreemptionDone) *error { return &x.Err }),
	"NominationDone":   decodeOutcome(func(x *step.NominationDone) *error { return &x.Err }),
	"StatusWritten":    decodeOutcome(func(x *step.StatusWritten) *error { return &x.Err }),
	"ScaleUpDone":      decodeOutcome(func(x *step.ScaleUpDone) *error { return &x.Err }),
	"NodeDeletionDone": decodeOutcome(func(x *step.NodeDeletionDone) *error { return &x.Err }),
}

// decode reads an input. A PlanMade comes back with what its plan went by only.
func decode(in input) (step.Input, error) {
	d := decoders[in.Kind]
	if d == nil {
		return nil, fmt.Errorf("unknown input %q; was it recorded by a newer version of Berth?", in.Kind)
	}
	out, err := d(in.Value)
	if err != nil {
		return nil, err
	}
	admitted, ok := door.Admit(out, func(p door.Problem) {
		if p.Refused {
			err = p
		}
	})
	if !ok {
		return nil, err
	}
	return admitted.Unwrap(), nil
}

func decodePlain[T step.Input](raw json.RawMessage) (step.Input, error) {
	var v T
	err := door.Read(raw, &v)
	return v, err
}
