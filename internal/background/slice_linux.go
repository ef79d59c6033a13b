package background

import (
	"time"

	"golang.org/x/sys/unix"
)

// longSlice is some times the time slice that threads have by default, 0.7 to 3 ms, and bounds how
// long a thread waits that has used up its share and may not interrupt.
const longSlice = 20 * time.Millisecond

// takeLongSlices gives the calling thread long time slices: from Linux 6.12 on, a thread with
// shorter ones that becomes ready to run interrupts it at once instead of at the next tick. Its
// share of the processor stays what it was, so it isn't starved, and nobody waits long for it
// to reach a point at which the garbage collector can stop it. An older kernel ignores the
// slice; where the call isn't allowed, the thread stays as it was.
//
// Source: Documentation/scheduler/sched-eevdf.rst of Linux; sched_setattr(2).
func takeLongSlices() {
	attr, err := unix.SchedGetAttr(0, 0)
	if err != nil || attr.Policy != unix.SCHED_NORMAL && attr.Policy != unix.SCHED_BATCH {
		return // others have priorities of their own, and no slices
	}
	attr.Runtime = uint64(longSlice)
	_ = unix.SchedSetAttr(0, attr, 0)
}
