package replay

import (
	"encoding/json"
	"fmt"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/step"
)

// object is a cluster.Object under its kind.
type object struct {
	Kind   cluster.ObjectKind `json:"kind"`
	Object json.RawMessage    `json:"object"`
}

func encodeObject(o cluster.Object) (object, error) {
	kind := cluster.KindOf(o)
	if kind == cluster.NoObject {
		return object{}, fmt.Errorf("an object of type %T can't be recorded", o)
	}
	raw, err := json.Marshal(cluster.Trim(o))
	return object{kind, raw}, err
}

func decodeObject(in input) (step.Input, error) {
	o, err := read[object](in)
	if err != nil {
		return nil, err
	}
	into := cluster.NewObject(o.Kind)
	if into == nil {
		return nil, fmt.Errorf("an object of kind %d is unknown; was it recorded by a newer Berth?", o.Kind)
	}
	if err := json.Unmarshal(o.Object, into); err != nil {
		return nil, err
	}
	return step.ObjectSet{Object: into}, nil
}
