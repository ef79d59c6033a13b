package drive

import (
	"time"

	"github.com/berthproject/berth/core/step"
)

// Hook sees every Step of a core, before its work is handed out: a recorder, a
// ledger, metrics, a test's check. It runs between two Steps, so it may read the
// core; it must change neither the core nor what it is shown, and may keep the
// inputs and what Ready points to.
type Hook interface {
	// Step shows a Step that was taken at a time, the inputs that went in, and the
	// work that came out. took is how long the core computed, 0 where the driver
	// has no clock.
	Step(now time.Time, took time.Duration, inputs []step.Input, ready *step.Ready)
}

// HookFunc is a function as a Hook.
type HookFunc func(now time.Time, took time.Duration, inputs []step.Input, ready *step.Ready)

// Step implements Hook.
func (f HookFunc) Step(now time.Time, took time.Duration, inputs []step.Input, ready *step.Ready) {
	f(now, took, inputs, ready)
}
