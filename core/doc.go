// Package core is the state machine: inputs in, a batch of work out.
//
// The caller does the work in Ready and feeds each outcome back as an input.
// Success is assumed at once and forgotten on failure, so a decision never
// waits for the API. Core has no goroutine, no clock and no lock: the same
// inputs at the same times with the same seed give the same Ready.
package core
