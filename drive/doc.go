// Package drive runs a core: it owns the core and its planner, takes apart the
// Ready of each Step and hands the work out to workers, whose outcomes come back
// as inputs. The live edge, the simulator, the replay of recordings and tests
// differ only in the workers that they give it.
//
//	owner ── Step(now, inputs) ──▶ Driver ── core.Step ──▶ Ready
//	  ▲                              │                       │
//	  │                            hooks ◀───────────────────┤
//	inbox ◀── done(outcome) ── workers ◀── in a stated order ┘
//
// The package is as pure as the core: no goroutine, no clock, no I/O. When and
// where work is done, and how long that takes, is up to the workers.
package drive
