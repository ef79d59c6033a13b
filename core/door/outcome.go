package door

import (
	"maps"
	"reflect"

	"github.com/berthproject/berth/core/step"
)

// This file bounds what outcomes say: their errors go into events, conditions and decisions.

// shortened is an error whose text was cut.
type shortened struct {
	error
	text string
}

func (e shortened) Error() string { return e.text }
func (e shortened) Unwrap() error { return e.error }

// outcome returns an input with its field Err shortened; one that has none as it is.
func outcome(in step.Input) step.Input {
	v := reflect.ValueOf(in)
	field := v.FieldByName("Err")
	if !field.IsValid() || field.IsNil() {
		return in
	}
	err := field.Interface().(error)
	text := err.Error()
	if len(text) <= MaxText {
		return in
	}
	out := reflect.New(v.Type()).Elem()
	out.Set(v)
	out.FieldByName("Err").Set(reflect.ValueOf(shortened{err, Shorten(text)}))
	return out.Interface().(step.Input)
}

// consulted bounds the reasons of extenders. Nodes that weren't asked about don't count with the
// core, whatever they are called.
func consulted(in step.Consulted) step.Consulted {
	in = outcome(in).(step.Consulted)
	copied := false
	for node, why := range in.Failed {
		if len(why) <= MaxText {
			continue
		}
		if !copied {
			in.Failed, copied = maps.Clone(in.Failed), true
		}
		in.Failed[node] = Shorten(why)
	}
	return in
}
