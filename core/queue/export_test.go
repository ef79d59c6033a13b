package queue

import "github.com/berthproject/berth/core/engine"

// What tests draw and compare, and nobody else needs.

// State names the state of the class.
func (w *WaitingClass) State() string { return w.state.String() }

// AfterError reports whether the pod backs off from an error.
func (i *Item) AfterError() bool { return i.afterError }

// Probe reports whether the pod is tried for a woken class.
func (i *Item) Probe() bool { return i.probeOf != nil }

// WaitsWith returns the class that counts the pod as unschedulable or held, nil when
// it is at another stage.
func (i *Item) WaitsWith() *engine.Class {
	switch {
	case i.heldWith != nil:
		return i.heldWith.class
	case i.stage == Unschedulable:
		return i.class
	}
	return nil
}
