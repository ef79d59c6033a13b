//go:build !linux

package background

// takeLongSlices does nothing where a thread's time slice can't be set.
func takeLongSlices() {}
