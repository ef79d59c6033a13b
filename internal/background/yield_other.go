//go:build !linux

package background

// yieldThread does nothing where the kernel isn't known.
func yieldThread() {}
