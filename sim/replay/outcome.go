package replay

import (
	"encoding/json"
	"errors"

	"github.com/berthproject/berth/core/door"
	"github.com/berthproject/berth/core/step"
)

// This file records inputs that may carry an error. JSON can't hold an error, so its text
// stands beside the input; a replay needs no more, since the core never looks into errors.

// outcome is an input with the text of its error, "" for none.
type outcome[T any] struct {
	Value T      `json:"of"`
	Err   string `json:"err,omitempty"`
}

// outcomeOf takes the error out of an input. err must be the field of *of.
func outcomeOf[T any](of *T, err *error) outcome[T] {
	out := outcome[T]{}
	if *err != nil {
		out.Err = (*err).Error()
	}
	*err = nil
	out.Value = *of
	return out
}

// decodeOutcome returns what decodes inputs of a type; field returns the field of its error.
func decodeOutcome[T step.Input](field func(*T) *error) decoder {
	return func(raw json.RawMessage) (step.Input, error) {
		o := outcome[T]{}
		if err := door.Read(raw, &o); err != nil {
			return nil, err
		}
		if o.Err != "" {
			*field(&o.Value) = errors.New(o.Err)
		}
		return o.Value, nil
	}
}
